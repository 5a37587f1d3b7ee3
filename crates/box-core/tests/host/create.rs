//! Making, starting, stopping and removing boxes.

use crate::fake_runtime::{Hold, Step};
use crate::rig::{PATIENCE, Rig, name, new_box, owner, quiet};
use box_api::Owner;
use box_api::control::{BoxState, Exec, NewBox, Profile};
use box_core::boxes::{self, FindError};
use box_core::caller::Caller;
use box_core::exec::{self, ExecError};
use box_core::images::{self, ImageError};
use box_core::lifecycle::{self, CreateError, StartError};
use box_core::reconcile;
use std::time::Duration;

#[tokio::test]
async fn a_box_is_made_and_runs_with_all_the_host_decides() {
    let rig = Rig::new();
    let host = rig.host();
    let made = lifecycle::create(&host, &owner(), new_box("demo"), quiet())
        .await
        .unwrap();
    assert_eq!(made.state, BoxState::Running);

    let spec = rig.runtime.spec(&made.id).await.unwrap();
    assert_eq!(spec.host_name, "demo");
    let variable = |name: &str| {
        spec.env
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    };
    assert_eq!(variable("HOME"), Some("/home/agent"));
    assert_eq!(
        variable("SSL_CERT_FILE"),
        Some("/etc/ssl/certs/ca-certificates.crt")
    );
    assert_eq!(variable("https_proxy"), Some("http://127.0.0.1:3128"));
    let file = |target: &str| {
        let file = spec
            .files
            .iter()
            .find(|file| file.target == target)
            .unwrap();
        std::fs::read_to_string(&file.source).unwrap()
    };
    assert_eq!(file("/etc/resolv.conf"), "nameserver 198.18.0.1\n");
    assert_eq!(file("/etc/hostname"), "demo\n");
    assert!(file("/etc/hosts").contains("127.0.0.1 localhost demo"));
    assert!(file("/etc/ssl/certs/ca-certificates.crt").contains("BEGIN CERTIFICATE"));

    let root = NewBox {
        profile: Profile::Root,
        ..new_box("other")
    };
    let root = lifecycle::create(&host, &owner(), root, quiet())
        .await
        .unwrap();
    let spec = rig.runtime.spec(&root.id).await.unwrap();
    assert!(spec.env.contains(&("HOME".to_owned(), "/root".to_owned())));
    assert_ne!(root.id_offset, made.id_offset);
}

#[tokio::test]
async fn wrong_wishes_are_refused_and_leave_nothing() {
    let rig = Rig::new();
    let host = rig.host();
    lifecycle::create(&host, &owner(), new_box("demo"), quiet())
        .await
        .unwrap();
    let caller = owner();
    let create = |asked: NewBox| lifecycle::create(&host, &caller, asked, quiet());

    let taken = create(new_box("demo")).await.unwrap_err();
    assert!(matches!(taken, CreateError::NameTaken(taken) if taken == name("demo")));
    let image = NewBox {
        image: Some("debian:nosuch".to_owned()),
        ..new_box("a")
    };
    assert!(matches!(
        create(image).await,
        Err(CreateError::Image { .. })
    ));
    let entry = NewBox {
        allow: vec!["https://x.example/".to_owned()],
        ..new_box("a")
    };
    assert!(matches!(create(entry).await, Err(CreateError::Allow(_))));
    let mut suffix = new_box("a");
    suffix.allow = vec!["*.co.uk".to_owned()];
    let refused = create(suffix).await.unwrap_err();
    assert!(
        refused.to_string().starts_with("the entry `*.co.uk` "),
        "{refused}"
    );
    let mut tiny = new_box("a");
    tiny.limits.memory_bytes = 1 << 10;
    assert!(matches!(
        create(tiny).await,
        Err(CreateError::TooSmall("16 MiB of memory"))
    ));
    rig.runtime.fail(Step::Create).await;
    assert!(matches!(
        create(new_box("a")).await,
        Err(CreateError::Engine { .. })
    ));
    rig.runtime.mend().await;

    let left = boxes::list(&host, &owner()).await.unwrap();
    assert_eq!(
        left.iter()
            .map(|record| record.name.as_str())
            .collect::<Vec<_>>(),
        ["demo"]
    );
    assert!(
        create(new_box("a")).await.is_ok(),
        "the name was given back"
    );
}

#[tokio::test]
async fn a_box_that_does_not_start_says_why_and_can_be_started_again() {
    let rig = Rig::new();
    let host = rig.host();
    rig.runtime.fail(Step::Start).await;
    let failed = lifecycle::create(&host, &owner(), new_box("demo"), quiet())
        .await
        .unwrap_err();
    assert!(
        matches!(failed, CreateError::Start(StartError::Engine { .. })),
        "{failed}"
    );
    let record = boxes::find(&host, &owner(), &name("demo")).await.unwrap();
    assert_eq!(record.state, BoxState::Failed);
    assert_eq!(
        record.problem.as_deref(),
        Some("could not start box `demo`: could not Start a box: the test says so")
    );
    rig.runtime.mend().await;
    assert_eq!(
        lifecycle::start(&host, record.id).await.unwrap().state,
        BoxState::Running
    );
    let record = boxes::find(&host, &owner(), &name("demo")).await.unwrap();
    assert_eq!((record.state, record.problem), (BoxState::Running, None));
}

#[tokio::test]
async fn asking_for_what_holds_already_succeeds() {
    let rig = Rig::new();
    let host = rig.host();
    let made = lifecycle::create(&host, &owner(), new_box("demo"), quiet())
        .await
        .unwrap();
    assert_eq!(
        lifecycle::start(&host, made.id).await.unwrap().state,
        BoxState::Running
    );
    for _ in 0..2 {
        let stopped = lifecycle::stop(&host, made.id, Duration::ZERO)
            .await
            .unwrap();
        assert_eq!(stopped.state, BoxState::Stopped);
    }
    for _ in 0..2 {
        lifecycle::remove(&host, made.id).await.unwrap();
    }
    assert!(boxes::list(&host, &owner()).await.unwrap().is_empty());
    assert!(!host.paths.placed(&made.id).exists());
    assert!(rig.runtime.spec(&made.id).await.is_none());
}

#[tokio::test]
async fn two_recipes_never_work_on_one_box() {
    let rig = Rig::new();
    let host = rig.host();
    let asked = NewBox {
        start: false,
        ..new_box("demo")
    };
    let made = lifecycle::create(&host, &owner(), asked, quiet())
        .await
        .unwrap();
    rig.runtime.hold(Step::Start, Hold::Before).await;
    let first = tokio::spawn({
        let host = host.clone();
        async move { lifecycle::start(&host, made.id).await }
    });
    tokio::time::timeout(PATIENCE, rig.runtime.held())
        .await
        .unwrap();
    rig.runtime.let_go().await;
    let mut second = Box::pin(lifecycle::remove(&host, made.id));
    // The first never goes on; the second waits for it and touches nothing.
    tokio::select! {
        biased;
        done = &mut second => panic!("{done:?}"),
        () = async { for _ in 0..1000 { tokio::task::yield_now().await; } } => {}
    }
    assert!(rig.runtime.spec(&made.id).await.is_some());
    first.abort();
}

#[tokio::test]
async fn a_client_that_goes_away_leaves_no_half_made_box() {
    let rig = Rig::new();
    let host = rig.host();
    let mut changes = host.changes.watch();
    let caller = owner();
    let create = lifecycle::create(&host, &caller, new_box("demo"), quiet());
    // Polled once and dropped: the recipe has begun, and goes on.
    drop(tokio::time::timeout(Duration::ZERO, create).await);
    let running = async {
        let is_running = async || {
            let found = boxes::find(&host, &owner(), &name("demo")).await;
            found.is_ok_and(|record| record.state == BoxState::Running)
        };
        while !is_running().await {
            changes.changed().await.unwrap();
        }
    };
    tokio::time::timeout(PATIENCE, running).await.unwrap();
}

#[tokio::test]
async fn a_box_is_found_by_name_and_a_slip_is_recognised() {
    let rig = Rig::new();
    let host = rig.host();
    let missing = boxes::find(&host, &owner(), &name("demo"))
        .await
        .unwrap_err();
    assert!(matches!(
        missing,
        FindError::Unknown {
            near: None,
            any: boxes::Any::None,
            ..
        }
    ));
    lifecycle::create(&host, &owner(), new_box("demo"), quiet())
        .await
        .unwrap();
    match boxes::find(&host, &owner(), &name("dmeo")).await {
        Err(FindError::Unknown { near, .. }) => assert_eq!(near, Some(name("demo"))),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_foreign_user_neither_sees_nor_touches_a_box() {
    let rig = Rig::new();
    let host = rig.host();
    lifecycle::create(&host, &owner(), new_box("demo"), quiet())
        .await
        .unwrap();
    let stranger = Caller::from_peer(4711, 4712);
    assert!(boxes::list(&host, &stranger).await.unwrap().is_empty());
    // Not even by a hint.
    match boxes::find(&host, &stranger, &name("dem")).await {
        Err(FindError::Unknown { near, any, .. }) => {
            assert_eq!((near, any), (None, boxes::Any::None));
        }
        other => panic!("{other:?}"),
    }
    let own = lifecycle::create(&host, &stranger, new_box("demo"), quiet())
        .await
        .unwrap();
    assert_eq!(own.owner, Owner::Uid(4711));
    let found = boxes::find(&host, &owner(), &name("demo")).await.unwrap();
    assert_eq!(found.owner, owner().owner, "one's own comes first");
}

#[tokio::test]
async fn a_command_runs_only_in_a_box_that_runs() {
    let rig = Rig::new();
    let host = rig.host();
    let made = lifecycle::create(&host, &owner(), new_box("demo"), quiet())
        .await
        .unwrap();
    let ls = Exec {
        name: name("demo"),
        command: vec!["ls".to_owned()],
        cwd: None,
        env: vec![("A".to_owned(), "b".to_owned())],
        terminal: None,
    };
    let running = exec::exec(&host, &owner(), ls.clone()).await.unwrap();
    assert_eq!(running.box_id, made.id);
    assert_eq!(running.execution.streams.len(), 3);
    assert_eq!(
        rig.runtime.commands().await[0].env,
        [("A".to_owned(), "b".to_owned())]
    );
    lifecycle::stop(&host, made.id, Duration::ZERO)
        .await
        .unwrap();
    let refused = exec::exec(&host, &owner(), ls.clone()).await.unwrap_err();
    assert_eq!(refused.to_string(), "box `demo` is stopped");
    let nothing = Exec {
        command: Vec::new(),
        ..ls
    };
    assert!(matches!(
        exec::exec(&host, &owner(), nothing).await,
        Err(ExecError::NoCommand)
    ));
}

#[tokio::test]
async fn an_image_in_use_stays() {
    let rig = Rig::new();
    let host = rig.host();
    let asked = NewBox {
        image: Some("debian:trixie".to_owned()),
        ..new_box("demo")
    };
    let made = lifecycle::create(&host, &owner(), asked, quiet())
        .await
        .unwrap();
    let refused = images::remove(&host, "debian:trixie").await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the image `debian:trixie` is in use by `demo`"
    );
    let unknown = images::remove(&host, "debian:trixy").await;
    assert!(matches!(unknown, Err(ImageError::Unknown { .. })));
    lifecycle::remove(&host, made.id).await.unwrap();
    images::remove(&host, "debian:trixie").await.unwrap();
    assert_eq!(images::list(&host).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_box_that_ends_by_itself_is_stopped() {
    let rig = Rig::new();
    let host = rig.host();
    let made = lifecycle::create(&host, &owner(), new_box("demo"), quiet())
        .await
        .unwrap();
    reconcile::box_ended(&host, made.id).await.unwrap();
    let still = boxes::get(&host, made.id).await.unwrap().unwrap();
    assert_eq!(
        still.state,
        BoxState::Running,
        "a false alarm changes nothing"
    );
    rig.runtime.die(&made.id).await;
    reconcile::box_ended(&host, made.id).await.unwrap();
    assert_eq!(
        boxes::get(&host, made.id).await.unwrap().unwrap().state,
        BoxState::Stopped
    );
}
