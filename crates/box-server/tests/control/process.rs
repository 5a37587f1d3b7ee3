//! The host process: one a deployment, ended without touching boxes.

use crate::host::{TestHost, name, new_box, options};
use box_api::ProblemKind;
use box_api::control::{BoxState, Defaults, Outcome, Request};
use box_runtime::Runtime as _;
use std::os::unix::net::UnixListener;
use std::sync::Arc;

#[tokio::test]
async fn stopping_the_host_leaves_boxes_alone_and_the_next_finds_them() {
    let host = TestHost::start().await;
    host.ask(Request::New(new_box("demo", Defaults::default())))
        .await
        .unwrap();
    let socket = host.paths().control_socket();
    assert!(socket.exists());
    let (folder, runtime) = host.stop().await;
    assert!(!socket.exists(), "whoever comes next finds nobody");
    assert!(runtime.list().await.unwrap()[0].running);

    let host = TestHost::start_at(folder, runtime).await;
    let found = host.ask(Request::Info { name: name("demo") }).await;
    assert!(matches!(found, Ok(Outcome::Info(info)) if info.state == BoxState::Running));
    host.stop().await;
}

#[tokio::test]
async fn a_second_host_is_refused_and_the_first_goes_on() {
    let host = TestHost::start().await;
    let refused = box_server::run(options(&host.folder, &host.runtime), |_| {})
        .await
        .unwrap_err();
    assert_eq!(
        (refused.kind, refused.slug.as_str()),
        (ProblemKind::Failed, "host-runs")
    );
    let first = format!("process {}", std::process::id());
    assert!(refused.title.contains(&first), "{}", refused.title);
    assert!(refused.hint.unwrap().contains("box serve --stop"));
    assert!(host.ask(Request::Status).await.is_ok());
    host.stop().await;
}

#[tokio::test]
async fn a_socket_left_behind_is_replaced() {
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let first = TestHost::start_at(
        Arc::clone(&folder),
        crate::fake_runtime::FakeRuntime::default(),
    );
    let (folder, runtime) = first.await.stop().await;
    let socket = box_server::paths::Paths::below(folder.path())
        .unwrap()
        .control_socket();
    drop(UnixListener::bind(&socket).unwrap());
    assert!(socket.exists());
    let host = TestHost::start_at(folder, runtime).await;
    assert!(host.ask(Request::Status).await.is_ok());
    host.stop().await;
}

#[tokio::test]
async fn wrong_settings_keep_the_host_from_starting() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("config.toml"),
        "[net]\npreste = \"open\"\n",
    )
    .unwrap();
    let runtime = crate::fake_runtime::FakeRuntime::default();
    let refused = box_server::run(options(&folder, &runtime), |_| {})
        .await
        .unwrap_err();
    assert_eq!(
        (refused.kind, refused.slug.as_str()),
        (ProblemKind::Usage, "bad-settings")
    );
    assert!(
        refused.title.ends_with("unknown key `net.preste`"),
        "{}",
        refused.title
    );
    assert_eq!(refused.hint.as_deref(), Some("did you mean `net.preset`?"));
}
