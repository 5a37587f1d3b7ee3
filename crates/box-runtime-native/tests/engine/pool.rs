//! Boxes begun ahead: each becomes one box, which nothing tells from one that was made from cold, and
//! those nobody takes are gone with their host.

use crate::harness::{Host, children_of, told};
use box_api::control::Profile;
use box_runtime::{BoxSpec, Pool as _, Runtime as _};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

crate::claims!(
    a_spare_becomes_the_box_that_is_asked_for,
    boxes_from_spares_share_no_more_than_cold_ones,
    a_spare_is_no_box_and_goes_when_let_go,
    spares_end_with_their_host,
    spares_of_a_spawner_that_was_killed_are_cleared_by_the_next_host,
    a_spare_that_died_is_made_up_for,
    a_spare_whose_box_goes_goes_with_it,
);

fn begin(host: &Host, spec: &BoxSpec) {
    let begun = host.wait(host.engine().begin(&spec.id));
    begun.unwrap_or_else(|error| panic!("{}", told(&error)));
}

/// A box that was begun ahead, and runs.
fn from_spare(host: &mut Host, profile: Profile, change: impl FnOnce(&mut BoxSpec)) -> BoxSpec {
    let mut spec = host.spec(profile);
    change(&mut spec);
    begin(host, &spec);
    let born = children(host);
    let _sockets = host.run(&spec);
    assert!(
        born.contains(&pid_of(host, &spec)),
        "it is the very process that was begun ahead"
    );
    assert_eq!(host.engine().spares(), []);
    spec
}

fn children(host: &Host) -> Vec<u32> {
    let text = children_of(host.engine().spawner_pid());
    let pids = text.split_whitespace();
    pids.map(|pid| pid.parse().unwrap()).collect()
}

fn pid_of(host: &Host, spec: &BoxSpec) -> u32 {
    let seen = host.wait(host.engine().list()).unwrap();
    let seen = seen.iter().find(|seen| seen.id == spec.id).unwrap();
    seen.pid.unwrap()
}

fn waits_until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(40);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::yield_now();
    }
}

fn a_spare_becomes_the_box_that_is_asked_for(host: &mut Host) {
    for profile in [Profile::Locked, Profile::Root] {
        let spec = from_spare(host, profile, |spec| {
            "chosen-later".clone_into(&mut spec.host_name);
            spec.env = vec![("MARK".to_owned(), "mine".to_owned())];
            spec.limits.pids = 77;
            spec.limits.tmp_bytes = 3 << 20;
        });
        assert_eq!(
            host.ask(&spec, "hostname; echo $MARK"),
            "chosen-later\nmine\n"
        );
        assert_eq!(host.ask(&spec, "cat /etc/hostname"), "chosen-later\n");
        let pid = pid_of(host, &spec);
        let map = std::fs::read_to_string(format!("/proc/{pid}/uid_map")).unwrap();
        let first = |line: &str| line.split_whitespace().nth(1)?.parse::<u32>().ok();
        let in_range = |line: &str| {
            let above = first(line).unwrap().checked_sub(spec.id_offset);
            above.is_some_and(|above| above < 65_536)
        };
        assert!(
            map.lines().count() > 0 && map.lines().all(in_range),
            "{map}"
        );
        assert_eq!(crate::cgroup::Cgroup::of(host, &spec).pids_max(), 77);
        let mounts = std::fs::read_to_string(format!("/proc/{pid}/mountinfo")).unwrap();
        let tmp = mounts.lines().find(|line| line.contains(" /tmp ")).unwrap();
        assert!(tmp.contains("size=3072k"), "{tmp}");
        host.ask(&spec, "echo kept > /workspace/file");
        let engine = host.engine().clone();
        host.wait(engine.stop(&spec.id, crate::harness::GRACE))
            .unwrap();
        // Its second start is from cold.
        let _sockets = host.wait(engine.start(&spec)).unwrap().sockets.unwrap();
        assert_eq!(host.ask(&spec, "cat /workspace/file"), "kept\n");
    }
}

/// What its first process has open, by kind.
fn descriptors(host: &Host, spec: &BoxSpec) -> Vec<String> {
    let folder = format!("/proc/{}/fd", pid_of(host, spec));
    let entries = std::fs::read_dir(folder).unwrap();
    let kind = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.unwrap();
        // One that was just closed is none.
        let what = std::fs::read_link(entry.path()).ok()?;
        let what = what.to_string_lossy().into_owned();
        let kind = what.split('[').next().unwrap_or_default().to_owned();
        Some(format!("{} {kind}", entry.file_name().to_string_lossy()))
    };
    let mut open: Vec<String> = entries.filter_map(kind).collect();
    open.sort();
    open
}

/// What a box has of the machine, without what must differ: mounts, rights, limits, environment.
fn looks(host: &Host, spec: &BoxSpec) -> BTreeMap<&'static str, String> {
    let pid = pid_of(host, spec);
    // Its guest is all there once it answers.
    host.ask(spec, "true");
    let read = |file: &str| {
        let bytes = std::fs::read(format!("/proc/{pid}/{file}")).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    // A mount's number, its parent's, and the number of its file system are the kernel's to choose.
    let mounts = read("mountinfo");
    let mounts = mounts.lines().map(|line| {
        let fields: Vec<&str> = line.split(' ').skip(3).collect();
        // So are those of the spawner's descriptors, which an overlay was mounted by.
        let parts = fields.join(" ");
        let parts = parts.split("/proc/self/fd/").map(|part| {
            let number = part.bytes().take_while(u8::is_ascii_digit).count();
            part[number..].to_owned()
        });
        parts.collect::<Vec<_>>().join("fd ")
    });
    let mounts: Vec<String> = mounts.collect();
    let status = read("status");
    let rights = status.lines().filter(|line| {
        let of = [
            "Cap",
            "NoNewPrivs",
            "Seccomp",
            "SigBlk",
            "SigIgn",
            "Groups",
            "Umask",
        ];
        of.iter().any(|name| line.starts_with(name))
    });
    let rights: Vec<&str> = rights.collect();
    let inside = "stat -c '%A %u %g %n' /tmp /run /dev/* /dev/shm /opt/box/* /* /etc/*; env; id; umask; \
                  hostname; cat /etc/hosts /etc/resolv.conf";
    let sockets = "for (qw(tcp udp tcp6 udp6)) { open(my $f, '<', \"/proc/net/$_\") or next;
        push @all, map { join ' ', (split)[1, 3] } <$f> } print join \"\\n\", sort @all";
    let sockets = host.perl(spec, sockets);
    assert!(sockets.contains(":0035 "), "the control: {sockets}");
    BTreeMap::from([
        (
            "mounts",
            mounts
                .join("\n")
                .replace(spec.id.as_str(), "ID")
                .replace(&(spec.id_offset + TTY_GROUP).to_string(), "TTY"),
        ),
        ("rights", rights.join("\n")),
        ("limits", read("limits")),
        ("inside", host.ask(spec, inside)),
        ("sockets", sockets),
    ])
}

/// The group of terminals, in every box.
const TTY_GROUP: u32 = 5;

const NAMESPACES: [&str; 8] = ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time"];

fn namespaces(host: &Host, spec: &BoxSpec) -> Vec<String> {
    let pid = pid_of(host, spec);
    NAMESPACES
        .iter()
        .map(|kind| {
            let link = std::fs::read_link(format!("/proc/{pid}/ns/{kind}")).unwrap();
            link.to_string_lossy().into_owned()
        })
        .collect()
}

fn boxes_from_spares_share_no_more_than_cold_ones(host: &mut Host) {
    for profile in [Profile::Locked, Profile::Root] {
        let (cold, _sockets) = host.running(profile);
        // Begun one after the other, so that the second was a fork of a spawner that holds the first.
        let (one, other) = (host.spec(profile), host.spec(profile));
        begin(host, &one);
        begin(host, &other);
        let _sockets = (host.run(&other), host.run(&one));
        let same = looks(host, &cold);
        for spec in [&one, &other] {
            for (what, seen) in looks(host, spec) {
                assert_eq!(seen, same[what], "{what}");
            }
            // Those of the commands above are closed in a moment.
            let (cold, spare) = (|| descriptors(host, &cold), || descriptors(host, spec));
            let told = format!("{:?} {:?}", cold(), spare());
            waits_until(&told, || cold() == spare());
        }
        let all = [&cold, &one, &other].map(|spec| namespaces(host, spec));
        for at in 0..NAMESPACES.len() {
            let (a, b, c) = (&all[0][at], &all[1][at], &all[2][at]);
            assert!(
                a != b && b != c && a != c,
                "{}: {a} {b} {c}",
                NAMESPACES[at]
            );
        }
        // Nothing of one is seen in the other, in files, in shared memory, over the network.
        host.ask(
            &one,
            "echo secret > /tmp/mine; echo secret > /dev/shm/mine; echo secret > /workspace/mine",
        );
        host.refused(&other, "cat /tmp/mine");
        host.refused(&other, "cat /dev/shm/mine");
        host.refused(&other, "cat /workspace/mine");
        assert_eq!(host.ask(&one, "cat /tmp/mine"), "secret\n");
        let ids = [&one, &other].map(|spec| host.ask(spec, "cat /etc/machine-id"));
        assert_ne!(ids[0], ids[1]);
        assert_ne!(one.id_offset, other.id_offset);
    }
}

fn a_spare_is_no_box_and_goes_when_let_go(host: &mut Host) {
    let spec = host.spec(Profile::Locked);
    begin(host, &spec);
    assert_eq!(host.engine().spares(), [spec.id]);
    assert_eq!(host.wait(host.engine().list()).unwrap(), []);
    assert_eq!(
        children(host).len(),
        1,
        "the control: there is something to go"
    );
    let twice = host.wait(host.engine().begin(&spec.id)).unwrap_err();
    assert!(
        matches!(twice, box_runtime::RuntimeError::Exists(_)),
        "{twice:?}"
    );
    host.wait(host.engine().let_go(&spec.id)).unwrap();
    host.wait(host.engine().let_go(&spec.id)).unwrap();
    assert_eq!(host.engine().spares(), []);
    assert_eq!(children(host), Vec::<u32>::new());
    assert_eq!(Host::cgroups(), Vec::<std::path::PathBuf>::new());
    // Its id is worth nothing more than any other.
    let _sockets = host.run(&spec);
    assert_eq!(host.ask(&spec, "echo here"), "here\n");
}

fn gone(pids: &[u32]) -> bool {
    let lives = |pid: &u32| Path::new("/proc").join(pid.to_string()).exists();
    !pids.iter().any(lives)
}

fn three_spares(host: &mut Host) -> Vec<u32> {
    for _ in 0..3 {
        let spec = host.spec(Profile::Locked);
        begin(host, &spec);
    }
    let pids = children(host);
    assert!(pids.len() >= 3, "{pids:?}");
    pids
}

fn spares_end_with_their_host(host: &mut Host) {
    let pids = three_spares(host);
    // As a kill of the host does: its end of the spawner's socket closes, and nothing is said.
    host.replace();
    waits_until("they run on without a host", || gone(&pids));
    waits_until("their cgroups stay", || Host::cgroups().is_empty());
    assert_eq!(host.engine().spares(), []);
    assert_eq!(host.wait(host.engine().list()).unwrap(), []);
}

fn spares_of_a_spawner_that_was_killed_are_cleared_by_the_next_host(host: &mut Host) {
    let taken = from_spare(host, Profile::Locked, |_| ());
    let pids = three_spares(host);
    let pids: Vec<u32> = pids
        .into_iter()
        .filter(|pid| *pid != pid_of(host, &taken))
        .collect();
    let spawner = Pid::from_raw(host.engine().spawner_pid().cast_signed()).unwrap();
    kill_process(spawner, Signal::KILL).unwrap();
    waits_until("they run on without a spawner", || gone(&pids));
    host.replace();
    let left = Host::cgroups();
    let is_taken = |path: &std::path::PathBuf| path.ends_with(taken.id.as_str());
    assert!(left.iter().all(is_taken), "{left:?}");
    assert_eq!(
        host.ask(&taken, "echo here"),
        "here\n",
        "what was taken goes on"
    );
}

fn a_spare_that_died_is_made_up_for(host: &mut Host) {
    let spec = host.spec(Profile::Root);
    begin(host, &spec);
    let pids = children(host);
    let [pid] = pids.as_slice() else {
        panic!("{pids:?}");
    };
    let process = Pid::from_raw(pid.cast_signed()).unwrap();
    kill_process(process, Signal::KILL).unwrap();
    let stat = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    waits_until("it does not die", || {
        stat().is_empty() || stat().contains(") Z ")
    });
    let _sockets = host.run(&spec);
    assert_ne!(pid_of(host, &spec), *pid);
    assert_eq!(host.ask(&spec, "echo here"), "here\n");
}

fn a_spare_whose_box_goes_goes_with_it(host: &mut Host) {
    let mut spec = host.spec(Profile::Locked);
    begin(host, &spec);
    let engine = host.engine().clone();
    host.wait(engine.create(&spec)).unwrap();
    let image = std::mem::replace(&mut spec.image_digest, "sha256:none".to_owned());
    host.wait(engine.start(&spec)).unwrap_err();
    host.wait(engine.remove(&spec.id)).unwrap();
    assert_eq!(children(host), Vec::<u32>::new());
    assert_eq!(Host::cgroups(), Vec::<std::path::PathBuf>::new());
    spec.image_digest = image;
    let _sockets = host.run(&spec);
    assert_eq!(host.ask(&spec, "echo here"), "here\n");
}
