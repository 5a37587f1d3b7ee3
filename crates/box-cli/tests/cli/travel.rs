//! `box export` and `box import`: the file is the caller's, the bytes go through a pipe.

use super::fake_host::{FakeHost, Talk};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;

fn export(snapshots: &str, image: &str) -> Value {
    json!({"verb": "export", "name": "demo", "snapshots": snapshots, "image": image})
}

fn import() -> Value {
    json!({"verb": "import", "name": null, "image": null, "start": true})
}

fn exported() -> Value {
    json!({
        "result": "exported", "name": "demo", "snapshots": 2, "image": true,
        "left_out": ["`box/home/s` is a socket"], "left_out_count": 3,
    })
}

/// Hands out the end to read from, and writes this into the other.
fn write(talk: &mut Talk, archive: &[u8]) {
    let (theirs, mut ours) = std::io::pipe().unwrap();
    talk.streams(&[theirs.into()]);
    ours.write_all(archive).unwrap();
}

fn refused(talk: &mut Talk, title: &str) {
    talk.reply(json!({"reply": "problem", "type": "x", "kind": "failed", "title": title}));
}

fn info(name: &str) -> Value {
    json!({
        "result": "info", "id": "aaaaaaaaaaaaaaaa", "name": name, "title": null, "owner": "uid:0",
        "state": "stopped", "runtime": "native", "image": "default", "profile": "root", "net": "open",
        "limits": {"cpu_milli": 1, "memory_bytes": 1, "pids": 1, "tmp_bytes": 1, "disk_bytes": 1, "open_files": 1},
        "limits_held_by": "nothing", "created_at_ms": 0, "threads": [], "workspace": null, "pid": null,
        "problem": null,
    })
}

#[test]
fn an_exported_box_is_a_file_of_its_owner_only_and_its_nature_is_shouted() {
    let host = FakeHost::new();
    host.on(export("comes", "comes"), |talk| {
        talk.reply(json!({"reply": "progress", "text": "exported 5 MiB"}));
        write(talk, b"archive");
        talk.done(exported());
    });
    let said = host.run(&["export", "demo", "demo.tar.zst"]);
    said.assert_code(0);
    let file = host.folder().join("demo.tar.zst");
    assert_eq!(fs::read(&file).unwrap(), b"archive");
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert_eq!(said.out, "demo.tar.zst\n");
    insta::assert_snapshot!(said.err, @r"
    · exported 5 MiB
    box `demo`, 2 snapshots, its image: in `demo.tar.zst` (7 B)
    left out: `box/home/s` is a socket
    left out: 2 more
    WARNING: keep `demo.tar.zst` safe: it is a credential. Logins, tokens and keys inside the box are in it as they are, and nothing is encrypted: whoever has the file can be you. Keep it as you keep a password.
    ");
}

#[test]
fn a_file_that_is_there_is_replaced_only_when_told() {
    let host = FakeHost::new();
    let file = host.folder().join("there");
    fs::write(&file, "old").unwrap();
    let said = host.run(&["export", "demo", "there"]);
    insta::assert_snapshot!(format!("exit {}\n{}", said.code, said.err), @r"
    exit 1
    error: `there` is there already
    hint: `--force` replaces it
    ");
    host.on(export("stays", "stays"), |talk| {
        write(talk, b"new");
        talk.done(exported());
    });
    let forced = [
        "export",
        "demo",
        "there",
        "--force",
        "--instance-only",
        "--no-image",
    ];
    host.run(&forced).assert_code(0);
    assert_eq!(fs::read(&file).unwrap(), b"new");
    fs::create_dir(host.folder().join("folder")).unwrap();
    host.run(&["export", "demo", "folder", "--force"])
        .assert_code(1);
}

#[test]
fn an_export_that_fails_leaves_no_file() {
    let host = FakeHost::new();
    host.on(export("comes", "comes"), |talk| {
        write(talk, b"half an arch");
        refused(talk, "could not export box `demo`");
    });
    host.on(export("comes", "comes"), |talk| {
        write(talk, b"half an arch");
    });
    let before = || fs::read_dir(host.folder()).unwrap().count();
    let there = before();
    let said = host.run(&["export", "demo", "x"]);
    said.assert_code(1);
    assert!(!said.err.contains("WARNING"), "{said:?}");
    assert_eq!(before(), there);
    host.run(&["export", "demo", "x"]).assert_code(125);
    assert_eq!(before(), there);
}

#[test]
fn the_made_up_name_says_which_box_and_when() {
    let host = FakeHost::new();
    host.on(export("comes", "comes"), |talk| {
        write(talk, b"archive");
        talk.done(exported());
    });
    let said = host.run(&["export", "demo"]);
    said.assert_code(0);
    let name = said.out.trim();
    let stamp = name
        .strip_prefix("demo-")
        .and_then(|rest| rest.strip_suffix(".box.tar.zst"));
    let stamp: Vec<char> = stamp.unwrap_or_else(|| panic!("{name}")).chars().collect();
    assert_eq!((stamp.len(), stamp[8], stamp[15]), (16, 'T', 'Z'), "{name}");
    assert_eq!(fs::read(host.folder().join(name)).unwrap(), b"archive");
}

#[test]
fn a_program_reads_where_the_archive_is() {
    let host = FakeHost::new();
    host.on(export("comes", "comes"), |talk| {
        write(talk, b"archive");
        talk.done(exported());
    });
    let said = host.run(&["export", "demo", "x", "--json"]);
    said.assert_code(0);
    let read: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(
        (&read["file"], &read["bytes"], &read["snapshots"]),
        (&json!("x"), &json!(7), &json!(2))
    );
    assert!(
        said.err.starts_with("WARNING: keep `x` safe"),
        "B30, every time: {said:?}"
    );
}

#[test]
fn an_archive_goes_through_standard_output_and_input() {
    let host = FakeHost::new();
    host.on(export("comes", "comes"), |talk| {
        write(talk, b"archive");
        talk.done(exported());
    });
    let said = host.run(&["export", "demo", "-"]);
    said.assert_code(0);
    assert_eq!(said.out, "archive");
    assert!(said.err.contains("WARNING"), "{said:?}");
    host.on(
        json!({"verb": "import", "name": "other", "image": null, "start": false}),
        |talk| {
            let (mut ours, theirs) = std::io::pipe().unwrap();
            talk.streams(&[theirs.into()]);
            let mut archive = String::new();
            ours.read_to_string(&mut archive).unwrap();
            assert_eq!(archive, "archive");
            talk.done(info("other"));
        },
    );
    let program = host.program(&["import", "-", "--name", "other", "--no-start"]);
    let said = program.input(b"archive").run();
    said.assert_code(0);
    insta::assert_snapshot!(said.err, @r"
    box `other` is stopped (profile root, net open)
    the archive set its limits: 0.001 CPUs, 1 B memory, 1 B disk, 1 processes; `box policy show other` shows what it may reach
    it may use no credential of yours: `box set other credential=default` lets it
    hint: `box shell other` goes in
    WARNING: the archive is still there: it is a credential. Logins, tokens and keys inside the box are in it as they are, and nothing is encrypted: whoever has the file can be you. Keep it as you keep a password.
    ");
}

#[test]
fn a_host_that_has_had_enough_is_not_fed_to_the_end() {
    let host = FakeHost::new();
    let file = host.folder().join("large");
    fs::write(&file, vec![7; 8 << 20]).unwrap();
    host.on(import(), |talk| {
        let (ours, theirs) = std::io::pipe().unwrap();
        talk.streams(&[theirs.into()]);
        drop(ours);
        refused(talk, "there is a box `demo` already");
    });
    let said = host.run(&["import", "large"]);
    insta::assert_snapshot!(format!("exit {}\n{}", said.code, said.err), @r"
    exit 1
    error: there is a box `demo` already
    ");
}

#[test]
fn what_is_no_file_is_told_before_anybody_is_asked() {
    let host = FakeHost::new();
    let said = host.run(&["import", "nosuch"]);
    insta::assert_snapshot!(format!("exit {}\n{}", said.code, said.err), @r"
    exit 1
    error: could not read `nosuch`
    cause: No such file or directory (os error 2)
    ");
    let said = host.run(&["import", "."]);
    insta::assert_snapshot!(format!("exit {}\n{}", said.code, said.err), @r"
    exit 1
    error: `.` is a folder
    hint: name a file that `box export` wrote
    ");
    let said = host.run(&["export", "demo", "-", "--json"]);
    insta::assert_snapshot!(format!("exit {}\n{}", said.code, said.err), @r#"
    exit 2
    {"type":"usage","kind":"usage","title":"standard output cannot have both the archive and JSON"}
    "#);
}
