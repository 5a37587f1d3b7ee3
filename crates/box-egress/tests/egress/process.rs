//! The process itself: what it has taken away from itself, and what it costs others.

use crate::world::{World, allow};
use box_api::egress::{Answer, Request};
use std::os::unix::fs::MetadataExt as _;

fn status_line(pid: u32, key: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(key)).unwrap();
    line.split_once(':').unwrap().1.trim().to_owned()
}

#[test]
fn process_stands_in_its_sandbox() {
    let world = World::start();
    let pid = world.egress.id();
    assert_eq!(status_line(pid, "Seccomp"), "2");
    assert_eq!(status_line(pid, "NoNewPrivs"), "1");
    assert_eq!(status_line(pid, "CapEff"), "0000000000000000");
    let uid = box_egress::UID.to_string();
    assert_eq!(status_line(pid, "Uid"), [uid.as_str(); 4].join("\t"));
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let limit = |name: &str| {
        let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
        let mut values = line[name.len()..].split_whitespace().map(str::to_owned);
        (values.next().unwrap(), values.next().unwrap())
    };
    assert_eq!(limit("Max core file size"), ("0".into(), "0".into()));
    let (soft, hard) = limit("Max open files");
    assert_eq!(soft, hard);
    // Undumpable: its files in /proc are root's although it runs as somebody else.
    let owner = std::fs::metadata(format!("/proc/{pid}/environ"))
        .unwrap()
        .uid();
    assert_eq!(owner, 0);
    // A session of its own.
    let session = rustix::process::getsid(rustix::process::Pid::from_raw(pid.cast_signed()));
    assert_eq!(session.unwrap().as_raw_nonzero().get().cast_unsigned(), pid);
    // Every thread is in the sandbox.
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
        let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        assert!(status.contains("Seccomp:\t2\n") && status.contains("NoNewPrivs:\t1\n"));
    }
}

#[test]
fn many_boxes_are_served_by_one_process() {
    let mut world = World::start();
    world.rig.origin("ok.test");
    let boxes: Vec<_> = (0..20)
        .map(|_| world.new_box(allow(&["ok.test"]), Vec::new()))
        .collect();
    for inside in &boxes {
        let seen = inside.run(|client| async move { client.get("ok.test", "/", &[]).await });
        assert_eq!(seen.status, 200);
    }
    let Answer::Status(status) = world.host.call(Request::Status) else {
        panic!()
    };
    assert_eq!(status.boxes.len(), 20);
}

#[test]
fn box_that_takes_all_its_connections_leaves_the_others_alone() {
    let mut world = World::start();
    world.rig.origin("ok.test");
    let greedy = world.new_box(allow(&["ok.test"]), Vec::new());
    let modest = world.new_box(allow(&["ok.test"]), Vec::new());
    let refused = greedy.run(|client| async move {
        let mut open = Vec::new();
        for _ in 0..2_048 {
            match tokio::net::TcpStream::connect("127.0.0.1:3128").await {
                Ok(stream) => open.push(stream),
                Err(_) => break,
            }
        }
        let seen = client
            .raw_proxy(b"GET http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n")
            .await;
        drop(open);
        (seen.status, seen.reason().to_owned())
    });
    assert_eq!(refused, (429, "too_many_connections".into()));
    let seen = modest.run(|client| async move { client.get("ok.test", "/", &[]).await });
    assert_eq!(seen.status, 200);
}
