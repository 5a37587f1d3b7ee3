//! A decision as a person reads it: what is to be read first, what can be chosen, what is to be
//! filled in.

use crate::output::{visible, visible_line};
use box_api::decision::{Field, FieldKind, Form};
use box_api::thread::Decision;

/// Lines of a plan that are shown; the rest is in the journal.
const TEXT_LINES_MAX: usize = 200;

/// What is to be read before it is answered.
pub(crate) fn text(decision: &Decision) -> Vec<String> {
    let text = visible(decision.text.as_deref().unwrap_or_default());
    let mut lines: Vec<String> = text
        .lines()
        .take(TEXT_LINES_MAX)
        .map(|line| format!("  │ {line}"))
        .collect();
    if text.lines().nth(TEXT_LINES_MAX).is_some() {
        lines.push("  │ …".to_owned());
    }
    lines
}

/// Numbered options, or the fields of a form.
pub(super) fn choices(decision: &Decision) -> Vec<String> {
    match &decision.form {
        Some(form) if decision.options.is_empty() => fields(form),
        form => {
            let options = decision.options.iter().enumerate();
            let mut lines: Vec<String> = options
                .map(|(at, option)| format!("  {}  {}", at + 1, visible(&option.label)))
                .collect();
            let free_words = form.iter().flat_map(|form| &form.fields);
            if free_words
                .into_iter()
                .any(|field| field.instead_of.is_some())
            {
                lines.push("  or in your own words".to_owned());
            }
            lines
        }
    }
}

fn fields(form: &Form) -> Vec<String> {
    let shown = form
        .fields
        .iter()
        .filter(|field| field.instead_of.is_none());
    let mut lines: Vec<String> = shown.flat_map(field).collect();
    lines.push("  (`/no` declines to answer)".to_owned());
    lines
}

fn field(field: &Field) -> Vec<String> {
    let mut lines = vec![format!("  {}", visible_line(&field.title))];
    match &field.kind {
        FieldKind::One { choices } | FieldKind::Many { choices, .. } => {
            let choices = choices.iter().enumerate();
            lines
                .extend(choices.map(|(at, choice)| {
                    format!("    {}  {}", at + 1, visible_line(&choice.label))
                }));
        }
        FieldKind::Text { .. } | FieldKind::Number { .. } | FieldKind::YesNo => {}
    }
    lines
}
