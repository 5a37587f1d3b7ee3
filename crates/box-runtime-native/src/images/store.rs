//! The store itself: what is there, what a reference stands for, and one preparation at a time.

mod arrived;

pub(crate) use arrived::ArrivedImage;

use super::error::ImageError;
use super::index::{self, ImageFile, RefFile, hex_sha256};
use super::oci::{self, Blobs, Clean, Found, Logins, Patience};
use super::recipe::Recipe;
use super::reference::{Reference, is_digest};
use super::{LAYOUT, Say, debian, finish, root_tar};
use crate::rootless::{MakesRootsFiles, Privileges};
use box_api::control::ImageInfo;
use box_runtime::unpack::{Policy, Staging, Unpacked, clear, hold};
use box_runtime::{Unused, fault};
use std::collections::BTreeSet;
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
    blobs: Blobs,
    privileges: Privileges,
    pub(super) logins: Logins,
    pub(super) patience: Patience,
}

/// Whether an image that is ready already will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    Missing,
    /// It is made or looked up again: its tag, its archive may have moved on.
    Anew,
}

/// What an image is made from.
enum Origin<'reference> {
    Recipe(Recipe),
    File(&'reference Path),
    Registry(Box<Found>),
}

/// What came into a staging folder.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) unpacked: Unpacked,
    /// What the image was made from, exactly; its digest follows from it.
    pub(super) source: String,
    pub(super) packages: Vec<String>,
    /// The image's own variables.
    pub(super) env: Vec<(String, String)>,
    /// The layers it was pulled as: file names in the cache.
    pub(super) blobs: Vec<String>,
}

/// A preparation under way.
#[derive(Debug)]
pub(super) struct Making<'store> {
    pub(super) image: &'store str,
    pub(super) tmp: &'store Path,
    pub(super) say: &'store Say,
    pub(super) privileges: Privileges,
}

impl Making<'_> {
    /// What the layers of an image may do.
    pub(super) fn policy(&self) -> Policy {
        self.privileges.policy(Policy::LAYER)
    }

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
            blobs: Blobs::open(data_dir)?,
            privileges: Privileges::current()?,
            logins: Logins::of_user(&|name| std::env::var_os(name)),
            patience: Patience::default(),
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

    /// The variables an image brings.
    pub(super) fn env_of(&self, digest: &str) -> io::Result<Vec<(String, String)>> {
        let file = index::read::<ImageFile>(&self.images.join(digest).join("image.json"))?;
        Ok(file.map(|file| file.env).unwrap_or_default())
    }

    /// The image of a reference, made if it is not there yet.
    pub(super) fn prepare(
        &self,
        reference: &Reference,
        when: When,
        say: &Say,
    ) -> Result<ImageInfo, ImageError> {
        let image = reference.canonical();
        match reference {
            Reference::Digest(digest) => self
                .info(&image, digest)?
                .ok_or(ImageError::NotHere { image }),
            Reference::Built(_) => match self.reference(&image)? {
                Some(known) => self
                    .info(&image, &known.digest)?
                    .ok_or(ImageError::NotHere { image }),
                None => Err(ImageError::NotBuilt { image }),
            },
            Reference::Default | Reference::Debian(_) | Reference::File(_) | Reference::Oci(_) => {
                self.prepare_as(&image, reference, when, say)
            }
        }
    }

    /// As [`Self::prepare`], under a name that may be another.
    pub(super) fn prepare_as(
        &self,
        image: &str,
        reference: &Reference,
        when: When,
        say: &Say,
    ) -> Result<ImageInfo, ImageError> {
        let waiting = || {
            say.line(format!(
                "waiting: image `{image}` is being prepared already"
            ));
        };
        let _held = hold(&self.ref_path(image, "lock"), waiting)
            .map_err(ImageError::store("lock the image store"))?;
        let recipe = Recipe::of(reference);
        let stamp = match (&recipe, reference) {
            (Some(recipe), _) => recipe.stamp(),
            (None, Reference::File(path)) => root_tar::stamp(image, path)?,
            (None, _) => String::new(),
        };
        if when == When::Missing
            && let Some(known) = self.reference(image)?
            && known.stamp == stamp
            && let Some(info) = self.info(image, &known.digest)?
        {
            return Ok(info);
        }
        let making = Making {
            image,
            tmp: &self.tmp,
            say,
            privileges: self.privileges,
        };
        let origin = match (recipe, reference) {
            (Some(recipe), _) => Origin::Recipe(recipe),
            (None, Reference::File(path)) => Origin::File(path),
            (None, Reference::Oci(name)) => {
                say.line(format!("looking up `{image}`"));
                let found = oci::find(name, &self.logins, &self.patience)?;
                let digest = digest_of(&found.source());
                let held = self.hold_all()?;
                if self.root_of(&digest).is_some() {
                    return self.name(&held, image, stamp, &digest);
                }
                drop(held);
                Origin::Registry(Box::new(found))
            }
            (None, _) => {
                return Err(ImageError::NotHere {
                    image: image.to_owned(),
                });
            }
        };
        let (staging, made) = self.make(&making, &origin)?;
        fault::point("image.made");
        say.line("writing the image to disk");
        self.settle(staging, image, stamp, &made)
    }

    fn make(
        &self,
        making: &Making<'_>,
        origin: &Origin<'_>,
    ) -> Result<(Staging, Made), ImageError> {
        let staging = making.staging()?;
        let roots = MakesRootsFiles::begin(self.privileges)
            .map_err(ImageError::store("make files of root"))?;
        let root = new_root(&staging)?;
        let made = match origin {
            Origin::Recipe(recipe) => debian::make(making, recipe, root.as_fd())?,
            Origin::File(path) => root_tar::make(making, path, root.as_fd())?,
            Origin::Registry(found) => found.make(making, &self.blobs, root.as_fd())?,
        };
        if made.unpacked.left_out > 0 {
            let left_out = made.unpacked.left_out;
            making.say.line(format!(
                "left out {left_out} device nodes and pipes: a box gets its own"
            ));
        }
        finish::finish(making.image, root.as_fd(), self.privileges)?;
        drop(roots);
        Ok((staging, made))
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
            Reference::Default
            | Reference::Debian(_)
            | Reference::File(_)
            | Reference::Oci(_)
            | Reference::Built(_) => references
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
            self.discard(&digest)?;
        }
        Ok(())
    }

    /// Out of sight in one step; what is slow may then be interrupted.
    fn discard(&self, digest: &str) -> Result<(), ImageError> {
        let bin = Staging::new(&self.tmp, STAGING).map_err(ImageError::store("remove an image"))?;
        std::fs::rename(self.images.join(digest), bin.path().join("gone"))
            .map_err(ImageError::store("remove an image"))
    }

    /// What nobody uses: images whose digest is not among `used`, layers of no other image, and
    /// downloads that were interrupted.
    pub(super) fn prune(&self, used: &[String], clean: Clean) -> Result<Unused, ImageError> {
        let _held = self.hold_all()?;
        let (kept, unused): (Vec<_>, Vec<_>) = self
            .list()?
            .into_iter()
            .partition(|image| used.contains(&image.digest));
        let mut keep = Vec::new();
        for image in &kept {
            let path = self.images.join(&image.digest).join("image.json");
            let file = index::read::<ImageFile>(&path)
                .map_err(ImageError::store("read what an image is"))?;
            keep.extend(file.map(|file| file.blobs).unwrap_or_default());
        }
        if clean == Clean::Remove {
            let mut gone = self.references()?;
            gone.retain(|known| !used.contains(&known.digest));
            for known in gone {
                index::remove(&self.ref_path(&known.image, "json"))
                    .map_err(ImageError::store("forget an image"))?;
            }
            fault::point("image.prune.forgotten");
            let digests: BTreeSet<&str> = unused.iter().map(|one| one.digest.as_str()).collect();
            for digest in digests {
                self.discard(digest)?;
            }
        }
        let downloads_bytes = self
            .blobs
            .clean(&keep, clean)
            .map_err(ImageError::store("remove kept layers"))?;
        Ok(Unused {
            images: unused,
            downloads_bytes,
        })
    }

    /// Gives a finished tree its place and its name.
    fn settle(
        &self,
        staging: Staging,
        image: &str,
        stamp: String,
        made: &Made,
    ) -> Result<ImageInfo, ImageError> {
        let digest = digest_of(&made.source);
        let file = ImageFile {
            layout: LAYOUT,
            image: image.to_owned(),
            entries: made.unpacked.entries,
            bytes: made.unpacked.bytes,
            packages: made.packages.clone(),
            env: made.env.clone(),
            blobs: made.blobs.clone(),
        };
        index::write(&staging.path().join("image.json"), &file)
            .map_err(ImageError::store("describe the image"))?;
        let held = self.hold_all()?;
        staging
            .publish(&self.images.join(&digest))
            .map_err(ImageError::store("store the image"))?;
        fault::point("image.published");
        self.name(&held, image, stamp, &digest)
    }

    /// From now on the reference stands for this image. Held, so that nobody cleans it up between.
    fn name(
        &self,
        _held: &OwnedFd,
        image: &str,
        stamp: String,
        digest: &str,
    ) -> Result<ImageInfo, ImageError> {
        let known = RefFile {
            image: image.to_owned(),
            digest: digest.to_owned(),
            stamp,
        };
        index::write(&self.ref_path(image, "json"), &known)
            .map_err(ImageError::store("name the image"))?;
        fault::point("image.named");
        self.info(image, digest)?.ok_or(ImageError::NotHere {
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

fn digest_of(source: &str) -> String {
    hex_sha256(&[&format!("box image, layout {LAYOUT}"), source])
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
