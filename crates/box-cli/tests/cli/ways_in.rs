//! `run --quiet`, `run --attach`, `ask`, `attach --follow` and `!` lines: what is asked, what is
//! printed.

use super::fake_host::{FakeHost, Talk};
use super::person::Person;
use serde_json::{Value, json};

fn run(prompt: &str) -> Value {
    json!({"verb": "run", "agent": "claude", "prompt": prompt})
}

fn work(talk: &mut Talk) {
    talk.begin("demo");
    talk.text(2, "I will look.");
    talk.row(3, json!({"kind": "tool_call", "call": "a", "title": "ls", "tool": "execute", "status": "completed"}));
    talk.text(4, "It is green.");
    talk.row(
        5,
        json!({"kind": "usage", "used": 10, "size": 200, "cost": "0.5 USD"}),
    );
    talk.end(6, "done", None);
}

#[test]
fn quiet_prints_what_was_said_last() {
    let host = FakeHost::new();
    host.on_part(run("go"), work);
    let said = host.run(&["run", "claude", "go", "--quiet"]);
    insta::assert_snapshot!(said.whole(), @r"
    exit 0
    --- out
    It is green.
    --- err
    box `demo`
    ");
    host.on_part(run("go"), |talk| {
        talk.begin("demo");
        talk.end(2, "failed", Some("the agent died"));
    });
    let said = host.run(&["run", "claude", "go", "--quiet"]);
    insta::assert_snapshot!(said.whole(), @r"
    exit 1
    --- err
    box `demo`
    ■ the turn failed: the agent died
    ");
}

#[test]
fn a_question_is_one_object_for_a_program() {
    let host = FakeHost::new();
    host.done(
        json!({"verb": "list"}),
        json!({"result": "boxes", "boxes": []}),
    );
    host.on_part(run("is it green?"), work);
    let said = host.run(&["ask", "claude", "is it green?", "--json"]);
    insta::assert_snapshot!(said.whole(), @r#"
    exit 0
    --- out
    {"event":"result","name":"demo","thread":"tttttttttttttttt","outcome":"done","exit":0,"answer":"It is green.","usage":{"used":10,"size":200,"cost":"0.5 USD"}}
    "#);
}

#[test]
fn a_run_that_cannot_begin_ends_with_a_result_too() {
    let host = FakeHost::new();
    host.on_part(run("go"), |talk| {
        talk.reply(json!({"reply": "problem", "type": "agent-unknown", "kind": "usage", "title": "there is no agent `claude`"}));
    });
    let said = host.run(&["run", "claude", "go", "--json"]);
    said.assert_code(2);
    let last: Value = serde_json::from_str(said.out.lines().last().unwrap()).unwrap();
    assert_eq!(last["event"], "result");
    assert_eq!(
        (&last["outcome"], &last["exit"]),
        (&json!("error"), &json!(2))
    );
    assert_eq!(last["problem"]["type"], "agent-unknown");
}

#[test]
fn files_follow_the_request_they_are_announced_in() {
    let host = FakeHost::new();
    std::fs::write(host.folder().join("shot.png"), "pixels").unwrap();
    let announced =
        json!({"verb": "run", "prompt": "go", "attachments": [{"file": "shot.png", "bytes": 6}]});
    host.on_part(announced, |talk| {
        talk.hears(&json!({"say": "piece", "base64": "cGl4ZWxz"}));
        talk.begin("demo");
        talk.end(2, "done", None);
    });
    host.run(&["run", "claude", "go", "--attach", "shot.png"])
        .assert_code(0);
    // What cannot be sent is told before anything is asked.
    std::fs::write(host.folder().join("empty"), "").unwrap();
    for (file, told) in [
        ("missing", "could not read `missing`"),
        ("empty", "`empty` is empty"),
        ("run", "`run` is no file"),
    ] {
        let said = host.run(&["run", "claude", "go", "--attach", file]);
        said.assert_code(2);
        assert!(said.err.contains(told), "{}", said.err);
    }
}

#[test]
fn modes_and_models_go_with_the_request() {
    let host = FakeHost::new();
    let chosen = json!([{"option": "model", "value": "big"}, {"option": "mode", "value": "plan"}]);
    host.on_part(
        json!({"verb": "run", "prompt": "go", "chosen": chosen}),
        work,
    );
    let said = host.run(&["run", "claude", "go", "--mode", "plan", "--model", "big"]);
    said.assert_code(0);
}

fn attach() -> Value {
    json!({"verb": "attach", "name": "demo", "thread": null, "after": null, "follow": true})
}

#[test]
fn who_only_looks_on_stays_when_a_turn_ends() {
    let host = FakeHost::new();
    host.on(attach(), |talk| {
        talk.begin("demo");
        talk.ask(2);
        talk.answered(3, 42, "once");
        talk.row(4, json!({"kind": "turn_ended", "outcome": "done", "note": null}));
        talk.row(5, json!({"kind": "prompt", "text": "more"}));
        talk.text(6, "More.");
        talk.reply(json!({"reply": "problem", "type": "gone", "kind": "failed", "title": "the thread is gone"}));
    });
    let said = host.run(&["attach", "demo", "--follow"]);
    said.assert_code(1);
    assert!(
        said.out.contains("→ Allow once") && said.out.contains("More."),
        "{}",
        said.out
    );
    assert!(
        said.err.contains("`box answer 42` answers it"),
        "{}",
        said.err
    );
}

#[test]
fn a_marked_line_runs_beside_the_conversation() {
    let host = FakeHost::new();
    let line =
        json!({"verb": "shell_line", "name": "demo", "thread": "tttttttttttttttt", "line": "ls"});
    let (ran, has_run) = std::sync::mpsc::sync_channel(1);
    // Taken one after the other, so the conversation is heard again only after the line.
    host.on(attach(), move |talk| {
        talk.person();
        talk.begin("demo");
        talk.row(
            2,
            json!({"kind": "detail", "raw": {"sessionUpdate": "available_commands_update",
            "availableCommands": [{"name": "compact", "description": "Make room"}]}}),
        );
        talk.row(
            3,
            json!({"kind": "command", "command": "pwd", "output": "/workspace\n", "exit": 0}),
        );
        talk.row(
            4,
            json!({"kind": "turn_ended", "outcome": "done", "note": null}),
        );
        std::mem::forget(talk.keep());
        ran.send(()).unwrap();
    });
    host.on(line, |talk| {
        talk.reply(json!({"reply": "output", "base64": "bWFkZS50eHQK"}));
        talk.done(json!({"result": "shell_ended", "exit": 3}));
    });
    let mut person = Person::at(&host.program(&["attach", "demo"]));
    has_run.recv().unwrap();
    person.sees("! pwd").sees("/workspace").sees("[exit 0]");
    person.types("/\n").sees("/compact  Make room");
    person.types("!ls\n").sees("made.txt").sees("[exit 3]");
    person.types("\u{4}");
    assert_eq!(person.finish(), 0, "{}", person.seen);
}
