//! `POST /api/boxes/{box}/rename`: gives a box another name.

use super::boxes::info_of;
use super::call::{Call, Called};
use box_api::control::Request;
use box_api::page::RenameAsk;

pub(super) async fn handle(mut call: Call) -> Called {
    let RenameAsk { to } = call.json().await?;
    let name = call.box_name().await?;
    info_of(call.ask(Request::Rename { name, to }).await?)
}
