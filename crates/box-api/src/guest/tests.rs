//! What the frames hold and what they refuse.

use super::{
    Command, CommandError, FRAME_BYTES_MAX, Frame, FrameKind, FrameReader, Kill, Message,
    PIECE_BYTES_MAX, Piece, ProcessName, ProtocolError, Reply, Request, Stream,
};

fn command() -> Command {
    Command {
        arguments: vec!["env".to_owned()],
        folder: "/workspace".to_owned(),
        variables: vec![("TOKEN".to_owned(), "s3cret".to_owned())],
    }
}

#[test]
fn frames_survive_any_cut() {
    let request = Request::Exec {
        command: command(),
        terminal: None,
    };
    let mut bytes = Frame::encode(FrameKind::Request, &request).unwrap();
    Piece::write(&mut bytes, Stream::Stderr, 7, [b"ab", b"c"]);
    for cut in 0..=bytes.len() {
        let mut reader = FrameReader::default();
        let mut frames = Vec::new();
        for part in [&bytes[..cut], &bytes[cut..]] {
            reader.push(part);
            while let Some(frame) = reader.next_frame().unwrap() {
                frames.push(frame);
            }
        }
        assert!(reader.is_empty());
        assert_eq!(frames.len(), 2);
        assert_eq!(
            frames[0].decode::<Request>(FrameKind::Request).unwrap(),
            request
        );
        let piece = Piece::parse(&frames[1].payload).unwrap();
        assert_eq!(
            piece,
            Piece {
                stream: Stream::Stderr,
                offset: 7,
                bytes: b"abc"
            }
        );
        assert_eq!(piece.end(), 10);
    }
}

#[test]
fn long_empty_and_unknown_frames_are_refused_from_their_head() {
    let refused = |bytes: &[u8]| {
        let mut reader = FrameReader::default();
        reader.push(bytes);
        reader.next_frame().unwrap_err()
    };
    let long = u32::try_from(FRAME_BYTES_MAX + 1).unwrap().to_le_bytes();
    assert_eq!(
        refused(&long),
        ProtocolError::TooLong(FRAME_BYTES_MAX as u64 + 1)
    );
    assert_eq!(refused(&[0, 0, 0, 0]), ProtocolError::Empty);
    assert_eq!(refused(&[9, 0, 0, 0, 77]), ProtocolError::Kind(77));
}

#[test]
fn a_piece_is_bounded_and_ends_inside_64_bits() {
    let payload = |offset: u64, bytes: &[u8]| [&[1][..], &offset.to_le_bytes(), bytes].concat();
    assert!(Piece::parse(&payload(0, b"x")).is_ok());
    assert!(Piece::parse(&payload(0, b"")).is_err());
    assert!(Piece::parse(&payload(u64::MAX, b"x")).is_err());
    assert!(Piece::parse(&payload(0, &vec![0; PIECE_BYTES_MAX + 1])).is_err());
    assert!(Piece::parse(&[3; 20]).is_err());
    assert!(Piece::parse(&[]).is_err());
}

#[test]
fn requests_with_unknown_fields_or_verbs_are_refused() {
    let decode = |text: &str| {
        let frame = Frame {
            kind: FrameKind::Request,
            payload: text.as_bytes().to_vec(),
        };
        frame.decode::<Request>(FrameKind::Request)
    };
    assert_eq!(decode(r#"{"do":"ping"}"#), Ok(Request::Ping));
    assert!(decode(r#"{"do":"reboot"}"#).is_err());
    assert!(decode(r#"{"do":"forget","process":"a","force":true}"#).is_err());
    assert!(decode(r#"{"do":"forget","process":"../a"}"#).is_err());
    assert!(decode("{").is_err());
    let message = Frame {
        kind: FrameKind::Message,
        payload: b"{}".to_vec(),
    };
    assert!(matches!(
        message.decode::<Request>(FrameKind::Request),
        Err(ProtocolError::OutOfPlace { .. })
    ));
}

#[test]
fn shapes_on_the_wire_stay_as_they_are() {
    assert_eq!(
        shown(&Request::Kill {
            process: ProcessName::parse("a").unwrap(),
            how: Kill::Signal(15)
        }),
        r#"{"do":"kill","process":"a","how":{"signal":15}}"#
    );
    assert_eq!(
        shown(&Message::Ack {
            stream: Stream::Stdout,
            offset: 3
        }),
        r#"{"say":"ack","stream":"stdout","offset":3}"#
    );
    assert_eq!(
        shown(&Reply::Exited {
            code: 137,
            failure: None
        }),
        r#"{"reply":"exited","code":137,"failure":null}"#
    );
}

fn shown<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap()
}

#[test]
fn values_of_variables_are_never_shown() {
    let shown = format!(
        "{:?}",
        Request::Exec {
            command: command(),
            terminal: None
        }
    );
    assert!(shown.contains("TOKEN"));
    assert!(!shown.contains("s3cret"));
}

#[test]
fn a_command_is_checked_at_every_limit() {
    let with = |change: &dyn Fn(&mut Command)| {
        let mut command = command();
        change(&mut command);
        command.check()
    };
    assert_eq!(with(&|_| ()), Ok(()));
    assert_eq!(with(&|c| c.arguments.clear()), Err(CommandError::NoProgram));
    assert_eq!(
        with(&|c| c.arguments[0].clear()),
        Err(CommandError::NoProgram)
    );
    assert_eq!(
        with(&|c| c.arguments = vec!["a".to_owned(); 5000]),
        Err(CommandError::Arguments)
    );
    assert_eq!(
        with(&|c| c.folder = "tmp".to_owned()),
        Err(CommandError::Folder)
    );
    assert_eq!(
        with(&|c| c.variables[0].0 = "A=B".to_owned()),
        Err(CommandError::VariableName)
    );
    assert_eq!(
        with(&|c| c.variables[0].1 = "a\0b".to_owned()),
        Err(CommandError::Zero)
    );
    assert_eq!(
        with(&|c| c.arguments.push("x".repeat(200_000))),
        Err(CommandError::Argument)
    );
    let many = vec!["x".repeat(100_000); 6];
    assert_eq!(
        with(&|c| c.arguments.extend(many.clone())),
        Err(CommandError::Bytes)
    );
}

#[test]
fn names_of_processes_are_plain() {
    for good in ["a", "thread-abc", "0"] {
        assert!(ProcessName::parse(good).is_ok(), "{good}");
    }
    for bad in ["", "-a", "A", "a/b", "a.b", "a b", "ä", &"a".repeat(65)] {
        assert!(ProcessName::parse(bad).is_err(), "{bad}");
    }
}
