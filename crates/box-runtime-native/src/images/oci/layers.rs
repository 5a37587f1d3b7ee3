//! Puts layers over each other, each checked against what the image's configuration says of it.

use super::digest::Digest;
use crate::images::error::ImageError;
use box_runtime::unpack::{Policy, UnpackError, Unpacked, unpack_seen};
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::os::fd::BorrowedFd;

/// A root being built of layers. The limits hold for all of them together.
#[derive(Debug)]
pub(in crate::images) struct Layers<'root> {
    root: BorrowedFd<'root>,
    done: Unpacked,
}

/// Why a layer was not put there.
#[derive(Debug)]
pub(in crate::images) enum Layering {
    Unpack(UnpackError),
    /// Its content is other than the configuration says.
    Other,
}

impl Layering {
    pub(in crate::images) fn told(self, image: &str, number: usize) -> ImageError {
        let image = image.to_owned();
        match self {
            Self::Unpack(source) => ImageError::Layer {
                image,
                number,
                source,
            },
            Self::Other => ImageError::Unfit {
                image,
                why: format!("layer {number} does not hold what its configuration says"),
                hint: Some("nothing of it was kept".to_owned()),
            },
        }
    }
}

impl<'root> Layers<'root> {
    pub(in crate::images) fn over(root: BorrowedFd<'root>) -> Self {
        Self {
            root,
            done: Unpacked::default(),
        }
    }

    /// Puts the next layer on top, a tar however compressed. `id` is the digest of the plain tar.
    /// `whole` is what all layers together may do.
    pub(in crate::images) fn add(
        &mut self,
        whole: &Policy,
        layer: &File,
        id: &Digest,
    ) -> Result<(), Layering> {
        let policy = Policy {
            entries_max: whole.entries_max.saturating_sub(self.done.entries),
            bytes_max: whole.bytes_max.saturating_sub(self.done.bytes),
            ..whole.clone()
        };
        let mut hash = Sha256::new();
        let unpacked = unpack_seen(layer, self.root, &policy, |plain| hash.update(plain))
            .map_err(Layering::Unpack)?;
        if Digest::of_hash(hash) != *id {
            return Err(Layering::Other);
        }
        self.done.entries += unpacked.entries;
        self.done.bytes += unpacked.bytes;
        self.done.left_out += unpacked.left_out;
        Ok(())
    }

    pub(in crate::images) fn done(&self) -> Unpacked {
        self.done
    }
}
