//! A line of Claude Code: `{"type":"user"|"assistant","message":{…},"timestamp":…,"sessionId":…}`,
//! `{"type":"summary","summary":…}`, and bookkeeping of its own.

use super::rows::Rows;
use box_api::thread::ToolStatus;
use serde_json::Value;

/// Takes a line; gives what the conversation is called, if it says.
pub(super) fn take(line: &Value, rows: &mut Rows) -> Option<String> {
    rows.at(&line["timestamp"]);
    let is = |key: &str| line[key].as_bool() == Some(true);
    match line["type"].as_str().unwrap_or_default() {
        "summary" => rows.call_it(line["summary"].as_str().unwrap_or_default()),
        "custom-title" => rows.call_it(line["customTitle"].as_str().unwrap_or_default()),
        "ai-title" => rows.call_it(line["aiTitle"].as_str().unwrap_or_default()),
        // What a helper of the agent did, and what the program said to it, is nobody's prompt.
        "user" if !is("isSidechain") && !is("isMeta") => user(&line["message"]["content"], rows),
        "assistant" if !is("isSidechain") => assistant(&line["message"]["content"], rows),
        _ => {}
    }
    line["sessionId"].as_str().map(str::to_owned)
}

fn user(content: &Value, rows: &mut Rows) {
    if let Some(text) = content.as_str() {
        return rows.prompt(text);
    }
    let mut said = Vec::new();
    for block in blocks(content) {
        match block["type"].as_str().unwrap_or_default() {
            "text" => said.push(block["text"].as_str().unwrap_or_default().to_owned()),
            "image" => said.push("[an image]".to_owned()),
            "tool_result" => {
                let call = block["tool_use_id"].as_str().unwrap_or_default();
                rows.called(call, status_of(block), &text_of(&block["content"]));
            }
            _ => {}
        }
    }
    rows.prompt(&said.join("\n"));
}

fn status_of(result: &Value) -> ToolStatus {
    match result["is_error"].as_bool() {
        Some(true) => ToolStatus::Failed,
        Some(false) | None => ToolStatus::Completed,
    }
}

fn assistant(content: &Value, rows: &mut Rows) {
    for block in blocks(content) {
        match block["type"].as_str().unwrap_or_default() {
            "text" => rows.text(block["text"].as_str().unwrap_or_default()),
            "thinking" => rows.thought(block["thinking"].as_str().unwrap_or_default()),
            "tool_use" => rows.call(
                block["id"].as_str().unwrap_or_default(),
                block["name"].as_str().unwrap_or_default(),
                &block["input"],
            ),
            _ => {}
        }
    }
}

fn blocks(content: &Value) -> impl Iterator<Item = &Value> {
    content.as_array().into_iter().flatten()
}

fn text_of(content: &Value) -> String {
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    let texts = blocks(content).filter_map(|block| block["text"].as_str());
    texts.collect::<Vec<_>>().join("\n")
}
