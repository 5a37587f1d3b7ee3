//! Secrets that outlive box-egress and the host, and where they are not.

use crate::egress::wait_open;
use crate::fake_egress::FakeEgress;
use crate::rig::{Rig, new_box, no_program, owner, quiet};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use box_api::BoxId;
use box_api::control::{Accounts, CredentialSource, EventKind, SealMethod};
use box_core::credentials::{
    self, Asked, CredentialError, New, Presence, Secret, VaultError, vault,
};
use box_core::{Host, events, lifecycle};
use std::path::Path;
use std::sync::Arc;
use zeroize::Zeroizing;

const SECRET: &str = "sk-ant-oat01-SEALEDSEALEDSEALEDSEALEDSEALEDSEALED";
const PASSPHRASE: &str = "correct horse battery";

fn secret(text: &str) -> Secret {
    Secret::parse(text.to_owned()).unwrap()
}

fn claude() -> Asked {
    Asked::new("claude", "default")
}

/// A deployment whose secrets are sealed in this way, with a box-egress that listens.
fn rig(seal: &str) -> (Rig, FakeEgress) {
    let rig = Rig::new();
    let config = format!("[credentials]\nseal = \"{seal}\"\n");
    std::fs::write(rig.paths().config, config).unwrap();
    std::fs::create_dir_all(rig.paths().run).unwrap();
    let fake = FakeEgress::listen(&rig.paths().egress_socket());
    (rig, fake)
}

async fn holds(fake: &FakeEgress, text: &str) {
    let held = |told: &crate::fake_egress::Told| {
        let mut all = told.credentials.values();
        all.any(|(_, secret)| secret.as_deref() == Some(text.as_bytes()))
    };
    fake.until(held).await;
}

async fn presence(host: &Host) -> Presence {
    let presence = credentials::presence(host, owner().owner, "claude", &Accounts::Defaults);
    presence.await.unwrap()
}

/// Files below `folder` that hold any of these.
fn files_with(folder: &Path, needles: &[Vec<u8>]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, needles));
        } else if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            let holds = |needle: &Vec<u8>| bytes.windows(needle.len()).any(|part| part == needle);
            found.extend(
                needles
                    .iter()
                    .any(holds)
                    .then(|| path.display().to_string()),
            );
        }
    }
    found
}

/// Waits for an event about a credential that says this.
async fn told(host: &Host, id: BoxId, word: &str) {
    let look = async {
        loop {
            let all = events::newest(host, id, 20).await.unwrap();
            let mut all = all
                .iter()
                .filter(|event| event.kind == EventKind::Credential);
            if all.any(|event| event.text.contains(word)) {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(crate::rig::PATIENCE, look)
        .await
        .unwrap();
}

/// The secret as it could lie somewhere: as it is, in base64 at any offset, in hexadecimal.
fn forms(secret: &str) -> Vec<Vec<u8>> {
    let digit = |half: u8| char::from_digit(half.into(), 16).unwrap();
    let hex: String = secret
        .bytes()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect();
    let mut forms = vec![
        secret.as_bytes().to_vec(),
        hex.to_uppercase().into_bytes(),
        hex.into_bytes(),
    ];
    for offset in 0..3 {
        let shifted = &secret.as_bytes()[offset..];
        let whole = &shifted[..shifted.len() / 3 * 3];
        forms.push(STANDARD.encode(whole).into_bytes());
        forms.push(URL_SAFE_NO_PAD.encode(whole).into_bytes());
    }
    forms
}

/// Takes the keys of a test out of the keyring, however it ends.
struct Keys(Option<Arc<Host>>);

impl Keys {
    fn of(host: &Arc<Host>) -> Self {
        Self(Some(Arc::clone(host)))
    }

    /// Lets go of the host and leaves its keys where they are.
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        let Some(host) = self.0.take() else { return };
        let discard = move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .build()
                .unwrap();
            runtime.block_on(vault::discard_keys(&host)).unwrap();
        };
        std::thread::spawn(discard).join().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_sealed_in_the_keyring_comes_back_by_itself_and_lies_nowhere() {
    let (rig, fake) = rig("keyring");
    let (host, gone) = rig.open().unwrap().with_egress(no_program());
    let keys = Keys::of(&host);
    let added = credentials::add(&host, &owner(), claude(), Some(secret(SECRET))).await;
    assert_eq!(added.unwrap().sealed, SealMethod::Keyring);
    holds(&fake, SECRET).await;

    // box-egress is killed.
    fake.die().await;
    fake.listen_again(&rig.paths().egress_socket());
    holds(&fake, SECRET).await;
    assert_eq!(presence(&host).await, Presence::Present);

    // Both are.
    fake.die().await;
    drop(gone);
    let found = files_with(rig.folder.path(), &forms(SECRET));
    assert_eq!(found, Vec::<String>::new());
    let control = files_with(rig.folder.path(), &[b"sk-ant-oat01-".to_vec()]);
    assert!(!control.is_empty(), "the search finds what is there");
    drop(host);
    keys.keep();
    fake.listen_again(&rig.paths().egress_socket());
    let (host, gone) = wait_open(&rig).await.with_egress(no_program());
    let keys = Keys::of(&host);
    holds(&fake, SECRET).await;

    // The machine is started anew: its keyring is empty.
    drop(keys);
    fake.die().await;
    drop((host, gone));
    fake.listen_again(&rig.paths().egress_socket());
    let (host, _gone) = wait_open(&rig).await.with_egress(no_program());
    fake.until(|told| told.asked.contains(&"status")).await;
    assert_eq!(presence(&host).await, Presence::Lost);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_passphrase_seals_waits_for_it() {
    let (rig, fake) = rig("passphrase");
    let (host, gone) = rig.open().unwrap().with_egress(no_program());
    let refused = credentials::add(&host, &owner(), claude(), Some(secret(SECRET))).await;
    assert!(matches!(
        refused,
        Err(CredentialError::Vault(VaultError::Locked))
    ));
    let phrase = |text: &str| Zeroizing::new(text.to_owned());
    let weak = credentials::unlock(&host, phrase("short"), New::Yes).await;
    assert!(matches!(
        weak,
        Err(CredentialError::Vault(VaultError::WeakPassphrase))
    ));
    credentials::unlock(&host, phrase(PASSPHRASE), New::Yes)
        .await
        .unwrap();
    let added = credentials::add(&host, &owner(), claude(), Some(secret(SECRET))).await;
    assert_eq!(added.unwrap().sealed, SealMethod::Passphrase);
    let mut looked_for = forms(SECRET);
    looked_for.push(PASSPHRASE.as_bytes().to_vec());
    let found = files_with(rig.folder.path(), &looked_for);
    assert_eq!(found, Vec::<String>::new());

    // While this host lives it opens what it sealed.
    fake.die().await;
    fake.listen_again(&rig.paths().egress_socket());
    holds(&fake, SECRET).await;

    fake.die().await;
    drop((host, gone));
    fake.listen_again(&rig.paths().egress_socket());
    let (host, _gone) = wait_open(&rig).await.with_egress(no_program());
    fake.until(|told| told.asked.contains(&"status")).await;
    assert_eq!(presence(&host).await, Presence::Lost);
    let wrong = credentials::unlock(&host, phrase("correct horse batterie"), New::No).await;
    assert!(matches!(
        wrong,
        Err(CredentialError::Vault(VaultError::WrongPassphrase))
    ));
    assert!(fake.told.lock().await.credentials.is_empty());
    let seal = credentials::unlock(&host, phrase(PASSPHRASE), New::No).await;
    assert!(seal.unwrap().is_open);
    holds(&fake, SECRET).await;
    assert_eq!(presence(&host).await, Presence::Present);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sealed_row_that_was_changed_or_moved_opens_nowhere() {
    let (rig, fake) = rig("passphrase");
    let (host, _gone) = rig.open().unwrap().with_egress(no_program());
    let phrase = Zeroizing::new(PASSPHRASE.to_owned());
    credentials::unlock(&host, phrase, New::Yes).await.unwrap();
    for name in ["default", "other", "third"] {
        let text = format!("{SECRET}{name}");
        credentials::add(
            &host,
            &owner(),
            Asked::new("claude", name),
            Some(secret(&text)),
        )
        .await
        .unwrap();
    }
    // The first gets the second's, the third one bit less.
    let database = rusqlite::Connection::open(rig.paths().database()).unwrap();
    database
        .execute_batch(
            "UPDATE credentials SET sealed = (SELECT sealed FROM credentials WHERE name = 'other') \
             WHERE name = 'default'; \
             UPDATE credentials SET sealed = CAST(sealed || x'00' AS BLOB) \
             WHERE name = 'third'",
        )
        .unwrap();
    drop(database);
    fake.die().await;
    fake.listen_again(&rig.paths().egress_socket());
    holds(&fake, &format!("{SECRET}other")).await;
    let listed = credentials::list(&host, &owner()).await.unwrap();
    let lost: Vec<(&str, bool)> = listed.iter().map(|one| (&*one.name, one.lost)).collect();
    assert_eq!(lost, [("default", true), ("other", false), ("third", true)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_is_run_again_when_box_egress_or_the_host_came_anew() {
    let (rig, fake) = rig("memory");
    let source = rig.folder.path().join("token");
    std::fs::write(&source, SECRET).unwrap();
    let asked = Asked {
        source: CredentialSource::Command {
            command: format!("cat {}", source.display()),
            every_ms: None,
        },
        ..claude()
    };
    let (host, gone) = rig.open().unwrap().with_egress(no_program());
    let task = tokio::spawn(credentials::run(Arc::clone(&host)));
    let added = credentials::add(&host, &owner(), asked, None).await;
    assert_eq!(added.unwrap().sealed, SealMethod::Memory);
    holds(&fake, SECRET).await;

    let next = SECRET.replace("SEALED", "SECOND");
    std::fs::write(&source, &next).unwrap();
    fake.die().await;
    fake.listen_again(&rig.paths().egress_socket());
    holds(&fake, &next).await;

    fake.die().await;
    task.abort();
    drop(task.await);
    drop((host, gone));
    fake.listen_again(&rig.paths().egress_socket());
    let (host, _gone) = wait_open(&rig).await.with_egress(no_program());
    let task = tokio::spawn(credentials::run(host));
    holds(&fake, &next).await;
    task.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_cannot_be_renewed_is_kept_until_it_ends_and_boxes_are_told() {
    let (rig, fake) = rig("memory");
    let source = rig.folder.path().join("answer");
    let ends_at_ms = 1_790_000_600_000_i64;
    let answer = format!(r#"{{"secret":"{SECRET}","expires_at":{ends_at_ms}}}"#);
    std::fs::write(&source, answer).unwrap();
    let asked = Asked {
        source: CredentialSource::Command {
            command: format!("cat {}", source.display()),
            every_ms: None,
        },
        ..claude()
    };
    let (host, _gone) = rig.open().unwrap().with_egress(no_program());
    let made = lifecycle::create(&host, &owner(), new_box("one"), quiet())
        .await
        .unwrap();
    let info = credentials::add(&host, &owner(), asked, None)
        .await
        .unwrap();
    assert_eq!(info.expires_at_ms, Some(ends_at_ms));
    credentials::environment_for_process(&host, &made)
        .await
        .unwrap();

    // In its margin before the end, and its command fails.
    std::fs::remove_file(&source).unwrap();
    rig.clock.advance(590_000);
    let task = tokio::spawn(credentials::run(Arc::clone(&host)));
    told(&host, made.id, "could not be renewed").await;
    holds(&fake, SECRET).await;
    let listed = credentials::list(&host, &owner()).await.unwrap();
    assert!(
        listed[0]
            .problem
            .as_deref()
            .unwrap()
            .contains("exit status")
    );
    assert!(!listed[0].lost);

    // The end has come.
    rig.clock.advance(20_000);
    told(&host, made.id, "has expired").await;
    assert!(fake.told.lock().await.credentials.is_empty());
    task.abort();
}
