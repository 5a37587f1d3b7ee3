//! Hosts with a credential: what is swapped, what is refused, what comes back.

use crate::client::{request, send_http1};
use crate::world::{
    PLACEHOLDER_A, PLACEHOLDER_B, SECRET, World, allow, bound, credential, name, open,
};
use box_api::egress::{Answer, Binding, Event, Reason, Request};
use box_fakes::rig::{LeafKind, Reply};

const BEARER_A: (&str, &str) = (
    "authorization",
    "Bearer sk-ant-oat01-PLACEHOLDER-of-box-a-0000000000",
);

fn with_secret() -> String {
    format!("Bearer {SECRET}")
}

#[test]
fn placeholder_is_swapped_and_the_host_sees_the_real_token() {
    let mut world = World::start();
    world.rig.origin("cred.test");
    let inside = world.new_box(allow(&["cred.test"]), bound(PLACEHOLDER_A));
    let http1 =
        inside.run(|client| async move { client.get("cred.test", "/a", &[BEARER_A]).await });
    assert_eq!(
        (http1.status, http1.body.as_str()),
        (200, "hello from cred.test\n")
    );
    let http2 =
        inside.run(|client| async move { client.get_http2("cred.test", "/b", &[BEARER_A]).await });
    assert_eq!(http2.status, 200);
    let key = [("x-api-key", PLACEHOLDER_A)];
    let tunnelled = inside.run(move |client| async move {
        let stream = client.tunnel("cred.test:443").await.unwrap();
        let stream = client
            .tls(stream, "cred.test", &["http/1.1"])
            .await
            .unwrap();
        send_http1(stream, request("GET", "cred.test", "/c", &key))
            .await
            .unwrap()
    });
    assert_eq!(tunnelled.status, 200);
    let requests = world.rig.requests("cred.test");
    let seen: Vec<_> = requests
        .iter()
        .map(|r| (r.path.as_str(), r.credentials()))
        .collect();
    let (bearer, secret) = (with_secret(), SECRET);
    assert_eq!(
        seen,
        [
            ("/a", vec![("authorization", bearer.as_str())]),
            ("/b", vec![("authorization", bearer.as_str())]),
            ("/c", vec![("x-api-key", secret)]),
        ]
    );
    assert!(
        requests
            .iter()
            .all(|request| request.sni.as_deref() == Some("cred.test"))
    );
}

#[test]
fn leaf_of_the_deployments_ca_is_shown_only_for_hosts_with_a_credential() {
    let mut world = World::start();
    world.rig.origin("cred.test");
    world.rig.origin("ok.test");
    let inside = world.new_box(allow(&["cred.test", "ok.test"]), bound(PLACEHOLDER_A));
    let shown = |host: &'static str| {
        inside.run(move |client| async move {
            let stream = client.connect(host, 443).await;
            let stream = client.tls(stream, host, &[]).await.unwrap();
            stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
        })
    };
    // The rig's certificates name their issuer; ours are of a CA without a name.
    let (ours, theirs) = (shown("cred.test"), shown("ok.test"));
    let issuer = world.rig.ca_pem().to_owned();
    assert_ne!(ours, theirs);
    assert!(!issuer.is_empty());
    let direct = inside.run(|client| async move { client.get("ok.test", "/", &[BEARER_A]).await });
    assert_eq!(direct.status, 200);
    // Unread: the placeholder arrives there as it is, and is worth nothing.
    assert_eq!(
        world.rig.requests("ok.test")[0].header("authorization"),
        Some(BEARER_A.1)
    );
}

#[test]
fn foreign_credential_is_refused_in_every_place_it_can_stand() {
    let mut world = World::start();
    world.rig.origin("cred.test");
    let inside = world.new_box(allow(&["cred.test"]), bound(PLACEHOLDER_A));
    for (path, headers) in [
        ("/", vec![("authorization", "Bearer sk-ant-attacker")]),
        ("/", vec![("x-api-key", "attacker")]),
        ("/", vec![BEARER_A, ("x-api-key", "attacker")]),
        ("/", vec![BEARER_A, ("authorization", "Bearer attacker")]),
        ("/", vec![BEARER_A, ("cookie", "session=attacker")]),
        ("/?api_key=attacker", vec![BEARER_A]),
    ] {
        for version in [1, 2] {
            let headers = headers.clone();
            let seen = inside.run(move |client| async move {
                match version {
                    1 => client.get("cred.test", path, &headers).await,
                    _ => client.get_http2("cred.test", path, &headers).await,
                }
            });
            assert_eq!(
                (seen.status, seen.reason()),
                (403, "foreign_credential"),
                "{path}"
            );
            assert!(seen.body.contains("cred.test"), "{}", seen.body);
        }
    }
    assert_eq!(world.rig.requests("cred.test").len(), 0);
    let control =
        inside.run(|client| async move { client.get("cred.test", "/", &[BEARER_A]).await });
    assert_eq!(control.status, 200);
    let plain = inside.run(|client| async move { client.get("cred.test", "/", &[]).await });
    assert_eq!(plain.status, 200);
    assert_eq!(world.rig.requests("cred.test")[1].credentials(), []);
}

#[test]
fn placeholder_of_another_box_is_refused_and_told() {
    let mut world = World::start();
    world.rig.origin("cred.test");
    let a = world.new_box(allow(&["cred.test"]), bound(PLACEHOLDER_A));
    let b = world.new_box(allow(&["cred.test"]), bound(PLACEHOLDER_B));
    let stolen = a.run(|client| async move {
        client
            .get("cred.test", "/", &[("x-api-key", PLACEHOLDER_B)])
            .await
    });
    assert_eq!(
        (stolen.status, stolen.reason()),
        (403, "foreign_placeholder")
    );
    let (thief, owner) = world.host.event(|event| match event {
        Event::ForeignPlaceholder {
            box_id, belongs_to, ..
        } => Some((*box_id, *belongs_to)),
        _ => None,
    });
    assert_eq!((thief, owner), (a.id, b.id));
    let own = b.run(|client| async move {
        client
            .get("cred.test", "/", &[("x-api-key", PLACEHOLDER_B)])
            .await
    });
    assert_eq!(own.status, 200);
    assert_eq!(world.rig.requests("cred.test").len(), 1);
}

#[test]
fn placeholder_is_refused_at_other_hosts() {
    let mut world = World::start();
    world.rig.origin("cred.test");
    world.rig.origin("git.test");
    world.add_credential("git", &["git.test"], "github_pat_another-secret");
    let git = Binding {
        placeholder: "github_pat_PLACEHOLDER-of-box-a".into(),
        credential: "git".into(),
        hosts: vec![name("git.test")],
        github: None,
    };
    let bindings = [bound(PLACEHOLDER_A), vec![git]].concat();
    let inside = world.new_box(allow(&["cred.test", "git.test"]), bindings);
    let crossed =
        inside.run(|client| async move { client.get("git.test", "/", &[BEARER_A]).await });
    assert_eq!(
        (crossed.status, crossed.reason()),
        (403, "foreign_placeholder")
    );
    let token = [("authorization", "token github_pat_PLACEHOLDER-of-box-a")];
    let right = inside.run(move |client| async move { client.get("git.test", "/", &token).await });
    assert_eq!(right.status, 200);
    let seen = world.rig.requests("git.test");
    assert_eq!(
        seen[0].header("authorization"),
        Some("token github_pat_another-secret")
    );
}

#[test]
fn request_that_names_another_host_inside_is_misdirected() {
    let mut world = World::start();
    world.rig.origin("cred.test");
    world.rig.origin("evil.test");
    let inside = world.new_box(open(), bound(PLACEHOLDER_A));
    let over = |uri: &'static str, host: &'static str| {
        inside.run(move |client| async move {
            let stream = client.connect("cred.test", 443).await;
            let stream = client
                .tls(stream, "cred.test", &["http/1.1"])
                .await
                .unwrap();
            send_http1(stream, request("GET", host, uri, &[BEARER_A]))
                .await
                .unwrap()
        })
    };
    assert_eq!(over("/", "evil.test").status, 421);
    assert_eq!(over("/", "cred.test:8443").status, 421);
    assert_eq!(over("https://evil.test/", "cred.test").status, 421);
    assert_eq!(over("/", "cred.test").status, 200);
    let authority = inside.run(|client| async move {
        let stream = client.connect("cred.test", 443).await;
        let stream = client.tls(stream, "cred.test", &["h2"]).await.unwrap();
        let mut misdirected = request("GET", "x", "https://evil.test/", &[BEARER_A]);
        misdirected.headers_mut().remove("host");
        crate::client::send_http2(stream, misdirected)
            .await
            .unwrap()
    });
    assert_eq!(
        (authority.status, authority.reason()),
        (421, "host_mismatch")
    );
    assert_eq!(world.rig.requests("evil.test").len(), 0);
}

#[test]
fn methods_that_would_echo_the_credential_are_refused() {
    let mut world = World::start();
    world.rig.origin("cred.test");
    let inside = world.new_box(allow(&["cred.test"]), bound(PLACEHOLDER_A));
    let status = |method: &'static str| {
        inside.run(move |client| async move {
            let stream = client.connect("cred.test", 443).await;
            let stream = client
                .tls(stream, "cred.test", &["http/1.1"])
                .await
                .unwrap();
            send_http1(stream, request(method, "cred.test", "/", &[BEARER_A]))
                .await
                .unwrap()
                .status
        })
    };
    assert_eq!(status("TRACE"), 405);
    assert_eq!(status("TRACK"), 405);
    assert_eq!(status("OPTIONS"), 200);
}

#[test]
fn credential_that_comes_back_becomes_the_placeholder() {
    let mut world = World::start();
    world.rig.origin("cred.test");
    let echo = Reply::text(&format!("{{\"token\":\"{SECRET}\"}}"))
        .header("content-type", "application/json")
        .header("x-echo", &with_secret())
        .header("set-cookie", "session=of-the-owner")
        .header("set-cookie", "__cf_bm=harmless");
    world.rig.reply("cred.test", echo);
    let inside = world.new_box(allow(&["cred.test"]), bound(PLACEHOLDER_A));
    let seen = inside.run(|client| async move { client.get("cred.test", "/", &[BEARER_A]).await });
    assert_eq!(seen.body, format!("{{\"token\":\"{PLACEHOLDER_A}\"}}"));
    assert_eq!(seen.headers["x-echo"], BEARER_A.1);
    let cookies: Vec<_> = seen.headers.get_all("set-cookie").iter().collect();
    assert_eq!(cookies, ["__cf_bm=harmless"]);
    world
        .host
        .event(|event| matches!(event, Event::SecretReflected { .. }).then_some(()));
}

#[test]
fn host_that_does_not_prove_who_it_is_gets_nothing() {
    let mut world = World::start();
    world.rig.origin("cred.test");
    let inside = world.new_box(allow(&["cred.test"]), bound(PLACEHOLDER_A));
    for kind in [LeafKind::Expired, LeafKind::OtherName, LeafKind::SelfSigned] {
        world.rig.certificate("cred.test", kind);
        let seen =
            inside.run(|client| async move { client.get("cred.test", "/", &[BEARER_A]).await });
        assert_eq!(
            (seen.status, seen.reason()),
            (502, "upstream_tls"),
            "{kind:?}"
        );
    }
    assert_eq!(world.rig.requests("cred.test").len(), 0);
    world.rig.certificate("cred.test", LeafKind::default());
    let seen = inside.run(|client| async move { client.get("cred.test", "/", &[BEARER_A]).await });
    assert_eq!(seen.status, 200);
}

#[test]
fn host_with_a_credential_is_never_reached_over_plain_http() {
    let mut world = World::start();
    world.rig.origin("cred.test");
    world.rig.origin("ok.test");
    let policy = allow(&["cred.test", "ok.test", "cred.test:8443"]);
    let inside = world.new_box(policy, bound(PLACEHOLDER_A));
    let absolute = |host: &'static str| {
        inside.run(move |client| async move {
            let request = format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n");
            client.raw_proxy(request.as_bytes()).await
        })
    };
    let direct = |host: &'static str| {
        inside.run(move |client| async move {
            let stream = client.connect(host, 80).await;
            let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
            client.raw(stream, request.as_bytes()).await
        })
    };
    assert_eq!(
        (absolute("cred.test").status, absolute("cred.test").reason()),
        (403, "plain_http")
    );
    assert_eq!(
        (direct("cred.test").status, direct("cred.test").reason()),
        (451, "plain_http")
    );
    for authority in ["cred.test:80", "cred.test:8443"] {
        let refused = inside.run(move |client| async move {
            client.tunnel(authority).await.map(drop).unwrap_err()
        });
        assert_eq!(refused.status, 403, "{authority}");
    }
    assert_eq!(world.rig.requests("cred.test").len(), 0);
    assert_eq!(
        (absolute("ok.test").status, direct("ok.test").status),
        (200, 200)
    );
}

#[test]
fn removed_credential_closes_its_hosts() {
    let mut world = World::start();
    world.rig.origin("cred.test");
    let inside = world.new_box(allow(&["cred.test"]), bound(PLACEHOLDER_A));
    let get =
        || inside.run(|client| async move { client.get("cred.test", "/", &[BEARER_A]).await });
    assert_eq!(get().status, 200);
    world.host.done(Request::RemoveCredential {
        credential: crate::world::CREDENTIAL.into(),
    });
    let refused = get();
    assert_eq!(
        (refused.status, refused.reason()),
        (403, "credential_missing")
    );
    let foreign = inside.run(|client| async move {
        client
            .get("cred.test", "/", &[("x-api-key", "attacker")])
            .await
    });
    assert_eq!(
        (foreign.status, foreign.reason()),
        (403, "foreign_credential")
    );
    world.add_credential(
        crate::world::CREDENTIAL,
        &["cred.test"],
        "sk-ant-oat01-new-one",
    );
    assert_eq!(get().status, 200);
    let seen = world.rig.requests("cred.test");
    assert_eq!(
        seen[1].header("authorization"),
        Some("Bearer sk-ant-oat01-new-one")
    );
}

#[test]
fn credential_goes_only_to_the_hosts_it_names_itself() {
    let mut world = World::start();
    world.rig.origin("other.test");
    let mut bindings = bound(PLACEHOLDER_A);
    bindings[0].hosts.push(name("other.test"));
    let inside = world.new_box(allow(&["other.test"]), bindings);
    let seen = inside.run(|client| async move { client.get("other.test", "/", &[BEARER_A]).await });
    assert_eq!((seen.status, seen.reason()), (403, "credential_missing"));
    assert_eq!(world.rig.requests("other.test").len(), 0);
}

#[test]
fn unsound_credentials_and_placeholders_are_refused_when_they_are_given() {
    let mut world = World::start();
    let inside = world.new_box(allow(&[]), bound(PLACEHOLDER_A));
    let refused = |answer: Answer| matches!(answer, Answer::Refused { .. });
    for secret in ["", "two\r\nlines", "with space", "nul\0", PLACEHOLDER_A] {
        let request = Request::AddCredential(credential("x", &["x.test"]));
        assert!(
            refused(world.host.call_with(request, secret.as_bytes(), &[])),
            "{secret:?}"
        );
    }
    let mut bind = |placeholder: &str| {
        let binding = bound(placeholder).remove(0);
        world.host.call(Request::Bind {
            box_id: inside.id,
            binding,
        })
    };
    let part = &PLACEHOLDER_A[..30];
    for placeholder in ["short", "with space in between it", SECRET, part] {
        assert!(refused(bind(placeholder)), "{placeholder}");
    }
    assert_eq!(bind("sk-ant-oat01-another-placeholder-0"), Answer::Done);
}

#[test]
fn large_bodies_pass_through_whole() {
    let mut world = World::start();
    world.rig.origin("cred.test");
    let inside = world.new_box(allow(&["cred.test"]), bound(PLACEHOLDER_A));
    let down = inside.run(|client| async move {
        client
            .get("cred.test", "/bytes/20000000", &[BEARER_A])
            .await
    });
    assert_eq!(down.body.len(), 20_000_000);
    let up = inside.run(|client| async move {
        let stream = client.connect("cred.test", 443).await;
        let stream = client
            .tls(stream, "cred.test", &["http/1.1"])
            .await
            .unwrap();
        let mut request = request("POST", "cred.test", "/echo", &[BEARER_A]);
        *request.body_mut() = http_body_util::Full::from(vec![b'y'; 5_000_000]);
        send_http1(stream, request).await.unwrap()
    });
    assert_eq!(up.body.len(), 5_000_000);
    assert!(
        world
            .rig
            .requests("cred.test")
            .iter()
            .all(|request| request.complete)
    );
}

#[test]
fn client_that_does_not_trust_the_ca_is_seen() {
    let mut world = World::start();
    world.rig.origin("cred.test");
    let inside = world.new_box(allow(&["cred.test"]), bound(PLACEHOLDER_A));
    let internet = world.rig.ca_pem().to_owned();
    let failed = inside.run(move |client| async move {
        let stream = client.connect("cred.test", 443).await;
        let stranger = crate::client::Client::new(&internet);
        stranger.tls(stream, "cred.test", &[]).await.is_err()
    });
    assert!(failed);
    let host = world.host.event(|event| match event {
        Event::Refused(refusal) if refusal.reason == Reason::ClientTls => {
            Some(refusal.host.clone())
        }
        _ => None,
    });
    assert_eq!(host, "cred.test");
}
