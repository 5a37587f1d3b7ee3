//! Snapshots and clones of a box's files.
//!
//! ```text
//! <store>/snapshots/<box id>/<label>/snapshot.json   what it is; see `about`
//! <store>/snapshots/<box id>/<label>/{workspace,home,upper}
//! ```
//!
//! Each is born in `tmp/` and renamed, so that it is there whole or not at all. Every file keeps
//! the ids it has on disk, 0–65535, whichever box it belongs to: nothing is renumbered.

mod about;
mod clone_from;
mod list;
mod restore;
mod take;
pub(crate) mod telling;

pub(crate) use list::used_by as used_by_snapshots;

use crate::NativeRuntime;
use async_trait::async_trait;
use box_api::BoxId;
use box_api::snapshot::{CopyMethod, Label, SnapshotInfo};
use box_runtime::{BoxSpec, CloneSource, Progress, RuntimeError, SnapshotSpec, Snapshots};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// What their trees are called in `tmp/`.
pub(crate) const BEING_TAKEN: &str = "snapshot";
pub(crate) const BEING_RESTORED: &str = "restore";
pub(crate) const BEING_CLONED: &str = "clone";

#[async_trait]
impl Snapshots for NativeRuntime {
    fn method(&self) -> CopyMethod {
        self.engine.folders.method()
    }

    async fn take(
        &self,
        id: &BoxId,
        spec: &SnapshotSpec,
        progress: &dyn Progress,
    ) -> Result<SnapshotInfo, RuntimeError> {
        take::take(Arc::clone(&self.engine), *id, spec.clone(), progress).await
    }

    async fn list(&self, id: &BoxId) -> Result<Vec<SnapshotInfo>, RuntimeError> {
        list::list(Arc::clone(&self.engine), *id).await
    }

    async fn restore(
        &self,
        id: &BoxId,
        label: &Label,
        progress: &dyn Progress,
    ) -> Result<(), RuntimeError> {
        restore::restore(Arc::clone(&self.engine), *id, label.clone(), progress).await
    }

    async fn discard(&self, id: &BoxId, label: &Label) -> Result<(), RuntimeError> {
        list::discard(Arc::clone(&self.engine), *id, label.clone()).await
    }

    async fn clone_from(
        &self,
        source: &CloneSource,
        spec: &BoxSpec,
        progress: &dyn Progress,
    ) -> Result<(), RuntimeError> {
        let engine = Arc::clone(&self.engine);
        clone_from::clone_from(engine, source.clone(), spec.clone(), progress).await
    }
}

/// Says of a snapshot's folder what it is; it is measured when somebody asks.
pub(crate) fn describe(folder: &Path, info: &SnapshotInfo) -> io::Result<()> {
    let about = about::About {
        label: info.label.clone(),
        kind: info.kind,
        created_at_ms: info.created_at_ms,
        bytes: None,
    };
    about.write(folder)
}

fn no_snapshot(id: &BoxId, label: &Label) -> RuntimeError {
    RuntimeError::Refused {
        why: format!("box {id} has no snapshot `{label}`"),
        hint: Some("`box snapshots` lists what there is".to_owned()),
    }
}
