//! A thread as an editor sees it: rows of the journal become updates, decisions become requests,
//! whoever answers first has answered. No I/O.

use super::message::{INTERNAL_ERROR, error, notification, request, result};
use box_api::control::ClientMessage;
use box_api::thread::{
    Admitted, Cursor, Decision, DecisionState, Item, OptionKind, PlanEntry, Position, ThreadUpdate,
    ToolContent, ToolStatus, TurnOutcome,
};
use box_api::{DecisionId, ThreadId};
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};

/// What is to be done, in this order.
#[derive(Debug, PartialEq)]
pub enum Act {
    /// A line for the editor.
    Line(Value),
    Say(ClientMessage),
    /// Connect again and attach from here.
    TakeUp(Option<Cursor>),
}

/// A prompt of the editor's that has no answer yet.
#[derive(Debug)]
struct Asked {
    rpc: Value,
    text: String,
    /// Its turn runs.
    begun: bool,
}

/// Where the text that grows belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Voice {
    Message,
    Thought,
}

#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is true or not whatever the others are"
)]
pub struct Session {
    thread: ThreadId,
    position: Position,
    voice: Voice,
    asked: VecDeque<Asked>,
    /// The editor waits until it has seen all there was.
    loading: Option<Value>,
    caught_up: bool,
    /// The host went away since all was told.
    lost: bool,
    /// Whether a turn runs, whoever began it.
    running: bool,
    /// Open decisions nobody was asked about here.
    open: Vec<Decision>,
    /// Decisions the editor was asked about.
    requests: HashMap<i64, DecisionId>,
    acts: Vec<Act>,
}

impl Session {
    /// `loading` is the request that waits for the journal.
    pub fn new(thread: ThreadId, loading: Option<Value>) -> Self {
        Self {
            thread,
            position: Position::default(),
            voice: Voice::Message,
            asked: VecDeque::new(),
            loading,
            caught_up: false,
            lost: false,
            running: false,
            open: Vec::new(),
            requests: HashMap::new(),
            acts: Vec::new(),
        }
    }

    pub fn thread(&self) -> ThreadId {
        self.thread
    }

    /// What follows from all that was told since the last time. `number` counts our requests.
    pub fn take(&mut self, number: &mut i64) -> Vec<Act> {
        if self.caught_up {
            for decision in std::mem::take(&mut self.open) {
                self.ask(&decision, number);
            }
        }
        std::mem::take(&mut self.acts)
    }

    pub fn prompt(&mut self, rpc: Value, text: String) {
        self.acts
            .push(Act::Say(ClientMessage::Prompt { text: text.clone() }));
        self.asked.push_back(Asked {
            rpc,
            text,
            begun: false,
        });
    }

    pub fn cancel(&mut self) {
        self.acts.push(Act::Say(ClientMessage::CancelTurn));
    }

    /// An answer of the editor's. One that came too late, or cancels, says nothing.
    pub fn answered(&mut self, id: i64, outcome: &Value) -> bool {
        let Some(decision) = self.requests.remove(&id) else {
            return false;
        };
        if let (Some("selected"), Some(option)) = (
            outcome["outcome"]["outcome"].as_str(),
            outcome["outcome"]["optionId"].as_str(),
        ) {
            let option = option.to_owned();
            self.acts
                .push(Act::Say(ClientMessage::Answer { decision, option }));
        }
        true
    }

    /// The host went away: from here on we read what it wrote meanwhile.
    pub fn lost(&mut self) {
        self.caught_up = false;
        self.lost = true;
        self.acts.push(Act::TakeUp(self.position.cursor()));
    }

    pub fn update(&mut self, update: ThreadUpdate) {
        if let ThreadUpdate::CaughtUp { .. } = update {
            self.position.admit(update);
            return self.catch_up();
        }
        match self.position.admit(update) {
            Admitted::New(ThreadUpdate::Row(row)) => self.row(row.item),
            Admitted::New(ThreadUpdate::Grew { text, .. }) => self.grew(&text),
            Admitted::New(ThreadUpdate::CaughtUp { .. }) | Admitted::Seen => {}
            Admitted::Gap => self.lost(),
        }
    }

    /// A decision that is no row: the network's.
    pub fn aside(&mut self, decision: Decision) {
        let number = decision.decision;
        let known = self.open.iter().any(|open| open.decision == number)
            || self.requests.values().any(|asked| *asked == number);
        match decision.state {
            DecisionState::Open if !known => self.open.push(decision),
            DecisionState::Open => {}
            DecisionState::Answered { .. }
            | DecisionState::Cancelled
            | DecisionState::Lost { .. } => self.over(number),
        }
    }

    fn catch_up(&mut self) {
        self.caught_up = true;
        let lost = std::mem::take(&mut self.lost);
        if let Some(rpc) = self.loading.take() {
            self.line(result(&rpc, &json!({})));
        }
        // The host that died may not have heard it; one that waits behind another turn was heard.
        let unheard = self.asked.front().filter(|asked| !asked.begun);
        if let (Some(asked), 1, false) = (unheard, self.asked.len(), self.running)
            && lost
        {
            let text = asked.text.clone();
            self.acts.push(Act::Say(ClientMessage::Prompt { text }));
        }
    }

    fn row(&mut self, item: Item) {
        match item {
            Item::Prompt { text } => self.prompted(&text),
            Item::Steered { text } => self.chunk("user_message_chunk", &text),
            Item::Text { text } => {
                self.voice = Voice::Message;
                self.grew(&text);
            }
            Item::Thought { text } => {
                self.voice = Voice::Thought;
                self.grew(&text);
            }
            Item::ToolCall {
                call,
                title,
                tool,
                status,
                content,
            } => self.tell(&json!({
                "sessionUpdate": "tool_call", "toolCallId": call, "title": title,
                "kind": tool, "status": status_word(status), "content": contents(&content),
            })),
            Item::ToolUpdate {
                call,
                title,
                status,
                content,
            } => {
                let mut update = json!({"sessionUpdate": "tool_call_update", "toolCallId": call});
                if let Some(title) = title {
                    update["title"] = json!(title);
                }
                if let Some(status) = status {
                    update["status"] = json!(status_word(status));
                }
                if !content.is_empty() {
                    update["content"] = contents(&content);
                }
                self.tell(&update);
            }
            Item::Plan { entries } => self.tell(&plan(&entries)),
            Item::DecisionOpened(decision) if decision.state == DecisionState::Open => {
                self.open.push(decision);
            }
            Item::DecisionClosed { decision, .. } => self.over(decision),
            Item::TurnEnded { outcome, note } => self.turn_ended(outcome, note.as_deref()),
            Item::Usage { used, size, .. } => {
                self.tell(&json!({"sessionUpdate": "usage_update", "used": used, "size": size}));
            }
            // What the agent offers after a `/` is an update as it stands.
            Item::Detail { raw } if raw["sessionUpdate"] == "available_commands_update" => {
                self.tell(&raw);
            }
            Item::DecisionOpened(_)
            | Item::Command { .. }
            | Item::Queue { .. }
            | Item::OptionSet { .. }
            | Item::Background { .. }
            | Item::Woke { .. }
            | Item::Forked { .. }
            | Item::WentBack { .. }
            | Item::Notice { .. }
            | Item::Mode { .. }
            | Item::Detail { .. }
            | Item::Unknown { .. } => {}
        }
    }

    /// The editor shows its own prompts itself.
    fn prompted(&mut self, text: &str) {
        self.running = true;
        let next = self.asked.iter_mut().find(|asked| !asked.begun);
        match next.filter(|asked| asked.text == text) {
            Some(asked) => asked.begun = true,
            None => self.chunk("user_message_chunk", text),
        }
    }

    fn turn_ended(&mut self, outcome: TurnOutcome, note: Option<&str>) {
        self.running = false;
        if self.asked.front().is_none_or(|asked| !asked.begun) {
            return;
        }
        let Some(asked) = self.asked.pop_front() else {
            return;
        };
        let line = if let Some(reason) = stop_reason(outcome) {
            result(&asked.rpc, &json!({"stopReason": reason}))
        } else {
            let text = note.unwrap_or("the turn failed");
            error(&asked.rpc, INTERNAL_ERROR, text)
        };
        self.line(line);
    }

    fn grew(&mut self, text: &str) {
        let kind = match self.voice {
            Voice::Message => "agent_message_chunk",
            Voice::Thought => "agent_thought_chunk",
        };
        self.chunk(kind, text);
    }

    fn ask(&mut self, decision: &Decision, number: &mut i64) {
        if decision.options.is_empty() {
            let text = format!(
                "\n{}: `box answer {}` answers it.\n",
                decision.title, decision.decision
            );
            return self.chunk("agent_message_chunk", &text);
        }
        *number += 1;
        let call = decision.call.clone();
        let call = call.unwrap_or_else(|| format!("decision-{}", decision.decision));
        let options: Vec<Value> = decision
            .options
            .iter()
            .map(|option| {
                json!({"optionId": option.id, "name": option.label, "kind": kind(option.kind)})
            })
            .collect();
        let params = json!({
            "sessionId": self.thread, "options": options,
            "toolCall": {"toolCallId": call, "title": decision.title, "status": "pending"},
        });
        self.requests.insert(*number, decision.decision);
        self.line(request(*number, "session/request_permission", &params));
    }

    /// Somebody was faster, or nobody will answer any more.
    fn over(&mut self, decision: DecisionId) {
        self.open.retain(|open| open.decision != decision);
        let asked = self.requests.iter().find(|(_, asked)| **asked == decision);
        if let Some(id) = asked.map(|(id, _)| *id) {
            self.requests.remove(&id);
            self.line(notification("$/cancel_request", &json!({"requestId": id})));
        }
    }

    fn chunk(&mut self, kind: &str, text: &str) {
        let content = json!({"type": "text", "text": text});
        self.tell(&json!({"sessionUpdate": kind, "content": content}));
    }

    fn tell(&mut self, update: &Value) {
        let params = json!({"sessionId": self.thread, "update": update});
        self.line(notification("session/update", &params));
    }

    fn line(&mut self, line: Value) {
        self.acts.push(Act::Line(line));
    }
}

/// ACP's word; none for what is an error there.
fn stop_reason(outcome: TurnOutcome) -> Option<&'static str> {
    match outcome {
        TurnOutcome::Done => Some("end_turn"),
        TurnOutcome::Refused => Some("refusal"),
        TurnOutcome::Cancelled => Some("cancelled"),
        TurnOutcome::StoppedShort => Some("max_turn_requests"),
        TurnOutcome::Failed | TurnOutcome::Parked => None,
    }
}

fn status_word(status: ToolStatus) -> &'static str {
    match status {
        ToolStatus::Pending => "pending",
        ToolStatus::Running => "in_progress",
        ToolStatus::Completed => "completed",
        ToolStatus::Failed | ToolStatus::Interrupted => "failed",
    }
}

/// ACP knows four kinds; a choice is none of the other three.
fn kind(kind: OptionKind) -> &'static str {
    match kind {
        OptionKind::AllowOnce | OptionKind::Choice => "allow_once",
        OptionKind::AllowAlways => "allow_always",
        // An editor may allow by itself; what is not known to allow is not offered as that.
        OptionKind::RejectOnce | OptionKind::Other => "reject_once",
        OptionKind::RejectAlways => "reject_always",
    }
}

fn plan(entries: &[PlanEntry]) -> Value {
    let entries: Vec<Value> = entries
        .iter()
        .map(|entry| json!({"content": entry.text, "status": entry.status, "priority": "medium"}))
        .collect();
    json!({"sessionUpdate": "plan", "entries": entries})
}

fn contents(content: &[ToolContent]) -> Value {
    let block = |one: &ToolContent| match one {
        ToolContent::Text { text } => {
            json!({"type": "content", "content": {"type": "text", "text": text}})
        }
        ToolContent::Diff {
            path,
            old_text,
            new_text,
        } => json!({"type": "diff", "path": path, "oldText": old_text, "newText": new_text}),
        ToolContent::Other { raw } => raw.clone(),
    };
    // What was left out for its size, and terminals of the agent's own, are nothing to show.
    let fit = |block: &Value| block["left_out"] != true && block["type"] != "terminal";
    content.iter().map(block).filter(fit).collect()
}

#[cfg(test)]
mod tests;
