//! Commands: their streams go to the client, their end too.

use crate::host::{PATIENCE, TestHost, name, new_box};
use box_api::control::{Defaults, Exec, Outcome, Reply, Request, Target, TerminalSize};

fn ls(terminal: Option<TerminalSize>) -> Request {
    Request::Exec(Exec {
        name: name("demo"),
        command: vec!["ls".to_owned()],
        cwd: None,
        env: Vec::new(),
        terminal,
    })
}

#[tokio::test]
async fn three_streams_or_one_terminal_come_with_the_reply() {
    let host = TestHost::start().await;
    host.ask(Request::New(new_box("demo", Defaults::default())))
        .await
        .unwrap();
    host.runtime.end_commands(7);
    for (terminal, streams) in [
        (None, 3),
        (
            Some(TerminalSize {
                rows: 24,
                columns: 80,
            }),
            1,
        ),
    ] {
        let mut client = host.greeted().await;
        client.send(&ls(terminal)).await;
        assert_eq!(client.reply().await, Some(Reply::Streams));
        assert_eq!(client.descriptors().len(), streams);
        assert_eq!(client.end().await, Ok(Outcome::Exit { code: 7 }));
    }
    host.stop().await;
}

#[tokio::test]
async fn a_command_whose_client_is_gone_is_killed() {
    let host = TestHost::start().await;
    host.ask(Request::New(new_box("demo", Defaults::default())))
        .await
        .unwrap();
    let mut client = host.greeted().await;
    client.send(&ls(None)).await;
    assert_eq!(client.reply().await, Some(Reply::Streams));
    drop(client);
    tokio::time::timeout(PATIENCE, host.runtime.killed())
        .await
        .unwrap();
    host.stop().await;
}

#[tokio::test]
async fn a_command_in_a_stopped_box_is_told_how_to_start_it() {
    let host = TestHost::start().await;
    host.ask(Request::New(new_box("demo", Defaults::default())))
        .await
        .unwrap();
    host.ask(Request::Stop {
        target: Target::Box(name("demo")),
        haste: box_api::control::Haste::Graceful,
    })
    .await
    .unwrap();
    let problem = host.refusal(ls(None)).await;
    assert_eq!(problem.title, "box `demo` is stopped");
    assert_eq!(
        problem.hint.as_deref(),
        Some("start it with `box start demo`")
    );
    host.stop().await;
}
