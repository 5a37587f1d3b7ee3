//! What a killed host must not leave behind: processes, mounts, cgroups, folders, rows.

use anyhow::{Context as _, Result};
use box_api::control::{BoxInfo, BoxState};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// An id has so many characters of `a-z2-7`.
const ID_CHARS: usize = 16;
const CGROUP_DEPTH_MAX: usize = 7;
/// Folders of the data folder with one entry a box.
const BY_BOX: [&str; 5] = ["boxes", "snapshots", "snaps", "placed", "logs"];

/// Where to look, and what is known to be there.
#[derive(Debug)]
pub(super) struct Grounds<'a> {
    pub(super) data: &'a Path,
    pub(super) run: &'a Path,
    /// Every box there ever was.
    pub(super) ids: &'a BTreeSet<String>,
    pub(super) registry: u32,
    pub(super) host: u32,
}

/// One line for each thing that belongs to none of `boxes`, which are all there are.
pub(super) fn find(grounds: &Grounds<'_>, boxes: &[BoxInfo]) -> Result<Vec<String>> {
    let all: BTreeSet<String> = boxes.iter().map(|info| info.id.to_string()).collect();
    let running = boxes.iter().filter(|info| info.state == BoxState::Running);
    let running: BTreeSet<String> = running.map(|info| info.id.to_string()).collect();
    let mut found = Vec::new();
    rows(grounds, &all, &mut found)?;
    folders(grounds, (&all, &running), &mut found);
    cgroups(grounds, &running, &mut found);
    processes(grounds, &running, &mut found);
    mounts(grounds, &mut found)?;
    Ok(found)
}

/// Every row is a box that is shown, live or in the trash.
fn rows(grounds: &Grounds<'_>, all: &BTreeSet<String>, found: &mut Vec<String>) -> Result<()> {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let tables = rusqlite::Connection::open_with_flags(grounds.data.join("box.db"), flags)?;
    let mut statement = tables.prepare("SELECT id, state FROM boxes")?;
    let rows = statement.query_map([], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
    })?;
    for row in rows {
        let (id, state) = row?;
        let settled = ["stopped", "running", "failed", "trashed"].contains(&&*state);
        if !settled || !all.contains(&id) {
            found.push(format!("a row of box {id}, {state}"));
        }
    }
    Ok(())
}

fn folders(
    grounds: &Grounds<'_>,
    (all, running): (&BTreeSet<String>, &BTreeSet<String>),
    found: &mut Vec<String>,
) {
    for name in BY_BOX {
        for entry in names(&grounds.data.join(name)) {
            if is_id(&entry) && !all.contains(&entry) {
                found.push(format!("{name}/{entry}"));
            }
        }
    }
    for id in all {
        if !grounds.data.join("boxes").join(id).is_dir() {
            found.push(format!("a box without files: {id}"));
        }
    }
    for entry in names(&grounds.data.join("tmp")) {
        found.push(format!("tmp/{entry}"));
    }
    for entry in names(&grounds.run.join("boxes")) {
        if is_id(&entry) && !running.contains(&entry) {
            found.push(format!("the run folder of box {entry}"));
        }
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

fn is_id(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || ('2'..='7').contains(&c);
    name.len() == ID_CHARS && name.chars().all(plain)
}

/// Groups of boxes that do not run; groups of running boxes that stand still.
fn cgroups(grounds: &Grounds<'_>, running: &BTreeSet<String>, found: &mut Vec<String>) {
    let mut open = vec![(PathBuf::from("/sys/fs/cgroup"), 0)];
    while let Some((folder, depth)) = open.pop() {
        for name in names(&folder) {
            let path = folder.join(&name);
            if !path.is_dir() {
                continue;
            }
            let owner = grounds.ids.iter().find(|id| name.contains(id.as_str()));
            match owner {
                Some(id) if !running.contains(id) => {
                    found.push(format!("cgroup {}", path.display()));
                }
                Some(_) if stands_still(&path) => {
                    found.push(format!("frozen: {}", path.display()));
                }
                None if depth < CGROUP_DEPTH_MAX => open.push((path, depth + 1)),
                Some(_) | None => {}
            }
        }
    }
}

fn stands_still(group: &Path) -> bool {
    let says = |file: &str, word: &str| {
        fs::read_to_string(group.join(file)).is_ok_and(|text| text.trim() == word)
    };
    says("freezer.state", "FROZEN") || says("cgroup.freeze", "1")
}

/// Everything here is the host, its spawner, its way out, the registry, or of a box that runs.
fn processes(grounds: &Grounds<'_>, running: &BTreeSet<String>, found: &mut Vec<String>) {
    reap();
    let own = std::process::id();
    let here = fs::read_link("/proc/self/ns/pid").ok();
    let mut ours = Vec::new();
    for name in names(Path::new("/proc")) {
        let Ok(pid) = name.parse::<u32>() else {
            continue;
        };
        if pid == own || pid == grounds.registry || pid == grounds.host {
            continue;
        }
        let of = |file: &str| PathBuf::from(format!("/proc/{pid}/{file}"));
        let line = fs::read(of("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        // One that has just ended.
        let Ok(space) = fs::read_link(of("ns/pid")) else {
            continue;
        };
        if Some(&space) == here.as_ref() {
            ours.push(line);
            continue;
        }
        let groups = fs::read_to_string(of("cgroup")).unwrap_or_default();
        if !running.iter().any(|id| groups.contains(id.as_str())) {
            found.push(format!("process {pid}: {line}"));
        }
    }
    let with = |word: &str| ours.iter().filter(|line| line.contains(word)).count();
    let (egress, spawners) = (with("egress"), with("serve"));
    if egress > 1 || spawners > 1 || ours.len() > egress + spawners {
        found.push(format!("processes nobody needs among: {ours:?}"));
    }
}

/// What ends without a parent is this process' child: it is the first of its namespace.
fn reap() {
    use rustix::process::{WaitOptions, wait};
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
}

fn mounts(grounds: &Grounds<'_>, found: &mut Vec<String>) -> Result<()> {
    let table = fs::read_to_string("/proc/self/mountinfo").context("could not read the mounts")?;
    let places = table.lines().filter_map(|line| line.split(' ').nth(4));
    for place in places.map(Path::new) {
        if place.starts_with(grounds.data) || place.starts_with(grounds.run) {
            found.push(format!("mount {}", place.display()));
        }
    }
    Ok(())
}
