//! `export`: held → still for as long as its files are copied → written while it works on.

use super::claim::Held;
use super::snapshot::{SnapshotError, hold};
use super::spec_of;
use super::travel::{Carried, names_of};
use crate::boxes::BoxRecord;
use crate::host::Host;
use crate::network::rules;
use crate::store::StoreError;
use crate::watch::standing_still;
use box_api::control::Exported;
use box_api::{BoxId, BoxName};
use box_runtime::{Departure, Luggage, Manifest, Progress, RuntimeError};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Why a box was not exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("the engine of box `{0}` writes no archives")]
    Unable(BoxName),
    #[error("could not export box `{name}`")]
    Engine {
        name: BoxName,
        #[source]
        source: RuntimeError,
    },
    #[error(transparent)]
    Held(#[from] SnapshotError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the host is ending")]
    Ending,
}

/// A box whose files are taken hold of and not written yet.
#[derive(Debug)]
pub struct Departing {
    record: BoxRecord,
    manifest: Manifest,
    departure: Box<dyn Departure>,
    /// Where its own files are what is written.
    held: Option<Held>,
}

/// Takes hold of a box's files. A running box stands still meanwhile, and goes on at once.
///
/// # Errors
/// [`ExportError`]
pub async fn depart(
    host: &Arc<Host>,
    id: BoxId,
    luggage: Luggage,
    progress: Arc<dyn Progress>,
) -> Result<Departing, ExportError> {
    let host = Arc::clone(host);
    let recipe = tokio::spawn(async move { take_hold(&host, id, luggage, &*progress).await });
    recipe.await.map_err(|_| ExportError::Ending)?
}

async fn take_hold(
    host: &Host,
    id: BoxId,
    luggage: Luggage,
    progress: &dyn Progress,
) -> Result<Departing, ExportError> {
    let (held, record) = hold(host, id).await?;
    let failed = |source| ExportError::Engine {
        name: record.name.clone(),
        source,
    };
    let transfer = host.runtime_of(&record).map_err(failed)?.transfer();
    let transfer = transfer.ok_or_else(|| ExportError::Unable(record.name.clone()))?;
    let owner = record.owner;
    let (names, rules) = host
        .store
        .read(move |connection| {
            Ok((
                names_of(connection, &id)?,
                rules::of_box(connection, &owner, &id)?,
            ))
        })
        .await?;
    let spec = spec_of(host, &record);
    let copy = transfer.depart(&spec, luggage, progress);
    let departure = standing_still(host, &record, copy).await.map_err(failed)?;
    let carried = Carried::of(&record, names, &rules);
    let manifest = Manifest {
        // The engine's own part is the engine's.
        format: 0,
        id,
        name: record.name.clone(),
        exported_at_ms: host.now_ms(),
        runtime: record.runtime.clone(),
        image: record.image.clone(),
        image_digest: record.image_digest.clone(),
        with_image: luggage.image,
        image_env: Vec::new(),
        snapshots: Vec::new(),
        // Plain fields are always JSON.
        host: serde_json::to_value(&carried).unwrap_or_default(),
    };
    Ok(Departing {
        held: departure.holds_the_box().then_some(held),
        record,
        manifest,
        departure,
    })
}

impl Departing {
    /// Writes the archive into a pipe, to its end.
    ///
    /// # Errors
    /// [`ExportError`]; what was written is no archive then.
    pub async fn send(
        self,
        sink: OwnedFd,
        progress: Arc<dyn Progress>,
    ) -> Result<Exported, ExportError> {
        let sent = tokio::spawn(async move {
            let Self {
                record,
                manifest,
                departure,
                held,
            } = self;
            let snapshots = departure.snapshots().len();
            let image = manifest.with_image;
            let left_out = departure.send(manifest, sink, &*progress).await;
            drop(held);
            let left_out = left_out.map_err(|source| ExportError::Engine {
                name: record.name.clone(),
                source,
            })?;
            Ok(Exported {
                name: record.name,
                snapshots: u32::try_from(snapshots).unwrap_or(u32::MAX),
                image,
                left_out: left_out.told,
                left_out_count: left_out.count,
            })
        });
        sent.await.map_err(|_| ExportError::Ending)?
    }
}
