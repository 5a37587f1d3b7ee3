//! How much disk a box uses, measured now.

use crate::boxes::BoxRecord;
use crate::host::Host;
use box_api::BoxName;
use box_api::control::BoxDisk;
use box_api::snapshot::SnapshotKind;
use box_runtime::RuntimeError;

/// Why nobody knows how much a box uses.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    #[error("the engine of box `{0}` does not measure its disk")]
    Unable(BoxName),
    #[error("could not measure the disk of box `{name}`")]
    Engine {
        name: BoxName,
        #[source]
        source: RuntimeError,
    },
}

/// Measures one box.
///
/// # Errors
/// [`DiskError`]
pub async fn disk_usage(host: &Host, record: &BoxRecord) -> Result<BoxDisk, DiskError> {
    let failed = |source| DiskError::Engine {
        name: record.name.clone(),
        source,
    };
    let runtime = host.runtime_of(record).map_err(failed)?;
    let disk = runtime
        .disk()
        .ok_or_else(|| DiskError::Unable(record.name.clone()))?;
    let used = disk.disk_usage(&record.id).await.map_err(failed)?;
    let before_turns = match super::snapshots(host, record).await {
        Ok(all) => all
            .iter()
            .filter(|one| one.kind == SnapshotKind::BeforeTurn)
            .map(|one| one.bytes)
            .sum(),
        // An engine that measures and keeps none.
        Err(_) => 0,
    };
    Ok(BoxDisk {
        id: record.id,
        name: record.name.clone(),
        workspace_bytes: used.workspace_bytes,
        home_bytes: used.home_bytes,
        root_bytes: used.root_bytes,
        snapshots_bytes: used.snapshots_bytes,
        restore_points_bytes: before_turns,
        limit_bytes: record.limits.disk_bytes,
    })
}
