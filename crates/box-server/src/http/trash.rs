//! `GET /api/trash` and the way out of it.

use super::boxes::{boxes_of, info_of};
use super::call::{Call, Called};
use box_api::BoxId;
use box_api::control::{Request, Trash};
use box_api::page::UndeleteAsk;

pub(super) async fn list(call: Call) -> Called {
    boxes_of(call.ask(Request::Trash(Trash::List)).await?)
}

pub(super) async fn undelete(mut call: Call) -> Called {
    let UndeleteAsk { name } = call.json_or_default().await?;
    let id: BoxId = call.name(0)?;
    let what = id.to_string();
    info_of(
        call.ask(Request::Trash(Trash::Undelete { what, name }))
            .await?,
    )
}
