//! Images as the host keeps them: what is in use stays.

use crate::rig::{Rig, new_box, owner, quiet};
use box_core::images::{self, ImageError};
use box_core::lifecycle;
use box_runtime::Prune;
use std::time::Duration;
use tokio::time::timeout;

#[tokio::test]
async fn only_images_without_a_box_are_cleaned_up() {
    let rig = Rig::new();
    let host = rig.host();
    lifecycle::create(&host, &owner(), new_box("demo"), quiet())
        .await
        .unwrap();
    let names = |unused: box_runtime::Unused| -> Vec<String> {
        unused.images.into_iter().map(|image| image.image).collect()
    };
    let told = images::prune(&host, Prune::Tell).await.unwrap();
    assert_eq!(names(told), ["debian:trixie"]);
    assert_eq!(images::list(&host).await.unwrap().len(), 2);
    let gone = images::prune(&host, Prune::Remove).await.unwrap();
    assert_eq!(names(gone), ["debian:trixie"]);
    let left = images::list(&host).await.unwrap();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].image, "default");
}

#[tokio::test]
async fn no_image_goes_while_one_is_becoming_a_boxs() {
    let rig = Rig::new();
    let host = rig.host();
    let becoming = host.image_use.begin().await;
    let short = Duration::from_millis(50);
    let pruned = timeout(short, images::prune(&host, Prune::Remove)).await;
    assert!(pruned.is_err(), "it waits");
    let removed = timeout(short, images::remove(&host, "debian:trixie")).await;
    assert!(removed.is_err(), "it waits");
    drop(becoming);
    images::remove(&host, "debian:trixie").await.unwrap();
}

#[tokio::test]
async fn an_archive_is_taken_over_by_its_absolute_path_alone() {
    let rig = Rig::new();
    let host = rig.host();
    let refused = images::adopt(&host, "image.tar", "app", &*quiet()).await;
    assert!(matches!(refused, Err(ImageError::RelativeArchive(_))));
    let made = images::adopt(&host, "/tmp/image.tar", "app", &*quiet()).await;
    assert_eq!(made.unwrap().image, "built:app");
}
