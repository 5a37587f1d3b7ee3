//! `GET /api/boxes/{box}/workspace?find=`: files of a box whose names fit, for a prompt's `@`.

use super::answer;
use super::call::{Call, Called};
use crate::problem;
use box_api::page::FoundFiles;
use box_core::workspace_files;

pub(super) async fn find(call: Call) -> Called {
    let name = call.box_name().await?;
    let query: String = call.asked("find")?.unwrap_or_default();
    let (host, caller) = (call.host().clone(), call.caller);
    // A box that is being started is started, also when the browser goes.
    let finding =
        tokio::spawn(async move { workspace_files::find(&host, &caller, &name, &query).await });
    let found = finding.await.map_err(problem::ending)?;
    let (files, more) = found.map_err(problem::workspace_files)?;
    Ok(answer::json(&FoundFiles { files, more }))
}
