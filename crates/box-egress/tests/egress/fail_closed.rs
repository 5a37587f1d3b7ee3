//! Whatever is missing closes the way out; nothing opens it.

use crate::world::{PLACEHOLDER_A, SECRET, World, allow, bound};
use box_api::egress::{Answer, Configuration, Request};

#[test]
fn without_configuration_everything_is_refused() {
    let mut world = World::start_empty();
    world.rig.origin("ok.test");
    let inside = world.new_box(allow(&["ok.test"]), Vec::new());
    let refused = inside
        .run(|client| async move { client.tunnel("ok.test:443").await.map(drop).unwrap_err() });
    assert_eq!((refused.status, refused.reason()), (503, "no_policy"));
    let direct = inside.run(|client| async move {
        let stream = client.connect("ok.test", 80).await;
        client
            .raw(stream, b"GET / HTTP/1.1\r\nHost: ok.test\r\n\r\n")
            .await
    });
    assert_eq!((direct.status, direct.reason()), (503, "no_policy"));
    assert_eq!(world.rig.queries().len(), 0);
    world.configure();
    let control = inside.run(|client| async move { client.tunnel("ok.test:443").await.is_ok() });
    assert!(control);
}

#[test]
fn box_that_is_not_registered_gets_no_answer_until_it_is() {
    let mut world = World::start();
    world.rig.origin("ok.test");
    let inside = world.unregistered_box();
    let early = inside.run(|client| async move {
        let soon = std::time::Duration::from_millis(200);
        tokio::time::timeout(soon, client.tunnel("ok.test:443"))
            .await
            .is_ok()
    });
    assert!(!early);
    let answer = world.register(&inside, allow(&["ok.test"]), Vec::new(), Vec::new());
    assert_eq!(answer, Answer::Done);
    let control = inside.run(|client| async move { client.tunnel("ok.test:443").await.is_ok() });
    assert!(control);
}

#[test]
fn without_a_ca_hosts_with_a_credential_are_closed_and_never_tunnelled() {
    let mut world = World::start();
    world.rig.origin("cred.test");
    world.rig.origin("ok.test");
    let inside = world.new_box(allow(&["cred.test", "ok.test"]), bound(PLACEHOLDER_A));
    let without = Configuration {
        ca_cert_pem: None,
        ..world.configuration()
    };
    world.host.done(Request::Configure(without));
    let refused = inside
        .run(|client| async move { client.tunnel("cred.test:443").await.map(drop).unwrap_err() });
    assert_eq!((refused.status, refused.reason()), (503, "no_ca"));
    let direct = inside.run(|client| async move {
        let stream = client.connect("cred.test", 443).await;
        client
            .tls(stream, "cred.test", &[])
            .await
            .map(drop)
            .map_err(|error| error.to_string())
    });
    assert!(direct.unwrap_err().contains("UnrecognisedName"));
    assert_eq!(world.rig.accepts_in_all(), 0);
    let control = inside.run(|client| async move { client.get("ok.test", "/", &[]).await });
    assert_eq!(control.status, 200);
}

#[test]
fn unusable_configuration_is_refused_and_leaves_what_was() {
    let mut world = World::start();
    world.rig.origin("cred.test");
    let inside = world.new_box(allow(&["cred.test"]), bound(PLACEHOLDER_A));
    let request = Request::Configure(world.configuration());
    let answer = world.host.call_with(request, b"not a key", &[]);
    assert!(matches!(answer, Answer::Refused { .. }), "{answer:?}");
    let seen = inside.run(|client| async move {
        client
            .get("cred.test", "/", &[("x-api-key", PLACEHOLDER_A)])
            .await
    });
    assert_eq!(seen.status, 200);
    assert_eq!(
        world.rig.requests("cred.test")[0].header("x-api-key"),
        Some(SECRET)
    );
}
