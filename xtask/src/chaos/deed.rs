//! What is being done when the host is killed: the command, and what a person then knows.

use super::known::{Known, Life, is_automatic};
use super::random::Random;

/// The archive, image or label is named after the number of the cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Deed {
    Create(String),
    Start(String),
    Stop(String),
    Set(String),
    Rename(String, String),
    Snapshot(String, String),
    Discard(String, String),
    Restore(String, String),
    Clone(String, Option<String>, String),
    Trash(String),
    /// Removed with its workspace kept, and made again.
    Keep(String),
    Undelete(String),
    Remove(String),
    /// Without force: it is looked into first.
    Look(String),
    Image(String),
    Pull(String),
    Unused,
    Export(String, String),
    Import(String, String),
}

/// Most live boxes at once.
pub(super) const LIVE_MAX: usize = 4;
const TRASH_MAX: usize = 3;

impl Deed {
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Create(_) => "create",
            Self::Start(_) => "start",
            Self::Stop(_) => "stop",
            Self::Set(_) => "set",
            Self::Rename(..) => "rename",
            Self::Snapshot(..) => "snapshot",
            Self::Discard(..) => "discard",
            Self::Restore(..) => "restore",
            Self::Clone(..) => "clone",
            Self::Trash(_) => "trash",
            Self::Keep(_) => "keep",
            Self::Undelete(_) => "undelete",
            Self::Remove(_) => "remove",
            Self::Look(_) => "look",
            Self::Image(_) => "image",
            Self::Pull(_) => "pull",
            Self::Unused => "unused",
            Self::Export(..) => "export",
            Self::Import(..) => "import",
        }
    }

    /// The command, without `box`. Paths are below the world's folder.
    pub(super) fn words(&self, place: impl Fn(&str) -> String) -> Vec<String> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        match self {
            Self::Create(name) | Self::Keep(name) => words(&["new", name]),
            Self::Start(name) => words(&["start", name]),
            Self::Stop(name) => words(&["stop", name, "--force"]),
            Self::Set(name) => words(&["set", name, "pids=300"]),
            Self::Rename(name, to) => words(&["rename", name, to]),
            Self::Snapshot(name, label) => words(&["snapshot", name, label]),
            Self::Discard(name, label) => words(&["snapshot", "--remove", name, label]),
            Self::Restore(name, label) => words(&["restore", name, label, "--force"]),
            Self::Clone(source, None, name) => words(&["new", name, "--from", source]),
            Self::Clone(source, Some(label), name) => {
                words(&["new", name, "--from", &format!("{source}/{label}")])
            }
            Self::Trash(name) => words(&["rm", name, "--force"]),
            Self::Undelete(name) => words(&["undelete", name]),
            Self::Remove(name) => words(&["rm", name, "--force", "--now"]),
            // Asked over the socket: without force a person at a terminal is asked.
            Self::Look(_) => Vec::new(),
            Self::Image(name) => words(&["image", "prepare", &format!("file:{}", place(name))]),
            Self::Pull(name) => words(&["image", "prepare", &format!("oci:{name}")]),
            Self::Unused => words(&["image", "prune", "--force"]),
            Self::Export(name, archive) => words(&["export", name, &place(archive), "--force"]),
            Self::Import(archive, name) => {
                words(&["import", &place(archive), "--name", name, "--no-start"])
            }
        }
    }

    /// Boxes that something is done to.
    pub(super) fn involved(&self) -> Vec<&str> {
        match self {
            Self::Create(name)
            | Self::Start(name)
            | Self::Stop(name)
            | Self::Set(name)
            | Self::Snapshot(name, _)
            | Self::Discard(name, _)
            | Self::Restore(name, _)
            | Self::Trash(name)
            | Self::Keep(name)
            | Self::Undelete(name)
            | Self::Remove(name)
            | Self::Look(name)
            // The source goes on as it was.
            | Self::Clone(_, _, name)
            | Self::Import(_, name) => vec![name],
            Self::Rename(name, to) => vec![name, to],
            Self::Export(..) | Self::Image(_) | Self::Pull(_) | Self::Unused => Vec::new(),
        }
    }

    /// What is so once it is done, when `known` was so before.
    pub(super) fn done(&self, known: &Known, image: impl Fn(&str) -> String) -> Known {
        let mut after = known.clone();
        match self {
            Self::Create(name) => after.add(name, Life::fresh(String::new())),
            Self::Keep(name) => {
                let kept = after.trash.get_mut(name);
                let text = kept.map(|kept| std::mem::take(&mut kept.text));
                after.add(name, Life::fresh(text.unwrap_or_default()));
            }
            Self::Start(name) => after.change(name, |life| life.running = true),
            Self::Stop(name) => after.change(name, |life| life.running = false),
            Self::Set(_) => {}
            Self::Rename(name, to) => {
                let life = after.live.remove(name).unwrap_or_default();
                after.add(to, life);
            }
            Self::Snapshot(name, label) => after.change(name, |life| {
                life.snapshots.insert(label.clone(), life.text.clone());
            }),
            Self::Discard(name, label) => after.change(name, |life| {
                life.snapshots.remove(label);
            }),
            Self::Restore(name, label) => after.change(name, |life| {
                life.text = life.snapshots.get(label).cloned().unwrap_or_default();
            }),
            Self::Clone(source, label, name) => {
                let life = after.live.get(source).cloned().unwrap_or_default();
                after.add(name, life.copy_of(label.as_deref()));
            }
            Self::Trash(name) | Self::Look(name) => {
                let mut life = after.live.remove(name).unwrap_or_default();
                life.running = false;
                after.trash.insert(name.clone(), life);
            }
            Self::Undelete(name) => {
                let life = after.trash.remove(name).unwrap_or_default();
                after.add(name, life);
            }
            Self::Remove(name) => drop(after.live.remove(name)),
            Self::Image(name) | Self::Pull(name) => drop(after.images.insert(image(name))),
            Self::Unused => after.images.clear(),
            Self::Export(name, archive) => {
                let text = after.live.get(name).map(|life| life.text.clone());
                let text = text.unwrap_or_default();
                after.archives.insert(archive.clone(), text);
            }
            Self::Import(archive, name) => {
                let text = after.archives.get(archive).cloned().unwrap_or_default();
                after.add(name, Life::of_text(text));
            }
        }
        after
    }
}

/// What is taken to be done at a random moment.
const ANY: [&str; 17] = [
    "create", "start", "stop", "rename", "snapshot", "discard", "restore", "clone", "trash",
    "undelete", "remove", "look", "image", "pull", "export", "import", "set",
];

/// Something that can be done now. `number` makes new names.
pub(super) fn any(known: &Known, random: &mut Random, number: u32) -> Deed {
    let mut choice = Choice {
        known,
        random,
        number,
    };
    loop {
        let kind = choice.random.pick(&ANY).copied().unwrap_or("create");
        if let Some(deed) = choice.deed(kind) {
            return deed;
        }
    }
}

/// A deed that comes by this point, if one can be done now.
pub(super) fn by_point(
    point: &str,
    known: &Known,
    random: &mut Random,
    number: u32,
) -> Option<Deed> {
    let kind = match point {
        "snapshot.discarded" => "discard",
        "image.prune.forgotten" => "unused",
        _ if point.starts_with("image.layer.") => "pull",
        _ => match point.split('.').next().unwrap_or_default() {
            "copy" => "snapshot-running",
            "clone" => "clone-whole",
            "tree" => "restore",
            "workspace" => "keep",
            other => other,
        },
    };
    let mut choice = Choice {
        known,
        random,
        number,
    };
    choice.deed(kind)
}

/// One of what is there, by chance.
struct Choice<'a> {
    known: &'a Known,
    random: &'a mut Random,
    number: u32,
}

impl Choice<'_> {
    fn deed(&mut self, kind: &str) -> Option<Deed> {
        let number = self.number;
        let label = format!("s{number}");
        Some(match kind {
            "create" => Deed::Create(self.new_name()?),
            "start" => Deed::Start(self.live(|life| !life.running)?),
            "stop" => Deed::Stop(self.live(|life| life.running)?),
            "set" => Deed::Set(self.live(|life| life.running)?),
            "rename" => Deed::Rename(self.live(|_| true)?, format!("r{number}")),
            "snapshot" => Deed::Snapshot(self.live(|_| true)?, label),
            "snapshot-running" => Deed::Snapshot(self.live(|life| life.running)?, label),
            "discard" => {
                let (name, label) = self.snapshot()?;
                Deed::Discard(name, label)
            }
            "restore" => {
                let (name, label) = self.snapshot()?;
                Deed::Restore(name, label)
            }
            "clone" => {
                let (name, label) = self.snapshot()?;
                let label = Some(label).filter(|_| self.random.below(2) == 0);
                Deed::Clone(name, label, self.new_name()?)
            }
            "clone-whole" => Deed::Clone(self.snapshot()?.0, None, self.new_name()?),
            "trash" => Deed::Trash(self.for_trash(|_| true)?),
            "look" => Deed::Look(self.for_trash(|life| !life.running)?),
            "keep" => Deed::Keep(self.for_trash(|_| true)?),
            "remove" => Deed::Remove(self.spare(|_| true)?),
            "undelete" => {
                let trash: Vec<&String> = self.known.trash.keys().collect();
                Deed::Undelete((*self.random.pick(&trash)?).clone())
            }
            "image" => Deed::Image(format!("i{number}.tar")),
            "pull" => Deed::Pull(super::registry::IMAGE.to_owned()),
            "unused" if !self.known.live.is_empty() => Deed::Unused,
            "export" => Deed::Export(self.live(|_| true)?, format!("a{number}.tar.zst")),
            "import" => {
                let archives: Vec<&String> = self.known.archives.keys().collect();
                Deed::Import((*self.random.pick(&archives)?).clone(), self.new_name()?)
            }
            _ => return None,
        })
    }

    fn new_name(&self) -> Option<String> {
        (self.known.live.len() < LIVE_MAX).then(|| format!("b{}", self.number))
    }

    fn live(&mut self, keep: impl Fn(&Life) -> bool) -> Option<String> {
        let kept = self.known.live.iter().filter(|(_, life)| keep(life));
        let names: Vec<&String> = kept.map(|(name, _)| name).collect();
        self.random.pick(&names).map(|name| (*name).clone())
    }

    /// One always stays: images in use are not pruned.
    fn spare(&mut self, keep: impl Fn(&Life) -> bool) -> Option<String> {
        if self.known.live.len() > 1 {
            self.live(keep)
        } else {
            None
        }
    }

    fn for_trash(&mut self, keep: impl Fn(&Life) -> bool) -> Option<String> {
        if self.known.trash.len() < TRASH_MAX {
            self.spare(keep)
        } else {
            None
        }
    }

    /// One whose content is known, so not one the host took by itself.
    fn snapshot(&mut self) -> Option<(String, String)> {
        let known = |label: &&String| !is_automatic(label);
        let name = self.live(|life| life.snapshots.keys().any(|label| known(&label)))?;
        let labels = self.known.live.get(&name)?.snapshots.keys();
        let labels: Vec<&String> = labels.filter(known).collect();
        let label = (*self.random.pick(&labels)?).clone();
        Some((name, label))
    }
}
