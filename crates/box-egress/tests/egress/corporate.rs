//! What a company puts between its machines and the internet: a proxy with a login, resolvers that
//! are asked over TLS.

use crate::world::{PLACEHOLDER_A, World, allow, bound, name};
use box_api::egress::upstream::{Direct, ProxyHost, Told};
use box_api::egress::{
    Answer, Configuration, Event, Network, Policy, PrivateEntry, Reason, SecureResolver,
    UpstreamProxy,
};
use box_fakes::rig::{self, Listener, StrictProxy};
use std::net::{IpAddr, SocketAddr};
use tokio::io::AsyncReadExt as _;

const LOGIN: &[u8] = b"agent:S3CRET-of-the-proxy";
/// `LOGIN`, in base64.
const AUTHORIZATION: &str = "Basic YWdlbnQ6UzNDUkVULW9mLXRoZS1wcm94eQ==";

/// A proxy at `proxy.corp.test`, on a private address.
fn proxy(told: Told, direct: &[&str]) -> UpstreamProxy {
    UpstreamProxy {
        host: ProxyHost::Name(name("proxy.corp.test")),
        port: 3129,
        login_bytes: u32::try_from(LOGIN.len()).unwrap(),
        direct: direct
            .iter()
            .map(|text| Direct::parse(text).unwrap())
            .collect(),
        told,
    }
}

fn behind(spec: UpstreamProxy, login: &[u8]) -> World {
    let mut world = World::start();
    world
        .rig
        .proxy(StrictProxy {
            port: 3129,
            authorization: AUTHORIZATION.to_owned(),
            refused: vec!["45.33.32.99:443".to_owned()],
        })
        .unwrap();
    lead(&world, "proxy.corp.test", "10.9.8.7");
    let configuration = Configuration {
        proxy: Some(spec),
        ..world.configuration()
    };
    assert_eq!(world.configure_as(configuration, login), Answer::Done);
    world
}

fn lead(world: &World, name: &str, address: &str) {
    let address: IpAddr = address.parse().unwrap();
    world.rig.zone(name, rig::Answer::addresses([address]));
}

#[test]
fn everything_goes_through_the_proxy_to_the_address_that_was_judged() {
    let mut world = behind(proxy(Told::Address, &[]), LOGIN);
    let ok = world.rig.origin("ok.test").address;
    let cred = world.rig.origin("cred.test").address;
    world
        .rig
        .listen(2222, Listener::Greeting(b"SSH-2.0-x\r\n".to_vec()))
        .unwrap();
    lead(&world, "inner.test", "10.0.0.1");
    let listed = ["ok.test", "cred.test", "ok.test:2222", "inner.test"];
    let inside = world.new_box(allow(&listed), bound(PLACEHOLDER_A));
    let seen = inside.run(|client| async move {
        let tls = client.get("ok.test", "/a", &[]).await;
        let bearer = format!("Bearer {PLACEHOLDER_A}");
        let opened = client
            .get("cred.test", "/b", &[("authorization", &bearer)])
            .await;
        let mut greeting = [0; 11];
        let mut ssh = client.tunnel("ok.test:2222").await.unwrap();
        ssh.read_exact(&mut greeting).await.unwrap();
        let inner = client.tunnel("inner.test:443").await.unwrap_err();
        (
            tls.status,
            opened.status,
            greeting,
            inner.reason().to_owned(),
        )
    });
    assert_eq!(
        seen,
        (200, 200, *b"SSH-2.0-x\r\n", "private_address".to_owned())
    );
    assert_eq!(
        world.rig.tunnels(),
        [
            format!("{ok}:443"),
            format!("{cred}:443"),
            format!("{ok}:2222")
        ]
    );
    // Who we are to the proxy is the proxy's to know.
    let answer = world.host.call(box_api::egress::Request::Status);
    assert!(matches!(answer, Answer::Status(_)));
    let secret = b"S3CRET-of-the-proxy";
    let holds = |bytes: &[u8]| bytes.windows(secret.len()).any(|window| window == secret);
    assert!(!holds(&world.host.heard) && !holds(&world.log()));
    assert!(
        world
            .rig
            .all_requests()
            .iter()
            .all(|request| { request.header("proxy-authorization").is_none() })
    );
}

#[test]
fn proxy_that_does_not_connect_is_told_as_such() {
    for (login, host, why) in [
        (
            b"agent:wrong".as_slice(),
            "ok.test",
            "the proxy answered 407",
        ),
        (LOGIN, "closed.test", "the proxy answered 403"),
    ] {
        let mut spec = proxy(Told::Address, &[]);
        spec.login_bytes = u32::try_from(login.len()).unwrap();
        let mut world = behind(spec, login);
        world.rig.origin("ok.test");
        lead(&world, "closed.test", "45.33.32.99");
        let inside = world.new_box(allow(&["ok.test", "closed.test"]), Vec::new());
        let seen = inside.run(move |client| async move {
            let refused = client.tunnel(&format!("{host}:443")).await.unwrap_err();
            (refused.status, refused.reason().to_owned())
        });
        assert_eq!(seen, (502, "upstream_proxy".to_owned()));
        let rule = world.host.event(|event| match event {
            Event::Refused(refusal) if refusal.reason == Reason::UpstreamProxy => {
                refusal.rule.clone()
            }
            _ => None,
        });
        assert_eq!(rule, why);
    }
}

#[test]
fn proxy_that_is_away_leaves_no_other_way() {
    let mut spec = proxy(Told::Address, &[]);
    spec.port = 3130;
    let mut world = behind(spec, LOGIN);
    let ok = world.rig.origin("ok.test").address;
    let inside = world.new_box(allow(&["ok.test"]), Vec::new());
    let reason = inside.run(|client| async move {
        client
            .tunnel("ok.test:443")
            .await
            .unwrap_err()
            .reason()
            .to_owned()
    });
    assert_eq!(reason, "upstream_proxy");
    assert_eq!(world.rig.accepts(SocketAddr::new(ok, 443)), 0);
}

#[test]
fn hosts_of_no_proxy_are_reached_without_it() {
    let mut world = behind(proxy(Told::Address, &["direct.test", "9.9.0.0/16"]), LOGIN);
    world.rig.origin("a.direct.test");
    lead(&world, "by-network.test", "9.9.9.9");
    let ok = world.rig.origin("ok.test").address;
    let listed = ["a.direct.test", "by-network.test", "ok.test"];
    let inside = world.new_box(allow(&listed), Vec::new());
    let seen = inside.run(move |client| async move {
        let mut seen = Vec::new();
        for name in listed {
            seen.push(client.get(name, "/", &[]).await.status);
        }
        seen
    });
    assert_eq!(seen, [200, 200, 200]);
    assert_eq!(world.rig.tunnels(), [format!("{ok}:443")]);
}

#[test]
fn proxy_that_is_told_names_resolves_them_unless_an_address_must_be_judged() {
    let mut world = behind(proxy(Told::Name, &[]), LOGIN);
    let ok = world.rig.origin("ok.test").address;
    lead(&world, "db.corp.test", "10.1.2.3");
    world
        .rig
        .listen(5432, Listener::Greeting(b"x".to_vec()))
        .unwrap();
    let inside = world.new_box(allow(&["ok.test"]), Vec::new());
    let status = inside.run(|client| async move { client.get("ok.test", "/", &[]).await.status });
    assert_eq!(status, 200);
    assert_eq!(world.rig.tunnels(), ["ok.test:443"]);
    assert_eq!(world.rig.queries_for("ok.test"), 0);
    let careful = Policy {
        deny_networks: vec![Network::parse("8.8.4.0/24").unwrap()],
        private: vec![PrivateEntry::parse("db.corp.test:5432").unwrap()],
        ..allow(&["ok.test"])
    };
    let careful = world.new_box(careful, Vec::new());
    let status = careful.run(|client| async move {
        drop(client.tunnel("db.corp.test:5432").await.unwrap());
        client.get("ok.test", "/", &[]).await.status
    });
    assert_eq!(status, 200);
    assert_eq!(
        world.rig.tunnels(),
        [
            "ok.test:443".to_owned(),
            "10.1.2.3:5432".to_owned(),
            format!("{ok}:443")
        ]
    );
}

/// Why `ok.test` is not reached by way of this resolver; empty when it is.
fn reached_by(resolver: &str) -> (String, Vec<String>, usize) {
    let mut world = World::start();
    world.rig.origin("ok.test");
    world.rig.secure_dns("dns.test", (853, 8443)).unwrap();
    let configuration = Configuration {
        secure_resolvers: vec![SecureResolver::parse(resolver).unwrap()],
        ..world.configuration()
    };
    assert_eq!(world.configure_as(configuration, b""), Answer::Done);
    let inside = world.new_box(allow(&["ok.test"]), Vec::new());
    let reason = inside.run(|client| async move {
        let tunnel = client.tunnel("ok.test:443").await;
        tunnel.map_or_else(|seen| seen.reason().to_owned(), |_| String::new())
    });
    let secretly = world.rig.asked_secretly();
    let in_all = world.rig.queries_for("ok.test");
    (reason, secretly, in_all)
}

#[test]
fn names_are_asked_for_over_tls_or_https_and_nowhere_else() {
    for resolver in [
        "tls://45.33.32.54#dns.test",
        "https://45.33.32.54:8443/dns-query#dns.test",
    ] {
        let (reason, mut secretly, in_all) = reached_by(resolver);
        assert_eq!(reason, "", "{resolver}");
        // Every query there was came over TLS.
        assert_eq!(secretly.len(), in_all, "{resolver}");
        secretly.dedup();
        assert_eq!(secretly, ["ok.test"], "{resolver}");
    }
}

#[test]
fn resolver_that_does_not_prove_who_it_is_is_not_asked() {
    for resolver in [
        "tls://45.33.32.54#other.test",
        "https://45.33.32.54:8443/dns-query#other.test",
    ] {
        let (reason, secretly, in_all) = reached_by(resolver);
        assert_eq!(reason, "dns", "{resolver}");
        assert_eq!((secretly.len(), in_all), (0, 0), "{resolver}");
    }
}
