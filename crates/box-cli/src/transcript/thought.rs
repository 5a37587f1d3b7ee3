//! Reasoning, folded: its first words and how many there are.

/// Characters of the first words.
const SHOWN_CHARS_MAX: usize = 60;

/// A thought that grows.
#[derive(Debug)]
pub(super) struct Thought {
    pub(super) seq: u64,
    beginning: String,
    cut: bool,
    words: usize,
    in_word: bool,
}

impl Thought {
    pub(super) fn new(seq: u64) -> Self {
        Self {
            seq,
            beginning: String::new(),
            cut: false,
            words: 0,
            in_word: false,
        }
    }

    /// Nothing of it came yet.
    pub(super) fn is_new(&self) -> bool {
        self.words == 0
    }

    pub(super) fn grow(&mut self, text: &str) {
        for c in text.chars() {
            let space = c.is_whitespace();
            self.words += usize::from(!space && !self.in_word);
            self.in_word = !space;
            if self.beginning.chars().count() >= SHOWN_CHARS_MAX {
                self.cut |= !space;
            } else if !space {
                self.beginning.push(c);
            } else if !self.beginning.is_empty() && !self.beginning.ends_with(' ') {
                self.beginning.push(' ');
            }
        }
    }

    /// `∴ Let me look at the tests first … (42 words)`, in so many columns.
    pub(super) fn folded(&self, columns: usize) -> String {
        let count = match self.words {
            1 => "(1 word)".to_owned(),
            words => format!("({words} words)"),
        };
        // The mark before it, a space and the dots after it.
        let room = columns.saturating_sub(count.len() + 5).max(10);
        let beginning = self.beginning.trim_end();
        let cut = self.cut || beginning.chars().count() > room;
        let shown: String = beginning.chars().take(room).collect();
        let dots = if cut { " …" } else { "" };
        format!("∴ {}{dots} {count}", shown.trim_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_counted_across_pieces() {
        let mut thought = Thought::new(1);
        for piece in ["Let me lo", "ok\n\n at ", "it"] {
            thought.grow(piece);
        }
        assert_eq!(thought.folded(100), "∴ Let me look at it (5 words)");
        thought.grow(&" more".repeat(40));
        assert!(
            thought.folded(100).ends_with(" … (45 words)"),
            "{}",
            thought.folded(100)
        );
    }
}
