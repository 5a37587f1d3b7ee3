//! `POST /api/threads`: sets an agent to work. The answer comes when the turn has begun.

use super::answer;
use super::call::{Call, Called};
use crate::control::client::PageWire;
use crate::problem;
use box_api::control::{Request, Run};
use box_api::page::RunAsk;
use tokio::sync::mpsc;

pub(super) async fn handle(mut call: Call) -> Called {
    let asked: RunAsk = call.json().await?;
    let defaults = call.host().current.now().defaults();
    let run = Run {
        agent: asked.agent,
        prompt: asked.prompt,
        name: asked.name,
        repo: asked.repo,
        allow_all: asked.allow_all,
        image: asked.image,
        profile: asked.profile.unwrap_or(defaults.profile),
        net: asked.net.unwrap_or(defaults.net),
        limits: asked.limits.unwrap_or(defaults.limits),
        settings: asked.settings.unwrap_or_default(),
        attachments: Vec::new(),
        chosen: asked.chosen,
    };
    let (begun, mut told) = mpsc::channel(1);
    let wire = PageWire {
        begun: Some(begun),
        pieces: None,
    };
    let ended = call.ask_with(Request::Run(run), wire).await;
    match (told.try_recv(), ended) {
        (Ok(begun), _) => Ok(answer::created(&begun)),
        (Err(_), Err(problem)) => Err(problem),
        (Err(_), Ok(other)) => Err(problem::unlike(&other)),
    }
}
