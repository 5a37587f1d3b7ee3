//! `POST /api/boxes/{box}/clone`: a box made of another one's files, now or as they were.

use super::answer;
use super::call::{Call, Called};
use crate::problem;
use box_api::control::{CloneBox, Outcome, Request, Sizes};
use box_api::page::CloneAsk;

pub(super) async fn handle(mut call: Call) -> Called {
    let CloneAsk { name, label } = call.json().await?;
    let asked = CloneBox {
        name,
        title: None,
        source: call.box_name().await?,
        label,
        sizes: Sizes::default(),
        start: true,
    };
    let outcome = call.ask(Request::Clone(asked)).await?;
    let Outcome::Info(info) = outcome else {
        return Err(problem::unlike(&outcome));
    };
    Ok(answer::created(&info))
}
