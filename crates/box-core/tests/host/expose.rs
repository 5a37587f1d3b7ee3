//! Ports of boxes on the loopback, with an engine that has no guest. In a network namespace of each
//! test's own: the host's threads are made in it.

use crate::rig::{PATIENCE, Rig, name, new_box, owner, quiet};
use box_core::expose::{self, ExposeError};
use box_core::lifecycle;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Instant;

#[expect(
    deprecated,
    reason = "safe for CLONE_NEWNET; only CLONE_FILES makes it unsafe"
)]
#[expect(
    clippy::disallowed_methods,
    reason = "a test sets up its own namespace"
)]
fn own_loopback() {
    rustix::thread::unshare(rustix::thread::UnshareFlags::NEWNET).unwrap();
    let up = std::process::Command::new("ip")
        .args(["link", "set", "lo", "up"])
        .status();
    assert!(up.unwrap().success(), "`ip` of iproute2 is needed");
}

#[test]
fn without_a_guest_a_connection_goes_through_the_tool_in_the_box() {
    own_loopback();
    let rig = Rig::new();
    rig.life(async |host| {
        let asked = new_box("demo");
        let record = lifecycle::create(&host, &owner(), asked, quiet())
            .await
            .unwrap();
        let (me, demo) = (owner(), name("demo"));
        let shown = expose::expose(&host, &me, &demo, 8000, None).await.unwrap();
        assert_eq!((shown.port, shown.host_port), (8000, 8000));
        let _connection = TcpStream::connect((Ipv4Addr::LOCALHOST, 8000)).unwrap();
        let deadline = Instant::now() + PATIENCE;
        let dialled = ["/opt/box/bin/box-tool", "dial", "8000"];
        while !rig
            .runtime
            .commands()
            .await
            .iter()
            .any(|command| command.command == dialled)
        {
            assert!(Instant::now() < deadline, "nobody dialled");
            tokio::task::yield_now().await;
        }
        drop(record);
    });
}

#[test]
fn ports_are_kept_by_number_and_given_back_with_their_box() {
    own_loopback();
    let rig = Rig::new();
    let id = rig.life(async |host| {
        let make = async |text: &str| {
            lifecycle::create(&host, &owner(), new_box(text), quiet())
                .await
                .unwrap()
                .id
        };
        let id = make("one").await;
        make("two").await;
        let expose = async |text: &str, port, host_port| {
            expose::expose(&host, &owner(), &name(text), port, host_port).await
        };
        assert!(matches!(
            expose("one", 0, None).await,
            Err(ExposeError::Zero)
        ));
        assert_eq!(expose("one", 80, Some(9000)).await.unwrap().host_port, 9000);
        let taken = expose("two", 80, Some(9000)).await;
        assert!(matches!(taken, Err(ExposeError::Taken { .. })), "{taken:?}");
        // The same number is taken as well, so it gets another.
        expose("two", 9000, None).await.unwrap();
        let again = expose("one", 80, Some(9001)).await;
        assert!(matches!(
            again,
            Err(ExposeError::Already {
                host_port: 9000,
                ..
            })
        ));
        let none = expose::remove(&host, &owner(), &name("one"), 81).await;
        assert!(matches!(none, Err(ExposeError::Unknown { .. })));
        id
    });
    // The next host listens again, all but where somebody else does by now.
    let thief = TcpListener::bind((Ipv4Addr::LOCALHOST, 9000)).unwrap();
    rig.life(async |host| {
        assert_eq!(expose::resume(&host).await.unwrap(), 1);
        let listed = expose::list(&host, &owner(), None).await.unwrap();
        let problems: Vec<bool> = listed.iter().map(|one| one.problem.is_some()).collect();
        assert_eq!(listed.len(), 2);
        assert_eq!(problems.iter().filter(|has| **has).count(), 1, "{listed:?}");
        drop(thief);
        expose::expose(&host, &owner(), &name("one"), 80, None)
            .await
            .unwrap();
        lifecycle::remove(&host, id).await.unwrap();
        let deadline = Instant::now() + PATIENCE;
        while TcpListener::bind((Ipv4Addr::LOCALHOST, 9000)).is_err() {
            assert!(
                Instant::now() < deadline,
                "the port of a removed box is taken"
            );
            tokio::task::yield_now().await;
        }
        let listed = expose::list(&host, &owner(), None).await.unwrap();
        assert_eq!(listed.len(), 1, "{listed:?}");
    });
}
