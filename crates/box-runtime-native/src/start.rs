//! Starts a box, and opens its sockets anew.

use crate::Engine;
use crate::create::refuse_nesting;
use crate::folders::{UPPER, path_only, private_folder};
use crate::images::environment::merged;
use crate::launch::{ENVIRONMENT_BYTES_MAX, as_listeners};
use crate::pool;
use crate::record;
use crate::spawner::SpawnerError;
use crate::spawner::wire::{self, Answer, Given, Request, Shown, Start};
use crate::stop::clear_after;
use crate::storage::renumber;
use box_api::BoxId;
use box_runtime::{BoxSockets, BoxSpec, Placing, RuntimeError, Started};
use rustix::fd::OwnedFd;
use rustix::fs::{MemfdFlags, Mode, OFlags, memfd_create};
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::fmt::Write as _;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::sync::Arc;

pub(crate) const GUEST_SOCKET: &str = "guest.sock";
const GUEST_BACKLOG: i32 = 64;

pub(crate) async fn start(engine: &Arc<Engine>, spec: &BoxSpec) -> Result<Started, RuntimeError> {
    let id = spec.id;
    let _turn = engine.turns.take(&id).await;
    if !engine.folders.has(&id) {
        return Err(RuntimeError::NotFound(id));
    }
    if let Some((pid, _)) = engine.folders.first_process(&id) {
        return Ok(Started { pid, sockets: None });
    }
    if !engine.spares.has(&id) {
        clear_after(engine, &id).await?;
    }
    settle(engine, spec).await?;
    let order = order(engine, spec)?;
    match engine.spawner.ask(Request::Start(Box::new(order))).await {
        Ok((Answer::Started { pid }, descriptors)) => {
            pool::taken(engine, &id);
            engine.disk.limit(engine, &id, spec.limits.disk_bytes).await;
            let sockets = Some(sockets(descriptors)?);
            Ok(Started { pid, sockets })
        }
        Ok(_) => Err(RuntimeError::engine(
            format!("start box {id}"),
            SpawnerError::Confused,
        )),
        Err(error) => {
            drop(clear_after(engine, &id).await);
            Err(RuntimeError::engine(format!("start box {id}"), error))
        }
    }
}

/// Changes to the root that an earlier version kept with the box's real ids get those on disk.
async fn settle(engine: &Engine, spec: &BoxSpec) -> Result<(), RuntimeError> {
    let (upper, offset) = (engine.folders.of_box(&spec.id).join(UPPER), spec.id_offset);
    let settled = tokio::task::spawn_blocking(move || renumber::settle(&upper, offset)).await;
    let failed = |error: Box<dyn std::error::Error + Send + Sync>| {
        RuntimeError::engine(format!("renumber the files of box {}", spec.id), error)
    };
    settled
        .map_err(|error| failed(error.into()))?
        .map_err(|error| failed(error.into()))
}

/// The kept sockets where this host's spawner started the box, else new ones.
pub(crate) async fn reopen(engine: &Engine, id: &BoxId) -> Result<BoxSockets, RuntimeError> {
    let _turn = engine.turns.take(id).await;
    let (_, pidfd) = engine
        .folders
        .first_process(id)
        .ok_or(RuntimeError::NotRunning(*id))?;
    let asked = engine.spawner.ask(Request::Reopen { id: *id, pidfd }).await;
    let (_, descriptors) = asked
        .map_err(|error| RuntimeError::engine(format!("reopen the sockets of box {id}"), error))?;
    sockets(descriptors)
}

/// What the spawner sends: the pidfd, then the sockets.
fn sockets(descriptors: Vec<OwnedFd>) -> Result<BoxSockets, RuntimeError> {
    let mut descriptors = descriptors.into_iter();
    let pidfd = descriptors.next();
    let listeners = as_listeners(descriptors.collect());
    let failed = |error: Box<dyn std::error::Error + Send + Sync>| {
        RuntimeError::engine("take the box's sockets", error)
    };
    let listeners = listeners.map_err(|error| failed(error.into()))?;
    Ok(BoxSockets {
        dns_udp: listeners.dns_udp,
        dns_tcp: listeners.dns_tcp,
        proxy: listeners.proxy,
        transparent: listeners.transparent,
        pidfd: pidfd.ok_or_else(|| failed(SpawnerError::Confused.into()))?,
    })
}

/// Everything the spawner needs, as descriptors.
fn order(engine: &Engine, spec: &BoxSpec) -> Result<Start, RuntimeError> {
    refuse_nesting(spec, engine.privileges)?;
    check(spec)?;
    let image = engine
        .images
        .root_of(&spec.image_digest)
        .ok_or_else(|| RuntimeError::Refused {
            why: format!("the image `{}` is not there", spec.image_digest),
            hint: Some("prepare it again with `box image prepare`".to_owned()),
        })?;
    let given = |error| RuntimeError::engine(format!("open the files of box {}", spec.id), error);
    let shown = |source: &Path, target: &str, placing| {
        let source = path_only(source).map_err(|error| {
            RuntimeError::engine(format!("open `{}` for the box", source.display()), error)
        })?;
        Ok(Shown {
            source,
            target: target.to_owned(),
            placing,
        })
    };
    let mounts = spec
        .mounts
        .iter()
        .map(|mount| shown(&mount.source, &mount.target, Placing::Always));
    let files = spec
        .files
        .iter()
        .map(|file| shown(&file.source, &file.target, file.placing));
    Ok(Start {
        id: spec.id,
        host_name: spec.host_name.clone(),
        profile: spec.profile,
        nesting: spec.nesting,
        limits: spec.limits,
        id_offset: spec.id_offset,
        given: open(engine, spec, &image).map_err(given)?,
        mounts: mounts.collect::<Result<_, RuntimeError>>()?,
        files: files.collect::<Result<_, RuntimeError>>()?,
    })
}

/// What the spawner would refuse, told by name.
fn check(spec: &BoxSpec) -> Result<(), RuntimeError> {
    let refuse = |why: String| Err(RuntimeError::Refused { why, hint: None });
    let mounts = spec.mounts.iter().map(|mount| &mount.target);
    let targets = mounts.chain(spec.files.iter().map(|file| &file.target));
    if targets.clone().count() > wire::TARGETS_MAX {
        return refuse(format!(
            "a box is shown at most {} mounts and files",
            wire::TARGETS_MAX
        ));
    }
    for target in targets {
        if target.len() > wire::TARGET_BYTES_MAX || wire::checked_target(target.clone()).is_err() {
            return refuse(format!("`{target}` cannot be mounted over in a box"));
        }
    }
    if wire::checked_offset(spec.id_offset).is_err() {
        return refuse(format!(
            "{} does not begin a range of ids for boxes",
            spec.id_offset
        ));
    }
    let bad = |(name, value): &&(String, String)| {
        name.is_empty() || name.contains(['=', '\0']) || value.contains('\0')
    };
    if let Some((name, _)) = spec.env.iter().find(bad) {
        return refuse(format!("the variable `{name}` cannot be set in a box"));
    }
    let bytes: usize = spec
        .env
        .iter()
        .map(|(name, value)| name.len() + value.len() + 2)
        .sum();
    if bytes > ENVIRONMENT_BYTES_MAX {
        return refuse(format!(
            "the box's environment is longer than {ENVIRONMENT_BYTES_MAX} bytes"
        ));
    }
    Ok(())
}

fn open(engine: &Engine, spec: &BoxSpec, image: &Path) -> io::Result<Given> {
    let running = engine.folders.of_running(&spec.id);
    private_folder(&running)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
    let record = running.join(record::FILE);
    Ok(Given {
        image: path_only(image)?,
        folder: path_only(&engine.folders.of_box(&spec.id))?,
        programs: path_only(engine.programs.folder())?,
        guest: engine.programs.guest()?,
        guest_socket: listen(&running)?,
        environment: environment(&merged(
            &spec.env,
            engine.images.env_of(&spec.image_digest)?,
        ))?,
        record: rustix::fs::open(&record, flags, Mode::from_raw_mode(0o600))?,
    })
}

fn environment(variables: &[(String, String)]) -> io::Result<OwnedFd> {
    let text = variables
        .iter()
        .fold(String::new(), |mut text, (name, value)| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{name}={value}\0");
            text
        });
    let file = memfd_create("box-environment", MemfdFlags::CLOEXEC)?;
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        let written = rustix::io::write(&file, rest)?;
        rest = &rest[written..];
    }
    rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(0))?;
    Ok(file)
}

/// The socket box-guest accepts on. Reached by way of the folder's descriptor, so that the length
/// of the path does not matter (`sun_path` of unix(7) has 108 bytes).
fn listen(running: &Path) -> io::Result<OwnedFd> {
    let folder = path_only(running)?;
    match rustix::fs::unlinkat(&folder, GUEST_SOCKET, rustix::fs::AtFlags::empty()) {
        Ok(()) | Err(rustix::io::Errno::NOENT) => {}
        Err(errno) => return Err(errno.into()),
    }
    let socket = net::socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    // The folder lets nobody but the host in; the socket does not either.
    rustix::fs::fchmod(&socket, Mode::from_raw_mode(0o600))?;
    net::bind(&socket, &guest_address(&folder)?)?;
    net::listen(&socket, GUEST_BACKLOG)?;
    Ok(socket)
}

/// Where a box's guest listens.
pub(crate) fn guest_address(folder: &OwnedFd) -> io::Result<SocketAddrUnix> {
    let path = format!("/proc/self/fd/{}/{GUEST_SOCKET}", folder.as_raw_fd());
    Ok(SocketAddrUnix::new(path)?)
}
