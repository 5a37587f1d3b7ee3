//! The host's connection: who may connect, what is answered, what outlives it.

use crate::host::Host;
use crate::world::{CREDENTIAL, PLACEHOLDER_A, SECRET, World, allow, bound, name};
use box_api::control::NetPreset;
use box_api::egress::{Answer, Event, HostPattern, MappedName, Policy, Reason, Request, Verdict};
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

#[test]
fn traffic_goes_on_without_a_host_and_the_next_host_finds_everything() {
    let mut world = World::start();
    world.rig.origin("cred.test");
    world
        .rig
        .listen(7000, box_fakes::rig::Listener::Echo)
        .unwrap();
    let policy = allow(&["cred.test", "echo.test:7000"]);
    world.rig.origin("echo.test");
    let inside = world.new_box(policy.clone(), bound(PLACEHOLDER_A));
    let (keep, kept) = std::sync::mpsc::channel();
    inside.run(move |client| async move {
        keep.send(client.tunnel("echo.test:7000").await.unwrap())
            .unwrap();
    });
    let mut stream = kept.recv().unwrap();
    let path = world.socket();
    // As a host that was killed: its socket is closed, nothing is said.
    world.host = Host::connect_silently(&path);
    let echoed = inside.run(move |_| async move {
        stream.write_all(b"ping").await.unwrap();
        let mut echo = [0; 4];
        stream.read_exact(&mut echo).await.unwrap();
        echo
    });
    assert_eq!(&echoed, b"ping");
    let seen = inside.run(|client| async move {
        client
            .get("cred.test", "/", &[("x-api-key", PLACEHOLDER_A)])
            .await
    });
    assert_eq!(seen.status, 200);
    world.host = Host::connect(&path);
    let answer = world.host.call(Request::Status);
    let Answer::Status(status) = answer else {
        panic!("{answer:?}")
    };
    assert!(status.configured && status.has_ca);
    let [state] = status.boxes.as_slice() else {
        panic!("{status:?}")
    };
    assert_eq!((state.box_id, &state.policy), (inside.id, &policy));
    assert_eq!(state.bindings, bound(PLACEHOLDER_A));
    assert_eq!(state.names, 1);
    let [credential] = status.credentials.as_slice() else {
        panic!("{status:?}")
    };
    assert_eq!(
        (credential.spec.id.as_str(), credential.present),
        (CREDENTIAL, true)
    );
    assert_eq!(credential.bound, 1);
    // What happened in between was kept for it.
    let mapped = world.host.event(|event| match event {
        Event::Mapped { name, .. } => Some(name.to_string()),
        _ => None,
    });
    assert_eq!(mapped, "cred.test");
}

#[test]
fn newest_host_takes_the_place_of_the_one_before() {
    let world = World::start();
    let mut first = Host::connect(&world.socket());
    let mut second = Host::connect(&world.socket());
    assert!(first.receive().is_none());
    assert!(matches!(second.call(Request::Status), Answer::Status(_)));
}

#[test]
fn host_greets_first() {
    let world = World::start();
    let mut host = Host::connect_silently(&world.socket());
    assert!(matches!(host.call(Request::Status), Answer::Refused { .. }));
    let hello = Request::Hello {
        build: "x".into(),
        protocol: 999,
    };
    assert!(matches!(host.call(hello), Answer::Refused { .. }));
    let hello = Request::Hello {
        build: "x".into(),
        protocol: box_api::egress::PROTOCOL,
    };
    let Answer::Welcome(welcome) = host.call(hello) else {
        panic!()
    };
    assert_eq!(welcome.pid, world.egress.id());
}

#[test]
fn stranger_is_hung_up_on() {
    let mut world = World::start();
    let path = world.socket();
    let everybody = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(&path, everybody.clone()).unwrap();
    std::fs::set_permissions(world.folder.path(), everybody).unwrap();
    // Connects, then reads until the other side ends the connection.
    let program = "use Socket; socket(S, AF_UNIX, SOCK_SEQPACKET, 0) or die; \
                   connect(S, pack_sockaddr_un($ARGV[0])) or die; \
                   alarm 10; print sysread(S, $b, 100);";
    let run = |uid: u32| {
        let output = Command::new("perl")
            .args(["-e", program])
            .arg(&path)
            .uid(uid)
            .output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    assert_eq!(run(12_345), "0");
    // The host that was connected is still heard.
    assert!(matches!(
        world.host.call(Request::Status),
        Answer::Status(_)
    ));
    let mut friend = Host::connect(&path);
    assert!(matches!(friend.call(Request::Status), Answer::Status(_)));
}

#[test]
fn box_that_ends_is_forgotten_and_told() {
    let mut world = World::start();
    let mut inside = world.new_box(allow(&[]), bound(PLACEHOLDER_A));
    inside.die();
    let gone = world.host.event(|event| match event {
        Event::BoxGone { box_id } => Some(*box_id),
        _ => None,
    });
    assert_eq!(gone, inside.id);
    let Answer::Status(status) = world.host.call(Request::Status) else {
        panic!()
    };
    assert!(status.boxes.is_empty());
    // Its placeholder is free again.
    let other = world.new_box(allow(&[]), bound(PLACEHOLDER_A));
    assert_ne!(other.id, inside.id);
}

#[test]
fn unregistered_box_has_no_way_out() {
    let mut world = World::start();
    world.rig.origin("ok.test");
    let inside = world.new_box(allow(&["ok.test"]), Vec::new());
    let control = inside.run(|client| async move { client.tunnel("ok.test:443").await.is_ok() });
    assert!(control);
    world.host.done(Request::Unregister { box_id: inside.id });
    let answered = inside.run(|client| async move {
        let soon = std::time::Duration::from_millis(200);
        tokio::time::timeout(soon, client.tunnel("ok.test:443"))
            .await
            .is_ok()
    });
    assert!(!answered);
    let twice = world.host.call(Request::Unregister { box_id: inside.id });
    assert!(matches!(twice, Answer::Refused { .. }));
}

#[test]
fn check_says_what_would_happen_without_asking_anybody() {
    let mut world = World::start();
    let policy = Policy {
        preset: NetPreset::Locked,
        allow: vec![
            HostPattern::parse("ok.test").unwrap(),
            HostPattern::parse("cred.test").unwrap(),
        ],
        deny: vec![HostPattern::parse("bad.test").unwrap()],
        ..Policy::nothing()
    };
    let inside = world.new_box(policy, bound(PLACEHOLDER_A));
    let mut check = |host: &str, port| {
        let request = Request::Check {
            box_id: inside.id,
            host: host.into(),
            port,
            asked: None,
            address: None,
        };
        let answer = world.host.call(request);
        let Answer::Checked(checked) = answer else {
            panic!("{answer:?}")
        };
        match checked.verdict {
            Verdict::Allowed { rule } => Ok((rule.to_string(), checked.intercepted)),
            Verdict::Refused { reason, .. } => Err(reason),
        }
    };
    assert_eq!(check("ok.test", 443), Ok(("allow ok.test".into(), false)));
    assert_eq!(check("cred.test", 443), Ok(("credential".into(), true)));
    assert_eq!(check("cred.test", 80), Err(Reason::PlainHttp));
    assert_eq!(check("bad.test", 443), Err(Reason::Denied));
    assert_eq!(check("other.test", 443), Err(Reason::NotListed));
    assert_eq!(check("ok.test", 22), Err(Reason::Port));
    assert_eq!(check("127.0.0.1", 443), Err(Reason::IpLiteral));
    assert_eq!(check("x y", 443), Err(Reason::Malformed));
    assert_eq!(world.rig.queries().len(), 0);
}

#[test]
fn calls_and_answers_longer_than_a_packet_pass() {
    let mut world = World::start();
    let map: Vec<MappedName> = (0..20_000u32)
        .map(|at| MappedName {
            name: name(&format!("host-number-{at}.wild.test")),
            addr: Ipv4Addr::from(u32::from(Ipv4Addr::new(198, 18, 1, 0)) + at),
        })
        .collect();
    let inside = world.new_box_with(allow(&["*.wild.test"]), Vec::new(), map.clone());
    let answer = world.host.call(Request::Map { box_id: inside.id });
    let Answer::Map { map: mut kept } = answer else {
        panic!("{answer:?}")
    };
    kept.sort_by_key(|mapped| mapped.addr);
    assert!(kept == map);
}

#[test]
fn wrong_descriptors_are_refused() {
    let mut world = World::start();
    let inside = world.unregistered_box();
    let registration = box_api::egress::Registration {
        box_id: inside.id,
        policy: allow(&[]),
        bindings: Vec::new(),
        map: Vec::new(),
        logins: Vec::new(),
        listeners: box_api::egress::Listeners::Two,
    };
    let all = inside.descriptors();
    let all: Vec<_> = all.iter().map(std::os::fd::AsFd::as_fd).collect();
    let swapped = [all[1], all[0], all[2], all[3], all[4], all[5]];
    for descriptors in [&all[..5], &swapped] {
        let request = Request::Register(registration.clone());
        let answer = world.host.call_with(request, &[], descriptors);
        assert!(matches!(answer, Answer::Refused { .. }), "{answer:?}");
    }
    let answer = world
        .host
        .call_with(Request::Register(registration), &[], &all);
    assert_eq!(answer, Answer::Done);
}

#[test]
fn events_nobody_fetches_never_hold_up_traffic_and_are_counted() {
    let mut world = World::start();
    world.rig.origin("ok.test");
    let inside = world.new_box(allow(&["ok.test"]), Vec::new());
    let path = world.socket();
    // A host that reads nothing.
    world.host = Host::connect(&path);
    inside.run(|client| async move {
        // As many as the resolver takes at once.
        for at in 0..1_500 {
            let name = format!("refused-{at}.test");
            client.lookup(&name, hickory_proto::rr::RecordType::A).await;
        }
    });
    let seen = inside.run(|client| async move { client.get("ok.test", "/", &[]).await });
    assert_eq!(seen.status, 200);
    let lost = world.host.event(|event| match event {
        Event::Lost { count } => Some(*count),
        _ => None,
    });
    assert!(lost > 0);
}

#[test]
fn shutdown_ends_the_process() {
    let mut world = World::start();
    world.host.done(Request::Shutdown);
    assert!(world.egress.wait().unwrap().success());
}

#[test]
fn secret_is_in_nothing_that_leaves_box_egress() {
    let mut world = World::start();
    world.rig.origin("cred.test");
    let inside = world.new_box(allow(&["cred.test"]), bound(PLACEHOLDER_A));
    let pages = inside.run(|client| async move {
        let mut pages = Vec::new();
        for headers in [
            vec![("x-api-key", PLACEHOLDER_A)],
            vec![
                ("x-api-key", PLACEHOLDER_A),
                ("authorization", "Bearer attacker"),
            ],
            vec![("x-api-key", SECRET)],
        ] {
            pages.push(client.get("cred.test", "/", &headers).await);
        }
        pages.push(
            client
                .get("evil.test", "/", &[("x-api-key", PLACEHOLDER_A)])
                .await,
        );
        format!("{pages:?}")
    });
    world
        .rig
        .certificate("cred.test", box_fakes::rig::LeafKind::Expired);
    let failed = inside.run(|client| async move {
        format!(
            "{:?}",
            client
                .get("cred.test", "/", &[("x-api-key", PLACEHOLDER_A)])
                .await
        )
    });
    for request in [
        Request::Status,
        Request::ListCredentials,
        Request::Map { box_id: inside.id },
        Request::RemoveCredential {
            credential: "nobody".into(),
        },
    ] {
        drop(world.host.call(request));
    }
    world.host.event(|event| match event {
        Event::Refused(refusal) if refusal.reason == Reason::UpstreamTls => Some(()),
        _ => None,
    });
    let log = world.log();
    let pid = world.egress.id();
    let read = |what: &str| std::fs::read(format!("/proc/{pid}/{what}")).unwrap();
    let (environ, cmdline) = (read("environ"), read("cmdline"));
    let holds = |text: &[u8]| {
        text.windows(SECRET.len())
            .any(|window| window == SECRET.as_bytes())
    };
    for (what, text) in [
        ("pages", pages.as_bytes()),
        ("error page", failed.as_bytes()),
        ("control socket", &world.host.heard),
        ("log", &log),
        ("environment", &environ),
        ("command line", &cmdline),
    ] {
        assert!(!holds(text), "{what}");
    }
    // The control: the host it is for got it, and the search finds it.
    assert_eq!(
        world.rig.requests("cred.test")[0].header("x-api-key"),
        Some(SECRET)
    );
    assert!(holds(format!("..{SECRET}..").as_bytes()));
}
