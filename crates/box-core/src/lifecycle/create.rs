//! `create`: image → row → engine → start.

use super::claim::settle;
use super::marks::mark;
use super::set::{SettingError, check_settings};
use super::setup::{ScriptError, check_script};
use super::start::{StartError, start};
use super::workspace;
use crate::boxes::rows::{self, Reserved};
use crate::boxes::{self, BoxRecord};
use crate::caller::Caller;
use crate::credentials;
use crate::host::Host;
use crate::lifecycle::{files, spec_of};
use crate::network::lint;
use crate::network::rules::Ruling;
use crate::policy::Levelled;
use crate::pool;
use crate::store::{Durability, StoreError};
use box_api::BoxName;
use box_api::control::{BoxState, Limits, NewBox};
use box_api::egress::{Entry, HostPattern, HostPatternError};
use box_api::network::{Finding, Weight};
use box_api::snapshot::SnapshotKind;
use box_runtime::{Progress, RuntimeError, fault};
use rusqlite::Transaction;
use std::sync::Arc;

/// Entries a person can add to a preset.
const ALLOW_ENTRIES_MAX: usize = 256;

/// Why a box was not made.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    #[error("there is a box `{0}` already")]
    NameTaken(BoxName),
    #[error("this machine has no room for another box: every id range is in use")]
    Full,
    #[error("a box can have {ALLOW_ENTRIES_MAX} entries of its own, not {0}")]
    TooManyEntries(usize),
    #[error("a box cannot live with less than {0}")]
    TooSmall(&'static str),
    #[error("there is no credential `{0}`")]
    NoCredential(String),
    #[error(transparent)]
    Setting(#[from] SettingError),
    #[error("could not use an entry of the box's list")]
    Allow(#[from] HostPatternError),
    #[error("the entry `{}` {}", .0.entry, .0.text)]
    Never(Finding),
    #[error("could not get the image `{image}` ready")]
    Image {
        image: String,
        #[source]
        source: RuntimeError,
    },
    #[error("could not make box `{name}`")]
    Engine {
        name: BoxName,
        #[source]
        source: RuntimeError,
    },
    #[error("could not write the files of box `{name}`")]
    Files {
        name: BoxName,
        #[source]
        source: files::FilesError,
    },
    #[error(transparent)]
    Script(#[from] ScriptError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the host is ending")]
    Ending,
}

/// Makes a box, and starts it if that was asked.
///
/// # Errors
/// [`CreateError`]; nothing of the box is left, unless it was made and only its start failed.
pub async fn create(
    host: &Arc<Host>,
    caller: &Caller,
    asked: NewBox,
    progress: Arc<dyn Progress>,
) -> Result<BoxRecord, CreateError> {
    let (host, caller) = (Arc::clone(host), *caller);
    let recipe = tokio::spawn(async move { recipe(&host, &caller, asked, &*progress).await });
    recipe.await.map_err(|_| CreateError::Ending)?
}

async fn recipe(
    host: &Arc<Host>,
    caller: &Caller,
    asked: NewBox,
    progress: &dyn Progress,
) -> Result<BoxRecord, CreateError> {
    check_entries(&asked.allow)?;
    check_limits(&asked.limits)?;
    check_settings(&**host.runtimes.default(), &asked.settings)?;
    let missing = credentials::missing(host, caller.owner, &asked.settings.accounts).await?;
    missing.map_or(Ok(()), |name| Err(CreateError::NoCredential(name)))?;
    refuse_taken(host, caller, &asked.name).await?;
    check_script(&asked)?;
    let (start_it, marks) = (asked.start, asked.marks);
    let record = reserved(host, caller, asked, progress).await?;
    fault::point("create.reserved");
    if let Err(error) = build(host, &record).await {
        give_up(host, &record).await;
        return Err(error);
    }
    fault::point("create.built");
    if marks.pristine && host.settings.pristine.value {
        // Before anything of its owner: its trees are empty, so that it costs nothing anywhere.
        mark(host, &record, SnapshotKind::Pristine, progress).await;
    }
    fault::point("create.marked");
    settle(host, record.id, BoxState::Stopped, None).await?;
    fault::point("create.settled");
    workspace::take_over(host, &record, progress).await;
    if start_it {
        let started = start(host, record.id).await?;
        pool::used(host, &started).await;
        return Ok(started);
    }
    Ok(boxes::get(host, record.id).await?.unwrap_or(record))
}

pub(super) fn check_entries(allow: &[String]) -> Result<(), CreateError> {
    if allow.len() > ALLOW_ENTRIES_MAX {
        return Err(CreateError::TooManyEntries(allow.len()));
    }
    let entries = allow
        .iter()
        .map(|entry| HostPattern::parse(entry).map(Entry::Host))
        .collect::<Result<Vec<_>, _>>()?;
    let levelled = |entry| Levelled {
        entry,
        ruling: Ruling::Allow,
        from: "box".to_owned(),
    };
    let levelled: Vec<Levelled> = entries.into_iter().map(levelled).collect();
    let mut findings = lint::of_entries(&levelled).into_iter();
    match findings.find(|finding| finding.weight == Weight::Error) {
        Some(finding) => Err(CreateError::Never(finding)),
        None => Ok(()),
    }
}

/// Below these a box does not start, or nothing runs in it.
pub(super) fn check_limits(limits: &Limits) -> Result<(), CreateError> {
    match too_small(limits) {
        Some(least) => Err(CreateError::TooSmall(least)),
        None => Ok(()),
    }
}

/// What it would need at least.
pub(super) fn too_small(limits: &Limits) -> Option<&'static str> {
    let least = [
        (limits.memory_bytes >= 16 << 20, "16 MiB of memory"),
        (limits.pids >= 8, "8 processes"),
        (limits.cpu_milli >= 10, "a hundredth of a CPU"),
        (limits.tmp_bytes >= 1 << 20, "1 MiB of /tmp"),
        (limits.open_files >= 64, "64 open files"),
    ];
    let missing = least.into_iter().find(|(enough, _)| !enough);
    missing.map(|(_, least)| least)
}

/// Early, so that nobody waits for an image in vain; the row's own check is the one that counts.
pub(super) async fn refuse_taken(
    host: &Host,
    caller: &Caller,
    name: &BoxName,
) -> Result<(), CreateError> {
    let (owner, wanted) = (caller.owner, name.clone());
    let taken = host
        .store
        .read(move |connection| rows::name_taken(connection, &owner, &wanted));
    if taken.await? {
        Err(CreateError::NameTaken(name.clone()))
    } else {
        Ok(())
    }
}

/// From the row on its image is in use. One that went between being ready and that is made again.
async fn reserved(
    host: &Host,
    caller: &Caller,
    asked: NewBox,
    progress: &dyn Progress,
) -> Result<BoxRecord, CreateError> {
    loop {
        let mut record = planned(host, caller, asked.clone(), progress).await?;
        let _stays = host.image_use.begin().await;
        let images = host.runtimes.default().images();
        if images.is_ready(&record.image_digest) {
            let spare = if asked.start {
                host.pool.take().await
            } else {
                None
            };
            record.id = spare.unwrap_or(record.id);
            let reserved = reserve(host, record, |_| Ok(())).await;
            if let (Some(id), Err(_)) = (spare, &reserved) {
                pool::drop_one(host, id).await;
            }
            return reserved;
        }
    }
}

async fn planned(
    host: &Host,
    caller: &Caller,
    asked: NewBox,
    progress: &dyn Progress,
) -> Result<BoxRecord, CreateError> {
    let runtime = host.runtimes.default();
    let wanted = asked.image.as_deref().unwrap_or(box_runtime::DEFAULT_IMAGE);
    let image = runtime
        .images()
        .prepare(wanted, progress)
        .await
        .map_err(|source| CreateError::Image {
            image: wanted.to_owned(),
            source,
        })?;
    Ok(BoxRecord {
        id: host.random.box_id(),
        owner: caller.owner,
        name: asked.name,
        title: asked.title,
        state: BoxState::Creating,
        runtime: runtime.name().to_owned(),
        image: image.image,
        image_digest: image.digest,
        profile: asked.profile,
        net: asked.net,
        limits: asked.limits,
        allow: asked.allow,
        id_offset: 0,
        created_at_ms: host.now_ms(),
        problem: None,
        settings: asked.settings,
        origin: None,
        trashed_at_ms: None,
    })
}

/// On disk before the engine is asked: a box without a row would have no owner. `beside` writes what
/// belongs to the row, so that a box has both or neither.
pub(super) async fn reserve<F>(
    host: &Host,
    mut record: BoxRecord,
    beside: F,
) -> Result<BoxRecord, CreateError>
where
    F: FnOnce(&Transaction<'_>) -> rusqlite::Result<()> + Send + 'static,
{
    let row = record.clone();
    let reserved = host.store.write(Durability::Full, move |transaction| {
        let reserved = rows::reserve(transaction, &row)?;
        if let Reserved::Offset(_) = reserved {
            beside(transaction)?;
        }
        Ok(reserved)
    });
    let reserved = reserved.await?;
    host.changes.tell();
    match reserved {
        Reserved::Offset(id_offset) => {
            record.id_offset = id_offset;
            Ok(record)
        }
        Reserved::NameTaken => Err(CreateError::NameTaken(record.name)),
        Reserved::Full => Err(CreateError::Full),
    }
}

async fn build(host: &Host, record: &BoxRecord) -> Result<(), CreateError> {
    let engine = |source| CreateError::Engine {
        name: record.name.clone(),
        source,
    };
    files::place(host, record)
        .await
        .map_err(|source| CreateError::Files {
            name: record.name.clone(),
            source,
        })?;
    let runtime = host.runtime_of(record).map_err(engine)?;
    runtime.create(&spec_of(host, record)).await.map_err(engine)
}

/// Takes back what was begun. What cannot be taken back now, `reconcile` will.
pub(super) async fn give_up(host: &Host, record: &BoxRecord) {
    if let Err(error) = super::remove::dismantle(host, record).await {
        tracing::warn!(id = %record.id, %error, "a box that failed to be made is left for later");
    }
}
