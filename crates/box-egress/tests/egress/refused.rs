//! What does not go through, and what a program in the box is told.

use crate::client::{REFUSAL, request, send_http1};
use crate::inside::Inside;
use crate::world::{World, allow, open};
use box_api::egress::{Event, Reason, Refusal, Request};
use box_fakes::rig::Answer;
use std::net::IpAddr;
use std::process::Command;
use tokio::net::TcpStream;

fn refusal(world: &mut World, reason: Reason) -> Refusal {
    world.host.event(|event| match event {
        Event::Refused(refusal) if refusal.reason == reason => Some(refusal.clone()),
        _ => None,
    })
}

/// `CONNECT`; 200, or the status and the reason it was refused with.
fn connect(inside: &Inside, authority: &str) -> (u16, String) {
    let authority = authority.to_owned();
    inside.run(|client| async move {
        match client.tunnel(&authority).await {
            Ok(_) => (200, String::new()),
            Err(seen) => (seen.status, seen.reason().to_owned()),
        }
    })
}

#[test]
fn refused_name_is_told_why_under_its_own_certificate() {
    let mut world = World::start();
    world.rig.origin("evil.test");
    world.rig.origin("ok.test");
    let inside = world.new_box(allow(&["ok.test"]), Vec::new());
    let over_tls = inside.run(|client| async move { client.get("evil.test", "/", &[]).await });
    assert_eq!((over_tls.status, over_tls.reason()), (451, "not_listed"));
    let body: serde_json::Value = serde_json::from_str(&over_tls.body).unwrap();
    assert_eq!(body["error"]["reason"], "not_listed");
    assert_eq!(
        body["error"]["message"],
        "host evil.test is not on this box's list; the box's owner can allow it"
    );
    let http2 = inside.run(|client| async move { client.get_http2("evil.test", "/", &[]).await });
    assert_eq!((http2.status, http2.reason()), (451, "not_listed"));
    let plain = inside.run(|client| async move {
        let stream = client.connect("evil.test", 80).await;
        client
            .raw(stream, b"GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n")
            .await
    });
    assert_eq!((plain.status, plain.reason()), (451, "not_listed"));
    let told = refusal(&mut world, Reason::NotListed);
    assert_eq!((told.box_id, told.host.as_str()), (inside.id, "evil.test"));
    assert_eq!(world.rig.requests("evil.test").len(), 0);
    assert_eq!(world.rig.queries_for("evil.test"), 0);
    let control = inside.run(|client| async move { client.get("ok.test", "/", &[]).await });
    assert_eq!(control.status, 200);
}

#[test]
fn policy_that_changed_counts_at_once() {
    let mut world = World::start();
    world.rig.origin("evil.test");
    let inside = world.new_box(allow(&[]), Vec::new());
    let before = inside.run(|client| async move { client.get("evil.test", "/", &[]).await });
    assert_eq!(before.status, 451);
    world.host.done(Request::SetPolicy {
        box_id: inside.id,
        policy: allow(&["evil.test"]),
    });
    // A program may have kept the refusal address: it means the name that is asked for.
    let kept = inside.run(|client| async move {
        let stream = TcpStream::connect((REFUSAL, 443)).await.unwrap();
        let stream = client
            .tls(stream, "evil.test", &["http/1.1"])
            .await
            .unwrap();
        send_http1(stream, request("GET", "evil.test", "/", &[]))
            .await
            .unwrap()
    });
    assert_eq!(kept.status, 200);
    let after = inside.run(|client| async move { client.get("evil.test", "/", &[]).await });
    assert_eq!(after.status, 200);
}

#[test]
fn name_in_tls_must_be_the_one_the_address_stands_for() {
    let mut world = World::start();
    world.rig.origin("ok.test");
    world.rig.origin("other.test");
    let inside = world.new_box(allow(&["ok.test", "other.test"]), Vec::new());
    let over = |sni: &'static str| {
        let direct = inside.run(move |client| async move {
            let stream = client.connect("ok.test", 443).await;
            client
                .tls(stream, sni, &[])
                .await
                .map(drop)
                .map_err(|error| error.to_string())
        });
        let tunnelled = inside.run(move |client| async move {
            let stream = client.tunnel("ok.test:443").await.unwrap();
            client
                .tls(stream, sni, &[])
                .await
                .map(drop)
                .map_err(|error| error.to_string())
        });
        (direct, tunnelled)
    };
    // `other.test` is allowed as well: what counts is that the two names differ.
    for sni in ["evil.test", "other.test", "45.33.32.156"] {
        let (direct, tunnelled) = over(sni);
        for outcome in [direct, tunnelled] {
            assert!(outcome.unwrap_err().contains("UnrecognisedName"), "{sni}");
        }
    }
    refusal(&mut world, Reason::SniMismatch);
    refusal(&mut world, Reason::NoSni);
    assert_eq!(over("ok.test"), (Ok(()), Ok(())));
    assert_eq!(world.rig.all_requests().len(), 0);
}

#[test]
fn only_tls_passes_port_443() {
    let mut world = World::start();
    world.rig.origin("ok.test");
    let inside = world.new_box(allow(&["ok.test"]), Vec::new());
    let ssh = inside.run(|client| async move {
        let stream = client.tunnel("ok.test:443").await.unwrap();
        client.raw(stream, b"SSH-2.0-OpenSSH_9\r\n").await.body
    });
    assert!(!ssh.contains("SSH"), "{ssh:?}");
    let told = refusal(&mut world, Reason::NotTls);
    assert_eq!((told.host.as_str(), told.port), ("ok.test", 443));
}

#[test]
fn addresses_are_not_connected_to() {
    let mut world = World::start();
    let ok = world.rig.origin("ok.test");
    let inside = world.new_box(open(), Vec::new());
    for authority in [
        format!("{}:443", ok.address),
        "127.0.0.1:443".into(),
        "169.254.169.254:80".into(),
        "[::1]:443".into(),
        "[::ffff:127.0.0.1]:443".into(),
        "[2606:4700::1111]:443".into(),
    ] {
        assert_eq!(
            connect(&inside, &authority),
            (403, "ip_literal".into()),
            "{authority}"
        );
    }
    for authority in [
        "0x7f.1:443",
        "2130706433:443",
        "127.1:443",
        "[fe80::1%25eth0]:443",
    ] {
        assert_eq!(
            connect(&inside, authority),
            (400, "malformed".into()),
            "{authority}"
        );
    }
    assert_eq!(world.rig.accepts_in_all(), 0);
    assert_eq!(connect(&inside, "ok.test:443"), (200, String::new()));
}

#[test]
fn one_private_address_spoils_the_whole_answer() {
    let mut world = World::start();
    let public: IpAddr = "45.33.32.77".parse().unwrap();
    world.rig.zone("public.test", Answer::addresses([public]));
    for (name, other) in [
        ("mixed.test", "10.0.0.1"),
        ("loop.test", "127.0.0.1"),
        ("meta.test", "169.254.169.254"),
        ("mapped.test", "::ffff:10.0.0.1"),
        ("nat64.test", "64:ff9b::a00:1"),
        ("tunnel.test", "2002:a00:1::1"),
    ] {
        world
            .rig
            .zone(name, Answer::addresses([public, other.parse().unwrap()]));
    }
    let inside = world.new_box(open(), Vec::new());
    for name in [
        "mixed.test",
        "loop.test",
        "meta.test",
        "mapped.test",
        "nat64.test",
        "tunnel.test",
    ] {
        let authority = format!("{name}:443");
        assert_eq!(
            connect(&inside, &authority),
            (403, "private_address".into()),
            "{name}"
        );
        let direct = inside.run(move |client| async move { client.get(name, "/", &[]).await });
        assert_eq!(
            (direct.status, direct.reason()),
            (451, "private_address"),
            "{name}"
        );
    }
    assert_eq!(world.rig.accepts_in_all(), 0);
    assert_eq!(connect(&inside, "public.test:443"), (200, String::new()));
}

#[test]
fn alias_of_a_local_name_is_refused() {
    let mut world = World::start();
    world.rig.zone(
        "metadata.google.internal",
        Answer::addresses(["45.33.32.78".parse().unwrap()]),
    );
    world.rig.zone(
        "alias.test",
        Answer::Cname("metadata.google.internal".into()),
    );
    world.rig.zone(
        "far.test",
        Answer::addresses(["45.33.32.79".parse().unwrap()]),
    );
    world
        .rig
        .zone("fine.test", Answer::Cname("far.test".into()));
    let inside = world.new_box(open(), Vec::new());
    assert_eq!(
        connect(&inside, "alias.test:443"),
        (403, "private_address".into())
    );
    assert_eq!(connect(&inside, "fine.test:443"), (200, String::new()));
}

#[test]
fn rebinding_finds_the_address_judged_again() {
    let mut world = World::start();
    let (public, private) = ("45.33.32.80".parse().unwrap(), "127.0.0.1".parse().unwrap());
    let script = vec![Answer::addresses([public]), Answer::addresses([private])];
    world.rig.zone_script("rebind.test", script);
    let inside = world.new_box(open(), Vec::new());
    assert_eq!(connect(&inside, "rebind.test:443"), (200, String::new()));
    let looked_up = || {
        let queries = world.rig.queries();
        queries
            .iter()
            .filter(|query| query.name == "rebind.test" && query.kind == "A")
            .count()
    };
    assert_eq!(looked_up(), 1);
    // Within the shortest time an answer is kept, the name is not asked for again.
    assert_eq!(connect(&inside, "rebind.test:443"), (200, String::new()));
    assert_eq!(looked_up(), 1);
    world.configure();
    assert_eq!(
        connect(&inside, "rebind.test:443"),
        (403, "private_address".into())
    );
}

#[test]
fn addresses_of_the_machine_itself_are_refused() {
    let mut world = World::start();
    let add = ["addr", "add", "45.33.32.90/32", "dev", "lo"];
    assert!(Command::new("ip").args(add).status().unwrap().success());
    world.rig.zone(
        "own.test",
        Answer::addresses(["45.33.32.90".parse().unwrap()]),
    );
    world.rig.zone(
        "away.test",
        Answer::addresses(["45.33.32.91".parse().unwrap()]),
    );
    let inside = world.new_box(open(), Vec::new());
    assert_eq!(
        connect(&inside, "own.test:443"),
        (403, "private_address".into())
    );
    assert_eq!(connect(&inside, "away.test:443"), (200, String::new()));
}

#[test]
fn name_that_cannot_be_resolved_is_no_refusal_by_policy() {
    let mut world = World::start();
    world.rig.zone("fails.test", Answer::ServFail);
    let inside = world.new_box(open(), Vec::new());
    assert_eq!(connect(&inside, "fails.test:443"), (502, "dns".into()));
    assert_eq!(connect(&inside, "nowhere.test:443"), (502, "dns".into()));
    let direct = inside.run(|client| async move { client.get("nowhere.test", "/", &[]).await });
    assert_eq!((direct.status, direct.reason()), (502, "dns"));
}

#[test]
fn ports_and_hosts_that_are_not_listed_are_refused() {
    let mut world = World::start();
    world.rig.origin("ok.test");
    let inside = world.new_box(allow(&["ok.test", "*.wild.test"]), Vec::new());
    for (authority, expected) in [
        ("ok.test:22", (403, "port")),
        ("ok.test:8443", (403, "port")),
        ("evil-ok.test:443", (403, "not_listed")),
        ("ok.test.evil.test:443", (403, "not_listed")),
        ("wild.test:443", (403, "not_listed")),
        ("a.b.wild.test:443", (403, "not_listed")),
        ("localhost:443", (403, "local_name")),
        ("host.docker.internal:443", (403, "local_name")),
        ("a..wild.test:443", (400, "malformed")),
        ("ok.test@evil.test:443", (400, "malformed")),
        ("ok.test:0443", (400, "malformed")),
    ] {
        assert_eq!(
            connect(&inside, authority),
            (expected.0, expected.1.into()),
            "{authority}"
        );
    }
    assert_eq!(world.rig.queries().len(), 0);
    assert_eq!(connect(&inside, "OK.TEST.:443"), (200, String::new()));
}

#[test]
fn proxy_port_takes_nothing_but_proxy_requests() {
    let mut world = World::start();
    world.rig.origin("ok.test");
    world.rig.origin("evil.test");
    let inside = world.new_box(open(), Vec::new());
    let status = |request: &'static str| {
        inside.run(move |client| async move { client.raw_proxy(request.as_bytes()).await.status })
    };
    for request in [
        "GET / HTTP/1.1\r\nHost: ok.test\r\n\r\n",
        "GET https://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n",
        "GET http://ok.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        "GET http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\nHost: ok.test\r\n\r\n",
        "GET http://u:p@ok.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n",
        "GET http://ok.test/ HTTP/1.1\nHost: ok.test\n\n",
        "connect ok.test:443 HTTP/1.1\r\nHost: ok.test\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "POST http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\nContent-Length: 1\r\n\
         Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ] {
        assert_eq!(status(request), 400, "{request:?}");
    }
    assert_eq!(world.rig.accepts_in_all(), 0);
    assert_eq!(
        status("GET http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n"),
        200
    );
    // Two requests at once: the second is not read, let alone passed on.
    let two = "GET http://ok.test/1 HTTP/1.1\r\nHost: ok.test\r\n\r\n\
               GET http://evil.test/2 HTTP/1.1\r\nHost: evil.test\r\n\r\n";
    assert_eq!(status(two), 200);
    assert_eq!(world.rig.requests("evil.test").len(), 0);
    let paths: Vec<String> = world
        .rig
        .requests("ok.test")
        .into_iter()
        .map(|request| request.path)
        .collect();
    assert_eq!(paths, ["/", "/1"]);
}

#[test]
fn plain_http_inside_a_tunnel_is_for_the_host_of_the_tunnel() {
    let mut world = World::start();
    world.rig.origin("ok.test");
    world.rig.origin("evil.test");
    let inside = world.new_box(open(), Vec::new());
    let status = |request: &'static str| {
        inside.run(move |client| async move {
            let stream = client.tunnel("ok.test:80").await.unwrap();
            client.raw(stream, request.as_bytes()).await.status
        })
    };
    assert_eq!(
        status("GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n"),
        400
    );
    assert_eq!(status("GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n"), 421);
    assert_eq!(status("GET / HTTP/1.1\r\nHost: ok.test\r\n\r\n"), 200);
    assert_eq!(world.rig.requests("evil.test").len(), 0);
}

#[test]
fn addresses_that_stand_for_nothing_are_reset() {
    let mut world = World::start();
    world.rig.origin("ok.test");
    let inside = world.new_box(allow(&["ok.test"]), Vec::new());
    let outcome = |addr: &'static str| {
        inside.run(move |client| async move {
            // The reset may be seen before the connection is.
            let tls = async {
                let stream = TcpStream::connect(addr).await?;
                client.tls(stream, "ok.test", &[]).await.map(drop)
            };
            tls.await.map_err(|error| error.kind())
        })
    };
    let reset = Err(std::io::ErrorKind::ConnectionReset);
    assert_eq!(outcome("198.18.9.9:443"), reset);
    assert_eq!(outcome("127.0.0.1:443"), reset);
    refusal(&mut world, Reason::UnknownAddress);
    let control = inside.run(|client| async move { client.get("ok.test", "/", &[]).await });
    assert_eq!(control.status, 200);
}
