//! Making, starting, stopping and removing boxes: one recipe a file.
//!
//! A recipe runs in a task of its own, so that a client that goes away does not leave a box half
//! made. Each line leaves the row in a state `reconcile` knows how to finish or undo, should the
//! host die there. Two recipes never work on one box: a recipe begins by claiming the row, which
//! only one of them can do.

mod claim;
mod clone;
mod create;
mod disk;
mod expire;
mod export;
mod files;
mod import;
mod marks;
mod prune;
mod remove;
mod rename;
mod restart;
mod restore;
mod set;
mod setup;
mod snapshot;
mod spec;
mod start;
mod stop;
mod trash;
mod travel;
mod unpushed;
mod wait;
mod workspace;

pub use claim::Changes;
pub use clone::{CloneError, clone};
pub use create::{CreateError, create};
pub use disk::{DiskError, disk_usage};
pub use expire::{Expired, Room, expire, watch_trash};
pub use export::{Departing, ExportError, depart};
pub use files::{FilesError, place as place_files};
pub use import::{ImportError, import};
pub(crate) use prune::is_still;
pub use prune::prune;
pub use remove::{RemoveError, remove};
pub use rename::{RenameError, rename};
pub use restart::{RestartError, restart};
pub use restore::{BEFORE_RESTORE_MAX, RestoreError, finish as finish_restores, restore};
pub use set::{Set, SetError, SettingError, set};
pub use setup::{IMAGE_SETUP, ScriptError, Setup, SetupError, check_script, set_up, setup_of};
pub use snapshot::{SnapshotError, discard, snapshot, snapshots};
pub use spec::spec_of;
pub use start::{StartError, start};
pub use stop::{STOP_GRACE, StopError, stop, stop_because};
pub use trash::{UndeleteError, trash, undelete};
pub use unpushed::{UnpushedError, refuse_unpushed};
pub use wait::{WaitError, wait};

pub(crate) use claim::{hold_running, move_state_because, settle};
pub(crate) use remove::dismantle;
pub(crate) use snapshot::hold;
pub(crate) use stop::{bring_down, clear_after};

use box_runtime::Progress;

/// A listener for nobody.
#[derive(Debug, Clone, Copy)]
pub struct Quiet;

impl Progress for Quiet {
    fn say(&self, _text: &str) {}
}
