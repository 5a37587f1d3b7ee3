//! Agents: what is asked about their packs, profiles and logins, and what is told.

use super::AgentInfo;
use serde::{Deserialize, Serialize};

/// Something about agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum AgentAsk {
    /// Installs the pack that belongs to the host's build, and removes older ones no box can show;
    /// absent: of every agent that has one here.
    Update { agent: Option<String> },
    /// Removes a pack, or a profile that was added.
    Remove {
        agent: String,
        #[serde(default)]
        even_in_use: bool,
    },
    /// Reads a profile, or an entry of the ACP registry.
    Add(AgentAdd),
    /// How somebody logs in to it.
    Login { agent: String },
}

/// A profile to add.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct AgentAdd {
    /// What errors call it.
    pub file: String,
    /// TOML, or the JSON of the registry.
    pub text: String,
    /// False: it is only read, and told what it would open.
    pub agreed: bool,
}

/// What a profile opens, before it is added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct AgentOpens {
    pub agent: String,
    pub title: String,
    pub command: Vec<String>,
    /// Names every box with the preset `balanced` may reach from then on.
    pub hosts: Vec<String>,
    pub credential: Option<AgentCredential>,
    /// Variables of its process.
    pub variables: Vec<String>,
    /// Files put into the home of a box, relative to it.
    pub files: Vec<String>,
    /// The mode of it that threads begin in.
    #[serde(default)]
    pub mode: String,
    /// Whether a profile of that name is there and would be another one.
    pub replaces: bool,
}

/// The account of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct AgentCredential {
    pub kind: String,
    /// The only ones that are sent the secret.
    pub hosts: Vec<String>,
    /// Variables of a box that hold the placeholder.
    pub variables: Vec<String>,
}

/// How somebody logs in to an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct AgentLogin {
    pub agent: String,
    /// As in `box credential add`; absent: it needs no account.
    pub kind: Option<String>,
    /// One line on how to get one.
    pub hint: Option<String>,
    /// The command of its own login inside a box, whose tokens the way out keeps.
    pub inside: Option<Vec<String>>,
}

/// What became of packs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct AgentPacks {
    /// As they are now.
    pub agents: Vec<AgentInfo>,
    /// `<agent>/<version>` of each that is gone.
    pub removed: Vec<String>,
    /// Likewise of each that stays, because boxes that run may show it.
    pub kept: Vec<String>,
    /// Names of those boxes.
    pub boxes: Vec<String>,
}
