//! Notifications outside the protocol that say what it leaves out.

use super::content::{PIECE_BYTES_MAX, shorten};
use serde_json::Value;

/// Longest id of a task and longest line about one, bytes.
const TASK_BYTES_MAX: usize = 256;
const LINE_BYTES_MAX: usize = 1 << 10;

/// What an extension notification tells the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Extension {
    /// A usage limit is reached; when it ends, UTC milliseconds.
    LimitReached { resets_at_ms: Option<i64> },
    /// All tasks the agent runs in the background now.
    Background { tasks: Vec<Told> },
    /// Work in the background has something to say.
    Woke(Woke),
    /// The agent works, whether or not somebody asked.
    Works,
    /// The agent does nothing.
    Rests,
    /// Nothing the host acts on.
    Other,
}

/// A task in the background.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    pub task: String,
    pub about: String,
    pub title: String,
}

/// What a task in the background has to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Woke {
    pub task: Option<String>,
    pub summary: String,
    pub status: Option<String>,
    pub said: Option<String>,
}

/// Reads a notification whose method begins with `_`.
///
/// Claude Code (SDK 0.3.318) tells `background_tasks_changed` with every live task, each time the
/// list changes; `task_notification` when one has something to say; `session_state_changed` with
/// `running`, `requires_action` or `idle`.
pub fn read(method: &str, params: &Value) -> Extension {
    let message = &params["message"];
    match (
        method,
        message["type"].as_str(),
        message["subtype"].as_str(),
    ) {
        ("_claude/sdkMessage", Some("rate_limit_event"), _) => limit(&message["rate_limit_info"]),
        ("_claude/sdkMessage", Some("system"), Some("background_tasks_changed")) => {
            let tasks = message["tasks"].as_array().map(Vec::as_slice);
            Extension::Background {
                tasks: tasks.unwrap_or_default().iter().filter_map(task).collect(),
            }
        }
        ("_claude/sdkMessage", Some("system"), Some("task_notification")) => {
            Extension::Woke(woke(message))
        }
        ("_claude/sdkMessage", Some("system"), Some("session_state_changed")) => {
            match message["state"].as_str() {
                Some("running") => Extension::Works,
                Some("idle") => Extension::Rests,
                Some(_) | None => Extension::Other,
            }
        }
        (_, _, _) => Extension::Other,
    }
}

fn limit(info: &Value) -> Extension {
    if info["status"] != "rejected" {
        return Extension::Other;
    }
    let seconds = info["resetsAt"].as_i64();
    Extension::LimitReached {
        resets_at_ms: seconds.and_then(|s| s.checked_mul(1000)),
    }
}

/// `ambient` tasks are the agent's own and no work.
fn task(task: &Value) -> Option<Told> {
    let id = task["task_id"].as_str()?;
    if id.len() > TASK_BYTES_MAX || task["ambient"] == true {
        return None;
    }
    let about = line(&task["task_type"]).unwrap_or_else(|| "task".to_owned());
    Some(Told {
        task: id.to_owned(),
        title: line(&task["description"]).unwrap_or_else(|| about.clone()),
        about,
    })
}

fn woke(message: &Value) -> Woke {
    let task = message["task_id"].as_str();
    let said = ["result", "output"]
        .iter()
        .find_map(|key| message[key].as_str())
        .filter(|said| !said.trim().is_empty());
    Woke {
        task: task.map(|id| shorten(id.to_owned(), TASK_BYTES_MAX)),
        summary: line(&message["summary"])
            .unwrap_or_else(|| "work in the background has ended".to_owned()),
        status: line(&message["status"]),
        said: said.map(|said| shorten(said.to_owned(), PIECE_BYTES_MAX)),
    }
}

/// One line, bounded; `None` when there is nothing in it.
fn line(value: &Value) -> Option<String> {
    let line = value
        .as_str()?
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    (!line.is_empty()).then(|| shorten(line, LINE_BYTES_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sdk(message: &Value) -> Extension {
        read(
            "_claude/sdkMessage",
            &json!({ "sessionId": "s", "message": message }),
        )
    }

    #[test]
    fn a_rejected_rate_limit_tells_when_it_ends() {
        let event = |status: &str| {
            json!({"sessionId":"s","message":{"type":"rate_limit_event",
                "rate_limit_info":{"status":status,"resetsAt":1_795_962_995}}})
        };
        assert_eq!(
            read("_claude/sdkMessage", &event("rejected")),
            Extension::LimitReached {
                resets_at_ms: Some(1_795_962_995_000)
            }
        );
        assert_eq!(
            read("_claude/sdkMessage", &event("allowed")),
            Extension::Other
        );
        assert_eq!(read("_other/thing", &event("rejected")), Extension::Other);
    }

    #[test]
    fn background_tasks_are_listed_and_ambient_ones_are_none() {
        let told = sdk(
            &json!({"type":"system","subtype":"background_tasks_changed","tasks":[
            {"task_id":"a","task_type":"local_bash","description":"make\n  test"},
            {"task_id":"b","task_type":"monitor","ambient":true},
            {"description":"without an id"}]}),
        );
        let tasks = vec![Told {
            task: "a".into(),
            about: "local_bash".into(),
            title: "make test".into(),
        }];
        assert_eq!(told, Extension::Background { tasks });
    }

    #[test]
    fn a_notification_tells_what_happened_and_a_state_whether_it_works() {
        let told = sdk(
            &json!({"type":"system","subtype":"task_notification","task_id":"a",
            "status":"completed","summary":"Background command \"bg\" completed (exit code 0)",
            "output_file":"/tmp/x"}),
        );
        assert_eq!(
            told,
            Extension::Woke(Woke {
                task: Some("a".into()),
                summary: "Background command \"bg\" completed (exit code 0)".into(),
                status: Some("completed".into()),
                said: None,
            })
        );
        let state = |state: &str| {
            sdk(&json!({"type":"system","subtype":"session_state_changed","state":state}))
        };
        assert_eq!(state("running"), Extension::Works);
        assert_eq!(state("idle"), Extension::Rests);
        assert_eq!(state("requires_action"), Extension::Other);
    }
}
