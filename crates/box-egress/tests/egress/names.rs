//! What a box's resolver answers, and what is asked of the internet because of it: nothing.

use crate::client::REFUSAL;
use crate::world::{World, allow, name};
use box_api::egress::{Answer, Event, MappedName, Request};
use hickory_proto::op::ResponseCode;
use hickory_proto::rr::RecordType;
use std::net::Ipv4Addr;

const FIRST: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 16);

#[test]
fn names_are_answered_by_type_and_never_asked_upstream() {
    let mut world = World::start();
    world.rig.origin("ok.test");
    let inside = world.new_box(allow(&["ok.test"]), Vec::new());
    let (allowed, refused) = inside.run(|client| async move {
        (
            client.address_of("ok.test").await,
            client.address_of("c2VjcmV0.evil.test").await,
        )
    });
    assert_eq!((allowed, refused), (FIRST, REFUSAL));
    let outcome = |name: &'static str, kind: RecordType| {
        inside.run(move |client| async move {
            let answer = client.lookup(name, kind).await;
            (answer.metadata.response_code, answer.answers.len())
        })
    };
    for kind in [RecordType::AAAA, RecordType::HTTPS, RecordType::SVCB] {
        assert_eq!(
            outcome("ok.test", kind),
            (ResponseCode::NoError, 0),
            "{kind}"
        );
    }
    for kind in [
        RecordType::TXT,
        RecordType::MX,
        RecordType::CNAME,
        RecordType::ANY,
    ] {
        assert_eq!(
            outcome("ok.test", kind),
            (ResponseCode::Refused, 0),
            "{kind}"
        );
        assert_eq!(
            outcome("c2VjcmV0.evil.test", kind),
            (ResponseCode::Refused, 0),
            "{kind}"
        );
    }
    for local in ["localhost", "metadata.google.internal", "intranet"] {
        assert_eq!(
            outcome(local, RecordType::A),
            (ResponseCode::NXDomain, 0),
            "{local}"
        );
    }
    let over_tcp = inside.run(|client| async move {
        client
            .lookup_over_tcp("ok.test", RecordType::A)
            .await
            .answers
            .len()
    });
    assert_eq!(over_tcp, 1);
    assert_eq!(world.rig.queries().len(), 0);
    // The control: what is connected to is resolved.
    let seen = inside.run(|client| async move { client.get("ok.test", "/", &[]).await });
    assert_eq!(seen.status, 200);
    assert_eq!(world.rig.queries_for("ok.test"), 2);
    assert_eq!(world.rig.queries_for("c2vjcmv0.evil.test"), 0);
}

#[test]
fn map_is_told_and_taken_up_again() {
    let mut world = World::start();
    world.rig.origin("b.test");
    let known = MappedName {
        name: name("a.test"),
        addr: Ipv4Addr::new(198, 18, 7, 7),
    };
    let inside = world.new_box_with(
        allow(&["a.test", "b.test"]),
        Vec::new(),
        vec![known.clone()],
    );
    let (a, b) = inside.run(|client| async move {
        (
            client.address_of("a.test").await,
            client.address_of("b.test").await,
        )
    });
    assert_eq!((a, b), (known.addr, Ipv4Addr::new(198, 18, 7, 8)));
    let told = world.host.event(|event| match event {
        Event::Mapped { name, addr, .. } => Some((name.to_string(), *addr)),
        _ => None,
    });
    assert_eq!(told, ("b.test".to_owned(), b));
    let answer = world.host.call(Request::Map { box_id: inside.id });
    let Answer::Map { mut map } = answer else {
        panic!("{answer:?}")
    };
    map.sort_by_key(|mapped| mapped.addr);
    assert_eq!(
        map,
        [
            known,
            MappedName {
                name: name("b.test"),
                addr: b
            }
        ]
    );
}

#[test]
fn boxes_do_not_share_their_names() {
    let mut world = World::start();
    let a = world.new_box(allow(&["a.test"]), Vec::new());
    let b = world.new_box(allow(&["b.test"]), Vec::new());
    let of_a = a.run(|client| async move { client.address_of("a.test").await });
    let of_b = b.run(|client| async move { client.address_of("b.test").await });
    assert_eq!((of_a, of_b), (FIRST, FIRST));
    let other = b.run(|client| async move { client.address_of("a.test").await });
    assert_eq!(other, REFUSAL);
}
