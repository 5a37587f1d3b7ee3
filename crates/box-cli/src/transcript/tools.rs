//! Tool calls in a transcript: a line with a mark, what the tool printed, what it changed.

use super::diff::{self, DiffLine};
use super::{Section, Transcript};
use crate::output::{Ink, visible};
use box_api::thread::{ToolContent, ToolStatus};

/// Lines of a tool's output that are shown.
const OUTPUT_LINES_MAX: usize = 8;
/// Tool calls whose state is kept; older ones get no more updates in practice.
const CALLS_MAX: usize = 1024;

/// A tool call as it stands.
#[derive(Debug)]
pub(super) struct Call {
    title: String,
    status: ToolStatus,
    /// How its line last stood; none before it had one.
    told: Option<(String, ToolStatus)>,
    /// What was shown of it, so that content sent again is not.
    shown: Vec<ToolContent>,
}

impl Transcript {
    pub(super) fn tool_call(&mut self, call: &str, title: &str, status: ToolStatus) {
        if self.calls.contains_key(call) {
            return self.tool_update(call, Some(title), Some(status));
        }
        if self.call_order.len() >= CALLS_MAX
            && let Some(oldest) = self.call_order.pop_front()
        {
            self.calls.remove(&oldest);
        }
        self.call_order.push_back(call.to_owned());
        let known = Call {
            title: title.to_owned(),
            status,
            told: None,
            shown: Vec::new(),
        };
        self.calls.insert(call.to_owned(), known);
        self.tell(call);
    }

    pub(super) fn tool_update(
        &mut self,
        call: &str,
        title: Option<&str>,
        status: Option<ToolStatus>,
    ) {
        let Some(known) = self.calls.get_mut(call) else {
            let title = title.unwrap_or(call).to_owned();
            return self.tool_call(call, &title, status.unwrap_or(ToolStatus::Running));
        };
        if let Some(title) = title.filter(|title| !title.trim().is_empty()) {
            title.clone_into(&mut known.title);
        }
        known.status = status.unwrap_or(known.status);
        self.tell(call);
    }

    /// Shows how a call stands, if that is news.
    fn tell(&mut self, call: &str) {
        let Some(known) = self.calls.get(call) else {
            return;
        };
        let now = (known.title.clone(), known.status);
        let worth_a_line = match &known.told {
            // Where nothing can be rewritten, a call is told when it really begins.
            None => self.screen.can_rewrite() || known.status != ToolStatus::Pending,
            Some(before) if *before == now => return,
            Some((title, before)) => {
                let line = self.tool_line(known);
                if self.screen.rewrite(call, &line) {
                    return self.told(call, now);
                }
                // Out of reach: only its end, or what it really is, is worth another line.
                *title != now.0 || (*before != now.1 && is_final(now.1))
            }
        };
        if worth_a_line {
            self.tell_in_a_new_line(call);
        }
    }

    fn tell_in_a_new_line(&mut self, call: &str) {
        let Some(known) = self.calls.get(call) else {
            return;
        };
        let (line, now) = (self.tool_line(known), (known.title.clone(), known.status));
        self.enter(Section::Tools);
        self.screen.changing_line(call, &line);
        self.told(call, now);
    }

    fn told(&mut self, call: &str, now: (String, ToolStatus)) {
        if let Some(known) = self.calls.get_mut(call) {
            known.told = Some(now);
        }
    }

    fn tool_line(&self, call: &Call) -> String {
        let (mark, ink) = match call.status {
            ToolStatus::Pending => ("○", Ink::Dim),
            ToolStatus::Running => ("⟳", Ink::Cyan),
            ToolStatus::Completed => ("✓", Ink::Green),
            ToolStatus::Failed => ("✗", Ink::Red),
            ToolStatus::Interrupted => ("⊘", Ink::Yellow),
        };
        let title = visible(&call.title);
        let mut lines = title.lines();
        let first = lines.next().unwrap_or_default();
        let more = if lines.next().is_some() { " …" } else { "" };
        let title = self.screen.fitting(&format!("{first}{more}"), 2);
        format!("{} {title}", self.look.paint.with(ink, mark))
    }

    pub(super) fn tool_content(&mut self, call: &str, content: &[ToolContent]) {
        for piece in content {
            let Some(known) = self.calls.get_mut(call) else {
                return;
            };
            // What a tool prints comes again and again until it ends.
            let settled = matches!(piece, ToolContent::Diff { .. }) || is_final(known.status);
            if !settled || known.shown.contains(piece) {
                continue;
            }
            known.shown.push(piece.clone());
            if known.told.is_none() {
                self.tell_in_a_new_line(call);
            }
            match piece {
                ToolContent::Text { text } => self.tool_output(text),
                ToolContent::Diff {
                    path,
                    old_text,
                    new_text,
                } => {
                    self.diff(path, old_text.as_deref(), new_text);
                }
                ToolContent::Other { .. } => {}
            }
        }
    }

    fn tool_output(&mut self, text: &str) {
        let text = visible(text);
        let lines: Vec<&str> = text.trim_end().lines().collect();
        for line in lines.iter().take(OUTPUT_LINES_MAX) {
            let line = self.screen.fitting(line.trim_end(), 4);
            self.screen.line(
                &self
                    .look
                    .paint
                    .with(Ink::Dim, format!("    {line}").trim_end()),
            );
        }
        let over = lines.len().saturating_sub(OUTPUT_LINES_MAX);
        if over > 0 {
            self.screen.line(
                &self
                    .look
                    .paint
                    .with(Ink::Dim, &format!("    … {over} more lines")),
            );
        }
    }

    fn diff(&mut self, path: &str, old: Option<&str>, new: &str) {
        let path = visible(path);
        let Some(diff) = diff::diff(old.unwrap_or_default(), new) else {
            self.screen.line(&format!("    {path} (too long to show)"));
            return;
        };
        let counts = match (old, diff.added + diff.removed) {
            (Some(_), 0) => "(no change)".to_owned(),
            (Some(_), _) => format!("(+{} -{})", diff.added, diff.removed),
            (None, _) => format!("(new, +{})", diff.added),
        };
        self.screen.line(&format!(
            "    {path} {}",
            self.look.paint.with(Ink::Dim, &counts)
        ));
        for line in &diff.lines {
            let (ink, text) = match line {
                DiffLine::Hunk(text) => (Ink::Cyan, text.clone()),
                DiffLine::Same(text) => (Ink::Plain, format!(" {text}")),
                DiffLine::Removed(text) => (Ink::Red, format!("-{text}")),
                DiffLine::Added(text) => (Ink::Green, format!("+{text}")),
                DiffLine::Cut(over) => (Ink::Dim, format!("… {over} more lines")),
            };
            let text = self.look.paint.with(ink, &visible(&text));
            self.screen.line(format!("    {text}").trim_end());
        }
    }
}

fn is_final(status: ToolStatus) -> bool {
    matches!(
        status,
        ToolStatus::Completed | ToolStatus::Failed | ToolStatus::Interrupted
    )
}
