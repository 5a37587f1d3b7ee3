//! Boxes as the host knows them: their rows, and how a name becomes one.

pub mod rows;

use crate::caller::Caller;
use crate::host::Host;
use crate::store::StoreError;
use crate::suggest::nearest;
use crate::watch;
use box_api::control::{
    BoxInfo, BoxSettings, BoxState, KeepWorkspace, Limits, NetPreset, Origin, Profile, Traffic,
};
use box_api::thread::ThreadInfo;
use box_api::{BoxId, BoxName, BoxTitle, Owner};

/// A box's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoxRecord {
    pub id: BoxId,
    pub owner: Owner,
    pub name: BoxName,
    pub title: Option<BoxTitle>,
    pub state: BoxState,
    /// The engine it was made with.
    pub runtime: String,
    /// As a person typed it.
    pub image: String,
    pub image_digest: String,
    pub profile: Profile,
    pub net: NetPreset,
    pub limits: Limits,
    /// Entries the owner added to the preset: `host`, `*.host`, `host:port`.
    pub allow: Vec<String>,
    /// First host id of its own range of 65,536.
    pub id_offset: u32,
    pub created_at_ms: i64,
    /// Why it failed.
    pub problem: Option<String>,
    pub settings: BoxSettings,
    /// Where its files came from, when that was no image.
    pub origin: Option<Origin>,
    /// Since when it is in the trash.
    pub trashed_at_ms: Option<i64>,
}

impl BoxRecord {
    /// Whether it has its name still: a box on its way out has given it back.
    pub fn is_live(&self) -> bool {
        self.state != BoxState::Removing && self.state != BoxState::Trashed
    }
}

/// Why a box could not be found.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    #[error("there is no box `{name}`")]
    Unknown {
        name: BoxName,
        /// The caller's box that was probably meant.
        near: Option<BoxName>,
        /// Whether the caller has any box at all.
        any: Any,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Whether there is something to choose from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Any {
    None,
    Some,
}

/// The caller's box of that name; for an admin any user's, their own first.
///
/// # Errors
/// [`FindError::Unknown`], with the name that was probably meant.
pub async fn find(host: &Host, caller: &Caller, name: &BoxName) -> Result<BoxRecord, FindError> {
    let visible = list(host, caller).await?;
    let named = || visible.iter().filter(|record| record.name == *name);
    let own = named().find(|record| record.owner == caller.owner);
    if let Some(record) = own.or_else(|| named().next()) {
        return Ok(record.clone());
    }
    let known: Vec<&str> = visible.iter().map(|record| record.name.as_str()).collect();
    let near = nearest(name.as_str(), &known).and_then(|near| BoxName::parse(near).ok());
    let any = if known.is_empty() {
        Any::None
    } else {
        Any::Some
    };
    Err(FindError::Unknown {
        name: name.clone(),
        near,
        any,
    })
}

/// The boxes a caller may see, by name. A box being removed has lost its name and is not shown.
///
/// # Errors
/// What the store said.
pub async fn list(host: &Host, caller: &Caller) -> Result<Vec<BoxRecord>, StoreError> {
    let records = host.store.read(rows::all).await?;
    let visible = records
        .into_iter()
        .filter(|record| caller.may(&record.owner) && record.is_live());
    Ok(visible.collect())
}

/// The caller's boxes in the trash, the newest first.
///
/// # Errors
/// What the store said.
pub async fn trash(host: &Host, caller: &Caller) -> Result<Vec<BoxRecord>, StoreError> {
    let read = |connection: &rusqlite::Connection| rows::trashed(connection, KeepWorkspace::Yes);
    let mut records = host.store.read(read).await?;
    records.retain(|record| caller.may(&record.owner));
    records.reverse();
    Ok(records)
}

/// The box with this id, whoever's it is.
///
/// # Errors
/// What the store said.
pub async fn get(host: &Host, id: BoxId) -> Result<Option<BoxRecord>, StoreError> {
    host.store
        .read(move |connection| rows::get(connection, &id))
        .await
}

/// A box as clients see it, but for what [`crate::watch`] and [`crate::events`] know. `pid` is its
/// pid 1, `threads` what the threads module lists.
pub fn info(
    host: &Host,
    record: &BoxRecord,
    pid: Option<u32>,
    threads: Vec<ThreadInfo>,
) -> BoxInfo {
    let runtime = host.runtime_of(record).ok();
    let workspace = runtime.and_then(|runtime| runtime.workspace(&record.id));
    BoxInfo {
        id: record.id,
        name: record.name.clone(),
        title: record.title.clone(),
        owner: record.owner,
        state: record.state,
        runtime: record.runtime.clone(),
        image: record.image.clone(),
        profile: record.profile,
        net: record.net,
        limits: record.limits,
        limits_held_by: runtime
            .map_or("nothing", |runtime| runtime.limits_held_by())
            .to_owned(),
        created_at_ms: record.created_at_ms,
        threads,
        workspace: workspace.map(|path| path.display().to_string()),
        pid,
        problem: record.problem.clone(),
        settings: BoxSettings {
            // What holds, so that nobody needs the settings of the host to tell.
            freeze_after_ms: Some(watch::freeze_after(host, record).unwrap_or(0)),
            ..record.settings.clone()
        },
        accounts: Vec::new(),
        origin: record.origin.clone(),
        trashed_at_ms: record.trashed_at_ms,
        frozen: false,
        frozen_why: None,
        traffic: Traffic::default(),
        events: Vec::new(),
    }
}

/// A state as a sentence about a box has it: `box `demo` is stopped`.
pub fn state_word(state: BoxState) -> &'static str {
    match state {
        BoxState::Creating => "being made",
        BoxState::Stopped => "stopped",
        BoxState::Starting => "starting",
        BoxState::Running => "running",
        BoxState::Stopping => "stopping",
        BoxState::Removing => "being removed",
        BoxState::Failed => "failed",
        BoxState::Restoring => "being restored",
        BoxState::Trashed => "in the trash",
    }
}

/// An error with its causes in one line, as a row keeps it.
pub fn reason(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.ends_with(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = error.source();
    }
    text
}
