//! Images of the default engine: list, make ready, remove, clean up.

use crate::boxes::rows;
use crate::host::Host;
use crate::pool;
use crate::store::StoreError;
use box_api::BoxName;
use box_api::control::ImageInfo;
use box_runtime::{Progress, Prune, RuntimeError, Unused};
use std::path::Path;
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Why an image was not listed, made ready or removed.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    #[error("could not get the image `{image}` ready")]
    Prepare {
        image: String,
        #[source]
        source: RuntimeError,
    },
    #[error("could not list the images")]
    List(#[source] RuntimeError),
    #[error("an archive is named by its absolute path, and `{0}` is none")]
    RelativeArchive(String),
    #[error("could not remove what is unused")]
    Prune(#[source] RuntimeError),
    #[error("there is no image `{image}`")]
    Unknown { image: String, known: Vec<String> },
    #[error("the image `{image}` is in use by {}", names(.boxes))]
    InUse { image: String, boxes: Vec<BoxName> },
    #[error("could not remove the image `{image}`")]
    Remove {
        image: String,
        #[source]
        source: RuntimeError,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn names(boxes: &[BoxName]) -> String {
    boxes
        .iter()
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Keeps an image from being removed between being made ready and being a box's.
#[derive(Debug, Default)]
pub struct ImageUse(RwLock<()>);

impl ImageUse {
    /// While it is held no image goes.
    pub async fn begin(&self) -> RwLockReadGuard<'_, ()> {
        self.0.read().await
    }

    async fn alone(&self) -> RwLockWriteGuard<'_, ()> {
        self.0.write().await
    }
}

/// # Errors
/// [`ImageError::List`]
pub async fn list(host: &Host) -> Result<Vec<ImageInfo>, ImageError> {
    host.runtimes
        .default()
        .images()
        .list()
        .await
        .map_err(ImageError::List)
}

/// Makes an image ready if it is not.
///
/// # Errors
/// [`ImageError::Prepare`]
pub async fn prepare(
    host: &Host,
    image: &str,
    progress: &dyn Progress,
) -> Result<ImageInfo, ImageError> {
    let images = host.runtimes.default().images();
    let failed = |source| ImageError::Prepare {
        image: image.to_owned(),
        source,
    };
    images.prepare(image, progress).await.map_err(failed)
}

/// Makes an image ready anew, though it is: what its name stands for may have changed. Boxes keep
/// the one they were made from.
///
/// # Errors
/// [`ImageError::Prepare`]
pub async fn refresh(
    host: &Host,
    image: &str,
    progress: &dyn Progress,
) -> Result<ImageInfo, ImageError> {
    let images = host.runtimes.default().images();
    let failed = |source| ImageError::Prepare {
        image: image.to_owned(),
        source,
    };
    let known = images.list().await.unwrap_or_default();
    let new = images.refresh(image, progress).await.map_err(failed)?;
    let before = known.into_iter().filter(|known| known.image == new.image);
    let replaced: Vec<ImageInfo> = before.filter(|known| known.digest != new.digest).collect();
    forget(host, &replaced).await;
    Ok(new)
}

/// Makes an image of an archive, under the name `built:<name>`.
///
/// # Errors
/// [`ImageError::Prepare`], [`ImageError::RelativeArchive`]
pub async fn adopt(
    host: &Host,
    archive: &str,
    name: &str,
    progress: &dyn Progress,
) -> Result<ImageInfo, ImageError> {
    let path = Path::new(archive);
    if !path.is_absolute() {
        return Err(ImageError::RelativeArchive(archive.to_owned()));
    }
    let images = host.runtimes.default().images();
    let failed = |source| ImageError::Prepare {
        image: format!("built:{name}"),
        source,
    };
    images.adopt(path, name, progress).await.map_err(failed)
}

/// What no box uses, those in the trash and snapshots, which are of boxes, included.
///
/// # Errors
/// [`ImageError::Prune`]
pub async fn prune(host: &Host, how: Prune) -> Result<Unused, ImageError> {
    let _alone = host.image_use.alone().await;
    let records = host.store.read(rows::all).await?;
    let used = records.into_iter().map(|record| record.image_digest);
    let images = host.runtimes.default().images();
    let unused = images.prune(used.collect(), how).await;
    let unused = unused.map_err(ImageError::Prune)?;
    if how == Prune::Remove {
        forget(host, &unused.images).await;
    }
    Ok(unused)
}

/// What boxes were made of these says nothing about boxes to come.
async fn forget(host: &Host, gone: &[ImageInfo]) {
    for image in gone {
        host.pool.forget_image(&image.digest).await;
    }
    pool::tend(host).await;
}

/// Removes an image no box was made from.
///
/// # Errors
/// [`ImageError::InUse`] names the boxes.
pub async fn remove(host: &Host, image: &str) -> Result<(), ImageError> {
    let _alone = host.image_use.alone().await;
    let known = list(host).await?;
    let images = host.runtimes.default().images();
    let written = images.canonical(image).unwrap_or_else(|_| image.to_owned());
    let found = known.iter().find(|known| {
        known.image == written || known.digest == image.trim_start_matches("sha256:")
    });
    let Some(found) = found else {
        let known = known.into_iter().map(|known| known.image).collect();
        return Err(ImageError::Unknown {
            image: image.to_owned(),
            known,
        });
    };
    let records = host.store.read(rows::all).await?;
    let users = records
        .into_iter()
        .filter(|record| record.image_digest == found.digest);
    let boxes: Vec<BoxName> = users.map(|record| record.name).collect();
    if !boxes.is_empty() {
        return Err(ImageError::InUse {
            image: image.to_owned(),
            boxes,
        });
    }
    let failed = |source| ImageError::Remove {
        image: image.to_owned(),
        source,
    };
    images.remove(&found.image).await.map_err(failed)?;
    forget(host, std::slice::from_ref(found)).await;
    Ok(())
}
