//! The host is found, and its build and protocol are looked at before anything is asked.

use super::fake_host::{Face, FakeHost};
use super::program::Program;
use box_api::PROTOCOL;
use box_api::control::{Defaults, Welcome};
use serde_json::json;
use std::os::unix::net::UnixListener;

fn face() -> Face {
    Face {
        build: None,
        protocol: PROTOCOL,
        data_dir: "/data".to_owned(),
    }
}

#[test]
fn a_host_of_another_build_is_worked_with_and_told() {
    let host = FakeHost::with(Face {
        build: Some("0.0.9+old".to_owned()),
        ..face()
    });
    host.done(
        json!({"verb": "list"}),
        json!({"result": "boxes", "boxes": []}),
    );
    insta::assert_snapshot!(host.run(&["list"]).whole(), @r"
    exit 0
    --- err
    the host is another build (0.0.9+old); `box up` replaces it, boxes and turns go on
    no boxes yet; `box new demo` makes one
    ");
    host.done(
        json!({"verb": "list"}),
        json!({"result": "boxes", "boxes": []}),
    );
    assert_eq!(
        host.run(&["list", "--json"]).whole(),
        "exit 0\n--- out\n[]\n"
    );
}

#[test]
fn a_host_of_another_protocol_is_refused_with_the_line_that_replaces_it() {
    let host = FakeHost::with(Face {
        build: Some("9.0.0+new".to_owned()),
        protocol: 7,
        ..face()
    });
    insta::assert_snapshot!(host.run(&["list"]).whole(), @r"
    exit 125
    --- err
    error: the host speaks protocol 7, this `box` speaks 1
    hint: `box up` replaces the host; boxes and turns go on
    ");
}

#[test]
fn a_host_of_another_data_folder_answers_for_nobody() {
    let host = FakeHost::with(Face {
        data_dir: "/elsewhere".to_owned(),
        ..face()
    });
    let mut program = host.program(&["list"]);
    program.command.env("BOX_DATA_DIR", "/data");
    insta::assert_snapshot!(program.run().whole(), @r"
    exit 2
    --- err
    error: the host here uses the data folder `/elsewhere`
    cause: `BOX_DATA_DIR` says `/data`
    hint: set `BOX_RUN_DIR` as well, so that the two hosts do not meet
    ");
}

#[test]
fn a_second_host_is_refused_by_name_of_the_first() {
    let host = FakeHost::new();
    let said = host
        .run(&["serve"])
        .whole()
        .replace(&std::process::id().to_string(), "<pid>");
    insta::assert_snapshot!(said, @r"
    exit 1
    --- err
    error: a host runs here already: process <pid>
    hint: `box serve --stop` stops it
    ");
}

#[test]
fn a_host_that_talks_nonsense_is_told() {
    let host = FakeHost::new();
    host.on(json!({"verb": "list"}), super::fake_host::Talk::garbage);
    insta::assert_snapshot!(host.run(&["list"]).whole(), @r"
    exit 125
    --- err
    error: the host sent something this `box` does not understand
    cause: key must be a string at line 1 column 2
    ");
    host.done(json!({"verb": "list"}), json!({"result": "nothing"}));
    insta::assert_snapshot!(host.run(&["list"]).whole(), @r"
    exit 125
    --- err
    error: the host answered something else than was asked
    cause: Nothing
    hint: `box up` replaces a host of another build
    ");
    host.on(json!({"verb": "list"}), |_| {});
    insta::assert_snapshot!(host.run(&["list"]).whole(), @r"
    exit 125
    --- err
    error: the host closed the connection
    hint: type it again; boxes and their agents went on
    ");
}

#[test]
fn a_run_folder_others_can_write_to_is_not_trusted() {
    use std::os::unix::fs::PermissionsExt as _;
    let host = FakeHost::new();
    let run = host.folder().join("run");
    std::fs::set_permissions(&run, std::fs::Permissions::from_mode(0o777)).unwrap();
    let said = host
        .run(&["list"])
        .whole()
        .replace(&run.display().to_string(), "<run>");
    insta::assert_snapshot!(said, @r"
    exit 125
    --- err
    error: will not talk to the host in `<run>`
    cause: other users can write to the folder
    hint: remove the folder, or set `BOX_RUN_DIR` to one of your own
    ");
}

#[test]
fn a_host_that_turns_us_away_is_heard() {
    use std::io::Write as _;
    let folder = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(folder.path().join("control.sock")).unwrap();
    // As the real door does to another user: it greets, says why, and hangs up without listening.
    let host = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let welcome = serde_json::to_vec(&Welcome {
            build: "another".to_owned(),
            protocol: PROTOCOL,
            pid: 1,
            data_dir: "/data".to_owned(),
            started_at_ms: 0,
            defaults: Defaults::default(),
        });
        let problem = json!({
            "reply": "problem", "type": "foreign-user", "kind": "refused",
            "title": "this host serves others",
        });
        for frame in [welcome.unwrap(), problem.to_string().into_bytes()] {
            let length = u32::try_from(frame.len()).unwrap().to_le_bytes();
            stream
                .write_all(&[&length, frame.as_slice()].concat())
                .unwrap();
        }
    });
    let mut program = Program::new(&["list"]);
    program.command.env("BOX_RUN_DIR", folder.path());
    let said = program.run();
    said.assert_code(3);
    assert!(
        said.err.ends_with("error: this host serves others\n"),
        "{}",
        said.err
    );
    host.join().unwrap();
}
