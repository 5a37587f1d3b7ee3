//! `box exec` and `box shell`: bytes, signals and codes between us and a command.

use super::fake_host::{FakeHost, Talk};
use super::person::Person;
use rustix::process::Signal;
use rustix::termios::tcgetwinsize;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};

fn request(command: &[&str]) -> Value {
    json!({"verb": "exec", "name": "demo", "command": command, "cwd": null, "env": [], "terminal": null})
}

/// The command's ends of its three streams.
struct Command {
    input: PipeReader,
    output: PipeWriter,
    errors: PipeWriter,
}

/// Hands the streams over and plays the command.
fn command(talk: &mut Talk) -> Command {
    let (input, their_input) = std::io::pipe().unwrap();
    let (their_output, output) = std::io::pipe().unwrap();
    let (their_errors, errors) = std::io::pipe().unwrap();
    let streams: [OwnedFd; 3] = [their_input.into(), their_output.into(), their_errors.into()];
    talk.streams(&streams);
    Command {
        input,
        output,
        errors,
    }
}

fn exit(talk: &mut Talk, code: i32) {
    talk.done(json!({"result": "exit", "code": code}));
}

/// Hands a terminal over; the value is the command's side.
fn terminal(talk: &mut Talk) -> File {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let path = ptsname(&master, Vec::new()).unwrap();
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY;
    let side = rustix::fs::open(&*path, flags, rustix::fs::Mode::empty()).unwrap();
    talk.streams(&[master]);
    File::from(side)
}

#[test]
fn the_exit_code_is_the_commands() {
    for (code, expected) in [
        (0, 0),
        (3, 3),
        (126, 126),
        (127, 127),
        (137, 137),
        (255, 255),
    ] {
        let host = FakeHost::new();
        host.on(request(&["true"]), move |talk| {
            drop(command(talk));
            exit(talk, code);
        });
        host.run(&["exec", "demo", "--", "true"])
            .assert_code(expected);
    }
}

#[test]
fn bytes_go_both_ways_and_the_streams_stay_apart() {
    let host = FakeHost::new();
    host.on(request(&["cat", "-n"]), |talk| {
        let mut command = command(talk);
        let mut text = String::new();
        // Ends when standard input ends.
        command.input.read_to_string(&mut text).unwrap();
        command
            .output
            .write_all(text.to_uppercase().as_bytes())
            .unwrap();
        command.errors.write_all(b"done\n").unwrap();
        drop(command);
        exit(talk, 0);
    });
    let said = host
        .program(&["exec", "demo", "cat", "-n"])
        .input(b"hello\n")
        .run();
    assert_eq!(
        (said.code, said.out.as_str(), said.err.as_str()),
        (0, "HELLO\n", "done\n")
    );
}

#[test]
fn ten_megabytes_arrive_whole() {
    const BYTES: usize = 10 << 20;
    let host = FakeHost::new();
    host.on(request(&["cat"]), |talk| {
        let mut command = command(talk);
        let mut bytes = Vec::new();
        command.input.read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes.len(), BYTES);
        command.output.write_all(&bytes).unwrap();
        drop(command);
        exit(talk, 0);
    });
    let input: Vec<u8> = (0..BYTES)
        .map(|byte| b'a' + u8::try_from(byte % 26).unwrap())
        .collect();
    let said = host.program(&["exec", "demo", "cat"]).input(&input).run();
    said.assert_code(0);
    assert!(
        said.out.as_bytes() == input,
        "{} bytes came back",
        said.out.len()
    );
}

#[test]
fn output_written_just_before_the_end_is_not_lost() {
    let host = FakeHost::new();
    host.on(request(&["sh"]), |talk| {
        let mut command = command(talk);
        let kept = command.output.try_clone().unwrap();
        command.output.write_all(&vec![b'x'; 60_000]).unwrap();
        exit(talk, 9);
        // Something left behind keeps the stream open: nobody waits for it.
        talk.is_left();
        drop((command, kept));
    });
    let said = host.run(&["exec", "demo", "sh"]);
    assert_eq!((said.code, said.out.len()), (9, 60_000));
}

#[test]
fn a_command_that_reads_nothing_is_not_waited_for() {
    let host = FakeHost::new();
    host.on(request(&["true"]), |talk| {
        drop(command(talk));
        exit(talk, 0);
    });
    let input = vec![b'x'; 1 << 20];
    host.program(&["exec", "demo", "true"])
        .input(&input)
        .run()
        .assert_code(0);
}

#[test]
fn without_standard_input_the_command_reads_an_end() {
    let host = FakeHost::new();
    host.on(request(&["cat"]), |talk| {
        let mut command = command(talk);
        let mut text = String::new();
        command.input.read_to_string(&mut text).unwrap();
        assert_eq!(text, "");
        drop(command);
        exit(talk, 0);
    });
    host.program(&["exec", "demo", "--no-stdin", "cat"])
        .input(b"not for it")
        .run()
        .assert_code(0);
}

#[test]
fn signals_are_handed_on() {
    let host = FakeHost::new();
    host.on(request(&["sleep", "9"]), |talk| {
        let mut command = command(talk);
        command.output.write_all(b"up\n").unwrap();
        talk.hears(&json!({"say": "signal", "number": 2}));
        command.output.write_all(b"interrupted\n").unwrap();
        talk.hears(&json!({"say": "signal", "number": 15}));
        drop(command);
        exit(talk, 143);
    });
    let mut running = host.program(&["exec", "demo", "sleep", "9"]).start();
    running.wait_for_out("up");
    running.signal(Signal::INT);
    running.wait_for_out("interrupted");
    running.signal(Signal::TERM);
    running.finish().assert_code(143);
}

#[test]
fn who_insists_gets_out() {
    let host = FakeHost::new();
    host.on(request(&["sleep", "9"]), |talk| {
        let mut command = command(talk);
        for round in 1..=3 {
            writeln!(command.output, "round {round}").unwrap();
            talk.hears(&json!({"say": "signal", "number": 2}));
        }
        talk.is_left();
    });
    let mut running = host.program(&["exec", "demo", "sleep", "9"]).start();
    for round in 1..=3 {
        running.wait_for_out(&format!("round {round}"));
        running.signal(Signal::INT);
    }
    running.finish().assert_code(130);
}

#[test]
fn a_host_that_dies_leaves_the_end_unknown() {
    let host = FakeHost::new();
    host.on(request(&["sleep", "9"]), |talk| drop(command(talk)));
    insta::assert_snapshot!(host.run(&["exec", "demo", "sleep", "9"]).whole(), @r"
    exit 125
    --- err
    error: the host went away; how the command ended is not known
    cause: the host closed the connection
    ");
}

#[test]
fn environment_and_folder_go_along() {
    let host = FakeHost::new();
    let mut request = request(&["make"]);
    request["env"] = json!([["CI", "1"], ["A", "b=c"]]);
    request["cwd"] = json!("/tmp");
    host.on(request, |talk| {
        drop(command(talk));
        exit(talk, 0);
    });
    let arguments = [
        "exec", "demo", "--env", "CI=1", "-e", "A=b=c", "--cwd", "/tmp", "--", "make",
    ];
    host.run(&arguments).assert_code(0);
}

#[test]
fn a_terminal_is_raw_resized_and_put_back() {
    let host = FakeHost::new();
    let request = json!({
        "verb": "exec", "name": "demo", "command": ["vi"], "cwd": null, "env": [["TERM", "xterm"]],
        "terminal": {"rows": 24, "columns": 60},
    });
    host.on(request, |talk| {
        let mut theirs = terminal(talk);
        theirs.write_all(b"ready\n").unwrap();
        // A raw byte, not a signal of ours.
        let mut byte = [0; 1];
        let mut raw = rustix::termios::tcgetattr(&theirs).unwrap();
        raw.make_raw();
        rustix::termios::tcsetattr(&theirs, rustix::termios::OptionalActions::Now, &raw).unwrap();
        theirs.write_all(b"raw").unwrap();
        theirs.read_exact(&mut byte).unwrap();
        assert_eq!(byte, [3]);
        theirs.write_all(b"resize").unwrap();
        theirs.read_exact(&mut byte).unwrap();
        let size = tcgetwinsize(theirs.as_fd()).unwrap();
        assert_eq!((size.ws_row, size.ws_col), (30, 99));
        theirs.write_all(b"bye").unwrap();
        drop(theirs);
        exit(talk, 5);
    });
    let mut program = host.program(&["exec", "demo", "vi"]);
    program.command.env("TERM", "xterm");
    let mut person = Person::at(&program);
    person
        .sees("ready")
        .sees("raw")
        .types("\u{3}")
        .sees("resize");
    assert!(!person.terminal_is_as_before(), "not raw");
    person.resizes(30, 99);
    person.types("q").sees("bye");
    assert_eq!(person.finish(), 5, "{}", person.seen);
    assert!(person.terminal_is_as_before(), "left raw");
}

#[test]
fn a_terminal_is_put_back_when_the_host_dies() {
    let host = FakeHost::new();
    let request = json!({
        "verb": "exec", "name": "demo", "command": ["vi"], "cwd": null, "env": [],
        "terminal": {"rows": 24, "columns": 60},
    });
    host.on(request, |talk| {
        let mut side = terminal(talk);
        side.write_all(b"ready").unwrap();
    });
    let mut person = Person::at(&host.program(&["exec", "demo", "vi"]));
    person.sees("ready").sees("the host went away");
    assert_eq!(person.finish(), 125);
    assert!(person.terminal_is_as_before(), "left raw");
}

#[test]
fn a_shell_is_bash_or_sh_with_a_terminal_only_where_there_is_one() {
    let login = "if command -v bash >/dev/null 2>&1; then exec bash -l; else exec sh -l; fi";
    let host = FakeHost::new();
    host.on(request(&["/bin/sh", "-c", login]), |talk| {
        let mut command = command(talk);
        let mut text = String::new();
        command.input.read_to_string(&mut text).unwrap();
        assert_eq!(text, "exit 4\n");
        drop(command);
        exit(talk, 4);
    });
    host.program(&["shell", "demo"])
        .input(b"exit 4\n")
        .run()
        .assert_code(4);
    let mut with_terminal = request(&["/bin/sh", "-c", login]);
    with_terminal["terminal"] = json!({"rows": 24, "columns": 60});
    host.on(with_terminal, |talk| {
        drop(terminal(talk));
        exit(talk, 0);
    });
    assert_eq!(Person::at(&host.program(&["shell", "demo"])).finish(), 0);
}

#[test]
fn output_that_cannot_be_kept_is_told() {
    let host = FakeHost::new();
    host.on(request(&["true"]), |talk| {
        let mut command = command(talk);
        command.output.write_all(b"hello\n").unwrap();
        talk.is_left();
    });
    let here = host.program(&["exec", "demo", "--", "true"]).command;
    let mut shell = std::process::Command::new("sh");
    shell
        .args(["-c", "exec \"$0\" \"$@\" >/dev/full"])
        .arg(here.get_program())
        .args(here.get_args());
    for (name, value) in here.get_envs() {
        shell.env(name, value.unwrap());
    }
    let said = shell.output().unwrap();
    assert_eq!(said.status.code(), Some(125));
    let told = String::from_utf8(said.stderr).unwrap();
    assert!(told.contains("No space left on device"), "{told}");
}
