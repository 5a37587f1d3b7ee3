//! What the agent does without a prompt.

use crate::acp::extension::Told;
use box_api::thread::BackgroundTask;
use serde::{Deserialize, Serialize};

/// Tasks of one agent that are kept.
const TASKS_MAX: usize = 64;

/// Its tasks, and whether it goes on by itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(in crate::thread) struct Background {
    pub(in crate::thread) tasks: Vec<BackgroundTask>,
    awake: Awake,
    /// Requests to end a task that the agent has not answered.
    pub(in crate::thread) stops: Vec<Stop>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::thread) struct Stop {
    pub(in crate::thread) rpc: i64,
    pub(in crate::thread) task: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Awake {
    #[default]
    No,
    /// It says that it works though nobody asked.
    Yes,
}

/// Whether the list of tasks is another one now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::thread) enum Changed {
    No,
    Yes,
}

impl Background {
    /// The whole list, as the agent tells it (C97: a level, not an edge).
    pub(in crate::thread) fn told(&mut self, told: Vec<Told>, now_ms: i64) -> Changed {
        let since = |task: &str| {
            let known = self.tasks.iter().find(|known| known.task == task);
            known.map_or(now_ms, |known| known.since_ms)
        };
        let tasks: Vec<BackgroundTask> = told
            .into_iter()
            .take(TASKS_MAX)
            .map(|Told { task, about, title }| BackgroundTask {
                since_ms: since(&task),
                task,
                about,
                title,
            })
            .collect();
        let changed = if tasks == self.tasks {
            Changed::No
        } else {
            Changed::Yes
        };
        self.tasks = tasks;
        changed
    }

    pub(in crate::thread) fn wakes(&mut self) {
        self.awake = Awake::Yes;
    }

    pub(in crate::thread) fn rests(&mut self) {
        self.awake = Awake::No;
    }

    pub(in crate::thread) fn is_awake(&self) -> bool {
        self.awake == Awake::Yes
    }

    /// The agent is gone and its tasks with it.
    pub(in crate::thread) fn over(&mut self) -> Changed {
        let changed = if self.tasks.is_empty() {
            Changed::No
        } else {
            Changed::Yes
        };
        *self = Self::default();
        changed
    }

    /// The task the agent was asked to end under this number.
    pub(in crate::thread) fn stopping(&mut self, rpc: Option<i64>) -> Option<String> {
        let at = self.stops.iter().position(|stop| Some(stop.rpc) == rpc)?;
        Some(self.stops.remove(at).task)
    }
}
