//! As little of a client of the control socket as a bench needs.

use anyhow::{Context as _, Result, bail};
use box_api::control::{Exec, Hello, Outcome, Reply, Request};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::fs::File;
use std::io::{IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

const DESCRIPTORS_MAX: usize = 3;

/// One request and its answers.
pub(crate) struct Connection {
    stream: UnixStream,
    received: Vec<u8>,
    descriptors: Vec<OwnedFd>,
}

impl Connection {
    /// Connects and greets.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let stream = UnixStream::connect(path)
            .with_context(|| format!("could not connect to {}", path.display()))?;
        let mut connection = Self {
            stream,
            received: Vec::new(),
            descriptors: Vec::new(),
        };
        let hello = Hello {
            build: "bench".to_owned(),
            protocol: box_api::PROTOCOL,
        };
        connection.send(&hello)?;
        let _welcome: box_api::control::Welcome = connection.next()?;
        Ok(connection)
    }

    fn send(&mut self, message: &impl serde::Serialize) -> Result<()> {
        let json = serde_json::to_vec(message)?;
        let mut frame = u32::try_from(json.len())?.to_le_bytes().to_vec();
        frame.extend(json);
        Ok(self.stream.write_all(&frame)?)
    }

    fn next<T: serde::de::DeserializeOwned>(&mut self) -> Result<T> {
        while self.received.len() < 4 {
            self.receive()?;
        }
        let (length, _) = self
            .received
            .split_first_chunk::<4>()
            .context("four bytes are there")?;
        let end = 4 + u32::from_le_bytes(*length) as usize;
        while self.received.len() < end {
            self.receive()?;
        }
        let message = serde_json::from_slice(&self.received[4..end])?;
        self.received.drain(..end);
        Ok(message)
    }

    fn receive(&mut self) -> Result<()> {
        let mut bytes = [0; 16 << 10];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let got = recvmsg(
            &self.stream,
            &mut [IoSliceMut::new(&mut bytes)],
            &mut ancillary,
            RecvFlags::CMSG_CLOEXEC,
        )?;
        if got.bytes == 0 {
            bail!("the host closed the connection");
        }
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                self.descriptors.extend(descriptors);
            }
        }
        self.received.extend(&bytes[..got.bytes]);
        Ok(())
    }

    /// Runs a command and returns all it printed on its standard output.
    pub(crate) fn exec(&mut self, exec: Exec) -> Result<Vec<u8>> {
        self.send(&Request::Exec(exec))?;
        let mut printed = Vec::new();
        loop {
            let reply = self.next()?;
            if matches!(reply, Reply::Streams) {
                let mut streams = self.descriptors.drain(..);
                drop(streams.next());
                let stdout = streams.next().context("an exec has three streams")?;
                File::from(stdout).read_to_end(&mut printed)?;
            } else if let Reply::Problem(problem) = reply {
                bail!(problem);
            } else if let Reply::Done(outcome) = reply {
                let worked = outcome == Outcome::Exit { code: 0 };
                return worked
                    .then_some(printed)
                    .with_context(|| format!("it ended: {outcome:?}"));
            }
        }
    }
}

/// Asks for one thing and waits until it is done.
pub(crate) fn ask(path: &Path, request: &Request) -> Result<Outcome> {
    let mut connection = Connection::open(path)?;
    connection.send(request)?;
    loop {
        let reply = connection.next()?;
        if let Reply::Done(outcome) = reply {
            return Ok(outcome);
        } else if let Reply::Problem(problem) = reply {
            bail!(problem);
        }
    }
}
