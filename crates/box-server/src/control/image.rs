//! `ImageList`, `ImagePrepare`, `ImageRemove`, `Image`.

use super::client::Client;
use crate::problem;
use box_api::Problem;
use box_api::control::{ImageAsk, Outcome, UnusedImages};
use box_core::Host;
use box_core::images;
use box_runtime::Prune;

pub(super) async fn list(host: &Host) -> Result<Outcome, Problem> {
    let images = images::list(host).await.map_err(problem::image)?;
    Ok(Outcome::Images { images })
}

pub(super) async fn prepare(
    host: &Host,
    client: &Client,
    image: String,
) -> Result<Outcome, Problem> {
    let made = client
        .with_progress(|progress| async move { images::prepare(host, &image, &*progress).await })
        .await;
    made.map(Outcome::Image).map_err(problem::image)
}

pub(super) async fn handle(
    host: &Host,
    client: &Client,
    asked: ImageAsk,
) -> Result<Outcome, Problem> {
    let made = match asked {
        ImageAsk::Refresh { image } => {
            client
                .with_progress(
                    |progress| async move { images::refresh(host, &image, &*progress).await },
                )
                .await
        }
        ImageAsk::Adopt { archive, name } => {
            client
                .with_progress(|progress| async move {
                    images::adopt(host, &archive, &name, &*progress).await
                })
                .await
        }
        ImageAsk::Prune { remove: true } => return prune(host, Prune::Remove).await,
        ImageAsk::Prune { remove: false } => return prune(host, Prune::Tell).await,
    };
    made.map(Outcome::Image).map_err(problem::image)
}

async fn prune(host: &Host, how: Prune) -> Result<Outcome, Problem> {
    let unused = images::prune(host, how).await.map_err(problem::image)?;
    Ok(Outcome::UnusedImages(UnusedImages {
        images: unused.images,
        downloads_bytes: unused.downloads_bytes,
        removed: how == Prune::Remove,
    }))
}

pub(super) async fn remove(host: &Host, image: &str) -> Result<Outcome, Problem> {
    images::remove(host, image).await.map_err(problem::image)?;
    Ok(Outcome::Nothing)
}
