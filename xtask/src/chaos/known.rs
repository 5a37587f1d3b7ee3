//! What a person knows of their boxes: what they were told, and what they see.

use std::collections::{BTreeMap, BTreeSet};

/// Every box, by name; names are never used twice in a run, but for kept workspaces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) live: BTreeMap<String, Life>,
    pub(super) trash: BTreeMap<String, Life>,
    pub(super) images: BTreeSet<String>,
    /// Archives that were written whole, and the text of the box in each.
    pub(super) archives: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Life {
    pub(super) running: bool,
    /// What stands in its workspace.
    pub(super) text: String,
    /// The text of each snapshot.
    pub(super) snapshots: BTreeMap<String, String>,
}

impl Life {
    /// A box that was just made and runs.
    pub(super) fn fresh(text: String) -> Self {
        Self {
            running: true,
            text,
            snapshots: BTreeMap::from([("pristine".to_owned(), String::new())]),
        }
    }

    pub(super) fn of_text(text: String) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }

    /// A running copy: of the box, its snapshots included, or of one of them (B16).
    pub(super) fn copy_of(self, label: Option<&str>) -> Self {
        let Some(label) = label else {
            return Self {
                running: true,
                ..self
            };
        };
        Self {
            running: true,
            text: self.snapshots.get(label).cloned().unwrap_or_default(),
            snapshots: BTreeMap::new(),
        }
    }
}

/// Snapshots the host takes by itself: only the newest few are promised.
pub(super) fn is_automatic(label: &str) -> bool {
    label.starts_with("before-")
}

impl Known {
    pub(super) fn add(&mut self, name: &str, life: Life) {
        self.live.insert(name.to_owned(), life);
    }

    pub(super) fn change(&mut self, name: &str, change: impl FnOnce(&mut Life)) {
        if let Some(life) = self.live.get_mut(name) {
            change(life);
        }
    }

    /// What of `self`, which somebody was told, is not so in `seen`. Of boxes that something was
    /// being done to (`involved`) it does not matter whether they run.
    pub(super) fn missing_in(&self, seen: &Self, involved: &[&str]) -> Vec<String> {
        let mut wrong = Vec::new();
        for (place, told, there) in [
            ("a box", &self.live, &seen.live),
            ("a box in the trash", &self.trash, &seen.trash),
        ] {
            for (name, life) in told {
                match there.get(name) {
                    None => wrong.push(format!("{place} is missing: {name}")),
                    Some(found) => compare(name, life, (found, involved), &mut wrong),
                }
            }
            let strange = there.keys().filter(|name| !told.contains_key(*name));
            wrong.extend(strange.map(|name| format!("{place} nobody was told of: {name}")));
        }
        let images = self.images.difference(&seen.images);
        wrong.extend(images.map(|image| format!("an image is missing: {image}")));
        wrong
    }
}

fn compare(name: &str, told: &Life, (seen, involved): (&Life, &[&str]), wrong: &mut Vec<String>) {
    if told.text != seen.text {
        wrong.push(format!("{name} holds {:?}, not {:?}", seen.text, told.text));
    }
    if told.running != seen.running && !involved.contains(&name) {
        wrong.push(format!(
            "{name} runs: {}, and was: {}",
            seen.running, told.running
        ));
    }
    for label in told.snapshots.keys().filter(|label| !is_automatic(label)) {
        if !seen.snapshots.contains_key(label) {
            wrong.push(format!("{name} has lost its snapshot {label}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(names: &[&str]) -> Known {
        let life = Life {
            text: "t".to_owned(),
            running: true,
            snapshots: BTreeMap::from([("one".to_owned(), "t".to_owned())]),
        };
        let boxes = names.iter().map(|name| ((*name).to_owned(), life.clone()));
        Known {
            live: boxes.collect(),
            ..Known::default()
        }
    }

    #[test]
    fn what_is_lost_or_strange_is_found() {
        let told = known(&["a", "b"]);
        assert_eq!(told.missing_in(&told, &[]), Vec::<String>::new());
        assert_eq!(
            told.missing_in(&known(&["a"]), &[]),
            ["a box is missing: b"]
        );
        let strange = told.missing_in(&known(&["a", "b", "c"]), &[]);
        assert_eq!(strange, ["a box nobody was told of: c"]);
        let mut seen = told.clone();
        let life = seen.live.get_mut("a").unwrap();
        *life = Life::default();
        assert_eq!(told.missing_in(&seen, &[]).len(), 3);
        assert_eq!(told.missing_in(&seen, &["a"]).len(), 2);
    }
}
