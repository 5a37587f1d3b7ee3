//! How rows and growth are made small enough for a frame.

use box_api::page::{LogUpdate, PageRow, ROW_BYTES_MAX};
use box_api::thread::{Item, JournalRow};
use serde_json::Value;

/// Growth that is longer comes in several updates.
const GROWTH_BYTES_MAX: usize = 32 << 10;
/// Strings in a large row are cut to these, one after the other, until it fits.
const STRING_BYTES_MAX: [usize; 2] = [4 << 10, 1 << 10];
/// Most a list in a large row has.
const ITEMS_MAX: usize = 200;
/// What stands where something was cut out.
const GAP: &str = "\n…\n";

/// A row as a page gets it.
pub(crate) fn page_row(row: JournalRow) -> PageRow {
    let (item, text_from) = match row.item {
        Item::Text { text } => {
            let (text, from) = end(text);
            (Item::Text { text }, from)
        }
        Item::Thought { text } => {
            let (text, from) = end(text);
            (Item::Thought { text }, from)
        }
        // A person reads all of what they answer.
        item @ Item::DecisionOpened(_) => (item, 0),
        item @ (Item::Prompt { .. }
        | Item::ToolCall { .. }
        | Item::ToolUpdate { .. }
        | Item::Plan { .. }
        | Item::DecisionClosed { .. }
        | Item::TurnEnded { .. }
        | Item::Command { .. }
        | Item::Steered { .. }
        | Item::Queue { .. }
        | Item::OptionSet { .. }
        | Item::Background { .. }
        | Item::Woke { .. }
        | Item::Forked { .. }
        | Item::WentBack { .. }
        | Item::Notice { .. }
        | Item::Mode { .. }
        | Item::Usage { .. }
        | Item::Detail { .. }
        | Item::Unknown { .. }) => return shortened(row.seq, row.at_ms, item),
    };
    PageRow {
        row: JournalRow {
            seq: row.seq,
            at_ms: row.at_ms,
            item,
        },
        text_from,
        cut: false,
    }
}

/// The end of a text that can grow, and where it begins in the whole.
fn end(text: String) -> (String, u64) {
    if text.len() <= ROW_BYTES_MAX {
        return (text, 0);
    }
    let at = text.ceil_char_boundary(text.len() - ROW_BYTES_MAX);
    (text[at..].to_owned(), at as u64)
}

fn shortened(seq: u64, at_ms: i64, item: Item) -> PageRow {
    let whole = |item: Item, cut: bool| PageRow {
        row: JournalRow { seq, at_ms, item },
        text_from: 0,
        cut,
    };
    let Ok(mut value) = serde_json::to_value(&item) else {
        return whole(item, false);
    };
    if json_bytes(&value) <= ROW_BYTES_MAX {
        return whole(item, false);
    }
    for string_bytes_max in STRING_BYTES_MAX {
        cut(&mut value, string_bytes_max);
        if json_bytes(&value) <= ROW_BYTES_MAX {
            break;
        }
    }
    match serde_json::from_value(value) {
        Ok(item) => whole(item, true),
        Err(_) => whole(item, false),
    }
}

fn json_bytes(value: &Value) -> usize {
    value.to_string().len()
}

fn cut(value: &mut Value, string_bytes_max: usize) {
    match value {
        Value::String(text) if text.len() > string_bytes_max => {
            let half = string_bytes_max / 2;
            let head = text.floor_char_boundary(half);
            let tail = text.ceil_char_boundary(text.len() - half);
            *text = format!("{}{GAP}{}", &text[..head], &text[tail..]);
        }
        Value::Array(items) => {
            items.truncate(ITEMS_MAX);
            for item in items {
                cut(item, string_bytes_max);
            }
        }
        Value::Object(fields) => fields
            .values_mut()
            .for_each(|field| cut(field, string_bytes_max)),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Growth in pieces.
pub(super) fn grown(seq: u64, from_byte: u64, text: &str) -> Vec<LogUpdate> {
    let (mut pieces, mut rest, mut from_byte) = (Vec::new(), text, from_byte);
    while !rest.is_empty() {
        let at = rest.floor_char_boundary(GROWTH_BYTES_MAX);
        let (piece, left) = rest.split_at(at);
        pieces.push(LogUpdate::Grew {
            seq,
            from_byte,
            text: piece.to_owned(),
        });
        from_byte += piece.len() as u64;
        rest = left;
    }
    pieces
}

/// How much text an item has that can grow.
pub(super) fn text_bytes(item: &Item) -> u64 {
    if let Item::Text { text } | Item::Thought { text } = item {
        text.len() as u64
    } else {
        0
    }
}

/// Roughly what an update takes in a frame.
pub(super) fn size(update: &LogUpdate) -> usize {
    const FRAME: usize = 64;
    FRAME
        + match update {
            LogUpdate::Grew { text, .. } => text.len(),
            LogUpdate::Row(row) => serde_json::to_string(&row.row).map_or(0, |text| text.len()),
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use box_api::thread::{ToolContent, ToolStatus};

    #[test]
    fn a_large_row_is_cut_and_says_so() {
        let big = "x".repeat(4 * ROW_BYTES_MAX);
        let row = JournalRow {
            seq: 1,
            at_ms: 2,
            item: Item::ToolCall {
                call: "c1".into(),
                title: "ls".into(),
                tool: "execute".into(),
                status: ToolStatus::Completed,
                content: vec![ToolContent::Text {
                    text: format!("a{big}z"),
                }],
            },
        };
        let small = page_row(row.clone());
        assert!(small.cut);
        let text = serde_json::to_string(&small.row).unwrap();
        assert!(text.len() <= ROW_BYTES_MAX && text.contains("\"ax") && text.contains("xz\""));
        let plain = JournalRow {
            item: Item::Notice {
                text: "short".into(),
            },
            ..row
        };
        assert_eq!(
            page_row(plain.clone()),
            PageRow {
                row: plain,
                text_from: 0,
                cut: false
            }
        );
    }

    #[test]
    fn pieces_of_growth_are_the_growth() {
        let text = "aä€".repeat(GROWTH_BYTES_MAX);
        let pieces = grown(3, 5, &text);
        assert!(pieces.len() > 1);
        let (mut whole, mut at) = (String::new(), 5);
        for piece in pieces {
            let LogUpdate::Grew {
                seq,
                from_byte,
                text,
            } = piece
            else {
                panic!("a row")
            };
            assert_eq!((seq, from_byte), (3, at));
            assert!(text.len() <= GROWTH_BYTES_MAX);
            at += text.len() as u64;
            whole.push_str(&text);
        }
        assert_eq!(whole, text);
    }
}
