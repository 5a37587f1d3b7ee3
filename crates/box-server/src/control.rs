//! The control socket: who calls → greeting → one request → its replies. One file a request.

mod agent;
mod answer;
mod attach;
mod attach_file;
pub(crate) mod client;
mod clone;
mod conversation;
mod credential;
mod decisions;
mod disk;
mod events;
mod exec;
mod export;
mod expose;
mod freeze;
mod image;
mod import;
mod info;
mod kill;
mod list;
mod logs;
mod model_usage;
mod net;
mod new;
mod page;
mod park;
mod pieces;
mod policy;
mod ps;
mod remove;
mod rename;
mod restart;
mod restore_points;
mod run;
mod search;
mod set;
mod shell_line;
mod snapshots;
mod spawn;
mod start;
mod status;
mod stop;
mod stop_host;
mod target;
mod thread_import;
mod thread_open;
mod threads;
mod top;
mod trash;
mod wait;

use crate::problem;
use box_api::control::{Haste, Hello, Outcome, Reply, Request, Welcome};
use box_api::{PROTOCOL, Problem};
use box_core::caller::{Caller, Tier};
use box_core::host::Host;
use box_core::lifecycle;
use client::{Client, ClientError};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::time::timeout;

/// Longest a client may take to greet.
const HELLO_DEADLINE: Duration = Duration::from_secs(10);
/// Longest a client may take to say what it wants: a person may be typing a token meanwhile.
const REQUEST_DEADLINE: Duration = Duration::from_mins(10);
/// Longest a request waits for what an earlier host left to be put right.
const SETTLE_DEADLINE: Duration = Duration::from_mins(5);

/// Whether what an earlier host left has been put right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settled {
    NotYet,
    Yes,
}

/// What every connection needs.
#[derive(Debug, Clone)]
pub(crate) struct Door {
    pub(crate) host: Arc<Host>,
    /// What the machine calls a user whom the kernel reports to this process by a number.
    outside: fn(u32) -> u32,
    settled: watch::Sender<Settled>,
    /// Set when the host is to end.
    pub(crate) stop: watch::Sender<bool>,
}

impl Door {
    pub(crate) fn new(host: Arc<Host>, outside: fn(u32) -> u32) -> Self {
        Self {
            host,
            outside,
            settled: watch::channel(Settled::NotYet).0,
            stop: watch::channel(false).0,
        }
    }

    /// Whoever holds it lets requests in.
    pub(crate) fn opener(&self) -> watch::Sender<Settled> {
        self.settled.clone()
    }
}

/// Serves one connection to its end.
pub(crate) async fn serve(door: &Door, stream: UnixStream) {
    let mut stop = door.stop.subscribe();
    tokio::select! {
        ended = converse(door, stream) => {
            if let Err(error) = ended {
                tracing::debug!(%error, "a client went away");
            }
        }
        // Its own answer has been sent: that is how the host was told.
        () = told_to_stop(&mut stop) => {}
    }
}

/// Ends when the host is to end.
pub(crate) async fn told_to_stop(stop: &mut watch::Receiver<bool>) {
    // The sender lives as long as the door.
    drop(stop.wait_for(|stop| *stop).await);
}

async fn converse(door: &Door, stream: UnixStream) -> Result<(), ClientError> {
    let caller = Caller::from_peer((door.outside)(stream.peer_cred()?.uid()), door.host.uid);
    let mut client = Client::new(stream);
    if caller.tier != Tier::Admin {
        // At once: whoever may ask for nothing is not waited for, and takes nobody's place.
        client.greet(&welcome(&door.host)).await?;
        return client.reply(&Reply::Problem(problem::foreign_user())).await;
    }
    let hello: Hello = client.first(HELLO_DEADLINE).await?;
    client.greet(&welcome(&door.host)).await?;
    let request = match timeout(REQUEST_DEADLINE, client.request()).await {
        Ok(Ok(Some(request))) => request,
        // It only wanted to know who is there.
        Ok(Ok(None)) | Err(_) => return Ok(()),
        Ok(Err(ClientError::Malformed(error))) => {
            return client
                .reply(&Reply::Problem(problem::malformed(&hello, &error)))
                .await;
        }
        Ok(Err(error)) => return Err(error),
    };
    let stops = matches!(request, Request::StopHost);
    let outcome = match admit(&hello, &request) {
        Ok(()) => carry_out(door, &caller, &mut client, request).await,
        Err(refusal) => Err(refusal),
    };
    let done = outcome.is_ok();
    let reply = match outcome {
        Ok(outcome) => Reply::Done(outcome),
        Err(problem) => Reply::Problem(problem),
    };
    client.reply(&reply).await?;
    if stops && done {
        door.stop.send_replace(true);
    }
    Ok(())
}

fn welcome(host: &Host) -> Welcome {
    Welcome {
        build: host.build.clone(),
        protocol: PROTOCOL,
        pid: std::process::id(),
        data_dir: host.paths.data.display().to_string(),
        started_at_ms: host.started_at_ms,
        defaults: host.current.now().defaults(),
    }
}

/// Whether a client of this protocol may ask for this. A host that is to be replaced may be older
/// or newer than whoever replaces it.
fn admit(hello: &Hello, request: &Request) -> Result<(), Problem> {
    if hello.protocol == PROTOCOL || matches!(request, Request::StopHost) {
        return Ok(());
    }
    Err(problem::other_protocol(hello.protocol))
}

/// Does what a caller asks who is known, once what an earlier host left has been put right.
pub(crate) async fn carry_out(
    door: &Door,
    caller: &Caller,
    client: &mut Client,
    request: Request,
) -> Result<Outcome, Problem> {
    let host = &door.host;
    if let Request::StopHost = request {
        return Ok(stop_host::handle());
    }
    let mut settled = door.settled.subscribe();
    let ready = settled.wait_for(|settled| *settled == Settled::Yes);
    match timeout(SETTLE_DEADLINE, ready).await {
        Ok(Ok(_)) => {}
        Ok(Err(_)) | Err(_) => return Err(problem::not_settled()),
    }
    route(host, caller, client, request).await
}

/// How long what runs in a box has to end by itself.
fn grace(haste: Haste) -> Duration {
    match haste {
        Haste::Graceful => lifecycle::STOP_GRACE,
        Haste::AtOnce => Duration::ZERO,
    }
}

/// One line a request.
#[expect(clippy::too_many_lines, reason = "a table: one line a request")]
async fn route(
    host: &Arc<Host>,
    caller: &Caller,
    client: &mut Client,
    request: Request,
) -> Result<Outcome, Problem> {
    match request {
        Request::Status => status::handle(host).await,
        Request::New(asked) => new::handle(host, caller, client, asked).await,
        Request::List => list::handle(host, caller).await,
        Request::Info { name } => info::handle(host, caller, &name).await,
        Request::Start { name } => start::handle(host, caller, &name).await,
        Request::StartAll => start::all(host, caller).await,
        Request::Stop { target, haste } => stop::handle(host, caller, target, grace(haste)).await,
        Request::Restart { target, haste } => {
            restart::handle(host, caller, target, grace(haste)).await
        }
        Request::Remove(asked) => remove::handle(host, caller, asked).await,
        Request::Trash(asked) => trash::handle(host, caller, asked).await,
        Request::Rename { name, to } => rename::handle(host, caller, &name, to).await,
        Request::Clone(asked) => clone::handle(host, caller, client, asked).await,
        Request::Snapshots(asked) => snapshots::handle(host, caller, client, asked).await,
        Request::RestorePoints { name } => restore_points::handle(host, caller, &name).await,
        Request::Search(asked) => search::handle(host, caller, asked).await,
        Request::Export(asked) => export::handle(host, caller, client, asked).await,
        Request::Import(asked) => import::handle(host, caller, client, asked).await,
        Request::DiskUsage { target } => disk::handle(host, caller, &target).await,
        Request::Wait {
            name,
            until,
            timeout_ms,
        } => wait::handle(host, caller, client, (name, until, timeout_ms)).await,
        Request::Set { name, changes } => set::handle(host, caller, &name, changes).await,
        Request::Top => top::handle(host, caller).await,
        Request::ModelUsage(asked) => model_usage::handle(host, caller, asked).await,
        Request::Move { target, motion } => freeze::handle(host, caller, target, motion).await,
        Request::Events { name } => events::handle(host, caller, &name).await,
        Request::Exec(asked) => exec::handle(host, caller, client, asked).await,
        Request::Spawn(asked) => spawn::handle(host, caller, asked).await,
        Request::Processes { name } => ps::handle(host, caller, &name).await,
        Request::KillProcess(asked) => kill::handle(host, caller, asked).await,
        Request::Expose {
            name,
            port,
            host_port,
        } => expose::add(host, caller, &name, (port, host_port)).await,
        Request::ExposedRemove { name, port } => expose::remove(host, caller, &name, port).await,
        Request::ExposedList { name } => expose::list(host, caller, name.as_ref()).await,
        Request::Logs(asked) => logs::handle(host, caller, client, asked).await,
        Request::ImageList => image::list(host).await,
        Request::ImagePrepare { image } => image::prepare(host, client, image).await,
        Request::ImageRemove { image } => image::remove(host, &image).await,
        Request::Image(asked) => image::handle(host, client, asked).await,
        Request::Run(asked) => run::handle(host, caller, client, asked).await,
        Request::Attach(asked) => attach::handle(host, caller, client, asked).await,
        Request::AttachFile(asked) => attach_file::handle(host, caller, client, asked).await,
        Request::ShellLine(asked) => shell_line::handle(host, caller, client, asked).await,
        Request::Threads(asked) => threads::list(host, caller, asked).await,
        Request::Thread(asked) => threads::handle(host, caller, asked).await,
        Request::ThreadImport(asked) => thread_import::handle(host, caller, client, asked).await,
        Request::ThreadOpen(asked) => thread_open::handle(host, caller, client, asked).await,
        Request::Net(asked) => net::handle(host, caller, client, asked).await,
        Request::Policy(asked) => policy::handle(host, caller, asked).await,
        Request::Decisions { follow: true } => decisions::follow(host, caller, client).await,
        Request::Decisions { follow: false } => decisions::list(host, caller).await,
        Request::Answer { decision, option } => {
            answer::handle(host, caller, decision, &option).await
        }
        Request::AnswerForm { decision, answer } => {
            answer::form(host, caller, decision, answer).await
        }
        Request::Park(asked) => park::park(host, caller, asked).await,
        Request::Resume { name, thread } => park::resume(host, caller, &name, thread).await,
        Request::CredentialAdd(added) => credential::add(host, caller, added).await,
        Request::CredentialRotate(added) => credential::rotate(host, caller, added).await,
        Request::CredentialUnlock(asked) => credential::unlock(host, asked).await,
        Request::CredentialList => credential::list(host, caller).await,
        Request::CredentialRemove { name } => credential::remove(host, caller, &name).await,
        Request::AgentPrepare { agent } => agent::prepare(host, client, &agent).await,
        Request::AgentList => Ok(agent::list(host)),
        Request::Agent(asked) => agent::handle(host, client, asked).await,
        Request::Page(asked) => page::handle(host, caller, asked).await,
        Request::StopHost => Ok(stop_host::handle()),
    }
}
