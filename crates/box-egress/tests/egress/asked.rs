//! Hosts that are not listed, while somebody is there to be asked; and what the host is told of
//! connections that went through.

use crate::client::Seen;
use crate::inside::Inside;
use crate::world::{PLACEHOLDER_A, World, allow, bound, name};
use box_api::egress::policy::Unlisted;
use box_api::egress::{Event, HostPattern, Passed, Policy, Request};
use std::sync::mpsc::Receiver;

fn asking(policy: Policy) -> Policy {
    Policy {
        unlisted: Unlisted::Ask,
        ..policy
    }
}

/// Begins `GET https://new.test/` and waits until the host was asked about it.
fn held(world: &mut World, inside: &Inside) -> Receiver<Option<Seen>> {
    let seen = inside.begin(|client| async move { client.get("new.test", "/", &[]).await });
    let (host, port) = world.host.event(|event| match event {
        Event::Asked {
            box_id, host, port, ..
        } if *box_id == inside.id => Some((host.clone(), *port)),
        _ => None,
    });
    assert_eq!((host.as_str(), port), ("new.test", 443));
    assert_eq!(world.rig.requests("new.test").len(), 0, "nothing went out");
    assert_eq!(world.rig.queries_for("new.test"), 0, "nothing was asked");
    seen
}

#[test]
fn held_connection_goes_on_when_its_host_is_allowed() {
    let mut world = World::start();
    world.rig.origin("new.test");
    let inside = world.new_box(asking(allow(&["ok.test"])), Vec::new());
    let seen = held(&mut world, &inside);
    world.host.done(Request::SetPolicy {
        box_id: inside.id,
        policy: asking(allow(&["ok.test", "new.test"])),
    });
    assert_eq!(Inside::outcome(&seen).status, 200, "the client saw nothing");
}

#[test]
fn held_connection_goes_on_when_it_is_let_through_once() {
    let mut world = World::start();
    world.rig.origin("new.test");
    let inside = world.new_box(asking(allow(&["ok.test"])), Vec::new());
    let seen = held(&mut world, &inside);
    world.host.done(Request::AllowOnce {
        box_id: inside.id,
        host: name("new.test"),
        port: 443,
    });
    assert_eq!(Inside::outcome(&seen).status, 200);
    let passed = passed(&mut world, &inside, "new.test");
    assert_eq!(passed.rule, "once");
    // Another box was let through to nothing.
    let other = world.new_box(allow(&["ok.test"]), Vec::new());
    let refused = other.run(|client| async move { client.get("new.test", "/", &[]).await });
    assert_eq!((refused.status, refused.reason()), (451, "not_listed"));
}

#[test]
fn answer_that_came_late_holds_for_the_next_attempt() {
    let mut world = World::start();
    world.rig.origin("new.test");
    let inside = world.new_box(allow(&["ok.test"]), Vec::new());
    let get = |inside: &Inside| {
        inside.run(|client| async move { client.get("new.test", "/", &[]).await })
    };
    assert_eq!(get(&inside).reason(), "not_listed");
    world.host.done(Request::AllowOnce {
        box_id: inside.id,
        host: name("new.test"),
        port: 443,
    });
    assert_eq!(get(&inside).status, 200);
}

#[test]
fn held_connection_is_refused_when_its_host_is_denied() {
    let mut world = World::start();
    world.rig.origin("new.test");
    let inside = world.new_box(asking(allow(&["ok.test"])), Vec::new());
    let seen = held(&mut world, &inside);
    let mut policy = asking(allow(&["ok.test"]));
    policy.deny.push(HostPattern::parse("new.test").unwrap());
    world.host.done(Request::SetPolicy {
        box_id: inside.id,
        policy,
    });
    let seen = Inside::outcome(&seen);
    assert_eq!((seen.status, seen.reason()), (451, "denied"));
}

#[test]
fn held_connection_is_refused_at_once_when_nobody_is_left_to_ask() {
    let mut world = World::start();
    world.rig.origin("new.test");
    let inside = world.new_box(asking(allow(&["ok.test"])), Vec::new());
    let seen = held(&mut world, &inside);
    world.host.done(Request::SetPolicy {
        box_id: inside.id,
        policy: allow(&["ok.test"]),
    });
    let seen = Inside::outcome(&seen);
    assert_eq!((seen.status, seen.reason()), (451, "not_listed"));
}

#[test]
fn what_a_policy_forbids_for_good_is_never_asked_about() {
    let mut world = World::start();
    world.rig.origin("ok.test");
    world.rig.origin("bad.test");
    let mut policy = asking(allow(&["ok.test"]));
    policy.deny.push(HostPattern::parse("bad.test").unwrap());
    let inside = world.new_box(policy, Vec::new());
    for (authority, why) in [
        ("bad.test:443", "denied"),
        ("ok.test:22", "port"),
        ("localhost:443", "local_name"),
        ("10.0.0.1:443", "ip_literal"),
    ] {
        let seen = inside.run(move |client| async move { client.tunnel(authority).await.err() });
        assert_eq!(seen.unwrap().reason(), why, "{authority}");
    }
    // The control: the next thing the host hears of is the one it is asked about.
    drop(inside.begin(|client| async move { client.get("new.test", "/", &[]).await }));
    let asked = world.host.event(|event| match event {
        Event::Asked { host, .. } => Some(host.clone()),
        _ => None,
    });
    assert_eq!(asked.as_str(), "new.test");
    world.host.done(Request::SetPolicy {
        box_id: inside.id,
        policy: Policy::nothing(),
    });
}

fn passed(world: &mut World, inside: &Inside, host: &str) -> Passed {
    // The client's own task closes the connection, and runs while something runs in the box.
    inside.run(|_| async {
        for _ in 0..16 {
            tokio::task::yield_now().await;
        }
    });
    world.host.event(|event| match event {
        Event::Passed(passed) if passed.host.as_str() == host => Some(passed.clone()),
        _ => None,
    })
}

#[test]
fn host_is_told_what_each_connection_carried() {
    let mut world = World::start();
    world.rig.origin("ok.test");
    world.rig.origin("cred.test");
    let inside = world.new_box(allow(&["ok.test"]), bound(PLACEHOLDER_A));
    let seen =
        inside.run(|client| async move { client.get("ok.test", "/bytes/3000000", &[]).await });
    assert_eq!(seen.body.len(), 3_000_000);
    let tunnelled = passed(&mut world, &inside, "ok.test");
    assert_eq!(tunnelled.rule, "allow ok.test");
    assert_eq!(tunnelled.credential, None);
    assert!(tunnelled.received_bytes > 3_000_000, "{tunnelled:?}");
    assert!(
        (100..100_000).contains(&tunnelled.sent_bytes),
        "{tunnelled:?}"
    );
    let seen = inside.run(|client| async move {
        client
            .get(
                "cred.test",
                "/bytes/3000000",
                &[("x-api-key", PLACEHOLDER_A)],
            )
            .await
    });
    assert_eq!(seen.body.len(), 3_000_000);
    let opened = passed(&mut world, &inside, "cred.test");
    assert_eq!(opened.rule, "credential");
    assert_eq!(opened.credential.as_deref(), Some("claude:default"));
    assert!(opened.received_bytes > 3_000_000, "{opened:?}");
    assert!(opened.ended_at_ms >= opened.began_at_ms);
}
