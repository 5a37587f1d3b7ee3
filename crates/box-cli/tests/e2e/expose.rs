//! `box expose`: a port of a box on the machine's loopback, and nowhere else.

use super::host::{PATIENCE, TestHost};
use box_fakes::Ids;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Instant;

/// Serves the workspace, to many at once.
const SERVER: &str = r#"
import http.server, os, socket, sys
class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 512
    address_family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
os.chdir("/workspace")
open("greeting", "w").write("hello\n")
Server((sys.argv[1], 8000), http.server.SimpleHTTPRequestHandler).serve_forever()
"#;

fn serve(host: &TestHost, name: &str, address: &str) {
    let words = [
        "exec", "-d", "--name", "server", name, "--", "python3", "-c", SERVER, address,
    ];
    host.ok(&words);
    let listens = "until python3 -c \"import socket; socket.create_connection(('ADDRESS', 8000))\" 2>/dev/null; do sleep 0.05; done";
    host.shell(name, &listens.replace("ADDRESS", address))
        .assert_code(0);
}

/// An answer over HTTP, or why there is none.
fn get(port: u16) -> Result<String, String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut socket = TcpStream::connect_timeout(&address, PATIENCE).map_err(|e| e.to_string())?;
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = "GET /greeting HTTP/1.0\r\n\r\n";
    socket
        .write_all(request.as_bytes())
        .map_err(|e| e.to_string())?;
    let mut answer = String::new();
    socket
        .read_to_string(&mut answer)
        .map_err(|e| e.to_string())?;
    if answer.ends_with("hello\n") {
        Ok(answer)
    } else {
        Err(answer)
    }
}

fn port_of(out: &str) -> u16 {
    out.trim()
        .strip_prefix("127.0.0.1:")
        .unwrap()
        .parse()
        .unwrap()
}

#[test]
fn a_port_of_a_box_is_on_the_loopback_and_nowhere_else_and_survives_the_host() {
    let host = TestHost::new();
    host.ok(&["new", "one"]);
    serve(&host, "one", "127.0.0.1");
    let port = port_of(&host.ok(&["expose", "one", "8000", "18000"]));
    assert_eq!(port, 18000);
    get(port).unwrap();
    // The same again is the same; another place for it is refused.
    assert_eq!(port_of(&host.ok(&["expose", "one", "8000"])), port);
    host.run(&["expose", "one", "8000", "18001"]).assert_code(1);

    // Nowhere else: no address of the machine's but the loopback has it.
    let others = std::fs::read_to_string("/proc/thread-self/net/tcp").unwrap();
    let listening: Vec<&str> = others
        .lines()
        .filter(|line| line.contains(&format!(":{port:04X} 00000000:0000 0A")))
        .collect();
    assert_eq!(listening.len(), 1, "{others}");
    assert!(listening[0].contains("0100007F:"), "{listening:?}");
    // A box has a loopback of its own: its neighbour does not see it.
    host.ok(&["new", "two"]);
    let inside =
        format!("python3 -c \"import socket; socket.create_connection(('127.0.0.1', {port}), 5)\"");
    assert_ne!(
        host.shell("two", &inside).code,
        0,
        "a box reaches the port of another"
    );

    // Hosts come and go, the port stays.
    host.kill();
    host.ok(&["list"]);
    get(port).unwrap();
    host.ok(&["serve", "--stop"]);
    assert!(get(port).is_err(), "somebody listens without a host");
    host.ok(&["list"]);
    get(port).unwrap();
    let listed = host.ok(&["expose", "--list"]);
    assert!(listed.contains("one  8000  127.0.0.1:18000"), "{listed}");

    // A stopped box answers nothing and keeps its port.
    host.ok(&["stop", "one"]);
    assert!(get(port).is_err());
    host.ok(&["start", "one"]);
    serve(&host, "one", "127.0.0.1");
    get(port).unwrap();

    host.ok(&["expose", "--remove", "one", "8000"]);
    assert!(get(port).is_err(), "it is still there");
    assert!(!host.ok(&["expose", "--list"]).contains("18000"));
    host.run(&["expose", "--remove", "one", "8000"])
        .assert_code(1);
}

#[test]
fn a_server_on_the_sixth_loopback_is_found_and_a_removed_box_gives_its_port_back() {
    let host = TestHost::new();
    host.ok(&["new", "one"]);
    serve(&host, "one", "::1");
    let port = port_of(&host.ok(&["expose", "one", "8000"]));
    get(port).unwrap();
    host.ok(&["rm", "one", "--force"]);
    let deadline = Instant::now() + PATIENCE;
    while TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_err() {
        assert!(
            Instant::now() < deadline,
            "the port of a removed box is taken"
        );
    }
}

#[test]
fn a_port_somebody_has_is_told_now_and_after_a_restart() {
    let host = TestHost::new();
    host.ok(&["new", "one"]);
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 18002)).unwrap();
    let busy = host.run(&["expose", "one", "8000", "18002"]);
    busy.assert_code(1);
    assert!(
        busy.err.contains("could not listen at port 18002"),
        "{busy}"
    );
    drop(taken);
    host.ok(&["expose", "one", "8000", "18002"]);
    host.ok(&["new", "two"]);
    let others = host.run(&["expose", "two", "9000", "18002"]);
    others.assert_code(1);
    assert!(others.err.contains("shows a port of box `one`"), "{others}");
    // Without a host somebody else takes it.
    host.ok(&["serve", "--stop"]);
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 18002)).unwrap();
    let listed = host.ok(&["expose", "--list"]);
    assert!(listed.contains("Address already in use"), "{listed}");
    // Asking for it again is enough once it is free.
    drop(taken);
    host.ok(&["expose", "one", "8000"]);
    assert!(!host.ok(&["expose", "--list"]).contains("already in use"));
}

#[test]
fn many_connections_are_carried_and_large_bodies_arrive_whole() {
    let host = TestHost::new();
    host.ok(&["new", "one"]);
    host.shell(
        "one",
        "head -c 20000000 /dev/urandom > large; sha256sum large > sum",
    )
    .assert_code(0);
    serve(&host, "one", "127.0.0.1");
    let port = port_of(&host.ok(&["expose", "one", "8000"]));
    let fetch = move |path: &str| {
        let mut socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(socket, "GET /{path} HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer).unwrap();
        let head = answer
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .unwrap();
        answer.split_off(head + 4)
    };
    let body = fetch("large");
    assert_eq!(body.len(), 20_000_000);
    let fetches: Vec<_> = (0..100)
        .map(|_| std::thread::spawn(move || fetch("greeting")))
        .collect();
    for one in fetches {
        assert_eq!(one.join().unwrap(), b"hello\n");
    }
    host.shell("one", "true").assert_code(0);
}

#[test]
fn an_ordinary_user_copies_detaches_and_shows_ports_as_well() {
    for ids in [Ids::Range, Ids::Own] {
        let host = TestHost::of_user(ids);
        host.ok(&["new", "one"]);
        serve(&host, "one", "127.0.0.1");
        let port = port_of(&host.ok(&["expose", "one", "8000"]));
        get(port).unwrap();
        assert!(host.ok(&["ps", "one"]).contains("running"), "{ids:?}");
        // The user's home is the user's to write to.
        let home = host.run_dir().with_file_name("home");
        let place = home.join("greeting").display().to_string();
        host.ok(&["cp", "one:greeting", &place]);
        assert_eq!(std::fs::read_to_string(&place).unwrap(), "hello\n");
        host.ok(&["cp", &place, "one:copy"]);
        assert_eq!(
            host.shell("one", "cat copy; stat -c %u copy").out,
            "hello\n1020\n"
        );
        host.ok(&["kill", "one", "server"]);
        host.ok(&["expose", "--remove", "one", "8000"]);
        host.ok(&["rm", "one", "--now", "--force"]);
    }
}
