//! What the host makes of what box-egress tells: connections that are open, signals, and the
//! limits box-egress is told.

use crate::fake_egress::FakeEgress;
use crate::rig::{PATIENCE, Rig, new_box, no_program, owner, quiet};
use box_api::BoxId;
use box_api::control::{BoxEvent, Change, EventKind, OnSignal};
use box_api::egress::traffic::{Entrance, NetLimits, Open, Signal, SignalKind};
use box_api::egress::{Event, HostName, Passed};
use box_core::boxes::BoxRecord;
use box_core::network::log::{self, Since};
use box_core::network::signals;
use box_core::{Host, boxes, events, lifecycle, watch};
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
        tokio::spawn(signals::run(Arc::clone(&host)));
        Self {
            rig,
            fake,
            host,
            made,
        }
    }

    async fn set(&self, change: Change) {
        lifecycle::set(&self.host, self.made.id, vec![change])
            .await
            .unwrap();
    }

    async fn signal(&self, kind: SignalKind) {
        let signal = Signal {
            box_id: self.made.id,
            kind,
            host: "evil.example".to_owned(),
            count: 12,
            at_ms: 5,
        };
        self.fake.tell(Event::Signal(signal)).await;
    }

    /// The newest events, once one is of this kind.
    async fn befell(&self, kind: EventKind) -> Vec<BoxEvent> {
        let look = newest_with(&self.host, self.made.id, kind);
        tokio::time::timeout(PATIENCE, look).await.unwrap()
    }

    async fn record(&self) -> BoxRecord {
        boxes::get(&self.host, self.made.id).await.unwrap().unwrap()
    }
}

async fn newest_with(host: &Host, id: BoxId, kind: EventKind) -> Vec<BoxEvent> {
    loop {
        let all = events::newest(host, id, 100).await.unwrap();
        if all.iter().any(|event| event.kind == kind) {
            return all;
        }
        tokio::task::yield_now().await;
    }
}

fn open(id: BoxId, sent_bytes: u64) -> Open {
    Open {
        box_id: id,
        connection: 7,
        host: HostName::parse("ok.example").unwrap(),
        port: 443,
        rule: "preset open".to_owned(),
        entrance: Entrance::Proxy,
        ends: None,
        address: Some("192.0.2.9:443".parse().unwrap()),
        credential: None,
        sent_bytes,
        received_bytes: 0,
        began_at_ms: 1,
        at_ms: 4,
    }
}

#[tokio::test]
async fn an_open_connection_is_shown_and_becomes_a_line_once_it_is_over() {
    let stage = Stage::new().await;
    let (id, live) = (stage.made.id, &stage.host.live);
    let mut grew = stage.host.people.watch_log();
    stage.fake.tell(Event::Open(open(id, 600))).await;
    grew.changed().await.unwrap();
    let lines = live.lines(&id);
    assert_eq!(lines.len(), 1);
    assert!(lines[0].open);
    assert_eq!(
        (lines[0].host.as_str(), lines[0].sent_bytes),
        ("ok.example:443", 600)
    );
    assert_eq!(lines[0].address, "192.0.2.9:443");
    assert_eq!(live.traffic(&id, stage.host.now_ms()).open, 1);
    let passed = Passed {
        box_id: id,
        host: HostName::parse("ok.example").unwrap(),
        port: 443,
        rule: "preset open".to_owned(),
        credential: None,
        sent_bytes: 700,
        received_bytes: 20,
        began_at_ms: 1,
        ended_at_ms: 9,
        connections: vec![7],
        times: 1,
        entrance: Some(Entrance::Proxy),
        address: Some("192.0.2.9:443".parse().unwrap()),
        open_ms: 8,
        exchanges: Vec::new(),
    };
    stage.fake.tell(Event::Passed(passed)).await;
    grew.changed().await.unwrap();
    assert_eq!(live.lines(&id), []);
    let kept = log::read(&stage.host, id, Since { at_ms: 0 })
        .await
        .unwrap();
    assert_eq!(kept.len(), 1);
    assert_eq!((kept[0].way.as_str(), kept[0].open_ms), ("proxy", 8));
    assert_eq!(log::total(&stage.host, id).await.unwrap(), (700, 20));
}

#[tokio::test]
async fn a_signal_is_an_event_and_a_line_and_freezes_nobody_unasked() {
    let stage = Stage::new().await;
    let mut grew = stage.host.people.watch_log();
    stage.signal(SignalKind::PlaceholderOfAnotherBox).await;
    let befell = stage.befell(EventKind::Signal).await;
    assert_eq!(
        befell.last().unwrap().text,
        "it sent the placeholder of another box to `evil.example`"
    );
    grew.changed().await.unwrap();
    let lines = log::read(&stage.host, stage.made.id, Since { at_ms: 0 })
        .await
        .unwrap();
    assert_eq!(lines[0].verdict, "placeholder_of_another_box");
    assert!(!stage.host.touches.is_frozen(&stage.made.id).await);
}

#[tokio::test]
async fn a_box_that_is_frozen_for_a_signal_is_thawed_by_its_owner_alone() {
    let stage = Stage::new().await;
    stage.set(Change::OnSignal(OnSignal::Freeze)).await;
    // What is no theft freezes nobody.
    stage.signal(SignalKind::CredentialEchoed).await;
    stage.signal(SignalKind::ManyRefused).await;
    stage.befell(EventKind::Signal).await;
    assert!(!stage.host.touches.is_frozen(&stage.made.id).await);
    stage.signal(SignalKind::DataInNames).await;
    let befell = stage.befell(EventKind::Frozen).await;
    let frozen = befell.last().unwrap();
    assert_eq!(frozen.kind, EventKind::Frozen);
    assert!(
        frozen.text.contains("12 names under `evil.example`"),
        "{}",
        frozen.text
    );
    let record = stage.record().await;
    let touched = watch::awake(&stage.host, &record).await.map(drop);
    let refused = touched.unwrap_err().to_string();
    assert!(refused.contains("frozen for what it did"), "{refused}");
    assert!(stage.host.touches.is_frozen(&stage.made.id).await);
    watch::thaw(&stage.host, &record).await.unwrap();
    assert!(watch::awake(&stage.host, &record).await.is_ok());
    assert!(!stage.host.touches.is_frozen(&stage.made.id).await);
}

#[test]
fn the_host_after_keeps_a_box_frozen_that_was_frozen_for_a_signal() {
    let first = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let (rig, made) = first.block_on(async {
        let stage = Stage::new().await;
        stage.set(Change::OnSignal(OnSignal::Freeze)).await;
        stage.signal(SignalKind::PlaceholderInPlain).await;
        stage.befell(EventKind::Frozen).await;
        (stage.rig, stage.made)
    });
    first.shutdown_timeout(PATIENCE);
    rig.life(async |host| {
        watch::take_up(&host).await.unwrap();
        let record = boxes::get(&host, made.id).await.unwrap().unwrap();
        assert!(watch::awake(&host, &record).await.is_err());
        assert!(host.touches.is_frozen(&made.id).await);
    });
}

#[tokio::test]
async fn limits_of_the_network_are_told_at_once() {
    let stage = Stage::new().await;
    stage.set(Change::NetBudgetBytes(Some(1 << 30))).await;
    stage.set(Change::NetConnections(Some(9))).await;
    let wanted = NetLimits {
        budget_bytes: Some(1 << 30),
        connections: Some(9),
    };
    let id = stage.made.id;
    stage
        .fake
        .until(|told| told.boxes[&id].0.limits == wanted)
        .await;
    stage.set(Change::NetBudgetBytes(None)).await;
    stage
        .fake
        .until(|told| told.boxes[&id].0.limits.budget_bytes.is_none())
        .await;
    drop(stage.rig);
}
