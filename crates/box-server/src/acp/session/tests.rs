//! What an editor is told, and when.

use super::*;
use box_api::thread::JournalRow;

fn thread() -> ThreadId {
    ThreadId::parse("tttttttttttttttt").unwrap()
}

fn row(seq: u64, item: Value) -> ThreadUpdate {
    ThreadUpdate::Row(JournalRow {
        seq,
        at_ms: 0,
        item: serde_json::from_value(item).unwrap(),
    })
}

fn caught_up() -> ThreadUpdate {
    ThreadUpdate::CaughtUp {
        cursor: Cursor::default(),
    }
}

fn prompt(text: &str) -> Value {
    json!({"kind": "prompt", "text": text})
}

fn ended(outcome: &str, note: Option<&str>) -> Value {
    json!({"kind": "turn_ended", "outcome": outcome, "note": note})
}

fn permission() -> Value {
    json!({
        "kind": "decision_opened", "decision": 42, "box_id": "aaaaaaaaaaaaaaaa",
        "thread": "tttttttttttttttt", "about": "permission", "title": "touch x", "call": "c1",
        "options": [{"id": "yes", "label": "Allow", "kind": "allow_once"}],
        "state": {"state": "open"},
    })
}

/// Lines of the editor, each as short as it can be said.
fn lines(acts: Vec<Act>) -> Vec<String> {
    let short = |act| match act {
        Act::Line(line) if line["method"] == "session/update" => {
            let update = &line["params"]["update"];
            let text = &update["content"]["text"];
            format!("{} {}", update["sessionUpdate"], text)
        }
        Act::Line(line) => {
            let what = ["method", "result", "error"];
            let what = what.into_iter().find(|key| line.get(key).is_some());
            format!("{}: {}", what.unwrap(), line[what.unwrap()])
        }
        other @ (Act::Say(_) | Act::TakeUp(_)) => format!("{other:?}"),
    };
    acts.into_iter().map(short).collect()
}

#[test]
fn a_prompt_is_answered_when_its_own_turn_ends() {
    let mut session = Session::new(thread(), None);
    let mut number = 0;
    session.update(row(1, prompt("of somebody else")));
    session.update(caught_up());
    session.prompt(json!(5), "mine".to_owned());
    session.update(row(2, ended("done", None)));
    session.update(row(3, prompt("mine")));
    session.update(row(4, json!({"kind": "text", "text": "He"})));
    session.update(ThreadUpdate::Grew {
        seq: 4,
        from_byte: 1,
        text: "ello".to_owned(),
    });
    session.update(row(5, ended("cancelled", None)));
    assert_eq!(
        lines(session.take(&mut number)),
        [
            r#""user_message_chunk" "of somebody else""#,
            r#"Say(Prompt { text: "mine" })"#,
            r#""agent_message_chunk" "He""#,
            r#""agent_message_chunk" "llo""#,
            r#"result: {"stopReason":"cancelled"}"#,
        ]
    );
    session.prompt(json!(6), "more".to_owned());
    session.update(row(6, prompt("more")));
    session.update(row(7, ended("parked", Some("resets at 15:00"))));
    let acts = lines(session.take(&mut number));
    assert_eq!(
        acts[1],
        r#"error: {"code":-32603,"message":"resets at 15:00"}"#
    );
}

#[test]
fn a_loaded_thread_is_told_from_its_beginning_before_the_answer() {
    let mut session = Session::new(thread(), Some(json!(2)));
    session.update(row(1, prompt("go")));
    session.update(row(2, json!({"kind": "thought", "text": "hm"})));
    session.update(row(3, ended("done", None)));
    session.update(caught_up());
    assert_eq!(
        lines(session.take(&mut 0)),
        [
            r#""user_message_chunk" "go""#,
            r#""agent_thought_chunk" "hm""#,
            "result: {}",
        ]
    );
}

#[test]
fn whoever_is_first_answers() {
    let mut number = 0;
    let mut session = Session::new(thread(), None);
    session.update(caught_up());
    session.update(row(1, permission()));
    let asked = session.take(&mut number);
    let Act::Line(line) = &asked[0] else {
        panic!("nothing was asked: {asked:?}");
    };
    assert_eq!(line["method"], "session/request_permission");
    assert_eq!(line["params"]["options"][0]["optionId"], "yes");
    // Somebody else.
    let closed = json!({"kind": "decision_closed", "decision": 42,
        "state": {"state": "answered", "option": "yes"}, "by": "uid:7", "note": null});
    session.update(row(2, closed));
    assert_eq!(
        lines(session.take(&mut number)),
        [r#"method: "$/cancel_request""#]
    );
    assert!(!session.answered(
        1,
        &json!({"outcome": {"outcome": "selected", "optionId": "yes"}})
    ));
    // The editor.
    let mut again = permission();
    again["decision"] = json!(43);
    session.update(row(3, again));
    session.take(&mut number);
    assert!(session.answered(
        2,
        &json!({"outcome": {"outcome": "selected", "optionId": "yes"}})
    ));
    assert_eq!(
        lines(session.take(&mut number)),
        [r#"Say(Answer { decision: DecisionId(43), option: "yes" })"#]
    );
}

#[test]
fn decisions_that_are_over_are_not_asked_about_again() {
    let mut session = Session::new(thread(), Some(json!(2)));
    session.update(row(1, permission()));
    let closed = json!({"kind": "decision_closed", "decision": 42,
        "state": {"state": "cancelled"}, "by": null, "note": null});
    session.update(row(2, closed));
    session.update(caught_up());
    assert_eq!(lines(session.take(&mut 0)), ["result: {}"]);
}
