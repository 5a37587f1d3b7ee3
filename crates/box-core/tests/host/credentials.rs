//! Where a secret goes, and what boxes hold instead.

use crate::fake_egress::FakeEgress;
use crate::rig::{Rig, new_box, no_program, owner, quiet};
use box_core::credentials::{self, CredentialError, Presence, Secret};
use box_core::lifecycle;
use std::path::Path;

const SECRET: &str = "sk-ant-oat01-REALREALREALREALREALREALREALREALREALREAL";
const API_KEY: &str = "sk-ant-api03-KEYKEYKEYKEYKEYKEYKEYKEYKEYKEYKEYKEYKEY";

fn secret(text: &str) -> Secret {
    Secret::parse(text.to_owned()).unwrap()
}

/// Every file below `folder` that holds `text`.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            if bytes
                .windows(text.len())
                .any(|window| window == text.as_bytes())
            {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

#[tokio::test]
async fn a_box_gets_a_placeholder_of_its_own_and_the_secret_is_on_no_disk() {
    let rig = Rig::new();
    std::fs::create_dir_all(rig.paths().run).unwrap();
    let fake = FakeEgress::listen(&rig.paths().egress_socket());
    let (host, _gone) = rig.open().unwrap().with_egress(no_program());
    let added = credentials::add(&host, &owner(), "claude", "default", secret(SECRET)).await;
    assert_eq!(added.unwrap().kind, "claude");

    let one = lifecycle::create(&host, &owner(), new_box("one"), quiet())
        .await
        .unwrap();
    let two = lifecycle::create(&host, &owner(), new_box("two"), quiet())
        .await
        .unwrap();
    fake.until(|told| told.boxes.len() == 2).await;
    let of_one = credentials::environment_for_process(&host, &one)
        .await
        .unwrap();
    let again = credentials::environment_for_process(&host, &one)
        .await
        .unwrap();
    let of_two = credentials::environment_for_process(&host, &two)
        .await
        .unwrap();
    assert_eq!(of_one, again);
    let (variable, placeholder) = of_one[0].clone();
    assert_eq!(variable, "CLAUDE_CODE_OAUTH_TOKEN");
    assert_ne!(placeholder, of_two[0].1);
    assert!(placeholder.starts_with("sk-ant-oat"));
    assert_eq!(placeholder.len(), SECRET.len());

    let told = fake.told.lock().await;
    let bound = &told.boxes[&one.id].1;
    assert_eq!(bound.len(), 1);
    assert_eq!(bound[0].placeholder, placeholder);
    assert!(!bound[0].hosts.is_empty());
    let (spec, kept) = &told.credentials[&bound[0].credential];
    assert_eq!(kept.as_deref(), Some(SECRET.as_bytes()));
    assert_eq!(spec.hosts, bound[0].hosts);
    drop(told);

    assert_eq!(files_with(rig.folder.path(), SECRET), Vec::<String>::new());
    let kept = files_with(rig.folder.path(), &placeholder);
    assert!(!kept.is_empty(), "the search finds what is there");
}

#[tokio::test]
async fn another_form_of_secret_makes_new_placeholders() {
    let rig = Rig::new();
    std::fs::create_dir_all(rig.paths().run).unwrap();
    let fake = FakeEgress::listen(&rig.paths().egress_socket());
    let (host, _gone) = rig.open().unwrap().with_egress(no_program());
    let made = lifecycle::create(&host, &owner(), new_box("one"), quiet())
        .await
        .unwrap();
    fake.until(|told| told.boxes.len() == 1).await;
    credentials::add(&host, &owner(), "claude", "default", secret(SECRET))
        .await
        .unwrap();
    let before = credentials::environment_for_process(&host, &made)
        .await
        .unwrap();
    credentials::add(
        &host,
        &owner(),
        "claude",
        "default",
        secret(&SECRET.replace("REAL", "NEXT")),
    )
    .await
    .unwrap();
    let rotated = credentials::environment_for_process(&host, &made)
        .await
        .unwrap();
    assert_eq!(before, rotated, "the same form: what runs goes on");
    credentials::add(&host, &owner(), "claude", "default", secret(API_KEY))
        .await
        .unwrap();
    let after = credentials::environment_for_process(&host, &made)
        .await
        .unwrap();
    assert_eq!(after[0].0, "ANTHROPIC_API_KEY");
    assert!(after[0].1.starts_with("sk-ant-api"));
    let told = fake.told.lock().await;
    assert_eq!(
        told.boxes[&made.id].1.len(),
        1,
        "the old one means nothing any more"
    );
    assert_eq!(told.credentials.len(), 1);
}

#[tokio::test]
async fn a_secret_lost_with_box_egress_is_said_to_be_lost() {
    let rig = Rig::new();
    std::fs::create_dir_all(rig.paths().run).unwrap();
    let fake = FakeEgress::listen(&rig.paths().egress_socket());
    let (host, _gone) = rig.open().unwrap().with_egress(no_program());
    let presence = || credentials::presence(&host, owner().owner, "claude");
    assert_eq!(presence().await.unwrap(), Presence::Absent);
    credentials::add(&host, &owner(), "claude", "default", secret(SECRET))
        .await
        .unwrap();
    assert_eq!(presence().await.unwrap(), Presence::Present);
    fake.die().await;
    fake.listen_again(&rig.paths().egress_socket());
    fake.until(|told| told.asked.contains(&"status")).await;
    assert_eq!(presence().await.unwrap(), Presence::Lost);
    assert!(credentials::list(&host, &owner()).await.unwrap()[0].lost);
    credentials::remove(&host, &owner(), "claude")
        .await
        .unwrap();
    assert_eq!(presence().await.unwrap(), Presence::Absent);
    let gone = credentials::remove(&host, &owner(), "claude")
        .await
        .unwrap_err();
    assert_eq!(gone.to_string(), "there is no credential `claude`");
}

#[tokio::test]
async fn what_cannot_be_a_credential_is_refused_without_being_shown() {
    let rig = Rig::new();
    std::fs::create_dir_all(rig.paths().run).unwrap();
    let fake = FakeEgress::listen(&rig.paths().egress_socket());
    let (host, _gone) = rig.open().unwrap().with_egress(no_program());
    for (kind, name, text) in [
        ("clod", "default", SECRET),
        ("claude", "My Account", SECRET),
        ("claude", "default", "hunter2-TELLTALE-TELLTALE"),
        ("claude", "default", "sk-ant-oat01-TELLTALE"),
    ] {
        let refused = credentials::add(&host, &owner(), kind, name, secret(text)).await;
        let refused = refused.unwrap_err();
        let shown = format!(
            "{refused} {refused:?} {}",
            box_core::boxes::reason(&refused)
        );
        assert!(
            !shown.contains("TELLTALE") && !shown.contains(SECRET),
            "{shown}"
        );
    }
    let kind = credentials::add(&host, &owner(), "clod", "default", secret(SECRET)).await;
    assert!(matches!(kind, Err(CredentialError::UnknownKind { known, .. }) if known == ["claude"]));
    assert!(fake.told.lock().await.credentials.is_empty());
    assert!(credentials::list(&host, &owner()).await.unwrap().is_empty());
}
