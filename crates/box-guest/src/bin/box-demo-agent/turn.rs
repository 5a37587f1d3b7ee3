//! The script: one turn of the demo, step by step.

use crate::LABEL;
use crate::project::{ByZero, FOLDER, Project, write};
use crate::session::{Agent, Mode, Stop};
use crate::tool::{self, Ran};
use serde_json::{Value, json};
use std::path::PathBuf;

/// A name no preset allows and nobody owns (RFC 2606).
const BLOCKED_HOST: &str = "blocked.example";
/// Longest piece of text sent at once.
const CHUNK_CHARS: usize = 40;

const PLAN: [&str; 5] = [
    "Write a small project",
    "Run its tests",
    "Fix what they find",
    "Run the tests again",
    "See whether a host that is not allowed can be reached",
];

/// Runs the turn to its end, or until it is cancelled.
pub(crate) fn run(agent: &mut Agent, session: &str, prompt: &str) -> Result<(), Stop> {
    let folder = agent.session(session).folder.join(FOLDER);
    let mut turn = Turn {
        agent,
        session,
        folder,
        open_call: None,
    };
    let outcome = turn.play(prompt);
    if outcome == Err(Stop::Cancelled) {
        turn.close_open_call();
    }
    outcome
}

struct Turn<'a> {
    agent: &'a mut Agent,
    session: &'a str,
    folder: PathBuf,
    /// The tool call that has begun and not ended.
    open_call: Option<String>,
}

/// How the fix went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fix {
    Applied,
    Refused,
}

impl Turn<'_> {
    fn play(&mut self, prompt: &str) -> Result<(), Stop> {
        let python = tool::is_there(&["python3", "-c", "import unittest"]);
        let project = if python {
            Project::PYTHON
        } else {
            Project::SHELL
        };
        self.introduce(prompt, &project)?;

        self.plan(0)?;
        for (name, content) in project.files {
            self.write_file(name, content)?;
        }
        self.plan(1)?;
        let red = self.test(&project, "Run the tests")?;
        self.say(if red.success {
            "The tests pass, which they should not. "
        } else {
            "The tests fail, as they should: there is a bug in `divide`.\n"
        })?;

        self.plan(2)?;
        let by_zero = self.ask_about_zero()?;
        let fix = self.fix(&project, by_zero)?;
        self.plan(3)?;
        let green = self.test(&project, "Run the tests again")?;
        self.plan(4)?;
        let reached = self.reach_blocked_host()?;
        self.plan(PLAN.len())?;
        self.conclude(fix, &green, &reached)
    }

    fn introduce(&mut self, prompt: &str, project: &Project) -> Result<(), Stop> {
        self.think(&format!(
            "{LABEL}: what follows is a script, whatever you ask. You asked: “{prompt}”. "
        ))?;
        self.think(&format!(
            "I will write a small {} project with a bug in it, find the bug by its tests and fix it.",
            project.language
        ))?;
        self.say(&format!(
            "**{LABEL}.** This follows a script, but the work is real. "
        ))?;
        if project.language == "shell" {
            self.say("There is no Python here, so the project is written for `/bin/sh`. ")?;
        }
        self.say("I start with a small calculator.\n")
    }

    fn write_file(&mut self, name: &str, content: &str) -> Result<(), Stop> {
        let path = self.folder.join(name);
        let old = std::fs::read_to_string(&path).ok();
        let diff = json!([{
            "type": "diff", "path": path, "oldText": old, "newText": content,
        }]);
        let call = self.begin(&json!({
            "title": format!("Write {FOLDER}/{name}"),
            "kind": "edit",
            "status": "in_progress",
            "locations": [{ "path": path }],
            "content": diff,
        }))?;
        match write(&path, content) {
            Ok(()) => self.end(&call, "completed", None),
            Err(why) => self.end(&call, "failed", Some(&why)),
        }
    }

    fn test(&mut self, project: &Project, title: &str) -> Result<Ran, Stop> {
        self.execute(title, "execute", &project.test.join(" "), project.test)
    }

    /// Runs a command as a tool call; one that fails is shown as failed.
    fn execute(
        &mut self,
        title: &str,
        kind: &str,
        shown: &str,
        words: &[&str],
    ) -> Result<Ran, Stop> {
        let call = self.begin(&json!({
            "title": format!("{title}: {shown}"),
            "kind": kind,
            "status": "in_progress",
            "rawInput": { "command": shown, "cwd": self.folder },
        }))?;
        let ran = tool::run(self.agent, &self.folder, words)?;
        let status = if ran.success { "completed" } else { "failed" };
        self.end(&call, status, Some(&ran.output))?;
        Ok(ran)
    }

    fn ask_about_zero(&mut self) -> Result<ByZero, Stop> {
        if self.agent.session(self.session).mode == Mode::Bypass {
            self.say(
                "Nobody is to be asked in this mode; dividing by zero will report an error.\n",
            )?;
            return Ok(ByZero::DEFAULT);
        }
        let choices: Vec<Value> = ByZero::ALL
            .into_iter()
            .map(|choice| json!({ "const": choice.id(), "title": choice.label() }))
            .collect();
        let question = json!({
            "sessionId": self.session,
            "mode": "form",
            "message": format!("{LABEL}: what shall the calculator do when it divides by zero?"),
            "requestedSchema": {
                "type": "object",
                "properties": {
                    "by_zero": {
                        "type": "string",
                        "title": "Dividing by zero",
                        "oneOf": choices,
                        "default": ByZero::DEFAULT.id(),
                    },
                },
                "required": ["by_zero"],
            },
        });
        // A client that knows no such question, declines it or answers nonsense gets the default.
        let answer = self
            .agent
            .ask("elicitation/create", &question)?
            .unwrap_or_default();
        let accepted = (answer["action"] == "accept")
            .then(|| ByZero::parse(answer["content"]["by_zero"].as_str()?))
            .flatten();
        if let Some(choice) = accepted {
            self.say(&format!("You chose: {}.\n", choice.label().to_lowercase()))?;
        } else {
            self.say("Without an answer I take the default: report an error.\n")?;
        }
        Ok(accepted.unwrap_or(ByZero::DEFAULT))
    }

    fn fix(&mut self, project: &Project, by_zero: ByZero) -> Result<Fix, Stop> {
        let (name, buggy) = project.files[0];
        let fixed = project.fixed(by_zero);
        let path = self.folder.join(name);
        let call = self.begin(&json!({
            "title": format!("Fix {FOLDER}/{name}"),
            "kind": "edit",
            "status": "pending",
            "locations": [{ "path": path }],
            "content": [{ "type": "diff", "path": path, "oldText": buggy, "newText": fixed }],
            "rawInput": { "path": path },
        }))?;
        if !self.may_edit(&call, &format!("Fix {FOLDER}/{name}"))? {
            self.end(&call, "failed", Some("refused by the person"))?;
            self.say("I leave the bug where it is, as you wish.\n")?;
            return Ok(Fix::Refused);
        }
        match write(&path, &fixed) {
            Ok(()) => self.end(&call, "completed", None)?,
            Err(why) => self.end(&call, "failed", Some(&why))?,
        }
        Ok(Fix::Applied)
    }

    /// Asks for a permission, unless the mode or an earlier *always* answers.
    fn may_edit(&mut self, call: &str, title: &str) -> Result<bool, Stop> {
        let session = self.agent.session(self.session);
        if session.mode == Mode::Bypass || session.allowed_always {
            return Ok(true);
        }
        let request = json!({
            "sessionId": self.session,
            "toolCall": { "toolCallId": call, "title": title, "kind": "edit", "status": "pending" },
            "options": [
                { "optionId": "demo-once", "name": "Allow once", "kind": "allow_once" },
                { "optionId": "demo-always", "name": "Always allow edits", "kind": "allow_always" },
                { "optionId": "demo-no", "name": "Reject", "kind": "reject_once" },
            ],
        });
        let answer = self
            .agent
            .ask("session/request_permission", &request)?
            .unwrap_or_default();
        let outcome = &answer["outcome"];
        match (outcome["outcome"].as_str(), outcome["optionId"].as_str()) {
            (Some("selected"), Some("demo-once")) => Ok(true),
            (Some("selected"), Some("demo-always")) => {
                self.agent.allow_always(self.session);
                Ok(true)
            }
            (Some("cancelled"), _) => Err(Stop::Cancelled),
            // A rejection, an error, or an option that was never offered.
            _ => Ok(false),
        }
    }

    fn reach_blocked_host(&mut self) -> Result<Ran, Stop> {
        let own = std::env::current_exe().unwrap_or_default();
        let own = own.to_string_lossy().into_owned();
        let words = [own.as_str(), "--reach", BLOCKED_HOST];
        self.execute(
            "Try a host that is not allowed",
            "fetch",
            &format!("http://{BLOCKED_HOST}/"),
            &words,
        )
    }

    fn conclude(&mut self, fix: Fix, green: &Ran, reached: &Ran) -> Result<(), Stop> {
        self.say("\n**Done.** ")?;
        self.say(match (fix, green.success) {
            (Fix::Applied, true) => "The bug is fixed and the tests pass. ",
            (Fix::Applied, false) => {
                "The fix is in, but the tests still fail; their output says why. "
            }
            (Fix::Refused, _) => {
                "The bug is still there and the tests still fail, because the fix was refused. "
            }
        })?;
        if reached.success {
            self.say(&format!(
                "`{BLOCKED_HOST}` answered, which it should not: this machine lets it through. "
            ))?;
        } else {
            let saw = reached.output.lines().next().unwrap_or("nothing");
            self.say(&format!(
                "`{BLOCKED_HOST}` could not be reached; what I saw: {saw}. "
            ))?;
        }
        self.say(&format!("The files are in `{FOLDER}`. {LABEL}."))
    }

    // How a turn shows itself.

    fn think(&mut self, text: &str) -> Result<(), Stop> {
        self.chunks("agent_thought_chunk", text)
    }

    fn say(&mut self, text: &str) -> Result<(), Stop> {
        self.chunks("agent_message_chunk", text)
    }

    fn chunks(&mut self, kind: &str, text: &str) -> Result<(), Stop> {
        for chunk in pieces(text) {
            let content = json!({ "type": "text", "text": chunk });
            self.agent.update(
                self.session,
                &json!({ "sessionUpdate": kind, "content": content }),
            );
            self.agent.pause()?;
        }
        Ok(())
    }

    /// The plan with its first `done` entries completed and the next one begun.
    fn plan(&mut self, done: usize) -> Result<(), Stop> {
        let status = |at: usize| match at.cmp(&done) {
            std::cmp::Ordering::Less => "completed",
            std::cmp::Ordering::Equal => "in_progress",
            std::cmp::Ordering::Greater => "pending",
        };
        let entry =
            |(at, text)| json!({ "content": text, "priority": "medium", "status": status(at) });
        let entries: Vec<Value> = PLAN.into_iter().enumerate().map(entry).collect();
        self.agent.update(
            self.session,
            &json!({ "sessionUpdate": "plan", "entries": entries }),
        );
        self.agent.pause()
    }

    fn begin(&mut self, call: &Value) -> Result<String, Stop> {
        let id = self.agent.new_call();
        let mut update = call.clone();
        update["sessionUpdate"] = json!("tool_call");
        update["toolCallId"] = json!(id);
        self.agent.update(self.session, &update);
        self.open_call = Some(id.clone());
        self.agent.pause()?;
        Ok(id)
    }

    fn end(&mut self, call: &str, status: &str, output: Option<&str>) -> Result<(), Stop> {
        let mut update =
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": call, "status": status });
        if let Some(output) = output {
            let text = json!({ "type": "text", "text": output });
            update["content"] = json!([{ "type": "content", "content": text }]);
        }
        self.agent.update(self.session, &update);
        self.open_call = None;
        self.agent.pause()
    }

    /// A cancelled turn leaves no call that looks as if it still ran.
    fn close_open_call(&mut self) {
        if let Some(call) = self.open_call.take() {
            let update = json!({
                "sessionUpdate": "tool_call_update", "toolCallId": call, "status": "failed",
            });
            self.agent.update(self.session, &update);
        }
    }
}

/// Cuts a text behind words, so that it streams as a model's would.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let far = rest
            .char_indices()
            .nth(CHUNK_CHARS)
            .map_or(rest.len(), |(at, _)| at);
        let cut = if far == rest.len() {
            far
        } else {
            rest[..far].rfind(' ').map_or(far, |at| at + 1)
        };
        let (piece, after) = rest.split_at(cut);
        pieces.push(piece);
        rest = after;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::pieces;

    #[test]
    fn pieces_together_are_the_text() {
        for text in [
            "",
            "short",
            "“quoted” words – and a very long sentence that is cut more than once",
            &"x".repeat(200),
            &"ä ".repeat(99),
        ] {
            assert_eq!(pieces(text).concat(), text);
        }
        assert!(pieces(&"word ".repeat(100)).len() > 5);
    }
}
