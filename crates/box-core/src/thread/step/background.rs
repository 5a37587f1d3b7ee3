//! What the agent does without a prompt: its tasks, and what they have to say.

use super::Step;
use crate::acp::extension::{Told, Woke};
use crate::acp::{RpcError, send};
use crate::thread::state::{Changed, Phase, Stop};
use box_api::thread::Item;
use serde_json::Value;

/// Requests to end tasks that may be on their way at once.
const STOPS_MAX: usize = 64;

impl Step<'_> {
    pub(super) fn background(&mut self, told: Vec<Told>) {
        if self.state.background.told(told, self.now_ms) == Changed::Yes {
            self.background_row();
        }
    }

    /// The agent is gone and its tasks with it.
    pub(super) fn no_background(&mut self) {
        if self.state.background.over() == Changed::Yes {
            self.background_row();
        }
    }

    fn background_row(&mut self) {
        let tasks = self.state.background.tasks.clone();
        self.append(Item::Background { tasks });
    }

    pub(super) fn woke(&mut self, woke: Woke) {
        let Woke {
            task,
            summary,
            status,
            said,
        } = woke;
        self.append(Item::Woke {
            task,
            summary,
            status,
            said,
        });
    }

    pub(super) fn stop_task(&mut self, task: &str, by: &str) {
        let known = self
            .state
            .background
            .tasks
            .iter()
            .any(|known| known.task == task);
        let room = self.state.background.stops.len() < STOPS_MAX;
        if self.state.phase != Phase::Ready || !known || !room {
            return;
        }
        let rpc = self.rpc();
        let task = task.to_owned();
        let known_as = self.state.known_as.as_deref().unwrap_or_default();
        let line = send::stop_task(rpc, known_as, &task);
        self.state.background.stops.push(Stop { rpc, task });
        self.notice(format!("{by} ends a task of the background"));
        self.send(line);
    }

    pub(super) fn stop_answered(&mut self, task: &str, answer: Result<Value, RpcError>) {
        let why = match answer {
            Ok(result) if result["stopped"] == true => return,
            Ok(_) => "the agent did not end it".to_owned(),
            Err(error) => format!("{} ({})", error.message, error.code),
        };
        self.notice(format!("the task `{task}` goes on: {why}"));
    }
}
