//! What an agent offers after a `/`.

use super::Conversation;
use crate::turn::moves::Action;
use serde_json::Value;

/// Most that are listed.
const COMMANDS_MAX: usize = 200;
const WORDS_CHARS_MAX: usize = 100;

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Command {
    name: String,
    words: String,
}

impl Conversation {
    /// The agent tells the whole list each time (ACP's `available_commands_update`).
    pub(super) fn learn_commands(&mut self, raw: &Value) {
        let Some(offered) = raw["availableCommands"].as_array() else {
            return;
        };
        let short = |value: &Value| -> String {
            let text = value.as_str().unwrap_or_default();
            let line = text.lines().next().unwrap_or_default();
            line.chars().take(WORDS_CHARS_MAX).collect()
        };
        self.commands = offered
            .iter()
            .take(COMMANDS_MAX)
            .map(|command| Command {
                name: short(&command["name"]),
                words: short(&command["description"]),
            })
            .filter(|command| !command.name.is_empty())
            .collect();
    }

    /// Tells the person which there are.
    pub(super) fn list_commands(&mut self) {
        if self.commands.is_empty() {
            let note = "the agent has not said yet what it offers";
            return self.todo.push(Action::Note(note.to_owned()));
        }
        let lines: Vec<String> = self
            .commands
            .iter()
            .map(|command| format!("/{}  {}", command.name, command.words))
            .collect();
        self.todo.push(Action::Note(lines.join("\n")));
    }
}
