//! `Answer` and `AnswerForm`: answers a decision. The first answer wins.

use crate::problem;
use box_api::control::Outcome;
use box_api::decision::FormAnswer;
use box_api::{DecisionId, Problem};
use box_core::Host;
use box_core::caller::Caller;
use box_core::decisions;
use std::sync::Arc;

pub(super) async fn handle(
    host: &Arc<Host>,
    caller: &Caller,
    decision: DecisionId,
    option: &str,
) -> Result<Outcome, Problem> {
    let by = caller.owner.to_string();
    decisions::answer(host, caller, decision, option, &by)
        .await
        .map_err(problem::answer)?;
    Ok(Outcome::Nothing)
}

pub(super) async fn form(
    host: &Arc<Host>,
    caller: &Caller,
    decision: DecisionId,
    answer: FormAnswer,
) -> Result<Outcome, Problem> {
    let by = caller.owner.to_string();
    decisions::answer_form(host, caller, decision, answer, &by)
        .await
        .map_err(problem::answer)?;
    Ok(Outcome::Nothing)
}
