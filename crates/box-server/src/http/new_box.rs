//! `POST /api/boxes`: makes a box and starts it. What is not said is what the settings say.

use super::answer;
use super::call::{Call, Called};
use crate::problem;
use box_api::control::{Marks, NewBox, Outcome, Request};
use box_api::page::NewBoxAsk;

pub(super) async fn handle(mut call: Call) -> Called {
    let asked: NewBoxAsk = call.json().await?;
    let defaults = call.host().current.now().defaults();
    let request = Request::New(NewBox {
        name: asked.name,
        title: asked.title,
        image: asked.image,
        profile: asked.profile.unwrap_or(defaults.profile),
        net: asked.net.unwrap_or(defaults.net),
        limits: asked.limits.unwrap_or(defaults.limits),
        allow: asked.allow,
        start: true,
        settings: asked.settings.unwrap_or_default(),
        setup: asked.setup,
        marks: Marks::default(),
    });
    let outcome = call.ask(request).await?;
    let Outcome::Info(info) = outcome else {
        return Err(problem::unlike(&outcome));
    };
    Ok(answer::created(&info))
}
