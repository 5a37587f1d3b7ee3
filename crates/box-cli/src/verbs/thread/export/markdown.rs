//! A journal as Markdown: what was asked and said as text, the rest folded or fenced.

use box_api::thread::{
    Decision, DecisionState, Item, JournalRow, PlanEntry, ThreadShown, ToolContent, ToolStatus,
    TurnOutcome,
};
use serde_json::Value;
use std::collections::HashMap;
use std::fmt::Write as _;

/// The whole document.
pub(super) fn document(shown: &ThreadShown, rows: &[JournalRow]) -> String {
    let title = one_line(&shown.info.title);
    let mut text = format!(
        "# {}\n\nBox `{}`, thread `{}`, agent {}.\n",
        if title.is_empty() { "Thread" } else { &title },
        shown.name,
        shown.info.thread,
        one_line(&shown.info.agent),
    );
    let calls = calls(rows);
    for row in rows {
        let section = section(&row.item, &calls);
        if !section.is_empty() {
            // Writing to a text cannot fail.
            let _ = write!(text, "\n{}\n", section.trim_end());
        }
    }
    text
}

/// A tool call with everything that was said of it later.
#[derive(Debug, Default)]
struct Call<'a> {
    title: &'a str,
    status: Option<ToolStatus>,
    content: Vec<&'a ToolContent>,
}

fn calls(rows: &[JournalRow]) -> HashMap<&str, Call<'_>> {
    let mut calls: HashMap<&str, Call<'_>> = HashMap::new();
    for row in rows {
        match &row.item {
            Item::ToolCall {
                call,
                title,
                status,
                content,
                ..
            } => calls
                .entry(call)
                .or_default()
                .say(Some(title), Some(*status), content),
            Item::ToolUpdate {
                call,
                title,
                status,
                content,
            } => calls
                .entry(call)
                .or_default()
                .say(title.as_deref(), *status, content),
            Item::Prompt { .. }
            | Item::Text { .. }
            | Item::Thought { .. }
            | Item::Plan { .. }
            | Item::DecisionOpened(_)
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
            | Item::Unknown { .. } => {}
        }
    }
    calls
}

impl<'a> Call<'a> {
    fn say(
        &mut self,
        title: Option<&'a str>,
        status: Option<ToolStatus>,
        content: &'a [ToolContent],
    ) {
        self.title = title.unwrap_or(self.title);
        self.status = status.or(self.status);
        if !content.is_empty() {
            self.content = content.iter().collect();
        }
    }
}

/// One row; nothing for what says nothing to a reader.
fn section(item: &Item, calls: &HashMap<&str, Call<'_>>) -> String {
    match item {
        Item::Prompt { text } | Item::Steered { text } => format!("## You\n\n{text}"),
        Item::Text { text } => text.clone(),
        Item::Thought { text } => folded("Thought", text),
        Item::ToolCall { call, title, .. } => match calls.get(call.as_str()) {
            Some(call) => tool(call),
            None => format!("- `{}`", one_line(title)),
        },
        Item::Plan { entries } => entries.iter().map(plan).collect(),
        Item::DecisionOpened(decision) => asked(decision),
        Item::DecisionClosed { state, by, .. } => closed(state, by.as_deref()),
        Item::TurnEnded { outcome, note } => ended(*outcome, note.as_deref()),
        Item::Command {
            command,
            output,
            exit,
            note,
        } => {
            let code = exit
                .map(|code| format!("[exit {code}]"))
                .or_else(|| note.clone());
            let code = code.unwrap_or_default();
            fenced("console", &format!("$ {command}\n{output}\n{code}"))
        }
        Item::OptionSet {
            option,
            value,
            refused,
        } => match refused {
            None => aside(&format!("{option} is {value}")),
            Some(why) => aside(&format!("{option} is not {value}: {why}")),
        },
        Item::Woke { summary, said, .. } => {
            let said = said.as_deref().map(|said| folded("What it said", said));
            format!("> ◍ {}\n\n{}", one_line(summary), said.unwrap_or_default())
        }
        Item::Forked { from } => aside(&format!("a fork of thread {from} from here on")),
        Item::WentBack { snapshot, .. } => aside(&format!("gone back to `{snapshot}`")),
        Item::Notice { text } => aside(text),
        Item::Mode { mode } => aside(&format!("mode {mode}")),
        Item::Unknown { raw } => unknown(raw),
        Item::ToolUpdate { .. }
        | Item::Queue { .. }
        | Item::Background { .. }
        | Item::Usage { .. }
        | Item::Detail { .. } => String::new(),
    }
}

fn tool(call: &Call<'_>) -> String {
    let status = match call.status {
        Some(ToolStatus::Completed) => "✓",
        Some(ToolStatus::Failed) => "✗",
        Some(ToolStatus::Interrupted) => "✗ interrupted:",
        Some(ToolStatus::Pending | ToolStatus::Running) | None => "…",
    };
    let mut text = format!("- {status} `{}`\n", one_line(call.title).replace('`', "'"));
    for piece in &call.content {
        text.push('\n');
        text.push_str(&content(piece));
        text.push('\n');
    }
    text
}

fn content(piece: &ToolContent) -> String {
    match piece {
        ToolContent::Text { text } => fenced("", text),
        ToolContent::Diff {
            path,
            old_text,
            new_text,
        } => {
            let lines = |sign: &str, text: &str| -> String {
                let lines = text.lines().flat_map(|line| [sign, line, "\n"]);
                lines.collect()
            };
            let old = lines("-", old_text.as_deref().unwrap_or_default());
            fenced("diff", &format!("{path}\n{old}{}", lines("+", new_text)))
        }
        ToolContent::Other { raw } => unknown(raw),
    }
}

fn plan(entry: &PlanEntry) -> String {
    let mark = if entry.status == "completed" {
        'x'
    } else {
        ' '
    };
    format!("- [{mark}] {}\n", one_line(&entry.text))
}

fn asked(decision: &Decision) -> String {
    let options = decision
        .options
        .iter()
        .map(|option| one_line(&option.label));
    let options: Vec<String> = options.collect();
    format!(
        "> **{}** ({})",
        one_line(&decision.title),
        options.join(" / ")
    )
}

fn closed(state: &DecisionState, by: Option<&str>) -> String {
    let by = by.map(|by| format!(" by {by}")).unwrap_or_default();
    match state {
        DecisionState::Open => String::new(),
        DecisionState::Answered { option } => format!("> → {}{by}", one_line(option)),
        DecisionState::Cancelled => format!("> → withdrawn{by}"),
        DecisionState::Lost { reason } => format!("> → lost: {}", one_line(reason)),
    }
}

fn ended(outcome: TurnOutcome, note: Option<&str>) -> String {
    let word = match outcome {
        TurnOutcome::Done => return String::new(),
        TurnOutcome::Failed => "failed",
        TurnOutcome::Refused => "refused",
        TurnOutcome::Cancelled => "cancelled",
        TurnOutcome::Parked => "parked",
        TurnOutcome::StoppedShort => "stopped short",
    };
    aside(&format!("{word}: {}", note.unwrap_or("without a word")))
}

fn unknown(raw: &Value) -> String {
    let pretty = serde_json::to_string_pretty(raw).unwrap_or_else(|_| raw.to_string());
    fenced("json", &pretty)
}

fn aside(text: &str) -> String {
    format!("*{}*", one_line(text).replace('*', "\\*"))
}

fn folded(summary: &str, text: &str) -> String {
    format!(
        "<details><summary>{summary}</summary>\n\n{}\n\n</details>",
        text.trim_end()
    )
}

/// The fence is longer than any run of backticks inside.
fn fenced(language: &str, text: &str) -> String {
    let (mut longest, mut run) = (0, 0);
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat((longest + 1).max(3));
    format!("{fence}{language}\n{}\n{fence}", text.trim_end())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn section_of(item: &Item) -> String {
        section(item, &HashMap::new())
    }

    #[test]
    fn a_call_is_shown_once_with_how_it_ended() {
        let row = |seq: u64, item: Value| {
            let mut row = json!({"seq": seq, "at_ms": 0});
            row.as_object_mut()
                .unwrap()
                .extend(item.as_object().unwrap().clone());
            serde_json::from_value::<JournalRow>(row).unwrap()
        };
        let rows = [
            row(
                1,
                json!({"kind":"tool_call","call":"t","title":"touch a","tool":"execute","status":"pending"}),
            ),
            row(
                2,
                json!({"kind":"tool_update","call":"t","status":"completed",
                "content":[{"type":"text","text":"a ``` b"}]}),
            ),
        ];
        let calls = calls(&rows);
        let told: String = rows.iter().map(|row| section(&row.item, &calls)).collect();
        assert_eq!(told.trim_end(), "- ✓ `touch a`\n\n````\na ``` b\n````");
    }

    #[test]
    fn a_kind_nobody_knows_is_shown_as_itself() {
        let raw = json!({"sessionUpdate":"hologram"});
        let told = section_of(&Item::Unknown { raw });
        assert!(told.contains("\"sessionUpdate\": \"hologram\""), "{told}");
    }

    #[test]
    fn what_woke_the_agent_is_no_message_of_the_person() {
        let told = section_of(&Item::Woke {
            task: None,
            summary: "the build\nended".into(),
            status: None,
            said: Some("all green".into()),
        });
        assert!(told.starts_with("> ◍ the build ended\n"), "{told}");
        assert!(
            told.contains("<details>") && !told.contains("You"),
            "{told}"
        );
    }
}
