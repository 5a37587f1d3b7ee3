//! Topic `thread`: a journal from where the page stands, and the thread beside it.

use super::session::Voice;
use crate::http::call::thread_of;
use crate::http::journal::{self, Follower};
use box_api::page::{LogUpdate, ServerFrame, Start, ThreadHead};
use box_api::thread::Cursor;
use box_api::{Problem, ThreadId};
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

/// How often a thread is looked at whose journal stands still.
const LOOK_EVERY: Duration = Duration::from_secs(1);

pub(super) async fn thread(voice: Voice, thread: ThreadId, after: Option<Cursor>) {
    let Err(problem) = follow(&voice, thread, after).await else {
        return;
    };
    if let Some(turn) = voice.turn().await {
        turn.say(ServerFrame::Over {
            sub: voice.sub,
            problem,
        });
    }
}

/// Until the page is gone, or the thread.
async fn follow(voice: &Voice, thread: ThreadId, after: Option<Cursor>) -> Result<(), Problem> {
    let web = &voice.web;
    let (handle, record) = thread_of(&web.door.host, &voice.caller, thread).await?;
    // A person looks: what the box's network asks meanwhile is asked here.
    let _look = web.door.host.people.look_at(record.id);
    let (mut follower, beginning) = Follower::begin(&web.door.host, &handle, after).await?;
    let mut known = journal::head(web, voice.caller, thread).await?;
    let Some(turn) = voice.turn().await else {
        return Ok(());
    };
    let mut updates = beginning.updates;
    if updates.is_empty() {
        updates = follower.ready().await?;
    }
    turn.say(ServerFrame::Log {
        sub: voice.sub,
        start: beginning.start,
        from: beginning.from,
        to: follower.reached(),
        updates,
        older: beginning.older,
        head: Some(Box::new(known.clone())),
    });
    let mut every = interval(LOOK_EVERY);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            waited = follower.wait() => waited?,
            _ = every.tick() => {}
        }
        // Only now: what there is to say is read when the page can take it.
        let Some(turn) = voice.turn().await else {
            return Ok(());
        };
        let from = follower.reached();
        let updates = follower.ready().await?;
        let head = if updates
            .iter()
            .all(|update| matches!(update, LogUpdate::Grew { .. }))
            && !updates.is_empty()
        {
            None
        } else {
            changed(&mut known, journal::head(web, voice.caller, thread).await?)
        };
        if updates.is_empty() && head.is_none() {
            continue;
        }
        turn.say(ServerFrame::Log {
            sub: voice.sub,
            start: Start::Cursor,
            from,
            to: follower.reached(),
            updates,
            older: false,
            head,
        });
    }
}

fn changed(known: &mut ThreadHead, now: ThreadHead) -> Option<Box<ThreadHead>> {
    (*known != now).then(|| {
        *known = now.clone();
        Box::new(now)
    })
}
