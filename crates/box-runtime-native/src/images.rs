//! Images: the read-only roots boxes start from, made once and shared.
//!
//! ```text
//! images/<digest>/image.json     what it is
//! images/<digest>/root/          the tree; owners 0–65535, no device, no set-id bit
//! images/refs/<name>.json        which digest a reference stands for; <name>.lock beside it
//! images/lock                    held while a reference or an image appears or goes
//! blobs/                         layers as registries sent them, a cache
//! tmp/image-*                    where an image is made
//! ```
//! A digest is a SHA-256 over [`LAYOUT`] and what the image was made from. An image is never
//! changed: what is made anew gets a digest of its own. The folders are open to their owner only.

mod apt;
mod archive;
mod debian;
pub(crate) mod environment;
mod error;
mod finish;
mod index;
mod oci;
mod recipe;
mod reference;
mod root_tar;
mod store;

use async_trait::async_trait;
use box_api::control::ImageInfo;
use box_runtime::unpack::Staging;
use box_runtime::{Images, Progress, Prune, RuntimeError, Unused};
use reference::Reference;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::{Store, When};

pub(crate) use store::ArrivedImage;
use tokio::sync::mpsc;

/// Raised when images are made differently, so that older ones are made anew.
const LAYOUT: u32 = 1;
/// Lines of progress that wait to be shown; more are dropped.
const PROGRESS_LINES_MAX: usize = 32;

/// The images of one data folder.
#[derive(Debug, Clone)]
pub struct ImageStore {
    store: Arc<Store>,
}

/// Says what goes on; a line nobody has room for is dropped.
#[derive(Debug, Clone)]
struct Say(mpsc::Sender<String>);

impl Say {
    fn line(&self, text: impl Into<String>) {
        drop(self.0.try_send(text.into()));
    }
}

impl ImageStore {
    /// Opens the store below a data folder, making what is not there, and removes what an
    /// interrupted preparation left in `tmp/`.
    ///
    /// # Errors
    /// When the folders cannot be made, read or cleared.
    pub fn open(data_dir: &Path) -> io::Result<Self> {
        Ok(Self {
            store: Arc::new(Store::open(data_dir)?),
        })
    }

    /// The root file system of an image that is there, for mounting. It is the image's own tree:
    /// nobody may write to it, and a path in it may lead anywhere, so it is never followed from
    /// outside.
    pub fn root_of(&self, digest: &str) -> Option<PathBuf> {
        self.store.root_of(digest)
    }

    /// The variables an image brings with it.
    pub(crate) fn env_of(&self, digest: &str) -> io::Result<Vec<(String, String)>> {
        self.store.env_of(digest)
    }

    /// Where an image that came in an archive is unpacked, as the folder `root`.
    pub(crate) fn staging(&self) -> io::Result<Staging> {
        self.store.staging_of_arrived()
    }

    /// Keeps an image that came in an archive, under the digest of what it is.
    ///
    /// # Errors
    /// [`RuntimeError::Refused`] when no box can live in it.
    pub(crate) fn take_in(
        &self,
        staging: Staging,
        image: &ArrivedImage,
    ) -> Result<(), RuntimeError> {
        Ok(self.store.take_in(staging, image)?)
    }

    /// As [`Self::apart`], telling how far it is.
    async fn told<T: Send + 'static>(
        &self,
        progress: &dyn Progress,
        step: impl FnOnce(&Store, &Say) -> Result<T, error::ImageError> + Send + 'static,
    ) -> Result<T, RuntimeError> {
        let (sender, mut lines) = mpsc::channel(PROGRESS_LINES_MAX);
        let work = self.apart(move |store| step(store, &Say(sender)));
        let show = async {
            while let Some(line) = lines.recv().await {
                progress.say(&line);
            }
        };
        tokio::join!(work, show).0
    }

    /// Runs a step that waits for disk or network where waiting is allowed.
    async fn apart<T: Send + 'static>(
        &self,
        step: impl FnOnce(&Store) -> Result<T, error::ImageError> + Send + 'static,
    ) -> Result<T, RuntimeError> {
        let store = Arc::clone(&self.store);
        let done = tokio::task::spawn_blocking(move || step(&store)).await;
        done.map_err(|error| RuntimeError::engine("work on images", error))?
            .map_err(Into::into)
    }
}

#[async_trait]
impl Images for ImageStore {
    /// Dropping the future does not undo the work: it goes on, and the next one who asks finds it.
    async fn prepare(
        &self,
        image: &str,
        progress: &dyn Progress,
    ) -> Result<ImageInfo, RuntimeError> {
        let reference = Reference::parse(image)?;
        self.told(progress, move |store, say| {
            store.prepare(&reference, When::Missing, say)
        })
        .await
    }

    fn is_ready(&self, digest: &str) -> bool {
        self.store.root_of(digest).is_some()
    }

    fn canonical(&self, image: &str) -> Result<String, RuntimeError> {
        Ok(Reference::parse(image)?.canonical())
    }

    async fn refresh(
        &self,
        image: &str,
        progress: &dyn Progress,
    ) -> Result<ImageInfo, RuntimeError> {
        let reference = Reference::parse(image)?;
        self.told(progress, move |store, say| {
            store.prepare(&reference, When::Anew, say)
        })
        .await
    }

    async fn adopt(
        &self,
        archive: &Path,
        name: &str,
        progress: &dyn Progress,
    ) -> Result<ImageInfo, RuntimeError> {
        let image = Reference::parse(&format!("built:{name}"))?.canonical();
        let archive = Reference::File(archive.to_owned());
        self.told(progress, move |store, say| {
            store.prepare_as(&image, &archive, When::Anew, say)
        })
        .await
    }

    async fn prune(&self, used: Vec<String>, how: Prune) -> Result<Unused, RuntimeError> {
        let clean = match how {
            Prune::Remove => oci::Clean::Remove,
            Prune::Tell => oci::Clean::Count,
        };
        self.apart(move |store| store.prune(&used, clean)).await
    }

    async fn list(&self) -> Result<Vec<ImageInfo>, RuntimeError> {
        self.apart(Store::list).await
    }

    async fn remove(&self, image: &str) -> Result<(), RuntimeError> {
        let reference = Reference::parse(image)?;
        self.apart(move |store| store.remove(&reference)).await
    }
}

#[cfg(test)]
mod tests;
