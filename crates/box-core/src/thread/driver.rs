//! The task that owns a thread: what happens goes through [`super::step`], what follows is
//! committed, and only then told and done.
//!
//! Nothing here is kept that is not in the tables: a host that dies anywhere is followed by one
//! that loads the state of the last commit, attaches to the agent from the byte that commit ended
//! with, and sends what the guest has not taken yet.

mod agent;
mod commit;
mod keep;
mod streams;

use self::agent::{JobDone, Wish};
use self::commit::Flying;
use self::keep::Keep;
use super::acts::{Act, ActFailure};
use super::batch::{Batch, RowChange};
use super::link::Link;
use super::machine::Machine;
use super::mail::{AnswerFailure, Mail, PromptFailure};
use super::registry::Changes;
use super::saved::{self, Committed, Loaded, Process, ProcessState};
use super::state::{Action, ThreadInput, ThreadState};
use super::step::Moment;
use crate::acp::LineReader;
use crate::boxes::reason;
use crate::clock::Clock;
use crate::decisions::Hold;
use crate::journal::{Feed, Place};
use crate::store::{Durability, Store, StoreError};
use box_api::guest::ProcessName;
use box_api::{DecisionId, Owner, ThreadId};
use box_runtime::guest::{Event, GuestError};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// Wait before a thread whose commit failed is taken up again.
const RETRY_WAIT: Duration = Duration::from_secs(2);

/// Longest sleep towards a time of the clock.
const CLOCK_LOOK: Duration = Duration::from_mins(1);

/// What every driver shares.
#[derive(Debug, Clone)]
pub(super) struct World {
    pub(super) store: Store,
    pub(super) clock: Arc<dyn Clock>,
    /// Whose line in a list is another one.
    pub(super) changes: Changes,
    /// The number of the newest decision.
    pub(super) decisions: Arc<AtomicI64>,
    pub(super) machine: Arc<dyn Machine>,
    /// What becomes of a permission that nobody answers.
    pub(super) hold: Hold,
}

/// Drives a thread until nobody can reach it any more, or it is gone, or another host has it.
pub(super) async fn run(
    world: World,
    thread: ThreadId,
    feed: Feed,
    mut mail: mpsc::Receiver<Mail>,
) {
    drive(&world, thread, &feed, &mut mail).await;
    feed.end();
}

async fn drive(world: &World, thread: ThreadId, feed: &Feed, mail: &mut mpsc::Receiver<Mail>) {
    loop {
        // A write, so that it comes after every commit of whoever had the thread before.
        let loaded = world
            .store
            .write(Durability::Prompt, move |tables| {
                saved::take_up(tables, thread)
            })
            .await;
        let ended = match loaded {
            Ok(Some(loaded)) => Driver::new(world, loaded, feed, mail).run().await,
            Ok(None) => return,
            Err(error) => Ended::Failed(error),
        };
        match ended {
            Ended::Unreachable => return,
            Ended::NotOurs => {
                tracing::info!(%thread, "a thread is gone, or another host has taken it up");
                return;
            }
            Ended::Failed(error) => {
                tracing::error!(%thread, error = reason(&error), "a thread could not be saved");
                tokio::time::sleep(RETRY_WAIT).await;
            }
        }
    }
}

/// Why a driver stops.
#[derive(Debug)]
enum Ended {
    /// Every handle is gone.
    Unreachable,
    NotOurs,
    /// What was decided since the last commit is forgotten; the agent's bytes are still there.
    Failed(StoreError),
}

type Pending<T> = Option<Pin<Box<dyn Future<Output = T> + Send>>>;

struct Driver<'a> {
    world: &'a World,
    feed: &'a Feed,
    mail: &'a mut mpsc::Receiver<Mail>,
    place: Place,
    owner: Owner,
    agent: String,
    commits: i64,
    state: ThreadState,
    process: Option<Process>,
    /// Puts the output of [`Self::process`] together.
    reader: LineReader,
    /// How much of the line that is not whole yet is in the tables.
    spilled: usize,
    link: Option<Link>,
    wish: Wish,
    /// Processes to be ended.
    over: Vec<(u32, ProcessName)>,
    job: Pending<JobDone>,
    batch: Batch,
    /// When the batch is committed at the latest.
    due: Option<Instant>,
    flying: Option<Flying>,
    /// What lists were told last.
    told: String,
    /// Holds a prompt back while the box is kept as it is.
    keep: Keep,
    /// Input the guest has taken.
    taken: Option<(u32, u64)>,
}

/// Whether a step wrote to the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wrote {
    Nothing,
    Row,
}

/// What woke the driver.
enum Woken {
    Committed(Result<Committed, StoreError>),
    Job(JobDone),
    CommitDue,
    Deadline,
    Mail(Option<Mail>),
    Event(Result<Event, GuestError>),
}

impl<'a> Driver<'a> {
    fn new(
        world: &'a World,
        loaded: Loaded,
        feed: &'a Feed,
        mail: &'a mut mpsc::Receiver<Mail>,
    ) -> Self {
        let Loaded {
            owner,
            agent,
            place,
            commits,
            state,
            process,
            partial,
            over,
        } = loaded;
        let wish = match &process {
            Some(Process {
                state: ProcessState::Wanted,
                ..
            }) => Wish::Launch,
            Some(_) => Wish::Attach,
            None => Wish::Nothing,
        };
        let over = over
            .into_iter()
            .map(|process| (process.generation, process.name))
            .collect();
        let spilled = partial.len();
        Self {
            world,
            feed,
            mail,
            place,
            owner,
            agent,
            commits,
            state,
            process,
            reader: LineReader::resumed(partial),
            spilled,
            link: None,
            wish,
            over,
            job: None,
            batch: Batch::default(),
            due: None,
            flying: None,
            told: String::new(),
            keep: Keep::default(),
            taken: None,
        }
    }

    async fn run(mut self) -> Ended {
        self.state.hold(self.world.hold);
        if self.process.is_some() {
            self.input(ThreadInput::Reattached);
        }
        loop {
            self.begin_job();
            self.begin_commit();
            match self.wait().await {
                Woken::Committed(Ok(Committed::Done)) => self.committed(),
                Woken::Committed(Ok(Committed::NotOurs)) => return Ended::NotOurs,
                Woken::Committed(Err(error)) => return self.failed(error),
                Woken::Job(done) => self.job_done(done),
                Woken::CommitDue => self.due = Some(Instant::now()),
                Woken::Deadline => self.input(ThreadInput::Tick),
                Woken::Mail(Some(mail)) => self.mail(mail),
                Woken::Mail(None) => return Ended::Unreachable,
                Woken::Event(Ok(event)) => self.event(event).await,
                Woken::Event(Err(error)) => self.unlinked(&error),
            }
        }
    }

    async fn wait(&mut self) -> Woken {
        let room = self.batch.has_room();
        let due = self.due.filter(|_| self.flying.is_none());
        let deadline = self.state.deadline_ms().map(|at| {
            let left = at.saturating_sub(self.world.clock.now_ms());
            // Looked at again before that: clocks are put forward.
            Duration::from_millis(u64::try_from(left).unwrap_or_default()).min(CLOCK_LOOK)
        });
        let Self {
            flying,
            job,
            mail,
            link,
            ..
        } = self;
        tokio::select! {
            biased;
            done = poll(flying.as_mut().map(|flying| &mut flying.committed)) => Woken::Committed(done),
            done = poll(job.as_mut()) => Woken::Job(done),
            () = at(due) => Woken::CommitDue,
            () = after(deadline), if room => Woken::Deadline,
            letter = mail.recv(), if room => Woken::Mail(letter),
            event = next(link.as_mut()), if room => Woken::Event(event),
        }
    }

    fn mail(&mut self, mail: Mail) {
        match mail {
            Mail::Prompt { text, reply } => {
                let taken = self.prompt(text);
                self.reply(reply, taken);
            }
            Mail::Write { items, reply } => {
                self.input(ThreadInput::Write { items });
                self.reply(reply, ());
            }
            Mail::GoBack { gone, reply } => {
                self.input(ThreadInput::WentBack(gone));
                self.reply(reply, ());
            }
            Mail::Act { act, reply } => {
                let admitted = self.act(act);
                self.reply(reply, admitted);
            }
            Mail::Cancel { by, reply } => {
                self.input(ThreadInput::Cancel { by });
                self.reply(reply, ());
            }
            Mail::AnswerForm {
                decision,
                answer,
                by,
                reply,
            } => {
                let takes = self.state.takes(decision, &answer);
                if takes == Ok(()) {
                    self.input(ThreadInput::AnswerForm {
                        decision,
                        answer,
                        by,
                    });
                }
                self.reply(reply, takes);
            }
            Mail::Park {
                until_ms,
                by,
                reply,
            } => {
                self.input(ThreadInput::Park { until_ms, by });
                self.reply(reply, ());
            }
            Mail::Resume { by, reply } => {
                self.input(ThreadInput::Resume { by });
                self.reply(reply, ());
            }
            Mail::Budget { input, reply } => {
                self.input(input);
                self.reply(reply, ());
            }
            Mail::Answer {
                decision,
                option,
                by,
                reply,
            } => {
                let answered = self.answer(decision, option, by);
                self.reply(reply, answered);
            }
        }
    }

    fn prompt(&mut self, text: String) -> Result<(), PromptFailure> {
        if !self.state.has_room() {
            return Err(PromptFailure::QueueFull);
        }
        // It may only wait, which is no row that asks for it.
        self.batch.needs(Durability::Full);
        self.input(ThreadInput::Prompt { text });
        Ok(())
    }

    /// Takes one of the options the agent gave.
    fn answer(
        &mut self,
        decision: DecisionId,
        option: String,
        by: String,
    ) -> Result<(), AnswerFailure> {
        let offered = self.state.options_of(decision);
        if !offered.is_some_and(|offered| offered.iter().any(|one| one.id == option)) {
            return Err(AnswerFailure::Over);
        }
        self.input(ThreadInput::Answer {
            decision,
            option,
            by,
        });
        Ok(())
    }

    fn act(&mut self, act: Act) -> Result<(), ActFailure> {
        let input = self.state.admit(act)?;
        // It may change what waits, which is no row that asks for it.
        self.batch.needs(Durability::Full);
        self.input(input);
        Ok(())
    }

    /// Answers once everything decided so far is committed.
    fn reply<T: Send + 'static>(
        &mut self,
        reply: oneshot::Sender<Result<T, StoreError>>,
        answer: T,
    ) {
        self.batch.needs(Durability::Prompt);
        self.batch.replies.push(Box::new(move |committed| {
            // Whoever asked may be gone; what was asked stands.
            drop(reply.send(committed.map(|()| answer)));
        }));
    }

    fn input(&mut self, input: ThreadInput) {
        self.step(input);
    }

    /// Takes an input and answers whether it led to a row, or made the last one grow.
    fn step(&mut self, input: ThreadInput) -> Wrote {
        let decisions = &self.world.decisions;
        let mut number = || DecisionId(decisions.fetch_add(1, Ordering::SeqCst) + 1);
        let now_ms = self.world.clock.now_ms();
        let moment = Moment {
            now_ms,
            number: &mut number,
        };
        let mut wrote = Wrote::Nothing;
        for action in self.state.step(input, moment) {
            if let Some(change) = self.perform(action) {
                self.batch.change(change);
                wrote = Wrote::Row;
            }
        }
        wrote
    }

    /// Does an action, unless it is a change of the journal.
    fn perform(&mut self, action: Action) -> Option<RowChange> {
        match action {
            Action::Append(row) => return Some(RowChange::Append(row)),
            Action::Grow {
                seq,
                from_byte,
                text,
            } => {
                return Some(RowChange::Grow {
                    seq,
                    from_byte,
                    text,
                });
            }
            Action::OpenDecision {
                seq,
                at_ms,
                decision,
            } => {
                let generation = self.state.generation;
                return Some(RowChange::Open {
                    seq,
                    at_ms,
                    decision,
                    generation,
                });
            }
            Action::CloseDecision(closed) => return Some(RowChange::Close(closed)),
            Action::Send(line) => self.send(line),
            Action::StartAgent { generation } => self.want(generation),
            Action::KillAgent { .. } => self.retire(),
        }
        None
    }
}

/// The result of what is under way; never, when nothing is.
async fn poll<T>(pending: Option<&mut Pin<Box<dyn Future<Output = T> + Send>>>) -> T {
    match pending {
        Some(pending) => pending.await,
        None => std::future::pending().await,
    }
}

async fn at(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

async fn after(wait: Option<Duration>) {
    match wait {
        Some(wait) => tokio::time::sleep(wait).await,
        None => std::future::pending().await,
    }
}

async fn next(link: Option<&mut Link>) -> Result<Event, GuestError> {
    match link {
        Some(link) => link.next().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
