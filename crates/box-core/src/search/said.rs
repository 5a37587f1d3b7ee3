//! What a row of a journal says that somebody may look for.

use box_api::search::SearchKind;
use box_api::thread::{Item, ToolContent};

/// What is searched of one row, in bytes: its beginning, and the end of what is longer.
const TEXT_BYTES_MAX: usize = 16 << 10;
/// Of a long text, this much is of its end: where a command says what went wrong.
const END_BYTES: usize = 4 << 10;
/// A text that may still grow is not looked at again past this.
const FULL_BYTES: i64 = 12 << 10;

/// What a row says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) kind: SearchKind,
    pub(super) text: String,
}

/// `None` for a row with nothing anybody would look for. Thoughts are not searched.
pub(super) fn said(item: &Item) -> Option<Said> {
    let (kind, text) = match item {
        Item::Prompt { text, .. } | Item::Steered { text, .. } => {
            (SearchKind::Prompt, text.clone())
        }
        Item::Text { text } => (SearchKind::Text, text.clone()),
        Item::ToolCall {
            title,
            tool,
            content,
            ..
        } => {
            let kind = if tool == "execute" {
                SearchKind::Command
            } else {
                SearchKind::Tool
            };
            (kind, of_tool(title, content))
        }
        Item::ToolUpdate { title, content, .. } => {
            let title = title.as_deref().unwrap_or_default();
            (SearchKind::Tool, of_tool(title, content))
        }
        Item::Command {
            command, output, ..
        } => (SearchKind::Command, format!("{command}\n{output}")),
        Item::Woke { summary, said, .. } => {
            let said = said.as_deref().unwrap_or_default();
            (SearchKind::Tool, format!("{summary}\n{said}"))
        }
        Item::Thought { .. }
        | Item::Plan { .. }
        | Item::DecisionOpened(_)
        | Item::DecisionClosed { .. }
        | Item::TurnEnded { .. }
        | Item::Queue { .. }
        | Item::OptionSet { .. }
        | Item::Background { .. }
        | Item::Forked { .. }
        | Item::WentBack { .. }
        | Item::Notice { .. }
        | Item::Mode { .. }
        | Item::Usage { .. }
        | Item::Detail { .. }
        | Item::Unknown { .. } => return None,
    };
    (!text.trim().is_empty()).then_some(Said { kind, text })
}

fn of_tool(title: &str, content: &[ToolContent]) -> String {
    let mut text = title.to_owned();
    for piece in content {
        match piece {
            ToolContent::Text { text: piece } => {
                text.push('\n');
                text.push_str(piece);
            }
            ToolContent::Diff { path, new_text, .. } => {
                text.push('\n');
                text.push_str(path);
                text.push('\n');
                text.push_str(new_text);
            }
            ToolContent::Other { .. } => {}
        }
    }
    text
}

/// The part of a text that is searched. Cut between words, so that no half of a secret is left that
/// does not look like one.
pub(super) fn cut(text: &str) -> String {
    if text.len() <= TEXT_BYTES_MAX {
        return text.to_owned();
    }
    let head = &text[..text.floor_char_boundary(TEXT_BYTES_MAX - END_BYTES)];
    let tail = &text[text.ceil_char_boundary(text.len() - END_BYTES)..];
    let head = head.rfind(char::is_whitespace).map_or("", |at| &head[..at]);
    let tail = tail.find(char::is_whitespace).map_or("", |at| &tail[at..]);
    format!("{head} …{tail}")
}

/// Whether so many bytes are all that is searched of a text that grows.
pub(super) fn is_full(bytes: i64) -> bool {
    bytes >= FULL_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_words() {
        let text = "word ".repeat(10_000) + "the-end";
        let cut = cut(&text);
        assert!(cut.len() <= TEXT_BYTES_MAX, "{}", cut.len());
        assert!(cut.starts_with("word word"));
        assert!(cut.ends_with(" the-end"));
        let middle = cut.split('…').collect::<Vec<_>>();
        assert!(
            middle[0].trim_end().ends_with("word"),
            "{}",
            middle[0].len()
        );
        assert!(middle[1].starts_with(" word"));
    }

    #[test]
    fn one_word_without_end_is_left_out() {
        assert_eq!(cut(&"x".repeat(100_000)), " …");
    }

    #[test]
    fn what_a_tool_was_called_and_gave_back_is_one_text() {
        let call = Item::ToolCall {
            call: "1".into(),
            title: "ls -l".into(),
            tool: "execute".into(),
            status: box_api::thread::ToolStatus::Completed,
            content: vec![ToolContent::Text {
                text: "total 0".into(),
            }],
        };
        let said = said(&call).unwrap();
        assert_eq!(said.kind, SearchKind::Command);
        assert_eq!(said.text, "ls -l\ntotal 0");
    }
}
