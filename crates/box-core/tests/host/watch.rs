//! Boxes while they run: deadlines, freezes, what befalls them, and what is changed of them.

use crate::rig::{PATIENCE, Rig, name, new_box, owner, quiet};
use box_api::BoxId;
use box_api::control::{
    BoxEvent, BoxState, Change, EVENTS_PER_BOX_MAX, EventKind, Exec, NewBox, Profile,
};
use box_core::boxes::BoxRecord;
use box_core::lifecycle::{self, SetError, SettingError};
use box_core::store::Durability;
use box_core::watch::{self, LOOK_EVERY, Watch};
use box_core::{Host, boxes, events, exec, reconcile};
use box_runtime::{Ended, Execution, Usage};
use std::sync::Arc;

const SECOND_MS: u64 = 1000;

async fn made(host: &Arc<Host>, asked: NewBox) -> BoxRecord {
    lifecycle::create(host, &owner(), asked, quiet())
        .await
        .unwrap()
}

fn with_deadline(seconds: u64) -> NewBox {
    let mut asked = new_box("timed");
    asked.settings.deadline_ms = Some(seconds * SECOND_MS);
    asked
}

fn that_freezes_after(seconds: u64) -> NewBox {
    let mut asked = new_box("sleepy");
    asked.settings.freeze_after_ms = Some(seconds * SECOND_MS);
    asked
}

/// Looks again and again while the clock goes on for this long.
async fn looked_for(rig: &Rig, host: &Arc<Host>, watch: &mut Watch, seconds: u64) {
    let step_ms = i64::try_from(LOOK_EVERY.as_millis()).unwrap();
    let mut left_ms = i64::try_from(seconds * SECOND_MS).unwrap();
    while left_ms > 0 {
        rig.clock.advance(step_ms.min(left_ms));
        left_ms -= step_ms;
        watch.look(host).await.unwrap();
    }
}

/// Waits until the box is in this state.
async fn becomes(host: &Host, id: BoxId, state: BoxState) -> BoxRecord {
    let waiting = async {
        let mut changes = host.changes.watch();
        loop {
            let record = boxes::get(host, id).await.unwrap().unwrap();
            if record.state == state {
                return record;
            }
            changes.changed().await.unwrap();
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap()
}

async fn events_of(host: &Host, id: BoxId) -> Vec<BoxEvent> {
    events::newest(host, id, EVENTS_PER_BOX_MAX).await.unwrap()
}

async fn kinds(host: &Host, id: BoxId) -> Vec<EventKind> {
    let events = events_of(host, id).await;
    events.into_iter().map(|event| event.kind).collect()
}

async fn command(host: &Host, text: &str) -> Execution {
    let asked = Exec {
        name: name(text),
        command: vec!["true".to_owned()],
        cwd: None,
        env: Vec::new(),
        terminal: None,
    };
    let started = exec::exec(host, &owner(), asked).await.unwrap();
    started.execution
}

#[tokio::test]
async fn a_box_is_stopped_at_its_deadline_and_says_so() {
    let rig = Rig::new();
    let host = rig.host();
    let id = made(&host, with_deadline(10)).await.id;
    let other = made(&host, new_box("timeless")).await.id;
    let mut watch = Watch::default();
    looked_for(&rig, &host, &mut watch, 8).await;
    assert_eq!(becomes(&host, id, BoxState::Running).await.problem, None);
    looked_for(&rig, &host, &mut watch, 4).await;
    let stopped = becomes(&host, id, BoxState::Stopped).await;
    let why = "its deadline came: it had run for 10s";
    assert_eq!(stopped.problem.as_deref(), Some(why));
    assert_eq!(kinds(&host, id).await, [EventKind::Deadline]);
    assert_eq!(
        boxes::get(&host, other).await.unwrap().unwrap().state,
        BoxState::Running
    );

    // Whoever starts it again begins a new count.
    let started = lifecycle::start(&host, id).await.unwrap();
    assert_eq!(started.problem, None);
    looked_for(&rig, &host, &mut watch, 8).await;
    becomes(&host, id, BoxState::Running).await;
}

#[test]
fn a_deadline_goes_on_while_no_host_is_there() {
    let rig = Rig::new();
    let id = rig.life(async |host| {
        let id = made(&host, with_deadline(100)).await.id;
        looked_for(&rig, &host, &mut Watch::default(), 40).await;
        id
    });
    rig.clock.advance(70 * 1000);
    rig.life(async |host| {
        reconcile::reconcile_once(&host).await.unwrap();
        Watch::default().look(&host).await.unwrap();
        let stopped = becomes(&host, id, BoxState::Stopped).await;
        assert!(stopped.problem.unwrap().contains("1m40s"));
    });
}

#[tokio::test]
async fn an_idle_box_is_frozen_and_thawed_by_the_first_touch() {
    let rig = Rig::new();
    let host = rig.host();
    let id = made(&host, that_freezes_after(30)).await.id;
    let mut watch = Watch::default();
    looked_for(&rig, &host, &mut watch, 28).await;
    assert!(!rig.runtime.is_frozen(&id).await, "too early");
    looked_for(&rig, &host, &mut watch, 4).await;
    assert!(rig.runtime.is_frozen(&id).await && host.touches.is_frozen(&id).await);

    let running = command(&host, "sleepy").await;
    assert!(!rig.runtime.is_frozen(&id).await, "a command runs");
    looked_for(&rig, &host, &mut watch, 120).await;
    assert!(!rig.runtime.is_frozen(&id).await, "and goes on");
    drop(running);
    looked_for(&rig, &host, &mut watch, 28).await;
    assert!(!rig.runtime.is_frozen(&id).await, "not long ago");
    looked_for(&rig, &host, &mut watch, 4).await;
    assert!(rig.runtime.is_frozen(&id).await);
    let befell = [EventKind::Frozen, EventKind::Thawed, EventKind::Frozen];
    assert_eq!(kinds(&host, id).await, befell);

    // Asking for what holds already is a touch as well.
    lifecycle::start(&host, id).await.unwrap();
    assert!(!rig.runtime.is_frozen(&id).await);
    looked_for(&rig, &host, &mut watch, 40).await;
    assert!(rig.runtime.is_frozen(&id).await);
    lifecycle::stop(&host, id, lifecycle::STOP_GRACE)
        .await
        .unwrap();
    assert!(
        !host.touches.is_frozen(&id).await,
        "what is stopped is not frozen"
    );
}

#[tokio::test]
async fn a_box_that_works_by_itself_is_not_idle() {
    let rig = Rig::new();
    let host = rig.host();
    let id = made(&host, that_freezes_after(10)).await.id;
    let mut watch = Watch::default();
    let mut usage = Usage::default();
    for _ in 0..30 {
        // A tenth of a CPU.
        usage.cpu_us += 200_000;
        rig.runtime.uses(&id, usage).await;
        looked_for(&rig, &host, &mut watch, 2).await;
        assert!(!rig.runtime.is_frozen(&id).await);
    }
    looked_for(&rig, &host, &mut watch, 14).await;
    assert!(
        rig.runtime.is_frozen(&id).await,
        "it has nothing to do any more"
    );
}

#[tokio::test]
async fn a_frozen_box_does_not_come_nearer_its_deadline() {
    let rig = Rig::new();
    let host = rig.host();
    let id = made(&host, with_deadline(20)).await.id;
    let mut watch = Watch::default();
    looked_for(&rig, &host, &mut watch, 10).await;
    let record = boxes::get(&host, id).await.unwrap().unwrap();
    watch::freeze(&host, &record).await.unwrap();
    looked_for(&rig, &host, &mut watch, 600).await;
    becomes(&host, id, BoxState::Running).await;
    watch::thaw(&host, &record).await.unwrap();
    looked_for(&rig, &host, &mut watch, 12).await;
    becomes(&host, id, BoxState::Stopped).await;
}

#[test]
fn a_freeze_outlives_the_host_and_a_copy_that_was_cut_short_does_not() {
    let rig = Rig::new();
    let (frozen, copied) = rig.life(async |host| {
        let frozen = made(&host, new_box("frozen")).await;
        let copied = made(&host, new_box("copied")).await;
        watch::freeze(&host, &frozen).await.unwrap();
        // The host dies while it copies this one.
        let runtime = host.runtime_of(&copied).unwrap();
        runtime.freezer().unwrap().freeze(&copied.id).await.unwrap();
        (frozen.id, copied.id)
    });
    rig.life(async |host| {
        reconcile::reconcile_once(&host).await.unwrap();
        assert!(rig.runtime.is_frozen(&frozen).await && host.touches.is_frozen(&frozen).await);
        assert!(!rig.runtime.is_frozen(&copied).await);
        drop(command(&host, "frozen").await);
        assert!(!rig.runtime.is_frozen(&frozen).await);
    });
    rig.life(async |host| {
        reconcile::reconcile_once(&host).await.unwrap();
        assert!(!host.touches.is_frozen(&frozen).await, "it was thawed");
    });
}

#[tokio::test]
async fn a_box_that_another_has_thawed_is_not_taken_for_frozen() {
    let rig = Rig::new();
    let host = rig.host();
    let record = made(&host, new_box("demo")).await;
    watch::freeze(&host, &record).await.unwrap();
    let runtime = host.runtime_of(&record).unwrap();
    runtime.freezer().unwrap().thaw(&record.id).await.unwrap();
    Watch::default().look(&host).await.unwrap();
    assert!(!host.touches.is_frozen(&record.id).await);
}

#[tokio::test]
async fn want_of_memory_and_processes_is_told_in_words() {
    let rig = Rig::new();
    let host = rig.host();
    let id = made(&host, new_box("demo")).await.id;
    let mut watch = Watch::default();
    watch.look(&host).await.unwrap();
    let usage = Usage {
        out_of_memory: 2,
        out_of_processes: 9,
        ..Usage::default()
    };
    rig.runtime.uses(&id, usage).await;
    looked_for(&rig, &host, &mut watch, 2).await;
    let texts: Vec<String> = events_of(&host, id)
        .await
        .into_iter()
        .map(|event| event.text)
        .collect();
    let expected = [
        "2 processes were killed: all of its 4 GiB of memory was in use",
        "a process could not be started, many times: it has 512 already",
    ];
    assert_eq!(texts, expected);
}

#[tokio::test]
async fn a_box_whose_first_process_was_killed_for_want_of_memory_says_so() {
    let rig = Rig::new();
    let host = rig.host();
    let ended = Ended {
        out_of_memory: 1,
        killed: true,
        ..Ended::default()
    };
    let id = made(&host, new_box("hungry")).await.id;
    rig.runtime.die_of(&id, ended).await;
    reconcile::box_ended(&host, id).await.unwrap();
    let stopped = becomes(&host, id, BoxState::Stopped).await;
    let why = "it ended: all of its 4 GiB of memory was in use, and its first process was killed";
    assert_eq!(stopped.problem.as_deref(), Some(why));
    assert_eq!(kinds(&host, id).await, [EventKind::OutOfMemory]);

    // The control: one that ended for a reason of its own.
    let id = made(&host, new_box("tired")).await.id;
    rig.runtime.die_of(&id, Ended::default()).await;
    reconcile::box_ended(&host, id).await.unwrap();
    assert_eq!(becomes(&host, id, BoxState::Stopped).await.problem, None);
    assert_eq!(kinds(&host, id).await, [EventKind::Ended]);
}

#[tokio::test]
async fn a_box_keeps_its_newest_events_and_takes_them_with_it() {
    let rig = Rig::new();
    let host = rig.host();
    let id = made(&host, new_box("demo")).await.id;
    for number in 0..EVENTS_PER_BOX_MAX + 20 {
        let text = format!("event {number}");
        events::note(&host, id, EventKind::Ended, text)
            .await
            .unwrap();
    }
    let kept = events::newest(&host, id, usize::MAX >> 1).await.unwrap();
    assert_eq!(kept.len(), EVENTS_PER_BOX_MAX);
    assert_eq!(
        (kept[0].text.as_str(), kept[99].text.as_str()),
        ("event 20", "event 119")
    );
    let newest = events::newest(&host, id, 2).await.unwrap();
    assert_eq!(newest, kept[98..]);
    lifecycle::remove(&host, id).await.unwrap();
    assert_eq!(events_of(&host, id).await, []);
    events::note(&host, id, EventKind::Ended, "too late")
        .await
        .unwrap();
    assert_eq!(events_of(&host, id).await, []);
}

#[tokio::test]
async fn a_running_box_is_changed_at_once_and_what_is_not_is_named() {
    let rig = Rig::new();
    let host = rig.host();
    let of_root = NewBox {
        profile: Profile::Root,
        ..new_box("demo")
    };
    let id = made(&host, of_root).await.id;
    let changes = vec![
        Change::MemoryBytes(1 << 30),
        Change::CpuMilli(500),
        Change::Nested(true),
        Change::DeadlineMs(Some(60_000)),
    ];
    let set = lifecycle::set(&host, id, changes).await.unwrap();
    assert_eq!(set.later, ["cpu", "nested"]);
    assert_eq!(rig.runtime.limits(&id).await.memory_bytes, 1 << 30);
    let record = boxes::get(&host, id).await.unwrap().unwrap();
    assert_eq!(record, set.record);
    assert_eq!(
        (record.limits.cpu_milli, record.settings.deadline_ms),
        (500, Some(60_000))
    );

    lifecycle::stop(&host, id, lifecycle::STOP_GRACE)
        .await
        .unwrap();
    let set = lifecycle::set(&host, id, vec![Change::Pids(99)])
        .await
        .unwrap();
    assert_eq!(
        set.later, [""; 0],
        "a stopped box has all of it at its next start"
    );
    lifecycle::start(&host, id).await.unwrap();
    assert_eq!(rig.runtime.limits(&id).await.pids, 99);
    assert_eq!(rig.runtime.limits(&id).await.cpu_milli, 500);
}

#[tokio::test]
async fn a_change_that_is_refused_changes_nothing() {
    let rig = Rig::new();
    let host = rig.host();
    let id = made(&host, new_box("demo")).await.id;
    let usage = Usage {
        memory_bytes: 2 << 30,
        ..Usage::default()
    };
    rig.runtime.uses(&id, usage).await;
    let before = boxes::get(&host, id).await.unwrap().unwrap();
    let title = || Change::Title(Some(box_api::BoxTitle::parse("new").unwrap()));
    let refused = async |changes: Vec<Change>| {
        let error = lifecycle::set(&host, id, changes).await.unwrap_err();
        assert_eq!(boxes::get(&host, id).await.unwrap().unwrap(), before);
        assert_eq!(rig.runtime.limits(&id).await, before.limits);
        error
    };
    let error = refused(vec![title(), Change::MemoryBytes(1 << 30)]).await;
    assert!(matches!(error, SetError::Engine { .. }), "{error:?}");
    let error = refused(vec![title(), Change::Pids(1)]).await;
    assert!(
        matches!(error, SetError::TooSmall("8 processes")),
        "{error:?}"
    );
    let error = refused(vec![title(), title()]).await;
    assert!(matches!(error, SetError::Twice("title")), "{error:?}");
    let error = refused(Vec::new()).await;
    assert!(matches!(error, SetError::Nothing), "{error:?}");
    let error = refused(vec![title(), Change::DeadlineMs(Some(999))]).await;
    let time = SetError::Setting(SettingError::Time {
        setting: "deadline",
    });
    assert_eq!(error.to_string(), time.to_string());
}

const MINUTE_MS: i64 = 60 * 1000;

#[tokio::test]
async fn idle_boxes_are_frozen_after_half_an_hour_unless_they_are_not_to_be() {
    let rig = Rig::new();
    let host = rig.host();
    let id = made(&host, new_box("idle")).await.id;
    let mut asked = new_box("never");
    asked.settings.freeze_after_ms = Some(0);
    let never = made(&host, asked).await.id;
    let mut watch = Watch::default();
    rig.clock.advance(29 * MINUTE_MS);
    watch.look(&host).await.unwrap();
    assert_eq!(kinds(&host, id).await, []);
    rig.clock.advance(2 * MINUTE_MS);
    watch.look(&host).await.unwrap();
    assert_eq!(kinds(&host, id).await, [EventKind::Frozen]);
    assert!(host.touches.is_frozen(&id).await);
    assert_eq!(kinds(&host, never).await, []);
    let record = boxes::get(&host, id).await.unwrap().unwrap();
    let shown = boxes::info(&host, &record, None, Vec::new());
    assert_eq!(shown.settings.freeze_after_ms, Some(1_800_000));
    // `off` and back again.
    let set = |ms| lifecycle::set(&host, never, vec![Change::FreezeAfterMs(ms)]);
    assert_eq!(
        set(Some(5000))
            .await
            .unwrap()
            .record
            .settings
            .freeze_after_ms,
        Some(5000)
    );
    assert_eq!(
        set(Some(0)).await.unwrap().record.settings.freeze_after_ms,
        Some(0)
    );
}

#[tokio::test]
async fn what_was_started_to_outlive_its_caller_keeps_its_box_awake() {
    let rig = Rig::new();
    let host = rig.host();
    let id = made(&host, new_box("busy")).await.id;
    let started = |ended: Option<i64>| {
        host.store.write(Durability::Prompt, move |tables| {
            tables.execute(
                "INSERT OR REPLACE INTO detached (box_id, name, command, started_at_ms, ended_at_ms) \
                 VALUES (?1, 'server', '[\"server\"]', 1, ?2)",
                (id.as_str(), ended),
            )
        })
    };
    started(None).await.unwrap();
    let mut watch = Watch::default();
    rig.clock.advance(31 * MINUTE_MS);
    watch.look(&host).await.unwrap();
    assert_eq!(kinds(&host, id).await, [], "it sleeps, and counts");
    started(Some(2)).await.unwrap();
    rig.clock.advance(31 * MINUTE_MS);
    watch.look(&host).await.unwrap();
    assert_eq!(kinds(&host, id).await, [EventKind::Frozen]);
}
