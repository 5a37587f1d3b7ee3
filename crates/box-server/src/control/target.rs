//! A box, or all of the caller's.

use crate::problem;
use box_api::Problem;
use box_api::control::Target;
use box_core::Host;
use box_core::boxes::{self, BoxRecord};
use box_core::caller::Caller;

/// The boxes a request is about. `all` are the caller's own, also for an admin.
pub(super) async fn boxes_of(
    host: &Host,
    caller: &Caller,
    target: &Target,
) -> Result<Vec<BoxRecord>, Problem> {
    match target {
        Target::Box(name) => Ok(vec![
            boxes::find(host, caller, name)
                .await
                .map_err(problem::find)?,
        ]),
        Target::All => {
            let mut all = boxes::list(host, caller).await.map_err(problem::store)?;
            all.retain(|record| record.owner == caller.owner);
            Ok(all)
        }
    }
}

/// What the whole request came to: the first failure, and how many there were.
pub(super) fn whole(problems: Vec<Problem>) -> Result<(), Problem> {
    let others = problems.len().saturating_sub(1);
    match problems.into_iter().next() {
        None => Ok(()),
        Some(first) if others == 0 => Err(first),
        Some(mut first) => {
            first.title = format!("{}, nor {others} more", first.title);
            Err(first)
        }
    }
}
