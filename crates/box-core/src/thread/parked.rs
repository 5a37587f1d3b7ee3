//! A thread that waits for a time before it goes on.

use super::state::ThreadState;
use crate::decisions::Hold;
use box_api::DecisionId;
use box_api::control::Parking;
use box_api::decision::FormAnswer;
use box_api::thread::DecisionKind;
use serde::{Deserialize, Serialize};

use super::mail::AnswerFailure;

/// Why and until when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parked {
    pub(crate) why: Parking,
    /// UTC milliseconds; absent: until somebody resumes it.
    pub(crate) until_ms: Option<i64>,
    pub(crate) since_ms: i64,
    /// What the agent is asked when it goes on, before the prompts that wait.
    pub(super) prompt: Option<String>,
    /// Whether a budget parked it, which may let it go on as well.
    #[serde(default)]
    pub(super) budget: bool,
}

impl ThreadState {
    /// It stands behind a conversation that its agent had elsewhere.
    pub(super) fn goes_on_with(&mut self, known_as: Option<String>, title: String, next_seq: u64) {
        self.known_as = known_as;
        self.title = title;
        self.next_seq = next_seq;
    }

    /// Whether an open decision takes this answer.
    ///
    /// # Errors
    /// [`AnswerFailure`]
    pub(super) fn takes(
        &self,
        decision: DecisionId,
        answer: &FormAnswer,
    ) -> Result<(), AnswerFailure> {
        let open = self.asks.iter().find(|open| open.decision == decision);
        let open = open.ok_or(AnswerFailure::Over)?;
        match answer {
            FormAnswer::Fill { values } => match open.ask.fill(values) {
                Ok(_) => Ok(()),
                Err(error) => Err(AnswerFailure::Form(error)),
            },
            FormAnswer::Decline | FormAnswer::Cancel => Ok(()),
        }
    }

    /// What becomes of permissions nobody answers, from now on.
    pub(super) fn hold(&mut self, hold: Hold) {
        self.deny_after_ms = match hold {
            Hold::Forever => None,
            Hold::ThenDeny { after_ms } => Some(after_ms),
        };
    }

    /// When the first permission has waited as long as it may.
    pub(super) fn hold_over_ms(&self) -> Option<i64> {
        let after_ms = self.deny_after_ms?;
        let opened = self.asks.iter().filter(|open| is_held(open.ask.about));
        let opened = opened.filter_map(|open| open.opened_at_ms).min()?;
        Some(opened.saturating_add(after_ms))
    }
}

/// Whether a decision of this kind is denied when nobody answers; a question is not.
pub(super) fn is_held(about: DecisionKind) -> bool {
    match about {
        DecisionKind::Permission | DecisionKind::Plan => true,
        DecisionKind::Question
        | DecisionKind::Network
        | DecisionKind::Push
        | DecisionKind::Budget => false,
    }
}
