//! Conversations as they are recorded, line by line, and what becomes of them.

use super::*;
use box_api::thread::{ToolContent, ToolStatus, TurnOutcome};

const CLAUDE: &str = r#"{"type":"summary","summary":"The greeting","leafUuid":"x"}
{"type":"user","sessionId":"aaaa-bbbb","isMeta":true,"timestamp":"2026-01-02T03:04:00.000Z","message":{"role":"user","content":"<local-command>"}}
{"type":"user","sessionId":"aaaa-bbbb","timestamp":"2026-01-02T03:04:05.678Z","message":{"role":"user","content":"make a greeting"}}
{"type":"assistant","sessionId":"aaaa-bbbb","timestamp":"2026-01-02T03:04:06Z","message":{"content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"I will."},{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"echo hi\nmore"}}]}}
{"type":"assistant","isSidechain":true,"sessionId":"aaaa-bbbb","message":{"content":[{"type":"text","text":"a helper"}]}}
{"type":"user","sessionId":"aaaa-bbbb","timestamp":"2026-01-02T03:04:07Z","message":{"content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":[{"type":"text","text":"no such thing"}]}]}}
{"type":"assistant","sessionId":"aaaa-bbbb","timestamp":"2026-01-02T03:04:08Z","message":{"content":[{"type":"tool_use","id":"t2","name":"Read","input":{}}]}}
{"type":"user","sessionId":"aaaa-bbbb","timestamp":"2026-01-02T03:05:00Z","message":{"content":[{"type":"text","text":"and now?"},{"type":"image"}]}}
not json
[1]
{"type":"assistant","sessionId":"aaaa-bbbb","timestamp":"2026-01-02T03:05:01Z","message":{"content":[{"type":"text","text":"Done."}]}}
{"type":"assistant","sessionId":"aaaa-b"#;

#[test]
fn a_conversation_of_claude_becomes_rows_with_their_times() {
    let read = read("a.jsonl", CLAUDE.as_bytes(), 5).unwrap();
    assert_eq!(read.agent, Recorder::Claude);
    assert_eq!(read.known_as.as_deref(), Some("aaaa-bbbb"));
    assert_eq!(read.title, "The greeting");
    let lines: Vec<u64> = read.damaged.iter().map(|one| one.line).collect();
    assert_eq!((lines, read.damaged_count), (vec![9, 10, 12], 3));
    assert_eq!(read.began_at_ms, 1_767_323_045_678);
    let mut items = read.rows.iter().map(|(_, item)| item);
    let mut next = || items.next().unwrap();
    let (asked, hm, will) = ("make a greeting".into(), "hm".into(), "I will.".into());
    assert_eq!(*next(), Item::Prompt { text: asked });
    assert_eq!(*next(), Item::Thought { text: hm });
    assert_eq!(*next(), Item::Text { text: will });
    let Item::ToolCall {
        call,
        title,
        tool,
        status,
        ..
    } = next()
    else {
        panic!("no call");
    };
    assert_eq!(
        (call.as_str(), title.as_str(), tool.as_str()),
        ("t1", "Bash: echo hi", "execute")
    );
    assert_eq!(*status, ToolStatus::Running);
    let Item::ToolUpdate {
        status, content, ..
    } = next()
    else {
        panic!("no answer");
    };
    assert_eq!(*status, Some(ToolStatus::Failed));
    assert_eq!(
        *content,
        [ToolContent::Text {
            text: "no such thing".into()
        }]
    );
    assert!(matches!(next(), Item::ToolCall { call, .. } if call == "t2"));
    assert!(matches!(
        next(),
        Item::ToolUpdate {
            status: Some(ToolStatus::Interrupted),
            ..
        }
    ));
    assert!(matches!(
        next(),
        Item::TurnEnded {
            outcome: TurnOutcome::Done,
            ..
        }
    ));
    let (asked, done) = ("and now?\n[an image]".into(), "Done.".into());
    assert_eq!(*next(), Item::Prompt { text: asked });
    assert_eq!(*next(), Item::Text { text: done });
    assert!(matches!(next(), Item::TurnEnded { .. }));
    assert_eq!(items.next(), None);
}

const CODEX: &str = r#"{"timestamp":"2026-01-02T03:04:05.678Z","type":"session_meta","payload":{"id":"0199-abc","cwd":"/home/me"}}
{"timestamp":"2026-01-02T03:04:05.700Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>x"}]}}
{"timestamp":"2026-01-02T03:04:06Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"list it"}]}}
{"timestamp":"2026-01-02T03:04:06Z","type":"event_msg","payload":{"type":"user_message","message":"list it"}}
{"timestamp":"2026-01-02T03:04:07Z","type":"response_item","payload":{"type":"reasoning","summary":[{"type":"summary_text","text":"easy"}]}}
{"timestamp":"2026-01-02T03:04:08Z","type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{\"command\":[\"ls\",\"-l\"]}","call_id":"c1"}}
{"timestamp":"2026-01-02T03:04:09Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"{\"output\":\"a\\nb\",\"metadata\":{\"exit_code\":0}}"}}
{"timestamp":"2026-01-02T03:04:10Z","type":"event_msg","payload":{"type":"agent_message","message":"Two files."}}
{"timestamp":"2026-01-02T03:04:10Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Two files."}]}}
{"timestamp":"2026-01-02T03:04:11Z","type":"turn_context","payload":{}}
"#;

#[test]
fn a_conversation_of_codex_becomes_rows_and_nothing_twice() {
    let read = read("rollout-x.jsonl", CODEX.as_bytes(), 5).unwrap();
    assert_eq!(read.agent, Recorder::Codex);
    assert_eq!(
        (read.known_as.as_deref(), read.title.as_str()),
        (Some("0199-abc"), "list it")
    );
    assert_eq!(read.damaged_count, 0);
    let items: Vec<&Item> = read.rows.iter().map(|(_, item)| item).collect();
    assert_eq!(items.len(), 6, "{items:#?}");
    assert!(matches!(items[2], Item::ToolCall { title, .. } if title == "shell: ls -l"));
    assert!(matches!(items[3], Item::ToolUpdate { content, .. }
        if *content == [ToolContent::Text { text: "a\nb".into() }]));
    assert_eq!(
        *items[4],
        Item::Text {
            text: "Two files.".into()
        }
    );
}

#[test]
fn what_is_no_conversation_is_told_apart_from_one_that_is_empty() {
    let foreign = read("a.txt", b"hello\n{\"type\":\"x\"}\n", 5).unwrap_err();
    assert_eq!(foreign, RecordedError::Foreign("a.txt".to_owned()));
    let empty = b"{\"type\":\"assistant\",\"sessionId\":\"s\",\"message\":{}}\n{\n";
    let empty = read("b.jsonl", empty, 5).unwrap_err();
    assert_eq!(
        empty.to_string(),
        "`b.jsonl` has no prompt in it; one line of it is damaged"
    );
}

#[test]
fn a_name_that_could_lead_elsewhere_is_none_and_long_texts_are_cut() {
    let line = |id: &str, text: &str| {
        serde_json::json!({"type":"user","sessionId":id,"message":{"content":text}}).to_string()
    };
    for id in ["../../x", "", "-rf", "a/b", &"a".repeat(65)] {
        let read = read("a", line(id, "hi").as_bytes(), 5).unwrap();
        assert_eq!(read.known_as, None, "{id}");
        assert_eq!(read.began_at_ms, 5, "a line without a time");
    }
    let long = "ä".repeat(300 << 10);
    let read = read("a", line("s", &long).as_bytes(), 5).unwrap();
    let Item::Prompt { text } = &read.rows[0].1 else {
        panic!("no prompt");
    };
    assert!(text.len() < 270 << 10 && text.ends_with("bytes more)"));
    assert_eq!(read.title.chars().count(), 100);
}
