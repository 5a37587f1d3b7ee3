//! What is told of a flood.

use super::*;
use crate::events::{EventQueue, queue};
use box_api::BoxId;
use box_api::egress::usage::Tokens;
use std::time::Duration;

fn refusal(host: &str, at_ms: i64) -> Event {
    Event::Refused(Refusal {
        box_id: BoxId::from_random([1; 10]),
        host: host.to_owned(),
        port: 443,
        reason: Reason::NotListed,
        rule: None,
        at_ms,
        times: 1,
        entrance: None,
    })
}

fn passed(connection: u64) -> Event {
    Event::Passed(Passed {
        box_id: BoxId::from_random([1; 10]),
        host: HostName::parse("ok.test").unwrap(),
        port: 443,
        rule: "allow ok.test".to_owned(),
        credential: None,
        sent_bytes: 10,
        received_bytes: 100,
        began_at_ms: 0,
        ended_at_ms: 1,
        connections: vec![connection],
        times: 1,
        entrance: None,
        address: None,
        open_ms: 5,
        exchanges: Vec::new(),
    })
}

/// What is told by now.
fn told(queue: &mut EventQueue) -> Vec<Event> {
    std::iter::from_fn(|| queue.try_next()).collect()
}

fn times(events: &[Event], of: &str) -> u64 {
    #[expect(clippy::wildcard_enum_match_arm, reason = "these two are counted")]
    let counts = events.iter().map(|event| match event {
        Event::Refused(refusal) if refusal.host == of => refusal.times,
        Event::Passed(passed) if passed.host.as_str() == of => passed.times,
        _ => 0,
    });
    counts.sum()
}

#[test]
fn a_flood_is_told_in_few_events_and_no_refusal_of_it_is_lost() {
    let (events, mut queue) = queue();
    let (telling, start) = (Telling::new(events), Instant::now());
    for at in 0..10_000 {
        telling.tell(refusal("evil.test", at), start);
        telling.tell(passed(at.unsigned_abs()), start);
    }
    let first = told(&mut queue);
    assert_eq!(first.len(), limits::EVENTS_BURST as usize);
    telling.catch_up(start + Duration::from_secs(1));
    let rest = told(&mut queue);
    assert_eq!(rest.len(), 2, "{rest:?}");
    for host in ["evil.test", "ok.test"] {
        assert_eq!(times(&first, host) + times(&rest, host), 10_000, "{host}");
    }
    assert_eq!(queue.lost(), 0);
    let Some(Event::Passed(last)) = rest.iter().find(|event| matches!(event, Event::Passed(_)))
    else {
        panic!("what passed is told");
    };
    assert_eq!(last.sent_bytes, last.times * 10);
    assert_eq!(last.connections.len(), CONNECTIONS_MAX);
}

#[test]
fn what_waits_is_bounded_and_the_rest_counts_as_lost() {
    let (events, mut queue) = queue();
    let (telling, start) = (Telling::new(events), Instant::now());
    let hosts = limits::EVENTS_BURST as usize + KINDS_MAX + 7;
    for number in 0..hosts {
        telling.tell(refusal(&format!("h{number}.test"), 0), start);
    }
    assert_eq!(queue.lost(), 7);
    drop(told(&mut queue));
    drop(telling);
    assert_eq!(told(&mut queue).len(), KINDS_MAX, "told when the box ends");
}

#[test]
fn open_connections_push_out_nothing_else() {
    let (events, mut queue) = queue();
    let (telling, start) = (Telling::new(events), Instant::now());
    for _ in 0..10_000 {
        telling.tell_open(passed(1), start);
    }
    drop(told(&mut queue));
    telling.tell(refusal("evil.test", 0), start);
    assert_eq!(times(&told(&mut queue), "evil.test"), 1);
}

fn used(conversation: u64) -> Event {
    Event::Used(ModelUse {
        box_id: BoxId::from_random([1; 10]),
        host: HostName::parse("ok.test").unwrap(),
        credential: "claude".to_owned(),
        model: "m".to_owned(),
        conversation: Some(format!("made-up-{conversation}")),
        tokens: Tokens {
            input: 1,
            ..Tokens::default()
        },
        answers: 1,
        unread: 0,
        at_ms: 0,
    })
}

#[test]
fn what_a_model_cost_is_told_whatever_else_a_box_does() {
    let (events, mut queue) = queue();
    let (telling, start) = (Telling::new(events), Instant::now());
    for number in 0..10_000_u64 {
        telling.tell(refusal(&format!("h{number}.test"), 0), start);
        telling.tell(used(number), start);
    }
    let mut all = told(&mut queue);
    drop(telling);
    all.extend(told(&mut queue));
    #[expect(clippy::wildcard_enum_match_arm, reason = "this one is counted")]
    let inputs = all.iter().map(|event| match event {
        Event::Used(used) => used.tokens.input,
        _ => 0,
    });
    assert_eq!(inputs.sum::<u64>(), 10_000);
}
