//! Runs commands in a box, by way of its guest, which already stands inside.

use crate::Engine;
use crate::folders::path_only;
use crate::start::guest_address;
use box_api::BoxId;
use box_runtime::{ExecSpec, Execution, RuntimeError, guest};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};
use std::io;
use std::os::fd::OwnedFd;

pub(crate) async fn exec(
    engine: &Engine,
    id: &BoxId,
    spec: ExecSpec,
) -> Result<Execution, RuntimeError> {
    Ok(guest::exec(connect(engine, id)?, spec).await?)
}

/// A connection to the guest. Made without waiting: the guest's queue takes it or is full.
pub(crate) fn connect(engine: &Engine, id: &BoxId) -> Result<OwnedFd, RuntimeError> {
    let connect = || -> io::Result<OwnedFd> {
        let folder = path_only(&engine.folders.of_running(id))?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        net::connect(&socket, &guest_address(&folder)?)?;
        Ok(socket)
    };
    connect().map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::NOENT | Errno::CONNREFUSED) if engine.folders.has(id) => {
            RuntimeError::NotRunning(*id)
        }
        Some(Errno::NOENT) => RuntimeError::NotFound(*id),
        Some(Errno::AGAIN) => RuntimeError::Refused {
            why: format!("box {id} has as many connections waiting as it takes"),
            hint: None,
        },
        _ => RuntimeError::engine(format!("reach the guest of box {id}"), error),
    })
}
