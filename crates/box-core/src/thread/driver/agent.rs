//! The agent's process as the driver sees it: wanted, launched, attached to, over.

use super::Driver;
use crate::acp::LineReader;
use crate::boxes::reason;
use crate::store::Durability;
use crate::thread::batch::{After, OutLine};
use crate::thread::link::{self, Link, LinkError};
use crate::thread::saved::{Process, ProcessState};
use crate::thread::state::ThreadInput;
use box_api::ThreadId;
use box_api::guest::ProcessName;
use box_runtime::guest::Attachment;
use std::sync::Arc;

/// Something that takes a while, one at a time.
#[derive(Debug)]
pub(super) enum JobDone {
    /// The box was kept as it is before a turn, if it was to be.
    Kept,
    Ended {
        generation: u32,
        outcome: Result<(), LinkError>,
    },
    Launched {
        generation: u32,
        outcome: Result<Attachment, LinkError>,
    },
    Attached {
        generation: u32,
        outcome: Result<Attachment, LinkError>,
    },
}

/// What is to be done about the agent's process next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    Nothing,
    Launch,
    Attach,
}

impl Driver<'_> {
    pub(super) fn agent_gone(&mut self, why: String) {
        let last_words = self
            .process
            .as_ref()
            .map(|process| process.last_words.trim().to_owned());
        self.retire();
        self.input(ThreadInput::AgentGone {
            why,
            last_words: last_words.unwrap_or_default(),
        });
    }

    /// The process is over, for us at least: it is ended once that is committed.
    pub(super) fn retire(&mut self) {
        self.link = None;
        self.wish = Wish::Nothing;
        let Some(mut process) = self.process.take() else {
            return;
        };
        process.state = ProcessState::Over;
        let (generation, name) = (process.generation, process.name.clone());
        self.batch.needs(Durability::Prompt);
        self.batch.after.push(After::End { generation, name });
        self.batch.processes.push(process);
    }

    /// A process for this generation of the agent is to be there.
    pub(super) fn want(&mut self, generation: u32) {
        let name = process_name(&self.agent, self.place.thread, generation);
        self.process = Some(Process {
            generation,
            name,
            state: ProcessState::Wanted,
            stdout_kept: 0,
            stderr_kept: 0,
            last_words: String::new(),
            input_end: 0,
        });
        self.reader = LineReader::default();
        self.spilled = 0;
        self.batch.needs(Durability::Prompt);
        self.batch.after.push(After::Launch { generation });
    }

    /// A line for the agent; it is sent once it is committed.
    pub(super) fn send(&mut self, line: String) {
        let Some(process) = self.process.as_mut() else {
            return tracing::error!(thread = %self.place.thread, "a line for no agent");
        };
        let (generation, at) = (process.generation, process.input_end);
        process.input_end += line.len() as u64;
        self.batch.send(OutLine {
            generation,
            at,
            line,
        });
    }

    /// Whether this generation of the agent is still to be launched.
    pub(super) fn wanted(&self, generation: u32) -> bool {
        self.process.as_ref().is_some_and(|process| {
            process.generation == generation && process.state == ProcessState::Wanted
        })
    }

    pub(super) fn begin_job(&mut self) {
        if self.job.is_some() {
            return;
        }
        let machine = Arc::clone(&self.world.machine);
        // The one before is ended first: two agents of one conversation would disturb each other.
        if let Some((generation, name)) = self.over.pop() {
            self.job = Some(Box::pin(async move {
                JobDone::Ended {
                    generation,
                    outcome: link::end(&*machine, &name).await,
                }
            }));
            return;
        }
        if let Some(begun) = self.keep.begin() {
            self.job = Some(Box::pin(async move {
                machine.before_turn(begun).await;
                JobDone::Kept
            }));
            return;
        }
        let Some(process) = self.process.clone() else {
            return;
        };
        let generation = process.generation;
        self.job = match std::mem::replace(&mut self.wish, Wish::Nothing) {
            Wish::Nothing => None,
            Wish::Launch => Some(Box::pin(async move {
                let outcome = link::launch(&*machine, &process).await;
                JobDone::Launched {
                    generation,
                    outcome,
                }
            })),
            Wish::Attach => Some(Box::pin(async move {
                let outcome = link::attach(&*machine, &process).await;
                JobDone::Attached {
                    generation,
                    outcome,
                }
            })),
        };
    }

    pub(super) fn job_done(&mut self, done: JobDone) {
        self.job = None;
        match done {
            JobDone::Kept => self.box_is_kept(),
            JobDone::Ended {
                generation,
                outcome: Ok(()),
            } => {
                self.batch.needs(Durability::Grouped);
                self.batch.ended.push(generation);
            }
            JobDone::Ended {
                generation,
                outcome: Err(error),
            } => {
                // Its row stays, and whoever takes the thread up next tries again.
                let error = reason(&error);
                tracing::warn!(thread = %self.place.thread, generation, error, "an agent lives on");
            }
            JobDone::Launched {
                generation,
                outcome,
            } => {
                if let Some(error) = self.linked(generation, outcome) {
                    self.agent_gone(error.of_start());
                } else if self.link.is_some() {
                    self.input(ThreadInput::Started);
                }
            }
            JobDone::Attached {
                generation,
                outcome,
            } => {
                if let Some(error) = self.linked(generation, outcome) {
                    self.agent_gone(error.of_agent());
                }
            }
        }
    }

    /// Takes an attachment over, if it is of the process that is wanted now.
    pub(super) fn linked(
        &mut self,
        generation: u32,
        outcome: Result<Attachment, LinkError>,
    ) -> Option<LinkError> {
        let process = self
            .process
            .as_mut()
            .filter(|process| process.generation == generation)?;
        match outcome {
            Ok(attachment) => {
                process.state = ProcessState::Running;
                // What is not committed yet is sent when it is.
                let end = match &self.flying {
                    None if self.batch.outbox.is_empty() => process.input_end,
                    None | Some(_) => 0,
                };
                let of = (self.place.thread, generation);
                self.link = Some(Link::new(attachment, self.world.store.clone(), of, end));
                self.batch.needs(Durability::Prompt);
                None
            }
            Err(error) => Some(error),
        }
    }
}

/// The name of an agent's process, the same for every host that asks for it. What of an agent's
/// name cannot be part of it is left out; the thread's id makes it one of a kind.
fn process_name(agent: &str, thread: ThreadId, generation: u32) -> ProcessName {
    let fits = |c: &char| c.is_ascii_lowercase() || c.is_ascii_digit() || *c == '-';
    let agent: String = agent
        .chars()
        .filter(fits)
        .skip_while(|c| *c == '-')
        .take(30)
        .collect();
    let name = format!("{agent}-{thread}-{generation}");
    #[expect(
        clippy::expect_used,
        reason = "made of at most 58 of the characters a name has"
    )]
    ProcessName::parse(name.trim_start_matches('-')).expect("a name of a-z, 0-9 and `-`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_agent_has_a_process_name() {
        let thread = ThreadId::from_random([255; 10]);
        let name = |agent: &str| process_name(agent, thread, u32::MAX).to_string();
        assert_eq!(name("claude"), "claude-7777777777777777-4294967295");
        assert_eq!(name("-Ä!"), "7777777777777777-4294967295");
        assert_eq!(name(&"x".repeat(100)).len(), 30 + 1 + 16 + 1 + 10);
    }
}
