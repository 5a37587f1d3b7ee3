//! `box cp`, `diff`, `ps`, `kill`, `expose`, `exec --detach` and `logs` against a host of the
//! test's own: what is asked of it, and what a box that lies can do to its owner's side.

use super::fake_host::{FakeHost, Talk};
use super::person::Person;
use serde_json::{Value, json};
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt as _, symlink};

const TOOL: &str = "/opt/box/bin/box-tool";

fn exec(command: &[&str]) -> Value {
    json!({"verb": "exec", "name": "demo", "command": command, "cwd": null, "env": [], "terminal": null})
}

/// Plays a program in the box: takes its input, gives what it prints, ends.
fn plays(talk: &mut Talk, out: &[u8], err: &[u8], code: i32) -> Vec<u8> {
    let (mut input, their_input) = std::io::pipe().unwrap();
    let (their_output, mut output) = std::io::pipe().unwrap();
    let (their_errors, mut errors) = std::io::pipe().unwrap();
    let streams: [OwnedFd; 3] = [their_input.into(), their_output.into(), their_errors.into()];
    talk.streams(&streams);
    drop(streams);
    errors.write_all(err).unwrap();
    drop(errors);
    let out = out.to_vec();
    // Whoever has enough may stop reading.
    let print = std::thread::spawn(move || drop(output.write_all(&out)));
    let mut taken = Vec::new();
    input.read_to_end(&mut taken).unwrap();
    print.join().unwrap();
    talk.done(json!({"result": "exit", "code": code}));
    taken
}

/// One entry of a tar, as wrong as it likes.
fn entry(kind: u8, name: &str, link: &str, content: &[u8], mode: u32) -> Vec<u8> {
    let mut header = [0_u8; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[100..108].copy_from_slice(format!("{mode:07o}\0").as_bytes());
    header[108..116].copy_from_slice(b"0000000\0");
    header[116..124].copy_from_slice(b"0000000\0");
    header[124..136].copy_from_slice(format!("{:011o}\0", content.len()).as_bytes());
    header[136..148].copy_from_slice(b"00000000000\0");
    header[148..156].copy_from_slice(b"        ");
    header[156] = kind;
    header[157..157 + link.len()].copy_from_slice(link.as_bytes());
    header[257..263].copy_from_slice(b"ustar\0");
    header[263..265].copy_from_slice(b"00");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut bytes = header.to_vec();
    bytes.extend(content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

fn file(name: &str, content: &[u8]) -> Vec<u8> {
    entry(b'0', name, "", content, 0o644)
}

/// What a box sends as a folder or a file.
fn stream(kind: u8, entries: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend(entries.concat());
    bytes.extend([0; 1024]);
    bytes
}

#[test]
fn a_copy_out_asks_the_tool_and_puts_what_it_sends() {
    let host = FakeHost::new();
    let sent = stream(
        b'd',
        &[entry(b'5', "./", "", b"", 0o777), file("a.txt", b"hello")],
    );
    host.on(exec(&[TOOL, "pack", "dist"]), move |talk| {
        drop(plays(talk, &sent, b"", 0));
    });
    let said = host.run(&["cp", "demo:dist", "out"]);
    assert_eq!(said.err, "copied 1 entry (5 B) to `out`\n");
    let text = fs::read_to_string(host.folder().join("out/a.txt")).unwrap();
    assert_eq!(text, "hello");
}

#[test]
fn a_box_that_lies_writes_nothing_outside_of_where_it_was_asked_to() {
    let place = tempfile::tempdir().unwrap();
    let outside = place.path().join("outside");
    fs::create_dir(&outside).unwrap();
    let outside_text = outside.to_str().unwrap().to_owned();
    let lies: [(&str, Vec<u8>); 9] = [
        ("up", stream(b'd', &[file("../evil", b"x")])),
        (
            "absolute",
            stream(b'd', &[file(&format!("{outside_text}/evil"), b"x")]),
        ),
        (
            "through a link",
            stream(
                b'd',
                &[entry(b'2', "l", "sub", b"", 0o777), file("l/evil", b"x")],
            ),
        ),
        (
            "device",
            stream(b'd', &[entry(b'3', "null", "", b"", 0o666)]),
        ),
        ("pipe", stream(b'd', &[entry(b'6', "pipe", "", b"", 0o666)])),
        (
            "hard link",
            stream(b'd', &[entry(b'1', "h", "mine", b"", 0o644)]),
        ),
        (
            "a link for a file",
            stream(b'f', &[entry(b'2', "file", "/etc/passwd", b"", 0o777)]),
        ),
        ("another name", stream(b'f', &[file(".bashrc", b"evil")])),
        ("no copy", b"\x1b]0;owned\x07".to_vec()),
    ];
    for (what, sent) in lies {
        let host = FakeHost::new();
        let here = host.folder().join("here");
        fs::create_dir(&here).unwrap();
        fs::write(here.join("mine"), "mine").unwrap();
        host.on(exec(&[TOOL, "pack", "x"]), move |talk| {
            drop(plays(talk, &sent, b"\x1b[31mred\n", 1));
        });
        let said = host.run(&["cp", "demo:x", "here"]);
        said.assert_code(1);
        assert!(!said.err.contains('\u{1b}'), "{what}: {said:?}");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "{what}");
        assert_eq!(
            fs::read_to_string(here.join("mine")).unwrap(),
            "mine",
            "{what}"
        );
        for name in ["evil", ".bashrc", "x/null", "x/pipe", "x/h", ".box-cp"] {
            assert!(
                fs::symlink_metadata(here.join(name)).is_err(),
                "{what} left `{name}`"
            );
        }
        assert!(!host.folder().join("evil").exists(), "{what}");
        assert!(!here.join("x").is_symlink(), "{what}");
    }
}

#[test]
fn what_an_earlier_copy_left_is_not_followed_by_the_next() {
    let host = FakeHost::new();
    let victim = host.folder().join("victim");
    fs::create_dir(&victim).unwrap();
    fs::write(victim.join("file"), "mine").unwrap();
    let here = host.folder().join("here");
    fs::create_dir(&here).unwrap();
    // As if a box had planted them.
    symlink(&victim, here.join("folder")).unwrap();
    symlink(victim.join("file"), here.join("file")).unwrap();
    let folder = stream(b'd', &[file("evil", b"x")]);
    host.on(exec(&[TOOL, "pack", "folder"]), move |talk| {
        drop(plays(talk, &folder, b"", 0));
    });
    host.run(&["cp", "demo:folder", "here"]).assert_code(1);
    assert!(!victim.join("evil").exists());
    let text = stream(b'f', &[file("file", b"theirs")]);
    host.on(exec(&[TOOL, "pack", "file"]), move |talk| {
        drop(plays(talk, &text, b"", 0));
    });
    host.run(&["cp", "demo:file", "here"]).assert_code(0);
    assert_eq!(fs::read_to_string(victim.join("file")).unwrap(), "mine");
    assert_eq!(fs::read_to_string(here.join("file")).unwrap(), "theirs");
}

#[test]
fn nothing_that_comes_runs_as_somebody_else() {
    let host = FakeHost::new();
    let sent = stream(b'd', &[entry(b'0', "tool", "", b"x", 0o6777)]);
    host.on(exec(&[TOOL, "pack", "x"]), move |talk| {
        drop(plays(talk, &sent, b"", 0));
    });
    host.run(&["cp", "demo:x", "out"]).assert_code(0);
    let mode = fs::metadata(host.folder().join("out/tool")).unwrap().mode();
    assert_eq!(mode & 0o7777, 0o755);
}

#[test]
fn a_copy_that_ends_in_the_middle_says_why() {
    let host = FakeHost::new();
    let mut cut = stream(b'd', &[file("a", &[b'x'; 4000])]);
    cut.truncate(2000);
    host.on(exec(&[TOOL, "pack", "x"]), move |talk| {
        drop(plays(
            talk,
            &cut,
            b"box-tool: could not read `x/a`: it burns\n",
            1,
        ));
    });
    insta::assert_snapshot!(host.run(&["cp", "demo:x", "out"]).whole(), @r"
    exit 1
    --- err
    error: could not copy `x` of box `demo`
    cause: could not read `x/a`: it burns
    ");
}

#[test]
fn a_copy_in_sends_a_tar_and_passes_on_what_the_box_says() {
    let host = FakeHost::new();
    fs::create_dir(host.folder().join("src")).unwrap();
    fs::write(host.folder().join("src/a"), "hello").unwrap();
    host.on(exec(&[TOOL, "unpack", "docs/", "src"]), |talk| {
        let taken = plays(talk, b"", b"", 0);
        assert_eq!(taken[0], b'd');
        let text = String::from_utf8_lossy(&taken);
        assert!(text.contains("ustar") && text.contains("hello"));
    });
    host.run(&["cp", "src", "demo:docs/"]).assert_code(0);
    host.on(exec(&[TOOL, "unpack", ".", "src", "--content"]), |talk| {
        drop(plays(
            talk,
            b"",
            b"box-tool: could not write `a`: no room\n",
            1,
        ));
    });
    insta::assert_snapshot!(host.run(&["cp", "src/.", "demo:"]).whole(), @r"
    exit 1
    --- err
    error: could not copy to `.` in box `demo`
    cause: could not write `a`: no room
    ");
    insta::assert_snapshot!(host.run(&["cp", "none", "demo:"]).whole(), @r"
    exit 1
    --- err
    error: could not read `none`
    cause: No such file or directory (os error 2)
    ");
    insta::assert_snapshot!(host.run(&["cp", "a", "b"]).whole(), @r"
    exit 2
    --- err
    error: neither side is in a box
    hint: a path of a box is written `<box>:<path>`
    ");
    insta::assert_snapshot!(host.run(&["cp", "one:a", "two:b"]).whole(), @r"
    exit 2
    --- err
    error: both sides are in a box
    hint: copy out first, then in
    ");
}

#[test]
fn a_stopped_box_is_started_and_one_of_an_old_build_is_told() {
    let host = FakeHost::new();
    let stopped =
        json!({"type": "not-running", "kind": "failed", "title": "box `demo` is stopped"});
    let sent = stream(b'f', &[file("file", b"x")]);
    host.problem(exec(&[TOOL, "pack", "x"]), stopped)
        .done(
            json!({"verb": "start", "name": "demo"}),
            json!({"result": "nothing"}),
        )
        .on(exec(&[TOOL, "pack", "x"]), move |talk| {
            drop(plays(talk, &sent, b"", 0));
        });
    let said = host.run(&["cp", "demo:x", "x"]);
    said.assert_code(0);
    assert!(
        said.err.starts_with("box `demo` is stopped: starting it\n"),
        "{said:?}"
    );
    host.on(exec(&[TOOL, "pack", "x"]), |talk| {
        drop(plays(talk, b"", b"", 127));
    });
    insta::assert_snapshot!(host.run(&["cp", "demo:x", "x"]).whole(), @r"
    exit 1
    --- err
    error: box `demo` was started by an earlier build of `box`
    hint: start it anew: `box stop demo`, then `box start demo`
    ");
}

#[test]
fn a_detached_command_is_named_and_left() {
    let host = FakeHost::new();
    let mut command = exec(&["python3", "-m", "http.server"]);
    command.as_object_mut().unwrap().remove("verb");
    let process = json!({
        "result": "process", "process": "server", "kind": "detached", "state": {"is": "running"},
        "pid": 7, "command": ["python3"], "started_at_ms": 0, "ended_at_ms": null,
    });
    host.done(
        json!({"verb": "spawn", "process": "server", "exec": command}),
        process,
    );
    let words = [
        "exec",
        "--detach",
        "--name",
        "server",
        "demo",
        "--",
        "python3",
        "-m",
        "http.server",
    ];
    insta::assert_snapshot!(host.run(&words).whole(), @r"
    exit 0
    --- out
    server
    --- err
    hint: `box logs -f demo server` follows it, `box kill demo server` ends it
    ");
}

#[test]
fn processes_are_shown_without_what_could_steer_a_terminal() {
    let host = FakeHost::new();
    let one = |process: &str, kind: &str, state: Value, command: &[&str]| {
        json!({
            "process": process, "kind": kind, "state": state, "pid": 7, "command": command,
            "started_at_ms": 4_102_444_800_000_i64, "ended_at_ms": null,
        })
    };
    let processes = json!([
        one(
            "server",
            "detached",
            json!({"is": "running"}),
            &["sh", "-c", "echo \u{1b}[31m\nred"]
        ),
        one(
            "job",
            "detached",
            json!({"is": "ended", "code": 3}),
            &["job"]
        ),
        one(
            "claude-1",
            "agent",
            json!({"is": "ended", "code": null}),
            &[]
        ),
    ]);
    let asked = json!({"verb": "processes", "name": "demo"});
    host.done(
        asked,
        json!({"result": "processes", "processes": processes, "inside": 9}),
    );
    insta::assert_snapshot!(host.run(&["ps", "demo"]).whole(), @r"
    exit 0
    --- out
    PROCESS   STATE               PID  SINCE  COMMAND
    server    running             7    0s     sh -c echo ^[[31m red
    job       ended, code 3       7    0s     job
    claude-1  ended with its box  7    0s     (an agent)
    --- err
    9 run inside in all; `box ps demo --all` lists them
    ");
    host.on(exec(&[TOOL, "ps"]), |talk| {
        let lines =
            "{\"pid\":1,\"parent\":0,\"state\":\"S\",\"command\":\"\\u001b[31mred\"}\nnot json\n";
        drop(plays(talk, lines.as_bytes(), b"", 0));
    });
    insta::assert_snapshot!(host.run(&["ps", "demo", "--all"]).whole(), @r"
    exit 0
    --- out
    PID  PARENT  STATE  COMMAND
    1    0       S      ^[[31mred
    ");
}

#[test]
fn a_process_is_asked_killed_or_signalled() {
    let host = FakeHost::new();
    let kill = |how: Value| json!({"verb": "kill_process", "name": "demo", "process": "server", "how": how});
    host.done(kill(json!("ask")), json!({"result": "nothing"}))
        .done(kill(json!("now")), json!({"result": "nothing"}))
        .done(kill(json!({"signal": 1})), json!({"result": "nothing"}));
    let said = host.run(&["kill", "demo", "server"]);
    assert_eq!(said.err, "process `server` has ended\n");
    host.run(&["kill", "demo", "server", "--now"])
        .assert_code(0);
    let said = host.run(&["kill", "demo", "server", "--signal", "SIGHUP"]);
    assert_eq!(said.err, "process `server` got signal 1\n");
    host.run(&["kill", "demo", "server", "--signal", "WAT"])
        .assert_code(2);
}

#[test]
fn ports_are_shown_listed_and_taken_away() {
    let host = FakeHost::new();
    let expose = json!({"verb": "expose", "name": "demo", "port": 3000, "host_port": null});
    let port = |problem: Value| json!({"name": "demo", "port": 3000, "host_port": 8080, "problem": problem});
    host.done(
        expose,
        json!({"result": "exposed", "ports": [port(Value::Null)]}),
    );
    insta::assert_snapshot!(host.run(&["expose", "demo", "3000"]).whole(), @r"
    exit 0
    --- out
    127.0.0.1:8080
    --- err
    port 3000 of box `demo` is there for every program of this machine
    ");
    let list = json!({"verb": "exposed_list", "name": null});
    host.done(
        list,
        json!({"result": "exposed", "ports": [port(json!("taken"))]}),
    );
    insta::assert_snapshot!(host.run(&["expose", "--list"]).whole(), @r"
    exit 0
    --- out
    BOX   PORT  HERE
    demo  3000  127.0.0.1:8080  taken
    ");
    let remove = json!({"verb": "exposed_remove", "name": "demo", "port": 3000});
    host.done(remove, json!({"result": "nothing"}));
    host.run(&["expose", "--remove", "demo", "3000"])
        .assert_code(0);
    insta::assert_snapshot!(host.run(&["expose", "demo"]).whole(), @r"
    exit 2
    --- err
    error: `PORT` is missing
    hint: `box expose <NAME> <PORT> [HOST-PORT]`
    ");
    host.run(&["expose", "demo", "70000"]).assert_code(2);
}

#[test]
fn a_diff_is_shown_without_what_could_steer_a_terminal_and_whole_to_a_file() {
    let host = FakeHost::new();
    let diff = b"diff --git a/x b/x\n-one\n+\x1b]0;owned\x07two\n";
    let asked = json!({"verb": "exec", "name": "demo"});
    host.on_part(asked.clone(), |talk| drop(plays(talk, diff, b"", 0)));
    let said = host.run(&["diff", "demo"]);
    said.assert_code(0);
    assert_eq!(said.out.as_bytes(), diff);
    host.on_part(asked.clone(), |talk| drop(plays(talk, diff, b"", 0)));
    let mut person = Person::at(&host.program(&["diff", "demo"]));
    person.sees("^[]0;owned^Gtwo");
    assert_eq!(person.finish(), 0);
    host.on_part(asked, |talk| drop(plays(talk, b"", b"", 64)));
    insta::assert_snapshot!(host.run(&["diff", "demo"]).whole(), @r"
    exit 1
    --- err
    error: nothing was brought into box `demo` to compare with
    hint: `--here` and `--repo` bring something when a box is made
    ");
}

#[test]
fn logs_pass_on_where_the_conversation_is() {
    let host = FakeHost::new();
    let asked = json!({"verb": "logs", "name": "demo", "process": null, "follow": false});
    host.on(asked, |talk| {
        talk.reply(json!({"reply": "output", "base64": "aGkK"}));
        talk.reply(
            json!({"reply": "note", "text": "what the agent said and did is in `box attach demo`"}),
        );
        talk.done(json!({"result": "nothing"}));
    });
    insta::assert_snapshot!(host.run(&["logs", "demo"]).whole(), @r"
    exit 0
    --- out
    hi
    --- err
    what the agent said and did is in `box attach demo`
    ");
}

#[test]
fn a_verb_with_a_slip_is_recognised() {
    let host = FakeHost::new();
    for (typed, meant) in [
        ("nwe", "new"),
        ("lgos", "logs"),
        ("sehll", "shell"),
        ("pll", "pull"),
        ("downn", "down"),
    ] {
        let said = host.run(&[typed, "demo"]);
        said.assert_code(2);
        assert_eq!(
            said.err,
            format!("error: there is no verb `{typed}`\nhint: did you mean `{meant}`?\n")
        );
    }
    let said = host.run(&["frobnicate"]);
    assert!(
        said.err.ends_with("hint: `box --help` lists the verbs\n"),
        "{said:?}"
    );
}
