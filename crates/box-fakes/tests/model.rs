//! The model server speaks the Messages API, keeps to its script and complains aloud.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails"
)]

use box_fakes::Rig;
use box_fakes::model::{Fault, HOST, Script, Step};
use serde_json::{Value, json};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(5);

fn post(rig: &Rig, credential: &str, body: &Value) -> Child {
    let address = rig.origin(HOST).address;
    Command::new("curl")
        .args([
            "-sSN",
            "-i",
            "-m",
            "10",
            "--resolve",
            &format!("{HOST}:80:{address}"),
        ])
        .args(["-H", credential, "-H", "content-type: application/json"])
        .args([
            "-H",
            "anthropic-version: 2023-06-01",
            "-H",
            "x-claude-code-session-id: s1",
        ])
        .args([
            "-d",
            &body.to_string(),
            &format!("http://{HOST}/v1/messages?beta=true"),
        ])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn answer(child: Child) -> String {
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
}

fn ask(messages: &Value) -> Value {
    json!({"model": "m", "max_tokens": 9, "stream": true, "tools": [{"name": "Bash"}],
           "messages": messages})
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

/// The events of a stream, as their data.
fn events(answer: &str) -> Vec<Value> {
    let data = answer
        .lines()
        .filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

#[test]
fn a_scripted_message_is_streamed_as_the_api_does() {
    let rig = Rig::start().unwrap();
    let model = rig.model("REAL");
    let script = Script::on("do it").message([
        Step::thinking("hm"),
        Step::text("a text of more than one piece"),
        Step::bash("ls"),
    ]);
    model.script(script);
    let first = answer(post(
        &rig,
        "authorization: Bearer REAL",
        &ask(&json!([user("do it")])),
    ));
    assert!(first.contains("content-type: text/event-stream"), "{first}");
    let events = events(&first);
    let kinds: Vec<String> = events
        .iter()
        .map(|event| {
            let block = event["content_block"]["type"].as_str();
            let kind = block
                .or(event["delta"]["type"].as_str())
                .unwrap_or_default();
            format!("{} {kind}", event["type"].as_str().unwrap())
                .trim()
                .to_owned()
        })
        .collect();
    assert_eq!(kinds.first().unwrap(), "message_start");
    assert_eq!(kinds.last().unwrap(), "message_stop");
    for kind in ["thinking", "text", "tool_use"] {
        assert!(
            kinds.contains(&format!("content_block_start {kind}")),
            "{kinds:?}"
        );
    }
    assert!(
        kinds
            .iter()
            .filter(|kind| *kind == "content_block_delta text_delta")
            .count()
            > 1
    );
    let arguments: String = events
        .iter()
        .filter_map(|event| event["delta"]["partial_json"].as_str())
        .collect();
    assert_eq!(
        serde_json::from_str::<Value>(&arguments).unwrap()["command"],
        "ls"
    );
    assert_eq!(events[events.len() - 2]["delta"]["stop_reason"], "tool_use");
}

#[test]
fn the_next_message_comes_once_the_tool_was_run() {
    let rig = Rig::start().unwrap();
    let model = rig.model("REAL");
    let script = Script::on("do it").message([Step::bash("ls")]);
    model.script(script.message([Step::text("done")]));
    let first = answer(post(&rig, "x-api-key: REAL", &ask(&json!([user("do it")]))));
    let events = events(&first);
    let call = events
        .iter()
        .find(|event| event["content_block"]["type"] == "tool_use")
        .unwrap();
    let id = &call["content_block"]["id"];
    let block = json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "ls"}});
    let next = json!([user("do it"), {"role": "assistant", "content": [block]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "f"}]}]);
    let second = answer(post(&rig, "x-api-key: REAL", &ask(&next)));
    assert!(
        second.contains("done") && second.contains("end_turn"),
        "{second}"
    );
    let turns = model.turns();
    assert_eq!(
        turns.iter().map(|turn| turn.message).collect::<Vec<_>>(),
        [0, 1]
    );
    assert_eq!(turns[1].session.as_deref(), Some("s1"));
    assert_eq!(turns[1].tool_results, ["f"]);
    assert_eq!(model.refusals(), []);
}

#[test]
fn a_gate_holds_a_message_until_it_is_opened() {
    let rig = Rig::start().unwrap();
    let model = rig.model("REAL");
    let steps = [Step::text("before "), Step::gate("g"), Step::text("after")];
    model.script(Script::on("wait").message(steps));
    let mut running = post(
        &rig,
        "authorization: Bearer REAL",
        &ask(&json!([user("wait")])),
    );
    model.wait_at("g", SOON).unwrap();
    assert!(running.try_wait().unwrap().is_none(), "it did not wait");
    model.open("g");
    let events = events(&answer(running));
    let text: String = events
        .iter()
        .filter_map(|event| event["delta"]["text"].as_str())
        .collect();
    assert_eq!(text, "before after");
    let blocks = events
        .iter()
        .filter(|event| event["type"] == "content_block_start");
    assert_eq!(blocks.count(), 1, "text over a gate is one block");
}

#[test]
fn wrong_credentials_and_broken_requests_are_refused_and_kept() {
    let rig = Rig::start().unwrap();
    let model = rig.model("REAL");
    let good = ask(&json!([user("x")]));
    let said = answer(post(&rig, "authorization: Bearer sk-placeholder", &good));
    assert!(
        said.starts_with("HTTP/1.1 401") && said.contains("authentication_error"),
        "{said}"
    );
    let said = answer(post(&rig, "x-nothing: 1", &good));
    assert!(said.starts_with("HTTP/1.1 401"), "{said}");
    let said = answer(post(&rig, "x-api-key: REAL", &json!({"model": "m"})));
    assert!(said.starts_with("HTTP/1.1 400"), "{said}");
    let whys: Vec<String> = model
        .refusals()
        .into_iter()
        .map(|refusal| refusal.why)
        .collect();
    assert_eq!(
        whys,
        [
            "`authorization` is not the expected credential",
            "no credential",
            "`max_tokens` is missing"
        ]
    );
}

#[test]
fn faults_come_as_often_as_scripted() {
    let rig = Rig::start().unwrap();
    let model = rig.model("REAL");
    let fault = Fault::UsageLimit {
        resets_at_s: 1_800_000_000,
    };
    let steps = [Step::Fail { fault, times: 1 }, Step::text("at last")];
    model.script(Script::on("try").message(steps));
    let request = ask(&json!([user("try")]));
    let limited = answer(post(&rig, "x-api-key: REAL", &request));
    assert!(limited.starts_with("HTTP/1.1 429"), "{limited}");
    assert!(
        limited.contains("anthropic-ratelimit-unified-reset: 1800000000"),
        "{limited}"
    );
    assert!(answer(post(&rig, "x-api-key: REAL", &request)).contains("at last"));
}

#[test]
fn side_requests_move_no_script() {
    let rig = Rig::start().unwrap();
    let model = rig.model("REAL");
    model.script(Script::on("go").message([Step::text("gone")]));
    let title = json!({"model": "haiku", "max_tokens": 9, "messages": [user("title of: go")]});
    assert!(answer(post(&rig, "x-api-key: REAL", &title)).contains("A turn on the rig"));
    let suggestion = ask(
        &json!([user("go"), {"role": "assistant", "content": "gone"},
        user("[SUGGESTION MODE: what next?]")]),
    );
    answer(post(&rig, "x-api-key: REAL", &suggestion));
    assert_eq!(model.turns(), []);
    assert_eq!(model.side_requests().len(), 2);
}
