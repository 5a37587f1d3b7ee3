//! A line of Codex: `{"timestamp":…,"type":…,"payload":{…}}`. Messages are recorded twice, as what
//! the model was sent (`response_item`) and as what a person saw (`event_msg`); prompts are taken
//! from where only a person's words stand, everything else from what the model was sent.

use super::rows::Rows;
use box_api::thread::ToolStatus;
use serde_json::Value;

/// Takes a line; gives what the conversation is called, if it says.
pub(super) fn take(line: &Value, rows: &mut Rows) -> Option<String> {
    rows.at(&line["timestamp"]);
    let payload = &line["payload"];
    match line["type"].as_str().unwrap_or_default() {
        "session_meta" => return payload["id"].as_str().map(str::to_owned),
        "event_msg" if payload["type"] == "user_message" => {
            rows.prompt(payload["message"].as_str().unwrap_or_default());
        }
        "event_msg" if payload["type"] == "thread_name_updated" => {
            rows.call_it(payload["thread_name"].as_str().unwrap_or_default());
        }
        "response_item" => item(payload, rows),
        _ => {}
    }
    None
}

fn item(item: &Value, rows: &mut Rows) {
    let text = |key: &str| item[key].as_str().unwrap_or_default();
    match text("type") {
        "message" if item["role"] == "assistant" => rows.text(&joined(&item["content"])),
        "message" if item["role"] == "user" => {
            let said = joined(&item["content"]);
            if !is_by_the_program(&said) {
                rows.prompt(&said);
            }
        }
        "reasoning" => rows.thought(&joined(&item["summary"])),
        "function_call" => {
            let input = serde_json::from_str(text("arguments")).unwrap_or_default();
            rows.call(text("call_id"), text("name"), &input);
        }
        "custom_tool_call" => {
            let input = serde_json::json!({ "command": text("input") });
            rows.call(text("call_id"), text("name"), &input);
        }
        "local_shell_call" => rows.call(text("call_id"), "local_shell", &item["action"]),
        "function_call_output" | "custom_tool_call_output" => {
            let (status, output) = output(&item["output"]);
            rows.called(text("call_id"), status, &output);
        }
        _ => {}
    }
}

/// What the program says to the model in the person's name.
fn is_by_the_program(said: &str) -> bool {
    let said = said.trim_start();
    said.starts_with('<') || said.starts_with("# AGENTS.md")
}

fn joined(content: &Value) -> String {
    let parts = content.as_array().into_iter().flatten();
    let texts = parts.filter_map(|part| part["text"].as_str());
    texts.collect::<Vec<_>>().join("\n")
}

/// Older ones are JSON in a text, with the exit code beside the output.
fn output(output: &Value) -> (ToolStatus, String) {
    let whole = match output {
        Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| output.clone()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            output.clone()
        }
    };
    let text = match &whole {
        Value::String(text) => text.clone(),
        Value::Object(fields) => match fields.get("output").or_else(|| fields.get("content")) {
            Some(Value::String(text)) => text.clone(),
            Some(other) => joined(other),
            None => whole.to_string(),
        },
        Value::Array(_) => joined(&whole),
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) => whole.to_string(),
    };
    let code = whole["metadata"]["exit_code"].as_i64().unwrap_or_default();
    let failed = code != 0 || whole["success"].as_bool() == Some(false);
    let status = if failed {
        ToolStatus::Failed
    } else {
        ToolStatus::Completed
    };
    (status, text)
}
