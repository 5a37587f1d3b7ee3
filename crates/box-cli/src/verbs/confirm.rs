//! Asks before something is lost.

use crate::complaint::Complaint;
use crate::output::Output;
use crate::terminal;

/// A question with two answers.
#[derive(Debug)]
pub(super) struct Question<'a> {
    /// Without the question mark.
    pub(super) text: &'a str,
    /// What Enter alone means.
    pub(super) default: Answer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Yes,
    No,
}

/// Asks at the terminal. Call only where [`terminal::can_ask`].
///
/// # Errors
/// When the answer cannot be read.
pub(super) fn ask(output: &mut Output, question: &Question<'_>) -> Result<Answer, Complaint> {
    let choices = match question.default {
        Answer::Yes => "[Y/n]",
        Answer::No => "[y/N]",
    };
    terminal::forget_typed_ahead();
    loop {
        output.ask(&format!("{}? {choices} ", question.text));
        let mut line = String::new();
        let read = std::io::stdin().read_line(&mut line).map_err(|error| {
            Complaint::failed("no-answer", "could not read the answer").caused_by(error)
        })?;
        match line.trim().to_lowercase().as_str() {
            "y" | "yes" => return Ok(Answer::Yes),
            "" if read > 0 => return Ok(question.default),
            // The end of input is no yes.
            "n" | "no" | "" => return Ok(Answer::No),
            _ => output.note("type y or n"),
        }
    }
}
