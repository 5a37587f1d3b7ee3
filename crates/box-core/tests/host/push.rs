//! Browsers are told through every end of a host, and once.

use crate::rig::{PATIENCE, Rig, owner};
use async_trait::async_trait;
use box_api::page::PushAsk;
use box_api::{BoxId, ThreadId};
use box_core::push::{self, Courier, Delivery, Letter};
use box_core::store::Durability;
use box_core::{Host, sign_ins};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::time::timeout;

const SIGN_IN: &str = "phone";

/// A push service that answers as it is told, and says what it was sent.
#[derive(Debug)]
struct Service {
    answer: Delivery,
    sent: mpsc::Sender<(String, u32, usize)>,
}

#[async_trait]
impl Courier for Service {
    async fn carry(&self, _: &Host, letter: Letter) -> Delivery {
        assert!(
            letter.authorization.starts_with("vapid t="),
            "it is not signed"
        );
        let told = (letter.topic, letter.ttl_s, letter.body.len());
        self.sent.send(told).await.unwrap();
        self.answer.clone()
    }
}

type Sent = mpsc::Receiver<(String, u32, usize)>;

fn service(host: &Host, answer: Delivery) -> Sent {
    let (sent, inbox) = mpsc::channel(16);
    host.push
        .deliver_through(Arc::new(Service { answer, sent }));
    inbox
}

fn thread() -> ThreadId {
    ThreadId::from_random([1; 10])
}

/// A box with a thread at work and a paired browser.
async fn furnish(host: &Host) {
    let (id, owner) = (BoxId::from_random([2; 10]), owner().owner.to_string());
    let far = host.now_ms() + 1_000_000_000;
    let write = host.store.write(Durability::Prompt, move |tables| {
        tables.execute(
            "INSERT INTO boxes (id, owner, name, state, runtime, image, image_digest, profile, net, \
             limits, allow, id_offset, created_at_ms, changed_at_ms) VALUES (?, ?, 'demo', \
             'stopped', 'fake', '', '', '', '', '', '', 65536, 0, 0)",
            (id.as_str(), &owner),
        )?;
        tables.execute(
            "INSERT INTO threads (id, box_id, owner, agent, title, state, asks, epoch, commits, \
             saved, created_at_ms, changed_at_ms) VALUES (?, ?, ?, 'demo', 'fix it', 'running', \
             'person', 1, 0, '{}', 0, 0)",
            (thread().as_str(), id.as_str(), &owner),
        )?;
        tables.execute(
            "INSERT INTO sign_ins (id, key, owner, tier, agent, made_at_ms, seen_at_ms, ends_at_ms) \
             VALUES (?, x'00', ?, 'admin', 'a phone', 0, 0, ?)",
            (SIGN_IN, &owner, far),
        )
    });
    write.await.unwrap();
}

async fn subscribe(host: &Host) {
    let asked = PushAsk {
        endpoint: "https://push.example.org/wpush/1".to_owned(),
        p256dh: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
            .to_owned(),
        auth: "BTBZMqHH6r4Tts7J_aSIgg".to_owned(),
        names_only: false,
    };
    let by = (SIGN_IN, "https://boxes.example.org");
    push::subscribe(host, &owner(), by, asked).await.unwrap();
}

async fn asks(host: &Host, number: i64) {
    let at_ms = host.now_ms();
    let write = host.store.write(Durability::Prompt, move |tables| {
        tables.execute(
            "INSERT INTO decisions (id, box_id, thread, owner, generation, about, title, options, \
             state, opened_at_ms) SELECT ?1, box_id, id, owner, 1, 'permission', 'rm -rf target', \
             '[]', 'open', ?2 FROM threads",
            (number, at_ms),
        )
    });
    write.await.unwrap();
}

async fn next(sent: &mut Sent) -> (String, u32, usize) {
    timeout(PATIENCE, sent.recv()).await.unwrap().unwrap()
}

/// Waits until the browser's line in the list is as wanted.
async fn until(host: &Host, wanted: impl Fn(&box_api::page::PushState) -> bool) {
    let looking = async {
        loop {
            let state = push::state(host, &owner(), SIGN_IN).await.unwrap();
            if wanted(&state) {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, looking).await.unwrap();
}

#[test]
fn what_was_not_delivered_is_tried_again_by_the_next_host() {
    let rig = Rig::new();
    rig.life(async |host| {
        furnish(&host).await;
        let why = "the push service answered 503".to_owned();
        let mut sent = service(&host, Delivery::Later { why, after_s: None });
        subscribe(&host).await;
        asks(&host, 3).await;
        tokio::spawn(push::run(Arc::clone(&host)));
        let (topic, ttl_s, bytes) = next(&mut sent).await;
        assert_eq!((topic.as_str(), ttl_s), ("d-3", 12 * 3600));
        assert!(bytes > 200, "{bytes}");
        until(&host, |state| state.devices[0].problem.is_some()).await;
    });
    rig.clock.advance(60_000);
    rig.life(async |host| {
        let mut sent = service(&host, Delivery::Taken(201));
        tokio::spawn(push::run(Arc::clone(&host)));
        let (topic, ttl_s, _) = next(&mut sent).await;
        assert_eq!((topic.as_str(), ttl_s), ("d-3", 12 * 3600 - 60));
        until(&host, |state| {
            let device = &state.devices[0];
            device.waiting == 0 && device.told_at_ms.is_some() && device.problem.is_none()
        })
        .await;
    });
}

#[test]
fn a_browser_that_its_service_knows_no_more_is_forgotten() {
    let rig = Rig::new();
    rig.life(async |host| {
        furnish(&host).await;
        let mut sent = service(&host, Delivery::Gone(410));
        subscribe(&host).await;
        asks(&host, 3).await;
        tokio::spawn(push::run(Arc::clone(&host)));
        next(&mut sent).await;
        until(&host, |state| state.devices.is_empty()).await;
    });
}

#[test]
fn what_happens_in_front_of_its_owner_is_told_to_no_device() {
    let rig = Rig::new();
    rig.life(async |host| {
        furnish(&host).await;
        let mut sent = service(&host, Delivery::Taken(201));
        subscribe(&host).await;
        let watcher = host.push.front.seat(owner().owner);
        asks(&host, 3).await;
        watcher.look(Some(thread()), host.now_ms() + 1);
        tokio::spawn(push::run(Arc::clone(&host)));
        // The page goes elsewhere; what happens now is told, and the first was seen.
        let noted = async |host: &Host| {
            let count = "SELECT COUNT(*) FROM push_notes";
            let read = host
                .store
                .read(|tables| tables.query_row(count, [], |row| row.get::<_, i64>(0)));
            read.await.unwrap()
        };
        let seen = async {
            while noted(&host).await > 0 {
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, seen).await.unwrap();
        watcher.look(None, host.now_ms() + 2);
        asks(&host, 4).await;
        assert_eq!(next(&mut sent).await.0, "d-4");
        until(&host, |state| state.devices[0].waiting == 0).await;
        assert!(
            sent.try_recv().is_err(),
            "the one that was seen is not told"
        );
    });
}

#[test]
fn a_browser_that_is_signed_out_is_told_no_more() {
    let rig = Rig::new();
    rig.life(async |host| {
        furnish(&host).await;
        subscribe(&host).await;
        until(&host, |state| {
            state.devices.len() == 1 && state.key.is_some()
        })
        .await;
        sign_ins::revoke(&host, &owner(), SIGN_IN).await.unwrap();
        until(&host, |state| state.devices.is_empty()).await;
    });
}

#[test]
fn a_test_says_what_became_of_it_at_every_hop() {
    let rig = Rig::new();
    rig.life(async |host| {
        furnish(&host).await;
        let _sent = service(&host, Delivery::Taken(201));
        subscribe(&host).await;
        let tested = push::test(&host, SIGN_IN).await.unwrap();
        let hops: Vec<&str> = tested.hops.iter().map(|hop| hop.what.as_str()).collect();
        assert_eq!(hops, ["subscribed", "encrypted", "push service"]);
        assert!(tested.hops[2].text.contains("201"), "{tested:?}");
        assert!(push::test(&host, "nobody").await.is_err());
    });
}
