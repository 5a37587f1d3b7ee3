//! The whole of it goes: boxes that run, their files, the host, the way out, the program.

use super::host::TestHost;
use super::program::Program;
use std::fs;
use std::path::Path;

fn installed(host: &TestHost, prefix: &Path, arguments: &[&str]) -> Program {
    let place = ["--prefix", prefix.to_str().unwrap()];
    host.program(&[arguments, &place].concat())
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.collect()
}

/// Whether a process runs; one that has ended may wait a while to be collected.
fn runs(pid: u32) -> bool {
    let about = fs::read_to_string(format!("/proc/{pid}/status"));
    about.is_ok_and(|about| !about.contains("State:\tZ"))
}

#[test]
fn nothing_of_a_host_with_boxes_is_left() {
    let host = TestHost::new();
    let prefix = host.home().join("prefix");
    installed(&host, &prefix, &["install"]).run().assert_code(0);
    host.ok(&["new", "one", "--profile", "root"]);
    host.ok(&["new", "two"]);
    host.ok(&["snapshot", "one"]);
    host.ok(&["rm", "two", "--force"]);
    let [one, pid] = [host.info("one").pid.unwrap(), host.pid()];
    // Without a terminal it wants to be told, and touches nothing before.
    let said = installed(&host, &prefix, &["uninstall"]).run();
    said.assert_code(2);
    assert!(said.err.contains("with the boxes `one`"), "{said}");
    host.ok(&["exec", "one", "--", "true"]);
    let said = installed(&host, &prefix, &["uninstall", "--force"]).run();
    said.assert_code(0);
    for gone in [one, pid] {
        assert!(!runs(gone), "process {gone}");
    }
    for folder in [host.data(), &host.run_dir(), &prefix] {
        assert!(
            !folder.exists(),
            "{}: {:?}",
            folder.display(),
            entries(folder)
        );
    }
    assert!(!host.home().parent().unwrap().join("config.toml").exists());
    // `TestHost` looks for what is left as it goes; it needs its folder for that.
    fs::create_dir(host.data()).unwrap();
}

#[test]
fn data_that_is_to_be_kept_is_kept() {
    let host = TestHost::new();
    let prefix = host.home().join("prefix");
    installed(&host, &prefix, &["install"]).run().assert_code(0);
    host.ok(&["new", "one"]);
    host.shell("one", "echo kept > /workspace/file")
        .assert_code(0);
    let said = installed(&host, &prefix, &["uninstall", "--force", "--keep-data"]).run();
    said.assert_code(0);
    assert!(!prefix.exists() && !host.run_dir().join("control.sock").exists());
    host.ok(&["start", "one"]);
    assert_eq!(host.shell("one", "cat /workspace/file").out, "kept\n");
}

#[test]
fn a_stop_of_everything_leaves_no_process() {
    let host = TestHost::new();
    host.ok(&["new", "one"]);
    host.program(&["credential", "add", "claude"])
        .input(b"sk-ant-oat01-made-up-for-this-test-only-0123456789AA")
        .run()
        .assert_code(0);
    let [one, pid] = [host.info("one").pid.unwrap(), host.pid()];
    let said = host.run(&["serve", "--stop", "--all"]);
    said.assert_code(2);
    assert!(
        said.err.contains("forgets the credentials `default`"),
        "{said}"
    );
    let said = host.run(&["serve", "--stop", "--all", "--force"]);
    said.assert_code(0);
    for gone in [one, pid] {
        assert!(!runs(gone), "process {gone}");
    }
    assert!(std::os::unix::net::UnixStream::connect(host.run_dir().join("control.sock")).is_err());
    // Nothing runs: there is nothing left to end, and that is no failure.
    host.run(&["serve", "--stop", "--all", "--force"])
        .assert_code(0);
    // The credential was in the memory of the way out alone.
    let list = host.ok(&["credential", "list", "--json"]);
    assert!(list.contains("\"lost\":true"), "{list}");
}
