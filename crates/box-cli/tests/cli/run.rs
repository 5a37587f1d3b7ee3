//! `box run`: a turn from its request to its exit code.

use super::fake_host::{FakeHost, Talk};
use super::person::Person;
use super::program::Said;
use rustix::process::Signal;
use serde_json::{Value, json};

fn request(prompt: &str) -> Value {
    json!({
        "verb": "run", "agent": "claude", "prompt": prompt, "name": "demo", "repo": null,
        "allow_all": false, "image": null, "profile": "locked", "net": "balanced",
        "limits": {
            "cpu_milli": 2000, "memory_bytes": 4_294_967_296u64, "pids": 512, "tmp_bytes": 536_870_912,
            "disk_bytes": 21_474_836_480u64, "open_files": 65536,
        },
        "settings": {"deadline_ms": null, "freeze_after_ms": null, "nested": false},
    })
}

fn allow_all(prompt: &str) -> Value {
    let mut request = request(prompt);
    request["allow_all"] = json!(true);
    request
}

/// Taking up the thread after the host went away.
fn attach(seq: u64, bytes: u64) -> Value {
    json!({
        "verb": "attach", "name": "demo", "thread": "tttttttttttttttt",
        "after": {"epoch": 3, "seq": seq, "bytes": bytes}, "follow": true,
    })
}

const GO: &[&str] = &["run", "claude", "go", "--name", "demo"];

#[track_caller]
fn played(play: impl FnOnce(&mut Talk) + Send + 'static) -> Said {
    let host = FakeHost::new();
    host.on(request("go"), play);
    host.run(GO)
}

#[test]
fn a_turn_streams_as_it_comes() {
    let said = played(|talk| {
        talk.reply(json!({"reply": "progress", "text": "making box `demo`"}));
        talk.begin("demo");
        talk.row(2, json!({"kind": "thought", "text": "Let me see."}));
        talk.text(3, "I will ");
        talk.grew(3, 7, "do it.");
        talk.row(4, json!({"kind": "tool_call", "call": "a", "title": "touch x", "tool": "execute", "status": "running"}));
        talk.row(
            5,
            json!({"kind": "tool_update", "call": "a", "status": "completed"}),
        );
        talk.row(6, json!({"kind": "mode", "mode": "default"}));
        talk.text(7, "Done.");
        talk.end(8, "done", None);
    });
    insta::assert_snapshot!(said.whole(), @r"
    exit 0
    --- out
    ∴ Let me see. (3 words)

    I will do it.

    ⟳ touch x
    ✓ touch x

    Done.
    --- err
    · making box `demo`
    box `demo`
    ");
}

#[test]
fn each_outcome_has_its_exit_code() {
    let outcomes = [
        ("done", 0),
        ("failed", 1),
        ("refused", 3),
        ("cancelled", 4),
        ("parked", 5),
        ("stopped_short", 7),
    ];
    for (outcome, code) in outcomes {
        let said = played(move |talk| {
            talk.begin("demo");
            talk.end(2, outcome, None);
        });
        said.assert_code(code);
    }
    insta::assert_snapshot!(
        played(|talk| {
            talk.begin("demo");
            talk.end(2, "parked", Some("resets at 15:00"));
        })
        .whole(),
        @r"
    exit 5
    --- err
    box `demo`
    ■ the turn is parked at a usage limit: resets at 15:00
    "
    );
}

#[test]
fn a_run_that_cannot_begin_is_told() {
    let host = FakeHost::new();
    host.problem(
        request("go"),
        json!({
            "type": "agent-unknown", "kind": "usage", "title": "there is no agent `claude`",
            "hint": "`box agent list` shows them",
        }),
    );
    insta::assert_snapshot!(host.run(GO).whole(), @r"
    exit 2
    --- err
    error: there is no agent `claude`
    hint: `box agent list` shows them
    ");
    host.problem(request("go"), json!({
        "type": "no-credential", "kind": "refused", "title": "there is no credential for `claude`",
        "hint": "`box credential add claude`",
    }));
    insta::assert_snapshot!(host.run(GO).whole(), @r"
    exit 3
    --- err
    error: there is no credential for `claude`
    hint: `box credential add claude`
    ");
}

#[test]
fn the_prompt_can_come_from_a_file_or_standard_input() {
    let host = FakeHost::new();
    let play = |talk: &mut Talk| {
        talk.begin("demo");
        talk.end(2, "done", None);
    };
    std::fs::write(host.folder().join("task.md"), "from a file\n").unwrap();
    host.on(request("from a file\n"), play);
    host.run(&["run", "claude", "--file", "task.md", "--name", "demo"])
        .assert_code(0);
    host.on(request("from a pipe"), play);
    host.program(&["run", "claude", "-", "--name", "demo"])
        .input(b"from a pipe")
        .run()
        .assert_code(0);
}

#[test]
fn nobody_there_to_ask_ends_with_6_and_the_line_that_answers() {
    let said = played(|talk| {
        talk.begin("demo");
        talk.ask(2);
        talk.is_left();
    });
    insta::assert_snapshot!(said.whole(), @r"
    exit 6
    --- out
    ⚠ Run `make`
      1  Reject
      2  Always allow
      3  Allow once
    --- err
    box `demo`
    the agent waits for your answer: `box attach demo`
    ");
}

#[test]
fn allow_all_answers_what_is_asked_anyway() {
    let host = FakeHost::new();
    host.on(allow_all("go"), |talk| {
        talk.begin("demo");
        talk.ask(2);
        talk.hears(&json!({"say": "answer", "decision": 42, "option": "once"}));
        talk.answered(3, 42, "once");
        talk.end(4, "done", None);
    });
    let arguments = [GO, &["--allow-all"]].concat();
    insta::assert_snapshot!(host.run(&arguments).whole(), @r"
    exit 0
    --- out
    ⚠ Run `make`
      1  Reject
      2  Always allow
      3  Allow once
      → Allow once
    --- err
    box `demo`
    chose “Allow once” by --allow-all
    ");
}

#[test]
fn a_person_answers_by_number() {
    let host = FakeHost::new();
    host.on(request("go"), |talk| {
        talk.person();
        talk.begin("demo");
        talk.ask(2);
        talk.hears(&json!({"say": "answer", "decision": 42, "option": "once"}));
        talk.answered(3, 42, "once");
        talk.text(4, "Thank you.");
        talk.end(5, "done", None);
    });
    let mut person = Person::at(&host.program(GO));
    person
        .sees("Run `make`")
        .sees("3  Allow once")
        .sees("your choice [1-3]: ");
    person
        .types("\n")
        .sees("type a number from 1 to 3")
        .sees("your choice [1-3]: ");
    person.types("3\n").sees("→ Allow once").sees("Thank you.");
    assert_eq!(person.finish(), 0, "{}", person.seen);
    assert!(person.terminal_is_as_before());
}

#[test]
fn what_comes_while_a_question_stands_does_not_hide_it() {
    let host = FakeHost::new();
    host.on(request("go"), |talk| {
        talk.person();
        talk.begin("demo");
        talk.ask(2);
        talk.text(3, "Meanwhile.");
        talk.answered(4, 42, "no");
        talk.end(5, "done", None);
    });
    let mut person = Person::at(&host.program(GO));
    person
        .sees("your choice [1-3]: ")
        .sees("Meanwhile.")
        .sees("your choice [1-3]: ")
        .sees("→ Reject");
    assert_eq!(person.finish(), 0, "{}", person.seen);
}

#[test]
fn the_first_interrupt_cancels_the_turn() {
    let host = FakeHost::new();
    host.on(request("go"), |talk| {
        talk.begin("demo");
        talk.text(2, "Working");
        talk.hears(&json!({"say": "cancel_turn"}));
        talk.end(3, "cancelled", None);
    });
    let mut running = host.program(GO).start();
    running.wait_for_out("Working");
    running.signal(Signal::INT);
    insta::assert_snapshot!(running.finish().whole(), @r"
    exit 4
    --- out
    Working
    --- err
    box `demo`
    cancelling the turn; Ctrl-C again leaves without waiting
    ■ the turn was cancelled
    ");
}

#[test]
fn the_second_interrupt_leaves_it_running() {
    let host = FakeHost::new();
    host.on(request("go"), |talk| {
        talk.begin("demo");
        talk.text(2, "Working");
        talk.hears(&json!({"say": "cancel_turn"}));
        talk.is_left();
    });
    let mut running = host.program(GO).start();
    running.wait_for_out("Working");
    running.signal(Signal::INT);
    running.wait_for_err("Ctrl-C again");
    running.signal(Signal::INT);
    insta::assert_snapshot!(running.finish().whole(), @r"
    exit 130
    --- out
    Working
    --- err
    box `demo`
    cancelling the turn; Ctrl-C again leaves without waiting
    left while the turn is being cancelled; `box attach demo` shows its end
    ");
}

#[test]
fn a_signal_that_ends_us_does_not_end_the_turn() {
    let host = FakeHost::new();
    host.on(request("go"), |talk| {
        talk.begin("demo");
        talk.text(2, "Working");
        talk.is_left();
    });
    let mut running = host.program(GO).start();
    running.wait_for_out("Working");
    running.signal(Signal::TERM);
    insta::assert_snapshot!(running.finish().whole(), @r"
    exit 143
    --- out
    Working
    --- err
    box `demo`
    the turn goes on; `box attach demo` takes it up again
    ");
}

#[test]
fn a_host_that_dies_in_mid_turn_is_taken_up_without_loss_or_doubling() {
    let host = FakeHost::new();
    host.on(request("go"), |talk| {
        talk.begin("demo");
        talk.text(2, "one ");
        talk.grew(2, 4, "two ");
        // The connection ends here, as it does when a host is killed.
    });
    host.on(attach(2, 8), |talk| {
        talk.grew(2, 4, "two three ");
        talk.text(3, "four.");
    });
    // The second died before it had sent everything: what it sent was not shown and does not count.
    host.on(attach(2, 8), |talk| {
        talk.row(1, json!({"kind": "prompt", "text": "go"}));
        talk.text(2, "one two three ");
        talk.text(3, "four. five.");
        talk.caught_up(3, 3, 11);
        talk.grew(3, 11, " six.");
        talk.row(
            4,
            json!({"kind": "turn_ended", "outcome": "done", "note": null}),
        );
    });
    let said = host.run(GO);
    insta::assert_snapshot!(said.whole(), @r"
    exit 0
    --- out
    one two three 

    four. five. six.
    --- err
    box `demo`
    the host went away; taking the turn up again
    the host went away; taking the turn up again
    ");
}

#[test]
fn a_permission_that_was_open_when_the_host_died_is_answered_once() {
    let host = FakeHost::new();
    host.on(request("go"), |talk| {
        talk.person();
        talk.begin("demo");
        talk.ask(2);
        talk.hears(&json!({"say": "answer", "decision": 42, "option": "once"}));
    });
    host.on(attach(2, 0), |talk| {
        talk.person();
        talk.caught_up(3, 2, 0);
        // It had not been written down: it is said again.
        talk.hears(&json!({"say": "answer", "decision": 42, "option": "once"}));
        talk.answered(3, 42, "once");
        talk.row(
            4,
            json!({"kind": "turn_ended", "outcome": "done", "note": null}),
        );
    });
    let mut person = Person::at(&host.program(GO));
    person
        .sees("your choice [1-3]: ")
        .types("3\n")
        .sees("taking the turn up again")
        .sees("→ Allow once");
    assert_eq!(person.finish(), 0, "{}", person.seen);
    assert_eq!(
        person.seen.matches("your choice").count(),
        1,
        "{}",
        person.seen
    );
}

#[test]
fn a_host_that_dies_before_the_turn_began_is_told() {
    insta::assert_snapshot!(played(|_| {}).whole(), @r"
    exit 125
    --- err
    error: the host went away before the turn began
    hint: `box list` shows what was made of it; then type it again
    ");
}

#[test]
fn a_host_that_dies_again_and_again_is_given_up() {
    let host = FakeHost::new();
    host.on(request("go"), |talk| talk.begin("demo"));
    for _ in 0..5 {
        host.on(attach(1, 0), |_| {});
    }
    insta::assert_snapshot!(host.run(GO).whole(), @r"
    exit 125
    --- err
    box `demo`
    the host went away; taking the turn up again
    the host went away; taking the turn up again
    the host went away; taking the turn up again
    the host went away; taking the turn up again
    the host went away; taking the turn up again
    error: the host goes away again and again
    hint: the turn goes on; `box attach demo` takes it up again
    ");
}

#[test]
fn for_a_program_every_reply_is_a_line() {
    let host = FakeHost::new();
    host.on(request("go"), |talk| {
        talk.reply(json!({"reply": "progress", "text": "making box `demo`"}));
        talk.begin("demo");
        talk.text(2, "one ");
    });
    host.on(attach(2, 4), |talk| {
        talk.text(2, "one two");
        talk.caught_up(3, 2, 7);
        talk.ask(3);
        talk.is_left();
    });
    let arguments = [GO, &["--json"]].concat();
    insta::assert_snapshot!(host.run(&arguments).whole(), @r#"
    exit 6
    --- out
    {"event":"thread","box_id":"aaaaaaaaaaaaaaaa","name":"demo","thread":"tttttttttttttttt"}
    {"event":"row","seq":1,"at_ms":0,"kind":"prompt","text":"go"}
    {"event":"row","seq":2,"at_ms":0,"kind":"text","text":"one "}
    {"event":"grew","seq":2,"from_byte":4,"text":"two"}
    {"event":"row","seq":3,"at_ms":0,"kind":"decision_opened","decision":43,"box_id":"aaaaaaaaaaaaaaaa","thread":"tttttttttttttttt","about":"permission","title":"Run `make`","options":[{"id":"no","label":"Reject","kind":"reject_once"},{"id":"ever","label":"Always allow","kind":"allow_always"},{"id":"once","label":"Allow once","kind":"allow_once"}],"state":{"state":"open"}}
    {"event":"result","name":"demo","thread":"tttttttttttttttt","outcome":"waiting","exit":6,"answer":"one two"}
    "#);
}

#[test]
fn a_reader_that_goes_away_leaves_the_turn_alone() {
    let host = FakeHost::new();
    host.on(request("go"), |talk| {
        talk.begin("demo");
        talk.text(2, "Working");
        talk.is_left();
    });
    let mut program = host.program(GO);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    program
        .command
        .stdin(std::process::Stdio::null())
        .stdout(writer);
    assert_eq!(program.command.output().unwrap().status.code(), Some(141));
}

#[test]
fn a_machine_that_is_there_is_not_described_again() {
    let asked = ["run", "claude", "go", "--name", "demo", "--net", "locked"];
    let host = FakeHost::new();
    let there = super::print::info("demo", "running");
    host.done(
        json!({"verb": "list"}),
        json!({"result": "boxes", "boxes": [there]}),
    );
    let said = host.run(&asked);
    said.assert_code(2);
    insta::assert_snapshot!(said.err, @r"
    error: there is a box `demo` already, and what it is like was said then
    hint: leave out the options of the machine, or remove it first: `box rm demo`
    ");
    // The control: a name that is free.
    let host = FakeHost::new();
    host.done(
        json!({"verb": "list"}),
        json!({"result": "boxes", "boxes": []}),
    );
    let mut wanted = request("go");
    wanted["net"] = json!("locked");
    host.on(wanted, |talk| {
        talk.begin("demo");
        talk.end(2, "done", None);
    });
    host.run(&asked).assert_code(0);
}
