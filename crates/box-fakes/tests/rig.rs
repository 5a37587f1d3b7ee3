//! The rig does what tests rely on: it is the only network there is, and it counts.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails"
)]

use box_fakes::Rig;
use box_fakes::rig::{Answer, LeafKind, Listener, Reply};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(5);

/// What curl prints; `to` is a name and the address it stands for.
fn curl(rig: &Rig, to: (&str, IpAddr), url: &str, more: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    std::fs::write(&ca, rig.ca_pem()).unwrap();
    let pin = |port: u16| format!("{}:{port}:{}", to.0, to.1);
    let output = Command::new("curl")
        .args([
            "-sS",
            "-m",
            "5",
            "--resolve",
            &pin(443),
            "--resolve",
            &pin(80),
        ])
        .args(["-w", " %{http_code}/%{http_version}"])
        .arg("--cacert")
        .arg(&ca)
        .args(more)
        .arg(url)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
}

/// Asks the name server as a resolver would; gives addresses or the response code.
fn dig(rig: &Rig, name: &str, kind: &str) -> String {
    use hickory_proto::op::{Message, Query};
    use hickory_proto::rr::{Name, RecordType};
    use std::str::FromStr as _;
    let mut query = Message::query();
    query.add_query(Query::query(
        Name::from_ascii(format!("{name}.")).unwrap(),
        RecordType::from_str(kind).unwrap(),
    ));
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    socket
        .set_read_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    socket
        .send_to(&query.to_vec().unwrap(), rig.resolver_addr())
        .unwrap();
    let mut packet = [0; 512];
    let Ok(count) = socket.recv(&mut packet) else {
        return "silence".to_owned();
    };
    let answer = Message::from_vec(&packet[..count]).unwrap();
    let mut records: Vec<String> = answer
        .answers
        .iter()
        .map(|record| record.data.to_string())
        .collect();
    if records.is_empty() {
        records.push(answer.metadata.response_code.to_string());
    }
    records.join(",")
}

#[test]
fn origins_answer_over_every_protocol_and_are_recorded() {
    let rig = Rig::start().unwrap();
    let ok = rig.origin("ok.test");
    let to = (ok.name.as_str(), ok.address);
    assert_eq!(
        curl(&rig, to, "http://ok.test/a?b=1", &[]),
        "hello from ok.test\n 200/1.1"
    );
    assert_eq!(
        curl(&rig, to, "https://ok.test/", &[]),
        "hello from ok.test\n 200/2"
    );
    let posted = ["--http1.1", "--data", "12345", "-H", "X-Api-Key: k"];
    assert_eq!(
        curl(&rig, to, "https://ok.test/echo", &posted),
        "12345 200/1.1"
    );
    assert_eq!(curl(&rig, to, "http://ok.test/bytes/3", &[]), "xxx 200/1.1");
    rig.reply(
        "ok.test",
        Reply::text("no").status(418).header("x-why", "tea"),
    );
    assert!(curl(&rig, to, "http://ok.test/", &["-i"]).contains("x-why: tea"));

    let seen = rig.requests("ok.test");
    assert_eq!(seen.len(), 5);
    assert_eq!((seen[0].path.as_str(), &seen[0].sni), ("/a?b=1", &None));
    assert_eq!(
        (seen[1].version.as_str(), seen[1].sni.as_deref()),
        ("HTTP/2.0", Some("ok.test"))
    );
    assert_eq!((seen[2].body_bytes, seen[2].complete), (5, true));
    assert_eq!(seen[2].credentials(), [("x-api-key", "k")]);
    assert_eq!(rig.accepts(SocketAddr::new(ok.address, 443)), 2);
    assert_eq!(rig.accepts_in_all(), 5);
}

#[test]
fn every_address_is_the_internet_and_nothing_else_answers() {
    let rig = Rig::start().unwrap();
    let before = rig.traffic().unwrap();
    for address in [
        "1.1.1.1",
        "10.0.0.1",
        "169.254.169.254",
        "2606:4700::1111",
        "fd00::1",
    ] {
        let at = SocketAddr::new(address.parse().unwrap(), 80);
        TcpStream::connect_timeout(&at, SOON).unwrap();
        rig.wait_for_accepts(at, 1, SOON).unwrap();
    }
    assert!(rig.traffic().unwrap().tcp_segments > before.tcp_segments);
    let quiet: SocketAddr = "1.1.1.1:81".parse().unwrap();
    assert!(TcpStream::connect_timeout(&quiet, SOON).is_err());
    rig.listen(81, Listener::Greeting(b"hi".to_vec())).unwrap();
    let mut greeting = [0; 2];
    let mut stream = TcpStream::connect_timeout(&quiet, SOON).unwrap();
    std::io::Read::read_exact(&mut stream, &mut greeting).unwrap();
    assert_eq!(&greeting, b"hi");
    assert_eq!(rig.accepts(quiet), 1);
}

#[test]
fn the_name_server_says_what_the_test_set_and_counts() {
    let rig = Rig::start().unwrap();
    let v4 = |text: &str| Answer::addresses([text.parse().unwrap()]);
    rig.zone_script("rebind.test", vec![v4("45.33.32.1"), v4("127.0.0.1")]);
    assert_eq!(dig(&rig, "rebind.test", "A"), "45.33.32.1");
    assert_eq!(dig(&rig, "rebind.test", "AAAA"), "No Error");
    assert_eq!(dig(&rig, "REBIND.test", "A"), "127.0.0.1");
    assert_eq!(dig(&rig, "rebind.test", "A"), "127.0.0.1");
    rig.zone("alias.test", Answer::Cname("rebind.test".to_owned()));
    assert_eq!(dig(&rig, "alias.test", "A"), "rebind.test.,127.0.0.1");
    rig.zone("broken.test", Answer::ServFail);
    assert_eq!(dig(&rig, "broken.test", "A"), "Server Failure");
    rig.zone("quiet.test", Answer::Silence);
    assert_eq!(dig(&rig, "quiet.test", "A"), "silence");
    assert_eq!(dig(&rig, "nobody.test", "A"), "Non-Existent Domain");
    assert_eq!(
        (
            rig.queries_for("rebind.test"),
            rig.queries_for("nobody.test")
        ),
        (4, 1)
    );
}

#[test]
fn bad_certificates_are_refused_by_a_careful_client() {
    let rig = Rig::start().unwrap();
    let ok = rig.origin("bad.test");
    let to = (ok.name.as_str(), ok.address);
    for kind in [LeafKind::Expired, LeafKind::OtherName, LeafKind::SelfSigned] {
        rig.certificate("bad.test", kind);
        let said = curl(&rig, to, "https://bad.test/", &[]);
        assert!(said.contains(" 000/"), "{kind:?}: {said}");
    }
    assert_eq!(rig.requests("bad.test"), []);
    rig.certificate("bad.test", LeafKind::Good);
    assert!(curl(&rig, to, "https://bad.test/", &[]).contains(" 200/2"));
}

#[test]
fn the_thread_comes_back_from_the_rig() {
    let namespace = || std::fs::read_link("/proc/thread-self/ns/net").unwrap();
    let home = namespace();
    let rig = Rig::start().unwrap();
    assert_ne!(namespace(), home);
    drop(rig);
    assert_eq!(namespace(), home);
}
