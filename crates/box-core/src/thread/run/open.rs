//! A new thread of a box that is there, before anybody has said what it is to do.

use super::{RunError, Running, Wanted, check_credential, check_own_accounts, home, open_thread};
use crate::agents;
use crate::boxes;
use crate::caller::Caller;
use crate::host::Host;
use crate::lifecycle;
use crate::thread::state::Asks;
use box_api::control::ThreadOpen;
use box_runtime::Progress;
use std::sync::Arc;

/// Opens a thread of an agent in a box of the caller's; the box is started if it does not run, the
/// agent with the first prompt.
///
/// # Errors
/// [`RunError`]
pub async fn open(
    host: &Arc<Host>,
    caller: &Caller,
    asked: ThreadOpen,
    progress: Arc<dyn Progress>,
) -> Result<Running, RunError> {
    let profile = agents::find(&asked.agent)?;
    let record = boxes::find(host, caller, &asked.name).await?;
    check_own_accounts(&record, &asked.agent)?;
    check_credential(host, caller, profile, &Wanted::of(&record)).await?;
    agents::ensure(profile, &host.paths.data, &*progress).await?;
    let record = lifecycle::start(host, record.id).await?;
    home::place(host, &record, profile).await?;
    let asks = if asked.allow_all {
        Asks::Nobody
    } else {
        Asks::Person
    };
    let handle = open_thread(host, &record, profile, asks).await?;
    Ok(Running { record, handle })
}
