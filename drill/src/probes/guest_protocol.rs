//! Rubbish for process 1.

use crate::{Attempt, Finding, Place, Probe, Stage, StageError};
use box_api::guest::{Frame, FrameKind, Request};

pub(super) const PROBE: Probe = Probe {
    name: "guest-protocol",
    claim: "what is no frame of the guest's protocol ends that connection and nothing else, and no box reaches its socket",
    attempt,
};

/// Whoever is refused is told so and hung up on at once; this is for the rubbish that waits for more.
const REPLY_MS: &str = "300";

/// `u32` length, kind, payload: each wrong in another way.
fn rubbish() -> Vec<Vec<u8>> {
    let frame = |kind: u8, payload: &[u8]| {
        let length = u32::try_from(payload.len() + 1).unwrap_or(u32::MAX);
        let mut bytes = length.to_le_bytes().to_vec();
        bytes.push(kind);
        bytes.extend_from_slice(payload);
        bytes
    };
    vec![
        vec![0xff; 64],
        vec![0; 64],
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        frame(9, b"x"),
        frame(1, b"{"),
        frame(1, &[0xff; 16]),
        frame(1, &b"[".repeat(20_000)),
        frame(
            1,
            br#"{"do":"exec","command":{"arguments":[],"folder":"/"},"terminal":null}"#,
        ),
        frame(
            1,
            br#"{"do":"exec","command":{"arguments":["a\u0000b"],"folder":"/"},"terminal":null}"#,
        ),
        frame(2, br#"{"say":"signal","number":9}"#),
        frame(3, b"\0\0\0"),
        frame(4, br#"{"reply":"done"}"#),
        frame(1, br#"{"do":"ping"}"#)[..7].to_vec(),
    ]
}

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let socket = &stage.facts().guest_socket;
    let mut attacks = vec![
        stage.attempt(Place::Target, &["unix-connect", socket])?,
        stage.attempt(Place::Sibling, &["unix-connect", socket])?,
    ];
    for bytes in rubbish() {
        let said = hex(&bytes);
        let answer = stage.act(Place::Outside, &["unix-say", socket, &said, REPLY_MS])?;
        let alive = stage.shell_attempt(Place::Target, "true")?;
        attacks.push(Attempt {
            what: format!("say {} bytes that begin with {said:.24}", bytes.len()),
            worked: !answer.is_ok() || !alive.worked,
            saw: format!("{answer}; then {}", alive.saw),
        });
    }
    let ping = Frame::encode(FrameKind::Request, &Request::Ping).unwrap_or_default();
    let answer = stage.act(Place::Outside, &["unix-say", socket, &hex(&ping), REPLY_MS])?;
    let reply = hex(b"pong");
    let controls = [Attempt {
        what: "ping it".to_owned(),
        worked: answer
            .word("back")
            .is_some_and(|back| back.contains(&reply)),
        saw: answer.to_string(),
    }];
    Ok(Finding::judge(&attacks, &controls))
}

fn hex(bytes: &[u8]) -> String {
    let pairs: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    pairs.concat()
}
