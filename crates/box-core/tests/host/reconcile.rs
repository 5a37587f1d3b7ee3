//! The host dies at every step of a recipe; the next one makes rows and engine agree.

use crate::fake_runtime::{Hold, Step};
use crate::rig::{Rig, new_box, owner, quiet};
use box_api::BoxId;
use box_api::control::{BoxState, NewBox};
use box_core::reconcile::{Report, reconcile_once};
use box_core::{Host, boxes, lifecycle};
use box_runtime::{BoxSpec, Runtime as _};
use std::sync::Arc;
use std::time::Duration;

/// What the host was doing when it died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    New,
    Starting,
    Stopping,
    Removing,
}

/// What is there afterwards.
#[derive(Debug, PartialEq, Eq)]
enum Left {
    Nothing,
    Stopped,
    Running,
}

const TABLE: &[(Doing, Step, Hold, Left)] = &[
    (Doing::New, Step::Create, Hold::Before, Left::Nothing),
    (Doing::New, Step::Create, Hold::After, Left::Nothing),
    (Doing::New, Step::Start, Hold::Before, Left::Stopped),
    (Doing::New, Step::Start, Hold::After, Left::Running),
    (Doing::Starting, Step::Start, Hold::Before, Left::Stopped),
    (Doing::Starting, Step::Start, Hold::After, Left::Running),
    (Doing::Stopping, Step::Stop, Hold::Before, Left::Stopped),
    (Doing::Stopping, Step::Stop, Hold::After, Left::Stopped),
    (Doing::Removing, Step::Stop, Hold::Before, Left::Nothing),
    (Doing::Removing, Step::Stop, Hold::After, Left::Nothing),
    (Doing::Removing, Step::Remove, Hold::Before, Left::Nothing),
    (Doing::Removing, Step::Remove, Hold::After, Left::Nothing),
];

#[test]
fn a_host_that_dies_at_any_step_leaves_nothing_undecided() {
    for (doing, step, hold, left) in TABLE {
        let rig = Rig::new();
        rig.life(async |host| die(&rig, host, *doing, (*step, *hold)).await);
        rig.life(async |host| {
            rig.runtime.let_go().await;
            reconcile_once(&host).await.unwrap();
            assert_eq!(
                state(&rig, &host).await,
                *left,
                "{doing:?} {step:?} {hold:?}"
            );
            // The pass is over: another finds nothing to do but to adopt.
            let again = reconcile_once(&host).await.unwrap();
            let adopted = again.adopted.clone();
            assert_eq!(
                again,
                Report {
                    adopted,
                    ..Report::default()
                },
                "{doing:?} {step:?}"
            );
            let id = lifecycle::create(&host, &owner(), new_box("demo"), quiet()).await;
            assert_eq!(
                id.is_ok(),
                *left == Left::Nothing,
                "the name is free when it should be"
            );
        });
    }
}

/// Does something and dies where it is held.
async fn die(rig: &Rig, host: Arc<Host>, doing: Doing, (step, hold): (Step, Hold)) {
    if doing == Doing::New {
        rig.runtime.hold(step, hold).await;
        tokio::spawn(async move {
            drop(lifecycle::create(&host, &owner(), new_box("demo"), quiet()).await);
        });
        return rig.runtime.held().await;
    }
    let asked = NewBox {
        start: doing != Doing::Starting,
        ..new_box("demo")
    };
    let made = lifecycle::create(&host, &owner(), asked, quiet())
        .await
        .unwrap();
    rig.runtime.hold(step, hold).await;
    tokio::spawn(async move {
        match doing {
            Doing::Starting => drop(lifecycle::start(&host, made.id).await),
            Doing::Stopping => drop(lifecycle::stop(&host, made.id, Duration::ZERO).await),
            Doing::New | Doing::Removing => drop(lifecycle::remove(&host, made.id).await),
        }
    });
    rig.runtime.held().await;
}

async fn state(rig: &Rig, host: &Host) -> Left {
    let rows = boxes::list(host, &owner()).await.unwrap();
    let seen = rig.runtime.list().await.unwrap();
    assert_eq!(
        rows.len(),
        seen.len(),
        "no box without a row, no row without a box"
    );
    match rows.first().map(|record| record.state) {
        None => Left::Nothing,
        Some(BoxState::Stopped) => {
            assert!(!seen[0].running);
            Left::Stopped
        }
        Some(BoxState::Running) => {
            assert!(seen[0].running);
            Left::Running
        }
        Some(other) => panic!("{other:?}"),
    }
}

#[test]
fn boxes_go_on_without_the_host_and_are_found_again() {
    let rig = Rig::new();
    let id = rig.life(async |host| {
        lifecycle::create(&host, &owner(), new_box("demo"), quiet())
            .await
            .unwrap()
            .id
    });
    rig.life(async |host| {
        let report = reconcile_once(&host).await.unwrap();
        assert_eq!(
            report,
            Report {
                adopted: vec![id],
                ..Report::default()
            }
        );
    });
}

#[test]
fn a_box_that_ended_while_nobody_looked_is_stopped() {
    let rig = Rig::new();
    let id = rig.life(async |host| {
        lifecycle::create(&host, &owner(), new_box("demo"), quiet())
            .await
            .unwrap()
            .id
    });
    rig.life(async |host| {
        rig.runtime.die(&id).await;
        let report = reconcile_once(&host).await.unwrap();
        assert_eq!(
            report,
            Report {
                stopped: vec![id],
                ..Report::default()
            }
        );
        assert!(lifecycle::start(&host, id).await.is_ok());
    });
}

#[test]
fn a_box_whose_files_are_lost_says_so() {
    let rig = Rig::new();
    let id = rig.life(async |host| {
        lifecycle::create(&host, &owner(), new_box("demo"), quiet())
            .await
            .unwrap()
            .id
    });
    rig.life(async |host| {
        rig.runtime.lose(&id).await;
        let report = reconcile_once(&host).await.unwrap();
        assert_eq!(
            report,
            Report {
                failed: vec![id],
                ..Report::default()
            }
        );
        let record = boxes::get(&host, id).await.unwrap().unwrap();
        assert_eq!(record.problem.as_deref(), Some("its files are gone"));
        lifecycle::remove(&host, id).await.unwrap();
    });
}

#[test]
fn a_box_nobody_owns_is_stopped_and_its_files_are_kept() {
    let rig = Rig::new();
    let id = BoxId::from_random([9; 10]);
    rig.life(async |host| {
        let made = lifecycle::create(&host, &owner(), new_box("demo"), quiet())
            .await
            .unwrap();
        let spec = rig.runtime.spec(&made.id).await.unwrap();
        rig.runtime
            .plant(BoxSpec {
                id,
                id_offset: spec.id_offset + 65_536,
                ..spec
            })
            .await;
        let report = reconcile_once(&host).await.unwrap();
        assert_eq!(report.strangers, [id]);
        let seen = rig.runtime.list().await.unwrap();
        assert!(seen.iter().any(|seen| seen.id == id && !seen.running));
    });
}

#[test]
fn a_removal_that_fails_is_tried_again() {
    let rig = Rig::new();
    let id = rig.life(async |host| {
        let made = lifecycle::create(&host, &owner(), new_box("demo"), quiet())
            .await
            .unwrap();
        rig.runtime.fail(Step::Remove).await;
        assert!(lifecycle::remove(&host, made.id).await.is_err());
        assert!(
            boxes::list(&host, &owner()).await.unwrap().is_empty(),
            "its name is given back"
        );
        made.id
    });
    rig.life(async |host| {
        let report = reconcile_once(&host).await.unwrap();
        assert_eq!(
            report,
            Report {
                failed: vec![id],
                ..Report::default()
            }
        );
        rig.runtime.mend().await;
        let report = reconcile_once(&host).await.unwrap();
        assert_eq!(
            report,
            Report {
                removed: vec![id],
                ..Report::default()
            }
        );
    });
}
