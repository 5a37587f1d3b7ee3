//! The control socket: what a client asks the host and what comes back.
//!
//! Frames are `u32` little-endian length, then that many bytes of JSON (at most
//! [`FRAME_BYTES_MAX`]). The client opens with [`Hello`], the host answers [`Welcome`]; then one
//! [`Request`] a connection. The host answers any number of [`Reply`] frames, the last of which is
//! `Done` or `Problem`. While a request runs the client may send [`ClientMessage`] frames.
//! `Reply::Streams` carries file descriptors (`SCM_RIGHTS`) beside its first byte.

mod agent;
mod credential;
mod greeting;
mod image;
mod info;
mod limits;
mod machine;
mod park;
mod process;
mod threads;
mod travel;
mod undo;
mod ways;

pub use agent::{AgentAdd, AgentAsk, AgentCredential, AgentLogin, AgentOpens, AgentPacks};
pub use credential::{
    Accounts, AccountsError, AccountsOfKind, Choice, CredentialAdd, CredentialForm, CredentialInfo,
    CredentialSource, CredentialUnlock, LoginInfo, SealInfo, SealMethod,
};
pub use greeting::{Defaults, Hello, Welcome};
pub use image::{ImageAsk, ImageInfo, UnusedImages};
pub use info::{AgentInfo, BoxInfo, BoxState, Status};
pub use limits::{
    BoxEvent, BoxUsage, CHANGES_MAX, Change, EVENTS_PER_BOX_MAX, EVENTS_WITH_BOX_MAX, EventKind,
    Motion, Traffic, Used,
};
pub use machine::{BoxSettings, Limits, NetPreset, OnSignal, Origin, Profile};
pub use park::{Park, Parked, Parking, Priority};
pub use process::{
    Attach, End, Exec, Exposed, KillProcess, Logs, ProcessInfo, ProcessKind, ProcessState, Spawn,
    TerminalSize,
};
pub use threads::{
    CHOSEN_OPTIONS_MAX, DAMAGED_TOLD_MAX, DamagedLine, RECORDED_BYTES_MAX, ThreadAct, ThreadAsk,
    ThreadImport, ThreadImported, ThreadsAsk,
};
pub use travel::{Along, Export, Exported, Import};
pub use undo::{
    Awaited, BoxDisk, CloneBox, Haste, KeepWorkspace, Marks, PruneDepth, Pruned, Removal, Remove,
    Restored, SETUP_BYTES_MAX, Sizes, Snapshots, Taken, Trash, Unpushed, WAIT_MS_MAX,
};

pub use ways::{
    ATTACHMENT_BYTES_MAX, ATTACHMENTS_MAX, AttachFile, Attached, NewAttachment, PIECE_BYTES_MAX,
    SHELL_LINE_CHARS_MAX, SHELL_OUTPUT_BYTES_MAX, ShellEnded, ShellLine, ThreadOpen, envelope,
};

use crate::budget::{ModelUsage, UsageAsk};
use crate::decision::FormAnswer;
use crate::network::{Net, NetLine, PolicyAsk, PolicyShown, Waiting};
use crate::page::{NewToken, PageAsk, PairingLink, SignIn, TokenInfo};
use crate::restore_point::RestorePoints;
use crate::search::{Found, SearchAsk};
use crate::snapshot::{CopyMethod, SnapshotInfo};
use crate::thread::{Decision, ThreadInBox, ThreadInfo, ThreadShown, ThreadUpdate};
use crate::{BoxId, BoxName, BoxTitle, DecisionId, Problem, ThreadId};
use serde::{Deserialize, Serialize};

/// Longest frame either side accepts.
pub const FRAME_BYTES_MAX: usize = 16 << 20;

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
    /// Starts every box of the caller that does not run.
    StartAll,
    Stop {
        target: Target,
        #[serde(default)]
        haste: Haste,
    },
    /// Of `all`, only those that run.
    Restart {
        target: Target,
        #[serde(default)]
        haste: Haste,
    },
    Remove(Remove),
    Trash(Trash),
    Rename {
        name: BoxName,
        to: BoxName,
    },
    Clone(CloneBox),
    Snapshots(Snapshots),
    /// What `Snapshots::Restore` can bring a box back to, turn by turn.
    RestorePoints {
        name: BoxName,
    },
    Search(SearchAsk),
    Export(Export),
    Import(Import),
    DiskUsage {
        target: Target,
    },
    Wait {
        name: BoxName,
        until: Awaited,
        /// At most [`WAIT_MS_MAX`].
        timeout_ms: u64,
    },
    /// Changes a box that is there: all of it, or nothing.
    Set {
        name: BoxName,
        changes: Vec<Change>,
    },
    /// What the caller's boxes use; takes half a second.
    Top,
    /// What models cost.
    ModelUsage(UsageAsk),
    /// Of `all`, only those that run.
    Move {
        target: Target,
        motion: Motion,
    },
    /// What befell a box.
    Events {
        name: BoxName,
    },
    Exec(Exec),
    /// Starts a command that outlives its caller and this host.
    Spawn(Spawn),
    /// Durable processes of a box.
    Processes {
        name: BoxName,
    },
    KillProcess(KillProcess),
    /// Shows a port of a box on 127.0.0.1 (B94).
    Expose {
        name: BoxName,
        port: u16,
        host_port: Option<u16>,
    },
    ExposedRemove {
        name: BoxName,
        port: u16,
    },
    ExposedList {
        name: Option<BoxName>,
    },
    /// Output of a durable process of a box; `process` absent means the newest.
    Logs(Logs),
    ImageList,
    /// Makes the image ready for use if it is not.
    ImagePrepare {
        image: String,
    },
    ImageRemove {
        image: String,
    },
    Image(ImageAsk),
    Run(Run),
    /// Takes up a thread: what was missed after `after`, then what comes.
    Attach(Attach),
    /// What threads there are.
    Threads(ThreadsAsk),
    /// Does something with one thread.
    Thread(ThreadAsk),
    /// Makes a thread of a conversation that an agent recorded elsewhere.
    ThreadImport(ThreadImport),
    /// Puts a file where the agent of a box finds it.
    AttachFile(AttachFile),
    /// Runs a `!` line; what it prints comes as `Reply::Output`.
    ShellLine(ShellLine),
    /// Begins a thread that waits for its first prompt.
    ThreadOpen(ThreadOpen),
    /// The network log of a box.
    Net(Net),
    Policy(PolicyAsk),
    /// What waits for the caller.
    Decisions {
        /// Stays with the request: what is opened later is sent as it is.
        follow: bool,
    },
    /// Answers a decision; the first answer wins.
    Answer {
        decision: DecisionId,
        option: String,
    },
    /// Fills in a form, declines it, or takes a request away; the first answer wins.
    AnswerForm {
        decision: DecisionId,
        answer: FormAnswer,
    },
    /// No turn begins by itself before a time.
    Park(Park),
    /// A parked thread goes on now.
    Resume {
        name: BoxName,
        /// Absent: every parked thread of the box.
        thread: Option<ThreadId>,
    },
    /// `secret` travels only here, over the socket of one machine; it is not kept on disk.
    CredentialAdd(CredentialAdd),
    /// Gives one that is there a new secret; placeholders stay. `form` is not looked at.
    CredentialRotate(CredentialAdd),
    CredentialUnlock(CredentialUnlock),
    CredentialList,
    CredentialRemove {
        name: String,
    },
    /// Installs an agent's pack if it is not there.
    AgentPrepare {
        agent: String,
    },
    AgentList,
    Agent(AgentAsk),
    /// Who may use the page.
    Page(PageAsk),
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
    #[serde(default)]
    pub settings: BoxSettings,
    /// A script that sets the box up, run inside once it is up (B18).
    #[serde(default)]
    pub setup: Option<String>,
    #[serde(default)]
    pub marks: Marks,
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
    #[serde(default)]
    pub settings: BoxSettings,
    /// Files for the agent; the prompt then names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<NewAttachment>,
    /// What of its offer the agent is to use: its mode, its model and the like.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chosen: Vec<crate::thread::ChosenOption>,
}

/// What a client may say while its request runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// For `Run` and `Attach`: fill in an open form, decline it, or take a request away.
    AnswerForm {
        decision: DecisionId,
        answer: FormAnswer,
    },
    /// For `Run` and `Attach`: a person looks and answers what is asked from now on.
    Person,
    /// For `Attach`: a new prompt.
    Prompt { text: String },
    /// For `AttachFile` and `Run`: the next of a file, at most [`PIECE_BYTES_MAX`].
    Piece { base64: String },
}

/// What the host sends back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum Reply {
    /// One line of what is going on, for a person.
    Progress {
        text: String,
    },
    /// One line a person is to keep: a warning, or what was done besides.
    Note {
        text: String,
    },
    /// For `Exec`: the descriptors that come with it are stdin, stdout, stderr, or one terminal.
    Streams,
    /// For `Logs`, `ShellLine`, and for `New` with a set-up: a piece of output, base64.
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
    /// A decision that is no thread's own: it was opened, or is over.
    Decision(Waiting),
    /// For `Net`: a line that is new or has changed.
    Net(NetLine),
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
    Taken {
        taken: Vec<Taken>,
    },
    Snapshots {
        snapshots: Vec<SnapshotInfo>,
    },
    Restored(Box<Restored>),
    RestorePoints(RestorePoints),
    Found(Found),
    Exported(Exported),
    DiskUsage {
        boxes: Vec<BoxDisk>,
    },
    /// Whether what was waited for holds now.
    Waited {
        reached: bool,
    },
    Pruned(Pruned),
    Image(ImageInfo),
    UnusedImages(UnusedImages),
    Credentials {
        credentials: Vec<CredentialInfo>,
        /// Made inside boxes.
        #[serde(default)]
        logins: Vec<LoginInfo>,
    },
    Seal(SealInfo),
    Agents {
        agents: Vec<AgentInfo>,
    },
    AgentOpens(AgentOpens),
    AgentLogin(AgentLogin),
    AgentPacks(AgentPacks),
    Net {
        lines: Vec<NetLine>,
    },
    Decisions {
        decisions: Vec<Waiting>,
    },
    /// Of `Park` and `Resume`: the threads it was about.
    Parking {
        threads: Vec<Parked>,
    },
    Policy(PolicyShown),
    Checked(crate::egress::Checked),
    /// The settings were read again; what is odd about them.
    Reloaded {
        findings: Vec<crate::network::Finding>,
    },
    /// There is another CA; these boxes trust the old one until they are started again.
    NewCa {
        restart: Vec<BoxName>,
    },
    /// Of `Set`; `later` names what holds from the box's next start on.
    Changed {
        info: Box<BoxInfo>,
        later: Vec<String>,
    },
    Usage {
        boxes: Vec<BoxUsage>,
    },
    ModelUsage(ModelUsage),
    /// Oldest first.
    Events {
        events: Vec<BoxEvent>,
    },
    Process(ProcessInfo),
    Processes {
        processes: Vec<ProcessInfo>,
        /// How many run inside, where the engine counts them.
        #[serde(default)]
        inside: Option<u32>,
    },
    Exposed {
        ports: Vec<Exposed>,
    },
    /// How a command ended: its code, or 128+n for a signal.
    Exit {
        code: i32,
    },
    Turn {
        outcome: crate::thread::TurnOutcome,
    },
    /// Newest first, box by box.
    Threads {
        threads: Vec<ThreadInBox>,
    },
    ThreadShown(Box<ThreadShown>),
    ThreadImported(ThreadImported),
    Attached(Attached),
    ShellEnded(ShellEnded),
    PageLink(PairingLink),
    PageAt {
        url: String,
    },
    SignIns {
        sign_ins: Vec<SignIn>,
    },
    /// Shown this once.
    Token(NewToken),
    Tokens {
        tokens: Vec<TokenInfo>,
    },
    /// A thread that waits for a prompt.
    Thread {
        thread: ThreadId,
    },
    /// The turn is still going or waits; the client's request ends here.
    Detached {
        open: Vec<Decision>,
    },
}
