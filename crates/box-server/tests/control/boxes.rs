//! The life of a box over the socket.

use crate::host::{TestHost, name, new_box};
use box_api::control::{
    BoxState, CredentialAdd, CredentialForm, CredentialSource, Defaults, Haste, KeepWorkspace,
    Logs, NewBox, Outcome, Removal, Remove, Reply, Request, Run, Snapshots, Target, Trash,
    Unpushed,
};

#[tokio::test]
async fn a_box_is_made_listed_stopped_started_and_removed() {
    let host = TestHost::start().await;
    let mut client = host.greeted().await;
    client
        .send(&Request::New(new_box("demo", Defaults::default())))
        .await;
    assert!(
        matches!(client.reply().await, Some(Reply::Progress { .. })),
        "it says what it does"
    );
    let Ok(Outcome::Info(made)) = client.end().await else {
        panic!("not made")
    };
    assert_eq!((made.state, made.pid), (BoxState::Running, Some(4242)));
    assert_eq!(made.limits_held_by, "nobody");

    let Ok(Outcome::Boxes { boxes }) = host.ask(Request::List).await else {
        panic!("no list")
    };
    assert_eq!(boxes, [*made.clone()]);
    let stop = Request::Stop {
        target: Target::Box(name("demo")),
        haste: Haste::Graceful,
    };
    let Ok(Outcome::Info(stopped)) = host.ask(stop).await else {
        panic!("not stopped")
    };
    assert_eq!((stopped.state, stopped.pid), (BoxState::Stopped, None));
    let Ok(Outcome::Status(status)) = host.ask(Request::Status).await else {
        panic!("no status")
    };
    assert_eq!((status.boxes_running, status.boxes_stopped), (0, 1));
    let started = host.ask(Request::Start { name: name("demo") }).await;
    assert!(matches!(started, Ok(Outcome::Info(info)) if info.state == BoxState::Running));
    let remove = removed(Target::Box(name("demo")), Removal::Now);
    assert_eq!(host.ask(remove).await, Ok(Outcome::Nothing));
    assert_eq!(
        host.refusal(Request::Info { name: name("demo") })
            .await
            .slug,
        "box-not-found"
    );
    host.stop().await;
}

#[tokio::test]
async fn snapshots_restores_clones_and_the_trash_are_asked_for_by_name() {
    let host = TestHost::start().await;
    host.ask(Request::New(new_box("demo", Defaults::default())))
        .await
        .unwrap();
    let take = |label: Option<&str>| {
        Request::Snapshots(Snapshots::Take {
            target: Target::Box(name("demo")),
            label: label.map(|label| label.parse().unwrap()),
        })
    };
    let taken = host.ask(take(Some("one"))).await;
    assert!(
        matches!(taken, Ok(Outcome::Taken { taken }) if taken[0].snapshot.label.as_str() == "one")
    );
    let again = host.refusal(take(Some("one"))).await;
    assert_eq!(again.slug, "label-taken");
    let restore = |label: &str| {
        Request::Snapshots(Snapshots::Restore {
            name: name("demo"),
            label: label.parse().unwrap(),
        })
    };
    let unknown = host.refusal(restore("two")).await;
    assert_eq!(unknown.slug, "snapshot-not-found");
    assert_eq!(unknown.hint.as_deref(), Some("it has `pristine`, `one`"));
    let Ok(Outcome::Restored(restored)) = host.ask(restore("one")).await else {
        panic!("not restored")
    };
    assert_eq!(restored.info.state, BoxState::Running);
    assert!(restored.undo.as_str().starts_with("before-restore-"));

    let trash = removed(Target::Box(name("demo")), Removal::Trash);
    assert_eq!(host.ask(trash).await, Ok(Outcome::Nothing));
    let Ok(Outcome::Boxes { boxes }) = host.ask(Request::Trash(Trash::List)).await else {
        panic!("no trash")
    };
    assert_eq!(boxes.len(), 1);
    assert!(boxes[0].trashed_at_ms.is_some());
    let undelete = |what: &str, to: Option<&str>| {
        Request::Trash(Trash::Undelete {
            what: what.to_owned(),
            name: to.map(name),
        })
    };
    assert_eq!(
        host.refusal(undelete("nobody", None)).await.slug,
        "not-in-trash"
    );
    let id = boxes[0].id.to_string();
    let Ok(Outcome::Info(back)) = host.ask(undelete(&id, Some("again"))).await else {
        panic!("not back")
    };
    assert_eq!(
        (back.name.as_str(), back.state),
        ("again", BoxState::Stopped)
    );
    let mut both = removed(Target::Box(name("again")), Removal::Now);
    if let Request::Remove(asked) = &mut both {
        asked.workspace = KeepWorkspace::Yes;
    }
    assert_eq!(host.refusal(both).await.slug, "nothing-to-keep");
    host.stop().await;
}

#[tokio::test]
async fn all_means_every_box_of_the_caller() {
    let host = TestHost::start().await;
    for each in ["one", "two", "three"] {
        host.ask(Request::New(new_box(each, Defaults::default())))
            .await
            .unwrap();
    }
    let stopped = host
        .ask(Request::Stop {
            target: Target::All,
            haste: Haste::AtOnce,
        })
        .await;
    assert!(matches!(stopped, Ok(Outcome::Boxes { boxes }) if boxes.len() == 3));
    assert_eq!(
        host.ask(removed(Target::All, Removal::Trash)).await,
        Ok(Outcome::Nothing)
    );
    assert_eq!(
        host.ask(Request::List).await,
        Ok(Outcome::Boxes { boxes: Vec::new() })
    );
    host.stop().await;
}

/// Without a look for commits: the engine that is not there has no git.
fn removed(target: Target, how: Removal) -> Request {
    Request::Remove(Remove {
        target,
        how,
        workspace: KeepWorkspace::No,
        unpushed: Unpushed::Ignore,
    })
}

fn run_of(agent: &str) -> Request {
    let Defaults {
        profile,
        net,
        limits,
    } = Defaults::default();
    Request::Run(Run {
        agent: agent.to_owned(),
        prompt: "hello".to_owned(),
        name: None,
        repo: None,
        allow_all: false,
        image: None,
        profile,
        net,
        limits,
        settings: box_api::control::BoxSettings::default(),
        attachments: Vec::new(),
        chosen: Vec::new(),
    })
}

/// A request, and slug, title and hint of the problem it meets where there is a box `demo`.
fn wrong_wishes() -> Vec<(Request, [&'static str; 3])> {
    let image = |image: &str| NewBox {
        image: Some(image.to_owned()),
        ..new_box("other", Defaults::default())
    };
    let not_found = [
        "box-not-found",
        "there is no box `dmeo`",
        "did you mean `demo`?",
    ];
    let taken = [
        "name-taken",
        "there is a box `demo` already",
        "choose another name, or remove that box with `box rm demo`",
    ];
    let no_suite = [
        "image-not-ready",
        "could not get the image `debian:trixy` ready",
        "images are `debian:<suite>` and `file:<tar>`",
    ];
    let no_image = [
        "image-not-found",
        "there is no image `debian:trixy`",
        "images here: `default`, `debian:trixie`",
    ];
    let in_use = [
        "image-in-use",
        "the image `default` is in use by `demo`",
        "remove those boxes first with `box rm <name> --now`, or those in the trash with `box prune --all`",
    ];
    let no_agent = [
        "unknown-agent",
        "there is no agent `cloude`",
        "did you mean `claude`? agents here: `claude`, `codex`, `opencode`, `gemini`, `grok`, `kimi`, `copilot`, `qwen`, `demo`",
    ];
    let no_logs = [
        "no-logs",
        "no process of box `demo` has written anything yet",
        "what an agent said is in `box attach demo`; `box exec --detach demo -- <command>` starts a process with a log",
    ];
    vec![
        (Request::Info { name: name("dmeo") }, not_found),
        (Request::New(new_box("demo", Defaults::default())), taken),
        (Request::New(image("debian:trixy")), no_suite),
        (
            Request::ImageRemove {
                image: "debian:trixy".to_owned(),
            },
            no_image,
        ),
        (
            Request::ImageRemove {
                image: "default".to_owned(),
            },
            in_use,
        ),
        (run_of("cloude"), no_agent),
        (
            Request::Logs(Logs {
                name: name("demo"),
                process: None,
                follow: false,
            }),
            no_logs,
        ),
    ]
}

#[tokio::test]
async fn wrong_wishes_are_told_what_which_and_what_to_do() {
    let host = TestHost::start().await;
    host.ask(Request::New(new_box("demo", Defaults::default())))
        .await
        .unwrap();
    for (request, expected) in wrong_wishes() {
        let problem = host.refusal(request).await;
        let hint = problem.hint.unwrap_or_default();
        assert_eq!([&*problem.slug, &*problem.title, &*hint], expected);
    }
    host.stop().await;
}

#[tokio::test]
async fn a_secret_is_in_no_reply_and_in_no_log() {
    let host = TestHost::start().await;
    let added = |kind: &str, secret: &str| {
        Request::CredentialAdd(CredentialAdd {
            kind: kind.to_owned(),
            name: "default".to_owned(),
            secret: secret.to_owned(),
            source: CredentialSource::Typed,
            form: CredentialForm::default(),
        })
    };
    let good = format!("sk-ant-oat01-{}", "TELLTALE".repeat(8));
    let mut said = String::new();
    for (kind, secret) in [
        ("claude", good.as_str()),
        ("claude", "TELLTALE-TELLTALE-TELLTALE"),
        ("claude", "sk-ant-oat01-TELLTALE\nTELLTALE"),
        ("clod", good.as_str()),
    ] {
        let mut client = host.greeted().await;
        client.send(&added(kind, secret)).await;
        while let Some(frame) = client.frame().await {
            said.push_str(&String::from_utf8(frame).unwrap());
        }
    }
    // A request of a newer client with the secret somewhere else.
    let mut client = host.greeted().await;
    client
        .send(&serde_json::json!({ "verb": "credential_add", "kind": 7, "secret": good }))
        .await;
    while let Some(frame) = client.frame().await {
        said.push_str(&String::from_utf8(frame).unwrap());
    }
    assert!(
        said.contains("bad-secret"),
        "the replies were looked at: {said}"
    );
    assert!(!said.contains("TELLTALE"), "{said}");
    let log = host.paths().log.join("host.log");
    let _kept = host.stop().await;
    let log = std::fs::read_to_string(log).unwrap();
    assert!(
        log.contains("the host listens"),
        "the log was looked at: {log}"
    );
    assert!(!log.contains("TELLTALE"), "{log}");
}
