//! Every kind of probe both ways: refused where it must be, and its control allowed.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::Value;
use std::process::Command;

const PROBE: &str = env!("CARGO_BIN_EXE_box-probe");
/// A plain user: no capability, no other group.
const NOBODY: [&str; 5] = [
    "setpriv",
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
    "--no-new-privs",
];
/// Namespaces of its own, so that nothing a probe is allowed touches the machine.
const APART: [&str; 8] = [
    "unshare",
    "--mount",
    "--net",
    "--uts",
    "--ipc",
    "--pid",
    "--fork",
    "--kill-child",
];

fn probe(before: &[&str], words: &[&str]) -> Value {
    let all = [before, &[PROBE], words].concat();
    let output = command(all[0]).args(&all[1..]).output().unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
    let line = serde_json::from_slice::<Value>(&output.stdout).unwrap();
    assert_eq!(line["probe"], words[0]);
    line
}

fn as_nobody(words: &[&str]) -> String {
    told(&probe(&[&APART[..], &NOBODY].concat(), words))
}

fn as_root(words: &[&str]) -> String {
    told(&probe(&APART, words))
}

fn told(line: &Value) -> String {
    match line["errno"].as_str() {
        Some(errno) => format!("{} {errno}", line["result"].as_str().unwrap()),
        None => line["result"].as_str().unwrap().to_owned(),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one home of processes in these tests"
)]
fn command(program: &str) -> Command {
    Command::new(program)
}

#[test]
fn what_needs_privilege_is_refused_to_nobody_and_allowed_to_root() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    let node = format!("{folder}/node");
    let opaque = ["setxattr", folder, "trusted.overlay.opaque", "y"];
    let inner = format!("{folder}/inner");
    for (words, errno) in [
        (&["open", "/etc/shadow"][..], "EACCES"),
        (&["write", "/etc/passwd"], "EACCES"),
        (&["read", "/etc/shadow"], "EACCES"),
        (&["mount", "none", folder, "tmpfs"], "EPERM"),
        (&["bind-mount", "/etc", folder], "EPERM"),
        (&["fsopen", "tmpfs"], "EPERM"),
        (&["open-tree", "/"], "EPERM"),
        (&["unshare", "mnt,net"], "EPERM"),
        (&["clone3", "net"], "EPERM"),
        (&["setns", "/proc/self/ns/net"], "EPERM"),
        (&["sethostname", "elsewhere"], "EPERM"),
        (&["mknod", &node, "c", "1", "3"], "EACCES"),
        (&["open-by-handle", "/etc/passwd"], "EPERM"),
        (&["socket", "packet", "raw", "0"], "EPERM"),
        (&["setuid", "0"], "EPERM"),
        (&["setgid", "0"], "EPERM"),
        (&["setgroups", "0"], "EPERM"),
        (&["chroot", "/"], "EPERM"),
        (&["chown", folder, "70000", "70000"], "EPERM"),
        (&opaque, "EPERM"),
        (&["remount-writable", "/proc"], "EPERM"),
        (&["mount-setattr", "/proc"], "EPERM"),
        (&["pagemap"], "EPERM"),
        (&["nice", "-5"], "EACCES"),
        (&["realtime"], "EPERM"),
        (&["io-realtime"], "EPERM"),
        (&["interface-flags"], "EPERM"),
        (&["socket-option", "mark"], "EPERM"),
        (&["socket-option", "transparent"], "EPERM"),
        (&["adjtimex"], "EPERM"),
    ] {
        assert_eq!(as_nobody(words), format!("refused {errno}"), "{words:?}");
        assert_eq!(as_root(words), "ok", "{words:?}");
    }
    // Root may chroot, and out of a chroot into the root it came from there is nowhere to go.
    assert_eq!(as_nobody(&["chroot-escape", &inner]), "refused EPERM");
    assert_eq!(as_root(&["chroot-escape", &inner]), "refused NONE");
    assert!(
        std::fs::read_dir(folder).unwrap().next().is_none(),
        "a probe left something behind"
    );
}

#[test]
fn what_is_never_to_succeed_here_is_refused_to_nobody() {
    for words in [
        &["reboot"][..],
        &["kexec-load"],
        &["init-module"],
        &["swapon", "/nowhere"],
        &["acct"],
        &["clock-settime"],
        &["iopl"],
        &["umount", "/proc"],
        &["pivot-root", "/", "/"],
    ] {
        let told = as_nobody(words);
        assert!(
            told == "refused EPERM" || told == "refused ENOSYS",
            "{words:?}: {told}"
        );
    }
}

#[test]
fn every_plain_probe_gives_an_outcome() {
    let output = command(PROBE).arg("--list").output().unwrap();
    let list = String::from_utf8(output.stdout).unwrap();
    assert!(list.lines().count() > 50);
    let plain = list.lines().filter(|line| !line.contains(' '));
    for name in plain {
        let told = as_nobody(&[name]);
        assert!(
            told == "ok" || told.starts_with("refused "),
            "{name}: {told}"
        );
    }
}

#[test]
fn other_processes_can_be_reached_only_by_who_may() {
    let mut sleeper = command("sleep").arg("1000").spawn().unwrap();
    let pid = sleeper.id().to_string();
    // Not in a pid namespace of its own, or the sleeper would not be there.
    let nobody = |words: &[&str]| told(&probe(&NOBODY, words));
    let root = |words: &[&str]| told(&probe(&[], words));
    for (words, errno) in [
        (&["ptrace", pid.as_str()][..], "EPERM"),
        (&["kill", &pid, "0"], "EPERM"),
        (&["pidfd-getfd", &pid, "0"], "EPERM"),
        (&["proc-exe", &pid], "EACCES"),
        (&["proc-environ", &pid], "EACCES"),
        (&["proc-mem", &pid], "EACCES"),
    ] {
        assert_eq!(nobody(words), format!("refused {errno}"), "{words:?}");
        assert_eq!(root(words), "ok", "{words:?}");
    }
    assert_eq!(nobody(&["process-vm-readv", &pid, "0"]), "refused EPERM");
    assert_eq!(root(&["process-vm-readv", &pid, "0"]), "refused EFAULT");
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
}

#[test]
fn limits_are_reached_and_told_with_how_much() {
    // A uid nothing else runs as, for the kernel counts the processes of a uid.
    let alone = [
        "setpriv",
        "--reuid=64531",
        "--regid=64531",
        "--clear-groups",
    ];
    let limited = |limit: &str, words: &[&str]| {
        probe(&[&APART[..], &["prlimit", limit], &alone].concat(), words)
    };
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let file = folder.path().join("file");
    let file = file.to_str().unwrap();
    let line = limited("--nproc=10", &["fork-until-fail", "50"]);
    assert_eq!(
        (told(&line).as_str(), &line["detail"]),
        ("refused EAGAIN", &Value::from("9 processes"))
    );
    let line = limited("--as=100000000", &["memory-until-fail", "500"]);
    assert_eq!(told(&line), "refused ENOMEM");
    let line = limited("--nofile=20", &["open-until-fail", "50"]);
    assert_eq!(told(&line), "refused EMFILE");
    let line = probe(
        &["prlimit", "--fsize=3145728"],
        &["file-until-fail", file, "10"],
    );
    assert_eq!(
        (told(&line).as_str(), &line["detail"]),
        ("refused EFBIG", &Value::from("3 MiB"))
    );
    let line = limited("--nproc=10", &["threads-until-fail", "50"]);
    assert_eq!(
        (told(&line).as_str(), &line["detail"]),
        ("refused EAGAIN", &Value::from("9 threads"))
    );
    let line = limited("--nproc=10", &["fork-bomb", "3000"]);
    assert_eq!(told(&line), "refused EAGAIN");
    let line = limited("--nproc=10", &["files-of-many", "50", "7", "100"]);
    assert_eq!(line["detail"], Value::from("count=63 processes=9"));
    for kind in ["memfd", "shared"] {
        let line = limited("--as=100000000", &["memory-until-fail", "500", kind]);
        assert_eq!(told(&line), "refused ENOMEM", "{kind}");
    }
    // The controls: below the limit nothing is refused.
    assert_eq!(
        told(&limited("--nproc=10", &["fork-until-fail", "5"])),
        "ok"
    );
    assert_eq!(
        told(&limited("--as=100000000", &["memory-until-fail", "5"])),
        "ok"
    );
    assert_eq!(
        told(&limited("--nofile=20", &["open-until-fail", "5"])),
        "ok"
    );
    assert_eq!(told(&probe(&[], &["file-until-fail", file, "3"])), "ok");
    assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none());
}

#[test]
fn the_network_is_what_the_namespace_has() {
    let nothing = |words: &[&str]| told(&probe(&APART, words));
    let up = ["sh", "-c", "ip link set lo up; exec \"$0\" \"$@\""];
    let with_lo = |words: &[&str]| told(&probe(&[&APART[..], &up].concat(), words));
    for words in [
        &["connect", "tcp", "192.0.2.1:80", "500"][..],
        &["connect", "udp", "192.0.2.1:53", "500"],
    ] {
        assert_eq!(nothing(words), "refused ENETUNREACH", "{words:?}");
    }
    assert_eq!(
        with_lo(&["connect", "tcp", "127.0.0.1:9", "500"]),
        "refused ECONNREFUSED"
    );
    assert_eq!(with_lo(&["bind", "tcp", "127.0.0.1:80"]), "ok");
    assert_eq!(
        with_lo(&["bind", "udp", "192.0.2.1:80"]),
        "refused EADDRNOTAVAIL"
    );
    assert_eq!(nothing(&["socket", "inet", "stream", "0"]), "ok");
    assert!(nothing(&["resolve", "blocked.example"]).starts_with("refused"));
}

#[test]
fn limits_are_raised_by_nobody_and_lowered_by_everybody() {
    let limited = |before: &[&str], words: &[&str]| {
        told(&probe(
            &[&["prlimit", "--nofile=100", "--nproc=1000"], before].concat(),
            words,
        ))
    };
    assert_eq!(
        limited(&NOBODY, &["limit", "nofile", "raise"]),
        "refused EPERM"
    );
    assert_eq!(limited(&NOBODY, &["limit", "nofile", "lower"]), "ok");
}

#[test]
fn memory_shared_by_key_is_found_where_it_was_made() {
    let script = format!("{PROBE} shm-make 77 && {PROBE} shm-find 77 && {PROBE} shm-remove 77");
    let all = [&APART[..], &["sh", "-c", &script]].concat();
    let output = command(all[0]).args(&all[1..]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let results: Vec<String> = said
        .lines()
        .map(|line| told(&serde_json::from_str(line).unwrap()))
        .collect();
    assert_eq!(results, ["ok", "ok", "ok"], "{said}");
    assert_eq!(as_root(&["shm-find", "77"]), "refused ENOENT");
}

#[test]
fn sockets_without_a_file_are_found_by_name_and_answer() {
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::net::{SocketAddr, UnixListener};
    let name = format!("box-probe-test-{}", std::process::id());
    let at = format!("@{name}");
    assert_eq!(
        told(&probe(&[], &["unix-connect", &at])),
        "refused ECONNREFUSED"
    );
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let listener = UnixListener::bind_addr(&address).unwrap();
    assert_eq!(told(&probe(&[], &["unix-connect", &at])), "ok");
    assert_eq!(as_root(&["unix-connect", &at]), "refused ECONNREFUSED");
    let echo = std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        // The first came from the call before.
        drop(listener.accept().unwrap());
        let (mut stream, _) = listener.accept().unwrap();
        let mut said = [0; 3];
        stream.read_exact(&mut said).unwrap();
        stream.write_all(&said).unwrap();
    });
    let line = probe(&[], &["unix-say", &at, "61ff62", "5000"]);
    assert_eq!(line["detail"], Value::from("back=61ff62"));
    echo.join().unwrap();
}

#[test]
fn a_wrong_call_says_how_and_ends_with_2() {
    for words in [
        &[][..],
        &["no-such"],
        &["open"],
        &["kill", "x", "9"],
        &["reboot", "now"],
    ] {
        let output = command(PROBE).args(words).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(output.stdout.is_empty() && output.stderr.starts_with(b"box-probe: "));
    }
}

#[test]
fn capabilities_are_told_as_they_are() {
    let detail = |before: &[&str]| {
        probe(before, &["capabilities"])["detail"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let nobody = detail(&NOBODY);
    assert!(
        nobody.starts_with("uid=65534 eff=0 prm=0 inh=0 "),
        "{nobody}"
    );
    assert!(nobody.contains(" amb=0 nnp=1 "), "{nobody}");
    let root = detail(&[]);
    assert!(
        root.starts_with("uid=0 ") && !root.contains("eff=0 "),
        "{root}"
    );
}

#[test]
fn spinning_takes_the_time_it_was_told() {
    let line = probe(&[], &["spin", "50"]);
    let detail = line["detail"].as_str().unwrap();
    let wall = detail
        .split("wall=")
        .nth(1)
        .unwrap()
        .trim_end_matches(" ms");
    assert!(wall.parse::<u64>().unwrap() >= 50, "{detail}");
}
