//! Broken hosts and hostile boxes.

use crate::house::{House, NO_SLEEPER, command, in_time, spec};
use box_api::guest::{
    CONNECTIONS_MAX, FRAME_BYTES_MAX, Frame, FrameKind, FrameReader, Piece, Refusal, Reply,
    Request, Stream,
};
use box_runtime::guest::{GuestError, ping};
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

/// Sends bytes as they are and gives every reply until the guest closes.
async fn say(house: &House, bytes: Vec<u8>) -> Vec<Reply> {
    let mut socket = UnixStream::from(house.connect());
    let replies = tokio::task::spawn_blocking(move || {
        // The guest may close before it has read everything.
        drop(socket.write_all(&bytes));
        let mut reader = FrameReader::default();
        let mut got = Vec::new();
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = socket.read(&mut buffer) {
            reader.push(&buffer[..count]);
            while let Some(frame) = reader.next_frame().unwrap() {
                got.push(frame.decode(FrameKind::Reply).unwrap());
            }
        }
        got
    });
    in_time(replies).await.unwrap()
}

fn is_refused(replies: &[Reply]) -> bool {
    matches!(
        replies,
        [Reply::Refused {
            why: Refusal::Malformed,
            ..
        }]
    )
}

#[tokio::test]
async fn garbage_is_refused_and_the_guest_goes_on() {
    let house = House::start(&[]);
    let request = |text: &str| {
        let mut bytes = u32::try_from(text.len() + 1)
            .unwrap()
            .to_le_bytes()
            .to_vec();
        bytes.push(1);
        bytes.extend(text.as_bytes());
        bytes
    };
    let mut piece = Vec::new();
    Piece::write(&mut piece, Stream::Stdin, 0, [b"x", b""]);
    for garbage in [
        vec![0; 16],
        vec![0xff; 64 << 10],
        u32::try_from(FRAME_BYTES_MAX + 1)
            .unwrap()
            .to_le_bytes()
            .to_vec(),
        request("{}"),
        request("not json"),
        request(r#"{"do":"exec","command":{"arguments":[],"folder":"/"},"terminal":null}"#),
        request(r#"{"do":"exec","command":{"arguments":["a"],"folder":"x"},"terminal":null}"#),
        request(&format!(r#"{{"do":"{}"}}"#, "x".repeat(500_000))),
        request(&"[".repeat(500_000)),
        piece,
    ] {
        let shown = String::from_utf8_lossy(&garbage[..garbage.len().min(80)]).into_owned();
        let replies = say(&house, garbage).await;
        assert!(is_refused(&replies), "{shown}: {replies:?}");
    }
    ping(house.connect()).await.unwrap();
}

#[tokio::test]
async fn pseudo_random_bytes_never_bring_it_down() {
    let house = House::start(&[]);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..300 {
        let mut bytes = Vec::new();
        for _ in 0..40 {
            // xorshift64, so that a failure comes again.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            bytes.extend(state.to_le_bytes());
        }
        // Every other flood has a head that is right.
        if state & 1 == 0 {
            bytes[..5].copy_from_slice(&[100, 0, 0, 0, u8::try_from(state % 5).unwrap()]);
        }
        say(&house, bytes).await;
    }
    ping(house.connect()).await.unwrap();
}

#[tokio::test]
async fn connections_cut_at_every_byte_leave_nothing_behind() {
    let house = House::start(&[]);
    let request = Request::Exec {
        command: box_api::guest::Command {
            arguments: vec!["sleep".to_owned(), "1000".to_owned()],
            folder: "/".to_owned(),
            variables: Vec::new(),
        },
        terminal: None,
    };
    let bytes = Frame::encode(FrameKind::Request, &request).unwrap();
    for cut in 0..=bytes.len() {
        UnixStream::from(house.connect())
            .write_all(&bytes[..cut])
            .unwrap();
    }
    // Connections are taken in order, so this one comes after all of them.
    ping(house.connect()).await.unwrap();
    assert_eq!(in_time(house.sh(NO_SLEEPER)).await.1, "gone\n");
    let (_, open, _) = house.sh("ls /proc/1/fd | wc -l").await;
    assert!(
        open.trim().parse::<usize>().unwrap() < 16,
        "descriptors of the guest: {open}"
    );
}

#[tokio::test]
async fn more_connections_than_allowed_wait_for_a_place() {
    let house = House::start(&[]);
    let mut idle: Vec<_> = (0..CONNECTIONS_MAX).map(|_| house.connect()).collect();
    let mut waiting = tokio::spawn(ping(house.connect()));
    let request = Frame::encode(FrameKind::Request, &Request::Ping).unwrap();
    // Everyone before is served, so the waiting one was passed over, not forgotten.
    let mut first = UnixStream::from(idle.remove(0));
    first.write_all(&request).unwrap();
    let mut rest = Vec::new();
    first.read_to_end(&mut rest).unwrap();
    assert!(!rest.is_empty());
    in_time(&mut waiting).await.unwrap().unwrap();
    drop(idle);
}

#[tokio::test]
async fn ten_thousand_orphans_are_reaped() {
    let house = House::start(&[]);
    let script = "i=0; while [ $i -lt 10000 ]; do (true &) ; i=$((i+1)); done";
    assert_eq!(house.sh(script).await.0, 0);
    let (_, zombies, _) = house
        .sh("until [ -z \"$(pgrep -r Z .)\" ]; do :; done; echo none")
        .await;
    assert_eq!(zombies, "none\n");
}

#[tokio::test]
async fn a_box_full_of_processes_gets_a_clear_error() {
    // The limit counts the processes of a uid in its user namespace, so it must not be root's.
    let before = [
        "setpriv",
        "--reuid=64532",
        "--regid=64532",
        "--clear-groups",
        "prlimit",
        "--nproc=20",
    ];
    let house = House::start_as(&before, &[]);
    let mut all = Vec::new();
    let refused = loop {
        assert!(all.len() < 30, "nothing was ever refused");
        match house.exec(spec(&["sleep", "1000"])).await {
            Ok(execution) => all.push(execution),
            Err(error) => break error,
        }
    };
    let GuestError::Refused { why, text } = refused else {
        panic!("{refused}")
    };
    assert_eq!(why, Refusal::Limit);
    assert_eq!(
        text,
        "could not run `sleep`: the box has as many processes as its limit allows"
    );
    drop(all);
    // Once they are gone there is room again; the guest learns of it in its own time.
    let again = async {
        while house.exec(spec(&["true"])).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    in_time(again).await;
}

#[tokio::test]
async fn a_flood_on_both_streams_keeps_others_served() {
    let house = House::start(&[]);
    for number in 0..8 {
        house
            .spawn(&format!("flood-{number}"), "yes & exec yes >&2")
            .await;
    }
    for _ in 0..20 {
        assert_eq!(house.sh("echo here").await.1, "here\n");
    }
    let memory = memory_kib(house.guest_pid().unwrap());
    // 8 floods, two full spools each, and what the guest itself needs.
    assert!(memory < 200 << 10, "the guest holds {memory} KiB");
}

fn memory_kib(pid: i32) -> usize {
    let output = command("grep")
        .args(["VmRSS", &format!("/proc/{pid}/status")])
        .output()
        .unwrap();
    let line = String::from_utf8(output.stdout).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
