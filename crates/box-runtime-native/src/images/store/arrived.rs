//! An image that came with a box in an archive. Nobody vouches for it, so its digest is made of all
//! that is in it, and no reference stands for it: no other box gets it by a name.

use super::{ImageError, ImageFile, LAYOUT, STAGING, Store, digest_of, finish, index};
use crate::storage::measure::measure;
use box_runtime::unpack::{Policy, Staging};
use rustix::fd::AsFd as _;
use rustix::fs::{CWD, Mode, OFlags, openat};
use std::io;

/// What is known of such an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ArrivedImage {
    /// What it was called where it came from; only told.
    pub(crate) called: String,
    /// Over all that is in it.
    pub(crate) content: String,
    pub(crate) env: Vec<(String, String)>,
}

impl ArrivedImage {
    pub(crate) fn digest(&self) -> String {
        let mut source = format!("archive {}\n", self.content);
        for (name, value) in &self.env {
            source.extend([name.as_str(), "=", value.as_str(), "\0"]);
        }
        digest_of(&source)
    }
}

impl Store {
    pub(in crate::images) fn staging_of_arrived(&self) -> io::Result<Staging> {
        Staging::new(&self.tmp, STAGING)
    }

    pub(in crate::images) fn take_in(
        &self,
        staging: Staging,
        image: &ArrivedImage,
    ) -> Result<(), ImageError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let root = openat(CWD, staging.path().join("root"), flags, Mode::empty())
            .map_err(ImageError::store("open the image that came along"))?;
        finish::finish(&image.called, root.as_fd(), self.privileges)?;
        let bytes = measure(root.as_fd())
            .map_err(ImageError::store("measure the image that came along"))?;
        if bytes > Policy::IMAGE.bytes_max {
            let why = "it is larger than any image may be";
            return Err(ImageError::unfit(&image.called, why));
        }
        let file = ImageFile {
            layout: LAYOUT,
            image: image.called.clone(),
            entries: 0,
            bytes,
            packages: Vec::new(),
            env: image.env.clone(),
            blobs: Vec::new(),
        };
        index::write(&staging.path().join("image.json"), &file)
            .map_err(ImageError::store("describe the image"))?;
        let _held = self.hold_all()?;
        staging
            .publish(&self.images.join(image.digest()))
            .map_err(ImageError::store("store the image"))?;
        Ok(())
    }
}
