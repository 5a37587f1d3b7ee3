//! Limits as the kernel holds them on this machine.

use crate::harness::Host;
use box_api::control::Profile;
use box_runtime::{BoxSpec, Runtime as _};
use std::path::PathBuf;

crate::claims!(
    limits_are_in_the_boxs_own_cgroup,
    the_cpu_limit_slows_down_and_only_that_box,
    a_fork_bomb_stops_at_its_limit_and_the_box_can_be_stopped,
    a_program_that_grows_dies_and_the_box_lives,
    the_tmpfs_and_open_files_have_their_limits,
);

/// The box's cgroup of a controller, as the kernel tells it of its first process.
fn cgroup(host: &Host, spec: &BoxSpec, controller: &str) -> PathBuf {
    let seen = host.wait(host.engine().list()).unwrap();
    let pid = seen
        .iter()
        .find(|seen| seen.id == spec.id)
        .unwrap()
        .pid
        .unwrap();
    let text = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let line = text.lines().find(|line| {
        line.split(':')
            .nth(1)
            .unwrap()
            .split(',')
            .any(|name| name == controller)
    });
    let below = line
        .unwrap()
        .splitn(3, ':')
        .nth(2)
        .unwrap()
        .trim_start_matches('/')
        .to_owned();
    assert_eq!(below, format!("box/{}", spec.id));
    PathBuf::from("/sys/fs/cgroup").join(controller).join(below)
}

fn number(path: &std::path::Path, file: &str) -> u64 {
    std::fs::read_to_string(path.join(file))
        .unwrap()
        .trim()
        .parse()
        .unwrap()
}

fn limits_are_in_the_boxs_own_cgroup(host: &mut Host) {
    assert_eq!(
        host.engine().limits_held_by(),
        "cgroup v1",
        "what this machine has"
    );
    let mut spec = host.spec(Profile::Locked);
    spec.limits.memory_bytes = 256 << 20;
    spec.limits.pids = 77;
    spec.limits.cpu_milli = 1500;
    host.run(&spec);
    assert_eq!(number(&cgroup(host, &spec, "pids"), "pids.max"), 77);
    let memory = cgroup(host, &spec, "memory");
    assert_eq!(number(&memory, "memory.limit_in_bytes"), 256 << 20);
    if memory.join("memory.memsw.limit_in_bytes").exists() {
        assert_eq!(number(&memory, "memory.memsw.limit_in_bytes"), 256 << 20);
    }
    let cpu = cgroup(host, &spec, "cpu");
    assert_eq!(
        number(&cpu, "cpu.cfs_quota_us") * 1000 / number(&cpu, "cpu.cfs_period_us"),
        1500
    );
    // Inside, the box's cgroup is the root of all.
    let inside = host.ask(&spec, "cat /proc/self/cgroup");
    for controller in ["pids", "memory", "cpu", "freezer"] {
        assert!(inside.contains(&format!(":{controller}:/\n")), "{inside}");
    }
}

fn the_cpu_limit_slows_down_and_only_that_box(host: &mut Host) {
    let mut slow = host.spec(Profile::Locked);
    slow.limits.cpu_milli = 250;
    host.run(&slow);
    let (free, _) = host.running(Profile::Locked);
    // Burns 0.2 s of CPU time; the answer is how often the kernel held it back.
    let burn = "my $end = (times)[0] + 0.2; 1 while (times)[0] < $end; print 'done'";
    let held_back = |spec: &BoxSpec| {
        assert_eq!(host.perl(spec, burn), "done");
        let stat = std::fs::read_to_string(cgroup(host, spec, "cpu").join("cpu.stat")).unwrap();
        let line = stat
            .lines()
            .find_map(|line| line.strip_prefix("nr_throttled "));
        line.unwrap().parse::<u64>().unwrap()
    };
    assert!(held_back(&slow) >= 4);
    assert_eq!(held_back(&free), 0);
}

fn a_fork_bomb_stops_at_its_limit_and_the_box_can_be_stopped(host: &mut Host) {
    let mut spec = host.spec(Profile::Root);
    spec.limits.pids = 50;
    host.run(&spec);
    let (neighbour, _) = host.running(Profile::Root);
    let bomb = "$SIG{CHLD} = 'IGNORE'; my $made = 0; for (1..400) {
        my $pid = fork; if (!defined $pid) { last } if (!$pid) { close STDOUT; close STDERR; sleep 600; exit } $made++ }
        print $made";
    let made: u32 = host
        .perl(&spec, bomb)
        .parse()
        .unwrap_or_else(|error| panic!("{error}"));
    assert!((30..50).contains(&made), "{made} processes");
    let pids = cgroup(host, &spec, "pids");
    assert!(number(&pids, "pids.current") <= 50);
    assert_eq!(host.ask(&neighbour, "echo here"), "here\n");
    host.wait(host.engine().stop(&spec.id, std::time::Duration::ZERO))
        .unwrap();
    assert!(!pids.exists());
}

fn a_program_that_grows_dies_and_the_box_lives(host: &mut Host) {
    let mut spec = host.spec(Profile::Locked);
    spec.limits.memory_bytes = 64 << 20;
    host.run(&spec);
    let grow = |mebibytes: u32| format!("my $x = 'x' x ({mebibytes} << 20); print length $x");
    assert_eq!(host.perl(&spec, &grow(20)), (20 << 20).to_string());
    let output = host.exec(&spec, &["perl", "-e", &grow(100)]);
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (137, ""),
        "{output:?}"
    );
    // What is written to the box's tmpfs counts as well.
    let filled = host.shell(
        &spec,
        "dd if=/dev/zero of=/tmp/x bs=1M count=100 2>/dev/null",
    );
    assert_ne!(filled.code, 0, "{filled:?}");
    assert_eq!(host.ask(&spec, "rm -f /tmp/x; echo here"), "here\n");
}

fn the_tmpfs_and_open_files_have_their_limits(host: &mut Host) {
    let mut spec = host.spec(Profile::Locked);
    spec.limits.tmp_bytes = 8 << 20;
    spec.limits.open_files = 100;
    host.run(&spec);
    host.ask(&spec, "dd if=/dev/zero of=/tmp/a bs=1M count=5 2>/dev/null");
    // /dev/shm is the same file system.
    let more = host.shell(&spec, "dd if=/dev/zero of=/dev/shm/b bs=1M count=5");
    assert!(
        more.code != 0 && more.stderr.contains("No space left"),
        "{more:?}"
    );
    assert_eq!(host.ask(&spec, "ulimit -n; ulimit -c"), "100\n0\n");
}
