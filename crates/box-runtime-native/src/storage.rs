//! Where the files of boxes lie, and how trees of them are made, copied, measured and removed.
//!
//! [`walk::walk`] goes through a tree that a box may be writing to, [`copy::Copier`] copies one,
//! [`measure::measure`] counts one, [`Cradle`] is where each is born.

pub(crate) mod attributes;
mod btrfs;
pub(crate) mod content;
pub(crate) mod copy;
mod cradle;
pub(crate) mod identity;
pub(crate) mod layout;
pub mod loopback;
pub(crate) mod measure;
pub(crate) mod method;
pub(crate) mod renumber;
pub(crate) mod walk;

pub(crate) use cradle::{Cradle, TREE, clear, erase, make_folder};
