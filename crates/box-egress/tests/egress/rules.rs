//! Networks that are denied, private exceptions, rules about methods and paths, and what becomes of
//! open connections when any of them changes.

use crate::client::{Client, Seen, request, send_http1, send_http2};
use crate::world::{PLACEHOLDER_A, World, allow, bound, open};
use box_api::egress::{
    Answer, AskedRequest, Event, Network, Policy, PrivateEntry, Reason, Request, RequestPattern,
    Verdict,
};
use box_fakes::rig::{self, Listener};
use std::net::{IpAddr, SocketAddr};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

fn networks(texts: &[&str]) -> Vec<Network> {
    texts
        .iter()
        .map(|text| Network::parse(text).unwrap())
        .collect()
}

fn private(texts: &[&str]) -> Vec<PrivateEntry> {
    texts
        .iter()
        .map(|text| PrivateEntry::parse(text).unwrap())
        .collect()
}

fn requests(texts: &[&str]) -> Vec<RequestPattern> {
    texts
        .iter()
        .map(|text| RequestPattern::parse(text).unwrap())
        .collect()
}

fn lead(world: &World, name: &str, addresses: &[&str]) {
    let addresses = addresses.iter().map(|text| text.parse::<IpAddr>().unwrap());
    world.rig.zone(name, rig::Answer::addresses(addresses));
}

/// Why a tunnel is refused; empty when it is made.
async fn outcome(client: &Client, authority: &str) -> String {
    match client.tunnel(authority).await {
        Ok(_) => String::new(),
        Err(seen) => seen.reason().to_owned(),
    }
}

async fn echoes(stream: &mut TcpStream) -> bool {
    let mut back = [0; 4];
    stream.write_all(b"ping").await.is_ok()
        && stream.read_exact(&mut back).await.is_ok()
        && back == *b"ping"
}

#[test]
fn address_in_a_denied_network_is_refused_whatever_name_led_there() {
    let mut world = World::start();
    lead(&world, "one.test", &["8.8.4.4"]);
    lead(&world, "other.test", &["8.8.4.4"]);
    lead(&world, "mixed.test", &["9.9.9.9", "8.8.4.4"]);
    lead(&world, "six.test", &["2606:4700::1111"]);
    lead(&world, "near.test", &["8.8.5.4"]);
    lead(&world, "near-six.test", &["2606:4701::1111"]);
    let policy = Policy {
        deny_networks: networks(&["8.8.4.0/24", "2606:4700::/32"]),
        ..open()
    };
    let inside = world.new_box(policy, Vec::new());
    let names = [
        "one.test",
        "other.test",
        "mixed.test",
        "six.test",
        "near.test",
        "near-six.test",
    ];
    let seen = inside.run(move |client| async move {
        let mut seen = Vec::new();
        for name in names {
            seen.push(outcome(&client, &format!("{name}:443")).await);
        }
        seen
    });
    let denied = "denied_network";
    assert_eq!(seen, [denied, denied, denied, denied, "", ""]);
    for addr in ["8.8.4.4:443", "9.9.9.9:443", "[2606:4700::1111]:443"] {
        assert_eq!(
            world.rig.accepts(addr.parse::<SocketAddr>().unwrap()),
            0,
            "{addr}"
        );
    }
    let rule = world.host.event(|event| match event {
        Event::Refused(refusal) if refusal.host == "one.test" => refusal.rule.clone(),
        _ => None,
    });
    assert_eq!(rule, "deny 8.8.4.0/24");
}

#[test]
fn private_exception_is_for_one_name_and_port_and_never_for_the_machine() {
    let mut world = World::start();
    world.rig.listen(5432, Listener::Echo).unwrap();
    lead(&world, "db.corp.test", &["10.1.2.3"]);
    lead(&world, "db.internal", &["192.168.7.7"]);
    lead(&world, "other.corp.test", &["10.1.2.3"]);
    let never = [
        ("loop.corp.test", "127.0.0.1"),
        ("meta.corp.test", "169.254.169.254"),
        ("meta-six.corp.test", "fd00:ec2::254"),
        ("mixed.corp.test", "127.0.0.1"),
    ];
    for (name, addr) in never {
        lead(&world, name, &[addr]);
    }
    lead(&world, "mixed.corp.test", &["10.1.2.3", "127.0.0.1"]);
    let exceptions = [
        "db.corp.test:5432",
        "db.internal:5432",
        "loop.corp.test:5432",
        "meta.corp.test:5432",
        "meta-six.corp.test:5432",
        "mixed.corp.test:5432",
    ];
    let listed = ["db.corp.test", "other.corp.test:5432"];
    let policy = Policy {
        private: private(&exceptions),
        ..allow(&listed)
    };
    let inside = world.new_box(policy, Vec::new());
    let other = world.new_box(allow(&["db.corp.test:5432"]), Vec::new());
    let passed = inside.run(|client| async move {
        let mut one = client.tunnel("db.corp.test:5432").await.unwrap();
        let mut two = client.tunnel("db.internal:5432").await.unwrap();
        (echoes(&mut one).await, echoes(&mut two).await)
    });
    assert_eq!(passed, (true, true));
    let refused = inside.run(move |client| async move {
        let mut seen = Vec::new();
        for (name, _) in never {
            seen.push(outcome(&client, &format!("{name}:5432")).await);
        }
        // Another port of the name, another name of the address.
        seen.push(outcome(&client, "db.corp.test:443").await);
        seen.push(outcome(&client, "other.corp.test:5432").await);
        seen.push(outcome(&client, "db.internal:443").await);
        seen
    });
    let private = "private_address";
    assert_eq!(
        refused,
        [
            private,
            private,
            private,
            private,
            private,
            private,
            "local_name"
        ]
    );
    let elsewhere = other.run(|client| async move { outcome(&client, "db.corp.test:5432").await });
    assert_eq!(elsewhere, private);
    let meta: SocketAddr = "169.254.169.254:5432".parse().unwrap();
    assert_eq!(world.rig.accepts(meta), 0);
}

async fn ask(client: &Client, method: &str, path: &str, headers: &[(&str, &str)]) -> Seen {
    let stream = client.connect("cred.test", 443).await;
    let stream = client
        .tls(stream, "cred.test", &["http/1.1"])
        .await
        .unwrap();
    send_http1(stream, request(method, "cred.test", path, headers))
        .await
        .unwrap()
}

async fn ask_http2(client: &Client, method: &str, path: &str) -> Seen {
    let stream = client.connect("cred.test", 443).await;
    let stream = client.tls(stream, "cred.test", &["h2"]).await.unwrap();
    let url = format!("https://cred.test{path}");
    let mut request = request(method, "cred.test", &url, &[]);
    request.headers_mut().remove("host");
    send_http2(stream, request).await.unwrap()
}

fn with_rules() -> Policy {
    Policy {
        allow_requests: requests(&["GET,HEAD https://cred.test/repos/*"]),
        deny_requests: requests(&["* https://cred.test/repos/secret/**"]),
        ..allow(&["cred.test"])
    }
}

#[test]
fn rules_about_methods_and_paths_hold_on_hosts_that_are_opened_up() {
    let mut world = World::start();
    world.rig.origin("cred.test");
    let inside = world.new_box(with_rules(), bound(PLACEHOLDER_A));
    let passed = inside.run(|client| async move {
        let one = ask(&client, "GET", "/repos/a?x=../y", &[]).await;
        let two = ask_http2(&client, "GET", "/%72epos/%61%20b").await;
        (one.status, two.status)
    });
    assert_eq!(passed, (200, 200));
    let hostile = [
        ("POST", "/repos/a", "denied_request"),
        ("GET", "/user", "denied_request"),
        ("GET", "/repos", "denied_request"),
        ("GET", "/Repos/a", "denied_request"),
        ("GET", "/repos/secret/x", "denied_request"),
        ("GET", "/repos/SECRET/x", "denied_request"),
        ("GET", "/repos%2Fsecret%2fx", "denied_request"),
        ("GET", "/repos/secre%74/x", "denied_request"),
        ("GET", "/repos/../user", "ambiguous_path"),
        ("GET", "/repos/%2e%2e/user", "ambiguous_path"),
        ("GET", "/repos/a%2f..%2f..%2fuser", "ambiguous_path"),
        ("GET", "/repos/./a", "ambiguous_path"),
        ("GET", "//repos/a", "ambiguous_path"),
        ("GET", "/repos//a", "ambiguous_path"),
        ("GET", "/repos/a;x=/../user", "ambiguous_path"),
        ("GET", "/repos/a%252f..", "ambiguous_path"),
        ("GET", "/repos/a%5c..", "ambiguous_path"),
        ("GET", "/repos/a%00", "ambiguous_path"),
    ];
    let seen = inside.run(move |client| async move {
        let mut seen = Vec::new();
        for (method, path, _) in hostile {
            let one = ask(&client, method, path, &[]).await;
            let two = ask_http2(&client, method, path).await;
            seen.push((one.reason().to_owned(), two.reason().to_owned()));
        }
        let hidden = [("x-http-method-override", "DELETE")];
        let hidden = ask(&client, "GET", "/repos/a", &hidden).await;
        seen.push((hidden.reason().to_owned(), String::new()));
        seen
    });
    for ((method, path, reason), (one, two)) in hostile.iter().zip(&seen) {
        assert_eq!(
            (one.as_str(), two.as_str()),
            (*reason, *reason),
            "{method} {path}"
        );
    }
    assert_eq!(seen.last().unwrap().0, "denied_request");
    // What was forwarded is what was judged, and nothing else.
    let forwarded = world.rig.requests("cred.test");
    let forwarded: Vec<&str> = forwarded
        .iter()
        .map(|request| request.path.as_str())
        .collect();
    assert_eq!(forwarded, ["/repos/a?x=../y", "/repos/a%20b"]);
    let rule = world.host.event(|event| match event {
        Event::Refused(refusal) if refusal.reason == Reason::DeniedRequest => refusal.rule.clone(),
        _ => None,
    });
    assert_eq!(rule, "deny * https://cred.test/repos/secret/**");
}

#[test]
fn host_with_rules_is_closed_where_its_requests_cannot_be_read() {
    let mut world = World::start();
    world.rig.origin("cred.test");
    let inside = world.new_box(with_rules(), Vec::new());
    let without = world.new_box(allow(&["cred.test"]), Vec::new());
    let seen = inside.run(|client| async move {
        [
            outcome(&client, "cred.test:443").await,
            outcome(&client, "cred.test:80").await,
        ]
    });
    assert_eq!(seen, ["not_opened", "not_opened"]);
    let control = without.run(|client| async move { outcome(&client, "cred.test:443").await });
    assert_eq!(control, "");
}

#[test]
fn rules_that_change_close_what_they_now_forbid_and_nothing_else() {
    let mut world = World::start();
    world.rig.listen(7777, Listener::Echo).unwrap();
    lead(&world, "near.test", &["8.8.4.4"]);
    lead(&world, "far.test", &["9.9.9.9"]);
    lead(&world, "db.corp.test", &["10.1.2.3"]);
    let listed = allow(&["near.test:7777", "far.test:7777"]);
    let policy = Policy {
        private: private(&["db.corp.test:7777"]),
        ..listed.clone()
    };
    let inside = world.new_box(policy.clone(), Vec::new());
    let opened = inside.run(|client| async move {
        let mut streams = Vec::new();
        for name in ["near.test", "far.test", "db.corp.test"] {
            let mut stream = client.tunnel(&format!("{name}:7777")).await.unwrap();
            assert!(echoes(&mut stream).await, "{name}");
            streams.push(stream.into_std().unwrap());
        }
        streams
    });
    let set = |world: &mut World, policy: &Policy| {
        world.host.done(Request::SetPolicy {
            box_id: inside.id,
            policy: policy.clone(),
        });
    };
    // Denies one address; allows the names still.
    let tighter = Policy {
        deny_networks: networks(&["8.8.4.0/24"]),
        ..policy
    };
    set(&mut world, &tighter);
    let opened = inside.run(|_| async move {
        let mut streams: Vec<TcpStream> = Vec::new();
        for stream in opened {
            streams.push(TcpStream::from_std(stream).unwrap());
        }
        let mut one = [0; 1];
        let closed = streams[0].read(&mut one).await;
        assert!(matches!(closed, Ok(0) | Err(_)), "{closed:?}");
        assert!(echoes(&mut streams[1]).await);
        assert!(echoes(&mut streams[2]).await);
        let rest = streams.into_iter().skip(1);
        rest.map(|stream| stream.into_std().unwrap())
            .collect::<Vec<_>>()
    });
    // Any public host, and no exception any more.
    let without = Policy {
        preset: box_api::control::NetPreset::Open,
        allow: [listed.allow, allow(&["db.corp.test:7777"]).allow].concat(),
        private: Vec::new(),
        ..tighter
    };
    set(&mut world, &without);
    inside.run(|_| async move {
        let mut streams: Vec<TcpStream> = Vec::new();
        for stream in opened {
            streams.push(TcpStream::from_std(stream).unwrap());
        }
        let mut one = [0; 1];
        let closed = streams[1].read(&mut one).await;
        assert!(matches!(closed, Ok(0) | Err(_)), "{closed:?}");
        assert!(echoes(&mut streams[0]).await);
    });
}

#[test]
fn check_judges_requests_and_addresses_by_the_same_decision() {
    let mut world = World::start();
    let policy = Policy {
        deny_networks: networks(&["8.8.4.0/24"]),
        private: private(&["db.corp.test:5432"]),
        ..with_rules()
    };
    let inside = world.new_box(policy, bound(PLACEHOLDER_A));
    let mut check = |host: &str, port, asked: Option<(&str, &str)>, address: Option<&str>| {
        let request = Request::Check {
            box_id: inside.id,
            host: host.into(),
            port,
            asked: asked.map(|(method, path)| AskedRequest {
                method: method.into(),
                path: path.into(),
                push: None,
            }),
            address: address.map(|text| text.parse().unwrap()),
        };
        let Answer::Checked(checked) = world.host.call(request) else {
            panic!()
        };
        match checked.verdict {
            Verdict::Allowed { rule } => Ok(rule.to_string()),
            Verdict::Refused { reason, .. } => Err(reason),
        }
    };
    assert_eq!(
        check("cred.test", 443, Some(("GET", "/repos/a")), None),
        Ok("allow GET,HEAD https://cred.test/repos/*".into())
    );
    let denied = Err(Reason::DeniedRequest);
    for asked in [("POST", "/repos/a"), ("GET", "/repos/secret/a")] {
        assert_eq!(check("cred.test", 443, Some(asked), None), denied);
    }
    assert_eq!(
        check("cred.test", 443, Some(("GET", "/repos/../a")), None),
        Err(Reason::AmbiguousPath)
    );
    assert_eq!(
        check("cred.test", 443, None, Some("8.8.4.4")),
        Err(Reason::DeniedNetwork)
    );
    assert_eq!(
        check("cred.test", 443, None, Some("10.0.0.1")),
        Err(Reason::PrivateAddress)
    );
    assert_eq!(
        check("cred.test", 443, None, Some("8.8.8.8")),
        Ok("credential".into())
    );
    let exception = Ok("private db.corp.test:5432".to_owned());
    assert_eq!(
        check("db.corp.test", 5432, None, Some("10.0.0.1")),
        exception
    );
    assert_eq!(
        check("db.corp.test", 5432, None, Some("127.0.0.1")),
        Err(Reason::PrivateAddress)
    );
    assert_eq!(
        check("8.8.4.4", 443, None, None),
        Err(Reason::DeniedNetwork)
    );
    assert_eq!(check("8.8.8.8", 443, None, None), Err(Reason::IpLiteral));
    assert_eq!(world.rig.queries().len(), 0);
}
