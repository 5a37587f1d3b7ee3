//! The control socket: what a client asks the host and what comes back.
//!
//! Frames are `u32` little-endian length, then that many bytes of JSON (at most
//! [`FRAME_BYTES_MAX`]). The client opens with [`Hello`], the host answers [`Welcome`]; then one
//! [`Request`] a connection. The host answers any number of [`Reply`] frames, the last of which is
//! `Done` or `Problem`. While a request runs the client may send [`ClientMessage`] frames.
//! `Reply::Streams` carries file descriptors (`SCM_RIGHTS`) beside its first byte.

use crate::thread::{Cursor, Decision, ThreadInfo, ThreadUpdate};
use crate::{BoxId, BoxName, BoxTitle, DecisionId, Owner, Problem, ThreadId};
use serde::{Deserialize, Serialize};

/// Longest frame either side accepts.
pub const FRAME_BYTES_MAX: usize = 16 << 20;

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

/// One thing a client wants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "snake_case")]
pub enum Request {
    /// What runs here.
    Status,
    New(NewBox),
    List,
    Info {
        name: BoxName,
    },
    Start {
        name: BoxName,
    },
    Stop {
        target: Target,
    },
    Remove {
        target: Target,
    },
    Exec(Exec),
    /// Output of a durable process of a box; `process` absent means the newest.
    Logs {
        name: BoxName,
        process: Option<String>,
        follow: bool,
    },
    ImageList,
    /// Makes the image ready for use if it is not.
    ImagePrepare {
        image: String,
    },
    ImageRemove {
        image: String,
    },
    Run(Run),
    /// Takes up a thread: what was missed after `after`, then what comes.
    Attach {
        name: BoxName,
        thread: Option<ThreadId>,
        after: Option<Cursor>,
        follow: bool,
    },
    /// Answers a decision; the first answer wins.
    Answer {
        decision: DecisionId,
        option: String,
    },
    /// `secret` travels only here, over the socket of one machine; it is not kept on disk.
    CredentialAdd(CredentialAdd),
    CredentialList,
    CredentialRemove {
        name: String,
    },
    /// Installs an agent's pack if it is not there.
    AgentPrepare {
        agent: String,
    },
    AgentList,
    /// Ends the host; boxes go on.
    StopHost,
}

/// One box, or every box of the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    All,
    Box(BoxName),
}

/// How hard a box is (decision D2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// uid 1020, read-only root, no capability.
    Locked,
    /// uid 0 of its own user namespace, writable root.
    Root,
}

/// Which hosts a box may reach when nothing else is said (decision D32).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetPreset {
    Balanced,
    Open,
    Locked,
}

/// Limits of a box (decision D11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Thousandths of a CPU.
    pub cpu_milli: u32,
    pub memory_bytes: u64,
    pub pids: u32,
    /// Size of the tmpfs that `/tmp`, `/run` and `/dev/shm` share.
    pub tmp_bytes: u64,
    /// Workspace, home and, for `root`, changes to the root.
    pub disk_bytes: u64,
    /// Open files of one process.
    pub open_files: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            cpu_milli: 2000,
            memory_bytes: 4 << 30,
            pids: 512,
            tmp_bytes: 512 << 20,
            disk_bytes: 20 << 30,
            open_files: 65_536,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewBox {
    pub name: BoxName,
    pub title: Option<BoxTitle>,
    /// `debian:<suite>`, `file:<tar>`, or absent for the default image.
    pub image: Option<String>,
    pub profile: Profile,
    pub net: NetPreset,
    pub limits: Limits,
    /// Extra names the box may reach: `host`, `*.host` or `host:port`.
    #[serde(default)]
    pub allow: Vec<String>,
    pub start: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exec {
    pub name: BoxName,
    /// Program and arguments; never a shell string.
    pub command: Vec<String>,
    /// Absent: the box's workspace.
    pub cwd: Option<String>,
    #[serde(default)]
    pub env: Vec<(String, String)>,
    /// Present: a terminal of this size, one descriptor; absent: pipes, three descriptors.
    pub terminal: Option<TerminalSize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSize {
    pub rows: u16,
    pub columns: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// `claude`, `demo`, …
    pub agent: String,
    pub prompt: String,
    /// An existing box, or the name of the new one; absent: a new box with a made-up name.
    pub name: Option<BoxName>,
    /// Cloned into the workspace, inside the box, before the agent starts.
    pub repo: Option<String>,
    /// The agent's bypass mode, else the client answers *allow once*.
    pub allow_all: bool,
    pub image: Option<String>,
    pub profile: Profile,
    pub net: NetPreset,
    pub limits: Limits,
}

/// `secret` is wiped by whoever holds it last; the type has no `Debug` that shows it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CredentialAdd {
    /// `claude`
    pub kind: String,
    /// The account's name; `default` when the person gave none.
    pub name: String,
    pub secret: String,
}

impl std::fmt::Debug for CredentialAdd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "CredentialAdd({} {}, secret not shown)",
            self.kind, self.name
        )
    }
}

/// What a client may say while its request runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub enum ClientMessage {
    /// For `Exec`: send this signal number to the command.
    Signal { number: i32 },
    /// For `Run` and `Attach`: cancel the turn.
    CancelTurn,
    /// For `Run` and `Attach`: answer an open decision.
    Answer {
        decision: DecisionId,
        option: String,
    },
    /// For `Attach`: a new prompt.
    Prompt { text: String },
}

/// What the host sends back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum Reply {
    /// One line of what is going on, for a person.
    Progress {
        text: String,
    },
    /// For `Exec`: the descriptors that come with it are stdin, stdout, stderr, or one terminal.
    Streams,
    /// For `Logs`: a piece of output, base64.
    Output {
        base64: String,
    },
    /// For `Run`: which box and thread it is.
    Thread {
        box_id: BoxId,
        name: BoxName,
        thread: ThreadId,
    },
    Update(ThreadUpdate),
    /// Somebody else was faster, or the decision is over.
    AnswerRefused {
        decision: DecisionId,
        why: String,
    },
    Done(Outcome),
    Problem(Problem),
}

/// The result of a request that worked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum Outcome {
    Nothing,
    Status(Status),
    Info(Box<BoxInfo>),
    Boxes {
        boxes: Vec<BoxInfo>,
    },
    Images {
        images: Vec<ImageInfo>,
    },
    Image(ImageInfo),
    Credentials {
        credentials: Vec<CredentialInfo>,
    },
    Agents {
        agents: Vec<AgentInfo>,
    },
    /// How a command ended: its code, or 128+n for a signal.
    Exit {
        code: i32,
    },
    Turn {
        outcome: crate::thread::TurnOutcome,
    },
    /// The turn is still going or waits; the client's request ends here.
    Detached {
        open: Vec<Decision>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    pub pid: u32,
    pub build: String,
    pub data_dir: String,
    pub boxes_running: u32,
    pub boxes_stopped: u32,
    /// Whether box-egress answers.
    pub egress: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BoxState {
    Creating,
    Stopped,
    Starting,
    Running,
    Stopping,
    Removing,
    Failed,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BoxInfo {
    pub id: BoxId,
    pub name: BoxName,
    pub title: Option<BoxTitle>,
    pub owner: Owner,
    pub state: BoxState,
    pub runtime: String,
    pub image: String,
    pub profile: Profile,
    pub net: NetPreset,
    pub limits: Limits,
    /// How the limits are held: `cgroup v2`, `cgroup v1` or `best effort`.
    pub limits_held_by: String,
    pub created_at_ms: i64,
    pub threads: Vec<ThreadInfo>,
    /// Host path of the workspace; absent for engines that keep it elsewhere.
    pub workspace: Option<String>,
    /// Process id of the box's pid 1 as the host sees it, while it runs.
    pub pid: Option<u32>,
    /// Why it failed, for state `failed`.
    pub problem: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageInfo {
    /// What a person types.
    pub image: String,
    pub digest: String,
    pub bytes: u64,
    pub created_at_ms: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CredentialInfo {
    pub kind: String,
    pub name: String,
    pub added_at_ms: i64,
    /// It was added, but box-egress has lost its memory since: it is to be added again.
    #[serde(default)]
    pub lost: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentInfo {
    pub agent: String,
    pub title: String,
    /// `installed <version>`, `not installed`, `built in`.
    pub state: String,
}
