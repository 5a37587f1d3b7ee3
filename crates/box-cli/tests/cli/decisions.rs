//! `box decisions`, `box answer`, `box park`, `box resume`, and forms at a terminal.

use super::fake_host::{FakeHost, Talk};
use super::person::Person;
use serde_json::{Value, json};

fn form() -> Value {
    json!({"message": "Before I begin", "fields": [
        {"name": "colour", "title": "Which colour?", "required": true, "kind": {"type": "one",
            "choices": [{"value": "red", "label": "Red"}, {"value": "blue", "label": "Blue"}]}},
        {"name": "colour_custom", "title": "Other", "required": false, "instead_of": "colour",
            "kind": {"type": "text"}},
        {"name": "sizes", "title": "Which sizes?", "required": false, "kind": {"type": "many",
            "choices": [{"value": "s", "label": "S"}, {"value": "m", "label": "M"}]}},
        {"name": "count", "title": "How many?", "required": true,
            "kind": {"type": "number", "whole": true, "min": 1.0}},
    ]})
}

fn question() -> Value {
    json!({
        "decision": 45, "box_id": "aaaaaaaaaaaaaaaa", "thread": "tttttttttttttttt",
        "about": "question", "title": "Before I begin", "options": [], "form": form(),
        "state": {"state": "open"},
    })
}

fn plan() -> Value {
    json!({
        "decision": 46, "box_id": "aaaaaaaaaaaaaaaa", "thread": "tttttttttttttttt",
        "about": "plan", "title": "Ready to code?", "text": "# Plan\n1. write a test",
        "options": [{"id": "go", "label": "Yes", "kind": "allow_once"},
                    {"id": "no", "label": "No", "kind": "reject_once"}],
        "state": {"state": "open"},
    })
}

fn listed() -> Value {
    let waiting = |decision: Value| json!({"name": "demo", "decision": decision});
    json!({"result": "decisions", "decisions": [waiting(question()), waiting(plan())]})
}

fn list() -> Value {
    json!({"verb": "decisions", "follow": false})
}

fn fill(values: &Value) -> Value {
    json!({"verb": "answer_form", "decision": 45, "answer": {"do": "fill", "values": values}})
}

fn nothing() -> Value {
    json!({"result": "nothing"})
}

#[test]
fn forms_and_plans_are_listed_with_what_answers_them() {
    let host = FakeHost::new();
    host.done(list(), listed());
    insta::assert_snapshot!(host.run(&["decisions"]).whole());
}

#[test]
fn a_form_is_answered_by_its_fields_or_as_json() {
    let host = FakeHost::new();
    host.done(
        fill(&json!({"colour": "blue", "sizes": ["s", "m"], "count": "2"})),
        nothing(),
    );
    let words = [
        "answer",
        "45",
        "colour=blue",
        "sizes=s",
        "sizes=m",
        "count=2",
    ];
    assert_eq!(host.run(&words).code, 0);

    let host = FakeHost::new();
    host.done(fill(&json!({"colour": "red", "count": 1})), nothing());
    let json = r#"{"colour":"red","count":1}"#;
    assert_eq!(host.run(&["answer", "45", "--form", json]).code, 0);
}

#[test]
fn a_request_is_declined_or_taken_away() {
    for (option, what) in [("--decline", "decline"), ("--cancel", "cancel")] {
        let host = FakeHost::new();
        host.done(
            json!({"verb": "answer_form", "decision": 45, "answer": {"do": what}}),
            nothing(),
        );
        assert_eq!(host.run(&["answer", "45", option]).code, 0);
    }
}

#[test]
fn one_word_with_a_sign_may_be_an_option() {
    let mut odd = plan();
    odd["options"][0]["id"] = json!("mode=fast");
    let host = FakeHost::new();
    let waiting = json!([{"name": "demo", "decision": odd}]);
    host.done(list(), json!({"result": "decisions", "decisions": waiting}));
    host.done(
        json!({"verb": "answer", "decision": 46, "option": "mode=fast"}),
        nothing(),
    );
    assert_eq!(host.run(&["answer", "46", "mode=fast"]).code, 0);

    let host = FakeHost::new();
    host.done(list(), listed());
    host.done(fill(&json!({"colour": "red"})), nothing());
    assert_eq!(host.run(&["answer", "45", "colour=red"]).code, 0);
}

#[test]
fn an_answer_that_is_neither_is_refused_before_anybody_is_asked() {
    let said = FakeHost::new().run(&["answer", "45", "colour=red", "blue"]);
    assert_eq!(said.code, 2);
    let said = FakeHost::new().run(&["answer", "45", "--form", "[1]"]);
    assert_eq!(said.code, 2);
    let said = FakeHost::new().run(&["answer", "45"]);
    assert_eq!(said.code, 2);
}

fn attached(talk: &mut Talk) {
    talk.person();
    talk.row(1, json!({"kind": "prompt", "text": "go"}));
    let mut row = question();
    row["kind"] = json!("decision_opened");
    talk.row(2, row);
    talk.caught_up(1, 2, 0);
}

fn request() -> Value {
    json!({"verb": "attach", "name": "demo", "thread": null, "after": null, "follow": true})
}

#[test]
fn a_person_fills_in_a_form_field_by_field() {
    let host = FakeHost::new();
    host.on(request(), |talk| {
        attached(talk);
        let values = json!({"colour_custom": "teal", "sizes": "1,2", "count": "3"});
        talk.hears(&json!({"say": "answer_form", "decision": 45,
            "answer": {"do": "fill", "values": values}}));
        talk.answered(3, 45, "colour_custom=teal count=3 sizes=s,m");
        talk.row(
            4,
            json!({"kind": "turn_ended", "outcome": "done", "note": null}),
        );
        talk.is_left();
    });
    let mut person = Person::at(&host.program(&["attach", "demo"]));
    person
        .sees("Before I begin")
        .sees("Which colour? [1-2]: ")
        .types("teal\n")
        .sees("Which sizes? [any of 1-2, with commas; may be empty]: ")
        .types("1,2\n")
        .sees("How many? [a number]: ")
        .types("none\n")
        .sees("`count` is a whole number from 1 on")
        .sees("How many? [a number]: ")
        .types("3\n")
        .sees("→ colour_custom=teal")
        .types("\u{4}");
    assert_eq!(person.finish(), 0, "{}", person.seen);
}

#[test]
fn a_person_declines_a_form() {
    let host = FakeHost::new();
    host.on(request(), |talk| {
        attached(talk);
        talk.hears(&json!({"say": "answer_form", "decision": 45, "answer": {"do": "decline"}}));
        talk.answered(3, 45, "declined");
        talk.row(
            4,
            json!({"kind": "turn_ended", "outcome": "done", "note": null}),
        );
        talk.is_left();
    });
    let mut person = Person::at(&host.program(&["attach", "demo"]));
    person
        .sees("Which colour? [1-2]: ")
        .types("/no\n")
        .sees("→ declined")
        .types("\u{4}");
    assert_eq!(person.finish(), 0, "{}", person.seen);
}

#[test]
fn threads_are_parked_until_a_time_and_resumed() {
    let parked = |until: Value| {
        let threads = json!([{"thread": "tttttttttttttttt", "why": "person", "until_ms": until}]);
        json!({"result": "parking", "threads": threads})
    };
    let host = FakeHost::new();
    host.done(
        json!({"verb": "park", "name": "demo", "thread": null, "until_ms": 1_795_962_995_000_i64}),
        parked(json!(1_795_962_995_000_i64)),
    );
    let said = host.run(&["park", "demo", "--until", "2026-11-29T14:36:35Z"]);
    insta::assert_snapshot!(said.whole(), @r"
    exit 0
    --- err
    thread tttttttttttttttt is parked until 2026-11-29T14:36:35Z
    ");

    let host = FakeHost::new();
    host.done(
        json!({"verb": "resume", "name": "demo", "thread": "tttttttttttttttt"}),
        parked(Value::Null),
    );
    let said = host.run(&["resume", "demo/tttttttttttttttt"]);
    insta::assert_snapshot!(said.whole(), @r"
    exit 0
    --- err
    thread tttttttttttttttt goes on
    ");
    assert_eq!(
        FakeHost::new()
            .run(&["park", "demo", "--until", "soon"])
            .code,
        2
    );
}
