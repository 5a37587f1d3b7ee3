//! Ports of boxes shown on this machine's loopback (B94).
//!
//! A listener on `127.0.0.1`, and only there; what connects is joined with a connection made inside
//! the box's network namespace. There is no other way into a box, and this one is opened by its
//! owner alone. Whoever can reach the machine's loopback can reach the port: every user and every
//! program of the machine. The box itself cannot, it has a loopback of its own.
//!
//! Ports are kept in the database and listened to again by the next host.

mod relay;
mod rows;

use crate::boxes::{self, FindError};
use crate::caller::Caller;
use crate::host::Host;
use crate::store::{Durability, StoreError};
use box_api::control::Exposed;
use box_api::{BoxId, BoxName};
use rows::Shown;
use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio::task::AbortHandle;

/// Ports of all boxes.
const PORTS_MAX: usize = 256;

/// Why a port is not shown, or not taken away.
#[derive(Debug, thiserror::Error)]
pub enum ExposeError {
    #[error(transparent)]
    Find(#[from] FindError),
    #[error("a port is a number from 1 to 65535")]
    Zero,
    #[error("port {port} of box `{name}` is shown at {host_port} already")]
    Already {
        name: BoxName,
        port: u16,
        host_port: u16,
    },
    #[error("port {host_port} of this machine shows a port of box `{name}` already")]
    Taken { name: BoxName, host_port: u16 },
    #[error("could not listen at port {host_port} of this machine")]
    Listen {
        host_port: u16,
        #[source]
        source: io::Error,
    },
    #[error("{PORTS_MAX} ports of boxes are shown already")]
    TooMany,
    #[error("port {port} of box `{name}` is not shown")]
    Unknown { name: BoxName, port: u16 },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The listeners of this host, by host port.
#[derive(Debug, Default)]
pub struct Listeners(Mutex<BTreeMap<u16, Listening>>);

#[derive(Debug)]
enum Listening {
    Yes(AbortHandle),
    /// Somebody else has the port.
    No(String),
}

impl Listening {
    fn problem(&self) -> Option<String> {
        match self {
            Self::Yes(task) if task.is_finished() => Some("it has ended".to_owned()),
            Self::Yes(_) => None,
            Self::No(why) => Some(why.clone()),
        }
    }
}

/// Shows a port of a box. Without a host port it is the same number, or any that is free.
///
/// # Errors
/// [`ExposeError`]; asking for what already holds succeeds.
pub async fn expose(
    host: &Arc<Host>,
    caller: &Caller,
    name: &BoxName,
    port: u16,
    host_port: Option<u16>,
) -> Result<Exposed, ExposeError> {
    if port == 0 || host_port == Some(0) {
        return Err(ExposeError::Zero);
    }
    let record = boxes::find(host, caller, name).await?;
    let id = record.id;
    // Held to the end, so that two callers do not meet at one port.
    let mut listeners = host.exposed.0.lock().await;
    let known = host.store.read(rows::all).await?;
    let same = known
        .iter()
        .find(|known| known.box_id == id && known.port == port);
    if let Some(same) = same {
        let right = host_port.is_none_or(|wished| wished == same.host_port);
        let listening = listeners.get(&same.host_port);
        if right && listening.is_some_and(|one| one.problem().is_none()) {
            return Ok(shown(record.name, *same, None));
        }
        if !right {
            return Err(ExposeError::Already {
                name: record.name,
                port,
                host_port: same.host_port,
            });
        }
    } else if known.len() >= PORTS_MAX {
        return Err(ExposeError::TooMany);
    }
    let wished = host_port.or(same.map(|same| same.host_port));
    let listener = listen(host, wished, port).await?;
    let found = Shown {
        box_id: id,
        port,
        host_port: listener.1,
    };
    host.store
        .write(Durability::Full, move |tables| {
            rows::remove(tables, &id, port)?;
            rows::insert(tables, &found)
        })
        .await?;
    let task = relay::begin(host, found, listener.0);
    listeners.insert(found.host_port, Listening::Yes(task));
    Ok(shown(record.name, found, None))
}

async fn listen(
    host: &Host,
    wished: Option<u16>,
    port: u16,
) -> Result<(TcpListener, u16), ExposeError> {
    let candidates = match wished {
        Some(wished) => vec![wished],
        None => vec![port, 0],
    };
    let mut failed = None;
    for candidate in candidates {
        match bind(candidate).await {
            Ok(listening) => return Ok(listening),
            Err(source) => {
                failed.get_or_insert((candidate, source));
            }
        }
    }
    let (host_port, source) = failed.unwrap_or((port, io::ErrorKind::AddrInUse.into()));
    let holder = host
        .store
        .read(move |tables| rows::holder(tables, host_port))
        .await?;
    if let Some(holder) = holder
        && let Some(record) = boxes::get(host, holder.box_id).await?
    {
        return Err(ExposeError::Taken {
            name: record.name,
            host_port,
        });
    }
    Err(ExposeError::Listen { host_port, source })
}

async fn bind(port: u16) -> io::Result<(TcpListener, u16)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    let port = listener.local_addr()?.port();
    Ok((listener, port))
}

/// Takes a port away; its connections end.
///
/// # Errors
/// [`ExposeError`]
pub async fn remove(
    host: &Host,
    caller: &Caller,
    name: &BoxName,
    port: u16,
) -> Result<(), ExposeError> {
    let record = boxes::find(host, caller, name).await?;
    let id = record.id;
    let mut listeners = host.exposed.0.lock().await;
    let found = host
        .store
        .read(move |tables| rows::get(tables, &id, port))
        .await?;
    let Some(found) = found else {
        return Err(ExposeError::Unknown {
            name: record.name,
            port,
        });
    };
    host.store
        .write(Durability::Full, move |tables| {
            rows::remove(tables, &id, port)
        })
        .await?;
    if let Some(Listening::Yes(task)) = listeners.remove(&found.host_port) {
        task.abort();
    }
    Ok(())
}

/// The ports of the caller's boxes, or of one.
///
/// # Errors
/// [`ExposeError`]
pub async fn list(
    host: &Host,
    caller: &Caller,
    name: Option<&BoxName>,
) -> Result<Vec<Exposed>, ExposeError> {
    let records = match name {
        Some(name) => vec![boxes::find(host, caller, name).await?],
        None => boxes::list(host, caller).await?,
    };
    let listeners = host.exposed.0.lock().await;
    let known = host.store.read(rows::all).await?;
    let named = |id: BoxId| records.iter().find(|record| record.id == id);
    let all = known.into_iter().filter_map(|port| {
        let record = named(port.box_id)?;
        let problem = match listeners.get(&port.host_port) {
            Some(listening) => listening.problem(),
            None => Some("the host is still coming up".to_owned()),
        };
        Some(shown(record.name.clone(), port, problem))
    });
    Ok(all.collect())
}

fn shown(name: BoxName, port: Shown, problem: Option<String>) -> Exposed {
    Exposed {
        name,
        port: port.port,
        host_port: port.host_port,
        problem,
    }
}

/// Listens again where earlier hosts did. A port somebody else has by now is told by [`list`].
///
/// # Errors
/// What the store said.
pub async fn resume(host: &Arc<Host>) -> Result<usize, StoreError> {
    let mut listeners = host.exposed.0.lock().await;
    let known = host.store.read(rows::all).await?;
    let mut count = 0;
    for port in known {
        let live = boxes::get(host, port.box_id)
            .await?
            .is_some_and(|record| record.is_live());
        if !live {
            let (id, number) = (port.box_id, port.port);
            host.store
                .write(Durability::Prompt, move |tables| {
                    rows::remove(tables, &id, number)
                })
                .await?;
            continue;
        }
        let listening = match bind(port.host_port).await {
            Ok((listener, _)) => {
                count += 1;
                Listening::Yes(relay::begin(host, port, listener))
            }
            Err(error) => {
                tracing::warn!(port = port.host_port, %error, "a port of a box is not shown");
                Listening::No(error.to_string())
            }
        };
        listeners.insert(port.host_port, listening);
    }
    Ok(count)
}
