//! A thread as HTML. Every text goes through [`escaped`]; there is no script and nothing to load but
//! one style sheet of ours.

use box_api::page::ThreadHead;
use box_api::thread::{JournalRow, ToolStatus};
use box_api::{BoxName, Problem};
use box_core::journal::Tail;
use serde_json::Value;
use std::fmt::Write as _;

const HEAD: &str = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
    <meta name=\"viewport\" content=\"width=device-width\">\
    <link rel=\"stylesheet\" href=\"/plain.css\">";

/// Kinds of rows as a reader knows them; those that are not here say nothing to a reader.
const KINDS: [(&str, &str); 17] = [
    ("prompt", "You"),
    ("steered", "You, meanwhile"),
    ("text", "Agent"),
    ("thought", "Agent, thinking"),
    ("tool_call", "Tool"),
    ("tool_update", "Tool"),
    ("plan", "Plan"),
    ("decision_opened", "Asked"),
    ("decision_closed", "Decided"),
    ("turn_ended", "End of the turn"),
    ("command", "Command"),
    ("option_set", "Option"),
    ("woke", "In the background"),
    ("forked", "Forked"),
    ("went_back", "Went back"),
    ("notice", "Host"),
    ("unknown", "Something new"),
];

/// Texts of a row, in the order they are read.
const TEXTS: [&str; 10] = [
    "title", "command", "text", "new_text", "output", "summary", "said", "value", "outcome", "note",
];

/// A page of a thread, oldest row first.
pub(super) fn thread(name: &BoxName, thread: &ThreadHead, tail: &Tail) -> String {
    let info = &thread.shown.info;
    let title = if info.title.is_empty() {
        "Thread"
    } else {
        &info.title
    };
    let mut page = format!(
        "{HEAD}<title>{0} · {1}</title></head><body><header><h1>{1}</h1><p>{2} in box {0} {3}</p>",
        escaped(name.as_str()),
        escaped(title),
        escaped(&info.agent),
        info.state.symbol(),
    );
    for decision in &thread.open {
        let _ = write!(
            page,
            "<p role=\"note\">Waits for you: {}</p>",
            escaped(&decision.title)
        );
    }
    page.push_str("</header><main>");
    if let (true, Some(first)) = (tail.older, tail.rows.first()) {
        let _ = write!(page, "<p><a href=\"?before={}\">Older</a></p>", first.seq);
    }
    for one in &tail.rows {
        row(&mut page, one);
    }
    page.push_str("<p><a href=\"?\">Newest</a></p></main></body></html>");
    page
}

fn row(page: &mut String, row: &JournalRow) {
    let Ok(item) = serde_json::to_value(&row.item) else {
        return;
    };
    let kind = item["kind"].as_str().unwrap_or_default();
    let Some((_, word)) = KINDS.iter().find(|(known, _)| *known == kind) else {
        return;
    };
    let mut texts = Vec::new();
    collect(&mut texts, &item);
    let _ = write!(page, "<article class=\"{kind}\"><h2>{word}</h2>");
    if let Some(status) = status(&item) {
        let _ = write!(page, "<p>{status}</p>");
    }
    for text in texts {
        let _ = write!(page, "<pre>{}</pre>", escaped(text));
    }
    page.push_str("</article>");
}

/// Every text of an item that a reader reads: its own, and those of what it holds.
fn collect<'i>(texts: &mut Vec<&'i str>, item: &'i Value) {
    texts.extend(
        TEXTS
            .iter()
            .filter_map(|name| item[*name].as_str())
            .filter(|text| !text.is_empty()),
    );
    for name in ["content", "entries", "options"] {
        let parts = item[name].as_array();
        for part in parts.map(Vec::as_slice).unwrap_or_default() {
            texts.extend(part["path"].as_str());
            texts.extend(part["label"].as_str());
            collect(texts, part);
        }
    }
}

fn status(item: &Value) -> Option<&'static str> {
    let status: ToolStatus = serde_json::from_value(item["status"].clone()).ok()?;
    Some(match status {
        ToolStatus::Pending => "waits",
        ToolStatus::Running => "runs",
        ToolStatus::Completed => "done",
        ToolStatus::Failed => "failed",
        ToolStatus::Interrupted => "cut off",
    })
}

/// For whoever may not read (any more).
pub(super) fn closed() -> String {
    format!(
        "{HEAD}<title>Boxes</title></head><body><main><h1>Not open here</h1><p>Open the thread in the \
         page and choose “Plain view” there: that lets this browser read it for an hour.</p>\
         <p><a href=\"/\">To the page</a></p></main></body></html>"
    )
}

pub(super) fn problem(problem: &Problem) -> String {
    format!(
        "{HEAD}<title>Boxes</title></head><body><main><h1>That did not work</h1><p>{}</p></main>\
         </body></html>",
        escaped(&problem.title)
    )
}

/// Nothing of a text is markup; what would turn the direction of what follows, or cannot be seen,
/// is shown as its number.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || is_unseen(c) => {
                let _ = write!(out, "<span class=\"unseen\">U+{:04X}</span>", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

/// Marks of direction and characters without width.
fn is_unseen(c: char) -> bool {
    matches!(c, '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use box_api::thread::Item;

    fn shown(item: Item) -> String {
        let mut page = String::new();
        row(
            &mut page,
            &JournalRow {
                seq: 1,
                at_ms: 0,
                item,
            },
        );
        page
    }

    #[test]
    fn no_text_becomes_markup() {
        let text = "<script>alert(1)</script>\"'& \u{202E}kcab\u{1b}[31m";
        let page = shown(Item::Text { text: text.into() });
        assert!(!page.contains("<script"), "{page}");
        assert!(page.contains("&lt;script&gt;alert(1)"), "{page}");
        assert!(page.contains("U+202E") && page.contains("U+001B"), "{page}");
        let page = shown(Item::ToolCall {
            call: "c".into(),
            title: "<img src=http://evil.example/x>".into(),
            tool: "execute".into(),
            status: ToolStatus::Failed,
            content: Vec::new(),
        });
        assert!(!page.contains("<img") && page.contains("failed"), "{page}");
    }

    #[test]
    fn rows_for_programs_are_left_out() {
        let raw = serde_json::json!({ "text": "hidden" });
        assert_eq!(shown(Item::Detail { raw }), "");
    }
}
