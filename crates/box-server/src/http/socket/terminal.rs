//! `GET /api/boxes/{box}/terminal`: a shell in a box for a page.
//!
//! A terminal is a task that owns the shell and what of its output nobody has taken yet; a socket is
//! a place in that output. So a page that slept finds it as it was, and one that does not read makes
//! the shell wait, not the host grow.

mod shell;

use super::frame::{self, Incoming, Reader, Takes, WireError};
use super::session::{self, Writer};
use super::{gate, handshake};
use crate::control::told_to_stop;
use crate::http::Web;
use crate::http::answer::{self, Answer};
use crate::http::call::Call;
use crate::problem;
use box_api::Problem;
use box_api::control::TerminalSize;
use box_api::page::{
    PING_MS, TERMINAL_INPUT_BYTES_MAX, TERMINAL_WINDOW_BYTES, TerminalAsk, TerminalSays,
};
use hyper::http::request::Parts;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use shell::{Shell, Typed};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};

/// Terminals of one sign-in.
const TERMINALS_MAX: usize = 8;
/// Largest piece of output in a frame.
const PIECE_BYTES_MAX: usize = 32 << 10;
/// Rows and columns there may be.
const CELLS_MAX: u16 = 1000;
const USUAL: TerminalSize = TerminalSize {
    rows: 24,
    columns: 80,
};

/// Those that run, by their ids.
#[derive(Debug, Default)]
pub(in crate::http) struct Terminals(Mutex<HashMap<String, Arc<Shell>>>);

impl Terminals {
    async fn find(&self, id: &str, sign_in: &str) -> Option<Arc<Shell>> {
        let all = self.0.lock().await;
        all.get(id).filter(|one| one.sign_in == sign_in).cloned()
    }

    /// Whether there was room for it.
    async fn add(&self, shell: &Arc<Shell>) -> bool {
        let mut all = self.0.lock().await;
        let own = all.values().filter(|one| one.sign_in == shell.sign_in);
        if own.count() >= TERMINALS_MAX {
            return false;
        }
        all.insert(shell.id.clone(), Arc::clone(shell));
        true
    }

    async fn remove(&self, id: &str) {
        self.0.lock().await.remove(id);
    }
}

/// Where a page is in what was printed.
#[derive(Debug)]
struct Place {
    shell: Arc<Shell>,
    from: u64,
}

/// Answers the handshake; what can be refused is refused before.
pub(in crate::http) async fn upgrade(call: &Call, head: &mut Parts) -> Answer {
    let place = match open(call).await {
        Ok(place) => place,
        Err(problem) => return answer::problem(&problem),
    };
    match handshake(head, gate::SOCKET_PROTOCOL) {
        Ok((switching, upgrade)) => {
            tokio::spawn(run(Arc::clone(&call.web), place, upgrade));
            switching
        }
        Err(problem) => answer::problem(&problem),
    }
}

/// The terminal that is asked for: one that runs, or a new one.
async fn open(call: &Call) -> Result<Place, Problem> {
    let size = TerminalSize {
        rows: call.asked("rows")?.unwrap_or(USUAL.rows),
        columns: call.asked("columns")?.unwrap_or(USUAL.columns),
    };
    let size = bounded(size);
    let web = &call.web;
    if let Some(id) = call.asked::<String>("terminal")? {
        let terminals = &web.sockets.terminals;
        let shell = terminals.find(&id, &call.sign_in).await;
        let shell = shell.ok_or_else(|| problem::no_terminal(&id))?;
        shell.typed(Typed::Size(size)).await;
        let from = call.asked("from")?.unwrap_or_default();
        return Ok(Place { shell, from });
    }
    let name = call.box_name().await?;
    let shell = shell::start(web, (call.caller, &call.sign_in), name, size).await?;
    if !web.sockets.terminals.add(&shell).await {
        shell.end();
        return Err(problem::too_many_terminals(TERMINALS_MAX));
    }
    Ok(Place { shell, from: 0 })
}

fn bounded(size: TerminalSize) -> TerminalSize {
    TerminalSize {
        rows: size.rows.clamp(1, CELLS_MAX),
        columns: size.columns.clamp(1, CELLS_MAX),
    }
}

/// Why a socket ends.
enum End {
    Page(WireError),
    Closed,
    Said(TerminalSays),
}

async fn run(web: Arc<Web>, place: Place, upgrade: OnUpgrade) {
    let Ok(stream) = upgrade.await else { return };
    let (reader, mut writer) = tokio::io::split(TokioIo::new(stream));
    let reader = Reader::new(reader, Takes::TextsAndBytes);
    let shell = Arc::clone(&place.shell);
    let turn = shell.take_up();
    let mut stop = web.door.stop.subscribe();
    let bye = |why: &str| {
        End::Said(TerminalSays::Bye {
            why: why.to_owned(),
        })
    };
    let end = tokio::select! {
        end = converse(place, reader, &mut writer) => end,
        () = session::revoked(&web, &shell.sign_in) => bye("this browser was signed out"),
        () = shell.taken_up_after(turn) => bye("it was opened elsewhere"),
        () = told_to_stop(&mut stop) => bye("the host ends"),
    };
    let code = match end {
        End::Said(last) => {
            drop(say(&mut writer, &last).await);
            1000
        }
        End::Closed => 1000,
        End::Page(error) => error.code(),
    };
    shell.let_go(turn);
    session::shut(&mut writer, code).await;
}

type Inbox = Reader<tokio::io::ReadHalf<TokioIo<hyper::upgrade::Upgraded>>>;

async fn converse(place: Place, mut reader: Inbox, writer: &mut Writer) -> End {
    let Place { shell, from } = place;
    let mut changed = shell.changed();
    let mut sent = shell.nearest(from);
    let opened = TerminalSays::Opened {
        terminal: shell.id.clone(),
        from: sent,
    };
    if let Err(error) = say(writer, &opened).await {
        return End::Page(error);
    }
    let every = Duration::from_millis(PING_MS);
    let mut ping_at = Instant::now() + every;
    loop {
        let (piece, code) = shell.piece(sent, PIECE_BYTES_MAX);
        if !piece.is_empty() {
            sent += piece.len() as u64;
            ping_at = Instant::now() + every;
            if let Err(error) = session::write(writer, &frame::binary(&piece)).await {
                return End::Page(error);
            }
        } else if let Some(code) = code {
            return End::Said(TerminalSays::Ended { code });
        }
        let more = !piece.is_empty();
        let told = tokio::select! {
            biased;
            incoming = reader.next() => match incoming {
                Ok(incoming) => hear(&shell, incoming, writer).await,
                Err(error) => Err(End::Page(error)),
            },
            () = std::future::ready(()), if more => Ok(()),
            alive = changed.changed() => alive.map_err(|_| End::Closed),
            () = sleep_until(ping_at) => {
                ping_at = Instant::now() + every;
                session::write(writer, &frame::ping()).await.map_err(End::Page)
            }
        };
        if let Err(end) = told {
            return end;
        }
    }
}

async fn hear(shell: &Shell, incoming: Incoming, writer: &mut Writer) -> Result<(), End> {
    match incoming {
        Incoming::Binary(bytes) if bytes.len() > TERMINAL_INPUT_BYTES_MAX => {
            Err(End::Page(WireError::TooLong))
        }
        Incoming::Binary(bytes) => {
            shell.typed(Typed::Bytes(bytes)).await;
            Ok(())
        }
        Incoming::Text(text) => match serde_json::from_str(&text) {
            Ok(TerminalAsk::Size { rows, columns }) => {
                let size = bounded(TerminalSize { rows, columns });
                shell.typed(Typed::Size(size)).await;
                Ok(())
            }
            Ok(TerminalAsk::Taken { to }) => {
                shell.taken(to);
                Ok(())
            }
            Err(_) => {
                let why = "it is nothing a terminal is told";
                Err(End::Page(WireError::Protocol(why)))
            }
        },
        Incoming::Ping(body) => session::write(writer, &frame::pong(&body))
            .await
            .map_err(End::Page),
        Incoming::Pong => Ok(()),
        Incoming::Close => Err(End::Closed),
    }
}

async fn say(writer: &mut Writer, says: &TerminalSays) -> Result<(), WireError> {
    let text = serde_json::to_string(says).map_err(std::io::Error::other)?;
    session::write(writer, &frame::text(&text)).await
}

/// Output that is kept for a page that comes back.
const KEPT_BYTES_MAX: usize = TERMINAL_WINDOW_BYTES;
