//! A box as an agent for a client that speaks the Agent Client Protocol: a thread is a session. No
//! I/O: `box acp` speaks it on standard input and output, the host on a WebSocket.

pub mod content;
pub mod message;
pub mod session;

use serde_json::{Value, json};

/// The protocol as all agents speak it.
const PROTOCOL_VERSION: u32 = 1;
/// Threads a client may have open.
pub const SESSIONS_MAX: usize = 32;

/// What `initialize` answers. Images go into the box as files, so every agent takes them.
pub fn abilities(version: &str) -> Value {
    json!({
        "protocolVersion": PROTOCOL_VERSION,
        "agentCapabilities": {
            "loadSession": true,
            "promptCapabilities": {"image": true, "audio": false, "embeddedContext": true},
        },
        "agentInfo": {"name": "box", "title": "Boxes", "version": version},
        "authMethods": [],
    })
}
