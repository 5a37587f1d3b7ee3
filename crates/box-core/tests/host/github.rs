//! What a box may write at GitHub, from its settings to box-egress.

use crate::fake_egress::FakeEgress;
use crate::rig::{Rig, name, new_box, no_program, owner, quiet};
use box_api::control::Change;
use box_api::egress::github::{GithubScope, RefPattern, Repository};
use box_core::credentials::{self, Asked, Secret};
use box_core::{lifecycle, network};

const SECRET: &str = "ghp_REALREALREALREALREALREALREALREAL0000";

fn bound(refs: &str) -> GithubScope {
    GithubScope {
        repositories: vec![Repository::parse("me/app").unwrap()],
        refs: vec![RefPattern::parse(refs).unwrap()],
        ..GithubScope::default()
    }
}

#[tokio::test]
async fn scope_of_a_box_reaches_box_egress_and_follows_its_name() {
    let rig = Rig::new();
    std::fs::create_dir_all(rig.paths().run).unwrap();
    let fake = FakeEgress::listen(&rig.paths().egress_socket());
    let (host, _gone) = rig.open().unwrap().with_egress(no_program());
    let secret = Secret::parse(SECRET.to_owned()).unwrap();
    let asked = Asked::new("github", "default");
    credentials::add(&host, &owner(), asked, Some(secret))
        .await
        .unwrap();
    let made = lifecycle::create(&host, &owner(), new_box("web"), quiet())
        .await
        .unwrap();
    credentials::environment_for_process(&host, &made)
        .await
        .unwrap();
    let id = made.id;
    let holds = |wanted: GithubScope| {
        fake.until(move |told| {
            let bindings = told.boxes.get(&id).map(|held| &held.1);
            let of_github = bindings.into_iter().flatten();
            of_github
                .filter_map(|one| one.github.as_ref())
                .eq([&wanted])
        })
    };
    // Nobody said anything: nothing may be written, and the pattern is there for the day it may.
    holds(GithubScope {
        repositories: Vec::new(),
        ..bound("box/web/*")
    })
    .await;
    let repository = Repository::parse("me/app").unwrap();
    let set = lifecycle::set(&host, id, vec![Change::Github(vec![repository])]).await;
    assert!(set.unwrap().later.is_empty(), "it holds at once");
    holds(bound("box/web/*")).await;
    let renamed = lifecycle::rename(&host, id, name("site")).await.unwrap();
    holds(bound("box/site/*")).await;
    let shown = network::policy::show(&host, &renamed).await.unwrap();
    assert_eq!(shown.github, bound("box/site/*"));
    let refs = Change::GithubRefs(vec![RefPattern::parse("fix/*").unwrap()]);
    let more = vec![refs, Change::GithubForce(true), Change::GithubTags(true)];
    lifecycle::set(&host, id, more).await.unwrap();
    holds(GithubScope {
        force: true,
        tags: true,
        ..bound("fix/*")
    })
    .await;
}
