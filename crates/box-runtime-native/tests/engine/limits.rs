//! Limits as the kernel holds them on this machine, by cgroup v1 or v2.

use crate::cgroup::{Cgroup, Version};
use crate::harness::{GRACE, Host, told};
use box_api::control::{Limits, Profile};
use box_runtime::{
    BoxSockets, BoxSpec, LimitName, Limiter as _, Runtime as _, RuntimeError, Usage,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

crate::claims!(
    limits_are_in_the_boxs_own_cgroup,
    the_cpu_limit_slows_down_and_only_that_box,
    a_fork_bomb_stops_at_its_limit_and_the_box_can_be_stopped,
    a_program_that_grows_dies_and_the_box_lives,
    the_tmpfs_and_open_files_have_their_limits,
    limits_of_a_running_box_change_at_once,
    less_memory_than_the_box_uses_is_refused,
    what_a_box_uses_is_counted,
    a_box_whose_first_process_is_killed_for_want_of_memory_says_so,
    a_box_that_died_while_no_host_looked_says_so_too,
);

fn limits_are_in_the_boxs_own_cgroup(host: &mut Host) {
    let mut spec = host.spec(Profile::Locked);
    spec.limits.memory_bytes = 256 << 20;
    spec.limits.pids = 77;
    spec.limits.cpu_milli = 1500;
    host.run(&spec);
    let cgroup = Cgroup::of(host, &spec);
    let held_by = match cgroup.version {
        Version::One => "cgroup v1",
        Version::Two => "cgroup v2",
    };
    assert_eq!(host.engine().limits_held_by(), held_by);
    assert_eq!(cgroup.pids_max(), 77);
    assert_eq!(cgroup.memory_max(), 256 << 20);
    assert_eq!(cgroup.swap_max(), 0, "without swap");
    assert_eq!(cgroup.cpu_milli(), 1500);
    // Inside, the box's cgroup is the root of all.
    let inside = host.ask(&spec, "cat /proc/self/cgroup");
    let roots: &[&str] = match cgroup.version {
        Version::One => &[
            ":pids:/\n",
            ":memory:/\n",
            ":cpu:/\n",
            ":freezer:/\n",
            ":cpuacct:/\n",
        ],
        Version::Two => &["0::/\n"],
    };
    for root in roots {
        assert!(inside.contains(root), "{inside}");
    }
}

fn the_cpu_limit_slows_down_and_only_that_box(host: &mut Host) {
    let mut slow = host.spec(Profile::Locked);
    // So little that it has more than its share even on a machine with much else to do.
    slow.limits.cpu_milli = 50;
    host.run(&slow);
    let (free, _) = host.running(Profile::Locked);
    assert!(held_back(host, &slow) >= 4);
    assert_eq!(held_back(host, &free), 0);
}

/// Burns 0.1 s of CPU time; the answer is how often the kernel held it back.
fn held_back(host: &Host, spec: &BoxSpec) -> u64 {
    let cgroup = Cgroup::of(host, spec);
    let before = cgroup.throttled();
    let burn = "my $end = (times)[0] + 0.1; 1 while (times)[0] < $end; print 'done'";
    assert_eq!(host.perl(spec, burn), "done");
    cgroup.throttled() - before
}

/// Makes up to this many processes that sleep, and says how many there are.
fn forks(host: &Host, spec: &BoxSpec, count: u32) -> u32 {
    let bomb = format!(
        "$SIG{{CHLD}} = 'IGNORE'; my $made = 0; for (1..{count}) {{
        my $pid = fork; if (!defined $pid) {{ last }}
        if (!$pid) {{ close STDOUT; close STDERR; sleep 600; exit }} $made++ }}
        print $made"
    );
    let made = host.perl(spec, &bomb);
    made.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn grow(mebibytes: u32) -> String {
    format!("my $x = 'x' x ({mebibytes} << 20); print length $x")
}

fn a_fork_bomb_stops_at_its_limit_and_the_box_can_be_stopped(host: &mut Host) {
    let mut spec = host.spec(Profile::Root);
    spec.limits.pids = 50;
    host.run(&spec);
    let (neighbour, _) = host.running(Profile::Root);
    let made = forks(host, &spec, 400);
    assert!((30..50).contains(&made), "{made} processes");
    let cgroup = Cgroup::of(host, &spec);
    assert!(cgroup.pids() <= 50);
    assert_eq!(host.ask(&neighbour, "echo here"), "here\n");
    host.wait(host.engine().stop(&spec.id, std::time::Duration::ZERO))
        .unwrap();
    assert!(!cgroup.is_there());
}

fn a_program_that_grows_dies_and_the_box_lives(host: &mut Host) {
    let mut spec = host.spec(Profile::Locked);
    spec.limits.memory_bytes = 64 << 20;
    host.run(&spec);
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
    let (neighbour, _) = host.running(Profile::Locked);
    host.ask(&spec, "dd if=/dev/zero of=/tmp/a bs=1M count=5 2>/dev/null");
    // /dev/shm is the same file system.
    let more = host.shell(&spec, "dd if=/dev/zero of=/dev/shm/b bs=1M count=5");
    assert!(
        more.code != 0 && more.stderr.contains("No space left"),
        "{more:?}"
    );
    assert_eq!(host.ask(&spec, "ulimit -n; ulimit -c"), "100\n0\n");
    let open =
        "my @open; for (1..200) { open(my $file, '<', '/dev/null') or last; push @open, $file }
        print scalar @open";
    let opened = |spec: &BoxSpec| host.perl(spec, open).parse::<u32>().unwrap();
    assert!((80..100).contains(&opened(&spec)));
    assert_eq!(opened(&neighbour), 200, "the control");
}

fn limits_of_a_running_box_change_at_once(host: &mut Host) {
    let mut spec = host.spec(Profile::Locked);
    spec.limits.pids = 30;
    spec.limits.memory_bytes = 64 << 20;
    host.run(&spec);
    let engine = host.engine().clone();
    for limit in [LimitName::Cpu, LimitName::Memory, LimitName::Pids] {
        assert!(engine.live().contains(&limit), "{limit:?}");
    }
    assert!(forks(host, &spec, 60) < 30);
    let output = host.exec(&spec, &["perl", "-e", &grow(100)]);
    assert_eq!(output.code, 137, "{output:?}");
    assert_eq!(held_back(host, &spec), 0);

    let more = Limits {
        pids: 200,
        memory_bytes: 512 << 20,
        cpu_milli: 250,
        ..spec.limits
    };
    host.wait(engine.set(&spec.id, &more)).unwrap();
    assert_eq!(forks(host, &spec, 60), 60);
    assert_eq!(host.perl(&spec, &grow(100)), (100 << 20).to_string());
    assert!(held_back(host, &spec) >= 4);

    let less = Limits {
        memory_bytes: 128 << 20,
        ..more
    };
    host.wait(engine.set(&spec.id, &less)).unwrap();
    let cgroup = Cgroup::of(host, &spec);
    assert_eq!(cgroup.memory_max(), 128 << 20);
    assert_eq!(cgroup.swap_max(), 0, "without swap still");
    assert_eq!(cgroup.cpu_milli(), 250);
    let output = host.exec(&spec, &["perl", "-e", &grow(200)]);
    assert_eq!(output.code, 137, "{output:?}");

    host.wait(engine.stop(&spec.id, GRACE)).unwrap();
    let still = host.wait(engine.set(&spec.id, &less)).unwrap_err();
    assert!(matches!(still, RuntimeError::NotRunning(_)), "{still:?}");
}

fn less_memory_than_the_box_uses_is_refused(host: &mut Host) {
    let mut spec = host.spec(Profile::Locked);
    spec.limits.memory_bytes = 256 << 20;
    host.run(&spec);
    host.ask(
        &spec,
        "dd if=/dev/zero of=/tmp/x bs=1M count=100 2>/dev/null",
    );
    let engine = host.engine().clone();
    let less = Limits {
        memory_bytes: 64 << 20,
        pids: 33,
        ..spec.limits
    };
    let refused = host.wait(engine.set(&spec.id, &less)).unwrap_err();
    assert!(told(&refused).contains("more than 64 MiB"), "{refused:?}");
    let cgroup = Cgroup::of(host, &spec);
    assert_eq!(cgroup.memory_max(), 256 << 20);
    assert_eq!(
        u64::from(spec.limits.pids),
        cgroup.pids_max(),
        "nothing was changed"
    );
    assert_eq!(usage(host, &spec).out_of_memory, 0, "nothing was killed");
    host.ask(&spec, "rm /tmp/x");
    host.wait(engine.set(&spec.id, &less)).unwrap();
    assert_eq!(cgroup.memory_max(), 64 << 20);
}

fn usage(host: &Host, spec: &BoxSpec) -> Usage {
    host.wait(host.engine().usage(&spec.id)).unwrap()
}

fn what_a_box_uses_is_counted(host: &mut Host) {
    let mut spec = host.spec(Profile::Locked);
    spec.limits.memory_bytes = 128 << 20;
    spec.limits.pids = 40;
    host.run(&spec);
    let (neighbour, _) = host.running(Profile::Locked);
    let before = usage(host, &spec);
    assert!(before.processes >= 1 && before.processes < 10, "{before:?}");
    assert!(
        before.memory_bytes > 0 && before.memory_bytes < 32 << 20,
        "{before:?}"
    );
    assert!(!before.frozen, "{before:?}");
    assert_eq!((before.out_of_memory, before.out_of_processes), (0, 0));

    let burn = "my $end = (times)[0] + 0.3; 1 while (times)[0] < $end; print 'done'";
    assert_eq!(host.perl(&spec, burn), "done");
    host.ask(
        &spec,
        "dd if=/dev/zero of=/tmp/x bs=1M count=40 2>/dev/null",
    );
    let after = usage(host, &spec);
    assert!(after.cpu_us - before.cpu_us >= 300_000, "{after:?}");
    assert!(
        after.memory_bytes - before.memory_bytes >= 40 << 20,
        "{after:?}"
    );

    let output = host.exec(&spec, &["perl", "-e", &grow(200)]);
    assert_eq!(output.code, 137, "{output:?}");
    assert!(usage(host, &spec).out_of_memory >= 1);
    let made = forks(host, &spec, 100);
    let full = usage(host, &spec);
    assert!(full.processes >= made && full.processes <= 40, "{full:?}");
    assert!(full.out_of_processes >= 1, "{full:?}");

    let other = usage(host, &neighbour);
    assert_eq!(
        (other.out_of_memory, other.out_of_processes),
        (0, 0),
        "{other:?}"
    );
    assert!(
        other.processes < 10 && other.memory_bytes < 32 << 20,
        "{other:?}"
    );
    host.wait(host.engine().stop(&spec.id, GRACE)).unwrap();
    let stopped = host.wait(host.engine().usage(&spec.id)).unwrap_err();
    assert!(
        matches!(stopped, RuntimeError::NotRunning(_)),
        "{stopped:?}"
    );
}

/// Makes the box's first process the one the kernel kills first, then wants too much memory, in so
/// many processes that none of them is the largest by far.
fn die_for_want_of_memory(host: &Host, spec: &BoxSpec, sockets: &BoxSockets) {
    let bomb = "open(my $up, '>', '/workspace/up') or die; 1 until -e '/workspace/go';
        for (1..20) { next if fork; my $x = 'x' x (4 << 20); sleep 600; exit } sleep 600";
    let exec = box_runtime::ExecSpec {
        command: ["perl", "-e", bomb].map(str::to_owned).to_vec(),
        cwd: None,
        env: Vec::new(),
        terminal: None,
    };
    let execution = host.wait(host.engine().exec(&spec.id, exec)).unwrap();
    // The program is born before, so that it does not inherit this.
    let workspace = host.folder(spec).join("workspace");
    while !workspace.join("up").exists() {
        std::thread::yield_now();
    }
    let seen = host
        .wait(box_runtime::Runtime::list(host.engine()))
        .unwrap();
    let pid = seen.iter().find(|seen| seen.id == spec.id).unwrap().pid;
    std::fs::write(format!("/proc/{}/oom_score_adj", pid.unwrap()), "1000").unwrap();
    std::fs::write(workspace.join("go"), "").unwrap();
    let gone = PollFd::new(&sockets.pidfd, PollFlags::IN);
    let deadline = Timespec {
        tv_sec: 20,
        tv_nsec: 0,
    };
    assert_eq!(poll(&mut [gone], Some(&deadline)), Ok(1));
    drop(execution);
}

fn a_box_whose_first_process_is_killed_for_want_of_memory_says_so(host: &mut Host) {
    let mut spec = host.spec(Profile::Locked);
    spec.limits.memory_bytes = 64 << 20;
    let sockets = host.run(&spec);
    let engine = host.engine().clone();
    assert_eq!(host.wait(engine.ended(&spec.id)), None, "it runs");
    die_for_want_of_memory(host, &spec, &sockets);
    let ended = host.wait(engine.ended(&spec.id)).unwrap();
    assert!(ended.killed && ended.out_of_memory >= 1, "{ended:?}");

    // The control: one that somebody killed for another reason.
    host.wait(engine.start(&spec)).unwrap();
    assert_eq!(host.wait(engine.ended(&spec.id)), None, "it runs again");
    assert_eq!(
        usage(host, &spec).out_of_memory,
        0,
        "counted from its start"
    );
    host.wait(engine.stop(&spec.id, GRACE)).unwrap();
    assert_eq!(host.wait(engine.ended(&spec.id)), None, "it was stopped");
}

fn a_box_that_died_while_no_host_looked_says_so_too(host: &mut Host) {
    let mut spec = host.spec(Profile::Locked);
    spec.limits.memory_bytes = 64 << 20;
    let sockets = host.run(&spec);
    // The spawner that made it ends with its host; the next one never saw the box.
    host.replace();
    die_for_want_of_memory(host, &spec, &sockets);
    let engine = host.engine().clone();
    let ended = host.wait(engine.ended(&spec.id)).unwrap();
    assert!(ended.killed && ended.out_of_memory >= 1, "{ended:?}");
}
