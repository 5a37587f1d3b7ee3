//! Who is let in, and what is said to those who are not.

use crate::host::TestHost;
use box_api::PROTOCOL;
use box_api::control::{FRAME_BYTES_MAX, Outcome, Reply, Request};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;

#[tokio::test]
async fn the_host_greets_with_what_a_client_needs() {
    let host = TestHost::start().await;
    std::fs::write(host.paths().config, "").unwrap();
    let welcome = host.connect().await.greet(PROTOCOL).await;
    assert_eq!(welcome.build, "build-of-the-test");
    assert_eq!(welcome.protocol, PROTOCOL);
    assert_eq!(welcome.pid, std::process::id());
    assert_eq!(welcome.data_dir, host.paths().data.display().to_string());
    assert_eq!(welcome.defaults, box_api::control::Defaults::default());
    host.stop().await;
}

#[tokio::test]
async fn another_protocol_is_told_so_and_may_stop_the_host() {
    let host = TestHost::start().await;
    let mut client = host.connect().await;
    client.greet(PROTOCOL + 1).await;
    client.send(&Request::Status).await;
    assert_eq!(client.end().await.unwrap_err().slug, "other-protocol");

    let mut client = host.connect().await;
    client.greet(PROTOCOL + 1).await;
    // A request of the future.
    client
        .send(&serde_json::json!({ "verb": "levitate" }))
        .await;
    assert_eq!(client.end().await.unwrap_err().slug, "other-protocol");

    let mut client = host.connect().await;
    client.greet(PROTOCOL + 1).await;
    client.send(&Request::StopHost).await;
    assert_eq!(client.end().await, Ok(Outcome::Nothing));
    host.task.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_frame_that_is_too_long_ends_the_connection_and_nothing_else() {
    let host = TestHost::start().await;
    let mut client = host.greeted().await;
    client
        .send_raw(u32::try_from(FRAME_BYTES_MAX).unwrap() + 1, b"{")
        .await;
    assert_eq!(client.reply().await, None);
    let mut client = host.connect().await;
    client.send_raw(u32::MAX, b"").await;
    assert_eq!(client.frame().await, None);
    assert!(matches!(
        host.ask(Request::Status).await,
        Ok(Outcome::Status(_))
    ));
    host.stop().await;
}

#[tokio::test]
async fn what_is_no_request_is_refused_with_the_reason() {
    let host = TestHost::start().await;
    let mut client = host.greeted().await;
    client
        .send(&serde_json::json!({ "verb": "info", "name": "No Name" }))
        .await;
    let problem = client.end().await.unwrap_err();
    assert_eq!(problem.slug, "bad-request");
    assert_eq!(
        problem.cause.as_deref(),
        Some("a box name starts with a letter a-z, then letters, digits and `-`, 63 at most")
    );
    let mut client = host.greeted().await;
    client.send_raw(3, b"\xff\xfe{").await;
    assert!(
        matches!(client.reply().await, Some(Reply::Problem(problem)) if problem.slug == "bad-request")
    );
    host.stop().await;
}

#[tokio::test]
async fn clients_that_say_nothing_keep_nobody_out() {
    let host = TestHost::start().await;
    let mut silent = Vec::new();
    for _ in 0..100 {
        silent.push(host.connect().await);
    }
    assert!(matches!(
        host.ask(Request::Status).await,
        Ok(Outcome::Status(_))
    ));
    drop(silent);
    host.stop().await;
}

/// What a user sees who neither runs the host nor is root. Only root can be another user.
fn as_a_foreign_user(socket: &std::path::Path) -> Vec<u8> {
    const NOBODY: u32 = 65_534;
    let socket = socket.to_owned();
    let seen = std::thread::spawn(move || {
        // Of this thread alone; the kernel notes it in the socket as it connects.
        let nobody = rustix::fs::Uid::from_raw(NOBODY);
        rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
        let mut stream = std::os::unix::net::UnixStream::connect(socket).unwrap();
        let mut seen = Vec::new();
        stream.read_to_end(&mut seen).unwrap();
        seen
    });
    seen.join().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_user_is_told_so_and_not_waited_for() {
    assert!(
        rustix::process::getuid().is_root(),
        "this test plays another user"
    );
    let host = TestHost::start().await;
    let open_to_all = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(host.folder.path(), open_to_all).unwrap();
    let socket = host.paths().control_socket();
    let seen = tokio::task::spawn_blocking(move || as_a_foreign_user(&socket))
        .await
        .unwrap();
    let seen = String::from_utf8_lossy(&seen);
    assert!(seen.contains("\"type\":\"foreign-user\""), "{seen}");
    assert!(
        seen.contains("this host serves the user it runs as, and root"),
        "{seen}"
    );
    host.stop().await;
}
