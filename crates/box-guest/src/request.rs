//! What the host asks, and what is done about it at once.

use crate::attachment::Attachment;
use crate::command;
use crate::connection::{Connection, Operation};
use crate::dial::dial;
use crate::launch::{Launcher, Refused};
use crate::process::Process;
use box_api::control::TerminalSize;
use box_api::guest::{
    Command, Frame, FrameKind, GUEST_PROTOCOL, Message, PROCESSES_MAX, Piece, ProcessName,
    ProtocolError, Refusal, Reply, Request,
};
use std::collections::BTreeMap;
use std::time::Instant;
use zeroize::Zeroize as _;

/// Durable processes by a key that is never used again.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    pub(crate) by_key: BTreeMap<u32, Process>,
    next_key: u32,
}

impl Processes {
    fn find(&self, name: &ProcessName) -> Option<u32> {
        self.by_key
            .iter()
            .find(|(_, process)| process.name == *name)
            .map(|(key, _)| *key)
    }

    fn get(&mut self, name: &ProcessName) -> Result<(u32, &mut Process), Refused> {
        let unknown = || {
            Refused::new(
                Refusal::NotFound,
                format!("the box has no process `{name}`"),
            )
        };
        let key = self.find(name).ok_or_else(unknown)?;
        let process = self.by_key.get_mut(&key).ok_or_else(unknown)?;
        Ok((key, process))
    }
}

/// Everything a request may need besides its own connection.
#[derive(Debug)]
pub(crate) struct House {
    pub(crate) launcher: Launcher,
    pub(crate) processes: Processes,
    /// The box is about to stop, so nothing new starts.
    pub(crate) stopping: bool,
}

/// What a frame means for other connections than its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consequence {
    None,
    /// This connection has lost its process to the one that asked.
    Displaced(u64),
    /// The process of this connection was forgotten.
    Over(u64),
}

impl From<ProtocolError> for Refused {
    fn from(error: ProtocolError) -> Self {
        Self::new(Refusal::Malformed, error.to_string())
    }
}

impl House {
    /// Acts on one frame of a connection.
    pub(crate) fn frame(
        &mut self,
        id: u64,
        connection: &mut Connection,
        mut frame: Frame,
        now: Instant,
    ) -> Consequence {
        let done = match &connection.operation {
            Operation::Opening { .. } => {
                let request = frame.decode::<Request>(FrameKind::Request);
                request
                    .map_err(Refused::from)
                    .and_then(|asked| self.request(id, connection, asked, now))
            }
            Operation::Exec(running) => match frame.decode(FrameKind::Message) {
                Ok(Message::Signal { number }) => {
                    running.signal(number);
                    Ok(Consequence::None)
                }
                Ok(Message::CloseInput { .. } | Message::Ack { .. }) => Err(Refused::new(
                    Refusal::Malformed,
                    "only signals can be sent to a command",
                )),
                Err(error) => Err(error.into()),
            },
            Operation::Attached(attachment) => self.attached(attachment, &frame),
            Operation::Spawning | Operation::Closing { .. } => Err(Refused::new(
                Refusal::Malformed,
                "a frame where none belongs",
            )),
        };
        frame.payload.zeroize();
        done.unwrap_or_else(|refused| {
            self.let_go(id, connection);
            connection.refuse(refused, now);
            Consequence::None
        })
    }

    fn attached(&mut self, attachment: &Attachment, frame: &Frame) -> Result<Consequence, Refused> {
        let Some(process) = self.processes.by_key.get_mut(&attachment.process) else {
            return Err(Refused::new(Refusal::NotFound, "the process was forgotten"));
        };
        if frame.kind == FrameKind::Piece {
            Attachment::input(process, &Piece::parse(&frame.payload)?)?;
        } else {
            attachment.message(process, frame.decode(FrameKind::Message)?)?;
        }
        Ok(Consequence::None)
    }

    fn request(
        &mut self,
        id: u64,
        connection: &mut Connection,
        request: Request,
        now: Instant,
    ) -> Result<Consequence, Refused> {
        let reply = match request {
            Request::Exec { command, terminal } => {
                self.exec(connection, command, terminal)?;
                return Ok(Consequence::None);
            }
            Request::Dial { address, port } => {
                let socket = dial(address, port)?;
                connection
                    .wire
                    .send_streams(&[socket])
                    .map_err(|_| Refused::new(Refusal::Failed, "could not hand over the socket"))?;
                connection.close_when_sent(now);
                return Ok(Consequence::None);
            }
            Request::Spawn { process, command } => {
                self.spawn(id, process, command)?;
                connection.operation = Operation::Spawning;
                return Ok(Consequence::None);
            }
            Request::Attach {
                process,
                stdout_from,
                stderr_from,
            } => {
                return self.attach(id, connection, &process, [stdout_from, stderr_from]);
            }
            Request::List => Reply::Processes {
                processes: self.processes.by_key.values().map(Process::info).collect(),
            },
            Request::Kill { process, how } => {
                self.processes.get(&process)?.1.kill(how)?;
                Reply::Done
            }
            Request::Forget { process } => {
                let attached = self.forget(&process)?;
                connection.reply_last(&Reply::Done, now);
                return Ok(attached.map_or(Consequence::None, Consequence::Over));
            }
            Request::Ping => Reply::Pong {
                protocol: GUEST_PROTOCOL,
            },
        };
        connection.reply_last(&reply, now);
        Ok(Consequence::None)
    }

    fn exec(
        &mut self,
        connection: &mut Connection,
        command: Command,
        terminal: Option<TerminalSize>,
    ) -> Result<(), Refused> {
        self.check(&command)?;
        command::exec(connection, &self.launcher, command, terminal)
    }

    fn spawn(&mut self, id: u64, name: ProcessName, command: Command) -> Result<(), Refused> {
        self.check(&command)?;
        if self.processes.find(&name).is_some() {
            return Err(Refused::new(
                Refusal::Exists,
                format!("the box has a process `{name}` already"),
            ));
        }
        if self.processes.by_key.len() >= PROCESSES_MAX {
            return Err(Refused::new(
                Refusal::Limit,
                format!("the box keeps {PROCESSES_MAX} processes already"),
            ));
        }
        let process = Process::spawn(&self.launcher, name, command, id)?;
        self.processes
            .by_key
            .insert(self.processes.next_key, process);
        self.processes.next_key += 1;
        Ok(())
    }

    fn check(&self, command: &Command) -> Result<(), Refused> {
        if self.stopping {
            return Err(Refused::new(Refusal::Failed, "the box is stopping"));
        }
        command
            .check()
            .map_err(|error| Refused::new(Refusal::Malformed, error.to_string()))
    }

    fn attach(
        &mut self,
        id: u64,
        connection: &mut Connection,
        name: &ProcessName,
        from: [u64; 2],
    ) -> Result<Consequence, Refused> {
        let (key, process) = self.processes.get(name)?;
        let (attachment, attached) = Attachment::begin(key, process, from[0], from[1])?;
        let before = process.attached.replace(id);
        connection.wire.reply(&Reply::Attached(attached));
        connection.operation = Operation::Attached(attachment);
        Ok(before.map_or(Consequence::None, Consequence::Displaced))
    }

    /// Gives the connection that was attached to it.
    fn forget(&mut self, name: &ProcessName) -> Result<Option<u64>, Refused> {
        let (key, process) = self.processes.get(name)?;
        if process.is_running() {
            return Err(Refused::new(
                Refusal::Running,
                format!("process `{name}` still runs"),
            ));
        }
        let attached = process.attached;
        self.processes.by_key.remove(&key);
        Ok(attached)
    }

    /// A connection ends: its command is killed, its process goes on without it.
    pub(crate) fn let_go(&mut self, id: u64, connection: &Connection) {
        match &connection.operation {
            Operation::Exec(running) => running.kill(),
            Operation::Attached(attachment) => {
                if let Some(process) = self.processes.by_key.get_mut(&attachment.process)
                    && process.attached == Some(id)
                {
                    process.attached = None;
                }
            }
            Operation::Opening { .. } | Operation::Spawning | Operation::Closing { .. } => {}
        }
    }
}
