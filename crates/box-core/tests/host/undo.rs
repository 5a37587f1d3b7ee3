//! Snapshots, clones, names and the trash.

use crate::fake_runtime::{Hold, Step};
use crate::rig::{Rig, name, new_box, owner, quiet};
use box_api::control::ThreadOpen;
use box_api::control::{
    Awaited, BoxState, CloneBox, KeepWorkspace, Marks, NewBox, Origin, PruneDepth, Sizes,
};
use box_api::snapshot::{Label, SnapshotKind};
use box_api::thread::Item;
use box_api::{BoxId, BoxName};
use box_core::boxes::{self, BoxRecord};
use box_core::lifecycle::{
    self, BEFORE_RESTORE_MAX, CloneError, CreateError, RestoreError, Room, SnapshotError,
    UndeleteError,
};
use box_core::reconcile::reconcile_once;
use box_core::{Host, store::Durability, thread};
use std::sync::Arc;
use std::time::Duration;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

fn label(text: &str) -> Label {
    Label::parse(text).unwrap()
}

async fn make(host: &Arc<Host>, asked: NewBox) -> BoxRecord {
    lifecycle::create(host, &owner(), asked, quiet())
        .await
        .unwrap()
}

async fn labels(host: &Host, record: &BoxRecord) -> Vec<String> {
    let all = lifecycle::snapshots(host, record).await.unwrap();
    all.into_iter().map(|one| one.label.to_string()).collect()
}

pub(crate) fn copy_of(source: &str, of: Option<&str>, name_of_it: &str) -> CloneBox {
    CloneBox {
        name: name(name_of_it),
        title: None,
        source: name(source),
        label: of.map(label),
        sizes: Sizes::default(),
        start: true,
    }
}

async fn state_of(host: &Host, id: BoxId) -> Option<BoxState> {
    let record = boxes::get(host, id).await.unwrap();
    record.map(|record| record.state)
}

#[tokio::test]
async fn a_fresh_box_is_marked_before_anything_runs_unless_told_not_to() {
    let rig = Rig::new();
    let host = rig.host();
    let made = make(&host, new_box("demo")).await;
    let all = lifecycle::snapshots(&host, &made).await.unwrap();
    assert_eq!(all.len(), 1);
    assert_eq!(
        (all[0].label.as_str(), all[0].kind),
        ("pristine", SnapshotKind::Pristine)
    );
    let asked = NewBox {
        marks: Marks {
            pristine: false,
            bootstrapped: true,
        },
        ..new_box("other")
    };
    let other = make(&host, asked).await;
    assert!(labels(&host, &other).await.is_empty());

    rig.runtime.fail(Step::Take).await;
    let third = make(&host, new_box("third")).await;
    assert_eq!(third.state, BoxState::Running, "never fatal");
    assert!(labels(&host, &third).await.is_empty());
}

#[tokio::test]
async fn a_running_box_stands_still_for_its_snapshot_and_goes_on_even_if_it_fails() {
    let rig = Rig::new();
    let host = rig.host();
    let made = make(&host, new_box("demo")).await;
    rig.runtime.write(&made.id, "one").await;
    let taken = lifecycle::snapshot(&host, made.id, Some(label("one")), quiet())
        .await
        .unwrap();
    assert_eq!((taken.bytes, taken.kind), (3, SnapshotKind::Manual));
    assert!(!rig.runtime.is_frozen(&made.id).await);

    let again = lifecycle::snapshot(&host, made.id, Some(label("one")), quiet()).await;
    assert!(
        matches!(again, Err(SnapshotError::Taken { .. })),
        "{again:?}"
    );
    rig.runtime.fail(Step::Take).await;
    let failed = lifecycle::snapshot(&host, made.id, None, quiet()).await;
    assert!(matches!(failed, Err(SnapshotError::Engine { .. })));
    assert!(
        !rig.runtime.is_frozen(&made.id).await,
        "thawed all the same"
    );
    rig.runtime.mend().await;
    // Two in one second have two names.
    let mut names = Vec::new();
    for _ in 0..2 {
        let taken = lifecycle::snapshot(&host, made.id, None, quiet()).await;
        names.push(taken.unwrap().label.to_string());
    }
    assert_eq!(names, ["manual-1790000000", "manual-1790000001"]);
    lifecycle::discard(&host, made.id, label("one"))
        .await
        .unwrap();
    assert_eq!(
        labels(&host, &made).await,
        ["pristine", "manual-1790000000", "manual-1790000001"]
    );
    let gone = lifecycle::discard(&host, made.id, label("one")).await;
    assert!(matches!(gone, Err(SnapshotError::Unknown { known, .. }) if known.len() == 3));
}

#[tokio::test]
async fn nobody_stops_or_removes_a_box_in_the_middle_of_its_snapshot() {
    let rig = Rig::new();
    let host = rig.host();
    let made = make(&host, new_box("demo")).await;
    rig.runtime.hold(Step::Take, Hold::Before).await;
    let (host_of_snapshot, id) = (Arc::clone(&host), made.id);
    tokio::spawn(async move {
        drop(lifecycle::snapshot(&host_of_snapshot, id, None, quiet()).await);
    });
    rig.runtime.held().await;
    let host_of_stop = Arc::clone(&host);
    let stop = tokio::spawn(async move {
        let stopped = lifecycle::stop(&host_of_stop, id, Duration::ZERO).await;
        stopped.is_ok()
    });
    // Each look takes as long as each of its own.
    for _ in 0..100 {
        assert_eq!(state_of(&host, made.id).await, Some(BoxState::Running));
    }
    assert!(!stop.is_finished());
    assert!(rig.runtime.is_frozen(&made.id).await);
}

#[tokio::test]
async fn a_restore_brings_the_files_back_and_can_be_undone() {
    let rig = Rig::new();
    let host = rig.host();
    let made = make(&host, new_box("demo")).await;
    rig.runtime.write(&made.id, "good").await;
    lifecycle::snapshot(&host, made.id, Some(label("good")), quiet())
        .await
        .unwrap();
    rig.runtime.write(&made.id, "ruined").await;
    let (back, undo) = lifecycle::restore(&host, made.id, label("good"), quiet())
        .await
        .unwrap();
    assert_eq!(back.state, BoxState::Running, "it ran and runs again");
    assert_eq!(rig.runtime.files(&made.id).await.as_deref(), Some("good"));
    assert_eq!(undo.as_str(), "before-restore-1790000000");
    lifecycle::restore(&host, made.id, undo, quiet())
        .await
        .unwrap();
    assert_eq!(rig.runtime.files(&made.id).await.as_deref(), Some("ruined"));

    lifecycle::stop(&host, made.id, Duration::ZERO)
        .await
        .unwrap();
    let (back, _) = lifecycle::restore(&host, made.id, label("pristine"), quiet())
        .await
        .unwrap();
    assert_eq!(back.state, BoxState::Stopped, "it did not run");
    assert_eq!(rig.runtime.files(&made.id).await.as_deref(), Some(""));
    for _ in 0..4 {
        lifecycle::restore(&host, made.id, label("good"), quiet())
            .await
            .unwrap();
    }
    let before = labels(&host, &made).await;
    let before = before.iter().filter(|one| one.starts_with("before-"));
    assert_eq!(before.count(), BEFORE_RESTORE_MAX);
}

#[tokio::test]
async fn a_restore_that_fails_leaves_the_box_as_it_was() {
    let rig = Rig::new();
    let host = rig.host();
    let made = make(&host, new_box("demo")).await;
    rig.runtime.write(&made.id, "mine").await;
    let unknown = lifecycle::restore(&host, made.id, label("never"), quiet()).await;
    assert!(matches!(
        unknown,
        Err(RestoreError::Snapshot(SnapshotError::Unknown { .. }))
    ));
    for step in [Step::Take, Step::Restore] {
        rig.runtime.fail(step).await;
        let failed = lifecycle::restore(&host, made.id, label("pristine"), quiet()).await;
        assert!(failed.is_err(), "{step:?}");
        rig.runtime.mend().await;
        assert_eq!(state_of(&host, made.id).await, Some(BoxState::Running));
        assert_eq!(rig.runtime.files(&made.id).await.as_deref(), Some("mine"));
    }
}

#[tokio::test]
async fn a_clone_has_all_but_the_identity() {
    let rig = Rig::new();
    let host = rig.host();
    let asked = NewBox {
        allow: vec!["api.example.com".to_owned()],
        ..new_box("demo")
    };
    let made = make(&host, asked).await;
    let id = made.id;
    let learned = host.store.write(Durability::Full, move |tables| {
        tables.execute(
            "INSERT INTO egress_names (box_id, name, address) VALUES (?1, 'a.example', 42)",
            [id.as_str()],
        )
    });
    learned.await.unwrap();
    rig.runtime.write(&made.id, "work").await;
    let copy = lifecycle::clone(&host, &owner(), copy_of("demo", None, "copy"), quiet())
        .await
        .unwrap();
    assert_eq!(copy.state, BoxState::Running);
    assert_ne!((copy.id, copy.id_offset), (made.id, made.id_offset));
    assert_eq!(rig.runtime.files(&copy.id).await.as_deref(), Some("work"));
    assert!(!rig.runtime.is_frozen(&made.id).await);
    assert_eq!(
        (
            &copy.allow,
            copy.profile,
            copy.net,
            copy.limits,
            &copy.image_digest
        ),
        (
            &made.allow,
            made.profile,
            made.net,
            made.limits,
            &made.image_digest
        )
    );
    assert_eq!(
        labels(&host, &copy).await,
        ["pristine"],
        "those of the source"
    );
    let origin = Origin::Clone {
        id: made.id,
        name: made.name.clone(),
        label: None,
    };
    assert_eq!(copy.origin, Some(origin));
    let copied = copy.id;
    let address: u32 = host
        .store
        .read(move |tables| {
            tables.query_row(
                "SELECT address FROM egress_names WHERE box_id = ?1 AND name = 'a.example'",
                [copied.as_str()],
                |row| row.get(0),
            )
        })
        .await
        .unwrap();
    assert_eq!(address, 42);
}

#[tokio::test]
async fn a_clone_of_a_snapshot_has_none_of_its_own_and_the_sizes_it_was_given() {
    let rig = Rig::new();
    let host = rig.host();
    let made = make(&host, new_box("demo")).await;
    let mut of_snapshot = copy_of("demo", Some("pristine"), "fresh");
    of_snapshot.sizes.pids = Some(64);
    let fresh = lifecycle::clone(&host, &owner(), of_snapshot, quiet())
        .await
        .unwrap();
    assert_eq!(rig.runtime.files(&fresh.id).await.as_deref(), Some(""));
    assert!(
        labels(&host, &fresh).await.is_empty(),
        "a snapshot copy has none"
    );
    assert_eq!(fresh.limits.pids, 64);
    assert_eq!(fresh.limits.memory_bytes, made.limits.memory_bytes);
}

#[tokio::test]
async fn a_clone_that_cannot_be_made_leaves_nothing() {
    let rig = Rig::new();
    let host = rig.host();
    make(&host, new_box("demo")).await;
    let clone = |asked: CloneBox| {
        let host = Arc::clone(&host);
        async move { lifecycle::clone(&host, &owner(), asked, quiet()).await }
    };
    let taken = clone(copy_of("demo", None, "demo")).await;
    assert!(matches!(
        taken,
        Err(CloneError::Create(CreateError::NameTaken(_)))
    ));
    let unknown = clone(copy_of("demo", Some("never"), "copy")).await;
    assert!(matches!(
        unknown,
        Err(CloneError::Source(SnapshotError::Unknown { .. }))
    ));
    let nobody = clone(copy_of("nobody", None, "copy")).await;
    assert!(matches!(nobody, Err(CloneError::Find(_))));
    rig.runtime.fail(Step::Clone).await;
    assert!(clone(copy_of("demo", None, "copy")).await.is_err());
    rig.runtime.mend().await;
    let left = boxes::list(&host, &owner()).await.unwrap();
    assert_eq!(left.len(), 1);
    assert!(clone(copy_of("demo", None, "copy")).await.is_ok());
}

#[tokio::test]
async fn a_name_changes_while_the_box_runs_and_only_to_a_free_one() {
    let rig = Rig::new();
    let host = rig.host();
    let made = make(&host, new_box("demo")).await;
    make(&host, new_box("other")).await;
    let taken = lifecycle::rename(&host, made.id, name("other")).await;
    assert!(matches!(taken, Err(lifecycle::RenameError::NameTaken(_))));
    let renamed = lifecycle::rename(&host, made.id, name("shop"))
        .await
        .unwrap();
    assert_eq!((renamed.id, renamed.state), (made.id, BoxState::Running));
    assert!(boxes::find(&host, &owner(), &name("demo")).await.is_err());
    assert_eq!(labels(&host, &renamed).await, ["pristine"]);
    lifecycle::restart(&host, made.id, Duration::ZERO)
        .await
        .unwrap();
    let spec = rig.runtime.spec(&made.id).await.unwrap();
    assert_eq!(spec.host_name, "shop", "inside with the next start");
}

async fn in_trash(host: &Host) -> Vec<BoxName> {
    let all = boxes::trash(host, &owner()).await.unwrap();
    all.into_iter().map(|record| record.name).collect()
}

#[tokio::test]
async fn a_removed_box_is_stopped_nameless_and_comes_back_whole() {
    let rig = Rig::new();
    let host = rig.host();
    let made = make(&host, new_box("demo")).await;
    rig.runtime.write(&made.id, "work").await;
    lifecycle::trash(&host, made.id, KeepWorkspace::No)
        .await
        .unwrap();
    assert!(boxes::find(&host, &owner(), &name("demo")).await.is_err());
    assert_eq!(in_trash(&host).await, [name("demo")]);
    let again = make(&host, new_box("demo")).await;
    assert_ne!(again.id, made.id, "the name is free");

    let trashed = boxes::get(&host, made.id).await.unwrap().unwrap();
    let taken = lifecycle::undelete(&host, &trashed, None).await;
    assert!(matches!(taken, Err(UndeleteError::NameTaken(_))));
    let back = lifecycle::undelete(&host, &trashed, Some(name("old")))
        .await
        .unwrap();
    assert_eq!((back.id, back.state), (made.id, BoxState::Stopped));
    assert_eq!(rig.runtime.files(&made.id).await.as_deref(), Some("work"));
    assert_eq!(labels(&host, &back).await, ["pristine"]);
    assert!(in_trash(&host).await.is_empty());
    let twice = lifecycle::undelete(&host, &trashed, Some(name("third"))).await;
    assert!(matches!(twice, Err(UndeleteError::Unknown(_))));
    lifecycle::start(&host, made.id).await.unwrap();
}

#[tokio::test]
async fn the_trash_is_emptied_by_time_and_when_the_disk_is_short_the_oldest_first() {
    let rig = Rig::new();
    let host = rig.host();
    let room = || Room::Enough;
    for each in ["one", "two", "kept"] {
        let made = make(&host, new_box(each)).await;
        let keep = if each == "kept" {
            KeepWorkspace::Yes
        } else {
            KeepWorkspace::No
        };
        lifecycle::trash(&host, made.id, keep).await.unwrap();
        rig.clock.advance(DAY_MS);
    }
    // One has been there for 3 days, two for 2.
    rig.clock.advance(4 * DAY_MS - 1);
    assert!(
        lifecycle::expire(&host, room)
            .await
            .unwrap()
            .removed
            .is_empty()
    );
    rig.clock.advance(1);
    let gone = lifecycle::expire(&host, room).await.unwrap();
    assert_eq!(gone.removed, [name("one")]);
    assert_eq!(in_trash(&host).await, [name("kept"), name("two")]);
    let last = make(&host, new_box("last")).await;
    lifecycle::trash(&host, last.id, KeepWorkspace::No)
        .await
        .unwrap();
    // Short until one box has gone.
    let asked = std::sync::atomic::AtomicU32::new(0);
    let short = || match asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
        0 => Room::Short,
        _ => Room::Enough,
    };
    let gone = lifecycle::expire(&host, short).await.unwrap();
    assert_eq!(gone.removed, [name("two")]);
    let pruned = lifecycle::prune(&host, &owner(), PruneDepth::Expired)
        .await
        .unwrap();
    assert!(pruned.trash.is_empty());
    let pruned = lifecycle::prune(&host, &owner(), PruneDepth::All)
        .await
        .unwrap();
    assert_eq!(pruned.trash, [name("kept"), name("last")]);
    assert!(in_trash(&host).await.is_empty());
    assert!(boxes::list(&host, &owner()).await.unwrap().is_empty());
}

#[test]
fn a_host_that_dies_in_the_middle_of_undoing_leaves_nothing_undecided() {
    use box_runtime::Runtime as _;
    /// What is done when the host dies, where, and whether the box is live afterwards.
    type Row = (&'static str, Step, Hold, bool);
    const TABLE: &[Row] = &[
        ("snapshot", Step::Take, Hold::Before, true),
        ("snapshot", Step::Take, Hold::After, true),
        ("restore", Step::Stop, Hold::Before, true),
        ("restore", Step::Take, Hold::After, true),
        ("restore", Step::Restore, Hold::Before, true),
        ("restore", Step::Restore, Hold::After, true),
        ("clone", Step::Clone, Hold::Before, true),
        ("clone", Step::Clone, Hold::After, true),
        ("trash", Step::Stop, Hold::Before, false),
        ("trash", Step::Stop, Hold::After, false),
    ];
    for (doing, step, hold, live) in TABLE {
        let rig = Rig::new();
        let id = rig.life(async |host| {
            let made = make(&host, new_box("demo")).await;
            rig.runtime.write(&made.id, "work").await;
            rig.runtime.hold(*step, *hold).await;
            let (doing, id) = (*doing, made.id);
            tokio::spawn(async move { undertake(&host, id, doing).await });
            rig.runtime.held().await;
            made.id
        });
        rig.life(async |host| {
            rig.runtime.let_go().await;
            reconcile_once(&host).await.unwrap();
            let what = format!("{doing} {step:?} {hold:?}");
            assert!(!rig.runtime.is_frozen(&id).await, "{what}");
            let rows = boxes::list(&host, &owner()).await.unwrap();
            assert_eq!(rows.len(), usize::from(*live), "{what}");
            let seen = rig.runtime.list().await.unwrap();
            assert_eq!(seen.len(), 1, "{what}: its files are there, and no others");
            let state = state_of(&host, id).await;
            let running = seen[0].running;
            match state {
                Some(BoxState::Running) => assert!(running, "{what}"),
                Some(BoxState::Stopped | BoxState::Trashed) => assert!(!running, "{what}"),
                other => panic!("{what}: {other:?}"),
            }
            assert_eq!(state == Some(BoxState::Trashed), !live, "{what}");
            if *doing != "restore" {
                let files = rig.runtime.files(&id).await;
                assert_eq!(files.as_deref(), Some("work"), "{what}");
            }
        });
    }
}

#[tokio::test]
async fn a_wait_ends_when_the_box_is_what_was_waited_for() {
    let rig = Rig::new();
    let host = rig.host();
    let made = make(&host, new_box("demo")).await;
    let at_once = Duration::ZERO;
    let wait = |until, longest| lifecycle::wait(&host, made.id, until, longest);
    assert!(wait(Awaited::Running, at_once).await.unwrap());
    assert!(wait(Awaited::Idle, at_once).await.unwrap());
    assert!(!wait(Awaited::Stopped, at_once).await.unwrap());
    let long = Duration::from_secs(30);
    let (reached, stopped) = tokio::join!(
        wait(Awaited::Stopped, long),
        lifecycle::stop(&host, made.id, at_once)
    );
    assert!(reached.unwrap() && stopped.is_ok());
    let (gone, removed) = tokio::join!(
        wait(Awaited::Running, long),
        lifecycle::trash(&host, made.id, KeepWorkspace::No)
    );
    assert!(matches!(gone, Err(lifecycle::WaitError::Gone)));
    removed.unwrap();
}

async fn undertake(host: &Arc<Host>, id: BoxId, doing: &str) {
    match doing {
        "snapshot" => drop(lifecycle::snapshot(host, id, None, quiet()).await),
        "restore" => drop(lifecycle::restore(host, id, label("pristine"), quiet()).await),
        "clone" => {
            let asked = copy_of("demo", None, "copy");
            drop(lifecycle::clone(host, &owner(), asked, quiet()).await);
        }
        _ => drop(lifecycle::trash(host, id, KeepWorkspace::No).await),
    }
}

#[tokio::test]
async fn nothing_takes_the_absence_of_a_mark_for_anything() {
    let rig = Rig::new();
    let host = rig.host();
    let made = make(&host, new_box("demo")).await;
    lifecycle::discard(&host, made.id, label("pristine"))
        .await
        .unwrap();
    rig.runtime.write(&made.id, "work").await;
    lifecycle::snapshot(&host, made.id, Some(label("one")), quiet())
        .await
        .unwrap();
    lifecycle::restart(&host, made.id, Duration::ZERO)
        .await
        .unwrap();
    lifecycle::restore(&host, made.id, label("one"), quiet())
        .await
        .unwrap();
    let copy = lifecycle::clone(&host, &owner(), copy_of("demo", None, "copy"), quiet())
        .await
        .unwrap();
    // Nobody marks it afterwards, whatever was done to it.
    for record in [&made, &copy] {
        let labels = labels(&host, record).await;
        assert!(!labels.iter().any(|one| one == "pristine"), "{labels:?}");
    }
    // And a label of that name that a person gives is one like any other.
    let taken = lifecycle::snapshot(&host, made.id, Some(label("pristine")), quiet()).await;
    assert_eq!(taken.unwrap().kind, SnapshotKind::Manual);
}

/// What a thread says, row by row.
async fn journal_of(host: &Host) -> Vec<Item> {
    let read = |tables: &rusqlite::Connection| {
        let mut statement = tables.prepare("SELECT item FROM journal ORDER BY thread, seq")?;
        let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
        rows.collect::<rusqlite::Result<Vec<_>>>()
    };
    let rows = host.store.read(read).await.unwrap();
    rows.iter()
        .map(|row| serde_json::from_str(row).unwrap())
        .collect()
}

#[test]
fn a_host_that_dies_while_a_turn_is_undone_leaves_it_wholly_undone_or_wholly_there() {
    // Where it dies, and whether files and conversation are the snapshot's afterwards.
    const TABLE: &[(Step, Hold, bool)] = &[
        (Step::Stop, Hold::Before, false),
        (Step::Take, Hold::After, false),
        (Step::Restore, Hold::Before, true),
        (Step::Restore, Hold::After, true),
    ];
    for (step, hold, undone) in TABLE {
        let what = format!("{step:?} {hold:?}");
        let rig = Rig::new();
        let id = rig.life(async |host| {
            let made = make(&host, new_box("demo")).await;
            let open = ThreadOpen {
                name: name("demo"),
                agent: "demo".to_owned(),
                allow_all: false,
            };
            let thread = thread::open(&host, &owner(), open, quiet()).await.unwrap();
            rig.runtime.write(&made.id, "before").await;
            lifecycle::snapshot(&host, made.id, Some(label("one")), quiet())
                .await
                .unwrap();
            thread.handle.prompt("change it".to_owned()).await.unwrap();
            rig.runtime.write(&made.id, "after").await;
            rig.runtime.hold(*step, *hold).await;
            let id = made.id;
            tokio::spawn(async move {
                lifecycle::restore(&host, id, label("one"), quiet())
                    .await
                    .map(drop)
            });
            rig.runtime.held().await;
            id
        });
        rig.life(async |host| {
            rig.runtime.let_go().await;
            reconcile_once(&host).await.unwrap();
            let carried = lifecycle::finish_restores(&host).await.unwrap();
            assert_eq!(carried, usize::from(*undone), "{what}");
            let files = rig.runtime.files(&id).await;
            let expected = if *undone { "before" } else { "after" };
            assert_eq!(files.as_deref(), Some(expected), "{what}");
            let rows = journal_of(&host).await;
            assert!(
                matches!(&rows[0], Item::Prompt { text, .. } if text == "change it"),
                "{rows:?}"
            );
            let back = rows
                .iter()
                .filter(|row| matches!(row, Item::WentBack { before: 1, .. }));
            assert_eq!(back.count(), usize::from(*undone), "{what}: {rows:?}");
            // Once is enough.
            assert_eq!(
                lifecycle::finish_restores(&host).await.unwrap(),
                0,
                "{what}"
            );
        });
    }
}
