//! Decisions in a conversation: who answers, and with what.

use super::Conversation;
use crate::turn::moves::{Action, Answers};
use box_api::DecisionId;
use box_api::control::ClientMessage;
use box_api::thread::{Decision, DecisionKind, DecisionOption, OptionKind};

/// The turn waits for a person, and nobody is here to ask.
const WAITS_FOR_A_PERSON: u8 = 6;

impl Conversation {
    /// The decision the person is being asked about.
    pub(crate) fn asked(&self) -> Option<&Decision> {
        let open = self
            .open
            .front()
            .filter(|_| self.answers == Answers::Person)?;
        let answered = self.unconfirmed.answer.as_ref();
        answered
            .is_none_or(|(answered, _)| *answered != open.decision)
            .then_some(open)
    }

    /// Somebody must answer the first open decision, if there is one.
    pub(super) fn decide_next(&mut self) {
        let Some(decision) = self.open.front().cloned() else {
            return;
        };
        let answered = self.unconfirmed.answer.as_ref();
        if answered.is_some_and(|(answered, _)| *answered == decision.decision) {
            return;
        }
        match self.answers {
            Answers::Person => self.todo.push(Action::Ask(decision)),
            Answers::AllowAll => match chosen_for(&decision) {
                Some(option) => {
                    let option = option.clone();
                    self.todo.push(Action::Note(format!(
                        "chose \u{201c}{}\u{201d} by --allow-all",
                        option.label
                    )));
                    self.answer(decision.decision, option.id);
                }
                None => self.leave_waiting(),
            },
            Answers::Nobody => self.leave_waiting(),
        }
    }

    fn answer(&mut self, decision: DecisionId, option: String) {
        self.unconfirmed.answer = Some((decision, option.clone()));
        self.todo
            .push(Action::Say(ClientMessage::Answer { decision, option }));
    }

    pub(super) fn leave_waiting(&mut self) {
        let name = self.shown_name();
        self.todo.push(Action::Note(format!(
            "the agent waits for your answer: `box attach {name}`"
        )));
        self.todo.push(Action::Finish(WAITS_FOR_A_PERSON));
    }

    /// A decision that takes no answer from us any more.
    pub(super) fn over(&mut self, decision: DecisionId) {
        self.unconfirmed
            .answer
            .take_if(|(answered, _)| *answered == decision);
        self.open.retain(|open| open.decision != decision);
        self.decide_next();
    }

    pub(super) fn typed_answer(&mut self, decision: &Decision, line: &str) {
        let number = line
            .parse::<usize>()
            .ok()
            .and_then(|number| number.checked_sub(1));
        let chosen = number.and_then(|index| decision.options.get(index));
        if let Some(option) = chosen {
            return self.answer(decision.decision, option.id.clone());
        }
        let count = decision.options.len();
        self.todo
            .push(Action::Note(format!("type a number from 1 to {count}")));
        self.todo.push(Action::Ask(decision.clone()));
    }
}

/// What *allow all* answers: allow once, and to a question its first choice.
fn chosen_for(decision: &Decision) -> Option<&DecisionOption> {
    let of_kind = |kind| decision.options.iter().find(|option| option.kind == kind);
    match decision.about {
        DecisionKind::Question => {
            of_kind(OptionKind::Choice).or_else(|| of_kind(OptionKind::AllowOnce))
        }
        DecisionKind::Permission | DecisionKind::Network | DecisionKind::Push => {
            of_kind(OptionKind::AllowOnce)
        }
    }
}
