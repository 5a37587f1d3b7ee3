//! What the page in a browser and the host say to each other, over HTTP and one WebSocket.
//!
//! **REST.** Paths are under `/api`; bodies are JSON, requests and answers alike. A failure is a
//! [`Problem`](crate::Problem) as `application/problem+json` with a fitting status. Every request
//! and the WebSocket need the cookie that pairing sets, and a fitting `Host` and `Origin`.
//!
//! | Method and path | Body | Answer |
//! | --- | --- | --- |
//! | `POST /api/pair` | [`Pair`] | [`PairedBrowser`], and the cookie |
//! | `GET /api/me` | | [`Me`] |
//! | `POST /api/sign-out` | | 204 |
//! | `GET /api/sign-ins` | | [`SignIns`] |
//! | `POST /api/sign-ins` | | 201 [`NewLink`] |
//! | `DELETE /api/sign-ins/{id}` | | 204 |
//! | `GET /api/push` | | [`PushState`] |
//! | `POST /api/push` | [`PushAsk`] | 201 [`PushDevice`] |
//! | `DELETE /api/push/{sign_in}` | | 204 |
//! | `POST /api/push/key` | | [`PushKey`] |
//! | `POST /api/push/test` | | [`PushTested`] |
//! | `GET /api/checklist` | | [`Checklist`] |
//! | `POST /api/logins` | [`LoginAsk`] | 204 |
//! | `GET /api/tokens` | | [`Tokens`] |
//! | `POST /api/tokens` | [`TokenAsk`] | 201 [`NewToken`], once |
//! | `DELETE /api/tokens/{id}` | | 204 |
//! | `GET /api/status` | | [`Status`](crate::control::Status) |
//! | `GET /api/agents` | | [`Agents`] |
//! | `GET /api/doctor` | | [`Doctor`] |
//! | `GET /api/boxes` | | [`Boxes`] |
//! | `POST /api/boxes` | [`NewBoxAsk`] | 201 [`BoxInfo`](crate::control::BoxInfo) |
//! | `GET /api/boxes/{box}` | | [`BoxInfo`](crate::control::BoxInfo) |
//! | `POST /api/boxes/{box}/start`, `stop`, `restart`, `freeze`, `thaw` | [`Hurry`] or none | [`BoxInfo`](crate::control::BoxInfo) |
//! | `POST /api/boxes/{box}/rename` | [`RenameAsk`] | [`BoxInfo`](crate::control::BoxInfo) |
//! | `POST /api/boxes/{box}/remove` | [`RemoveAsk`] | 204 |
//! | `GET /api/trash` | | [`Boxes`] |
//! | `POST /api/trash/{id}/undelete` | [`UndeleteAsk`] | [`BoxInfo`](crate::control::BoxInfo) |
//! | `GET /api/boxes/{box}/threads?archived=` | | [`Threads`] |
//! | `POST /api/boxes/{box}/threads` | [`OpenAsk`] | 201 [`Begun`] |
//! | `POST /api/boxes/{box}/files?name=` | the file itself | 201 [`Attached`](crate::control::Attached) |
//! | `GET /api/boxes/{box}/files?name=` | | the attached file itself |
//! | `GET /api/boxes/{box}/workspace?find=` | | [`FoundFiles`] |
//! | `POST /api/boxes/{box}/clone` | [`CloneAsk`] | 201 [`BoxInfo`](crate::control::BoxInfo) |
//! | `GET /api/boxes/{box}/snapshots` | | [`SnapshotList`] |
//! | `POST /api/boxes/{box}/snapshots` | [`TakeAsk`] | 201 [`SnapshotInfo`](crate::snapshot::SnapshotInfo) |
//! | `DELETE /api/boxes/{box}/snapshots/{label}` | | 204 |
//! | `POST /api/boxes/{box}/snapshots/{label}/restore` | | [`Restored`](crate::control::Restored) |
//! | `GET /api/boxes/{box}/restore-points` | | [`RestorePoints`](crate::restore_point::RestorePoints) |
//! | `GET /api/boxes/{box}/net?since_ms=` | | [`NetLog`] |
//! | `GET /api/boxes/{box}/policy` | | [`PolicyShown`](crate::network::PolicyShown) |
//! | `GET /api/boxes/{box}/events` | | [`Events`] |
//! | `GET /api/usage` | | [`UsageNow`] |
//! | `POST /api/search` | [`SearchAsk`](crate::search::SearchAsk) | [`Found`](crate::search::Found) |
//! | `GET /api/threads?archived=` | | [`Threads`] |
//! | `POST /api/threads` | [`RunAsk`] | 201 [`Begun`] |
//! | `GET /api/threads/{thread}` | | [`ThreadHead`] |
//! | `POST /api/threads/{thread}/act` | [`ThreadAct`](crate::control::ThreadAct) | [`ThreadShown`](crate::thread::ThreadShown) |
//! | `POST /api/threads/{thread}/shell` | [`ShellAsk`] | [`ShellEnded`](crate::control::ShellEnded) |
//! | `POST /api/threads/{thread}/park` | [`ParkAsk`] | [`ParkedThreads`] |
//! | `POST /api/threads/{thread}/resume` | | [`ParkedThreads`] |
//! | `GET /api/threads/{thread}/log?epoch=&seq=&bytes=&wait=` | | [`LogPage`] |
//! | `GET /api/threads/{thread}/commands` | | [`AgentCommands`] |
//! | `GET /api/threads/{thread}/rows?before=` | | [`RowsPage`] |
//! | `GET /api/threads/{thread}/rows/{seq}` | | [`JournalRow`](crate::thread::JournalRow), whole |
//! | `GET /api/decisions` | | [`Decisions`] |
//! | `POST /api/decisions/{id}/answer` | [`AnswerAsk`] | 204; 409 says who was faster |
//! | `POST /api/decisions/{id}/form` | [`FormAnswer`](crate::decision::FormAnswer) | 204; 409 says who was faster |
//!
//! Beside these there are three web sockets: `/ws`, see [`ServerFrame`]; `/api/boxes/{box}/terminal`,
//! see [`TerminalSays`]; and `/api/boxes/{box}/acp`, which speaks ACP (`acp.v1`) to whoever has a
//! token of scope [`TokenScope::Acp`].
//!
//! `{box}` is a box's id or its name. **The WebSocket** is `GET /ws`; see [`ServerFrame`].

mod composer;
mod log;
mod push;
mod rest;
#[cfg(test)]
mod schemas;
mod sign_in;
mod socket;
mod terminal;
#[cfg(test)]
mod tests;
mod token;
#[cfg(test)]
mod typescript;

pub use composer::{AgentCommand, AgentCommands, CloneAsk, FoundFiles};
pub use log::{
    FRAME_BYTES_MAX, LogPage, LogUpdate, PageRow, ROW_BYTES_MAX, RowsPage, Start, TAIL_BYTES_MAX,
    ThreadHead, WAIT_S_MAX,
};
pub use push::{
    Check, Checklist, LoginAsk, PUSH_ENDPOINT_BYTES_MAX, PushAsk, PushDevice, PushHop, PushKey,
    PushState, PushTested,
};
pub use rest::{
    Agents, AnswerAsk, Begun, BoxCard, Boxes, Decisions, Doctor, DoctorFinding, Events, Hurry,
    MachineUsage, NetLog, NewBoxAsk, OpenAsk, ParkAsk, ParkedThreads, RemoveAsk, RenameAsk, RunAsk,
    ShellAsk, SnapshotList, TakeAsk, Threads, Tint, UndeleteAsk, UsageNow,
};
pub use sign_in::{
    LINK_MS_MAX, Me, NewLink, PageAsk, Pair, PairedBrowser, PairingLink, SignIn, SignIns, TierWord,
};
pub use socket::{
    ClientFrame, Command, FRONT_MS, INBOUND_BYTES_MAX, PING_MS, SUBSCRIPTIONS_MAX, ServerFrame,
    Topic,
};
pub use terminal::{
    TERMINAL_INPUT_BYTES_MAX, TERMINAL_WAIT_MS, TERMINAL_WINDOW_BYTES, TerminalAsk, TerminalSays,
};
pub use token::{
    ACP_PROTOCOL, NewToken, TOKEN_DAYS, TOKEN_DAYS_MAX, TOKEN_LABEL_CHARS_MAX, TOKEN_PREFIX,
    TokenAsk, TokenInfo, TokenScope, Tokens,
};

/// JSON Schemas of the bodies of the REST interface, by the names of their types: an object.
pub const SCHEMAS: &str = include_str!("page/schemas.json");

/// Version of the page's protocol. Raised when an older page could misread a newer host.
pub const PAGE_PROTOCOL: u32 = 1;
