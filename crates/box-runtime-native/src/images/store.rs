//! The store itself: what is there, what a reference stands for, and one preparation at a time.

use super::error::ImageError;
use super::index::{self, ImageFile, RefFile, hex_sha256};
use super::recipe::Recipe;
use super::reference::{Reference, is_digest};
use super::{LAYOUT, Say, debian, finish, root_tar};
use box_api::control::ImageInfo;
use box_runtime::unpack::{Staging, Unpacked, clear, hold};
use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// What `tmp/` folders of this store are called.
const STAGING: &str = "image";

#[derive(Debug)]
pub(super) struct Store {
    images: PathBuf,
    tmp: PathBuf,
}

/// What came into a staging folder.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) unpacked: Unpacked,
    /// What the image was made from, exactly; its digest follows from it.
    pub(super) source: String,
    pub(super) packages: Vec<String>,
}

/// A preparation under way.
#[derive(Debug)]
pub(super) struct Making<'store> {
    pub(super) image: &'store str,
    pub(super) tmp: &'store Path,
    pub(super) say: &'store Say,
}

impl Making<'_> {
    /// A folder of its own in `tmp/`, gone when dropped.
    pub(super) fn staging(&self) -> Result<Staging, ImageError> {
        Staging::new(self.tmp, STAGING).map_err(ImageError::store("make a folder for an image"))
    }
}

impl Store {
    pub(super) fn open(data_dir: &Path) -> io::Result<Self> {
        let store = Self {
            images: data_dir.join("images"),
            tmp: data_dir.join("tmp"),
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(store.images.join("refs"))?;
        clear(&store.tmp, STAGING)?;
        Ok(store)
    }

    pub(super) fn root_of(&self, digest: &str) -> Option<PathBuf> {
        let root = self.images.join(digest).join("root");
        (is_digest(digest) && root.is_dir()).then_some(root)
    }

    /// The image of a reference, made if it is not there yet.
    pub(super) fn prepare(
        &self,
        reference: &Reference,
        say: &Say,
    ) -> Result<ImageInfo, ImageError> {
        let image = reference.canonical();
        if let Reference::Digest(digest) = reference {
            return self
                .info(&image, digest)?
                .ok_or(ImageError::NotHere { image });
        }
        let waiting = || {
            say.line(format!(
                "waiting: image `{image}` is being prepared already"
            ));
        };
        let _held = hold(&self.ref_path(&image, "lock"), waiting)
            .map_err(ImageError::store("lock the image store"))?;
        let recipe = Recipe::of(reference);
        let stamp = match (&recipe, reference) {
            (Some(recipe), _) => recipe.stamp(),
            (None, Reference::File(path)) => root_tar::stamp(&image, path)?,
            (None, _) => String::new(),
        };
        if let Some(known) = self.reference(&image)?
            && known.stamp == stamp
            && let Some(info) = self.info(&image, &known.digest)?
        {
            return Ok(info);
        }
        let making = Making {
            image: &image,
            tmp: &self.tmp,
            say,
        };
        let staging = making.staging()?;
        let root = new_root(&staging)?;
        let made = match (&recipe, reference) {
            (Some(recipe), _) => debian::make(&making, recipe, root.as_fd())?,
            (None, Reference::File(path)) => root_tar::make(&making, path, root.as_fd())?,
            (None, _) => return Err(ImageError::NotHere { image }),
        };
        finish::finish(&image, root.as_fd())?;
        say.line("writing the image to disk");
        self.settle(staging, &image, stamp, &made)
    }

    pub(super) fn list(&self) -> Result<Vec<ImageInfo>, ImageError> {
        let mut found = Vec::new();
        for known in self.references()? {
            found.extend(self.info(&known.image, &known.digest)?);
        }
        let failed = || ImageError::store("read the image folder");
        for entry in std::fs::read_dir(&self.images).map_err(failed())? {
            let name = entry.map_err(failed())?.file_name();
            let Some(digest) = name.to_str().filter(|name| is_digest(name)) else {
                continue;
            };
            if !found.iter().any(|info| info.digest == digest) {
                found.extend(self.info(&format!("sha256:{digest}"), digest)?);
            }
        }
        found.sort_by(|a, b| a.image.cmp(&b.image));
        Ok(found)
    }

    /// Forgets a reference, and removes its image when no other stands for it.
    pub(super) fn remove(&self, reference: &Reference) -> Result<(), ImageError> {
        let _held = self.hold_all()?;
        let image = reference.canonical();
        let references = self.references()?;
        let digest = match reference {
            Reference::Digest(digest) => Some(digest.clone()),
            Reference::Default | Reference::Debian(_) | Reference::File(_) => references
                .iter()
                .find(|r| r.image == image)
                .map(|r| r.digest.clone()),
        };
        let Some(digest) = digest.filter(|digest| self.images.join(digest).exists()) else {
            return Err(ImageError::NotHere { image });
        };
        let all = matches!(reference, Reference::Digest(_));
        let (gone, kept): (Vec<_>, Vec<_>) = references
            .into_iter()
            .filter(|known| known.digest == digest)
            .partition(|known| all || known.image == image);
        for known in gone {
            index::remove(&self.ref_path(&known.image, "json"))
                .map_err(ImageError::store("forget an image"))?;
        }
        if kept.is_empty() {
            // Out of sight in one step; what is slow may then be interrupted.
            let bin =
                Staging::new(&self.tmp, STAGING).map_err(ImageError::store("remove an image"))?;
            std::fs::rename(self.images.join(&digest), bin.path().join("gone"))
                .map_err(ImageError::store("remove an image"))?;
        }
        Ok(())
    }

    /// Gives a finished tree its place and its name.
    fn settle(
        &self,
        staging: Staging,
        image: &str,
        stamp: String,
        made: &Made,
    ) -> Result<ImageInfo, ImageError> {
        let layout = format!("box image, layout {LAYOUT}");
        let digest = hex_sha256(&[&layout, &made.source]);
        let file = ImageFile {
            layout: LAYOUT,
            image: image.to_owned(),
            entries: made.unpacked.entries,
            bytes: made.unpacked.bytes,
            packages: made.packages.clone(),
        };
        index::write(&staging.path().join("image.json"), &file)
            .map_err(ImageError::store("describe the image"))?;
        let _held = self.hold_all()?;
        staging
            .publish(&self.images.join(&digest))
            .map_err(ImageError::store("store the image"))?;
        let known = RefFile {
            image: image.to_owned(),
            digest: digest.clone(),
            stamp,
        };
        index::write(&self.ref_path(image, "json"), &known)
            .map_err(ImageError::store("name the image"))?;
        self.info(image, &digest)?.ok_or(ImageError::NotHere {
            image: image.to_owned(),
        })
    }

    fn info(&self, image: &str, digest: &str) -> Result<Option<ImageInfo>, ImageError> {
        let failed = || ImageError::store("read what an image is");
        let path = self.images.join(digest).join("image.json");
        let Some(file) = index::read::<ImageFile>(&path).map_err(failed())? else {
            return Ok(None);
        };
        let made = std::fs::metadata(&path).map_err(failed())?;
        Ok(Some(ImageInfo {
            image: image.to_owned(),
            digest: digest.to_owned(),
            bytes: file.bytes,
            created_at_ms: made.mtime() * 1000 + made.mtime_nsec() / 1_000_000,
        }))
    }

    fn reference(&self, image: &str) -> Result<Option<RefFile>, ImageError> {
        index::read(&self.ref_path(image, "json"))
            .map_err(ImageError::store("read what a reference stands for"))
    }

    fn references(&self) -> Result<Vec<RefFile>, ImageError> {
        let failed = || ImageError::store("read what the references stand for");
        let mut found = Vec::new();
        for entry in std::fs::read_dir(self.images.join("refs")).map_err(failed())? {
            let path = entry.map_err(failed())?.path();
            if path
                .extension()
                .is_some_and(|extension| extension == "json")
            {
                found.extend(index::read::<RefFile>(&path).map_err(failed())?);
            }
        }
        Ok(found)
    }

    /// References hold characters no file name should.
    fn ref_path(&self, image: &str, extension: &str) -> PathBuf {
        let name = &hex_sha256(&[image])[..32];
        self.images
            .join("refs")
            .join(name)
            .with_extension(extension)
    }

    fn hold_all(&self) -> Result<OwnedFd, ImageError> {
        hold(&self.images.join("lock"), || {}).map_err(ImageError::store("lock the image store"))
    }
}

fn new_root(staging: &Staging) -> Result<OwnedFd, ImageError> {
    let failed = || ImageError::store("make a folder for an image");
    let path = staging.path().join("root");
    DirBuilder::new()
        .mode(0o755)
        .create(&path)
        .map_err(failed())?;
    Ok(File::open(&path).map_err(failed())?.into())
}
