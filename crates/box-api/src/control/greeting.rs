//! How a connection begins: who is there, and what a client starts from.

use super::{Limits, NetPreset, Profile};
use serde::{Deserialize, Serialize};

/// The client's first frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    pub build: String,
    pub protocol: u32,
}

/// The host's first frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    pub build: String,
    pub protocol: u32,
    /// Process id of the host.
    pub pid: u32,
    pub data_dir: String,
    pub started_at_ms: i64,
    /// What this host's settings say where a person says nothing; a client starts from it.
    #[serde(default)]
    pub defaults: Defaults,
}

/// Defaults of a new box: the host's settings (`[box]`, `[net]`, `[limits]`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Defaults {
    pub profile: Profile,
    pub net: NetPreset,
    pub limits: Limits,
}

impl Default for Defaults {
    /// Decisions D2, D11 and D32.
    fn default() -> Self {
        Self {
            profile: Profile::Locked,
            net: NetPreset::Balanced,
            limits: Limits::default(),
        }
    }
}
