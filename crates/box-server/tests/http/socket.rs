//! The WebSocket: lists, commands, what is not understood.

use crate::browser::{Site, Socket};
use box_api::page::{ClientFrame, Command, ServerFrame, Topic};
use box_api::{DecisionId, ThreadId};
use hyper::StatusCode;
use serde_json::json;

/// The next frame about boxes, with the names in it.
async fn boxes(socket: &mut Socket) -> (u64, bool, Vec<String>, usize) {
    loop {
        if let ServerFrame::Boxes {
            version,
            whole,
            boxes,
            gone,
            ..
        } = socket.frame().await.unwrap()
        {
            let names = boxes.iter().map(|card| card.name.to_string());
            return (version, whole, names.collect(), gone.len());
        }
    }
}

#[tokio::test]
async fn a_list_comes_whole_and_then_by_its_differences() {
    let site = Site::start().await;
    let browser = site.browser().await;
    let mut socket = browser.socket().await;
    socket.subscribe(7, Topic::Boxes).await;
    assert_eq!(boxes(&mut socket).await, (1, true, Vec::new(), 0));
    let made = browser.post("/api/boxes", &json!({ "name": "demo" })).await;
    assert_eq!(made.status, StatusCode::CREATED);
    let (version, whole, names, _) = boxes(&mut socket).await;
    assert_eq!((version, whole, names), (2, false, vec!["demo".to_owned()]));
    let gone = browser
        .post(
            "/api/boxes/demo/remove",
            &json!({ "how": "now", "unpushed": "ignore" }),
        )
        .await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT);
    while boxes(&mut socket).await.3 == 0 {}

    // A second subscription of the same number takes the place of the first.
    socket.subscribe(7, Topic::Boxes).await;
    assert_eq!(boxes(&mut socket).await, (1, true, Vec::new(), 0));
    for (sub, topic) in [(8, Topic::Threads), (9, Topic::Decisions)] {
        socket.subscribe(sub, topic).await;
        let frame = socket.frame().await.unwrap();
        let empty = match &frame {
            ServerFrame::Threads {
                sub: 8,
                version: 1,
                whole,
                threads,
                ..
            } => *whole && threads.is_empty(),
            ServerFrame::Decisions {
                sub: 9,
                version: 1,
                whole,
                decisions,
                ..
            } => *whole && decisions.is_empty(),
            ServerFrame::Hello { .. }
            | ServerFrame::Boxes { .. }
            | ServerFrame::Threads { .. }
            | ServerFrame::Decisions { .. }
            | ServerFrame::Log { .. }
            | ServerFrame::Result { .. }
            | ServerFrame::Over { .. }
            | ServerFrame::Ping { .. }
            | ServerFrame::Bye { .. } => false,
        };
        assert!(empty, "{frame:?}");
    }
}

#[tokio::test]
async fn a_command_is_answered_under_its_own_number() {
    let site = Site::start().await;
    let mut socket = site.browser().await.socket().await;
    let command = Command::Answer {
        decision: DecisionId(5),
        option: "yes".into(),
    };
    for _ in 0..2 {
        let cmd = ClientFrame::Cmd {
            cid: "c-1".into(),
            command: command.clone(),
        };
        socket.say(&cmd).await;
        let Some(ServerFrame::Result {
            cid,
            problem: Some(problem),
            thread: None,
        }) = socket.frame().await
        else {
            panic!("no result");
        };
        assert_eq!(
            (cid.as_str(), problem.slug.as_str()),
            ("c-1", "decision-not-found")
        );
    }
    let after = None;
    socket
        .subscribe(
            1,
            Topic::Thread {
                thread: ThreadId::from_random([1; 10]),
                after,
            },
        )
        .await;
    let over = socket.frame().await.unwrap();
    let ServerFrame::Over { sub: 1, problem } = over else {
        panic!("{over:?}")
    };
    assert_eq!(problem.slug, "thread-not-found");
}

#[tokio::test]
async fn what_is_no_frame_of_a_page_ends_the_socket_and_nothing_else() {
    let site = Site::start().await;
    let browser = site.browser().await;
    let mut other = browser.socket().await;
    for nonsense in [
        "",
        "{}",
        "{\"frame\":\"sub\",\"sub\":1,\"topic\":{\"topic\":\"secrets\"}}",
    ] {
        let mut socket = browser.socket().await;
        socket.say_text(nonsense).await;
        assert_eq!(socket.frame().await, None, "{nonsense}");
    }
    other.say(&ClientFrame::Ping).await;
    assert!(matches!(
        other.frame().await,
        Some(ServerFrame::Ping { .. })
    ));
}
