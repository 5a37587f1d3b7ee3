//! `Remove`: puts a box, or all of the caller's, into the trash, or removes them at once.

use super::target;
use crate::problem;
use box_api::Problem;
use box_api::control::{Outcome, Removal, Remove, Unpushed};
use box_api::{BoxId, control::KeepWorkspace};
use box_core::Host;
use box_core::caller::Caller;
use box_core::lifecycle;
use std::sync::Arc;

pub(super) async fn handle(
    host: &Arc<Host>,
    caller: &Caller,
    asked: Remove,
) -> Result<Outcome, Problem> {
    if asked.how == Removal::Now && asked.workspace == KeepWorkspace::Yes {
        return Err(problem::nothing_to_keep());
    }
    let mut problems = Vec::new();
    for record in target::boxes_of(host, caller, &asked.target).await? {
        if let Err(problem) = remove(host, record.id, &asked).await {
            problems.push(problem);
        }
    }
    target::whole(problems)?;
    Ok(Outcome::Nothing)
}

async fn remove(host: &Arc<Host>, id: BoxId, asked: &Remove) -> Result<(), Problem> {
    if asked.unpushed == Unpushed::Refuse {
        lifecycle::refuse_unpushed(host, id)
            .await
            .map_err(problem::unpushed)?;
    }
    let removed = match asked.how {
        Removal::Trash => lifecycle::trash(host, id, asked.workspace).await,
        Removal::Now => lifecycle::remove(host, id).await,
    };
    removed.map_err(problem::remove)
}
