//! Journals as a person reads them.

use super::*;
use box_api::thread::{ToolContent, ToolStatus};
use serde_json::json;

fn linear() -> Transcript {
    Transcript::new(Look {
        owner: "uid:7".to_owned(),
        paint: Paint::Off,
        columns: None,
        thoughts: Thoughts::Folded,
        prompts: Prompts::Shown,
    })
}

fn on_a_terminal() -> Transcript {
    Transcript::new(Look {
        owner: "uid:7".to_owned(),
        paint: Paint::Off,
        columns: Some(40),
        thoughts: Thoughts::Folded,
        prompts: Prompts::Shown,
    })
}

fn row(seq: u64, item: Item) -> ThreadUpdate {
    ThreadUpdate::Row(JournalRow {
        seq,
        at_ms: 0,
        item,
    })
}

fn tool(seq: u64, call: &str, title: &str, status: ToolStatus) -> ThreadUpdate {
    let (call, title) = (call.to_owned(), title.to_owned());
    row(
        seq,
        Item::ToolCall {
            call,
            title,
            tool: "execute".to_owned(),
            status,
            content: Vec::new(),
        },
    )
}

fn update(seq: u64, call: &str, status: ToolStatus, content: Vec<ToolContent>) -> ThreadUpdate {
    row(
        seq,
        Item::ToolUpdate {
            call: call.to_owned(),
            title: None,
            status: Some(status),
            content,
        },
    )
}

fn grew(seq: u64, text: &str) -> ThreadUpdate {
    ThreadUpdate::Grew {
        seq,
        from_byte: 0,
        text: text.to_owned(),
    }
}

fn shown(mut transcript: Transcript, updates: &[ThreadUpdate]) -> String {
    for update in updates {
        transcript.show(update);
    }
    transcript.finish();
    transcript.take()
}

/// What a terminal shows after these bytes, as far as we use it.
fn rendered(bytes: &str) -> String {
    let mut lines = vec![String::new()];
    let mut at = 0;
    let mut rest = bytes;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\n' => {
                at += 1;
                if at == lines.len() {
                    lines.push(String::new());
                }
            }
            '\r' => {}
            '\x1b' => {
                let end = rest.find(|c: char| c.is_ascii_alphabetic()).unwrap();
                let count = rest[1..end].parse().unwrap_or(1);
                match &rest[end..=end] {
                    "A" => at -= count,
                    "B" => at += count,
                    "K" => lines[at].clear(),
                    other => panic!("no such sequence: {other}"),
                }
                rest = &rest[end + 1..];
            }
            c => lines[at].push(c),
        }
    }
    lines.join("\n")
}

/// A turn as it comes over the wire.
fn whole_turn() -> Vec<ThreadUpdate> {
    let plan = |seq: u64, second: &str| {
        let entries = json!([
            {"text": "write a test", "status": "completed"}, {"text": "make it pass", "status": second},
        ]);
        json!({"event": "row", "seq": seq, "at_ms": 0, "kind": "plan", "entries": entries})
    };
    let decision = json!({
        "event": "row", "seq": 8, "at_ms": 0, "kind": "decision_opened", "decision": 3,
        "box_id": "aaaaaaaaaaaaaaaa", "thread": "aaaaaaaaaaaaaaaa", "about": "permission",
        "title": "Run `make test`", "state": {"state": "open"}, "options": [
            {"id": "a", "label": "Allow once", "kind": "allow_once"},
            {"id": "r", "label": "Reject", "kind": "reject_once"},
        ],
    });
    let updates = json!([
        {"event": "row", "seq": 1, "at_ms": 0, "kind": "prompt", "text": "add two"},
        {"event": "row", "seq": 2, "at_ms": 0, "kind": "thought", "text": "Let me look"},
        {"event": "grew", "seq": 2, "from_byte": 11, "text": " at the code first."},
        {"event": "row", "seq": 3, "at_ms": 0, "kind": "text", "text": "I will "},
        {"event": "grew", "seq": 3, "from_byte": 7, "text": "add it."},
        plan(4, "pending"),
        {"event": "row", "seq": 5, "at_ms": 0, "kind": "tool_call", "call": "c1", "title": "Edit src/lib.rs",
            "tool": "edit", "status": "pending"},
        {"event": "row", "seq": 6, "at_ms": 0, "kind": "tool_update", "call": "c1", "status": "completed",
            "content": [{"type": "diff", "path": "src/lib.rs", "old_text": "fn one() {}\n",
                "new_text": "fn one() {}\nfn two() {}\n"}]},
        {"event": "row", "seq": 7, "at_ms": 0, "kind": "tool_call", "call": "c2", "title": "make test\n# twice",
            "tool": "execute", "status": "running"},
        decision,
        {"event": "row", "seq": 9, "at_ms": 0, "kind": "decision_closed", "decision": 3,
            "state": {"state": "answered", "option": "a"}, "by": null, "note": null},
        {"event": "row", "seq": 10, "at_ms": 0, "kind": "tool_update", "call": "c2", "status": "failed",
            "content": [{"type": "text", "text": "1 failed\n"}]},
        plan(11, "in_progress"),
        plan(12, "in_progress"),
        {"event": "row", "seq": 13, "at_ms": 0, "kind": "text", "text": "Done.\n"},
        {"event": "row", "seq": 14, "at_ms": 0, "kind": "notice", "text": "the agent was started again"},
    ]);
    serde_json::from_value(updates).unwrap()
}

#[test]
fn a_turn_reads_from_top_to_bottom() {
    insta::assert_snapshot!(shown(linear(), &whole_turn()), @r"
    > add two

    ∴ Let me look at the code first. (7 words)

    I will add it.

    plan ✓ write a test
         ○ make it pass
    ✓ Edit src/lib.rs
        src/lib.rs (+1 -0)
        @@ -1 +1,2 @@
         fn one() {}
        +fn two() {}
    ⟳ make test …

    ⚠ Run `make test`
      1  Allow once
      2  Reject
      → Allow once

    ✗ make test …
        1 failed
    plan ⟳ make it pass

    Done.

    · the agent was started again
    ");
}

#[test]
fn on_a_terminal_lines_change_in_place() {
    insta::assert_snapshot!(rendered(&shown(on_a_terminal(), &whole_turn())), @r"
    > add two

    ∴ Let me look at the code f … (7 words)

    I will add it.

    plan ✓ write a test
         ○ make it pass
    ✓ Edit src/lib.rs
        src/lib.rs (+1 -0)
        @@ -1 +1,2 @@
         fn one() {}
        +fn two() {}
    ⟳ make test …

    ⚠ Run `make test`
      1  Allow once
      2  Reject
      → Allow once

    ✗ make test …
        1 failed
    plan ⟳ make it pass

    Done.

    · the agent was started again
    ");
}

#[test]
fn two_tools_at_once_are_rewritten_where_they_stand() {
    let updates = [
        tool(1, "a", "first", ToolStatus::Running),
        tool(2, "b", "second", ToolStatus::Running),
        update(3, "a", ToolStatus::Completed, Vec::new()),
        update(4, "b", ToolStatus::Interrupted, Vec::new()),
    ];
    assert_eq!(
        rendered(&shown(on_a_terminal(), &updates)),
        "✓ first\n⊘ second\n"
    );
    assert_eq!(
        shown(linear(), &updates),
        "⟳ first\n⟳ second\n✓ first\n⊘ second\n"
    );
}

#[test]
fn a_line_out_of_reach_is_told_again_when_it_ends() {
    let updates = [
        tool(1, "a", "first", ToolStatus::Pending),
        row(
            2,
            Item::Text {
                text: "meanwhile".to_owned(),
            },
        ),
        update(3, "a", ToolStatus::Running, Vec::new()),
        update(4, "a", ToolStatus::Completed, Vec::new()),
    ];
    assert_eq!(
        rendered(&shown(on_a_terminal(), &updates)),
        "○ first\n\nmeanwhile\n\n✓ first\n"
    );
}

#[test]
fn the_same_content_is_shown_once() {
    let diff = || {
        vec![ToolContent::Diff {
            path: "f".into(),
            old_text: None,
            new_text: "x\n".into(),
        }]
    };
    let updates = [
        update(1, "a", ToolStatus::Running, diff()),
        update(2, "a", ToolStatus::Completed, diff()),
    ];
    let text = shown(linear(), &updates);
    assert_eq!(text.matches("(new, +1)").count(), 1, "{text}");
}

#[test]
fn thoughts_can_be_read_in_full() {
    let look = Look {
        owner: "uid:7".to_owned(),
        paint: Paint::Off,
        columns: None,
        thoughts: Thoughts::Full,
        prompts: Prompts::Hidden,
    };
    let updates = [
        row(
            1,
            Item::Prompt {
                text: "hidden".to_owned(),
            },
        ),
        row(
            2,
            Item::Thought {
                text: "Let me ".to_owned(),
            },
        ),
        grew(2, "see."),
        tool(3, "a", "look", ToolStatus::Completed),
    ];
    assert_eq!(
        shown(Transcript::new(look), &updates),
        "∴ Let me see.\n✓ look\n"
    );
}

#[test]
fn nothing_a_box_writes_steers_the_terminal() {
    let evil = "\x1b[2J\x1b]0;x\x07";
    let content = vec![
        ToolContent::Text {
            text: evil.to_owned(),
        },
        ToolContent::Diff {
            path: evil.to_owned(),
            old_text: None,
            new_text: evil.to_owned(),
        },
    ];
    let updates = [
        row(
            1,
            Item::Text {
                text: evil.to_owned(),
            },
        ),
        row(
            2,
            Item::Thought {
                text: evil.to_owned(),
            },
        ),
        tool(3, "a", evil, ToolStatus::Running),
        update(4, "a", ToolStatus::Completed, content),
        row(
            5,
            Item::Notice {
                text: evil.to_owned(),
            },
        ),
        row(
            6,
            Item::Plan {
                entries: vec![PlanEntry {
                    text: evil.into(),
                    status: evil.into(),
                }],
            },
        ),
        row(
            7,
            Item::Unknown {
                raw: serde_json::json!({ "x": evil }),
            },
        ),
    ];
    let text = shown(linear(), &updates);
    assert!(!text.contains('\x1b') && !text.contains('\x07'), "{text:?}");
    assert!(text.contains("^[[2J"), "{text:?}");
}

#[test]
fn long_output_is_cut_and_counted() {
    let text = (1..=20)
        .map(|line| format!("line {line}"))
        .collect::<Vec<_>>()
        .join("\n");
    let updates = [update(
        1,
        "a",
        ToolStatus::Completed,
        vec![ToolContent::Text { text }],
    )];
    let text = shown(linear(), &updates);
    assert!(
        text.ends_with("    line 8\n    … 12 more lines\n"),
        "{text}"
    );
}

#[test]
fn who_answered_elsewhere_is_told() {
    let state = DecisionState::Lost {
        reason: "the agent died".to_owned(),
    };
    let updates = [
        row(
            1,
            Item::DecisionClosed {
                decision: DecisionId(1),
                state,
                by: None,
                note: None,
            },
        ),
        row(
            2,
            Item::DecisionClosed {
                decision: DecisionId(2),
                state: DecisionState::Answered {
                    option: "x".to_owned(),
                },
                by: Some("uid:1000".to_owned()),
                note: None,
            },
        ),
    ];
    assert_eq!(
        shown(linear(), &updates),
        "  → lost: the agent died\n  → x (by uid:1000)\n"
    );
}
