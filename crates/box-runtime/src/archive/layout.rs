//! Which member is what, by its name.

use super::error::Offence;
use box_api::Label;
use serde::{Deserialize, Serialize};

/// Version of the layout that is written, and the newest that is read.
pub const FORMAT: u32 = 1;

pub(super) const MANIFEST: &str = "manifest.json";
pub(super) const SUMS: &str = "SHA256SUMS";
pub(super) const END: &str = "end.json";
pub(super) const BOX: &str = "box";
pub(super) const SNAPSHOTS: &str = "snapshots";
const IMAGE: &str = "image";
/// Longest manifest; most of it are the names a box has asked for.
pub(super) const MANIFEST_BYTES_MAX: u64 = 16 << 20;

/// The last member: what came before it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EndMark {
    /// Members before the checksums.
    pub(super) members: u64,
    /// Where the end mark begins in the plain tar; the sum is of all before it.
    pub(super) bytes: u64,
    pub(super) sha256: String,
}

/// A tree of a box, or its image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    Workspace,
    Home,
    /// Changes to the root; the upper layer of an overlay.
    Root,
    /// The whole root below the changes.
    Image,
}

impl Part {
    const OF_A_STATE: [Self; 3] = [Self::Workspace, Self::Home, Self::Root];

    pub fn name(self) -> &'static str {
        match self {
            Self::Workspace => "workspace",
            Self::Home => "home",
            Self::Root => "root",
            Self::Image => IMAGE,
        }
    }
}

/// Whose tree it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// The box as it is.
    Now,
    Snapshot(Label),
}

impl State {
    /// The folder of its trees in an archive, and in what was unpacked of one.
    pub fn folder(&self) -> String {
        match self {
            Self::Now => BOX.to_owned(),
            Self::Snapshot(label) => format!("{SNAPSHOTS}/{label}"),
        }
    }

    /// The folder of one tree. The image is nobody's.
    pub fn tree(&self, part: Part) -> String {
        match part {
            Part::Image => IMAGE.to_owned(),
            Part::Workspace | Part::Home | Part::Root => {
                format!("{}/{}", self.folder(), part.name())
            }
        }
    }
}

/// What a member's name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    Manifest,
    Sums,
    End,
    Frame(Frame),
    Tree {
        state: State,
        part: Part,
        /// How long the name of the tree is; what follows is below it.
        prefix: usize,
    },
}

/// A folder that only holds trees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Frame {
    State(State),
    Snapshots,
}

/// Says where a name belongs. It is relative and clean already.
pub(super) fn place(name: &[u8]) -> Result<Place, Offence> {
    for (own, place) in [
        (MANIFEST, Place::Manifest),
        (SUMS, Place::Sums),
        (END, Place::End),
        (BOX, Place::Frame(Frame::State(State::Now))),
        (SNAPSHOTS, Place::Frame(Frame::Snapshots)),
    ] {
        if name == own.as_bytes() {
            return Ok(place);
        }
    }
    let (first, rest) = split(name);
    match first {
        b"image" => Ok(Place::Tree {
            state: State::Now,
            part: Part::Image,
            prefix: IMAGE.len(),
        }),
        b"box" => tree(State::Now, BOX.len(), rest),
        b"snapshots" => {
            let (label, rest) = split(rest);
            let label = std::str::from_utf8(label)
                .ok()
                .and_then(|text| Label::parse(text).ok())
                .ok_or(Offence::NoPlace)?;
            if rest.is_empty() {
                return Ok(Place::Frame(Frame::State(State::Snapshot(label))));
            }
            let above = SNAPSHOTS.len() + 1 + label.as_str().len();
            tree(State::Snapshot(label), above, rest)
        }
        _ => Err(Offence::NoPlace),
    }
}

fn tree(state: State, above: usize, rest: &[u8]) -> Result<Place, Offence> {
    let (own, _) = split(rest);
    let part = Part::OF_A_STATE
        .into_iter()
        .find(|part| part.name().as_bytes() == own)
        .ok_or(Offence::NoPlace)?;
    Ok(Place::Tree {
        state,
        part,
        prefix: above + 1 + part.name().len(),
    })
}

/// The first part of a name, and the others.
fn split(name: &[u8]) -> (&[u8], &[u8]) {
    match name.iter().position(|byte| *byte == b'/') {
        Some(slash) => (&name[..slash], &name[slash + 1..]),
        None => (name, &[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_one_place_or_none() {
        let label = Label::parse("a.b").unwrap();
        let tree = |state: &State, part| Place::Tree {
            state: state.clone(),
            part,
            prefix: state.tree(part).len(),
        };
        let snapshot = State::Snapshot(label);
        for (name, wanted) in [
            ("manifest.json", Place::Manifest),
            ("SHA256SUMS", Place::Sums),
            ("end.json", Place::End),
            ("box", Place::Frame(Frame::State(State::Now))),
            ("snapshots", Place::Frame(Frame::Snapshots)),
            (
                "snapshots/a.b",
                Place::Frame(Frame::State(snapshot.clone())),
            ),
            ("box/workspace", tree(&State::Now, Part::Workspace)),
            ("box/home/x/y", tree(&State::Now, Part::Home)),
            ("box/root/etc", tree(&State::Now, Part::Root)),
            ("snapshots/a.b/home/x", tree(&snapshot, Part::Home)),
            ("image", tree(&State::Now, Part::Image)),
            ("image/etc", tree(&State::Now, Part::Image)),
        ] {
            assert_eq!(place(name.as_bytes()), Ok(wanted), "{name}");
        }
        for name in [
            "box/work",
            "box/image",
            "boxes",
            "manifest.json/x",
            "snapshots/A/home",
            "snapshots/a.b/x",
            "imagex",
            "etc",
            "snapshots/a.b/image",
        ] {
            assert_eq!(place(name.as_bytes()), Err(Offence::NoPlace), "{name}");
        }
    }
}
