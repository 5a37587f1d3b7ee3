//! Topics `boxes`, `threads` and `decisions`: the whole list, and then what is different in it.

use super::session::Voice;
use crate::control::client::PageWire;
use crate::http::call::ask;
use crate::problem;
use box_api::control::{Outcome, Request, ThreadsAsk};
use box_api::network::Waiting;
use box_api::page::{BoxCard, ServerFrame};
use box_api::thread::{ThreadInBox, ThreadState};
use box_api::{BoxId, DecisionId, Problem, ThreadId};
use box_core::{boxes as rows, thread};
use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

/// How often the rows are looked at for what nobody tells.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Entries of one frame; more come with the next.
const ENTRIES_MAX: usize = 100;

/// What is different in a list.
struct Change<K, T> {
    version: u64,
    whole: bool,
    fresh: Vec<T>,
    gone: Vec<K>,
}

pub(super) async fn boxes(voice: Voice) {
    let sub = voice.sub;
    let frame = |change: Change<BoxId, BoxCard>| ServerFrame::Boxes {
        sub,
        version: change.version,
        whole: change.whole,
        boxes: change.fresh,
        gone: change.gone,
    };
    let key = |card: &BoxCard| card.id;
    show(&voice, || cards(&voice), key, frame).await;
}

pub(super) async fn threads(voice: Voice) {
    let sub = voice.sub;
    let frame = |change: Change<ThreadId, ThreadInBox>| ServerFrame::Threads {
        sub,
        version: change.version,
        whole: change.whole,
        threads: change.fresh,
        gone: change.gone,
    };
    let key = |thread: &ThreadInBox| thread.info.thread;
    show(&voice, || all_threads(&voice), key, frame).await;
}

pub(super) async fn decisions(voice: Voice) {
    let sub = voice.sub;
    let frame = |change: Change<DecisionId, Waiting>| ServerFrame::Decisions {
        sub,
        version: change.version,
        whole: change.whole,
        decisions: change.fresh,
        gone: change.gone,
    };
    let key = |waiting: &Waiting| waiting.decision.decision;
    // Connections that nobody allowed wait for whoever looks.
    let _look = voice.web.door.host.people.look_everywhere();
    show(&voice, || waiting(&voice), key, frame).await;
}

/// Says a list, and what changes in it, until the page is gone or it cannot be read.
async fn show<K, T, R>(
    voice: &Voice,
    read: impl Fn() -> R,
    key: impl Fn(&T) -> K,
    frame: impl Fn(Change<K, T>) -> ServerFrame,
) where
    K: Hash + Eq + Copy,
    T: Clone + PartialEq,
    R: Future<Output = Result<Vec<T>, Problem>>,
{
    let host = &voice.web.door.host;
    let (mut changes, mut told) = (host.changes.watch(), host.people.listen());
    let mut every = interval(LOOK_EVERY);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut sent, mut version): (HashMap<K, T>, u64) = (HashMap::new(), 0);
    loop {
        let Some(turn) = voice.turn().await else {
            return;
        };
        let now = match read().await {
            Ok(now) => now,
            Err(problem) => {
                return turn.say(ServerFrame::Over {
                    sub: voice.sub,
                    problem,
                });
            }
        };
        let gone: Vec<K> = sent
            .keys()
            .filter(|known| !now.iter().any(|one| key(one) == **known))
            .copied()
            .collect();
        sent.retain(|known, _| !gone.contains(known));
        let differs = |one: &T| sent.get(&key(one)) != Some(one);
        let fresh: Vec<T> = now.into_iter().filter(differs).collect();
        let more = fresh.len() > ENTRIES_MAX;
        let fresh: Vec<T> = fresh.into_iter().take(ENTRIES_MAX).collect();
        if version > 0 && fresh.is_empty() && gone.is_empty() {
            // Nothing to say: the turn is somebody else's.
            drop(turn);
        } else {
            for one in &fresh {
                sent.insert(key(one), one.clone());
            }
            version += 1;
            turn.say(frame(Change {
                version,
                whole: version == 1,
                fresh,
                gone,
            }));
        }
        if more {
            continue;
        }
        tokio::select! {
            _ = changes.changed() => {}
            _ = told.recv() => {}
            _ = every.tick() => {}
        }
    }
}

async fn cards(voice: &Voice) -> Result<Vec<BoxCard>, Problem> {
    let host = &voice.web.door.host;
    let records = rows::list(host, &voice.caller)
        .await
        .map_err(problem::store)?;
    let asks = waiting(voice).await?;
    let mut cards = Vec::with_capacity(records.len());
    for record in records {
        let threads = thread::list(host, record.id)
            .await
            .map_err(problem::store)?;
        let works = |state: ThreadState| {
            matches!(
                state,
                ThreadState::Running | ThreadState::Starting | ThreadState::NeedsYou
            )
        };
        let of_box = |one: &&Waiting| one.decision.box_id == record.id;
        cards.push(BoxCard {
            id: record.id,
            frozen: host.touches.is_frozen(&record.id).await,
            running: count(threads.iter().filter(|thread| works(thread.state))),
            asks: count(asks.iter().filter(of_box)),
            threads: count(threads.iter()),
            name: record.name,
            title: record.title,
            state: record.state,
            created_at_ms: record.created_at_ms,
            problem: record.problem,
        });
    }
    Ok(cards)
}

fn count<T>(all: impl Iterator<Item = T>) -> u32 {
    u32::try_from(all.count()).unwrap_or(u32::MAX)
}

async fn all_threads(voice: &Voice) -> Result<Vec<ThreadInBox>, Problem> {
    let asked = ThreadsAsk {
        name: None,
        archived: false,
    };
    let outcome = ask(
        &voice.web,
        voice.caller,
        Request::Threads(asked),
        PageWire::default(),
    )
    .await?;
    let Outcome::Threads { threads } = outcome else {
        return Err(problem::unlike(&outcome));
    };
    Ok(threads)
}

async fn waiting(voice: &Voice) -> Result<Vec<Waiting>, Problem> {
    let request = Request::Decisions { follow: false };
    let outcome = ask(&voice.web, voice.caller, request, PageWire::default()).await?;
    let Outcome::Decisions { decisions } = outcome else {
        return Err(problem::unlike(&outcome));
    };
    Ok(decisions)
}
