//! A box-egress of another build or protocol makes room, unless a secret would be lost with it.

use crate::egress::wait_open;
use crate::fake_egress::FakeEgress;
use crate::rig::{PATIENCE, Rig, new_box, owner, quiet};
use box_core::credentials::{self, Asked, Secret};
use box_core::egress::{LinkState, Program};
use box_core::{Host, lifecycle};

/// This test program as a box-egress that behaves as a function of `fake_egress` says.
fn program(test: &str) -> Program {
    Program {
        program: std::env::current_exe().unwrap().into(),
        arguments: ["--exact", test].map(Into::into).to_vec(),
        user: None,
    }
}

/// Kills the process when the test is over, however it ends.
struct Kill(u32);

impl Drop for Kill {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_raw(self.0.cast_signed()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap_or_default();
    }
}

/// Waits until a box-egress is up; gives its process and build.
async fn up(host: &Host) -> (u32, String) {
    let mut state = host.egress.watch();
    let is_up = |state: &LinkState| matches!(state, LinkState::Up { .. });
    let up = tokio::time::timeout(PATIENCE, state.wait_for(is_up)).await;
    let up = up.unwrap().unwrap();
    let LinkState::Up { pid, build } = &*up else {
        panic!("{up:?}")
    };
    (*pid, build.clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_box_egress_of_another_build_or_protocol_is_replaced_and_boxes_are_handed_over() {
    for old in [
        "fake_egress::as_another_build",
        "fake_egress::as_an_older_protocol",
    ] {
        let rig = Rig::new();
        std::fs::create_dir_all(rig.paths().run).unwrap();
        // The old one is left by a host that took it as its own.
        let socket = rig.paths().egress_socket();
        let first = Kill(crate::fake_egress::process(&socket, old));
        let (host, _gone) = rig
            .open()
            .unwrap()
            .with_egress(program("fake_egress::as_a_process"));
        let (pid, build) = up(&host).await;
        let _second = Kill(pid);
        assert_ne!(pid, first.0, "{old}");
        assert_eq!(build, "test", "{old}");
        let made = lifecycle::create(&host, &owner(), new_box("one"), quiet())
            .await
            .unwrap();
        let secret = Secret::parse("sk-ant-oat01-0123456789abcdefghij".to_owned()).unwrap();
        let asked = Asked::new("claude", "default");
        credentials::add(&host, &owner(), asked, Some(secret))
            .await
            .unwrap();
        let given = credentials::environment_for_process(&host, &made).await;
        assert_eq!(given.unwrap().len(), 1, "{old}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_box_egress_that_alone_has_a_secret_stays() {
    let mut rig = Rig::new();
    std::fs::create_dir_all(rig.paths().run).unwrap();
    let fake = FakeEgress::listen(&rig.paths().egress_socket());
    let none = || crate::rig::no_program();
    let (host, gone) = rig.open().unwrap().with_egress(none());
    let secret = Secret::parse("sk-ant-oat01-0123456789abcdefghij".to_owned()).unwrap();
    credentials::add(
        &host,
        &owner(),
        Asked::new("claude", "default"),
        Some(secret),
    )
    .await
    .unwrap();
    drop((host, gone));
    rig.build = "newer";
    let (host, _gone) = wait_open(&rig).await.with_egress(none());
    let (_, build) = up(&host).await;
    assert_eq!(build, "test");
    assert!(!fake.told.lock().await.asked.contains(&"shutdown"));
    assert_eq!(fake.told.lock().await.credentials.len(), 1);
}
