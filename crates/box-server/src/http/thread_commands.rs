//! `GET /api/threads/{thread}/commands`: what the agent offers after a `/`.
//!
//! An agent tells its whole list each time (ACP's `available_commands_update`), mostly once, when its
//! process starts. A page that knows the end of a long journal only asks here.

use super::answer;
use super::call::{Call, Called};
use super::journal;
use box_api::page::{AgentCommand, AgentCommands};
use box_api::thread::Item;
use serde_json::Value;

/// Pages of the journal that are looked at, from its end on.
const PAGES_MAX: usize = 50;
/// Most commands that are given.
const COMMANDS_MAX: usize = 200;
const NAME_CHARS_MAX: usize = 100;
const ABOUT_CHARS_MAX: usize = 200;

pub(super) async fn handle(call: Call) -> Called {
    let (handle, _) = call.thread_named().await?;
    let place = journal::place(&handle);
    let mut before = None;
    for _ in 0..PAGES_MAX {
        let page = journal::tail(call.host(), place, before).await?;
        let told = page.rows.iter().rev().find_map(|row| {
            let Item::Detail { raw } = &row.item else {
                return None;
            };
            commands(raw)
        });
        if let Some(commands) = told {
            return Ok(answer::json(&AgentCommands { commands }));
        }
        before = page.rows.first().map(|row| row.seq);
        if !page.older || before.is_none() {
            break;
        }
    }
    Ok(answer::json(&AgentCommands {
        commands: Vec::new(),
    }))
}

fn commands(raw: &Value) -> Option<Vec<AgentCommand>> {
    if raw["sessionUpdate"] != "available_commands_update" {
        return None;
    }
    let offered = raw["availableCommands"].as_array()?;
    let commands = offered
        .iter()
        .take(COMMANDS_MAX)
        .map(|command| AgentCommand {
            name: line(&command["name"], NAME_CHARS_MAX),
            about: line(&command["description"], ABOUT_CHARS_MAX),
            hint: command["input"]["hint"]
                .as_str()
                .map(|_| line(&command["input"]["hint"], ABOUT_CHARS_MAX)),
        });
    Some(
        commands
            .filter(|command| !command.name.is_empty())
            .collect(),
    )
}

/// The first line of a text, cut.
fn line(value: &Value, chars_max: usize) -> String {
    let text = value.as_str().unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    line.chars().take(chars_max).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn commands_are_one_line_each_and_other_details_are_none() {
        let raw = json!({
            "sessionUpdate": "available_commands_update",
            "availableCommands": [
                { "name": "compact", "description": "Make room\nand more", "input": { "hint": "what to keep" } },
                { "name": "init", "description": null },
                { "description": "nameless" },
                7,
            ],
        });
        let command = |name: &str, about: &str, hint: Option<&str>| AgentCommand {
            name: name.to_owned(),
            about: about.to_owned(),
            hint: hint.map(str::to_owned),
        };
        let wanted = vec![
            command("compact", "Make room", Some("what to keep")),
            command("init", "", None),
        ];
        assert_eq!(commands(&raw), Some(wanted));
        assert_eq!(
            commands(&json!({ "sessionUpdate": "config_option_update" })),
            None
        );
    }
}
