//! `session/update` to what a thread's journal shows.

use super::content::{PIECE_BYTES_MAX, shorten, text, tool_content, whole_or_size};
use box_api::thread::{Item, PlanEntry, ToolContent, ToolStatus};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Entries of a plan that are shown.
const PLAN_ENTRIES_MAX: usize = 200;
const TITLE_BYTES_MAX: usize = 1 << 10;
/// Longest id of a tool call; a longer one is cut, which makes it another id.
const CALL_BYTES_MAX: usize = 256;

/// Who speaks in a row that grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Voice {
    Text,
    Thought,
}

/// What an update says.
#[derive(Debug, Clone, PartialEq)]
pub enum Update {
    /// A piece of what the agent says or thinks. Pieces with the same `message` belong together.
    Say {
        voice: Voice,
        text: String,
        message: Option<String>,
    },
    /// A tool call, new or changed.
    Call(CallUpdate),
    /// The agent's own title for the thread, and the row that shows it.
    Title { title: Option<String>, item: Item },
    /// Anything that is one row as it stands.
    Row(Item),
}

/// What is known of a tool call. `tool_call`, `tool_call_update` and the call in a permission
/// request all say it in the same words, and some agents send the second without the first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CallUpdate {
    pub call: String,
    pub title: Option<String>,
    pub tool: Option<String>,
    pub status: Option<ToolStatus>,
    pub content: Vec<ToolContent>,
    /// The update, when nothing in it is for a reader.
    pub only_detail: Option<Value>,
}

impl Update {
    /// What `params` of a `session/update` say; `None` when there is nothing in it.
    pub fn parse(mut params: Value) -> Option<Self> {
        // What is no object has no parts to take.
        let update = params
            .get_mut("update")
            .map(Value::take)
            .unwrap_or_default();
        let update = match update["sessionUpdate"].as_str().unwrap_or_default() {
            "agent_message_chunk" => return say(Voice::Text, update),
            "agent_thought_chunk" => return say(Voice::Thought, update),
            "tool_call" | "tool_call_update" if update["toolCallId"].is_string() => {
                Self::Call(CallUpdate::parse(update))
            }
            "plan" if update["entries"].is_array() => Self::Row(plan(&update["entries"])),
            "current_mode_update" if update["currentModeId"].is_string() => Self::Row(Item::Mode {
                mode: short(&update["currentModeId"]),
            }),
            "usage_update" if update["used"].is_u64() => Self::Row(usage(&update)),
            "notice" if update["title"].is_string() => Self::Row(Item::Notice {
                text: short(&update["title"]),
            }),
            "session_info_update" => {
                let title = update["title"].as_str().map(str::to_owned);
                Self::Title {
                    title,
                    item: detail(update),
                }
            }
            "available_commands_update" | "config_option_update" | "user_message_chunk" => {
                Self::Row(detail(update))
            }
            _ => Self::Row(Item::Unknown {
                raw: whole_or_size(update),
            }),
        };
        Some(update)
    }
}

impl CallUpdate {
    /// Reads a `ToolCall` or `ToolCallUpdate`.
    pub fn parse(update: Value) -> Self {
        let mut content = tool_content(&update["content"]);
        if let (true, Some(output)) = (content.is_empty(), update["rawOutput"].as_str()) {
            content.push(ToolContent::Text {
                text: shorten(output.to_owned(), PIECE_BYTES_MAX),
            });
        }
        let title = ["title", "name"]
            .iter()
            .find_map(|key| update[key].as_str());
        let mut parsed = Self {
            call: shorten(text_of(&update["toolCallId"]), CALL_BYTES_MAX),
            title: title.map(|title| shorten(title.to_owned(), TITLE_BYTES_MAX)),
            tool: update["kind"]
                .as_str()
                .map(|kind| shorten(kind.to_owned(), CALL_BYTES_MAX)),
            status: status(&update["status"]),
            content,
            only_detail: None,
        };
        if parsed.title.is_none() && parsed.status.is_none() && parsed.content.is_empty() {
            parsed.only_detail = Some(whole_or_size(update));
        }
        parsed
    }
}

/// A row for programs only, bounded.
pub fn detail(raw: Value) -> Item {
    Item::Detail {
        raw: whole_or_size(raw),
    }
}

fn say(voice: Voice, update: Value) -> Option<Update> {
    let Some(text) = text(&update["content"]) else {
        return Some(Update::Row(Item::Unknown {
            raw: whole_or_size(update),
        }));
    };
    if text.is_empty() {
        return None;
    }
    let message = update["messageId"]
        .as_str()
        .map(|id| shorten(id.to_owned(), CALL_BYTES_MAX));
    Some(Update::Say {
        voice,
        text: text.to_owned(),
        message,
    })
}

fn plan(entries: &Value) -> Item {
    let entries = entries.as_array().map(Vec::as_slice).unwrap_or_default();
    let entry = |entry: &Value| PlanEntry {
        text: short(&entry["content"]),
        status: short(&entry["status"]),
    };
    Item::Plan {
        entries: entries.iter().take(PLAN_ENTRIES_MAX).map(entry).collect(),
    }
}

fn usage(update: &Value) -> Item {
    let cost = update["cost"]["amount"].as_f64().map(|amount| {
        format!("{amount:.4} {}", short(&update["cost"]["currency"]))
            .trim_end()
            .to_owned()
    });
    Item::Usage {
        used: update["used"].as_u64().unwrap_or_default(),
        size: update["size"].as_u64().unwrap_or_default(),
        cost,
    }
}

fn status(status: &Value) -> Option<ToolStatus> {
    match status.as_str()? {
        "pending" => Some(ToolStatus::Pending),
        "in_progress" => Some(ToolStatus::Running),
        "completed" => Some(ToolStatus::Completed),
        "failed" => Some(ToolStatus::Failed),
        _ => None,
    }
}

fn short(value: &Value) -> String {
    shorten(text_of(value), TITLE_BYTES_MAX)
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Whether an update's `_meta` says that the agent itself failed though the turn will end as if
/// nothing had happened (codex-acp: `_meta.codex.threadStatus.type`).
pub fn reports_system_error(params: &Value) -> bool {
    let status = |meta: &Value| meta["codex"]["threadStatus"]["type"] == "systemError";
    status(&params["_meta"]) || status(&params["update"]["_meta"])
}

/// Whether an update is part of what is said and done in a conversation, which an agent repeats when
/// it takes one up; not what it offers or how it stands.
pub fn is_said(params: &Value) -> bool {
    let kind = params["update"]["sessionUpdate"].as_str();
    matches!(
        kind,
        Some(
            "user_message_chunk"
                | "agent_message_chunk"
                | "agent_thought_chunk"
                | "tool_call"
                | "tool_call_update"
                | "plan"
                | "plan_update"
        )
    )
}

/// The stand-in for an update of another conversation than the thread's own, such as a subagent's.
pub fn foreign(params: Value) -> Item {
    detail(json!({ "other_conversation": whole_or_size(params) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(update: Value) -> Update {
        let mut params = json!({ "sessionId": "s" });
        params["update"] = update;
        Update::parse(params).unwrap()
    }

    #[test]
    fn chunks_of_text_and_thought_are_told_apart() {
        let chunk = |kind: &str| {
            parse(
                json!({"sessionUpdate":kind,"messageId":"m1","content":{"type":"text","text":"hi"}}),
            )
        };
        let say = |voice| Update::Say {
            voice,
            text: "hi".into(),
            message: Some("m1".into()),
        };
        assert_eq!(chunk("agent_message_chunk"), say(Voice::Text));
        assert_eq!(chunk("agent_thought_chunk"), say(Voice::Thought));
        let empty = json!({"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":""}}});
        assert_eq!(Update::parse(empty), None);
    }

    #[test]
    fn a_call_and_its_updates_say_the_same_things() {
        let call = parse(
            json!({"sessionUpdate":"tool_call","toolCallId":"t1","title":"touch a",
            "kind":"execute","status":"in_progress"}),
        );
        assert_eq!(
            call,
            Update::Call(CallUpdate {
                call: "t1".into(),
                title: Some("touch a".into()),
                tool: Some("execute".into()),
                status: Some(ToolStatus::Running),
                ..CallUpdate::default()
            })
        );
        let update = parse(json!({"sessionUpdate":"tool_call_update","toolCallId":"t1",
            "status":"failed","rawOutput":"User refused"}));
        assert_eq!(
            update,
            Update::Call(CallUpdate {
                call: "t1".into(),
                status: Some(ToolStatus::Failed),
                content: vec![ToolContent::Text {
                    text: "User refused".into()
                }],
                ..CallUpdate::default()
            })
        );
    }

    #[test]
    fn unknown_kinds_and_broken_known_ones_are_kept_whole() {
        for update in [
            json!({"sessionUpdate":"hologram","x":[1,2]}),
            json!({"sessionUpdate":"tool_call","title":"no id"}),
            json!({"sessionUpdate":"agent_message_chunk","content":{"type":"image","data":"AA"}}),
            json!({"sessionUpdate":"plan"}),
            json!("nothing at all"),
        ] {
            assert_eq!(
                parse(update.clone()),
                Update::Row(Item::Unknown { raw: update })
            );
        }
    }

    #[test]
    fn plans_modes_and_usage_become_rows() {
        assert_eq!(
            parse(json!({"sessionUpdate":"plan","entries":[
                {"content":"write","status":"completed","priority":"high"}]})),
            Update::Row(Item::Plan {
                entries: vec![PlanEntry {
                    text: "write".into(),
                    status: "completed".into()
                }]
            })
        );
        assert_eq!(
            parse(json!({"sessionUpdate":"current_mode_update","currentModeId":"plan"})),
            Update::Row(Item::Mode {
                mode: "plan".into()
            })
        );
        assert_eq!(
            parse(json!({"sessionUpdate":"usage_update","used":10,"size":200,
                "cost":{"amount":0.5,"currency":"USD"}})),
            Update::Row(Item::Usage {
                used: 10,
                size: 200,
                cost: Some("0.5000 USD".into())
            })
        );
    }
}
