//! `Trash`: what is in it, the way out of it, and its end.

use super::info;
use crate::problem;
use box_api::control::{Outcome, Trash};
use box_api::{BoxName, Problem};
use box_core::Host;
use box_core::boxes;
use box_core::caller::Caller;
use box_core::lifecycle::{self, UndeleteError};

pub(super) async fn handle(host: &Host, caller: &Caller, asked: Trash) -> Result<Outcome, Problem> {
    match asked {
        Trash::List => {
            let records = boxes::trash(host, caller).await.map_err(problem::store)?;
            Ok(Outcome::Boxes {
                boxes: info::all(host, &records).await?,
            })
        }
        Trash::Undelete { what, name } => undelete(host, caller, what, name).await,
        Trash::Prune { depth } => {
            let pruned = lifecycle::prune(host, caller, depth).await;
            Ok(Outcome::Pruned(pruned.map_err(problem::store)?))
        }
    }
}

/// Of several boxes of a name the one that was removed last is meant.
async fn undelete(
    host: &Host,
    caller: &Caller,
    what: String,
    name: Option<BoxName>,
) -> Result<Outcome, Problem> {
    let records = boxes::trash(host, caller).await.map_err(problem::store)?;
    let by_id = records.iter().find(|record| record.id.as_str() == what);
    let meant = by_id.or_else(|| records.iter().find(|record| record.name.as_str() == what));
    let meant = meant.ok_or_else(|| problem::undelete(UndeleteError::Unknown(what)))?;
    let back = lifecycle::undelete(host, meant, name).await;
    info::of(host, &back.map_err(problem::undelete)?).await
}
