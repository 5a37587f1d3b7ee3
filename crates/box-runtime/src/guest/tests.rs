//! A guest gone bad: whatever it says or hands over, the host takes no harm and says what is wrong.

use super::{Event, GuestError, Offsets, ProcessName, attach, exec, list, ping};
use crate::ExecSpec;
use box_api::control::TerminalSize;
use box_api::guest::{Attached, Frame, FrameKind, InputState, Piece, Refusal, Reply, Stream};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::fs::File;
use std::io::{IoSlice, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

const DEADLINE: Duration = Duration::from_secs(20);

/// The guest's end of a connection, scripted.
struct BadGuest(UnixStream);

fn bad_guest() -> (OwnedFd, BadGuest) {
    let (host, guest) = UnixStream::pair().unwrap();
    (host.into(), BadGuest(guest))
}

impl BadGuest {
    fn say(&mut self, reply: &Reply) {
        self.bytes(&Frame::encode(FrameKind::Reply, reply).unwrap());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }

    fn piece(&mut self, stream: Stream, offset: u64, bytes: &[u8]) {
        let mut frame = Vec::new();
        Piece::write(&mut frame, stream, offset, [bytes, &[]]);
        self.bytes(&frame);
    }

    fn streams(&mut self, count: u32, fds: &[BorrowedFd<'_>]) {
        let frame = Frame::encode(FrameKind::Reply, &Reply::Streams { count }).unwrap();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(10))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(fds)));
        sendmsg(
            &self.0,
            &[IoSlice::new(&frame)],
            &mut control,
            SendFlags::empty(),
        )
        .unwrap();
    }
}

async fn in_time<F: IntoFuture>(future: F) -> F::Output {
    tokio::time::timeout(DEADLINE, future).await.unwrap()
}

fn spec(terminal: Option<TerminalSize>) -> ExecSpec {
    ExecSpec {
        command: vec!["true".to_owned()],
        cwd: None,
        env: Vec::new(),
        terminal,
    }
}

fn attached(taken: u64, window: u64, stdout_from: u64) -> Reply {
    let input = InputState {
        taken,
        window,
        closed: false,
    };
    Reply::Attached(Attached {
        input,
        stdout_from,
        stderr_from: 0,
        running: true,
    })
}

fn is_protocol<T>(result: &Result<T, GuestError>) -> bool {
    matches!(result, Err(GuestError::Protocol(_)))
}

#[tokio::test]
async fn descriptors_that_are_not_three_pipes_are_refused() {
    let file = File::open("/proc/self/exe").unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    let (file, reader, writer) = (file.as_fd(), reader.as_fd(), writer.as_fd());
    let cases: [(&str, u32, &[BorrowedFd<'_>]); 6] = [
        ("files", 3, &[file, file, file]),
        ("a file for stderr", 3, &[writer, reader, file]),
        ("pipes the wrong way round", 3, &[reader, writer, writer]),
        ("one too few", 3, &[writer, reader]),
        ("fewer than said", 3, &[writer]),
        ("only two, said so", 2, &[writer, reader]),
    ];
    for (what, count, fds) in cases {
        let (conn, mut guest) = bad_guest();
        guest.streams(count, fds);
        let result = in_time(exec(conn, spec(None))).await;
        assert!(is_protocol(&result), "{what}: {result:?}");
    }
    let (conn, mut guest) = bad_guest();
    guest.streams(5, &[writer, reader, reader, reader, reader]);
    assert!(in_time(exec(conn, spec(None))).await.is_err());
    // The control: the right ones are taken.
    let (conn, mut guest) = bad_guest();
    guest.streams(3, &[writer, reader, reader]);
    assert_eq!(
        in_time(exec(conn, spec(None))).await.unwrap().streams.len(),
        3
    );
}

#[tokio::test]
async fn a_terminal_that_is_none_is_refused() {
    let null = File::open("/dev/null").unwrap();
    let (conn, mut guest) = bad_guest();
    guest.streams(1, &[null.as_fd()]);
    let terminal = Some(TerminalSize {
        rows: 1,
        columns: 1,
    });
    assert!(is_protocol(&in_time(exec(conn, spec(terminal))).await));
}

#[tokio::test]
async fn output_with_a_gap_or_twice_is_an_error() {
    for offset in [0, 2, 6, u64::MAX - 1] {
        let (conn, mut guest) = bad_guest();
        guest.say(&attached(0, 0, 1));
        guest.piece(Stream::Stdout, 1, b"four");
        guest.piece(Stream::Stdout, offset, b"x");
        let from = Offsets {
            stdout: 1,
            stderr: 0,
        };
        let mut attachment = in_time(attach(conn, &name(), from)).await.unwrap();
        assert!(matches!(
            in_time(attachment.events.next()).await,
            Ok(Event::Output { .. })
        ));
        let next = in_time(attachment.events.next()).await;
        assert!(is_protocol(&next), "{offset}: {next:?}");
    }
}

#[tokio::test]
async fn an_attachment_that_does_not_fit_is_refused() {
    for (taken, window, stdout) in [(0, 0, 4), (5, 4, 5), (0, 3 << 20, 5)] {
        let (conn, mut guest) = bad_guest();
        guest.say(&attached(taken, window, stdout));
        let from = Offsets {
            stdout: 5,
            stderr: 0,
        };
        assert!(
            is_protocol(&in_time(attach(conn, &name(), from)).await),
            "{taken} {window} {stdout}"
        );
    }
}

#[tokio::test]
async fn input_that_was_never_sent_cannot_be_taken() {
    for state in [
        InputState {
            taken: 1,
            window: 1,
            closed: false,
        },
        InputState {
            taken: 0,
            window: 9,
            closed: false,
        },
    ] {
        let (conn, mut guest) = bad_guest();
        guest.say(&attached(0, 10, 0));
        guest.say(&Reply::Input(state));
        let mut attachment = in_time(attach(conn, &name(), Offsets::default()))
            .await
            .unwrap();
        assert!(
            is_protocol(&in_time(attachment.events.next()).await),
            "{state:?}"
        );
    }
}

#[tokio::test]
async fn an_end_before_the_output_is_an_error() {
    let (conn, mut guest) = bad_guest();
    guest.say(&attached(0, 0, 0));
    guest.say(&Reply::Ended {
        code: 0,
        stdout_end: 7,
        stderr_end: 0,
    });
    let mut attachment = in_time(attach(conn, &name(), Offsets::default()))
        .await
        .unwrap();
    assert!(is_protocol(&in_time(attachment.events.next()).await));
}

#[tokio::test]
async fn garbage_another_reply_and_a_closed_connection_are_told_apart() {
    let (conn, mut guest) = bad_guest();
    guest.bytes(&[0xff; 64]);
    assert!(is_protocol(&in_time(ping(conn)).await));
    let (conn, mut guest) = bad_guest();
    guest.say(&Reply::Done);
    assert!(is_protocol(&in_time(list(conn)).await));
    let (conn, guest) = bad_guest();
    drop(guest);
    assert!(matches!(in_time(ping(conn)).await, Err(GuestError::Gone)));
    let (conn, mut guest) = bad_guest();
    guest.bytes(&[9, 0, 0]);
    drop(guest);
    assert!(matches!(in_time(ping(conn)).await, Err(GuestError::Gone)));
}

#[tokio::test]
async fn a_refusal_is_shortened_and_holds_no_control_characters() {
    let (conn, mut guest) = bad_guest();
    let text = format!("no\x1b[2J\n{}", "x".repeat(100_000));
    guest.say(&Reply::Refused {
        why: Refusal::Limit,
        text,
    });
    match in_time(ping(conn)).await {
        Err(GuestError::Refused {
            why: Refusal::Limit,
            text,
        }) => {
            assert!(text.starts_with("no[2Jxxx") && text.len() <= 4096);
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_command_whose_box_goes_away_counts_as_killed() {
    let (reader, writer) = std::io::pipe().unwrap();
    let (conn, mut guest) = bad_guest();
    guest.streams(3, &[writer.as_fd(), reader.as_fd(), reader.as_fd()]);
    let execution = in_time(exec(conn, spec(None))).await.unwrap();
    drop(guest);
    assert_eq!(in_time(execution.process.wait()).await.unwrap(), 137);
}

#[tokio::test]
async fn a_flood_waits_for_whoever_receives() {
    let (conn, mut guest) = bad_guest();
    guest.say(&attached(0, 0, 0));
    let attachment = in_time(attach(conn, &name(), Offsets::default()))
        .await
        .unwrap();
    let flood = tokio::task::spawn_blocking(move || {
        let mut sent: u64 = 0;
        let mut request = [0; 1024];
        // The request is read, so that nothing but the flood is under way.
        assert!(guest.0.read(&mut request).unwrap() > 0);
        guest
            .0
            .set_write_timeout(Some(Duration::from_millis(300)))
            .unwrap();
        let mut frame = Vec::new();
        let mut taken = true;
        while taken {
            frame.clear();
            Piece::write(&mut frame, Stream::Stdout, sent, [&[0; 1000], &[]]);
            taken = guest.0.write_all(&frame).is_ok();
            sent += 1000;
        }
        sent
    });
    // Nobody receives, so what is under way stays small.
    let sent = in_time(flood).await.unwrap();
    assert!(sent < 4 << 20, "{sent} bytes were taken");
    drop(attachment);
}

fn name() -> ProcessName {
    ProcessName::parse("agent").unwrap()
}
