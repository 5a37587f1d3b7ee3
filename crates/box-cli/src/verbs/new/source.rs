//! What a clone is made of: `<box>` or `<box>/<label>` (B10).

use box_api::id::NameError;
use box_api::{BoxName, Label};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) name: BoxName,
    /// Absent: the box as it is now.
    pub(super) label: Option<Label>,
}

impl Source {
    /// # Errors
    /// [`NameError`] of the part that is malformed.
    pub(super) fn parse(text: &str) -> Result<Self, NameError> {
        let (name, label) = match text.split_once('/') {
            Some((name, label)) => (name, Some(Label::parse(label)?)),
            None => (text, None),
        };
        Ok(Self {
            name: BoxName::parse(name)?,
            label,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_a_box_or_one_of_its_snapshots() {
        let parsed = |text: &str| {
            let source = Source::parse(text).ok()?;
            Some((source.name.to_string(), source.label.map(|l| l.to_string())))
        };
        assert_eq!(parsed("demo"), Some(("demo".to_owned(), None)));
        let both = Some(("demo".to_owned(), Some("v1.2".to_owned())));
        assert_eq!(parsed("demo/v1.2"), both);
        for bad in ["", "/", "demo/", "/x", "demo/a/b", "all", "demo/../x"] {
            assert_eq!(parsed(bad), None, "{bad}");
        }
    }
}
