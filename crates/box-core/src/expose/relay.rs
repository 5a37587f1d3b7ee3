//! One listener on the machine's loopback: accept → dial inside the box → carry bytes both ways.

use super::rows::{self, Shown};
use crate::boxes::{self, BoxRecord};
use crate::host::Host;
use crate::store::{Durability, StoreError};
use crate::watch::{self, Awake};
use box_api::control::BoxState;
use box_runtime::guest::{self, GuestError, Loopback, Refusal};
use box_runtime::{ExecSpec, Execution, RuntimeError};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional, join};
use tokio::net::unix::pipe;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Connections of one port at once; further ones wait in the kernel until one has ended.
const CONNECTIONS_MAX: usize = 128;
/// Connections of one port that are being made inside at once: the guest has a short queue, and
/// others need it too.
const DIALS_MAX: usize = 8;
/// After the kernel had nothing left for a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Where the tool lies in a box.
const TOOL: &str = "/opt/box/bin/box-tool";

/// Why a connection leads nowhere.
#[derive(Debug, thiserror::Error)]
enum RelayError {
    #[error("the host is ending")]
    Ending,
    #[error("the box does not run")]
    NotRunning,
    #[error(transparent)]
    Guest(#[from] GuestError),
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the connection broke")]
    Io(#[from] io::Error),
}

/// Until the box is gone for good. A box that is stopped keeps its port; its connections end.
pub(super) async fn serve(host: Weak<Host>, port: Shown, listener: TcpListener) {
    let Some(strong) = host.upgrade() else { return };
    let mut changes = strong.changes.watch();
    drop(strong);
    let mut connections = JoinSet::new();
    let dials = Arc::new(Semaphore::new(DIALS_MAX));
    loop {
        let room = connections.len() < CONNECTIONS_MAX;
        tokio::select! {
            accepted = listener.accept(), if room => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(carry(host.clone(), port, stream, Arc::clone(&dials)));
                }
                Err(error) => {
                    tracing::debug!(%error, port = port.host_port, "a connection was not taken");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            told = changes.changed() => {
                let (Ok(()), Some(host)) = (told, host.upgrade()) else { return };
                match standing(&host, &port).await {
                    Standing::Running => {}
                    Standing::Still => connections.abort_all(),
                    Standing::Gone => return,
                }
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Running,
    Still,
    Gone,
}

async fn standing(host: &Host, port: &Shown) -> Standing {
    match boxes::get(host, port.box_id).await {
        Ok(Some(record)) if record.is_live() => match record.state {
            BoxState::Running => Standing::Running,
            BoxState::Creating
            | BoxState::Stopped
            | BoxState::Starting
            | BoxState::Stopping
            | BoxState::Removing
            | BoxState::Failed
            | BoxState::Restoring
            | BoxState::Trashed => Standing::Still,
        },
        // Nobody finds it any more, so its port is free for others.
        Ok(Some(_)) => {
            let (id, number) = (port.box_id, port.port);
            let removed = host.store.write(Durability::Prompt, move |tables| {
                rows::remove(tables, &id, number)
            });
            if let Err(error) = removed.await {
                tracing::warn!(%error, "the port of a removed box is still in its table");
            }
            Standing::Gone
        }
        Ok(None) => Standing::Gone,
        Err(error) => {
            tracing::debug!(%error, "a port does not know how its box is");
            Standing::Still
        }
    }
}

async fn carry(host: Weak<Host>, port: Shown, mut stream: TcpStream, dials: Arc<Semaphore>) {
    if let Err(error) = joined(&host, port, &mut stream, &dials).await {
        let why = boxes::reason(&error);
        tracing::debug!(id = %port.box_id, port = port.port, why, "a connection ended");
    }
}

async fn joined(
    host: &Weak<Host>,
    port: Shown,
    stream: &mut TcpStream,
    dials: &Semaphore,
) -> Result<(), RelayError> {
    let strong = host.upgrade().ok_or(RelayError::Ending)?;
    let record = boxes::get(&strong, port.box_id).await?;
    let record = record
        .filter(|record| record.state == BoxState::Running)
        .ok_or(RelayError::NotRunning)?;
    // Interactive protocols send little at a time.
    drop(stream.set_nodelay(true));
    // As long as it lives: a frozen box is thawed, and one somebody talks to is not idle.
    let awake = watch::awake(&strong, &record).await?;
    let turn = dials.acquire().await.map_err(|_| RelayError::Ending)?;
    let dialled = dial(&awake, &record, port.port).await?;
    drop(turn);
    match dialled {
        Dialled::Socket(mut inside) => {
            drop(strong);
            drop(inside.set_nodelay(true));
            pump(stream, &mut inside).await?;
        }
        Dialled::Tool(execution) => {
            drop(strong);
            let Execution { streams, process } = execution;
            let [stdin, stdout, stderr] = <[OwnedFd; 3]>::try_from(streams)
                .map_err(|_| io::Error::other("not three streams"))?;
            drop(stderr);
            let mut inside = join(
                pipe::Receiver::from_owned_fd(stdout)?,
                pipe::Sender::from_owned_fd(stdin)?,
            );
            pump(stream, &mut inside).await?;
            drop(process);
        }
    }
    drop(awake);
    Ok(())
}

async fn pump(
    outside: &mut TcpStream,
    inside: &mut (impl AsyncRead + AsyncWrite + Unpin),
) -> io::Result<()> {
    copy_bidirectional(outside, inside).await.map(drop)
}

enum Dialled {
    Socket(TcpStream),
    /// For engines without a guest, and guests of an earlier build.
    Tool(Execution),
}

/// A connection to the port, made inside the box's network namespace.
async fn dial(runtime: &Awake, record: &BoxRecord, port: u16) -> Result<Dialled, RelayError> {
    let Some(processes) = runtime.processes() else {
        return Ok(Dialled::Tool(tool(runtime, record, port).await?));
    };
    let mut last = None;
    for address in [Loopback::V4, Loopback::V6] {
        match guest::dial(processes.connect(&record.id).await?, address, port).await {
            Ok(socket) => return Ok(Dialled::Socket(socket)),
            Err(GuestError::Refused {
                why: Refusal::Malformed,
                ..
            }) => return Ok(Dialled::Tool(tool(runtime, record, port).await?)),
            Err(error) => last = Some(error),
        }
    }
    Err(last.map_or(RelayError::NotRunning, RelayError::Guest))
}

async fn tool(runtime: &Awake, record: &BoxRecord, port: u16) -> Result<Execution, RelayError> {
    let spec = ExecSpec {
        command: vec![TOOL.to_owned(), "dial".to_owned(), port.to_string()],
        cwd: Some("/".to_owned()),
        env: Vec::new(),
        terminal: None,
    };
    Ok(runtime.exec(&record.id, spec).await?)
}

/// Starts serving in a task of its own.
pub(super) fn begin(
    host: &Arc<Host>,
    port: Shown,
    listener: TcpListener,
) -> tokio::task::AbortHandle {
    tokio::spawn(serve(Arc::downgrade(host), port, listener)).abort_handle()
}
