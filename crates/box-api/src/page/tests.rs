//! A sample of each thing the page and the host say to each other: read, and written as it was.

use super::{
    AnswerAsk, Begun, ClientFrame, Doctor, LogPage, Me, NewBoxAsk, Pair, ParkAsk, RemoveAsk,
    RowsPage, RunAsk, ServerFrame, SignIns,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const THREAD: &str = "aaaaaaaaaaaaaaaa";
const BOX: &str = "bbbbbbbbbbbbbbbb";

/// Reads a sample and writes it again.
fn again<T: DeserializeOwned + Serialize>(sample: &Value) -> Value {
    let read: T =
        serde_json::from_value(sample.clone()).unwrap_or_else(|error| panic!("{sample}: {error}"));
    serde_json::to_value(read).unwrap()
}

fn cursor(seq: u64) -> Value {
    json!({ "epoch": 1, "seq": seq, "bytes": 0 })
}

fn row(seq: u64) -> Value {
    json!({
        "seq": seq, "at_ms": 1_790_000_000_000_i64, "kind": "prompt", "text": "fix the test",
        "text_from": 0, "cut": false,
    })
}

#[test]
fn what_the_host_sends_is_as_written_here() {
    let problem = json!({ "type": "decision-over", "kind": "failed", "title": "decision 7 was answered by uid:1000: `once`" });
    let samples = [
        json!({ "frame": "hello", "protocol": 1, "build": "0.1.0+abc", "started_at_ms": 1, "now_ms": 2 }),
        json!({ "frame": "boxes", "sub": 1, "version": 1, "whole": true, "gone": [], "boxes": [{
            "id": BOX, "name": "demo", "title": null, "state": "running", "frozen": false,
            "created_at_ms": 1, "running": 1, "asks": 0, "threads": 1, "problem": null,
        }] }),
        json!({ "frame": "threads", "sub": 2, "version": 3, "whole": false, "threads": [], "gone": [THREAD] }),
        json!({ "frame": "decisions", "sub": 3, "version": 2, "whole": false, "decisions": [], "gone": [7] }),
        json!({ "frame": "log", "sub": 4, "start": "tail", "from": cursor(0), "to": cursor(1), "older": false,
            "updates": [{ "event": "row", "seq": 1, "at_ms": 2, "kind": "text", "text": "Hello", "text_from": 0, "cut": false },
                        { "event": "grew", "seq": 1, "from_byte": 5, "text": " you" }] }),
        json!({ "frame": "result", "cid": "c1" }),
        json!({ "frame": "result", "cid": "c2", "problem": problem }),
        json!({ "frame": "over", "sub": 4, "problem": problem }),
        json!({ "frame": "ping", "now_ms": 5 }),
        json!({ "frame": "bye", "why": "this browser was signed out" }),
    ];
    for sample in samples {
        assert_eq!(again::<ServerFrame>(&sample), sample);
    }
    let page = json!({ "epoch": 1, "rows": [row(3)], "older": true });
    assert_eq!(again::<RowsPage>(&page), page);
    let me = json!({ "build": "0.1.0", "protocol": 1, "owner": "uid:1000", "tier": "admin", "sign_in": "k3xq7m2a", "now_ms": 1 });
    assert_eq!(again::<Me>(&me), me);
    let sign_ins = json!({ "sign_ins": [{ "id": "k3xq7m2a", "owner": "uid:0", "agent": "Test/1.0", "made_at_ms": 1, "seen_at_ms": 2, "ends_at_ms": 3 }] });
    assert_eq!(again::<SignIns>(&sign_ins), sign_ins);
    let begun = json!({ "box_id": BOX, "name": "demo", "thread": THREAD });
    assert_eq!(again::<Begun>(&begun), begun);
    let doctor = json!({ "findings": [{ "what": "engine", "tint": "good", "text": "boxes are made by `native`" }] });
    assert_eq!(again::<Doctor>(&doctor), doctor);
}

#[test]
fn what_a_page_sends_is_as_written_here() {
    let samples = [
        json!({ "frame": "sub", "sub": 1, "topic": { "topic": "boxes" } }),
        json!({ "frame": "sub", "sub": 2, "topic": { "topic": "thread", "thread": THREAD, "after": cursor(9) } }),
        json!({ "frame": "unsub", "sub": 2 }),
        json!({ "frame": "cmd", "cid": "c1", "command": { "do": "thread", "thread": THREAD, "act": { "act": "prompt", "text": "go on" } } }),
        json!({ "frame": "cmd", "cid": "c2", "command": { "do": "answer", "decision": 7, "option": "once" } }),
        json!({ "frame": "cmd", "cid": "c3", "command": { "do": "answer_form", "decision": 8, "answer": { "do": "decline" } } }),
        json!({ "frame": "ping" }),
        json!({ "frame": "front", "thread": THREAD }),
    ];
    for sample in samples {
        assert_eq!(again::<ClientFrame>(&sample), sample);
    }
    let answer = json!({ "option": "once" });
    assert_eq!(again::<AnswerAsk>(&answer), answer);
    let pair = json!({ "code": "v" });
    assert_eq!(again::<Pair>(&pair), pair);
    let least =
        json!({ "frame": "sub", "sub": 1, "topic": { "topic": "thread", "thread": THREAD } });
    assert!(serde_json::from_value::<ClientFrame>(least).is_ok());
}

#[test]
fn what_is_left_out_has_a_default_and_what_is_unknown_is_refused() {
    let new: NewBoxAsk = serde_json::from_value(json!({ "name": "demo" })).unwrap();
    assert_eq!((new.allow.len(), new.limits), (0, None));
    let run = json!({ "agent": "demo", "prompt": "hi" });
    assert!(!serde_json::from_value::<RunAsk>(run).unwrap().allow_all);
    assert!(serde_json::from_value::<RemoveAsk>(json!({})).is_ok());
    assert!(serde_json::from_value::<ParkAsk>(json!({})).is_ok());
    for (odd, name) in [
        (json!({ "name": "demo", "devices": [] }), "devices"),
        (json!({ "name": "a/b" }), "name"),
    ] {
        let error = serde_json::from_value::<NewBoxAsk>(odd)
            .unwrap_err()
            .to_string();
        assert!(error.contains(name), "{error}");
    }
}

#[test]
fn a_log_page_is_the_twin_of_a_log_frame() {
    let page = json!({
        "start": "cursor", "from": cursor(1), "to": cursor(2), "updates": [row(2)], "older": false,
        "head": { "open": [], "shown": null },
    });
    let fields =
        |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
    let frame = json!({ "frame": "log", "sub": 1, "start": "cursor", "from": cursor(1), "to": cursor(2), "updates": [], "older": false });
    let frame: ServerFrame = serde_json::from_value(frame).unwrap();
    let mut shared = fields(&serde_json::to_value(frame).unwrap());
    shared.retain(|name| name != "frame" && name != "sub");
    let all = fields(&page);
    assert!(shared.iter().all(|name| all.contains(name)), "{shared:?}");
    assert!(
        serde_json::from_value::<LogPage>(page).is_err(),
        "a head has its thread"
    );
}
