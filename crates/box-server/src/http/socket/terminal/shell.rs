//! A shell and its terminal: what is typed goes in, what is printed is kept until it is taken.

use super::KEPT_BYTES_MAX;
use crate::http::Web;
use crate::http::socket::session;
use crate::problem;
use box_api::control::{Exec, TerminalSize};
use box_api::page::{TERMINAL_WAIT_MS, TERMINAL_WINDOW_BYTES};
use box_api::{BoxId, BoxName, Problem};
use box_core::caller::Caller;
use box_core::exec::{self, Started};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::termios::{Winsize, tcsetwinsize};
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout};

/// The box's bash if it has one, else its sh. Constant text: nothing typed is part of it.
const LOGIN_SHELL: &str =
    "if command -v bash >/dev/null 2>&1; then exec bash -l; else exec sh -l; fi";
const READ_BYTES: usize = 16 << 10;
/// Pieces of input that wait for the shell to read.
const TYPED_MAX: usize = 64;
/// Longest output is waited for after the shell is over.
const DRAIN: Duration = Duration::from_millis(200);

/// What a page does to a terminal.
#[derive(Debug)]
pub(super) enum Typed {
    Bytes(Vec<u8>),
    Size(TerminalSize),
}

/// A terminal as sockets see it.
#[derive(Debug)]
pub(super) struct Shell {
    pub(super) id: String,
    pub(super) sign_in: String,
    input: mpsc::Sender<Typed>,
    printed: watch::Sender<Printed>,
    /// How often a page took it up, and whether the last one is still there.
    pages: watch::Sender<(u64, Attended)>,
    end: watch::Sender<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attended {
    Yes,
    No,
}

/// What was printed.
#[derive(Debug, Default)]
pub(super) struct Printed {
    /// The newest of it.
    kept: VecDeque<u8>,
    /// All that was ever printed, bytes.
    end: u64,
    /// What of it a page has shown.
    taken: u64,
    code: Option<i32>,
}

impl Printed {
    fn begin(&self) -> u64 {
        self.end - self.kept.len() as u64
    }

    /// Whether more may be read.
    fn has_room(&self) -> bool {
        self.end - self.taken < TERMINAL_WINDOW_BYTES as u64
    }

    fn add(&mut self, bytes: &[u8]) {
        self.kept.extend(bytes);
        self.end += bytes.len() as u64;
        // What was not taken always fits: nothing is read beyond the window.
        let surplus = self.kept.len().saturating_sub(KEPT_BYTES_MAX + READ_BYTES);
        self.kept.drain(..surplus);
    }
}

impl Shell {
    pub(super) async fn typed(&self, typed: Typed) {
        // A shell that is over hears nothing.
        drop(self.input.send(typed).await);
    }

    /// Sockets wait for any change; what it is they look up.
    pub(super) fn changed(&self) -> watch::Receiver<Printed> {
        self.printed.subscribe()
    }

    /// `from`, or where what is kept begins.
    pub(super) fn nearest(&self, from: u64) -> u64 {
        let printed = self.printed.borrow();
        if from < printed.begin() || from > printed.end {
            printed.begin()
        } else {
            from
        }
    }

    /// What was printed after a byte, up to a size, and the code if that is all there will ever be.
    pub(super) fn piece(&self, from: u64, bytes_max: usize) -> (Vec<u8>, Option<i32>) {
        let printed = self.printed.borrow();
        let skip = usize::try_from(from.saturating_sub(printed.begin())).unwrap_or(usize::MAX);
        let piece = printed.kept.iter().skip(skip).take(bytes_max);
        (piece.copied().collect(), printed.code)
    }

    pub(super) fn taken(&self, to: u64) {
        self.printed.send_if_modified(|printed| {
            let to = to.min(printed.end);
            let more = to > printed.taken;
            printed.taken = printed.taken.max(to);
            more
        });
    }

    /// A page is there from now on; another one that was is not any more.
    pub(super) fn take_up(&self) -> u64 {
        self.pages.send_modify(|(turn, attended)| {
            *turn += 1;
            *attended = Attended::Yes;
        });
        self.pages.borrow().0
    }

    /// Until another page took it up.
    pub(super) async fn taken_up_after(&self, turn: u64) {
        let mut pages = self.pages.subscribe();
        drop(pages.wait_for(|(now, _)| *now != turn).await);
    }

    pub(super) fn let_go(&self, turn: u64) {
        self.pages.send_if_modified(|(now, attended)| {
            let is_last = *now == turn;
            if is_last {
                *attended = Attended::No;
            }
            is_last
        });
    }

    pub(super) fn end(&self) {
        self.end.send_replace(true);
    }
}

/// Starts a shell in a box.
pub(super) async fn start(
    web: &Arc<Web>,
    (caller, sign_in): (Caller, &str),
    name: BoxName,
    size: TerminalSize,
) -> Result<Arc<Shell>, Problem> {
    let host = &web.door.host;
    let env = [("TERM", "xterm-256color"), ("COLORTERM", "truecolor")];
    let asked = Exec {
        name,
        command: ["/bin/sh", "-c", LOGIN_SHELL].map(str::to_owned).to_vec(),
        cwd: None,
        env: env
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
        terminal: Some(size),
    };
    let started = exec::exec(host, &caller, asked)
        .await
        .map_err(problem::exec)?;
    let id = BoxId::from_random(host.random.bytes()).to_string();
    let (input, typed) = mpsc::channel(TYPED_MAX);
    let shell = Arc::new(Shell {
        id,
        sign_in: sign_in.to_owned(),
        input,
        printed: watch::channel(Printed::default()).0,
        pages: watch::channel((0, Attended::No)).0,
        end: watch::channel(false).0,
    });
    tokio::spawn(serve(Arc::clone(web), Arc::clone(&shell), started, typed));
    Ok(shell)
}

async fn serve(web: Arc<Web>, shell: Arc<Shell>, started: Started, typed: mpsc::Receiver<Typed>) {
    let mut end = shell.end.subscribe();
    let mut stop = web.door.stop.subscribe();
    tokio::select! {
        ended = tend(&shell, started, typed) => {
            if let Err(error) = ended {
                tracing::debug!(%error, "a terminal ended badly");
            }
        }
        () = session::revoked(&web, &shell.sign_in) => {}
        () = forgotten(&shell) => {}
        _ = end.wait_for(|end| *end) => {}
        () = crate::control::told_to_stop(&mut stop) => {}
    }
    // Letting go of the process killed it, if it still was.
    web.sockets.terminals.remove(&shell.id).await;
    shell.printed.send_modify(|printed| {
        printed.code.get_or_insert(-1);
    });
}

/// Until no page was there for a while.
async fn forgotten(shell: &Shell) {
    let mut pages = shell.pages.subscribe();
    loop {
        let gone = pages.wait_for(|(_, attended)| *attended == Attended::No);
        if gone.await.is_err() {
            return;
        }
        let back = pages.wait_for(|(_, attended)| *attended == Attended::Yes);
        if timeout(Duration::from_millis(TERMINAL_WAIT_MS), back)
            .await
            .is_err()
        {
            return;
        }
    }
}

/// Carries bytes both ways until the shell is over.
async fn tend(shell: &Shell, started: Started, mut typed: mpsc::Receiver<Typed>) -> io::Result<()> {
    let mut streams = started.execution.streams;
    let terminal = streams
        .pop()
        .ok_or_else(|| io::Error::other("the shell has no terminal"))?;
    fcntl_setfl(&terminal, fcntl_getfl(&terminal)? | OFlags::NONBLOCK)?;
    let terminal = watched(terminal)?;
    let process = started.execution.process;
    let mut printed = shell.printed.subscribe();
    let mut wait = std::pin::pin!(process.wait());
    let mut pending: Vec<u8> = Vec::new();
    loop {
        let has_room = printed.borrow_and_update().has_room();
        tokio::select! {
            read = read(&terminal), if has_room => match read? {
                Some(bytes) => shell.printed.send_modify(|printed| printed.add(&bytes)),
                // Its other end is closed; the code comes.
                None => break,
            },
            changed = printed.changed(), if !has_room => {
                changed.map_err(io::Error::other)?;
            }
            // Both ways at once: a shell that is told much prints much before it reads on.
            written = write(&terminal, &pending), if !pending.is_empty() => {
                pending.drain(..written?);
            }
            typed = typed.recv(), if pending.is_empty() => match typed {
                Some(Typed::Bytes(bytes)) => pending = bytes,
                Some(Typed::Size(size)) => resize(&terminal, size)?,
                None => return Ok(()),
            },
            code = &mut wait => {
                drain(shell, &terminal).await?;
                return over(shell, code);
            }
        }
    }
    over(shell, wait.await)
}

fn over(shell: &Shell, code: Result<i32, box_runtime::RuntimeError>) -> io::Result<()> {
    let code = code.map_err(io::Error::other)?;
    shell
        .printed
        .send_modify(|printed| printed.code = Some(code));
    Ok(())
}

#[expect(
    deprecated,
    reason = "the newer one is unsafe for descriptors that are closed while they are watched; this owns its own"
)]
fn watched(terminal: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::new(terminal)
}

/// What the shell printed last. What it left running in the background keeps the terminal open, and
/// is not waited for.
async fn drain(shell: &Shell, terminal: &AsyncFd<OwnedFd>) -> io::Result<()> {
    let until = Instant::now() + DRAIN;
    while shell.printed.borrow().has_room() {
        tokio::select! {
            read = read(terminal) => match read? {
                Some(bytes) => shell.printed.send_modify(|printed| printed.add(&bytes)),
                None => break,
            },
            () = sleep_until(until) => break,
        }
    }
    Ok(())
}

/// What is printed next; `None` at the end.
async fn read(terminal: &AsyncFd<OwnedFd>) -> io::Result<Option<Vec<u8>>> {
    loop {
        let mut ready = terminal.readable().await?;
        let mut bytes = vec![0; READ_BYTES];
        let read = ready.try_io(|terminal| Ok(rustix::io::read(terminal, &mut bytes)?));
        match read {
            Ok(Ok(0)) => return Ok(None),
            Ok(Ok(count)) => {
                bytes.truncate(count);
                return Ok(Some(bytes));
            }
            // The kernel's word for a terminal whose other end is closed.
            Ok(Err(error)) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => {
                return Ok(None);
            }
            Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(Err(error)) => return Err(error),
            Err(_would_block) => {}
        }
    }
}

fn resize(terminal: &AsyncFd<OwnedFd>, size: TerminalSize) -> io::Result<()> {
    let size = Winsize {
        ws_row: size.rows,
        ws_col: size.columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    Ok(tcsetwinsize(terminal, size)?)
}

/// Writes as much as the shell takes now, once it takes anything.
async fn write(terminal: &AsyncFd<OwnedFd>, bytes: &[u8]) -> io::Result<usize> {
    loop {
        let mut ready = terminal.writable().await?;
        match ready.try_io(|terminal| Ok(rustix::io::write(terminal, bytes)?)) {
            Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(written) => return written,
            Err(_would_block) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_taken_is_kept_and_no_more_is_read() {
        let mut printed = Printed::default();
        while printed.has_room() {
            printed.add(&[b'x'; READ_BYTES]);
        }
        assert_eq!(printed.begin(), 0, "something was lost");
        printed.taken = printed.end;
        for _ in 0..8 {
            printed.add(&[b'y'; READ_BYTES]);
        }
        assert!(printed.begin() > 0 && printed.begin() <= printed.taken);
        assert!(printed.kept.len() <= KEPT_BYTES_MAX + READ_BYTES);
    }
}
