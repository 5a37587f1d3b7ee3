//! Logins made inside boxes, as the host keeps them: their rows, their key, and their end.

use crate::egress::wait_open;
use crate::fake_egress::FakeEgress;
use crate::rig::{Rig, new_box, no_program, owner, quiet};
use box_api::BoxId;
use box_api::control::{Change, KeepWorkspace, LoginInfo};
use box_api::egress::{Event, LoginState, Logins};
use box_core::credentials::logins;
use box_core::{Host, lifecycle};
use std::sync::Arc;

fn rig() -> (Rig, FakeEgress) {
    let rig = Rig::new();
    std::fs::create_dir_all(rig.paths().run).unwrap();
    let fake = FakeEgress::listen(&rig.paths().egress_socket());
    (rig, fake)
}

fn login(kind: &str, sealed: &str) -> LoginState {
    LoginState {
        kind: kind.to_owned(),
        since_ms: 7,
        sealed: Some(sealed.to_owned()),
    }
}

async fn listed(host: &Arc<Host>) -> Vec<LoginInfo> {
    logins::list(host, &owner()).await.unwrap()
}

/// Tells of a login and waits until its row says so.
async fn logged_in(host: &Arc<Host>, fake: &FakeEgress, box_id: BoxId, login: LoginState) {
    let mut told = fake.told.lock().await;
    let held = told.logins.entry(box_id).or_default();
    held.retain(|known| known.kind != login.kind);
    held.push(login.clone());
    drop(told);
    let kind = login.kind.clone();
    fake.tell(Event::LoggedIn { box_id, login }).await;
    let there = async {
        // Events are taken in their order, and a question after them.
        while !listed(host).await.iter().any(|known| known.kind == kind) {
            host.egress.credentials().await.unwrap();
        }
    };
    let came = tokio::time::timeout(crate::rig::PATIENCE, there).await;
    assert!(came.is_ok(), "the login was not kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_made_inside_is_listed_and_given_back_to_a_new_box_egress() {
    let (rig, fake) = rig();
    let (host, gone) = rig.open().unwrap().with_egress(no_program());
    let made = lifecycle::create(&host, &owner(), new_box("demo"), quiet())
        .await
        .unwrap();
    fake.until(|told| told.boxes.contains_key(&made.id)).await;
    logged_in(&host, &fake, made.id, login("claude", "c2VhbGVk")).await;
    let all = listed(&host).await;
    assert_eq!(all.len(), 1);
    assert_eq!(
        (all[0].name.as_str(), all[0].kind.as_str()),
        ("demo", "claude")
    );
    assert_eq!(
        (all[0].since_ms, all[0].is_sealed, all[0].lost),
        (7, true, false)
    );

    // Box-egress dies, and a host after it.
    let back = |told: &crate::fake_egress::Told| {
        told.logins.get(&made.id) == Some(&vec![login("claude", "c2VhbGVk")])
    };
    fake.die().await;
    fake.listen_again(&rig.paths().egress_socket());
    fake.until(back).await;
    drop((host, gone));
    fake.die().await;
    fake.listen_again(&rig.paths().egress_socket());
    let (host, _gone) = wait_open(&rig).await.with_egress(no_program());
    fake.until(back).await;

    // What box-egress could not open is lost.
    fake.told.lock().await.logins.clear();
    assert!(listed(&host).await[0].lost);
}

#[tokio::test(flavor = "multi_thread")]
async fn logins_end_with_their_box_and_where_they_are_switched_off() {
    let (rig, fake) = rig();
    let (host, _gone) = rig.open().unwrap().with_egress(no_program());
    let caller = owner();
    let create = |name| lifecycle::create(&host, &caller, new_box(name), quiet());
    let removed = create("removed").await.unwrap();
    let plain = create("plain").await.unwrap();
    let kept = create("kept").await.unwrap();
    fake.until(|told| told.boxes.len() == 3).await;
    for made in [&removed, &plain, &kept] {
        logged_in(&host, &fake, made.id, login("github", "c2VhbGVk")).await;
    }
    let names = |all: Vec<LoginInfo>| -> Vec<String> {
        all.into_iter()
            .map(|login| login.name.to_string())
            .collect()
    };
    fake.until(|told| told.logins.values().all(|own| own.len() == 1))
        .await;

    lifecycle::trash(&host, removed.id, KeepWorkspace::No)
        .await
        .unwrap();
    assert!(!fake.told.lock().await.logins.contains_key(&removed.id));
    assert_eq!(names(listed(&host).await), ["kept", "plain"]);

    let changes = vec![Change::Logins(Logins::Plain)];
    let set = lifecycle::set(&host, plain.id, changes).await.unwrap();
    assert_eq!(set.record.settings.logins, Logins::Plain);
    assert_eq!(names(listed(&host).await), ["kept"]);
    fake.until(|told| told.boxes[&plain.id].0.logins == Logins::Plain)
        .await;
    assert!(!fake.told.lock().await.logins.contains_key(&plain.id));
    let of_kept = fake.told.lock().await.boxes[&kept.id].0.logins;
    assert_eq!(of_kept, Logins::Placeholder);
    // One that comes late, of a box that is gone, is not kept.
    let late = Event::LoggedIn {
        box_id: removed.id,
        login: login("claude", "c2VhbGVk"),
    };
    fake.tell(late).await;
    host.egress.credentials().await.unwrap();
    assert_eq!(names(listed(&host).await), ["kept"]);
}
