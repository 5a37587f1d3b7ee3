//! What is asked about a box's network: one decision for each host, answered once, in the rows
//! before box-egress hears of it.

use crate::fake_egress::FakeEgress;
use crate::rig::{PATIENCE, Rig, new_box, no_program, owner, quiet};
use box_api::control::Change;
use box_api::egress::policy::Unlisted;
use box_api::egress::{Event, HostName, HostPattern, Passed};
use box_api::thread::{Decision, DecisionKind};
use box_api::{BoxId, DecisionId};
use box_core::boxes::BoxRecord;
use box_core::decisions::{self, AnswerError};
use box_core::egress::LinkState;
use box_core::network::log::{self, Since};
use box_core::network::policy::{self, PolicyError, Wish};
use box_core::network::rules::Scope;
use box_core::{Host, lifecycle};
use std::sync::Arc;

struct Stage {
    rig: Rig,
    fake: FakeEgress,
    host: Arc<Host>,
    made: BoxRecord,
}

impl Stage {
    async fn new() -> Self {
        let rig = Rig::new();
        std::fs::create_dir_all(rig.paths().run).unwrap();
        let fake = FakeEgress::listen(&rig.paths().egress_socket());
        let (host, _gone) = rig.open().unwrap().with_egress(no_program());
        let made = lifecycle::create(&host, &owner(), new_box("demo"), quiet())
            .await
            .unwrap();
        fake.until(|told| told.boxes.contains_key(&made.id)).await;
        Self {
            rig,
            fake,
            host,
            made,
        }
    }

    /// A connection of the box to `host` waits; gives what is asked.
    async fn asked(&self, host: &str, port: u16) -> Decision {
        let mut told = self.host.people.listen();
        let event = Event::Asked {
            box_id: self.made.id,
            host: HostName::parse(host).unwrap(),
            port,
            at_ms: 5,
        };
        self.fake.tell(event).await;
        told.recv().await.unwrap()
    }

    async fn answer(&self, id: DecisionId, option: &str) -> Result<(), AnswerError> {
        decisions::answer(&self.host, &owner(), id, option, "uid:0").await
    }

    async fn allows(&self, entry: &str) {
        let entry = HostPattern::parse(entry).unwrap();
        let id = self.made.id;
        self.fake
            .until(|told| told.boxes[&id].0.allow.contains(&entry))
            .await;
    }
}

#[tokio::test]
async fn a_host_is_asked_about_once_and_only_while_it_is_open() {
    let stage = Stage::new().await;
    let first = stage.asked("new.example", 443).await;
    assert_eq!(first.about, DecisionKind::Network);
    assert_eq!(
        first.title,
        "box `demo` wants to reach new.example:443, which is not on its list"
    );
    let again = stage.asked("new.example", 443).await;
    assert_eq!(again.decision, first.decision, "the same one");
    let other = stage.asked("new.example", 8443).await;
    assert_ne!(other.decision, first.decision);
    let open = decisions::open(&stage.host, &owner()).await.unwrap();
    assert_eq!(open.len(), 2);
    stage.answer(first.decision, "block").await.unwrap();
    let open = decisions::open(&stage.host, &owner()).await.unwrap();
    assert_eq!(open.len(), 1);
}

#[tokio::test]
async fn the_first_answer_wins_and_holds_for_as_far_as_it_says() {
    let stage = Stage::new().await;
    let second = lifecycle::create(&stage.host, &owner(), new_box("other"), quiet())
        .await
        .unwrap();
    let asked = stage.asked("new.example", 443).await;
    stage.answer(asked.decision, "box").await.unwrap();
    stage.allows("new.example").await;
    let too_late = stage.answer(asked.decision, "block").await;
    assert!(
        matches!(too_late, Err(AnswerError::Over { .. })),
        "{too_late:?}"
    );
    let told = stage.fake.told.lock().await.boxes[&second.id].0.clone();
    assert!(told.allow.is_empty(), "the other box was not asked about");

    let asked = stage.asked("git.example", 2222).await;
    stage.answer(asked.decision, "all").await.unwrap();
    stage.allows("git.example:2222").await;
    let entry = HostPattern::parse("git.example:2222").unwrap();
    stage
        .fake
        .until(|told| told.boxes[&second.id].0.allow.contains(&entry))
        .await;

    let asked = stage.asked("bad.example", 443).await;
    stage.answer(asked.decision, "block").await.unwrap();
    let (id, entry) = (stage.made.id, HostPattern::parse("bad.example").unwrap());
    stage
        .fake
        .until(|told| told.boxes[&id].0.deny.contains(&entry))
        .await;
}

#[tokio::test]
async fn once_is_told_to_box_egress_and_leaves_no_rule() {
    let stage = Stage::new().await;
    let asked = stage.asked("new.example", 443).await;
    stage.answer(asked.decision, "once").await.unwrap();
    stage
        .fake
        .until(|told| told.asked.contains(&"allow_once"))
        .await;
    let shown = policy::show(&stage.host, &stage.made).await.unwrap();
    assert_eq!(shown.entries, []);
}

#[tokio::test]
async fn connections_wait_only_while_somebody_looks() {
    let stage = Stage::new().await;
    let id = stage.made.id;
    let asks = |told: &crate::fake_egress::Told, wanted| told.boxes[&id].0.unlisted == wanted;
    assert!(asks(&*stage.fake.told.lock().await, Unlisted::Refuse));
    let look = stage.host.people.look_at(id);
    stage.fake.until(|told| asks(told, Unlisted::Ask)).await;
    drop(look);
    stage.fake.until(|told| asks(told, Unlisted::Refuse)).await;
    let _stranger = stage.host.people.look_at(BoxId::from_random([9; 10]));
    let everywhere = stage.host.people.look_everywhere();
    stage.fake.until(|told| asks(told, Unlisted::Ask)).await;
    drop(everywhere);
    stage.fake.until(|told| asks(told, Unlisted::Refuse)).await;
}

#[tokio::test]
async fn answers_outlive_the_host() {
    let stage = Stage::new().await;
    let asked = stage.asked("new.example", 443).await;
    stage.answer(asked.decision, "box").await.unwrap();
    stage.allows("new.example").await;
    let open = stage.asked("open.example", 443).await;
    let Stage {
        rig,
        fake,
        host,
        made,
    } = stage;
    drop(host);
    fake.told.lock().await.boxes.clear();
    let (host, _gone) = crate::egress::wait_open(&rig)
        .await
        .with_egress(no_program());
    let entry = HostPattern::parse("new.example").unwrap();
    fake.until(|told| {
        told.boxes
            .get(&made.id)
            .is_some_and(|held| held.0.allow.contains(&entry))
    })
    .await;
    let still = decisions::open(&host, &owner()).await.unwrap();
    assert_eq!(still.len(), 1);
    assert_eq!(still[0].decision, open.decision);
}

/// Looked at without waiting: whoever was told that a change is done tries it at once.
#[tokio::test]
async fn a_change_is_done_when_box_egress_has_it_and_not_before() {
    let stage = Stage::new().await;
    let id = stage.made.id;
    let entry = HostPattern::parse("fine.example").unwrap();
    let wish = Wish {
        net: None,
        allow: vec![entry.to_string()],
        deny: Vec::new(),
        remove: Vec::new(),
        private: Vec::new(),
        scope: Scope::Box,
        by: owner().owner,
    };
    policy::set(&stage.host, &stage.made, wish).await.unwrap();
    let held = stage.fake.told.lock().await.boxes[&id].0.clone();
    assert_eq!(held.allow, [entry]);
    let change = Change::NetBudgetBytes(Some(1 << 20));
    lifecycle::set(&stage.host, id, vec![change]).await.unwrap();
    let held = stage.fake.told.lock().await.boxes[&id].0.clone();
    assert_eq!(held.limits.budget_bytes, Some(1 << 20));
    let asked = stage.asked("new.example", 443).await;
    stage.answer(asked.decision, "all").await.unwrap();
    let held = stage.fake.told.lock().await.boxes[&id].0.clone();
    assert_eq!(held.allow.len(), 2, "{:?}", held.allow);
}

/// C139: another CA is in box-egress and in what boxes are given, and the old one in neither.
#[tokio::test]
async fn the_ca_is_replaced_everywhere_and_running_boxes_are_named() {
    let stage = Stage::new().await;
    let paths = stage.rig.paths();
    let before = stage.fake.told.lock().await.ca_cert.clone().unwrap();
    let restart = policy::new_ca(&stage.host).await.unwrap();
    assert_eq!(restart, std::slice::from_ref(&stage.made.name));
    let told = stage.fake.told.lock().await;
    let after = told.ca_cert.clone().unwrap();
    assert_ne!(before, after);
    assert_eq!(std::fs::read_to_string(paths.ca_cert()).unwrap(), after);
    for file in [paths.bundle(), paths.added_roots()] {
        let text = std::fs::read_to_string(file).unwrap();
        assert!(text.contains(&after) && !text.contains(&before));
    }
    let key = std::fs::read(paths.ca_dir().join("ca.key")).unwrap();
    assert_eq!(told.ca_key, key);
}

#[tokio::test]
async fn a_change_does_not_wait_for_a_box_egress_that_is_away() {
    let stage = Stage::new().await;
    let mut link = stage.host.egress.watch();
    stage.fake.die().await;
    let is_down = |state: &LinkState| matches!(state, LinkState::Down { .. });
    let down = tokio::time::timeout(PATIENCE, link.wait_for(is_down)).await;
    drop(down.unwrap().unwrap());
    let change = Change::NetBudgetBytes(Some(1 << 20));
    let set = lifecycle::set(&stage.host, stage.made.id, vec![change]).await;
    assert_eq!(set.unwrap().record.settings.net_budget_bytes, Some(1 << 20));
    // It lets nothing through meanwhile, and has the change when it is back.
    let id = stage.made.id;
    stage.fake.listen_again(&stage.rig.paths().egress_socket());
    stage
        .fake
        .until(|told| {
            let held = told.boxes.get(&id);
            held.is_some_and(|held| held.0.limits.budget_bytes == Some(1 << 20))
        })
        .await;
}

#[tokio::test]
async fn a_policy_is_changed_whole_or_not_at_all() {
    let stage = Stage::new().await;
    let wish = |allow: &[&str], remove: &[&str]| Wish {
        net: None,
        allow: allow.iter().map(|&entry| entry.to_owned()).collect(),
        deny: Vec::new(),
        remove: remove.iter().map(|&entry| entry.to_owned()).collect(),
        scope: Scope::Box,
        private: Vec::new(),
        by: owner().owner,
    };
    let bad = policy::set(&stage.host, &stage.made, wish(&["fine.example", "*"], &[])).await;
    assert!(matches!(bad, Err(PolicyError::Entry { .. })), "{bad:?}");
    let missing = wish(&["fine.example"], &["never.example"]);
    let missing = policy::set(&stage.host, &stage.made, missing).await;
    assert!(matches!(missing, Err(PolicyError::NoSuchEntry { .. })));
    let shown = policy::show(&stage.host, &stage.made).await.unwrap();
    assert_eq!(shown.entries, []);
    policy::set(&stage.host, &stage.made, wish(&["fine.example"], &[]))
        .await
        .unwrap();
    stage.allows("fine.example").await;
    // The first of two could be taken away, the second not: neither is.
    let half = wish(&[], &["fine.example", "never.example"]);
    let half = policy::set(&stage.host, &stage.made, half).await;
    assert!(matches!(half, Err(PolicyError::NoSuchEntry { .. })));
    let shown = policy::show(&stage.host, &stage.made).await.unwrap();
    assert_eq!(shown.entries.len(), 1, "{:?}", shown.entries);
    policy::set(&stage.host, &stage.made, wish(&[], &["fine.example"]))
        .await
        .unwrap();
    let id = stage.made.id;
    stage
        .fake
        .until(|told| told.boxes[&id].0.allow.is_empty())
        .await;
}

#[tokio::test]
async fn what_went_through_is_added_up_in_the_log() {
    let stage = Stage::new().await;
    let passed = |received_bytes| {
        Event::Passed(Passed {
            box_id: stage.made.id,
            host: HostName::parse("ok.example").unwrap(),
            port: 443,
            rule: "preset ok.example".to_owned(),
            credential: None,
            sent_bytes: 1,
            received_bytes,
            began_at_ms: 1,
            ended_at_ms: 2,
            connections: vec![1],
            times: 1,
            entrance: None,
            address: None,
            open_ms: 1,
            exchanges: Vec::new(),
        })
    };
    let mut grew = stage.host.people.watch_log();
    for received_bytes in [100, 11] {
        stage.fake.tell(passed(received_bytes)).await;
        grew.changed().await.unwrap();
    }
    let lines = log::read(&stage.host, stage.made.id, Since { at_ms: 0 })
        .await
        .unwrap();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!((lines[0].times, lines[0].received_bytes), (2, 111));
    assert_eq!(lines[0].host, "ok.example:443");
}

#[tokio::test]
async fn a_list_that_is_full_takes_no_more_and_loses_none() {
    let stage = Stage::new().await;
    let wish = |from: usize| Wish {
        net: None,
        allow: Vec::new(),
        deny: (from..from + 256)
            .map(|number| format!("h{number}.example"))
            .collect(),
        remove: Vec::new(),
        scope: Scope::Box,
        private: Vec::new(),
        by: owner().owner,
    };
    for from in [0, 256, 512, 768] {
        policy::set(&stage.host, &stage.made, wish(from))
            .await
            .unwrap();
    }
    let full = policy::set(&stage.host, &stage.made, wish(1024)).await;
    assert!(matches!(full, Err(PolicyError::Full { .. })), "{full:?}");
    let shown = policy::show(&stage.host, &stage.made).await.unwrap();
    assert_eq!(shown.entries.len(), 1024);
}

#[tokio::test]
async fn a_clone_may_reach_what_its_source_may_and_no_more() {
    let stage = Stage::new().await;
    let wish = Wish {
        net: None,
        allow: vec!["fine.example".to_owned()],
        deny: vec!["bad.example".to_owned()],
        remove: Vec::new(),
        scope: Scope::Box,
        private: Vec::new(),
        by: owner().owner,
    };
    policy::set(&stage.host, &stage.made, wish).await.unwrap();
    let asked = crate::undo::copy_of("demo", None, "copy");
    let copy = lifecycle::clone(&stage.host, &owner(), asked, quiet())
        .await
        .unwrap();
    let of_source = policy::show(&stage.host, &stage.made).await.unwrap();
    let of_copy = policy::show(&stage.host, &copy).await.unwrap();
    assert_eq!(of_copy.entries.len(), 2);
    assert_eq!(of_copy.entries, of_source.entries);
}

#[tokio::test]
async fn a_box_that_asks_without_end_fills_nothing() {
    let stage = Stage::new().await;
    for number in 0..100 {
        stage.asked(&format!("h{number}.example"), 443).await;
    }
    let event = |host: &str| Event::Asked {
        box_id: stage.made.id,
        host: HostName::parse(host).unwrap(),
        port: 443,
        at_ms: 5,
    };
    stage.fake.tell(event("one-more.example")).await;
    // Told behind it, and open already: the one before was looked at and not opened.
    let known = stage.asked("h7.example", 443).await;
    assert!(known.title.contains("h7.example"), "{known:?}");
    let open = decisions::open(&stage.host, &owner()).await.unwrap();
    assert_eq!(open.len(), 100);
    // Room again: the next is asked, with the next number.
    stage.answer(known.decision, "block").await.unwrap();
    let next = stage.asked("one-more.example", 443).await;
    let newest = open.iter().map(|open| open.decision.0).max().unwrap();
    assert_eq!(next.decision.0, newest + 1, "asking again costs no number");
}
