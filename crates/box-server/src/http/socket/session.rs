//! One open page: what it sends, what it subscribed to, and one frame at a time back.
//!
//! A subscription is a task that waits until it may say something (`reserve`), and only then reads
//! what there is to say. So nothing is queued for a slow page, and none keeps another waiting.

use super::frame::{self, Incoming, Reader, Takes, WireError};
use super::{commands, follow, lists};
use crate::control::told_to_stop;
use crate::http::Web;
use crate::problem;
use box_api::page::{ClientFrame, PAGE_PROTOCOL, PING_MS, SUBSCRIPTIONS_MAX, ServerFrame, Topic};
use box_core::caller::Caller;
use box_core::push::Seat;
use box_core::sign_ins::{self, Known};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncWriteExt as _, WriteHalf};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until, timeout};

/// Longest a page may leave a frame unread.
const SEND_DEADLINE: Duration = Duration::from_mins(1);
/// How often it is looked whether a sign-in came to its end.
const LOOK_EVERY: Duration = Duration::from_mins(1);
/// Longest a close is waited for.
const CLOSE_DEADLINE: Duration = Duration::from_secs(2);
/// Longest a page may say nothing, not even a pong.
const SILENCE_MAX: Duration = Duration::from_mins(10);

/// A frame of a subscription; one that was replaced meanwhile is not sent.
#[derive(Debug)]
pub(super) struct Said {
    /// Which subscription, and the how-manyth of the socket.
    pub(super) from: Option<(u32, u64)>,
    pub(super) frame: ServerFrame,
}

/// Where a subscription says what it has to say.
#[derive(Debug, Clone)]
pub(super) struct Voice {
    pub(super) web: Arc<Web>,
    pub(super) caller: Caller,
    pub(super) sub: u32,
    number: u64,
    out: mpsc::Sender<Said>,
}

/// The page is ready to take one frame.
#[derive(Debug)]
pub(super) struct Turn<'v> {
    permit: mpsc::Permit<'v, Said>,
    from: (u32, u64),
}

impl Voice {
    /// Until the page can take a frame; `None` when it is gone.
    pub(super) async fn turn(&self) -> Option<Turn<'_>> {
        let permit = self.out.reserve().await.ok()?;
        Some(Turn {
            permit,
            from: (self.sub, self.number),
        })
    }
}

impl Turn<'_> {
    pub(super) fn say(self, frame: ServerFrame) {
        self.permit.send(Said {
            from: Some(self.from),
            frame,
        });
    }
}

pub(super) type Writer = WriteHalf<TokioIo<Upgraded>>;

/// Why a socket ends.
enum End {
    /// The page left, or did what pages do not.
    Page(WireError),
    Closed,
    Told(&'static str),
}

pub(super) async fn run(web: &Arc<Web>, known: &Known, stream: TokioIo<Upgraded>) {
    let (reader, mut writer) = tokio::io::split(stream);
    let mut stop = web.door.stop.subscribe();
    let end = tokio::select! {
        end = converse(web, known, Reader::new(reader, Takes::Texts), &mut writer) => end,
        () = revoked(web, &known.sign_in) => End::Told("this browser was signed out"),
        () = told_to_stop(&mut stop) => End::Told("the host ends"),
    };
    let code = match end {
        End::Told(why) => {
            let why = why.to_owned();
            let bye = ServerFrame::Bye { why };
            drop(timeout(CLOSE_DEADLINE, send(&mut writer, &bye)).await);
            1001
        }
        End::Closed => 1000,
        End::Page(error) => {
            tracing::debug!(%error, "a page went away");
            error.code()
        }
    };
    shut(&mut writer, code).await;
}

/// Says why, and closes.
pub(super) async fn refuse(stream: TokioIo<Upgraded>, why: &str) {
    let (_reader, mut writer) = tokio::io::split(stream);
    let why = why.to_owned();
    drop(timeout(CLOSE_DEADLINE, send(&mut writer, &ServerFrame::Bye { why })).await);
    shut(&mut writer, 1013).await;
}

pub(super) async fn shut(writer: &mut Writer, code: u16) {
    let closing = async {
        writer.write_all(&frame::close(code)).await?;
        writer.shutdown().await
    };
    drop(timeout(CLOSE_DEADLINE, closing).await);
}

/// Ends when the sign-in is no more.
pub(super) async fn revoked(web: &Web, sign_in: &str) {
    let host = &web.door.host;
    let mut revoked = host.sign_ins.revoked();
    loop {
        if let Ok(false) = sign_ins::stands(host, sign_in).await {
            return;
        }
        // The sender is the host's. A token ends by itself too.
        if let Ok(Err(_)) = timeout(LOOK_EVERY, revoked.changed()).await {
            return;
        }
    }
}

/// What a socket has open.
struct Session<'s> {
    web: &'s Arc<Web>,
    known: &'s Known,
    out: mpsc::Sender<Said>,
    subs: HashMap<u32, (u64, AbortHandle)>,
    number: u64,
    /// Where it says what is in front of its person.
    seat: Seat,
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        for (_, task) in self.subs.values() {
            task.abort();
        }
    }
}

async fn converse(
    web: &Arc<Web>,
    known: &Known,
    mut reader: Reader<tokio::io::ReadHalf<TokioIo<Upgraded>>>,
    writer: &mut Writer,
) -> End {
    // One: a frame is made when the one before it is on its way.
    let (out, mut said) = mpsc::channel(1);
    let mut session = Session {
        web,
        known,
        out,
        subs: HashMap::new(),
        number: 0,
        seat: web.door.host.push.front.seat(known.caller.owner),
    };
    if let Err(error) = send(writer, &session.hello()).await {
        return End::Page(error);
    }
    let every = Duration::from_millis(PING_MS);
    let (mut ping_at, mut heard_at) = (Instant::now() + every, Instant::now());
    loop {
        let sent = tokio::select! {
            incoming = reader.next() => {
                heard_at = Instant::now();
                match incoming {
                    Ok(Incoming::Text(text)) => session.hear(&text, writer).await,
                    Ok(Incoming::Ping(body)) => write(writer, &frame::pong(&body)).await,
                    Ok(Incoming::Pong | Incoming::Binary(_)) => Ok(()),
                    Ok(Incoming::Close) => return End::Closed,
                    Err(error) => Err(error),
                }
            }
            Some(said) = said.recv() => {
                ping_at = Instant::now() + every;
                if session.is_meant(&said) { send(writer, &said.frame).await } else { Ok(()) }
            }
            () = sleep_until(ping_at) => {
                ping_at = Instant::now() + every;
                send(writer, &session.ping()).await
            }
            () = sleep_until(heard_at + SILENCE_MAX) => Err(WireError::Gone),
        };
        if let Err(error) = sent {
            return End::Page(error);
        }
    }
}

impl Session<'_> {
    fn hello(&self) -> ServerFrame {
        let host = &self.web.door.host;
        ServerFrame::Hello {
            protocol: PAGE_PROTOCOL,
            build: host.build.clone(),
            started_at_ms: host.started_at_ms,
            now_ms: host.now_ms(),
        }
    }

    fn ping(&self) -> ServerFrame {
        ServerFrame::Ping {
            now_ms: self.web.door.host.now_ms(),
        }
    }

    fn is_meant(&self, said: &Said) -> bool {
        said.from.is_none_or(|(sub, number)| {
            self.subs
                .get(&sub)
                .is_some_and(|(current, _)| *current == number)
        })
    }

    async fn hear(&mut self, text: &str, writer: &mut Writer) -> Result<(), WireError> {
        let frame = serde_json::from_str(text)
            .map_err(|_| WireError::Protocol("it is nothing a page says"))?;
        match frame {
            ClientFrame::Ping => return send(writer, &self.ping()).await,
            ClientFrame::Front { thread } => self.seat.look(thread, self.web.door.host.now_ms()),
            ClientFrame::Unsub { sub } => self.unsubscribe(sub),
            ClientFrame::Sub { sub, topic } => {
                self.unsubscribe(sub);
                if self.subs.len() >= SUBSCRIPTIONS_MAX {
                    let problem = problem::too_many_tries();
                    return send(writer, &ServerFrame::Over { sub, problem }).await;
                }
                self.subscribe(sub, &topic);
            }
            ClientFrame::Cmd { cid, command } => {
                let sender = (self.known.clone(), self.out.clone());
                return match commands::begin(self.web, sender, cid, command) {
                    Ok(()) => Ok(()),
                    Err(refused) => send(writer, &refused).await,
                };
            }
        }
        Ok(())
    }

    fn unsubscribe(&mut self, sub: u32) {
        if let Some((_, task)) = self.subs.remove(&sub) {
            task.abort();
        }
    }

    fn subscribe(&mut self, sub: u32, topic: &Topic) {
        self.number += 1;
        let voice = Voice {
            web: Arc::clone(self.web),
            caller: self.known.caller,
            sub,
            number: self.number,
            out: self.out.clone(),
        };
        let task = match *topic {
            Topic::Boxes => tokio::spawn(lists::boxes(voice)),
            Topic::Threads => tokio::spawn(lists::threads(voice)),
            Topic::Decisions => tokio::spawn(lists::decisions(voice)),
            Topic::Thread { thread, after } => tokio::spawn(follow::thread(voice, thread, after)),
        };
        self.subs.insert(sub, (self.number, task.abort_handle()));
    }
}

async fn send(writer: &mut Writer, frame: &ServerFrame) -> Result<(), WireError> {
    let text = serde_json::to_string(frame).map_err(std::io::Error::other)?;
    write(writer, &frame::text(&text)).await
}

pub(super) async fn write(writer: &mut Writer, bytes: &[u8]) -> Result<(), WireError> {
    let writing = async {
        writer.write_all(bytes).await?;
        writer.flush().await
    };
    timeout(SEND_DEADLINE, writing)
        .await
        .map_err(|_| WireError::Gone)?
        .map_err(WireError::from)
}
