//! Boxes begun ahead: how many there are, who gets them, and that nobody sees them.

use crate::rig::{PATIENCE, Rig, name, new_box, owner, quiet};
use box_api::BoxId;
use box_core::lifecycle::{self, CreateError};
use box_core::{Host, boxes, images, pool, reconcile};
use std::collections::BTreeSet;
use std::sync::Arc;

async fn made(host: &Arc<Host>, text: &str) -> BoxId {
    let caller = owner();
    let made = lifecycle::create(host, &caller, new_box(text), quiet());
    made.await.unwrap().id
}

/// Waits until there are so many, and no more are on their way.
async fn come_to(rig: &Rig, host: &Host, count: usize) -> BTreeSet<BoxId> {
    let waiting = async {
        loop {
            pool::tend(host).await;
            let left = rig.runtime.left().await;
            if left.len() == count && host.pool.count().await == count {
                return left;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap()
}

fn set_up(config: &str) -> Rig {
    let rig = Rig::new();
    let text = format!("[credentials]\nseal = \"memory\"\n{config}");
    std::fs::write(rig.folder.path().join("config.toml"), text).unwrap();
    rig
}

/// Whatever the machine has is enough.
const ANY_MEMORY: &str = "[pool]\nreserve = \"1MiB\"\n";

#[tokio::test]
async fn the_second_box_of_an_image_within_the_hour_is_what_asks_for_one() {
    let rig = set_up(ANY_MEMORY);
    let host = rig.host();
    made(&host, "one").await;
    come_to(&rig, &host, 0).await;
    made(&host, "two").await;
    come_to(&rig, &host, 1).await;
    rig.clock.advance(61 * 60 * 1000);
    come_to(&rig, &host, 0).await;
    made(&host, "three").await;
    come_to(&rig, &host, 0).await;
}

#[tokio::test]
async fn each_is_taken_once_and_never_seen_before() {
    let rig = set_up(ANY_MEMORY);
    let host = rig.host();
    for text in ["one", "two", "three"] {
        made(&host, text).await;
    }
    let spares = come_to(&rig, &host, 2).await;
    let listed = boxes::list(&host, &owner()).await.unwrap();
    assert!(listed.iter().all(|record| !spares.contains(&record.id)));
    assert_eq!(listed.len(), 3);
    let (four, five) = tokio::join!(made(&host, "four"), made(&host, "five"));
    assert!(spares.contains(&four) && spares.contains(&five));
    assert_ne!(four, five);
    // What another name has is not lost on the way, and one that was dropped is nobody's.
    let left = come_to(&rig, &host, 4).await;
    assert!(!left.contains(&four) && !left.contains(&five));
    let records = boxes::list(&host, &owner()).await.unwrap();
    let offsets: BTreeSet<u32> = records.iter().map(|record| record.id_offset).collect();
    assert_eq!(offsets.len(), records.len());
}

#[tokio::test]
async fn a_box_that_is_refused_leaves_none_behind() {
    let rig = set_up(ANY_MEMORY);
    let host = rig.host();
    made(&host, "one").await;
    made(&host, "two").await;
    come_to(&rig, &host, 1).await;
    let caller = owner();
    let again = lifecycle::create(&host, &caller, new_box("two"), quiet());
    let again = again.await.unwrap_err();
    assert!(matches!(again, CreateError::NameTaken(_)), "{again:?}");
    come_to(&rig, &host, 1).await;
    let records = boxes::list(&host, &owner()).await.unwrap();
    assert_eq!(records.len(), 2);
    assert_eq!(
        boxes::find(&host, &owner(), &name("two")).await.unwrap().id,
        records[1].id
    );
}

#[tokio::test]
async fn a_machine_short_of_memory_begins_none_and_lets_go_of_what_it_has() {
    // More than any machine has: what is available is less than what is to stay so.
    let rig = set_up("[pool]\nreserve = \"1024TiB\"\n");
    let host = rig.host();
    for text in ["one", "two", "three"] {
        made(&host, text).await;
    }
    come_to(&rig, &host, 0).await;
    assert_eq!(rig.runtime.begun().await, BTreeSet::new());
}

#[tokio::test]
async fn none_is_begun_where_the_settings_say_so_and_never_more_than_they_say() {
    let rig = set_up("[pool]\nmax = \"off\"\n");
    let host = rig.host();
    for text in ["one", "two", "three"] {
        made(&host, text).await;
    }
    come_to(&rig, &host, 0).await;
    assert_eq!(rig.runtime.begun().await, BTreeSet::new());

    let rig = set_up("[pool]\nmax = 2\nreserve = \"1MiB\"\n");
    let host = rig.host();
    for text in ["one", "two", "three", "four", "five"] {
        made(&host, text).await;
    }
    come_to(&rig, &host, 2).await;
}

#[tokio::test]
async fn they_go_with_the_image_they_were_for() {
    let rig = set_up(ANY_MEMORY);
    let host = rig.host();
    let one = made(&host, "one").await;
    let two = made(&host, "two").await;
    come_to(&rig, &host, 1).await;
    for id in [one, two] {
        lifecycle::remove(&host, id).await.unwrap();
    }
    images::remove(&host, box_runtime::DEFAULT_IMAGE)
        .await
        .unwrap();
    come_to(&rig, &host, 0).await;
}

#[test]
fn the_next_host_knows_none_and_makes_its_own() {
    let rig = set_up(ANY_MEMORY);
    let begun = rig.life(async |host| {
        made(&host, "one").await;
        made(&host, "two").await;
        come_to(&rig, &host, 1).await
    });
    rig.life(async |host| {
        reconcile::reconcile_once(&host).await.unwrap();
        assert_eq!(host.pool.count().await, 0);
        let three = made(&host, "three").await;
        assert!(!begun.contains(&three));
        assert_eq!(boxes::list(&host, &owner()).await.unwrap().len(), 3);
    });
}
