//! What a snapshot says of itself, in a file beside its folders.

use box_api::snapshot::{Label, SnapshotInfo, SnapshotKind};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

const FILE: &str = "snapshot.json";
const NEW_FILE: &str = "snapshot.json.new";
/// Longer than any.
const BYTES_MAX: u64 = 4096;

/// Fields are only ever added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct About {
    pub(super) label: Label,
    pub(super) kind: SnapshotKind,
    pub(super) created_at_ms: i64,
    /// Absent until somebody measured it.
    #[serde(default)]
    pub(super) bytes: Option<u64>,
}

impl About {
    /// What the folder of a snapshot says.
    pub(super) fn read(folder: &Path) -> io::Result<Self> {
        let path = folder.join(FILE);
        if std::fs::symlink_metadata(&path)?.len() > BYTES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(serde_json::from_slice(&std::fs::read(path)?)?)
    }

    /// Written aside and renamed: a reader sees the old text or the new one.
    pub(super) fn write(&self, folder: &Path) -> io::Result<()> {
        let aside = folder.join(NEW_FILE);
        std::fs::write(&aside, serde_json::to_vec(self)?)?;
        std::fs::rename(&aside, folder.join(FILE))
    }

    pub(super) fn info(&self) -> SnapshotInfo {
        SnapshotInfo {
            label: self.label.clone(),
            kind: self.kind,
            created_at_ms: self.created_at_ms,
            bytes: self.bytes.unwrap_or(0),
        }
    }
}
