//! Commands of a page: each is done once, however often it is sent.

use super::session::Said;
use crate::control::client::PageWire;
use crate::http::Web;
use crate::http::call::{ask, thread_of};
use crate::problem;
use box_api::Problem;
use box_api::control::{Outcome, Request, ThreadAsk};
use box_api::page::{Command, ServerFrame};
use box_api::thread::ThreadShown;
use box_core::caller::Caller;
use box_core::sign_ins::Known;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use tokio::sync::{Mutex, OnceCell, Semaphore, mpsc};

/// Commands whose results are remembered, the oldest go first.
const REMEMBERED_MAX: usize = 2048;
/// Commands that run at once.
const RUNNING_MAX: usize = 64;
const CID_BYTES_MAX: usize = 64;

type Key = (String, String);
type Outcomes = Result<Option<Box<ThreadShown>>, Problem>;
type Cell = Arc<OnceCell<Outcomes>>;

/// What commands came to, by sign-in and the page's own number.
#[derive(Debug)]
pub(super) struct Done {
    known: Mutex<(HashMap<Key, Cell>, VecDeque<Key>)>,
    room: Arc<Semaphore>,
}

impl Default for Done {
    fn default() -> Self {
        Self {
            known: Mutex::default(),
            room: Arc::new(Semaphore::new(RUNNING_MAX)),
        }
    }
}

impl Done {
    async fn cell(&self, key: Key) -> Cell {
        let mut known = self.known.lock().await;
        let (cells, order) = &mut *known;
        if let Some(cell) = cells.get(&key) {
            return Arc::clone(cell);
        }
        if order.len() >= REMEMBERED_MAX
            && let Some(oldest) = order.pop_front()
        {
            cells.remove(&oldest);
        }
        order.push_back(key.clone());
        Arc::clone(cells.entry(key).or_default())
    }
}

/// Begins a command; it is finished whether or not the page stays. `Err` is what is said at once.
pub(super) fn begin(
    web: &Arc<Web>,
    (known, out): (Known, mpsc::Sender<Said>),
    cid: String,
    command: Command,
) -> Result<(), Box<ServerFrame>> {
    if cid.is_empty() || cid.len() > CID_BYTES_MAX {
        let why = format!("`cid` has 1 to {CID_BYTES_MAX} bytes");
        return Err(Box::new(result(cid, Err(problem::body(&why)))));
    }
    let Ok(permit) = Arc::clone(&web.sockets.done.room).try_acquire_owned() else {
        return Err(Box::new(result(cid, Err(problem::too_many_tries()))));
    };
    let web = Arc::clone(web);
    tokio::spawn(async move {
        let cell = web.sockets.done.cell((known.sign_in, cid.clone())).await;
        let outcome = cell
            .get_or_init(|| carry_out(&web, known.caller, command))
            .await
            .clone();
        drop(permit);
        let frame = result(cid, outcome);
        // The page may be gone; it asks again.
        drop(out.send(Said { from: None, frame }).await);
    });
    Ok(())
}

fn result(cid: String, outcome: Outcomes) -> ServerFrame {
    let (thread, problem) = match outcome {
        Ok(thread) => (thread, None),
        Err(problem) => (None, Some(problem)),
    };
    ServerFrame::Result {
        cid,
        problem,
        thread,
    }
}

async fn carry_out(web: &Arc<Web>, caller: Caller, command: Command) -> Outcomes {
    let request = match command {
        Command::Thread { thread, act } => {
            let (_, record) = thread_of(&web.door.host, &caller, thread).await?;
            Request::Thread(ThreadAsk {
                name: record.name,
                thread: Some(thread),
                act,
            })
        }
        Command::Answer { decision, option } => Request::Answer { decision, option },
        Command::AnswerForm { decision, answer } => Request::AnswerForm { decision, answer },
    };
    let outcome = ask(web, caller, request, PageWire::default()).await?;
    let shown = if let Outcome::ThreadShown(shown) = outcome {
        Some(shown)
    } else {
        None
    };
    Ok(shown)
}
