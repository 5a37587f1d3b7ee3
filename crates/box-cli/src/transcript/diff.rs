//! A change to a file as unified hunks.

use similar::{ChangeTag, TextDiff};
use std::time::Duration;

/// Longer texts take too long to compare for somebody who waits.
const TEXT_BYTES_MAX: usize = 1 << 20;
/// After this long the comparison gets coarse instead of slow.
const COMPARE_DEADLINE: Duration = Duration::from_millis(200);
const CONTEXT_LINES: usize = 3;
/// What a person reads of one change.
const LINES_MAX: usize = 120;

/// One line of a shown diff.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DiffLine {
    Hunk(String),
    Same(String),
    Removed(String),
    Added(String),
    /// So many lines more.
    Cut(usize),
}

/// A change, counted and cut to what a person reads.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Diff {
    pub(super) added: usize,
    pub(super) removed: usize,
    pub(super) lines: Vec<DiffLine>,
}

/// Compares; none when the texts are too long.
pub(super) fn diff(old: &str, new: &str) -> Option<Diff> {
    if old.len() > TEXT_BYTES_MAX || new.len() > TEXT_BYTES_MAX {
        return None;
    }
    let compared = TextDiff::configure()
        .timeout(COMPARE_DEADLINE)
        .diff_lines(old, new);
    let (mut added, mut removed) = (0, 0);
    let mut lines = Vec::new();
    for hunk in compared
        .unified_diff()
        .context_radius(CONTEXT_LINES)
        .iter_hunks()
    {
        lines.push(DiffLine::Hunk(hunk.header().to_string()));
        for change in hunk.iter_changes() {
            let text = change.value().trim_end_matches(['\n', '\r']).to_owned();
            lines.push(match change.tag() {
                ChangeTag::Equal => DiffLine::Same(text),
                ChangeTag::Delete => {
                    removed += 1;
                    DiffLine::Removed(text)
                }
                ChangeTag::Insert => {
                    added += 1;
                    DiffLine::Added(text)
                }
            });
        }
    }
    let over = lines.len().saturating_sub(LINES_MAX);
    lines.truncate(LINES_MAX);
    if over > 0 {
        lines.push(DiffLine::Cut(over));
    }
    Some(Diff {
        added,
        removed,
        lines,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_line_is_shown_with_its_neighbours() {
        let shown = diff("a\nb\nc\n", "a\nB\nc\n").unwrap();
        assert_eq!((shown.added, shown.removed), (1, 1));
        let lines = [
            DiffLine::Hunk("@@ -1,3 +1,3 @@".into()),
            DiffLine::Same("a".into()),
            DiffLine::Removed("b".into()),
            DiffLine::Added("B".into()),
            DiffLine::Same("c".into()),
        ];
        assert_eq!(shown.lines, lines);
    }

    #[test]
    fn a_long_change_is_counted_whole_and_shown_in_part() {
        let new: Vec<String> = (0..500).map(|line| line.to_string()).collect();
        let shown = diff("", &new.join("\n")).unwrap();
        assert_eq!(shown.added, 500);
        assert_eq!(shown.lines.last(), Some(&DiffLine::Cut(381)));
        assert_eq!(diff(&"x".repeat(TEXT_BYTES_MAX + 1), ""), None);
    }
}
