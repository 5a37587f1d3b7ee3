//! Where a secret goes, and what boxes hold instead.

use crate::fake_egress::FakeEgress;
use crate::rig::{Rig, new_box, no_program, owner, quiet};
use box_api::control::{Accounts, Change, CredentialForm, CredentialSource};
use box_api::egress::Carriage;
use box_core::credentials::{self, Asked, CredentialError, Presence, Secret};
use box_core::lifecycle;
use std::path::Path;

const SECRET: &str = "sk-ant-oat01-REALREALREALREALREALREALREALREALREALREAL";
const API_KEY: &str = "sk-ant-api03-KEYKEYKEYKEYKEYKEYKEYKEYKEYKEYKEYKEYKEY";

fn secret(text: &str) -> Secret {
    Secret::parse(text.to_owned()).unwrap()
}

fn claude() -> Asked {
    Asked::new("claude", "default")
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
    let added = credentials::add(&host, &owner(), claude(), Some(secret(SECRET))).await;
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
    credentials::add(&host, &owner(), claude(), Some(secret(SECRET)))
        .await
        .unwrap();
    let before = credentials::environment_for_process(&host, &made)
        .await
        .unwrap();
    credentials::add(
        &host,
        &owner(),
        claude(),
        Some(secret(&SECRET.replace("REAL", "NEXT"))),
    )
    .await
    .unwrap();
    let rotated = credentials::environment_for_process(&host, &made)
        .await
        .unwrap();
    assert_eq!(before, rotated, "the same form: what runs goes on");
    credentials::add(&host, &owner(), claude(), Some(secret(API_KEY)))
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
    let presence = || credentials::presence(&host, owner().owner, "claude", &Accounts::Defaults);
    assert_eq!(presence().await.unwrap(), Presence::Absent);
    credentials::add(&host, &owner(), claude(), Some(secret(SECRET)))
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
        let refused =
            credentials::add(&host, &owner(), Asked::new(kind, name), Some(secret(text))).await;
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
    let kind = credentials::add(
        &host,
        &owner(),
        Asked::new("clod", "default"),
        Some(secret(SECRET)),
    )
    .await;
    assert!(
        matches!(kind, Err(CredentialError::UnknownKind { known, .. }) if known.contains(&"claude"))
    );
    assert!(fake.told.lock().await.credentials.is_empty());
    assert!(credentials::list(&host, &owner()).await.unwrap().is_empty());
}

/// A host with box-egress, and a running box.
async fn with_box(
    rig: &Rig,
) -> (
    std::sync::Arc<box_core::Host>,
    FakeEgress,
    box_core::boxes::BoxRecord,
) {
    std::fs::create_dir_all(rig.paths().run).unwrap();
    let fake = FakeEgress::listen(&rig.paths().egress_socket());
    let (host, _gone) = rig.open().unwrap().with_egress(no_program());
    let made = lifecycle::create(&host, &owner(), new_box("one"), quiet())
        .await
        .unwrap();
    fake.until(|told| told.boxes.len() == 1).await;
    (host, fake, made)
}

const GITHUB: &str = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
const GEMINI: &str = "AIzaSy0123456789abcdefghijklmnopqrstuvw";

#[tokio::test]
async fn several_kinds_are_given_at_once_each_for_its_own_hosts() {
    let rig = Rig::new();
    let (host, fake, made) = with_box(&rig).await;
    let maps = Asked {
        form: CredentialForm {
            hosts: vec!["Maps.example.org".to_owned()],
            carried: vec![Carriage::Query {
                name: "appid".to_owned(),
            }],
            variable: None,
        },
        ..Asked::new("generic", "maps")
    };
    for (asked, text) in [
        (claude(), SECRET),
        (Asked::new("github", "default"), GITHUB),
        (Asked::new("gemini", "default"), GEMINI),
        (maps, "0123456789abcdefghij"),
    ] {
        credentials::add(&host, &owner(), asked, Some(secret(text)))
            .await
            .unwrap();
    }
    let variables = credentials::environment_for_process(&host, &made)
        .await
        .unwrap();
    let names: Vec<&str> = variables.iter().map(|(name, _)| &**name).collect();
    assert_eq!(
        names,
        [
            "CLAUDE_CODE_OAUTH_TOKEN",
            "GEMINI_API_KEY",
            "GOOGLE_API_KEY",
            "MAPS_TOKEN",
            "GH_TOKEN",
            "GITHUB_TOKEN",
        ]
    );
    let placeholder = |name: &str| {
        let found = variables.iter().find(|(variable, _)| variable == name);
        found.unwrap().1.clone()
    };
    assert!(placeholder("GH_TOKEN").starts_with("ghp_"));
    assert_eq!(placeholder("GH_TOKEN").len(), GITHUB.len().max(44));
    assert!(placeholder("GEMINI_API_KEY").starts_with("AIza"));
    let told = fake.told.lock().await;
    let bound = &told.boxes[&made.id].1;
    let hosts_of = |text: &str| {
        let binding = bound.iter().find(|binding| binding.placeholder == text);
        binding.unwrap().hosts.clone()
    };
    let maps = hosts_of(&placeholder("MAPS_TOKEN"));
    assert_eq!(maps.len(), 1);
    assert_eq!(maps[0].as_str(), "maps.example.org");
    let github = hosts_of(&placeholder("GH_TOKEN"));
    assert!(github.iter().any(|host| host.as_str() == "api.github.com"));
    let (spec, _) = &told.credentials[&format!("{}/generic/maps", owner().owner)];
    assert_eq!(
        spec.carried,
        [Carriage::Query {
            name: "appid".to_owned()
        }]
    );
}

#[tokio::test]
async fn what_a_kind_leaves_open_is_asked_for_and_nothing_else_is_taken() {
    let rig = Rig::new();
    let (host, fake, _made) = with_box(&rig).await;
    let form = |hosts: &[&str], variable: Option<&str>| CredentialForm {
        hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
        carried: Vec::new(),
        variable: variable.map(str::to_owned),
    };
    let asked = |kind: &str, form: CredentialForm| Asked {
        form,
        ..Asked::new(kind, "default")
    };
    for (kind, form) in [
        ("generic", form(&[], None)),
        ("npm", form(&[], None)),
        ("claude", form(&["evil.example"], None)),
        ("github", form(&[], Some("MINE"))),
        ("generic", form(&["a b"], None)),
        ("generic", form(&["*.example.org"], None)),
        ("generic", form(&["a.example"], Some("LD_PRELOAD"))),
    ] {
        let shown = format!("{kind} {form:?}");
        let refused =
            credentials::add(&host, &owner(), asked(kind, form), Some(secret(GITHUB))).await;
        assert!(
            matches!(refused, Err(CredentialError::Form { .. })),
            "{shown}: {refused:?}"
        );
    }
    assert!(fake.told.lock().await.credentials.is_empty());
    let own = asked("gitlab", form(&["gitlab.example.org"], None));
    let added = credentials::add(
        &host,
        &owner(),
        own,
        Some(secret("glpat-0123456789abcdefghij")),
    )
    .await;
    assert_eq!(added.unwrap().hosts, ["gitlab.example.org"]);
}

#[tokio::test]
async fn a_box_uses_the_accounts_it_was_told_and_no_other() {
    let rig = Rig::new();
    let (host, fake, made) = with_box(&rig).await;
    let work = SECRET.replace("REAL", "WORK");
    for (asked, text) in [
        (claude(), SECRET),
        (Asked::new("claude", "work"), &*work),
        (Asked::new("github", "default"), GITHUB),
    ] {
        credentials::add(&host, &owner(), asked, Some(secret(text)))
            .await
            .unwrap();
    }
    let bound = async || {
        let told = fake.told.lock().await;
        let mut ids: Vec<String> = told.boxes[&made.id]
            .1
            .iter()
            .map(|binding| binding.credential.split_once('/').unwrap().1.to_owned())
            .collect();
        ids.sort();
        ids
    };
    let before = credentials::environment_for_process(&host, &made)
        .await
        .unwrap();
    assert_eq!(bound().await, ["claude/default", "github/default"]);
    let set = async |text: &str| {
        let change = Change::Accounts(text.parse().unwrap());
        lifecycle::set(&host, made.id, vec![change]).await
    };
    let changed = set("claude:work").await.unwrap().record;
    assert_eq!(bound().await, ["claude/work", "github/default"]);
    let after = credentials::environment_for_process(&host, &changed)
        .await
        .unwrap();
    assert_eq!(after[0].0, before[0].0);
    assert_ne!(
        after[0].1, before[0].1,
        "another account, another placeholder"
    );
    assert_eq!(after[1], before[1], "what was not changed goes on");
    assert_eq!(
        credentials::accounts_of(&host, &changed).await.unwrap(),
        ["claude:work", "github:default"]
    );

    set("none,github:default").await.unwrap();
    assert_eq!(bound().await, ["github/default"]);
    let changed = set("none").await.unwrap().record;
    assert_eq!(bound().await, Vec::<String>::new());
    let none = credentials::environment_for_process(&host, &changed).await;
    assert_eq!(none.unwrap(), Vec::new());
    for text in ["claude:nope", "clod:default", "claude:work,claude:default"] {
        assert!(set(text).await.is_err(), "{text}");
    }
    assert_eq!(bound().await, Vec::<String>::new());
    set("default").await.unwrap();
    assert_eq!(bound().await, ["claude/default", "github/default"]);
}

#[tokio::test]
async fn a_rotated_secret_takes_the_place_of_the_old_one_and_placeholders_stay() {
    let rig = Rig::new();
    let (host, fake, made) = with_box(&rig).await;
    credentials::add(&host, &owner(), claude(), Some(secret(SECRET)))
        .await
        .unwrap();
    let before = credentials::environment_for_process(&host, &made)
        .await
        .unwrap();
    // Another beginning of the same form of token, and another length.
    let next = "sk-ant-oat02-NEXTNEXTNEXTNEXTNEXTNEXTNEXT";
    let typed = CredentialSource::Typed;
    credentials::rotate(&host, &owner(), "claude", typed.clone(), Some(secret(next)))
        .await
        .unwrap();
    let after = credentials::environment_for_process(&host, &made)
        .await
        .unwrap();
    assert_eq!(before, after);
    {
        let told = fake.told.lock().await;
        let (_, kept) = told.credentials.values().next().unwrap();
        assert_eq!(kept.as_deref(), Some(next.as_bytes()));
        assert_eq!(told.boxes[&made.id].1[0].placeholder, before[0].1);
    }
    let other = credentials::rotate(
        &host,
        &owner(),
        "claude",
        typed.clone(),
        Some(secret(API_KEY)),
    )
    .await;
    assert!(matches!(other, Err(CredentialError::OtherForm { .. })));
    let unknown = credentials::rotate(&host, &owner(), "github", typed, Some(secret(GITHUB))).await;
    assert!(matches!(unknown, Err(CredentialError::Unknown(_))));
    let told = fake.told.lock().await;
    let (_, kept) = told.credentials.values().next().unwrap();
    assert_eq!(
        kept.as_deref(),
        Some(next.as_bytes()),
        "the last good one holds"
    );
}
