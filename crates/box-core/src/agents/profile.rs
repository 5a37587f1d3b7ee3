//! What an agent is: its command, environment, credential, hosts, modes and quirks.
//!
//! One `agents/<name>/profile.toml` each, embedded. Agents have no trait: the protocol is ACP for
//! all of them, and what differs is data (design, *Seams*). Spec A30, A31, C1.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Names up to this edit distance are offered when a name is unknown.
const DID_YOU_MEAN_DISTANCE_MAX: usize = 2;

/// Agent packs are mounted below this folder of a box, read-only, one folder an agent.
pub const PACKS_IN_BOX: &str = "/opt/box/agents";

/// An agent, as `agents/<name>/profile.toml` has it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentProfile {
    /// What a person types: `claude`.
    pub name: String,
    /// What a person reads: `Claude Code`.
    pub title: String,
    /// Where its program comes from.
    #[serde(default)]
    pub pack: PackKind,
    /// Program and arguments, absolute paths inside the box. It speaks ACP on its standard streams.
    pub command: Vec<String>,
    /// Added to the box's environment for this agent alone.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Variables for this agent alone that have the value of another one of the box, such as the
    /// placeholder of its account.
    #[serde(default)]
    pub same_as: BTreeMap<String, String>,
    /// Names the agent needs to reach; preset `balanced` allows them.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// What to do to get an account, one line for a hint.
    pub login: Option<String>,
    /// The command of its own login, for one whose tokens the way out keeps.
    pub login_inside: Option<Vec<String>>,
    #[serde(default)]
    pub modes: Modes,
    /// The ACP method by which the agent takes the account of its environment, for an agent that
    /// asks for one until it is told; sent only when it asks.
    pub authenticate: Option<String>,
    /// The account it works with; absent for an agent that needs none.
    pub credential: Option<CredentialProfile>,
    /// The file of the home in which the agent looks for what it should always know, relative to
    /// it; absent: it has none.
    pub context: Option<String>,
    /// Files put into a new home before the agent first starts.
    #[serde(default)]
    pub files: Vec<HomeFile>,
    /// The `_meta` object of `session/new` and `session/load`; empty: none is sent.
    #[serde(default)]
    pub session_meta: Map<String, Value>,
    #[serde(default)]
    pub quirks: Quirks,
}

/// Where an agent's program comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PackKind {
    /// One of the static programs that are part of this one.
    BuiltIn,
    /// Installed from `agents/<name>/pack.lock.json` and mounted at `/opt/box/agents/<name>`.
    Locked,
    /// It is in the box already: from its image, its set-up or its owner.
    #[default]
    InBox,
}

/// ACP mode ids. The host sets a mode after every new, load and fork, never trusting the agent's
/// own default (decision D8).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Modes {
    /// Asks before it acts: what a person's thread starts in.
    pub ask: String,
    /// Only plans: what a fork starts in. Absent: the agent has none.
    pub plan: Option<String>,
    /// Never asks, for `--allow-all`. Absent: the client answers *allow once* instead.
    pub bypass: Option<String>,
}

impl Default for Modes {
    /// What most agents call it; one that has modes and not this one says so and begins nothing.
    fn default() -> Self {
        Self {
            ask: "default".to_owned(),
            plan: None,
            bypass: None,
        }
    }
}

/// How an agent's account travels.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CredentialProfile {
    /// As in `box credential add <kind>`.
    pub kind: String,
    /// The only hosts that are ever sent the credential; they are intercepted. Empty where the kind
    /// has a table of its own (`credentials/kinds`).
    #[serde(default)]
    pub hosts: Vec<String>,
    /// What a secret can look like, and where such a one belongs; empty likewise.
    #[serde(default)]
    pub shapes: Vec<CredentialShape>,
}

/// One form of credential, told from the others by how it begins.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CredentialShape {
    /// How every secret of this form begins, and so its placeholder.
    pub prefix: String,
    /// The variable of the box that holds the placeholder.
    pub variable: String,
    /// Lower-case name of the header the agent sends it in.
    pub header: String,
    /// The word before it in that header, such as `Bearer`; absent: the bare value.
    pub scheme: Option<String>,
}

/// A file of a new home.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HomeFile {
    /// Relative to the home; no `..`.
    pub path: String,
    pub content: String,
}

/// Where an agent needs other treatment than ACP says.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Quirks {
    /// Longest line it may be sent, bytes; below its own limit, which some die of.
    pub input_line_bytes_max: usize,
    /// How long it may take to answer `initialize` and `session/new`, seconds.
    pub start_seconds_max: u64,
    pub repeating: Repeating,
}

impl Default for Quirks {
    fn default() -> Self {
        Self {
            input_line_bytes_max: 1 << 20,
            start_seconds_max: 60,
            repeating: Repeating::default(),
        }
    }
}

/// When an agent repeats a conversation it takes up, if it does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Repeating {
    /// As the protocol has it.
    #[default]
    BeforeItAnswers,
    /// Some of it at least; its first prompt waits until it is quiet.
    AfterItAnswers,
}

/// Why a profile file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    #[error("could not read the agent profile")]
    Toml(#[from] toml::de::Error),
    #[error("the agent profile `{agent}` has a bad `{field}`: `{value}`")]
    Field {
        agent: String,
        field: &'static str,
        value: String,
    },
}

/// No agent has that name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no agent `{name}`")]
pub struct UnknownAgent {
    pub name: String,
    /// The agent that was probably meant.
    pub did_you_mean: Option<&'static str>,
    /// Every agent there is, in the order they are shown.
    pub known: Vec<&'static str>,
}

impl UnknownAgent {
    /// What the person can do now.
    pub fn hint(&self) -> String {
        let known = self
            .known
            .iter()
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>()
            .join(", ");
        match self.did_you_mean {
            Some(near) => format!("did you mean `{near}`? agents here: {known}"),
            None => format!("agents here: {known}"),
        }
    }
}

/// The embedded profiles, in the order they are shown.
const EMBEDDED: [&str; 9] = [
    include_str!("../../../../agents/claude/profile.toml"),
    include_str!("../../../../agents/codex/profile.toml"),
    include_str!("../../../../agents/opencode/profile.toml"),
    include_str!("../../../../agents/gemini/profile.toml"),
    include_str!("../../../../agents/grok/profile.toml"),
    include_str!("../../../../agents/kimi/profile.toml"),
    include_str!("../../../../agents/copilot/profile.toml"),
    include_str!("../../../../agents/qwen/profile.toml"),
    include_str!("../../../../agents/demo/profile.toml"),
];

#[expect(
    clippy::expect_used,
    reason = "the files are part of the program; a test parses each"
)]
static PROFILES: LazyLock<Vec<AgentProfile>> = LazyLock::new(|| {
    EMBEDDED
        .iter()
        .map(|text| AgentProfile::parse(text).expect("embedded profiles are valid"))
        .collect()
});

/// Every agent there is: those of this program, then those that were added.
pub fn profiles() -> impl Iterator<Item = &'static AgentProfile> {
    embedded().iter().chain(super::added::profiles())
}

/// The agents of this program.
pub fn embedded() -> &'static [AgentProfile] {
    &PROFILES
}

/// The agent of that name.
///
/// # Errors
/// [`UnknownAgent`], with the name that was probably meant.
pub fn find(name: &str) -> Result<&'static AgentProfile, UnknownAgent> {
    profiles()
        .find(|profile| profile.name == name)
        .ok_or_else(|| {
            let known: Vec<&'static str> =
                profiles().map(|profile| profile.name.as_str()).collect();
            let near = |known: &&&str| strsim::damerau_levenshtein(name, known);
            let did_you_mean = known
                .iter()
                .min_by_key(near)
                .filter(|k| near(k) <= DID_YOU_MEAN_DISTANCE_MAX)
                .copied();
            UnknownAgent {
                name: name.to_owned(),
                did_you_mean,
                known,
            }
        })
}

impl AgentProfile {
    /// Reads a profile and checks every field that becomes a path, a variable or a header.
    ///
    /// # Errors
    /// [`ProfileError`]: unknown keys, missing keys, or the field that is wrong.
    pub fn parse(text: &str) -> Result<Self, ProfileError> {
        let profile: Self = toml::from_str(text)?;
        match profile.bad_field() {
            None => Ok(profile),
            Some((field, value)) => Err(ProfileError::Field {
                agent: profile.name,
                field,
                value,
            }),
        }
    }

    /// A pack's program lies in the pack; what is in the box has a path, or a name it finds.
    fn may_run(&self, program: &str) -> bool {
        match self.pack {
            PackKind::BuiltIn | PackKind::Locked => is_absolute_in_box(program),
            PackKind::InBox => is_relative(program.strip_prefix('/').unwrap_or(program)),
        }
    }

    /// Where the pack is mounted in a box.
    pub fn mount_point(&self) -> String {
        format!("{PACKS_IN_BOX}/{}", self.name)
    }

    fn bad_field(&self) -> Option<(&'static str, String)> {
        let program = self.command.first().cloned().unwrap_or_default();
        let shapes = || {
            self.credential
                .iter()
                .flat_map(|credential| &credential.shapes)
        };
        let hosts = || {
            self.hosts
                .iter()
                .chain(self.credential.iter().flat_map(|c| &c.hosts))
        };
        let variables = || {
            let own = self.env.keys().chain(self.same_as.keys());
            own.chain(shapes().map(|shape| &shape.variable))
        };
        let checks: [(&'static str, Option<&String>); 8] = [
            ("name", Some(&self.name).filter(|name| !is_plain(name))),
            ("title", Some(&self.title).filter(|title| title.is_empty())),
            ("command", Some(&program).filter(|path| !self.may_run(path))),
            ("hosts", hosts().find(|host| !is_host(host))),
            ("variable", variables().find(|name| !is_variable(name))),
            (
                "prefix",
                shapes().map(|s| &s.prefix).find(|prefix| prefix.len() < 3),
            ),
            (
                "header",
                shapes().map(|s| &s.header).find(|name| !is_plain(name)),
            ),
            (
                "files",
                self.files
                    .iter()
                    .map(|f| &f.path)
                    .chain(&self.context)
                    .find(|path| !is_relative(path)),
            ),
        ];
        checks
            .into_iter()
            .find_map(|(field, bad)| bad.map(|value| (field, value.clone())))
    }
}

impl CredentialProfile {
    /// The form a secret has, by how it begins. The secret is only looked at.
    pub fn shape_of(&self, secret: &str) -> Option<&CredentialShape> {
        self.shapes
            .iter()
            .find(|shape| secret.starts_with(&shape.prefix))
    }
}

/// `[a-z][a-z0-9-]*`: agent names and header names.
fn is_plain(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

fn is_absolute_in_box(path: &str) -> bool {
    path.strip_prefix("/opt/box/").is_some_and(is_relative)
}

fn is_relative(path: &str) -> bool {
    !path.is_empty()
        && path
            .split('/')
            .all(|part| !part.is_empty() && part != "." && part != "..")
        && !path.contains('\0')
}

fn is_host(host: &str) -> bool {
    host.contains('.')
        && host.split('.').all(|label| {
            !label.is_empty()
                && label
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        })
}

fn is_variable(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

#[cfg(test)]
mod tests;
