//! What much traffic weighs: bodies are passed on piece by piece, however long they are.

use super::{BEARER, Door};
use crate::world::{PLACEHOLDER_A, World, allow, bound};
use box_fakes::rig::Listener;
use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, SizeHint};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const MIB: u64 = 1 << 20;
/// Of each of four transfers in each direction.
const TRANSFER_BYTES: u64 = 64 * MIB;
const TRANSFERS: usize = 4;
/// What the process may need more than before: buffers, windows, pipes.
const GROWTH_KIB_MAX: u64 = 24 << 10;

/// So many bytes, made as they are sent.
struct Zeroes(u64);

impl Body for Zeroes {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        static PIECE: [u8; 64 << 10] = [0; 64 << 10];
        if self.0 == 0 {
            return Poll::Ready(None);
        }
        self.0 -= PIECE.len() as u64;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&PIECE)))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0)
    }
}

/// The most memory the process ever had, in KiB.
fn peak_kib(world: &World) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", world.egress.id())).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn large_transfers_need_no_more_memory_than_small_ones() {
    let mut world = World::start();
    world.rig.origin("cred.test");
    let inside = world.new_box(allow(&["cred.test"]), bound(PLACEHOLDER_A));
    let transfer = |bytes: u64| {
        let down = inside.run(move |client| async move {
            let stream = Door::Transparent.opened(&client, "http/1.1").await;
            let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
            tokio::spawn(connection);
            let get = Request::get(format!("/bytes/{bytes}")).header("host", "cred.test");
            let get = get.header("authorization", BEARER).body(Zeroes(0)).unwrap();
            let mut body = sender.send_request(get).await.unwrap().into_body();
            let mut down = 0;
            while let Some(frame) = body.frame().await {
                down += frame.unwrap().into_data().unwrap().len() as u64;
            }
            down
        });
        assert_eq!(down, bytes);
        let status = inside.run(move |client| async move {
            let stream = Door::Transparent.opened(&client, "http/1.1").await;
            let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
            tokio::spawn(connection);
            let post = Request::post("/upload").header("host", "cred.test");
            let post = post
                .header("authorization", BEARER)
                .body(Zeroes(bytes))
                .unwrap();
            sender.send_request(post).await.unwrap().status()
        });
        assert_eq!(status, 200);
    };
    transfer(2 * MIB);
    let before = peak_kib(&world);
    for _ in 0..TRANSFERS {
        transfer(TRANSFER_BYTES);
    }
    let grown = peak_kib(&world) - before;
    assert!(grown <= GROWTH_KIB_MAX, "{grown} KiB more");
    let requests = world.rig.requests("cred.test");
    let uploads = requests.iter().filter(|request| request.path == "/upload");
    let sizes: Vec<u64> = uploads.map(|request| request.body_bytes).collect();
    assert_eq!(sizes[1..], [TRANSFER_BYTES; TRANSFERS]);
}

#[test]
fn tunnel_goes_on_one_way_when_the_other_is_done() {
    let mut world = World::start();
    world.rig.origin("ok.test");
    world.rig.listen(7000, Listener::Echo).unwrap();
    let inside = world.new_box(allow(&["ok.test:7000"]), Vec::new());
    let sent = inside.run(|client| async move {
        let stream = client.tunnel("ok.test:7000").await.unwrap();
        let (mut reader, mut writer) = stream.into_split();
        // More than fits into all buffers on the way, so that the end overtakes nothing.
        let write = tokio::spawn(async move {
            writer.write_all(&vec![7; 8 << 20]).await.unwrap();
            writer.shutdown().await.unwrap();
            writer
        });
        let mut echo = Vec::new();
        reader.read_to_end(&mut echo).await.unwrap();
        write.await.unwrap();
        echo.len()
    });
    assert_eq!(sent, 8 << 20);
}
