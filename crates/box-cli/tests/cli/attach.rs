//! `box attach`: what was missed, then what comes.

use super::fake_host::{FakeHost, Talk};
use super::person::Person;
use serde_json::{Value, json};

fn request() -> Value {
    json!({"verb": "attach", "name": "demo", "thread": null, "after": null, "follow": true})
}

/// Two turns, the second under way.
fn two_turns(talk: &mut Talk) {
    talk.row(1, json!({"kind": "prompt", "text": "first"}));
    talk.text(2, "First answer.");
    talk.row(
        3,
        json!({"kind": "turn_ended", "outcome": "done", "note": null}),
    );
    talk.row(4, json!({"kind": "prompt", "text": "second"}));
    talk.text(5, "Second ans");
    talk.caught_up(1, 5, 10);
}

#[test]
fn the_last_turn_is_shown_and_followed_to_its_end() {
    let host = FakeHost::new();
    let play = |talk: &mut Talk| {
        two_turns(talk);
        talk.grew(5, 10, "wer.");
        talk.row(
            6,
            json!({"kind": "turn_ended", "outcome": "failed", "note": "the agent died"}),
        );
        talk.is_left();
    };
    host.on(request(), play);
    insta::assert_snapshot!(host.run(&["attach", "demo"]).whole(), @r"
    exit 1
    --- out
    > second

    Second answer.
    --- err
    ■ the turn failed: the agent died
    ");
    host.on(request(), play);
    insta::assert_snapshot!(host.run(&["attach", "demo", "--all"]).whole(), @r"
    exit 1
    --- out
    > first

    First answer.

    > second

    Second answer.
    --- err
    ■ the turn failed: the agent died
    ");
}

#[test]
fn a_person_goes_on_with_the_conversation() {
    let host = FakeHost::new();
    host.on(request(), |talk| {
        talk.person();
        two_turns(talk);
        talk.grew(5, 10, "wer.");
        talk.row(
            6,
            json!({"kind": "turn_ended", "outcome": "stopped_short", "note": null}),
        );
        talk.hears(&json!({"say": "prompt", "text": "third"}));
        talk.row(7, json!({"kind": "prompt", "text": "third"}));
        talk.ask(8);
        talk.hears(&json!({"say": "answer", "decision": 48, "option": "no"}));
        talk.answered(9, 48, "no");
        talk.hears(&json!({"say": "cancel_turn"}));
        talk.row(
            10,
            json!({"kind": "turn_ended", "outcome": "cancelled", "note": null}),
        );
        talk.is_left();
    });
    let mut person = Person::at(&host.program(&["attach", "demo"]));
    person.sees("> second").sees("Second answer.");
    // Only at an idle agent is a line a prompt.
    person.sees("stopped short");
    assert!(!person.seen.contains("First answer."), "{}", person.seen);
    person
        .types("third\n")
        .sees("> third")
        .sees("your choice [1-3]: ")
        .types("1\n")
        .sees("→ Reject");
    // Ctrl-C, then Ctrl-D at an idle agent.
    person
        .types("\u{3}")
        .sees("the turn was cancelled")
        .types("\u{4}");
    assert_eq!(person.finish(), 0, "{}", person.seen);
}

#[test]
fn leaving_a_turn_that_runs_leaves_it_running() {
    let host = FakeHost::new();
    host.on(request(), |talk| {
        talk.person();
        two_turns(talk);
        talk.is_left();
    });
    let mut person = Person::at(&host.program(&["attach", "demo"]));
    person
        .sees("Second ans")
        .types("\u{4}")
        .sees("the turn goes on; `box attach demo` takes it up again");
    assert_eq!(person.finish(), 0, "{}", person.seen);
}

#[test]
fn a_decision_nobody_is_there_for_ends_with_6() {
    let host = FakeHost::new();
    host.on(request(), |talk| {
        talk.row(1, json!({"kind": "prompt", "text": "go"}));
        talk.ask(2);
        talk.caught_up(1, 2, 0);
        talk.is_left();
    });
    insta::assert_snapshot!(host.run(&["attach", "demo"]).whole(), @r"
    exit 6
    --- out
    > go

    ⚠ Run `make`
      1  Reject
      2  Always allow
      3  Allow once
    --- err
    the agent waits for your answer: `box attach demo`
    ");
}

#[test]
fn a_box_without_a_thread_is_told() {
    let host = FakeHost::new();
    host.problem(
        request(),
        json!({
            "type": "no-thread", "kind": "usage", "title": "no agent has worked in box `demo` yet",
            "hint": "`box run claude \"…\" --name demo`",
        }),
    );
    insta::assert_snapshot!(host.run(&["attach", "demo"]).whole(), @r#"
    exit 2
    --- err
    error: no agent has worked in box `demo` yet
    hint: `box run claude "…" --name demo`
    "#);
}

#[test]
fn a_person_is_asked_about_the_network_beside_the_journal() {
    let host = FakeHost::new();
    host.on(request(), |talk| {
        talk.person();
        two_turns(talk);
        talk.network(7, "demo", &json!({"state": "open"}));
        talk.hears(&json!({"say": "answer", "decision": 7, "option": "once"}));
        talk.network(7, "demo", &json!({"state": "answered", "option": "once"}));
        // Somebody else answers this one: the question goes.
        talk.network(8, "demo", &json!({"state": "open"}));
        talk.network(8, "demo", &json!({"state": "answered", "option": "block"}));
        talk.grew(5, 10, "wer.");
        talk.row(
            6,
            json!({"kind": "turn_ended", "outcome": "done", "note": null}),
        );
        talk.is_left();
    });
    let mut person = Person::at(&host.program(&["attach", "demo"]));
    person
        .sees("wants to reach new.test:443")
        .sees("keep blocked")
        .sees("your choice [1-2]: ")
        .types("1\n")
        .sees("→ allow once")
        .sees("→ keep blocked")
        .sees("wer.")
        .types("\u{4}");
    assert_eq!(person.finish(), 0, "{}", person.seen);
}
