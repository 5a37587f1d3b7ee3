//! `POST /api/boxes/{box}/start`, `stop`, `restart`, `freeze` and `thaw`.

use super::boxes::info_of;
use super::call::{Call, Called};
use box_api::control::{Motion, Request, Target};
use box_api::page::Hurry;

pub(super) async fn start(call: Call) -> Called {
    let name = call.box_name().await?;
    info_of(call.ask(Request::Start { name }).await?)
}

pub(super) async fn stop(mut call: Call) -> Called {
    let Hurry { haste } = call.json_or_default().await?;
    let target = Target::Box(call.box_name().await?);
    info_of(call.ask(Request::Stop { target, haste }).await?)
}

pub(super) async fn restart(mut call: Call) -> Called {
    let Hurry { haste } = call.json_or_default().await?;
    let target = Target::Box(call.box_name().await?);
    info_of(call.ask(Request::Restart { target, haste }).await?)
}

pub(super) async fn freeze(call: Call) -> Called {
    stir(call, Motion::Freeze).await
}

pub(super) async fn thaw(call: Call) -> Called {
    stir(call, Motion::Thaw).await
}

async fn stir(call: Call, motion: Motion) -> Called {
    let name = call.box_name().await?;
    let target = Target::Box(name.clone());
    call.ask(Request::Move { target, motion }).await?;
    info_of(call.ask(Request::Info { name }).await?)
}
