//! Text a box wrote, made safe to show: no escape sequence of it reaches the terminal.

use std::borrow::Cow;

/// The text with everything that could steer a terminal, or turn the reading direction, made
/// visible. Line ends and tabs stay; a carriage return goes.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(steers) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\r' => {}
            '\x7f' => shown.push_str("^?"),
            c if c.is_ascii_control() && steers(c) => {
                shown.push('^');
                shown.push(char::from(c as u8 ^ 0x40));
            }
            c if steers(c) => shown.push('\u{fffd}'),
            c => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// As [`visible`], on one line: for a cell, a row, or a sentence.
pub(crate) fn visible_line(text: &str) -> String {
    let line = visible(text);
    line.chars()
        .map(|c| if matches!(c, '\n' | '\t') { ' ' } else { c })
        .collect()
}

fn steers(c: char) -> bool {
    // UAX #9: the explicit directional formatting characters.
    let turns =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || (c.is_control() && c != '\n' && c != '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_are_shown_and_not_sent() {
        assert_eq!(visible("\x1b]0;owned\x07"), "^[]0;owned^G");
        assert_eq!(visible("\u{9b}31m"), "\u{fffd}31m");
        assert_eq!(visible("a\u{202e}b"), "a\u{fffd}b");
        assert_eq!(visible("\x7f\r\n"), "^?\n");
    }

    #[test]
    fn a_line_stays_one() {
        assert_eq!(visible_line("a\nb\tc\x1b"), "a b c^[");
    }

    #[test]
    fn ordinary_text_is_left_alone() {
        assert!(matches!(visible("ä\tb\nc 🦀"), Cow::Borrowed(_)));
    }
}
