//! What the host is told of traffic: open connections, what they amounted to, signals; and the
//! limits of it.

use crate::client::{request, send_http1};
use crate::inside::Inside;
use crate::world::{PLACEHOLDER_A, PLACEHOLDER_B, SECRET, World, allow, bound, open};
use box_api::BoxId;
use box_api::egress::traffic::{Entrance, NetLimits, Open, Signal, SignalKind};
use box_api::egress::{Event, Passed, Policy, Reason, Request};
use box_fakes::rig::{Listener, Reply};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

fn told_open(world: &mut World, is_it: impl Fn(&Open) -> bool) -> Open {
    world.host.event(|event| match event {
        Event::Open(open) if is_it(open) => Some(open.clone()),
        _ => None,
    })
}

fn passed(world: &mut World, inside: &Inside, host: &str) -> Passed {
    // The client's own task closes the connection, and runs while something runs in the box.
    inside.run(|_| async {
        for _ in 0..16 {
            tokio::task::yield_now().await;
        }
    });
    world.host.event(|event| match event {
        Event::Passed(passed) if passed.host.as_str() == host && passed.times > 0 => {
            Some(passed.clone())
        }
        _ => None,
    })
}

fn signal(world: &mut World, kind: SignalKind) -> Signal {
    world.host.event(|event| match event {
        Event::Signal(signal) if signal.kind == kind => Some(signal.clone()),
        _ => None,
    })
}

fn limited(policy: Policy, limits: NetLimits) -> Policy {
    Policy { limits, ..policy }
}

async fn echo(stream: &mut TcpStream, bytes: &[u8]) {
    stream.write_all(bytes).await.unwrap();
    let mut back = vec![0; bytes.len()];
    stream.read_exact(&mut back).await.unwrap();
}

#[test]
fn a_connection_is_told_of_while_it_is_open_and_when_it_is_over() {
    let mut world = World::start();
    world.rig.origin("ok.test");
    world.rig.listen(7000, Listener::Echo).unwrap();
    let inside = world.new_box(allow(&["ok.test:7000"]), Vec::new());
    let (keep, kept) = std::sync::mpsc::channel();
    let ends = inside.run(move |client| async move {
        let mut stream = client.tunnel("ok.test:7000").await.unwrap();
        let ends = (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
        echo(&mut stream, b"ping").await;
        keep.send(stream).unwrap();
        ends
    });
    let first = told_open(&mut world, |_| true);
    assert_eq!((first.host.as_str(), first.port), ("ok.test", 7000));
    assert_eq!(first.entrance, Entrance::Proxy);
    let known = first.ends.unwrap();
    assert_eq!((known.program, known.way_out), ends);
    // Nothing more is sent: what was is told while the connection is open.
    let later = match first.sent_bytes {
        4 => first.clone(),
        _ => told_open(&mut world, |open| open.sent_bytes == 4),
    };
    assert_eq!(later.connection, first.connection);
    assert_eq!(later.received_bytes, 4);
    assert_eq!(later.address.unwrap().port(), 7000);
    drop(kept.recv().unwrap());
    let over = passed(&mut world, &inside, "ok.test");
    assert_eq!(over.connections, [first.connection]);
    assert_eq!(
        (over.sent_bytes, over.received_bytes, over.times),
        (4, 4, 1)
    );
    assert_eq!(over.entrance, Some(Entrance::Proxy));
    assert_eq!(over.address, later.address);
}

#[test]
fn requests_that_were_read_are_told_by_method_and_status_and_no_path_is() {
    let mut world = World::start();
    world.rig.origin("cred.test");
    let inside = world.new_box(allow(&[]), bound(PLACEHOLDER_A));
    let statuses = inside.run(|client| async move {
        let key = [("x-api-key", PLACEHOLDER_A)];
        let with = client.get("cred.test", "/private-path", &key).await;
        let without = client.get("cred.test", "/private-path", &[]).await;
        (with.status, without.status)
    });
    assert_eq!(statuses, (200, 200));
    let told = [
        passed(&mut world, &inside, "cred.test"),
        passed(&mut world, &inside, "cred.test"),
    ];
    for one in &told {
        assert_eq!(one.entrance, Some(Entrance::Transparent));
        let kinds: Vec<_> = one
            .exchanges
            .iter()
            .map(|one| (one.method.as_str(), one.status, one.times))
            .collect();
        assert_eq!(kinds, [("GET", 200, 1)]);
        let text = serde_json::to_string(one).unwrap();
        assert!(
            !text.contains("private-path") && !text.contains(SECRET),
            "{text}"
        );
    }
    let used = told.iter().filter(|one| one.credential.is_some()).count();
    assert_eq!(used, 1, "the one that carried it");
}

#[test]
fn a_budget_closes_and_refuses_one_host_until_it_is_raised() {
    let mut world = World::start();
    for name in ["ok.test", "other.test"] {
        world.rig.origin(name);
    }
    let budget = |bytes| {
        limited(
            allow(&["ok.test", "other.test"]),
            NetLimits {
                budget_bytes: Some(bytes),
                ..NetLimits::default()
            },
        )
    };
    let inside = world.new_box(budget(4_000_000), Vec::new());
    let get = |host: &'static str, path: &'static str| {
        inside.run(move |client| async move {
            let stream = client.tunnel(&format!("{host}:443")).await;
            let stream = stream.map_err(|seen| seen.reason().to_owned())?;
            let stream = client.tls(stream, host, &["http/1.1"]).await;
            let stream = stream.map_err(|_| "cut".to_owned())?;
            let seen = send_http1(stream, request("GET", host, path, &[])).await;
            seen.map(|seen| seen.body.len())
                .map_err(|_| "cut".to_owned())
        })
    };
    assert_eq!(get("ok.test", "/bytes/1000000"), Ok(1_000_000));
    assert_eq!(get("ok.test", "/bytes/90000000"), Err("cut".to_owned()));
    let told = signal(&mut world, SignalKind::MuchTraffic);
    assert_eq!(told.host, "ok.test");
    assert!(told.count >= 4_000_000, "{}", told.count);
    assert_eq!(get("ok.test", "/"), Err(Reason::Budget.slug().to_owned()));
    assert_eq!(
        get("other.test", "/bytes/1000000"),
        Ok(1_000_000),
        "another host"
    );
    world.host.done(Request::SetPolicy {
        box_id: inside.id,
        policy: budget(1_000_000_000),
    });
    assert_eq!(get("ok.test", "/bytes/1000000"), Ok(1_000_000));
}

#[test]
fn connections_past_a_boxs_own_limit_are_refused_and_others_are_not() {
    let mut world = World::start();
    world.rig.origin("ok.test");
    world.rig.listen(7000, Listener::Echo).unwrap();
    let few = NetLimits {
        connections: Some(3),
        ..NetLimits::default()
    };
    let inside = world.new_box(limited(allow(&["ok.test:7000"]), few), Vec::new());
    let other = world.new_box(allow(&["ok.test:7000"]), Vec::new());
    let open = |inside: &Inside| {
        inside.run(|client| async move {
            let mut held = Vec::new();
            for _ in 0..4 {
                match client.tunnel("ok.test:7000").await {
                    Ok(stream) => held.push(stream),
                    Err(seen) => return (held.len(), seen.reason().to_owned()),
                }
            }
            (held.len(), String::new())
        })
    };
    assert_eq!(open(&inside), (3, "too_many_connections".to_owned()));
    assert_eq!(open(&other), (4, String::new()));
}

#[test]
fn a_placeholder_over_plain_http_is_refused_and_told() {
    let mut world = World::start();
    world.rig.origin("ok.test");
    let inside = world.new_box(allow(&["ok.test"]), bound(PLACEHOLDER_A));
    let other = world.new_box(allow(&[]), bound(PLACEHOLDER_B));
    let send = |header: &str| {
        let head =
            format!("GET http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\nx-note: {header}\r\n\r\n");
        inside.run(move |client| async move {
            let seen = client.raw_proxy(head.as_bytes()).await;
            (seen.status, seen.reason().to_owned())
        })
    };
    let refused = (403, "foreign_placeholder".to_owned());
    assert_eq!(send("nothing of the kind").0, 200);
    let own = format!("look: {PLACEHOLDER_A}");
    for _ in 0..50 {
        assert_eq!(send(&own), refused);
    }
    assert_eq!(send(PLACEHOLDER_B), refused);
    let told = signal(&mut world, SignalKind::PlaceholderInPlain);
    assert_eq!((told.box_id, told.host.as_str()), (inside.id, "ok.test"));
    // Fifty times the same was told once: what comes next is another kind.
    let next = world.host.event(|event| match event {
        Event::Signal(signal) => Some(signal.clone()),
        _ => None,
    });
    assert_eq!(next.kind, SignalKind::PlaceholderOfAnotherBox);
    assert_ne!(next.box_id, other.id, "the box that sent it");
    assert_eq!(world.rig.requests("ok.test").len(), 1);
}

#[test]
fn a_placeholder_of_another_box_and_an_echo_are_told() {
    let mut world = World::start();
    world.rig.origin("cred.test");
    let inside = world.new_box(allow(&[]), bound(PLACEHOLDER_A));
    let _other = world.new_box(allow(&[]), bound(PLACEHOLDER_B));
    let get = |key: &'static str, path: &'static str| {
        inside.run(move |client| async move {
            let headers = [("x-api-key", key)];
            client.get("cred.test", path, &headers).await.status
        })
    };
    assert_eq!(get(PLACEHOLDER_B, "/"), 403);
    let told = signal(&mut world, SignalKind::PlaceholderOfAnotherBox);
    assert_eq!((told.box_id, told.host.as_str()), (inside.id, "cred.test"));
    let echo = Reply::text(SECRET).header("content-type", "text/plain");
    world.rig.reply("cred.test", echo);
    assert_eq!(get(PLACEHOLDER_A, "/"), 200);
    let told = signal(&mut world, SignalKind::CredentialEchoed);
    assert_eq!(told.box_id, inside.id);
}

#[test]
fn names_that_carry_data_and_doors_that_are_tried_are_told_and_nothing_is_resolved() {
    let mut world = World::start();
    let inside = world.new_box(allow(&["ok.test"]), Vec::new());
    inside.run(|client| async move {
        for number in 0..40u64 {
            // Bytes nobody chose, the same in every run.
            let noise = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let label = format!("{noise:016x}{:016x}", noise.rotate_left(29) ^ number);
            client.address_of(&format!("{label}.evil.test")).await;
        }
        for number in 0..80 {
            client.address_of(&format!("door{number}.test")).await;
        }
    });
    let told = signal(&mut world, SignalKind::DataInNames);
    assert_eq!((told.box_id, told.host.as_str()), (inside.id, "evil.test"));
    let told = signal(&mut world, SignalKind::ManyRefused);
    assert!(told.count >= 64, "{}", told.count);
    assert_eq!(world.rig.queries().len(), 0);
}

#[test]
fn every_refusal_of_a_flood_is_counted_though_few_are_told() {
    const TIMES: u64 = 600;
    let mut world = World::start();
    let inside = world.new_box(allow(&["ok.test"]), Vec::new());
    inside.run(|client| async move {
        for _ in 0..TIMES {
            client.address_of("evil.test").await;
        }
    });
    let (mut told, mut events) = (0, 0);
    while told < TIMES {
        told += world.host.event(|event| match event {
            Event::Refused(refusal) if refusal.host == "evil.test" => Some(refusal.times),
            _ => None,
        });
        events += 1;
    }
    assert_eq!(told, TIMES);
    assert!(events < TIMES, "{events} events");
}

/// Resident memory of a process (proc(5)).
fn resident_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let text = line.unwrap().trim().trim_end_matches(" kB");
    text.parse::<u64>().unwrap() * 1024
}

/// A buffer for each direction of each tunnel alone would be 128 KiB.
#[test]
fn an_idle_tunnel_holds_no_buffers() {
    const TUNNELS: u64 = 400;
    let mut world = World::start();
    world.rig.origin("ok.test");
    world.rig.listen(7000, Listener::Echo).unwrap();
    let inside = world.new_box(allow(&["ok.test:7000"]), Vec::new());
    let (keep, kept) = std::sync::mpsc::channel();
    let fill = |count: u64| {
        let keep = keep.clone();
        inside.run(move |client| async move {
            for _ in 0..count {
                let mut stream = client.tunnel("ok.test:7000").await.unwrap();
                echo(&mut stream, &[7; 1000]).await;
                keep.send(stream).unwrap();
            }
        });
    };
    // What is allocated once is there then.
    fill(20);
    let before = resident_bytes(world.egress.id());
    fill(TUNNELS);
    let each = resident_bytes(world.egress.id()).saturating_sub(before) / TUNNELS;
    eprintln!("an idle tunnel: {each} bytes resident");
    assert!(each < 48 << 10, "{each} bytes");
    assert_eq!(kept.try_iter().count() as u64, TUNNELS + 20);
}

#[test]
fn whoever_says_nothing_is_let_go() {
    let mut world = World::start();
    world.rig.origin("ok.test");
    let inside = world.new_box(open(), Vec::new());
    // At once, as each waits as long as a head may take: nothing on the proxy port, half a head
    // there, half a head to a host, nothing where TLS is spoken.
    let closed = inside.run(|client| async move {
        let proxy = || TcpStream::connect("127.0.0.1:3128");
        let mut halves = vec![
            proxy().await.unwrap(),
            proxy().await.unwrap(),
            client.connect("ok.test", 80).await,
            client.connect("ok.test", 443).await,
        ];
        halves[1]
            .write_all(b"CONNECT ok.test:443 HTT")
            .await
            .unwrap();
        halves[2]
            .write_all(b"GET / HTTP/1.1\r\nHost: ok")
            .await
            .unwrap();
        let mut closed = 0;
        for half in &mut halves {
            let mut rest = Vec::new();
            // An answer and an end, or a reset.
            drop(half.read_to_end(&mut rest).await);
            closed += 1;
        }
        closed
    });
    assert_eq!(closed, 4);
    let timeouts = (0..4).map(|_| {
        world.host.event(|event| match event {
            Event::Refused(refusal) if refusal.reason == Reason::Timeout => Some(refusal.box_id),
            _ => None,
        })
    });
    let told: Vec<BoxId> = timeouts.collect();
    assert_eq!(told, [inside.id; 4]);
    assert_eq!(world.rig.accepts_in_all(), 0, "nothing was dialled");
}

#[test]
fn what_a_models_answer_cost_is_told_and_the_answer_passes_untouched() {
    let mut world = World::start();
    let body = "data: {\"type\":\"message_start\",\"message\":{\"model\":\"claude-x\",\"usage\":{\
                \"input_tokens\":12,\"cache_read_input_tokens\":7}}}\n\n\
                data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":5}}\n\n";
    world.rig.origin("cred.test");
    let reply = Reply::text(body).header("content-type", "text/event-stream");
    world.rig.reply("cred.test", reply);
    let inside = world.new_box(allow(&["cred.test"]), bound(PLACEHOLDER_A));
    let asks = move |path: &'static str| {
        move |client: crate::client::Client| async move {
            let headers = [
                ("x-api-key", PLACEHOLDER_A),
                ("x-claude-code-session-id", "the-conversation"),
                ("accept-encoding", "gzip, br"),
            ];
            let stream = client.connect("cred.test", 443).await;
            let stream = client
                .tls(stream, "cred.test", &["http/1.1"])
                .await
                .unwrap();
            send_http1(stream, request("POST", "cred.test", path, &headers))
                .await
                .unwrap()
        }
    };
    // What is no model's answer is not read, and is asked for as the box likes it, but for what
    // could not be looked into.
    assert_eq!(inside.run(asks("/v1/messages/count_tokens")).body, body);
    let seen = inside.run(asks("/v1/messages"));
    assert_eq!((seen.status, seen.body.as_str()), (200, body));
    let encodings: Vec<_> = world
        .rig
        .requests("cred.test")
        .iter()
        .map(|asked| asked.header("accept-encoding").map(str::to_owned))
        .collect();
    assert_eq!(
        encodings,
        [Some("gzip".to_owned()), Some("identity".to_owned())]
    );
    let used = world.host.event(|event| match event {
        Event::Used(used) => Some(used.clone()),
        _ => None,
    });
    assert_eq!(
        (used.model.as_str(), used.answers, used.unread),
        ("claude-x", 1, 0)
    );
    assert_eq!(
        (
            used.tokens.input,
            used.tokens.output,
            used.tokens.cache_read
        ),
        (12, 5, 7)
    );
    assert_eq!(used.conversation.as_deref(), Some("the-conversation"));
    assert_eq!(
        (used.credential.as_str(), used.host.as_str()),
        ("claude", "cred.test")
    );
}
