//! Ports of the box's loopback, reached from outside its namespace.

use crate::house::{House, in_time};
use box_runtime::guest::{GuestError, Loopback, Refusal, dial};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// A guest in a network namespace of its own, where `lo` is up.
fn house() -> House {
    House::start_as(
        &[
            "unshare",
            "--net",
            "--",
            "sh",
            "-c",
            "ip link set lo up && exec \"$@\"",
            "sh",
        ],
        &[],
    )
}

/// Listens, says `up`, answers each line with its upper case, ends after one connection.
const SERVER: &str = r#"
import socket, sys
family = socket.AF_INET6 if sys.argv[1] == "6" else socket.AF_INET
server = socket.socket(family, socket.SOCK_STREAM)
server.bind(("::1" if sys.argv[1] == "6" else "127.0.0.1", 8000))
server.listen()
print("up", flush=True)
connection, _ = server.accept()
data = connection.makefile("rb").read()
connection.sendall(data.upper())
connection.close()
"#;

async fn serve(house: &House, family: &str) {
    let script = format!("python3 -c '{SERVER}' {family}");
    house.spawn(&format!("server-{family}"), &script).await;
    let mut attachment = house.attach(&format!("server-{family}"), 0, 0).await;
    let (said, _) = crate::house::read_output(&mut attachment, 3).await;
    assert_eq!(said, b"up\n");
}

#[tokio::test]
async fn a_port_of_the_box_is_reached_and_each_half_ends_by_itself() {
    let house = house();
    for (family, address) in [("4", Loopback::V4), ("6", Loopback::V6)] {
        serve(&house, family).await;
        let mut socket = dial(house.connect(), address, 8000).await.unwrap();
        socket.write_all(b"hello").await.unwrap();
        // The server answers only once our half has ended.
        socket.shutdown().await.unwrap();
        let mut answer = Vec::new();
        in_time(socket.read_to_end(&mut answer)).await.unwrap();
        assert_eq!(answer, b"HELLO", "{family}");
    }
}

#[tokio::test]
async fn a_port_nobody_listens_at_is_told() {
    let house = house();
    for address in [Loopback::V4, Loopback::V6] {
        let refused = in_time(dial(house.connect(), address, 8000)).await;
        let Err(GuestError::Refused { why, text }) = refused else {
            panic!("{refused:?}")
        };
        assert_eq!(why, Refusal::NobodyListens);
        assert_eq!(text, "nobody listens at port 8000 of the box");
    }
    // The control: the same port with somebody at it.
    serve(&house, "4").await;
    in_time(dial(house.connect(), Loopback::V4, 8000))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_dialled_connection_is_none_of_the_guests() {
    let house = house();
    let script = "python3 -c 'import socket,sys
s = socket.create_server((\"127.0.0.1\", 8000), backlog=512)
print(\"up\", flush=True)
kept = [s.accept() for _ in range(200)]
print(\"all\", flush=True)
sys.stdin.read()'";
    house.spawn("server", script).await;
    let mut attachment = house.attach("server", 0, 0).await;
    crate::house::read_output(&mut attachment, 3).await;
    let mut held = Vec::new();
    // More than the guest takes connections at once.
    for _ in 0..200 {
        held.push(
            in_time(dial(house.connect(), Loopback::V4, 8000))
                .await
                .unwrap(),
        );
    }
    let (said, _) = crate::house::read_output(&mut attachment, 4).await;
    assert_eq!(said, b"all\n");
    assert_eq!(house.sh("echo here").await.1, "here\n");
    drop(held);
}
