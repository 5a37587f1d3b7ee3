//! What a client can get wrong.

use crate::client::{Answers, Client, Handled};
use serde_json::{Value, json};

const YES: Answers = Answers {
    permission: "allow_once",
    form: Some("error"),
};

#[test]
fn what_it_does_not_know_is_refused_by_code() {
    let mut client = Client::start("default");
    let mut code =
        |method: &str, params: &Value| client.call(method, params).unwrap_err()["code"].clone();
    assert_eq!(code("session/load", &json!({ "sessionId": "x" })), -32601);
    assert_eq!(code("no/such", &json!({})), -32601);
    assert_eq!(
        code("session/prompt", &json!({ "sessionId": "x", "prompt": [] })),
        -32002
    );
    assert_eq!(
        code(
            "session/set_mode",
            &json!({ "sessionId": "x", "modeId": "default" })
        ),
        -32002
    );
    assert_eq!(code("session/new", &json!({ "cwd": "relative" })), -32602);
    assert_eq!(
        code("session/new", &json!({ "cwd": "/no/such/folder" })),
        -32602
    );
    let mode = json!({ "sessionId": client.session, "modeId": "yolo" });
    assert_eq!(
        client.call("session/set_mode", &mode).unwrap_err()["code"],
        -32602
    );
}

#[test]
fn garbage_and_far_too_long_lines_are_answered_and_passed_over() {
    let mut client = Client::start("bypassPermissions");
    client.send_line("not json");
    assert_eq!(client.next()["error"]["code"], -32700);
    client.send_line(&"x".repeat(33 << 20));
    assert_eq!(client.next()["error"]["code"], -32700);
    assert_eq!(client.turn(YES, |_, _| Handled::No).stop_reason, "end_turn");
}

#[test]
fn a_second_prompt_waits_for_the_first() {
    let mut client = Client::start("bypassPermissions");
    let mut second = None;
    let first = client.turn(YES, |client, _| {
        if second.is_none() {
            second = Some(client.prompt());
        }
        Handled::No
    });
    assert_eq!(first.stop_reason, "end_turn");
    loop {
        let message = client.next();
        if message["id"] == second.unwrap() {
            assert_eq!(message["result"]["stopReason"], "end_turn");
            return;
        }
    }
}

#[test]
fn a_mode_set_in_mid_turn_counts_at_once() {
    let mut client = Client::start("default");
    let id = client.prompt();
    let mode = json!({ "sessionId": client.session, "modeId": "bypassPermissions" });
    let set = client.request("session/set_mode", &mode);
    let mut was_set = false;
    loop {
        let message = client.next();
        was_set |= message["id"] == set;
        let asks = message["method"].is_string() && message["id"].is_number();
        assert!(!asks, "{message}");
        if message["id"] == id {
            break;
        }
    }
    assert!(was_set);
}

#[test]
fn when_the_client_hangs_up_it_ends() {
    let mut client = Client::start("default");
    client.prompt();
    assert_eq!(client.next()["method"], "session/update");
    assert_eq!(client.hang_up(), 0);
}
