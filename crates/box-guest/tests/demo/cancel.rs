//! A cancel ends the turn wherever it is.

use crate::client::{Answers, Client, Handled, Seen};
use serde_json::Value;

const YES: Answers = Answers {
    permission: "allow_once",
    form: Some("error"),
};

/// A network on which the name server never answers: a look-up lasts longer than the turn.
const SILENT: [&str; 5] = [
    "unshare",
    "--mount",
    "sh",
    "-c",
    "set -e; names=$(mktemp); echo nameserver 192.0.2.1 >$names; \
     mount --bind $names /etc/resolv.conf; rm $names; \
     ip link set lo up; ip route add default dev lo; exec \"$0\" \"$@\"",
];

/// Cancels at the first message that fits, and leaves that one unanswered.
fn cancelled_at(before: &[&str], fits: impl Fn(&Value) -> bool) -> (Client, Seen) {
    let mut client = Client::start_with(before, "default");
    let mut cancelled = false;
    let seen = client.turn(YES, |client, message| {
        if cancelled || !fits(message) {
            return Handled::No;
        }
        cancelled = true;
        client.cancel();
        Handled::Yes
    });
    assert!(cancelled, "nothing to cancel at was seen");
    (client, seen)
}

/// Its name, and what tells that it is reached.
type Place<'a> = (&'a str, &'a dyn Fn(&Value) -> bool);

fn update_is(message: &Value, kind: &str) -> bool {
    message["params"]["update"]["sessionUpdate"] == kind
}

#[test]
fn everywhere_it_waits_a_cancel_ends_the_turn() {
    let title = |message: &Value, text: &str| {
        let title = message["params"]["update"]["title"].as_str();
        title.is_some_and(|title| title.starts_with(text))
    };
    let places: [Place<'_>; 7] = [
        ("a thought", &|message| {
            update_is(message, "agent_thought_chunk")
        }),
        ("a text", &|message| {
            update_is(message, "agent_message_chunk")
        }),
        ("a write", &|message| title(message, "Write")),
        ("a run", &|message| title(message, "Run the tests:")),
        ("the question", &|message| {
            message["method"] == "elicitation/create"
        }),
        ("the permission", &|message| {
            message["method"] == "session/request_permission"
        }),
        ("the network", &|message| title(message, "Try a host")),
    ];
    for (place, fits) in places {
        let (_client, seen) = cancelled_at(&SILENT, fits);
        assert_eq!(seen.stop_reason, "cancelled", "{place}");
        let open: Vec<_> = seen
            .calls()
            .into_iter()
            .filter(|call| call.1 != "completed" && call.1 != "failed")
            .collect();
        assert_eq!(open, [], "{place}");
    }
}

#[test]
fn after_a_cancel_the_next_turn_runs_whole() {
    let (mut client, _) = cancelled_at(&["env"], |message| {
        message["method"] == "session/request_permission"
    });
    assert!(
        std::fs::read_to_string(client.file("calculator.py"))
            .unwrap()
            .contains("a // b")
    );
    let seen = client.turn(YES, |_, _| Handled::No);
    assert_eq!(seen.stop_reason, "end_turn");
    assert_eq!(seen.calls().len(), 6);
}

#[test]
fn a_late_answer_to_a_cancelled_question_is_harmless() {
    let mut client = Client::start("default");
    let mut late = None;
    client.turn(YES, |client, message| {
        if message["method"] == "elicitation/create" {
            late = Some(message["id"].clone());
            client.cancel();
            return Handled::Yes;
        }
        Handled::No
    });
    let result = serde_json::json!({ "action": "accept", "content": { "by_zero": "nothing" } });
    client.send(&serde_json::json!({ "jsonrpc": "2.0", "id": late.unwrap(), "result": result }));
    let seen = client.turn(YES, |_, _| Handled::No);
    assert_eq!(seen.stop_reason, "end_turn");
    assert!(
        std::fs::read_to_string(client.file("calculator.py"))
            .unwrap()
            .contains("raise ValueError")
    );
}

#[test]
fn a_cancel_without_a_turn_changes_nothing() {
    let mut client = Client::start("bypassPermissions");
    client.cancel();
    assert_eq!(client.turn(YES, |_, _| Handled::No).stop_reason, "end_turn");
}
