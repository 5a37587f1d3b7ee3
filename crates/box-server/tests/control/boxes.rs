//! The life of a box over the socket.

use crate::host::{TestHost, name, new_box};
use box_api::control::{
    BoxState, CredentialAdd, Defaults, NewBox, Outcome, Reply, Request, Run, Target,
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
    let remove = Request::Remove {
        target: Target::Box(name("demo")),
    };
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
        })
        .await;
    assert!(matches!(stopped, Ok(Outcome::Boxes { boxes }) if boxes.len() == 3));
    assert_eq!(
        host.ask(Request::Remove {
            target: Target::All
        })
        .await,
        Ok(Outcome::Nothing)
    );
    assert_eq!(
        host.ask(Request::List).await,
        Ok(Outcome::Boxes { boxes: Vec::new() })
    );
    host.stop().await;
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
        "remove those boxes first with `box rm <name>`",
    ];
    let no_agent = [
        "unknown-agent",
        "there is no agent `cloude`",
        "did you mean `claude`? agents here: `claude`, `demo`",
    ];
    let no_logs = [
        "no-logs",
        "no process of box `demo` has written anything yet",
        "agents write logs; `box run <agent> \"…\"` starts one",
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
            Request::Logs {
                name: name("demo"),
                process: None,
                follow: false,
            },
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
