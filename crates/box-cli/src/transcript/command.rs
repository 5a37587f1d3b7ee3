//! `!` lines and what they printed.

use super::{Section, Transcript};
use crate::output::{Ink, visible};

/// Lines of an older line's output that are shown.
const OUTPUT_LINES_MAX: usize = 40;

impl Transcript {
    /// What runs right now prints this, fit to be shown.
    pub(crate) fn print(&mut self, text: &str) {
        self.enter(Section::Tools);
        self.screen.stream(text, text);
    }

    /// A line that ran: how it ended comes last.
    pub(super) fn command(&mut self, command: &str, output: &str, how: &str) {
        self.enter(Section::Prompt);
        let line = format!("! {}", visible(command));
        self.screen.line(&self.look.paint.with(Ink::Bold, &line));
        let output = visible(output);
        let count = output.lines().count();
        if count > OUTPUT_LINES_MAX {
            let left_out = count - OUTPUT_LINES_MAX;
            let text = format!("… {left_out} more lines");
            self.screen.line(&self.look.paint.with(Ink::Dim, &text));
        }
        for line in output.lines().skip(count.saturating_sub(OUTPUT_LINES_MAX)) {
            self.screen.line(line);
        }
        self.screen.line(&self.look.paint.with(Ink::Dim, how));
    }
}
