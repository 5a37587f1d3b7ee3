//! Notifications outside the protocol that say what it leaves out.

use serde_json::Value;

/// What an extension notification tells the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Extension {
    /// A usage limit is reached; when it ends, UTC milliseconds.
    LimitReached { resets_at_ms: Option<i64> },
    /// How many tasks the agent runs in the background now.
    Background { tasks: u32 },
    /// Nothing the host acts on.
    Other,
}

/// Reads a notification whose method begins with `_`.
pub fn read(method: &str, params: &Value) -> Extension {
    let message = &params["message"];
    match (
        method,
        message["type"].as_str(),
        message["subtype"].as_str(),
    ) {
        ("_claude/sdkMessage", Some("rate_limit_event"), _) => {
            let info = &message["rate_limit_info"];
            if info["status"] == "rejected" {
                let seconds = info["resetsAt"].as_i64();
                Extension::LimitReached {
                    resets_at_ms: seconds.and_then(|s| s.checked_mul(1000)),
                }
            } else {
                Extension::Other
            }
        }
        ("_claude/sdkMessage", Some("system"), Some("background_tasks_changed")) => {
            let tasks = message["tasks"].as_array().map_or(0, Vec::len);
            Extension::Background {
                tasks: u32::try_from(tasks).unwrap_or(u32::MAX),
            }
        }
        (_, _, _) => Extension::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
    fn background_tasks_are_counted() {
        let params = json!({"message":{"type":"system","subtype":"background_tasks_changed",
            "tasks":[{"task_id":"a"},{"task_id":"b"}]}});
        assert_eq!(
            read("_claude/sdkMessage", &params),
            Extension::Background { tasks: 2 }
        );
    }
}
