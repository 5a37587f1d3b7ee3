//! A credential goes from standard input to the host and nowhere else.

use super::fake_host::FakeHost;
use super::person::Person;
use super::program::Program;
use serde_json::{Value, json};

const SECRET: &str = "sk-ant-oat01-not-a-real-one";

fn add(name: &str) -> Value {
    json!({"verb": "credential_add", "kind": "claude", "name": name, "secret": SECRET})
}

#[test]
fn a_credential_is_read_from_standard_input() {
    let host = FakeHost::new();
    host.done(add("work"), json!({"result": "nothing"}));
    let program = host.program(&["credential", "add", "claude", "--name", "work"]);
    let said = program.input(format!("{SECRET}\n").as_bytes()).run();
    insta::assert_snapshot!(said.whole(), @r"
    exit 0
    --- err
    credential `work` for `claude` is added; boxes only ever see a placeholder
    ");
}

#[test]
fn a_credential_typed_at_a_terminal_is_not_shown() {
    let host = FakeHost::new();
    host.done(add("default"), json!({"result": "nothing"}));
    let mut person = Person::at(&host.program(&["credential", "add", "claude"]));
    person.sees("credential for `claude` (not shown): ");
    person.types(&format!("{SECRET}\n")).sees("is added");
    assert_eq!(person.finish(), 0);
    assert!(!person.seen.contains(SECRET), "{}", person.seen);
    assert!(person.terminal_is_as_before());
}

#[test]
fn a_credential_on_the_command_line_is_refused_and_not_repeated() {
    for arguments in [
        &["credential", "add", "claude", SECRET][..],
        &["credential", "add", "claude", "--", SECRET],
        &["credential", "add", "claude", "--name", "x", SECRET, SECRET],
    ] {
        let said = Program::new(arguments).run();
        assert!(!said.err.contains(SECRET), "{said:?}");
        said.assert_code(2);
    }
    insta::assert_snapshot!(Program::new(&["credential", "add", "claude", SECRET]).run().whole(), @r"
    exit 2
    --- err
    error: a credential is never given on the command line
    cause: other users can see it there, and the shell keeps it in its history
    hint: withdraw that one, then give a new one to `box credential add <KIND>` when it asks
    ");
}

#[test]
fn no_credential_at_all_is_told() {
    let host = FakeHost::new();
    insta::assert_snapshot!(host.run(&["credential", "add", "claude"]).whole(), @r"
    exit 2
    --- err
    error: no credential was given
    hint: paste it when asked, or `box credential add claude < <file>`
    ");
    let long = vec![b'x'; (64 << 10) + 1];
    let said = host
        .program(&["credential", "add", "claude"])
        .input(&long)
        .run();
    insta::assert_snapshot!(said.whole(), @r"
    exit 2
    --- err
    error: a credential has at most 65536 bytes
    ");
}

#[test]
fn what_the_host_refuses_does_not_show_the_credential() {
    let host = FakeHost::new();
    host.problem(add("default"), json!({
        "type": "credential-form", "kind": "usage", "title": "that is no credential for `claude`",
        "hint": "`claude setup-token` prints one",
    }));
    let said = host
        .program(&["credential", "add", "claude"])
        .input(SECRET.as_bytes())
        .run();
    insta::assert_snapshot!(said.whole(), @r"
    exit 2
    --- err
    error: that is no credential for `claude`
    hint: `claude setup-token` prints one
    ");
}

#[test]
fn a_secret_comes_from_a_variable_or_a_file_and_a_command_goes_as_it_is() {
    let host = FakeHost::new();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    std::fs::write(&path, format!("{SECRET}\n")).unwrap();
    let add = |source: Value, secret: &str| {
        json!({
            "verb": "credential_add", "kind": "claude", "name": "default", "secret": secret,
            "source": source,
        })
    };
    host.done(
        add(json!({"from": "env", "name": "MY_TOKEN"}), SECRET),
        json!({"result": "nothing"}),
    );
    let mut program = host.program(&["credential", "add", "claude", "--env", "MY_TOKEN"]);
    program.command.env("MY_TOKEN", SECRET);
    program.run().assert_code(0);

    let file = path.display().to_string();
    host.done(
        add(json!({"from": "file", "path": file}), SECRET),
        json!({"result": "nothing"}),
    );
    let said = host.run(&["credential", "add", "claude", "--file", &file]);
    said.assert_code(0);
    assert!(said.err.contains("others may read"), "{said:?}");

    let source = json!({"from": "command", "command": "gh auth token", "every_ms": 3_000_000});
    host.done(add(source, ""), json!({"result": "nothing"}));
    let arguments = [
        "credential",
        "add",
        "claude",
        "--command",
        "gh auth token",
        "--every",
        "50m",
    ];
    host.run(&arguments).assert_code(0);

    let both = host.run(&["credential", "add", "claude", "--env", "A", "--file", "b"]);
    both.assert_code(2);
    let none = host.run(&["credential", "add", "claude", "--env", "NOT_THERE"]);
    none.assert_code(2);
}
