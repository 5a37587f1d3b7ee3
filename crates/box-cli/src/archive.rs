//! Carries an archive between a pipe of the host and a file of the caller's, which the host never
//! sees: it is opened here, with the caller's own rights.

use crate::client::{Client, unexpected};
use crate::complaint::Complaint;
use crate::output::{Output, visible};
use box_api::control::{Outcome, Reply, Request};
use rustix::fd::OwnedFd;
use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::mpsc;
use std::time::{Duration, Instant};

const BUFFER_BYTES: usize = 256 << 10;
/// The longest silence while an archive is written or read; the host says something every second.
const SILENCE_MAX: Duration = Duration::from_mins(30);

/// What an archive is, told with every one that is written or read (B30).
pub(crate) const SHOUT: &str = "it is a credential. Logins, tokens and keys inside the box are in it as \
    they are, and nothing is encrypted: whoever has the file can be you. Keep it as you keep a password.";

/// Somebody who reads or writes the pipe beside the conversation with the host. What came of it is
/// told before the pipe is let go of: a host that misses it is not the first to complain.
pub(crate) type Carrier = mpsc::Receiver<io::Result<u64>>;

/// Asks for something that gives one end of a pipe, and has it carried until the host is done.
///
/// # Errors
/// What went wrong on our side, if it did; else the host's problem.
pub(crate) fn carry(
    mut client: Client,
    output: &mut Output,
    request: &Request,
    begin: impl FnOnce(File) -> Carrier,
) -> Result<(Outcome, u64), Complaint> {
    client.request(request)?;
    let mut begin = Some(begin);
    let mut carrier = None;
    let done = loop {
        match client.next(Some(Instant::now() + SILENCE_MAX))? {
            Reply::Progress { text } => output.progress(&text),
            Reply::Note { text } => output.note(&visible(&text)),
            Reply::Streams => {
                let [end] = <[OwnedFd; 1]>::try_from(client.take_descriptors())
                    .map_err(|_| unexpected(&Reply::Streams))?;
                carrier = begin.take().map(|begin| begin(File::from(end)));
            }
            Reply::Done(outcome) => break Ok(outcome),
            Reply::Problem(problem) => break Err(Complaint::from(problem)),
            other @ (Reply::Output { .. }
            | Reply::Thread { .. }
            | Reply::Update(_)
            | Reply::Decision(_)
            | Reply::Net(_)
            | Reply::AnswerRefused { .. }) => return Err(unexpected(&other)),
        }
    };
    let carrier = carrier.ok_or_else(|| unexpected(&done));
    match done {
        Ok(outcome) => {
            let told = carrier?.recv();
            let bytes = told.unwrap_or_else(|_| Err(io::Error::other("it broke")));
            Ok((outcome, bytes.map_err(failed)?))
        }
        // What failed here is why it failed there.
        Err(complaint) => match carrier.map(|carrier| carrier.try_recv()) {
            Ok(Ok(Err(error))) => Err(failed(error)),
            Ok(Ok(Ok(_)) | Err(_)) | Err(_) => Err(complaint),
        },
    }
}

fn failed(error: io::Error) -> Complaint {
    let complaint = Complaint::failed("archive-file", "could not read or write the archive's file");
    let full = error.kind() == io::ErrorKind::StorageFull;
    let complaint = complaint.caused_by(error);
    if full {
        complaint.hinted("make room, or name a file on another disk")
    } else {
        complaint
    }
}

/// Takes all there is.
pub(crate) fn take(mut pipe: File, mut into: impl Write + Send + 'static) -> Carrier {
    aside(move |tell| {
        let taken = copy(&mut pipe, &mut into).and_then(|bytes| into.flush().map(|()| bytes));
        tell(taken);
        drop(pipe);
    })
}

/// Gives all there is. A host that has had enough says why itself.
pub(crate) fn give(mut from: impl Read + Send + 'static, mut pipe: File) -> Carrier {
    aside(move |tell| {
        let given = match copy(&mut from, &mut pipe) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
            given => given,
        };
        tell(given);
        drop(pipe);
    })
}

fn aside(carry: impl FnOnce(&dyn Fn(io::Result<u64>)) + Send + 'static) -> Carrier {
    let (sender, carried) = mpsc::sync_channel(1);
    std::thread::spawn(move || {
        // Nobody listens any more once the host has had enough.
        carry(&|result| drop(sender.send(result)));
    });
    carried
}

fn copy(from: &mut impl Read, to: &mut impl Write) -> io::Result<u64> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut all = 0;
    loop {
        let count = match from.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        if count == 0 {
            return Ok(all);
        }
        to.write_all(&buffer[..count])?;
        all += count as u64;
    }
}
