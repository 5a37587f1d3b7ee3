//! `box up`: what is checked, asked, done and said. Packages are "installed" by a script of the
//! test's own: the PATH leads nowhere else.

use super::fake_host::FakeHost;
use super::person::Person;
use super::program::Program;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// A PATH with these programs and no other; each writes how it was called to `<name>.log`.
fn programs(host: &FakeHost, scripts: &[(&str, &str)]) -> PathBuf {
    let folder = host.folder().join("bin");
    std::fs::create_dir(&folder).unwrap();
    for (name, script) in scripts {
        let file = folder.join(name);
        let log = folder.join(format!("{name}.log"));
        let text = format!("#!/bin/sh\necho \"$@\" >>{}\n{script}\n", log.display());
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    folder
}

fn up(host: &FakeHost, path: &Path, arguments: &[&str]) -> Program {
    let mut program = host.program(&[&["up"], arguments].concat());
    program.command.env("PATH", path);
    program
}

fn expect_everything(host: &FakeHost) {
    let image = json!({
        "result": "image", "image": "default", "digest": "sha256:00", "bytes": 1, "created_at_ms": 0,
    });
    host.done(json!({"verb": "image_prepare", "image": "default"}), image);
    host.done(
        json!({"verb": "agent_prepare", "agent": "demo"}),
        json!({"result": "nothing"}),
    );
    host.on(demo_run(), |talk| {
        talk.begin("demo");
        talk.text(2, "Demo – no model. All done.");
        talk.end(3, "done", None);
    });
}

fn demo_run() -> Value {
    json!({
        "verb": "run", "agent": "demo", "prompt": "Show me what a box can do.", "name": "demo", "repo": null,
        "allow_all": true, "image": null, "profile": "locked", "net": "balanced",
        "limits": {
            "cpu_milli": 2000, "memory_bytes": 4_294_967_296u64, "pids": 512, "tmp_bytes": 536_870_912,
            "disk_bytes": 21_474_836_480u64, "open_files": 65536,
        },
        "settings": {"deadline_ms": null, "freeze_after_ms": null, "nested": false},
    })
}

/// Without times, process ids and the build's path.
fn steady(text: &str) -> String {
    let program = env!("CARGO_BIN_EXE_box");
    let text = text
        .replace(program, "<box>")
        .replace(&std::process::id().to_string(), "<pid>");
    let lines = text.lines().map(|line| match line.rsplit_once(" (") {
        Some((before, took)) if took.ends_with(" s)") => format!("{before} (<time>)"),
        _ => line.trim_end().to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// `up` looks at this machine before it does anything, and for now boxes need root.
fn needs_root() {
    assert!(
        rustix::process::geteuid().is_root(),
        "run this test as root"
    );
}

#[test]
fn a_newcomer_sees_each_step_and_what_to_type_next() {
    needs_root();
    let host = FakeHost::new();
    let path = programs(&host, &[("mmdebstrap", "")]);
    expect_everything(&host);
    let said = up(&host, &path, &[]).run();
    said.assert_code(0);
    assert_eq!(said.out, "> go\n\nDemo – no model. All done.\n");
    let (checks, rest) = said.err.split_once("The host\n").unwrap();
    // What is good is `box doctor`'s to tell.
    let (heading, told) = checks.split_once("This machine").unwrap();
    assert!(heading.contains("a machine of its own"), "{checks}");
    assert!(
        !told.contains("Linux") && !told.contains("mmdebstrap"),
        "{checks}"
    );
    insta::assert_snapshot!(steady(rest), @r#"
    · looking for the host
      ✓ host runs, process <pid> (<time>)
    · preparing the default image
      ✓ image `default` is ready (<time>)
    · preparing the demo agent
      ✓ the demo agent is ready (scripted, no model) (<time>)
    A first turn: agent `demo` in box `demo`
    box `demo`
      ✓ the turn is over (<time>)

    Next
      <box> credential add claude                           lets boxes use your Claude account, and never shows it to them
      <box> run claude "fix the failing test" --repo <URL>  gives it real work
      <box> shell demo                                      looks around in the box
      <box> ui                                              opens the page: a link that pairs one browser
    The host stays up; `<box> serve --stop` stops it, `<box> stop all` stops the boxes.
    "#);
}

#[test]
fn what_is_missing_is_installed_after_a_yes() {
    needs_root();
    let host = FakeHost::new();
    let path = programs(&host, &[("apt-get", "")]);
    let asked = "install it now (`apt-get install mmdebstrap`)? [Y/n] ";
    let mut person = Person::at(&up(&host, &path, &[]));
    person
        .sees("mmdebstrap is missing: it makes the default image")
        .sees(asked)
        .types("n\n");
    person
        .sees("the package `mmdebstrap` is missing")
        .sees("`apt-get install mmdebstrap`, then `box up` again");
    assert_eq!(person.finish(), 125, "{}", person.seen);
    assert!(!path.join("apt-get.log").exists(), "installed after a no");
    expect_everything(&host);
    let link = json!({
        "result": "page_link", "url": "http://localhost:2697", "code": "ccc", "ends_at_ms": 0,
    });
    host.done(json!({"verb": "page", "act": "link"}), link);
    let mut person = Person::at(&up(&host, &path, &[]));
    person
        .sees(asked)
        .types("\n")
        .sees("installing mmdebstrap")
        .sees("All done.")
        .sees("it works once, for ten minutes")
        .sees("http://localhost:2697/pair#ccc");
    assert_eq!(person.finish(), 0, "{}", person.seen);
    let called = std::fs::read_to_string(path.join("apt-get.log")).unwrap();
    insta::assert_snapshot!(called, @"install -y -qq --no-install-recommends -- mmdebstrap");
}

#[test]
fn without_a_terminal_or_with_yes_it_is_installed_and_said() {
    needs_root();
    for arguments in [&[][..], &["--yes"]] {
        let host = FakeHost::new();
        let path = programs(&host, &[("apt-get", "")]);
        expect_everything(&host);
        let said = up(&host, &path, arguments).run();
        said.assert_code(0);
        assert!(said.err.contains("installing mmdebstrap"), "{said:?}");
    }
}

#[test]
fn a_package_that_cannot_be_installed_is_told_with_the_line_to_type() {
    needs_root();
    let host = FakeHost::new();
    let path = programs(&host, &[("apt-get", "echo 'E: no such package'; exit 100")]);
    let said = up(&host, &path, &["--yes"]).run();
    assert_eq!(said.out, "", "what apt-get says is no data");
    let (_, rest) = said.err.split_once("installing").unwrap();
    insta::assert_snapshot!(format!("exit {}\n{rest}", said.code), @r"
    exit 125
     mmdebstrap
    E: no such package
    E: no such package
    error: could not install the package `mmdebstrap`
    cause: apt-get failed; what it said stands above
    hint: `apt-get install mmdebstrap`, then `box up` again
    ");
    let host = FakeHost::new();
    let path = programs(&host, &[]);
    let said = up(&host, &path, &["--yes"]).run();
    let (_, rest) = said.err.split_once("error").unwrap();
    insta::assert_snapshot!(format!("exit {}\nerror{rest}", said.code), @r"
    exit 125
    error: the package `mmdebstrap` is missing
    hint: install it with this system's package manager, then `box up` again
    ");
}

#[test]
fn a_first_turn_that_fails_is_told_apart_from_a_host_that_fails() {
    needs_root();
    let host = FakeHost::new();
    let path = programs(&host, &[("mmdebstrap", "")]);
    let image = json!({
        "result": "image", "image": "default", "digest": "sha256:00", "bytes": 1, "created_at_ms": 0,
    });
    host.done(json!({"verb": "image_prepare", "image": "default"}), image);
    host.done(
        json!({"verb": "agent_prepare", "agent": "demo"}),
        json!({"result": "nothing"}),
    );
    host.on(demo_run(), |talk| {
        talk.begin("demo");
        talk.end(2, "failed", Some("the agent died"));
    });
    let said = up(&host, &path, &[]).run();
    let (_, rest) = said.err.split_once("A first turn").unwrap();
    insta::assert_snapshot!(format!("exit {}\n{}", said.code, steady(rest)), @r"
    exit 1
    : agent `demo` in box `demo`
    box `demo`
    ■ the turn failed: the agent died
    the host runs, but the first turn ended with code 1
    hint: `box attach demo` shows it, `box up` tries again
    ");
}

#[test]
fn a_store_is_not_made_below_a_host_that_runs() {
    needs_root();
    let host = FakeHost::new();
    let path = programs(&host, &[("mmdebstrap", "")]);
    let said = up(&host, &path, &["--store", "xfs"]).run();
    said.assert_code(2);
    assert!(
        said.err.contains("`btrfs`, `btrfs=20G` or `plain`"),
        "{}",
        said.err
    );
    let said = up(&host, &path, &["--store", "btrfs=20G"]).run();
    said.assert_code(1);
    let (_, rest) = said.err.split_once("error:").unwrap();
    insta::assert_snapshot!(steady(rest.trim()), @r"
    a store is made while no host runs
    cause: a host runs here: process <pid>
    hint: `box serve --stop`, then this again
    ");
}
