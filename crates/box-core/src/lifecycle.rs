//! Making, starting, stopping and removing boxes: one recipe a file.
//!
//! A recipe runs in a task of its own, so that a client that goes away does not leave a box half
//! made. Each line leaves the row in a state `reconcile` knows how to finish or undo, should the
//! host die there. Two recipes never work on one box: a recipe begins by claiming the row, which
//! only one of them can do.

mod claim;
mod create;
mod files;
mod remove;
mod spec;
mod start;
mod stop;

pub use claim::Changes;
pub use create::{CreateError, create};
pub use files::{FilesError, place as place_files};
pub use remove::{RemoveError, remove};
pub use spec::spec_of;
pub use start::{StartError, start};
pub use stop::{STOP_GRACE, StopError, stop};

pub(crate) use claim::{move_state, settle};
pub(crate) use remove::dismantle;
pub(crate) use stop::bring_down;

use box_runtime::Progress;

/// A listener for nobody.
#[derive(Debug, Clone, Copy)]
pub struct Quiet;

impl Progress for Quiet {
    fn say(&self, _text: &str) {}
}
