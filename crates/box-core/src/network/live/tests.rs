//! How open connections are known and let go.

use super::*;
use box_api::egress::HostName;
use box_api::egress::traffic::Entrance;

fn id() -> BoxId {
    BoxId::from_random([1; 10])
}

fn open(connection: u64, sent: u64, received: u64) -> Open {
    Open {
        box_id: id(),
        connection,
        host: HostName::parse("a.test").unwrap(),
        port: 443,
        rule: "preset open".to_owned(),
        entrance: Entrance::Transparent,
        ends: None,
        address: None,
        credential: None,
        sent_bytes: sent,
        received_bytes: received,
        began_at_ms: 1000,
        at_ms: 4000,
    }
}

fn passed(connections: Vec<u64>, sent: u64, received: u64) -> Passed {
    Passed {
        box_id: id(),
        host: HostName::parse("a.test").unwrap(),
        port: 443,
        rule: "preset open".to_owned(),
        credential: None,
        sent_bytes: sent,
        received_bytes: received,
        began_at_ms: 1000,
        ended_at_ms: 5000,
        connections,
        times: 1,
        entrance: None,
        address: None,
        open_ms: 4000,
        exchanges: Vec::new(),
    }
}

#[test]
fn an_open_connection_is_shown_until_it_is_over() {
    let live = Live::default();
    assert_eq!(live.hear(open(1, 0, 0), 1000), Heard::First);
    assert_eq!(live.hear(open(1, 600, 6000), 4000), Heard::Again);
    let lines = live.lines(&id());
    assert_eq!(lines.len(), 1);
    assert!(lines[0].open);
    assert_eq!(
        (
            lines[0].sent_bytes,
            lines[0].received_bytes,
            lines[0].open_ms
        ),
        (600, 6000, 3000)
    );
    let now = live.traffic(&id(), 4000);
    assert_eq!((now.sent_per_second, now.received_per_second), (100, 1000));
    assert_eq!(now.open, 1);
    let process = NetProcess {
        name: "curl".to_owned(),
        pid: 7,
    };
    assert!(live.found(&open(1, 0, 0), &process));
    assert_eq!(live.lines(&id())[0].process, Some(process.clone()));
    assert_eq!(
        live.close(&passed(vec![1], 660, 6000), 5000),
        Some(process.clone())
    );
    assert_eq!(live.lines(&id()), []);
    assert!(!live.found(&open(1, 0, 0), &process), "too late");
    // What was told before is not counted twice.
    let after = live.traffic(&id(), 5000);
    assert_eq!(
        (after.sent_per_second, after.received_per_second),
        (110, 1000)
    );
    let later = live.traffic(&id(), 5000 + RATE_MS + 1);
    assert_eq!((later.sent_per_second, later.open), (0, 0));
}

#[test]
fn a_connection_whose_end_was_not_told_goes_by_itself() {
    let live = Live::default();
    live.hear(open(1, 0, 0), 1000);
    live.hear(open(2, 0, 0), 1000 + SILENT_MS_MAX);
    assert_eq!(live.lines(&id()).len(), 1);
    live.forget(&id());
    assert_eq!(live.lines(&id()), []);
}

#[test]
fn what_is_known_of_a_box_is_bounded() {
    let live = Live::default();
    for connection in 0..OPEN_MAX as u64 + 10 {
        live.hear(open(connection, 1, 1), 1000);
    }
    assert_eq!(live.lines(&id()).len(), OPEN_MAX);
    let now = live.traffic(&id(), 1000);
    assert_eq!(now.sent_per_second, (OPEN_MAX as u64 + 10) / 6);
}
