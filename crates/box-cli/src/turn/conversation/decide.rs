//! Decisions in a conversation: who answers, and with what.

use super::Conversation;
use super::fill::{Filling, Given, NO, Typed, first_choices, in_free_words};
use crate::turn::moves::{Action, Answers};
use crate::turn::tally::WAITS_FOR_A_PERSON;
use box_api::DecisionId;
use box_api::decision::FormAnswer;
use box_api::thread::{Decision, DecisionKind, DecisionOption, OptionKind};

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
            Answers::Person => {
                self.filling = Filling::begin(&decision);
                self.todo.push(Action::Ask(decision));
            }
            Answers::AllowAll => self.allow(&decision),
            Answers::Elsewhere => {
                let note = format!("`box answer {}` answers it", decision.decision);
                self.todo.push(Action::Note(note));
            }
            Answers::Nobody => self.leave_waiting(),
        }
    }

    fn allow(&mut self, decision: &Decision) {
        let id = decision.decision;
        let chosen = chosen_for(decision);
        let form = decision
            .form
            .as_ref()
            .filter(|_| decision.options.is_empty());
        match (chosen, form.and_then(first_choices)) {
            (Some(option), _) => {
                self.todo.push(Action::Note(format!(
                    "chose \u{201c}{}\u{201d} by --allow-all",
                    option.label
                )));
                self.answer(id, Given::Option(option.id.clone()));
            }
            (None, Some(answer)) => {
                let note = "took the first choice of everything by --allow-all";
                self.todo.push(Action::Note(note.to_owned()));
                self.answer(id, Given::Form(answer));
            }
            (None, None) => self.leave_waiting(),
        }
    }

    fn answer(&mut self, decision: DecisionId, given: Given) {
        self.filling = None;
        self.unconfirmed.answer = Some((decision, given.clone()));
        self.todo.push(Action::Say(given.message(decision)));
    }

    /// What the person is asked, in a line.
    pub(crate) fn question(&self) -> Option<String> {
        let decision = self.asked()?;
        let filling = self
            .filling
            .as_ref()
            .filter(|filling| filling.is_of(decision));
        Some(match (filling, decision.options.len()) {
            (Some(filling), _) => filling.question(),
            (None, 0) => "nothing to choose from; Ctrl-C cancels the turn: ".to_owned(),
            (None, count) => format!("your choice [1-{count}]: "),
        })
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
        let filling = self.filling.as_mut();
        if let Some(filling) = filling.filter(|filling| filling.is_of(decision)) {
            match filling.typed(line) {
                Typed::Filled(answer) => self.answer(decision.decision, Given::Form(answer)),
                Typed::Asks(why) => {
                    self.todo.extend(why.map(Action::Note));
                    self.todo.push(Action::Ask(decision.clone()));
                }
            }
            return;
        }
        let number = line
            .parse::<usize>()
            .ok()
            .and_then(|number| number.checked_sub(1));
        let chosen = number.and_then(|index| decision.options.get(index));
        if let Some(option) = chosen {
            return self.answer(decision.decision, Given::Option(option.id.clone()));
        }
        if line == NO && decision.form.is_some() {
            return self.answer(decision.decision, Given::Form(FormAnswer::Decline));
        }
        if let Some(answer) = in_free_words(decision, line) {
            return self.answer(decision.decision, Given::Form(answer));
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
        DecisionKind::Permission
        | DecisionKind::Plan
        | DecisionKind::Network
        | DecisionKind::Push => of_kind(OptionKind::AllowOnce),
        // What it may cost was said already.
        DecisionKind::Budget => None,
    }
}
