//! What box-egress is told, when it comes back and when the host does.

use crate::fake_egress::FakeEgress;
use crate::rig::{PATIENCE, Rig, name, new_box, no_program, owner, quiet};
use box_api::control::NewBox;
use box_api::egress::{Event, HostName, HostPattern, Reason, Refusal};
use box_core::egress::{LinkState, Program};
use box_core::{Host, lifecycle, reconcile};
use std::sync::Arc;
use std::time::Duration;

fn start(rig: &Rig) -> (Arc<Host>, tokio::sync::mpsc::Receiver<box_api::BoxId>) {
    rig.open().unwrap().with_egress(no_program())
}

#[tokio::test]
async fn a_running_box_is_registered_with_its_policy_and_five_descriptors() {
    let rig = Rig::new();
    std::fs::create_dir_all(rig.paths().run).unwrap();
    let fake = FakeEgress::listen(&rig.paths().egress_socket());
    let (host, _gone) = start(&rig);
    let asked = NewBox {
        allow: vec!["extra.example".to_owned()],
        ..new_box("demo")
    };
    let made = lifecycle::create(&host, &owner(), asked, quiet())
        .await
        .unwrap();
    fake.until(|told| told.boxes.contains_key(&made.id)).await;
    {
        let told = fake.told.lock().await;
        let (policy, bindings, descriptors) = &told.boxes[&made.id];
        assert_eq!(policy.allow, [HostPattern::parse("extra.example").unwrap()]);
        assert!(
            policy
                .preset_hosts
                .contains(&HostPattern::parse("github.com").unwrap())
        );
        assert!(bindings.is_empty());
        assert_eq!(*descriptors, 5);
        assert!(!told.resolvers.is_empty());
        let key = String::from_utf8(told.ca_key.clone()).unwrap();
        assert!(key.starts_with("-----BEGIN PRIVATE KEY-----"));
        assert!(
            told.ca_cert
                .as_deref()
                .unwrap()
                .starts_with("-----BEGIN CERTIFICATE-----")
        );
    }
    assert_eq!(
        rig.runtime.reopened().await,
        0,
        "the sockets of the start were used"
    );
    lifecycle::stop(&host, made.id, Duration::ZERO)
        .await
        .unwrap();
    fake.until(|told| told.boxes.is_empty()).await;
}

#[tokio::test]
async fn a_new_box_egress_is_told_everything_again() {
    let rig = Rig::new();
    std::fs::create_dir_all(rig.paths().run).unwrap();
    let fake = FakeEgress::listen(&rig.paths().egress_socket());
    let (host, _gone) = start(&rig);
    let made = lifecycle::create(&host, &owner(), new_box("demo"), quiet())
        .await
        .unwrap();
    fake.until(|told| told.boxes.contains_key(&made.id)).await;
    let learned = HostName::parse("learned.example").unwrap();
    let addr = "198.18.0.16".parse().unwrap();
    fake.tell(Event::Mapped {
        box_id: made.id,
        name: learned,
        addr,
    })
    .await;
    // Answered behind the event, so the event was taken.
    host.egress.credentials().await.unwrap();

    fake.die().await;
    let mut told_down = fake.turns.subscribe();
    told_down.mark_unchanged();
    fake.listen_again(&rig.paths().egress_socket());
    fake.until(|told| told.boxes.contains_key(&made.id) && told.names == 1)
        .await;
    assert_eq!(
        rig.runtime.reopened().await,
        1,
        "its sockets died with the old one"
    );
    assert!(
        fake.told.lock().await.ca_cert.is_some(),
        "it was configured again"
    );
}

#[tokio::test]
async fn a_host_that_comes_back_tells_only_what_is_missing() {
    let rig = Rig::new();
    std::fs::create_dir_all(rig.paths().run).unwrap();
    let fake = FakeEgress::listen(&rig.paths().egress_socket());
    let (host, gone) = start(&rig);
    let kept = lifecycle::create(&host, &owner(), new_box("kept"), quiet())
        .await
        .unwrap();
    let lost = lifecycle::create(&host, &owner(), new_box("lost"), quiet())
        .await
        .unwrap();
    let ended = lifecycle::create(&host, &owner(), new_box("ended"), quiet())
        .await
        .unwrap();
    fake.until(|told| told.boxes.len() == 3).await;
    drop((host, gone));

    fake.told.lock().await.boxes.remove(&lost.id);
    rig.runtime.die(&ended.id).await;
    let opened = wait_open(&rig).await;
    let already = fake.told.lock().await.asked.len();
    let (host, _gone) = opened.with_egress(no_program());
    reconcile::reconcile_once(&host).await.unwrap();
    fake.until(|told| {
        told.boxes.contains_key(&lost.id)
            && told.boxes.contains_key(&kept.id)
            && !told.boxes.contains_key(&ended.id)
    })
    .await;
    host.egress.credentials().await.unwrap();
    let asked = fake.told.lock().await.asked[already..].to_vec();
    let registered = asked.iter().filter(|name| **name == "register").count();
    assert_eq!(registered, 1, "{asked:?}");
}

/// The last host's tasks let go of its locks a moment after it is dropped.
pub(crate) async fn wait_open(rig: &Rig) -> box_core::open::Opened {
    let opened = async {
        loop {
            match rig.open() {
                Ok(opened) => return opened,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    };
    tokio::time::timeout(PATIENCE, opened).await.unwrap()
}

#[tokio::test]
async fn a_box_made_while_box_egress_is_away_is_told_later() {
    let rig = Rig::new();
    let (host, _gone) = start(&rig);
    let made = lifecycle::create(&host, &owner(), new_box("demo"), quiet())
        .await
        .unwrap();
    let refused = host.egress.credentials().await;
    assert!(refused.is_err(), "{refused:?}");
    let fake = FakeEgress::listen(&rig.paths().egress_socket());
    fake.until(|told| told.boxes.contains_key(&made.id)).await;
}

#[tokio::test]
async fn what_box_egress_notices_is_kept_and_told() {
    let rig = Rig::new();
    std::fs::create_dir_all(rig.paths().run).unwrap();
    let fake = FakeEgress::listen(&rig.paths().egress_socket());
    let (host, mut gone) = start(&rig);
    let made = lifecycle::create(&host, &owner(), new_box("demo"), quiet())
        .await
        .unwrap();
    fake.until(|told| told.boxes.contains_key(&made.id)).await;
    let refusal = Refusal {
        box_id: made.id,
        host: "evil.example".to_owned(),
        port: 443,
        reason: Reason::NotListed,
        rule: None,
        at_ms: 17,
        times: 1,
        entrance: None,
    };
    for _ in 0..3 {
        fake.tell(Event::Refused(refusal.clone())).await;
    }
    fake.tell(Event::BoxGone { box_id: made.id }).await;
    let told = tokio::time::timeout(PATIENCE, gone.recv()).await.unwrap();
    assert_eq!(told, Some(made.id));
    let line: (String, String, i64) = host
        .store
        .read(|connection| {
            connection.query_row("SELECT host, verdict, times FROM net_log", [], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })
        })
        .await
        .unwrap();
    assert_eq!(
        line,
        ("evil.example:443".to_owned(), "not_listed".to_owned(), 3)
    );
}

/// Kills the process when the test is over, however it ends.
struct Kill(u32);

impl Drop for Kill {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_raw(self.0.cast_signed()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap_or_default();
    }
}

#[tokio::test]
async fn box_egress_is_started_and_started_again_when_it_dies() {
    let rig = Rig::new();
    let program = Program {
        program: std::env::current_exe().unwrap().into(),
        arguments: ["--exact", "fake_egress::as_a_process"]
            .map(Into::into)
            .to_vec(),
        user: None,
    };
    let (host, _gone) = rig.open().unwrap().with_egress(program);
    let first = Kill(up(&host, 0).await);
    assert_ne!(first.0, std::process::id());
    let pid = first.0;
    drop(first);
    let second = Kill(up(&host, pid).await);
    assert_ne!(second.0, pid);
    assert!(host.egress.credentials().await.unwrap().is_empty());
    assert!(
        lifecycle::create(&host, &owner(), new_box("demo"), quiet())
            .await
            .is_ok()
    );
    assert_eq!(name("demo").as_str(), "demo");
}

/// Waits until another box-egress than `before` is up.
async fn up(host: &Host, before: u32) -> u32 {
    let mut state = host.egress.watch();
    let other = |state: &LinkState| matches!(state, LinkState::Up { pid, .. } if *pid != before);
    let up = tokio::time::timeout(PATIENCE, state.wait_for(other))
        .await
        .unwrap()
        .unwrap();
    let LinkState::Up { pid, .. } = &*up else {
        panic!("{up:?}")
    };
    *pid
}
