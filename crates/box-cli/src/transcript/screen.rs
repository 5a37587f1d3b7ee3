//! Text on its way to standard output: where the line stands, and, on a terminal, the last lines
//! that may still change.

/// A run of lines at the bottom of a terminal that are rewritten in place, one for each key.
#[derive(Debug, Default)]
pub(super) struct Screen {
    out: String,
    /// Something stands on the current line.
    in_line: bool,
    /// Something was printed at all.
    began: bool,
    /// Keys of the bottom lines, in the order they stand.
    block: Vec<String>,
    /// Columns of the terminal; none when nothing can be rewritten.
    columns: Option<usize>,
}

/// Where lines are cut when nobody knows how wide they may be.
const COLUMNS_UNSEEN: usize = 200;
/// More lines than a small terminal has could not be reached any more.
const BLOCK_LINES_MAX: usize = 12;

impl Screen {
    pub(super) fn new(columns: Option<usize>) -> Self {
        Self {
            columns,
            ..Self::default()
        }
    }

    /// Columns a line may have.
    pub(super) fn columns(&self) -> usize {
        self.columns.unwrap_or(COLUMNS_UNSEEN).saturating_sub(1)
    }

    pub(super) fn can_rewrite(&self) -> bool {
        self.columns.is_some()
    }

    pub(super) fn take(&mut self) -> String {
        std::mem::take(&mut self.out)
    }

    /// Text that goes on where the last piece ended.
    pub(super) fn stream(&mut self, text: &str, styled: &str) {
        if text.is_empty() {
            return;
        }
        self.block.clear();
        self.out.push_str(styled);
        self.in_line = !text.ends_with('\n');
        self.began = true;
    }

    pub(super) fn line(&mut self, styled: &str) {
        self.break_line();
        self.out.push_str(styled);
        self.out.push('\n');
        self.began = true;
    }

    /// An empty line, but not at the top.
    pub(super) fn space(&mut self) {
        let began = self.began;
        self.break_line();
        if began {
            self.out.push('\n');
        }
    }

    /// What comes next begins on a line of its own, and the lines above stay as they are.
    pub(super) fn break_line(&mut self) {
        self.block.clear();
        if std::mem::take(&mut self.in_line) {
            self.out.push('\n');
        }
    }

    /// Rewrites the line of `key` if it is still at the bottom. False when it is not.
    pub(super) fn rewrite(&mut self, key: &str, styled: &str) -> bool {
        let Some(at) = self.block.iter().position(|line| line == key) else {
            return false;
        };
        let up = self.block.len() - at;
        // ECMA-48: cursor up, erase line; afterwards down again to the line below the block.
        let parts = [
            &format!("\x1b[{up}A\r\x1b[2K"),
            styled,
            &format!("\x1b[{up}B\r"),
        ];
        self.out.extend(parts);
        true
    }

    /// A line that `rewrite` can find.
    pub(super) fn changing_line(&mut self, key: &str, styled: &str) {
        if self.in_line {
            self.break_line();
        }
        self.out.push_str(styled);
        self.out.push('\n');
        self.began = true;
        if self.columns.is_some() {
            self.block.push(key.to_owned());
            let over = self.block.len().saturating_sub(BLOCK_LINES_MAX);
            self.block.drain(..over);
        }
    }

    /// The text cut to one line of the terminal, `taken` columns of which are in use.
    pub(super) fn fitting(&self, text: &str, taken: usize) -> String {
        let room = self.columns().saturating_sub(taken).max(10);
        let mut width = 0;
        let mut fits = String::new();
        for c in text.chars() {
            width += columns_of(c);
            if width > room.saturating_sub(1) {
                fits.push('…');
                return fits;
            }
            fits.push(if c == '\t' { ' ' } else { c });
        }
        fits
    }
}

/// Good enough to stay on one line: East Asian and emoji are wide (UAX #11).
fn columns_of(c: char) -> usize {
    if u32::from(c) >= 0x1100 && !('\u{2000}'..='\u{2bff}').contains(&c) {
        2
    } else {
        1
    }
}
