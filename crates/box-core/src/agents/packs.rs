//! Packs after their installation: a newer one in the place of an older, and none at all.

use super::InstallError;
use super::added;
use super::install::{ensure, hold_agent};
use super::own;
use super::profile::{AgentProfile, PackKind, UnknownAgent, embedded, find};
use crate::boxes::rows;
use crate::host::Host;
use crate::lifecycle::is_still;
use crate::store::StoreError;
use box_api::control::AgentPacks;
use box_runtime::Progress;
use box_runtime::erase::erase;
use rusqlite::Connection;
use std::io;
use std::path::{Path, PathBuf};

/// Why packs were not brought up to date.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError {
    #[error(transparent)]
    Unknown(#[from] UnknownAgent),
    #[error("agent `{0}` has no pack: {1}")]
    NoPack(String, &'static str),
    #[error(transparent)]
    Install(#[from] InstallError),
    #[error("could not remove an old pack of `{agent}`")]
    Erase {
        agent: String,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why an agent was not removed.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    #[error(transparent)]
    Unknown(#[from] UnknownAgent),
    #[error("agent `{0}` is part of this program")]
    BuiltIn(String),
    #[error("agent `{0}` is not installed")]
    NotInstalled(String),
    #[error("agent `{agent}` is used by {}", said(.boxes))]
    InUse { agent: String, boxes: Vec<String> },
    #[error("could not remove agent `{agent}`")]
    Erase {
        agent: String,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn said(boxes: &[String]) -> String {
    let names: Vec<String> = boxes.iter().map(|name| format!("`{name}`")).collect();
    let word = if names.len() == 1 { "box" } else { "boxes" };
    format!("{word} {}", names.join(", "))
}

/// Installs what belongs to this build, of one agent or of all that have a pack here, and removes
/// older packs. A box that runs shows the packs it was started with: while one does they stay.
///
/// # Errors
/// [`UpdateError`]; what was done before stays done.
pub async fn update(
    host: &Host,
    agent: Option<&str>,
    progress: &dyn Progress,
) -> Result<AgentPacks, UpdateError> {
    let data = &host.paths.data;
    let has_one = |profile: &&AgentProfile| !versions(data, &profile.name).is_empty();
    let wanted: Vec<&AgentProfile> = match agent {
        Some(name) => vec![with_pack(find(name)?)?],
        None => embedded().iter().filter(has_one).collect(),
    };
    let records = host.store.read(rows::all).await?;
    let run = records.iter().filter(|record| !is_still(record.state));
    let boxes: Vec<String> = run.map(|record| record.name.to_string()).collect();
    let mut packs = AgentPacks::default();
    for profile in wanted {
        let new = ensure(profile, data, progress).await?;
        for old in versions(data, &profile.name) {
            if Some(&old) == new.as_ref() {
                continue;
            }
            let shown = shown(&old, &profile.name);
            if boxes.is_empty() {
                erase_all(data, &profile.name, vec![old])
                    .await
                    .map_err(|source| UpdateError::Erase {
                        agent: profile.name.clone(),
                        source,
                    })?;
                packs.removed.push(shown);
            } else {
                packs.kept.push(shown);
            }
        }
    }
    if !packs.kept.is_empty() {
        packs.boxes = boxes;
    }
    Ok(packs)
}

fn with_pack(profile: &'static AgentProfile) -> Result<&'static AgentProfile, UpdateError> {
    let why = match profile.pack {
        PackKind::Locked => return Ok(profile),
        PackKind::BuiltIn => "it is part of this program",
        PackKind::InBox => "its program is in the box",
    };
    Err(UpdateError::NoPack(profile.name.clone(), why))
}

/// Removes an agent's packs, or the profile that was added. While a box has a thread of it that is
/// refused, unless `in_use` says otherwise: its threads can go on once it is back.
///
/// # Errors
/// [`RemoveError`].
pub async fn remove(host: &Host, agent: &str, in_use: InUse) -> Result<AgentPacks, RemoveError> {
    let profile = find(agent)?;
    let data = &host.paths.data;
    let packs = versions(data, agent);
    match profile.pack {
        PackKind::BuiltIn => return Err(RemoveError::BuiltIn(agent.to_owned())),
        PackKind::Locked if packs.is_empty() => {
            return Err(RemoveError::NotInstalled(agent.to_owned()));
        }
        PackKind::Locked | PackKind::InBox => {}
    }
    let name = agent.to_owned();
    let boxes = host.store.read(move |tables| users(tables, &name)).await?;
    if in_use == InUse::Stays && !boxes.is_empty() {
        let agent = agent.to_owned();
        return Err(RemoveError::InUse { agent, boxes });
    }
    let erased = |source| RemoveError::Erase {
        agent: agent.to_owned(),
        source,
    };
    let mut removed: Vec<String> = packs.iter().map(|pack| shown(pack, agent)).collect();
    if profile.pack == PackKind::InBox {
        let file = own::folder(&host.paths.config).join(format!("{agent}.toml"));
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(erased(error)),
            Ok(()) | Err(_) => added::take(agent),
        }
        own::retell(host).await;
        removed.push(format!("{agent}.toml"));
    }
    erase_all(data, agent, packs).await.map_err(erased)?;
    Ok(AgentPacks {
        removed,
        ..AgentPacks::default()
    })
}

/// Whether what boxes use goes too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InUse {
    Stays,
    Goes,
}

/// Names of the boxes that have a thread of this agent, but for those in the trash.
fn users(tables: &Connection, agent: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = tables.prepare_cached(
        "SELECT DISTINCT boxes.name FROM threads JOIN boxes ON boxes.id = threads.box_id \
         WHERE threads.agent = ?1 AND boxes.state NOT IN ('trashed', 'removing') ORDER BY boxes.name",
    )?;
    let names = statement.query_map([agent], |row| row.get(0))?;
    names.collect()
}

/// Every pack of an agent that lies here, whole ones: each got its place at once.
fn versions(data: &Path, agent: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(data.join("agents").join(agent));
    let entries = entries.into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut found: Vec<PathBuf> = folders.map(|entry| entry.path()).collect();
    found.sort();
    found
}

fn shown(pack: &Path, agent: &str) -> String {
    let version = pack.file_name().unwrap_or_default().to_string_lossy();
    format!("{agent}/{version}")
}

async fn erase_all(data: &Path, agent: &str, packs: Vec<PathBuf>) -> io::Result<()> {
    if packs.is_empty() {
        return Ok(());
    }
    let folder = data.join("agents").join(agent);
    let erased = tokio::task::spawn_blocking(move || {
        let _held = hold_agent(&folder)?;
        packs.iter().try_for_each(|pack| erase(pack))
    });
    erased.await.map_err(io::Error::other)?
}
