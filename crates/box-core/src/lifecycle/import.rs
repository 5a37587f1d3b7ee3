//! `import`: manifest checked → archive read whole → row → files in their place → start.
//!
//! Nothing but the engine's `tmp/` is touched before the last byte of the archive was checked.

use super::claim::settle;
use super::create::{CreateError, check_entries, check_limits, give_up, refuse_taken, reserve};
use super::set::{SettingError, check_settings};
use super::travel::{Carried, origin};
use super::{files, spec_of, start};
use crate::boxes::rows;
use crate::boxes::{self, BoxRecord};
use crate::caller::Caller;
use crate::host::Host;
use crate::network::rules::{self, Rule, Ruling};
use crate::store::StoreError;
use box_api::BoxName;
use box_api::control::{Accounts, BoxSettings, BoxState, Import, Profile};
use box_api::egress::{GithubScope, Logins};
use box_runtime::archive::ImageInArchive;
use box_runtime::{Arrived, Manifest, Progress, Runtime, RuntimeError, Terms, fault};
use rusqlite::Transaction;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// A box that is full may be over its limit by what it wrote until that was seen.
const OVER_LIMIT_BYTES: u64 = 1 << 30;

/// Why an archive did not become a box.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("this host's engine reads no archives")]
    Unable,
    #[error("could not import the archive")]
    Archive(#[source] RuntimeError),
    #[error("could not import the archive: {0}")]
    Manifest(String),
    #[error("the image `{image}` of box `{name}` is not on this host, nor in the archive")]
    NoImage { name: BoxName, image: String },
    #[error(transparent)]
    Create(#[from] CreateError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the host is ending")]
    Ending,
}

/// What a box is to stand on.
#[derive(Debug)]
struct Ground {
    image: String,
    /// Absent: the one that comes along, whatever its digest turns out to be.
    digest: Option<String>,
}

/// Makes a box of an archive, and starts it if that was asked. It has what it had and is somebody
/// new: id, range of ids, machine-id and placeholders are its own, and it has no credential (D34).
///
/// # Errors
/// [`ImportError`]; nothing of the box is left, unless it was made and only its start failed.
pub async fn import(
    host: &Arc<Host>,
    caller: &Caller,
    (asked, source): (Import, OwnedFd),
    progress: Arc<dyn Progress>,
) -> Result<BoxRecord, ImportError> {
    let (host, caller) = (Arc::clone(host), *caller);
    let recipe =
        tokio::spawn(async move { recipe(&host, &caller, (asked, source), &*progress).await });
    recipe.await.map_err(|_| ImportError::Ending)?
}

async fn recipe(
    host: &Arc<Host>,
    caller: &Caller,
    (asked, source): (Import, OwnedFd),
    progress: &dyn Progress,
) -> Result<BoxRecord, ImportError> {
    let start_it = asked.start;
    let runtime = Arc::clone(host.runtimes.default());
    let transfer = runtime.transfer().ok_or(ImportError::Unable)?;
    let arrival = transfer
        .arrive(source)
        .await
        .map_err(ImportError::Archive)?;
    let manifest = arrival.manifest().clone();
    let mut carried = Carried::read(&manifest).map_err(ImportError::Manifest)?;
    let name = asked.name.clone().unwrap_or_else(|| manifest.name.clone());
    refuse_taken(host, caller, &name).await?;
    check(&*runtime, &mut carried, progress)?;
    let ground = ground(&*runtime, &asked, (&manifest, &carried), progress).await?;
    let terms = Terms {
        profile: carried.profile,
        state_bytes_max: carried.limits.disk_bytes.saturating_add(OVER_LIMIT_BYTES),
        image: match ground.digest {
            Some(_) => ImageInArchive::PassedOver,
            None => ImageInArchive::Unpacked,
        },
    };
    let arrived = arrival.receive(terms, progress).await;
    let arrived = arrived.map_err(ImportError::Archive)?;
    let made = make(
        host,
        caller,
        (&name, &manifest, &carried),
        (ground, arrived),
    )
    .await?;
    fault::point("import.made");
    settle(host, made.id, BoxState::Stopped, None).await?;
    fault::point("import.settled");
    if start_it {
        let started = start(host, made.id).await;
        return Ok(started.map_err(CreateError::from)?);
    }
    Ok(boxes::get(host, made.id).await?.unwrap_or(made))
}

/// An archive may bring what a caller may ask for, and no more.
fn check(
    runtime: &dyn Runtime,
    carried: &mut Carried,
    progress: &dyn Progress,
) -> Result<(), ImportError> {
    check_entries(&carried.allow)?;
    check_entries(&carried.deny)?;
    check_limits(&carried.limits)?;
    match check_settings(runtime, &carried.settings) {
        Ok(()) => Ok(()),
        Err(SettingError::NoFreezer) => {
            progress.note("boxes cannot be frozen on this machine: it goes without `freeze-after`");
            carried.settings.freeze_after_ms = None;
            Ok(())
        }
        Err(
            error @ (SettingError::Time { .. }
            | SettingError::NestedLocked
            | SettingError::NoPrices),
        ) => Err(CreateError::from(error).into()),
    }
}

/// The image that was asked for, the very one it stood on if it is here, or the one it brings.
async fn ground(
    runtime: &dyn Runtime,
    asked: &Import,
    (manifest, carried): (&Manifest, &Carried),
    progress: &dyn Progress,
) -> Result<Ground, ImportError> {
    let images = runtime.images();
    if let Some(wanted) = &asked.image {
        let ready = images.prepare(wanted, progress).await;
        let ready = ready.map_err(|source| CreateError::Image {
            image: wanted.clone(),
            source,
        })?;
        if carried.profile == Profile::Root && ready.digest != manifest.image_digest {
            progress.note(&format!(
                "the changes to its root were made over the image `{}`; over another one they may \
                 not fit",
                manifest.image
            ));
        }
        return Ok(Ground {
            image: ready.image,
            digest: Some(ready.digest),
        });
    }
    let here = images.is_ready(&manifest.image_digest);
    if !here && !manifest.with_image {
        return Err(ImportError::NoImage {
            name: manifest.name.clone(),
            image: manifest.image.clone(),
        });
    }
    Ok(Ground {
        image: manifest.image.clone(),
        digest: here.then(|| manifest.image_digest.clone()),
    })
}

/// The row, and the files in their place. What arrived is removed where it is not used.
async fn make(
    host: &Host,
    caller: &Caller,
    (name, manifest, carried): (&BoxName, &Manifest, &Carried),
    (ground, arrived): (Ground, Box<dyn Arrived>),
) -> Result<BoxRecord, ImportError> {
    let brought = arrived.image().map(str::to_owned);
    let Some(image_digest) = ground.digest.clone().or(brought) else {
        return Err(ImportError::NoImage {
            name: manifest.name.clone(),
            image: manifest.image.clone(),
        });
    };
    let record = BoxRecord {
        id: host.random.box_id(),
        owner: caller.owner,
        name: name.clone(),
        title: carried.title.clone(),
        state: BoxState::Creating,
        runtime: host.runtimes.default().name().to_owned(),
        image: ground.image,
        image_digest,
        profile: carried.profile,
        net: carried.net,
        limits: carried.limits,
        allow: carried.allow.clone(),
        id_offset: 0,
        created_at_ms: host.now_ms(),
        problem: None,
        // Whatever is in it came from elsewhere (D34).
        settings: BoxSettings {
            accounts: Accounts::None,
            logins: Logins::default(),
            github: GithubScope::default(),
            net_set: None,
            budget: carried.settings.budget.clone(),
            ..carried.settings
        },
        origin: Some(origin(manifest, carried, host.now_ms())),
        trashed_at_ms: None,
    };
    let reserved = reserve_for(host, record, carried, ground.digest.as_deref()).await;
    let record = match reserved {
        Ok(record) => record,
        Err(error) => {
            // Removing it blocks.
            drop(tokio::task::spawn_blocking(move || drop(arrived)).await);
            return Err(error);
        }
    };
    fault::point("import.reserved");
    if let Err(error) = build(host, &record, arrived).await {
        give_up(host, &record).await;
        return Err(error);
    }
    Ok(record)
}

/// Row, what the way out knows of names, and what it is never to reach, together. From then on its
/// image is in use.
async fn reserve_for(
    host: &Host,
    record: BoxRecord,
    carried: &Carried,
    needed: Option<&str>,
) -> Result<BoxRecord, ImportError> {
    let _stays = host.image_use.begin().await;
    let images = host.runtimes.default().images();
    if needed.is_some_and(|digest| !images.is_ready(digest)) {
        return Err(ImportError::NoImage {
            name: record.name,
            image: record.image,
        });
    }
    let (id, owner, at_ms) = (record.id, record.owner, record.created_at_ms);
    let (names, deny) = (carried.names.clone(), carried.deny.clone());
    let beside = move |transaction: &Transaction<'_>| {
        rows::keep_names(transaction, &id, &names)?;
        deny.into_iter().try_for_each(|entry| {
            let rule = Rule {
                entry,
                ruling: Ruling::Deny,
                box_id: Some(id),
            };
            rules::put(transaction, &owner, &rule, at_ms)
        })
    };
    Ok(reserve(host, record, beside).await?)
}

async fn build(
    host: &Host,
    record: &BoxRecord,
    arrived: Box<dyn Arrived>,
) -> Result<(), ImportError> {
    let placed = files::place(host, record).await;
    placed.map_err(|source| CreateError::Files {
        name: record.name.clone(),
        source,
    })?;
    let settled = arrived.settle(&spec_of(host, record)).await;
    settled.map_err(|source| {
        let name = record.name.clone();
        CreateError::Engine { name, source }.into()
    })
}
