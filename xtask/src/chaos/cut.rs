//! One cut: something is begun, the host dies, another one puts things right, and all is looked at.

use super::deed::{self, Deed, LIVE_MAX};
use super::known::Known;
use super::random::Random;
use super::world::World;
use anyhow::{Context as _, Result, bail};
use box_api::control::{KeepWorkspace, Removal, Remove, Request, Target, Unpushed};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// How long a deed is taken to last before one of its kind was measured.
const FIRST_GUESS: Duration = Duration::from_millis(150);
/// A host that came by its point is dead within this time.
const DEAD_WITHIN: Duration = Duration::from_millis(200);
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// Deeds tried to make a point possible.
const STEPS_MAX: u32 = 12;

/// What one cut came to.
#[derive(Debug)]
pub(super) struct Cut {
    pub(super) deed: Deed,
    /// The named point; absent for a random moment.
    pub(super) point: Option<String>,
    /// Whether the host came by its point.
    pub(super) reached: bool,
    /// What was lost, and what belongs to nobody.
    pub(super) wrong: Vec<String>,
}

impl std::fmt::Display for Cut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let at = self.point.as_deref().unwrap_or("a random moment");
        write!(f, "{:?} at {at}", self.deed)
    }
}

#[derive(Debug)]
pub(super) struct Cutter {
    random: Random,
    known: Known,
    number: u32,
    /// How long the last deed of each kind took.
    took: BTreeMap<&'static str, Duration>,
}

impl Cutter {
    pub(super) fn new(random: Random) -> Self {
        Self {
            random,
            known: Known::default(),
            number: 0,
            took: BTreeMap::new(),
        }
    }

    /// Makes one cut, at a named point or at a random moment.
    pub(super) fn cut(&mut self, world: &mut World, point: Option<&str>) -> Result<Cut> {
        let deed = self.prepare(world, point)?;
        world.start(point)?;
        let begun = Instant::now();
        let (told, reached) = match (point, &deed) {
            (Some(_), _) => {
                let told = carry_out(world, &deed)?;
                (told, died_within(world, DEAD_WITHIN)?)
            }
            (None, Deed::Look(name)) => (look(world, name), true),
            (None, _) => (self.interrupt(world, &deed)?, true),
        };
        if point.is_some() || told {
            self.took.insert(deed.word(), begun.elapsed());
        }
        world.kill()?;
        let place = |name: &str| world.place(name);
        let after = deed.done(&self.known, |name| image_name(&deed, name, place));
        world.start(None)?;
        let mut wrong = Vec::new();
        let (seen, boxes) = world.look(&after)?;
        let involved = deed.involved();
        let as_told = after.missing_in(&seen, &involved);
        let as_before = self.known.missing_in(&seen, &involved);
        // Who was told nothing takes what is there.
        if told {
            wrong.extend(as_told);
        } else if !as_told.is_empty() && !as_before.is_empty() {
            wrong.push("neither done nor not begun:".to_owned());
            wrong.extend(as_told);
            wrong.extend(as_before);
        }
        wrong.extend(world.orphans(&boxes)?);
        // Only of an archive that was written whole anybody was told.
        let archives = if told {
            after.archives
        } else {
            std::mem::take(&mut self.known.archives)
        };
        self.known = Known { archives, ..seen };
        self.alive(world, &mut wrong)?;
        world.kill()?;
        Ok(Cut {
            deed,
            point: point.map(str::to_owned),
            reached,
            wrong,
        })
    }

    /// Every box that runs answers: nothing was left frozen or without its guest.
    fn alive(&self, world: &World, wrong: &mut Vec<String>) -> Result<()> {
        let running = self.known.live.iter().filter(|(_, life)| life.running);
        let names: Vec<&String> = running.map(|(name, _)| name).collect();
        if let Some(name) = names.get(usize::try_from(self.number)? % names.len().max(1)) {
            let said = world.say(&["exec", name, "--", "true"])?;
            if said.code != 0 {
                wrong.push(format!(
                    "{name} runs and answers {}: {}",
                    said.code, said.err
                ));
            }
        }
        Ok(())
    }

    /// Brings the world to where the deed is possible, with a host that nobody cuts.
    fn prepare(&mut self, world: &mut World, point: Option<&str>) -> Result<Deed> {
        world.start(None)?;
        // A kept workspace is the one way to two boxes of one name: the old one is told from the new
        // by nothing in this run.
        let names = self.known.trash.keys();
        if names
            .into_iter()
            .any(|name| self.known.live.contains_key(name))
        {
            self.empty_trash(world)?;
        }
        if point == Some("import.image") {
            let deed = self.archive_of_an_image(world)?;
            world.kill()?;
            return Ok(deed);
        }
        let mut deed = None;
        for _ in 0..STEPS_MAX {
            self.number += 1;
            let wish = match point {
                Some(point) => deed::by_point(point, &self.known, &mut self.random, self.number),
                None => Some(deed::any(&self.known, &mut self.random, self.number)),
            };
            if let Some(wish) = wish {
                deed = Some(wish);
                break;
            }
            self.step(world, point.unwrap_or_default())?;
        }
        let Some(deed) = deed else {
            bail!("nothing that can be done comes by {point:?}");
        };
        self.furnish(world, &deed)?;
        world.kill()?;
        Ok(deed)
    }

    fn empty_trash(&mut self, world: &World) -> Result<()> {
        world.must(&["prune", "--all", "--force"])?;
        self.known.trash.clear();
        Ok(())
    }

    /// Something that makes more possible.
    fn step(&mut self, world: &mut World, point: &str) -> Result<()> {
        let number = self.number;
        let kind = point.split('.').next().unwrap_or_default();
        let live = self.known.live.len();
        let mut names = self.known.live.keys();
        let first = names.next().cloned();
        let full = live >= LIVE_MAX;
        let step = match (kind, first) {
            ("clone" | "create" | "import", Some(name)) if full => Deed::Remove(name),
            ("undelete", Some(name)) if live > 1 => Deed::Trash(name),
            ("import", Some(name)) => Deed::Export(name, format!("a{number}.tar.zst")),
            ("start" | "look", Some(name)) if live > 1 => Deed::Stop(name),
            ("snapshot" | "restore" | "tree" | "clone", Some(name)) => {
                Deed::Snapshot(name, format!("s{number}"))
            }
            ("stop" | "copy" | "set", Some(name)) => Deed::Start(name),
            ("trash" | "look" | "workspace", Some(_)) if self.known.trash.len() > 1 => {
                return self.empty_trash(world);
            }
            (_, Some(_) | None) => Deed::Create(format!("b{number}")),
        };
        self.do_whole(world, &step)
    }

    fn do_whole(&mut self, world: &mut World, deed: &Deed) -> Result<()> {
        let words = deed.words(|name| world.place(name));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        world.must(&words)?;
        self.known = deed.done(&self.known, str::to_owned);
        if let Deed::Create(name) = deed {
            let text = format!("written by {name}");
            world.write(name, &text)?;
            if let Some(life) = self.known.live.get_mut(name) {
                life.text = text;
            }
        }
        Ok(())
    }

    /// An archive that brings an image this host has no more.
    fn archive_of_an_image(&mut self, world: &World) -> Result<Deed> {
        let (tar, archive) = ("travels.tar", "travels.tar.zst");
        // Boxes of it are to answer like any other.
        let bin = world.top.join("pack/bin");
        fs::create_dir_all(&bin)?;
        let busybox = ["/bin/busybox", "/usr/bin/busybox"].map(Path::new);
        let busybox = busybox.iter().find(|path| path.exists());
        let busybox = busybox.context("`busybox` of busybox-static is needed")?;
        for name in ["sh", "true"] {
            fs::copy(busybox, bin.join(name))?;
        }
        pack(world, tar)?;
        fs::remove_dir_all(&bin)?;
        let image = format!("file:{}", world.place(tar));
        world.must(&["new", "travels", "--no-start", "--image", &image])?;
        world.must(&["export", "travels", &world.place(archive), "--force"])?;
        world.must(&["rm", "travels", "--force", "--now"])?;
        world.must(&["image", "remove", &image])?;
        self.known
            .archives
            .insert(archive.to_owned(), String::new());
        let name = format!("b{}", self.number);
        Ok(Deed::Import(archive.to_owned(), name))
    }

    /// What the deed needs besides boxes.
    fn furnish(&mut self, world: &mut World, deed: &Deed) -> Result<()> {
        match deed {
            Deed::Image(name) => pack(world, name),
            Deed::Pull(name) => {
                let image = format!("oci:{name}");
                if self.known.images.remove(&image) {
                    world.must(&["image", "remove", &image])?;
                }
                world.must(&["image", "prune", "--force"])?;
                self.known.images.clear();
                Ok(())
            }
            Deed::Unused => {
                let name = format!("u{}.tar", self.number);
                pack(world, &name)?;
                let image = format!("file:{}", world.place(&name));
                world.must(&["image", "prepare", &image]).map(drop)
            }
            Deed::Keep(name) => {
                world.must(&["rm", name, "--force", "--keep-workspace"])?;
                self.known = Deed::Trash(name.clone()).done(&self.known, str::to_owned);
                Ok(())
            }
            Deed::Create(_)
            | Deed::Start(_)
            | Deed::Stop(_)
            | Deed::Set(_)
            | Deed::Rename(..)
            | Deed::Snapshot(..)
            | Deed::Discard(..)
            | Deed::Restore(..)
            | Deed::Clone(..)
            | Deed::Trash(_)
            | Deed::Undelete(_)
            | Deed::Remove(_)
            | Deed::Look(_)
            | Deed::Export(..)
            | Deed::Import(..) => Ok(()),
        }
    }

    /// Kills the host at a random moment of the deed; whether a person was told that it is done.
    fn interrupt(&mut self, world: &mut World, deed: &Deed) -> Result<bool> {
        let usual = self.took.get(deed.word()).copied().unwrap_or(FIRST_GUESS);
        // A little longer than it takes, so that its end is cut as well.
        let most_us = u64::try_from(usual.as_micros())? * 6 / 5 + 1;
        let moment = Duration::from_micros(self.random.below(most_us));
        let words = deed.words(|name| world.place(name));
        let child = world.begin(&words)?;
        std::thread::sleep(moment);
        world.kill()?;
        let said = World::finish(child)?;
        hangs(&said.err, said.code, deed)?;
        Ok(said.code == 0)
    }
}

/// Does the deed with a host that is to die in it; whether a person was told that it is done.
fn carry_out(world: &mut World, deed: &Deed) -> Result<bool> {
    if let Deed::Look(name) = deed {
        return Ok(look(world, name));
    }
    let said = World::finish(world.begin(&deed.words(|name| world.place(name)))?)?;
    hangs(&said.err, said.code, deed)?;
    Ok(said.code == 0)
}

/// Code 124 or 137 is that of timeout(1).
fn hangs(err: &str, code: i32, deed: &Deed) -> Result<()> {
    if code == 124 || code == 137 {
        bail!("{deed:?} hangs: {err}");
    }
    Ok(())
}

fn look(world: &World, name: &str) -> bool {
    let Ok(name) = box_api::BoxName::parse(name) else {
        return false;
    };
    world.ask(&Request::Remove(Remove {
        target: Target::Box(name),
        how: Removal::Trash,
        workspace: KeepWorkspace::No,
        unpushed: Unpushed::Refuse,
    }))
}

fn died_within(world: &mut World, most: Duration) -> Result<bool> {
    let deadline = Instant::now() + most;
    while !world.is_dead()? {
        if Instant::now() > deadline {
            return Ok(false);
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(true)
}

/// What an image is called in lists.
fn image_name(deed: &Deed, name: &str, place: impl Fn(&str) -> String) -> String {
    if matches!(deed, Deed::Pull(_)) {
        format!("oci:{name}")
    } else {
        format!("file:{}", place(name))
    }
}

/// A root file system of one file, another one each time.
fn pack(world: &World, name: &str) -> Result<()> {
    let folder = world.top.join("pack");
    fs::create_dir_all(folder.join("bin"))?;
    fs::write(folder.join("bin/name"), name)?;
    let status = Command::new("tar")
        .args(["--create", "--file", &world.place(name), "--directory"])
        .arg(&folder)
        .arg("bin")
        .status()
        .context("could not start `tar`")?;
    if !status.success() {
        bail!("`tar` ended with {status}");
    }
    Ok(())
}
