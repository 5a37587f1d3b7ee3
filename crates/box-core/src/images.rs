//! Images of the default engine: list, make ready, remove.

use crate::boxes::rows;
use crate::host::Host;
use crate::store::StoreError;
use box_api::BoxName;
use box_api::control::ImageInfo;
use box_runtime::{Progress, RuntimeError};

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

/// Removes an image no box was made from.
///
/// # Errors
/// [`ImageError::InUse`] names the boxes.
pub async fn remove(host: &Host, image: &str) -> Result<(), ImageError> {
    let known = list(host).await?;
    let found = known
        .iter()
        .find(|known| known.image == image || known.digest == image);
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
    host.runtimes
        .default()
        .images()
        .remove(&found.image)
        .await
        .map_err(failed)
}
