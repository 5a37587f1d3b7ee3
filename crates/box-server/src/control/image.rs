//! `ImageList`, `ImagePrepare`, `ImageRemove`.

use super::client::Client;
use crate::problem;
use box_api::Problem;
use box_api::control::Outcome;
use box_core::Host;
use box_core::images;

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

pub(super) async fn remove(host: &Host, image: &str) -> Result<Outcome, Problem> {
    images::remove(host, image).await.map_err(problem::image)?;
    Ok(Outcome::Nothing)
}
