//! Frames of a WebSocket from a host, cut anywhere: what passes are the same frames without the
//! secret, and what is no frame of a host's ends it. Beside a reader that has everything at once.

use super::{Target, corpus};
use crate::intercept::grant::{Credential, Grant};
use crate::intercept::scrub::FrameScrub;
use crate::secret::Secret;
use box_api::egress::{Carriage, CredentialSpec};
use memchr::memmem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const SECRET: &[u8] = b"sk-ant-oat01-S3CRET-token";
const WORDS: &[&[u8]] = &[
    SECRET,
    b"sk-ant-oat01-",
    b"S3CRET-token",
    b"\x81\x19",
    b"\x01\x09",
    b"\x80\x10",
    b"\x00\x05",
    b"\x89\x00",
    b"\x88\x02",
    b"\x82\x7e\x00\x80",
    b"\x82\x7f\0\0\0\0\0\0\0\x19",
    b"\xc1",
];

/// The messages of frames that are a host's, as far as they are there; control frames are messages
/// of their own. Absent where one is none.
fn messages(mut bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (mut all, mut open) = (Vec::new(), Vec::new());
    while let Some((first, rest)) = bytes.split_first() {
        if first & 0x70 != 0 {
            return None;
        }
        let Some((second, rest)) = rest.split_first() else {
            break;
        };
        if second & 0x80 != 0 {
            return None;
        }
        let wide = match second {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let Some((length, rest)) = rest.split_at_checked(wide) else {
            break;
        };
        let length = match wide {
            0 => u64::from(*second),
            _ => length
                .iter()
                .fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
        };
        let is_control = first & 8 != 0;
        if is_control && length > 125 {
            return None;
        }
        let there = usize::try_from(length)
            .unwrap_or(usize::MAX)
            .min(rest.len());
        let (payload, behind) = rest.split_at(there);
        if is_control {
            all.push(payload.to_vec());
        } else {
            open.extend_from_slice(payload);
            if first & 0x80 != 0 {
                all.push(std::mem::take(&mut open));
            }
        }
        bytes = behind;
    }
    all.push(open);
    Some(all)
}

fn grant() -> Grant {
    let spec = CredentialSpec {
        id: "c".into(),
        kind: "claude".into(),
        hosts: Vec::new(),
        carried: vec![Carriage::Bearer],
    };
    Grant {
        placeholder: "sk-ant-oat01-PLACEHOLDER-x".into(),
        credential: Some(Arc::new(Credential {
            spec,
            secret: Some(Secret::new(SECRET)),
        })),
    }
}

#[test]
fn frames_pass_as_they_are_without_the_secret() {
    let target = Target {
        seeds: corpus("sockets"),
        words: WORDS,
    };
    let grants = [grant()];
    let mut replaced = 0_u32;
    target.run(|input, chance| {
        let shown = input.escape_ascii();
        let found = Arc::new(AtomicBool::new(false));
        let tell = Arc::clone(&found);
        let tell = Box::new(move || tell.store(true, Ordering::Relaxed));
        let mut scrub = FrameScrub::new(&grants, tell).unwrap();
        let (mut rest, mut passed) = (input, Vec::new());
        let mut ended = false;
        while !rest.is_empty() && !ended {
            let (piece, behind) = rest.split_at(1 + chance.below(rest.len().min(40)));
            match scrub.pass(piece) {
                Ok(more) => passed.extend(more),
                Err(_) => ended = true,
            }
            rest = behind;
        }
        let known = messages(input);
        assert_eq!(ended, known.is_none(), "{shown}");
        if ended {
            return;
        }
        passed.extend(scrub.finish());
        assert_eq!(passed.len(), input.len(), "{shown}");
        if !found.load(Ordering::Relaxed) {
            assert_eq!(passed, input, "{shown}");
        }
        let after = messages(&passed).unwrap_or_else(|| panic!("other frames: {shown}"));
        let before = known.unwrap_or_default();
        let lengths = |all: &[Vec<u8>]| all.iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(lengths(&after), lengths(&before), "{shown}");
        for message in &after {
            assert_eq!(memmem::find(message, SECRET), None, "{shown}");
        }
        replaced += u32::from(found.load(Ordering::Relaxed));
    });
    assert!(replaced > 0, "nothing was replaced");
}
