//! ACP content blocks to what a journal row shows, with a bound on how much of it.
//!
//! The line itself is kept whole beside the row, so what is cut here is not lost.

use box_api::thread::ToolContent;
use serde_json::{Value, json};

/// Longest text of one piece of a row. A file larger than this is not read in a terminal.
pub const PIECE_BYTES_MAX: usize = 256 << 10;
/// All pieces of a row together; a control frame holds 16 MiB.
const ROW_BYTES_MAX: usize = 1 << 20;
/// Pieces of one row.
const PIECES_MAX: usize = 64;

/// Cuts `text` to at most `bytes_max` bytes, at a character, and says how much is missing.
pub fn shorten(text: String, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text;
    }
    let kept = text.floor_char_boundary(bytes_max);
    format!("{}… ({} more bytes)", &text[..kept], text.len() - kept)
}

/// `value` if it is small, else what it was and how much of it there is.
pub fn whole_or_size(value: Value) -> Value {
    let bytes = size(&value);
    if bytes <= PIECE_BYTES_MAX {
        return value;
    }
    let kind = value["sessionUpdate"]
        .as_str()
        .or_else(|| value["type"].as_str());
    json!({ "type": kind, "bytes": bytes, "left_out": true })
}

/// The `content` array of a tool call.
pub fn tool_content(content: &Value) -> Vec<ToolContent> {
    let mut room = ROW_BYTES_MAX;
    let blocks = content.as_array().map(Vec::as_slice).unwrap_or_default();
    blocks
        .iter()
        .take(PIECES_MAX)
        .map(|block| piece(block, &mut room))
        .collect()
}

/// The text of a content block, if it is one of text.
pub fn text(block: &Value) -> Option<&str> {
    block["text"].as_str().filter(|_| block["type"] == "text")
}

fn piece(block: &Value, room: &mut usize) -> ToolContent {
    let mut cut = |text: &str| {
        let cut = shorten(text.to_owned(), PIECE_BYTES_MAX.min(*room));
        *room = room.saturating_sub(cut.len());
        cut
    };
    if let Some(text) = text(&block["content"]).filter(|_| block["type"] == "content") {
        return ToolContent::Text { text: cut(text) };
    }
    if let ("diff", Some(path), Some(new_text)) = (
        block["type"].as_str().unwrap_or_default(),
        block["path"].as_str(),
        block["newText"].as_str(),
    ) {
        return ToolContent::Diff {
            path: cut(path),
            old_text: block["oldText"].as_str().map(&mut cut),
            new_text: cut(new_text),
        };
    }
    let raw = whole_or_size(block.clone());
    *room = room.saturating_sub(size(&raw));
    ToolContent::Other { raw }
}

fn size(value: &Value) -> usize {
    serde_json::to_string(value).map_or(0, |text| text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_diffs_are_shown_and_the_rest_is_kept() {
        let content = json!([
            {"type":"content","content":{"type":"text","text":"done"}},
            {"type":"diff","path":"/workspace/a","oldText":null,"newText":"x"},
            {"type":"terminal","terminalId":"t1"},
            "not even an object",
        ]);
        assert_eq!(
            tool_content(&content),
            [
                ToolContent::Text {
                    text: "done".into()
                },
                ToolContent::Diff {
                    path: "/workspace/a".into(),
                    old_text: None,
                    new_text: "x".into()
                },
                ToolContent::Other {
                    raw: json!({"type":"terminal","terminalId":"t1"})
                },
                ToolContent::Other {
                    raw: json!("not even an object")
                },
            ]
        );
        assert_eq!(tool_content(&Value::Null), []);
    }

    #[test]
    fn a_row_stays_small_whatever_the_agent_sends() {
        let image =
            json!({"type":"content","content":{"type":"image","data":"A".repeat(300 << 10)}});
        let text = json!({"type":"content","content":{"type":"text","text":"ä".repeat(200 << 10)}});
        let content = Value::Array([vec![image; 2], vec![text; 20]].concat());
        let shown = serde_json::to_string(&tool_content(&content)).unwrap();
        assert!(shown.len() < 2 << 20, "{}", shown.len());
        assert!(shown.contains(r#""left_out":true"#));
    }
}
