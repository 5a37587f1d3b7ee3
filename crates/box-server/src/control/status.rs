//! `Status`: what runs here.

use crate::problem;
use box_api::Problem;
use box_api::control::{BoxState, Outcome, Status};
use box_core::boxes::rows;
use box_core::credentials;
use box_core::egress::LinkState;
use box_core::host::Host;

pub(super) async fn handle(host: &Host) -> Result<Outcome, Problem> {
    let records = host.store.read(rows::all).await.map_err(problem::store)?;
    let count = |wanted: fn(BoxState) -> bool| {
        u32::try_from(records.iter().filter(|record| wanted(record.state)).count())
            .unwrap_or(u32::MAX)
    };
    let engine = host.runtimes.default();
    Ok(Outcome::Status(Status {
        pid: std::process::id(),
        build: host.build.clone(),
        data_dir: host.paths.data.display().to_string(),
        boxes_running: count(|state| state == BoxState::Running),
        boxes_stopped: count(|state| {
            !matches!(
                state,
                BoxState::Running | BoxState::Removing | BoxState::Creating | BoxState::Trashed
            )
        }),
        boxes_ahead: u32::try_from(host.pool.count().await).unwrap_or(u32::MAX),
        egress: matches!(host.egress.state(), LinkState::Up { .. }),
        limits_held_by: Some(engine.limits_held_by().to_owned()),
        seal: credentials::seal_info(host).await.ok(),
        copies: engine.snapshots().map(box_runtime::Snapshots::method),
    }))
}
