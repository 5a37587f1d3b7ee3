//! What is passed on unread.

use crate::client::{request, send_http1};
use crate::world::{PLACEHOLDER_A, SECRET, World, allow, bound};
use box_api::egress::{Answer, Request};
use box_fakes::rig::Listener;
use std::process::Command;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

#[test]
fn large_answer_passes_whole_both_ways_in() {
    let mut world = World::start();
    world.rig.origin("ok.test");
    let inside = world.new_box(allow(&["ok.test"]), Vec::new());
    let direct =
        inside.run(|client| async move { client.get("ok.test", "/bytes/30000000", &[]).await });
    assert_eq!((direct.status, direct.body.len()), (200, 30_000_000));
    let tunnelled = inside.run(|client| async move {
        let stream = client.tunnel("ok.test:443").await.unwrap();
        let stream = client.tls(stream, "ok.test", &["http/1.1"]).await.unwrap();
        send_http1(stream, request("GET", "ok.test", "/bytes/30000000", &[]))
            .await
            .unwrap()
    });
    assert_eq!(tunnelled.body.len(), 30_000_000);
}

#[test]
fn listed_port_is_passed_on_whoever_speaks_first() {
    let mut world = World::start();
    world.rig.origin("git.test");
    world
        .rig
        .listen(2222, Listener::Greeting(b"SSH-2.0-x\r\n".to_vec()))
        .unwrap();
    let mut inside = world.unregistered_box();
    inside.only_transparent_port(2222);
    let answer = world.register(&inside, allow(&["git.test:2222"]), Vec::new(), Vec::new());
    assert_eq!(answer, Answer::Done);
    let greeted = |via_proxy: bool| {
        inside.run(move |client| async move {
            let mut stream = if via_proxy {
                client.tunnel("git.test:2222").await.unwrap()
            } else {
                client.connect("git.test", 2222).await
            };
            let mut greeting = [0; 11];
            stream.read_exact(&mut greeting).await.unwrap();
            greeting
        })
    };
    assert_eq!(&greeted(false), b"SSH-2.0-x\r\n");
    assert_eq!(&greeted(true), b"SSH-2.0-x\r\n");
    world.host.done(Request::SetPolicy {
        box_id: inside.id,
        policy: allow(&["git.test:22"]),
    });
    let closed = inside.run(|client| async move {
        let addr = client.address_of("git.test").await;
        // The reset may be seen before the connection is.
        match TcpStream::connect((addr, 2222)).await {
            Ok(mut stream) => stream.read_u8().await.is_err(),
            Err(_) => true,
        }
    });
    assert!(closed);
}

#[test]
fn policy_that_no_longer_allows_a_tunnel_closes_it() {
    let mut world = World::start();
    world.rig.origin("ok.test");
    world.rig.listen(7000, Listener::Echo).unwrap();
    let inside = world.new_box(allow(&["ok.test:7000"]), Vec::new());
    // The stream stays in the box's thread between the two steps.
    let (keep, kept) = std::sync::mpsc::channel();
    inside.run(move |client| async move {
        let mut stream = client.tunnel("ok.test:7000").await.unwrap();
        stream.write_all(b"ping").await.unwrap();
        let mut echo = [0; 4];
        stream.read_exact(&mut echo).await.unwrap();
        assert_eq!(&echo, b"ping");
        keep.send(stream).unwrap();
    });
    let mut stream = kept.recv().unwrap();
    world.host.done(Request::SetPolicy {
        box_id: inside.id,
        policy: allow(&["other.test"]),
    });
    let rest = inside.run(move |_| async move {
        let mut rest = Vec::new();
        // An end or a reset, either is closed.
        drop(stream.read_to_end(&mut rest).await);
        rest
    });
    assert!(rest.is_empty());
}

#[test]
fn host_that_refuses_the_connection_is_unreachable() {
    let mut world = World::start();
    world.rig.origin("ok.test");
    let inside = world.new_box(allow(&["ok.test:4444", "ok.test"]), Vec::new());
    let refused = inside
        .run(|client| async move { client.tunnel("ok.test:4444").await.map(drop).unwrap_err() });
    assert_eq!((refused.status, refused.reason()), (502, "unreachable"));
    let control = inside.run(|client| async move { client.tunnel("ok.test:443").await.is_ok() });
    assert!(control);
}

#[test]
fn request_that_comes_too_early_does_not_cut_the_answer_before_it() {
    let mut world = World::start();
    world.rig.origin("ok.test");
    let inside = world.new_box(allow(&["ok.test"]), Vec::new());
    let seen = inside.run(|client| async move {
        let one =
            |path: &str| format!("GET http://ok.test{path} HTTP/1.1\r\nHost: ok.test\r\n\r\n");
        let both = one("/bytes/5000000") + &one("/second");
        client.raw_proxy(both.as_bytes()).await
    });
    // In chunks, whose sizes have no `x` in them.
    let bytes = seen.body.bytes().filter(|byte| *byte == b'x').count();
    assert_eq!((seen.status, bytes), (200, 5_000_000));
    assert!(seen.body.ends_with("\r\n0\r\n\r\n"));
    assert_eq!(world.rig.requests("ok.test").len(), 1);
}

#[test]
fn curl_reaches_hosts_by_the_proxy_and_without_it() {
    let mut world = World::start();
    world.rig.origin("ok.test");
    world.rig.origin("cred.test");
    let inside = world.new_box(allow(&["ok.test", "cred.test"]), bound(PLACEHOLDER_A));
    let bundle = world.folder.path().join("bundle.pem");
    let roots = format!("{}\n{}", world.authority.cert_pem, world.rig.ca_pem());
    std::fs::write(&bundle, roots).unwrap();
    let curl = |url: &'static str, via_proxy: bool| {
        let bundle = bundle.clone();
        inside.run(move |client| async move {
            let host = url.split('/').nth(2).unwrap();
            let addr = client.address_of(host).await;
            let mut curl = Command::new("curl");
            curl.args([
                "-sS",
                "-m",
                "10",
                "-w",
                " %{http_code} %{http_version}",
                "--cacert",
            ]);
            curl.arg(bundle);
            // Over plain HTTP a placeholder is refused.
            if url.starts_with("https:") {
                curl.args(["-H", &format!("x-api-key: {PLACEHOLDER_A}")]);
            }
            if via_proxy {
                curl.args(["-x", "http://127.0.0.1:3128"]);
            } else {
                curl.args(["--resolve", &format!("{host}:443:{addr}")]);
                curl.args(["--resolve", &format!("{host}:80:{addr}")]);
            }
            let output = curl
                .arg(url)
                .env_clear()
                .env("PATH", "/usr/bin:/bin")
                .output()
                .unwrap();
            String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
        })
    };
    for via_proxy in [true, false] {
        assert_eq!(
            curl("https://ok.test/", via_proxy),
            "hello from ok.test\n 200 2"
        );
        assert_eq!(
            curl("http://ok.test/", via_proxy),
            "hello from ok.test\n 200 1.1"
        );
        assert_eq!(
            curl("https://cred.test/", via_proxy),
            "hello from cred.test\n 200 2"
        );
    }
    let refused = curl("https://evil.test/", false);
    assert!(
        refused.contains("not on this box's list") && refused.contains(" 451 2"),
        "{refused}"
    );
    let seen = world.rig.requests("cred.test");
    assert!(
        seen.iter()
            .all(|request| request.header("x-api-key") == Some(SECRET))
    );
    // Towards the host HTTP/2 is spoken as well.
    assert!(seen.iter().all(|request| request.version == "HTTP/2.0"));
}
