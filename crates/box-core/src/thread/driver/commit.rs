//! Commits: what was decided is written, then told, then done.

use super::agent::Wish;
use super::{Driver, Ended};
use crate::restore_points::TurnBegun;
use crate::store::{Durability, StoreError};
use crate::thread::batch::{After, Batch, Commit, Reply};
use crate::thread::saved::{self, Committed, Process};
use box_api::thread::ThreadUpdate;
use std::pin::Pin;
use std::time::Duration;
use tokio::time::Instant;

/// Longest a change waits for others to be committed with it.
const GROUP_WINDOW: Duration = Duration::from_millis(20);

/// What a commit under way will lead to.
pub(super) struct Flying {
    pub(super) committed: Pin<Box<dyn Future<Output = Result<Committed, StoreError>> + Send>>,
    pub(super) updates: Vec<ThreadUpdate>,
    /// What lists show after it.
    pub(super) listed: String,
    pub(super) process: Option<Process>,
    pub(super) begun: Option<TurnBegun>,
    pub(super) after: Vec<After>,
    pub(super) replies: Vec<Reply>,
}

impl Driver<'_> {
    /// Commits what waits, if it is time.
    pub(super) fn begin_commit(&mut self) {
        let Some(durability) = self.batch.durability() else {
            return;
        };
        let now = Instant::now();
        let due = *self.due.get_or_insert(now + GROUP_WINDOW);
        let full = !self.batch.has_room();
        if self.flying.is_some() || !(self.batch.is_urgent() || full || due <= now) {
            return;
        }
        self.due = None;
        let batch = std::mem::take(&mut self.batch);
        let updates = batch.updates();
        let begun = self.turn_begun(&updates);
        let Batch {
            rows,
            lines,
            mut processes,
            outbox,
            spill,
            ended,
            after,
            replies,
            ..
        } = batch;
        processes.extend(self.process.clone());
        #[expect(clippy::expect_used, reason = "its maps have strings for keys")]
        let saved = serde_json::to_string(&self.state).expect("a state can be written");
        let summary = self.state.summary();
        let listed = format!("{:?} {} {summary}", self.state.shown(), self.state.title);
        let commit = Commit {
            place: self.place,
            owner: self.owner,
            at_ms: self.world.clock.now_ms(),
            commits: self.commits,
            title: self.state.title.clone(),
            shown: self.state.shown(),
            parked: self.state.parked.clone(),
            saved,
            summary,
            rows,
            lines,
            processes,
            outbox,
            taken: self.taken.take(),
            spill,
            ended,
        };
        let store = self.world.store.clone();
        // The window is over: the store's own for grouped changes would only add to it.
        let durability = match durability {
            Durability::Grouped | Durability::Prompt => Durability::Prompt,
            Durability::Full => Durability::Full,
        };
        let committed = Box::pin(async move {
            store
                .write(durability, move |tables| saved::commit(tables, &commit))
                .await
        });
        let process = self.process.clone();
        self.flying = Some(Flying {
            committed,
            updates,
            listed,
            process,
            begun,
            after,
            replies,
        });
    }

    pub(super) fn committed(&mut self) {
        let Some(flying) = self.flying.take() else {
            return;
        };
        self.commits += 1;
        self.feed.announce(flying.updates);
        if flying.listed != self.told {
            self.told = flying.listed;
            self.world.changes.tell(self.place.thread);
        }
        self.keep_before(flying.begun);
        self.pass_on(flying.process);
        for after in flying.after {
            self.follow_up(after);
        }
        for reply in flying.replies {
            reply(Ok(()));
        }
    }

    fn follow_up(&mut self, after: After) {
        let current = self.process.as_ref().map(|process| process.generation);
        match after {
            // Unless it has been given up since.
            After::Launch { generation } if self.wanted(generation) => self.wish = Wish::Launch,
            After::Attach { generation } if current == Some(generation) => {
                self.wish = Wish::Attach;
            }
            After::Launch { .. } | After::Attach { .. } => {}
            After::End { generation, name } => self.over.push((generation, name)),
        }
    }

    pub(super) fn failed(mut self, error: StoreError) -> Ended {
        let flying = self
            .flying
            .take()
            .map(|flying| flying.replies)
            .unwrap_or_default();
        for reply in flying
            .into_iter()
            .chain(std::mem::take(&mut self.batch.replies))
        {
            reply(Err(error.clone()));
        }
        Ended::Failed(error)
    }
}
