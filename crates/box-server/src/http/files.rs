//! `POST /api/boxes/{box}/files?name=`: puts a file where the agent of a box finds it (C54). The body
//! is the file; it is passed on in pieces as it comes. `GET` gives one of them back (C56).

use super::answer;
use super::call::{Call, Called, ask};
use crate::control::client::PageWire;
use crate::problem;
use box_api::control::{ATTACHMENT_BYTES_MAX, AttachFile, Outcome, Request};
use box_core::attachments;
use http_body_util::BodyExt as _;
use hyper::StatusCode;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_DISPOSITION, HeaderValue};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Pieces that wait to be taken.
const PIECES_MAX: usize = 4;
/// Longest a browser may take for the next piece.
const PIECE_DEADLINE: Duration = Duration::from_mins(1);

pub(super) async fn handle(call: Call) -> Called {
    let name = call.box_name().await?;
    let file: Option<String> = call.asked("name")?;
    let file = file.ok_or_else(|| problem::body("`name` is missing"))?;
    let Some(bytes) = call.body.size_hint().exact() else {
        return Err(problem::body("it does not say how long it is"));
    };
    if bytes > ATTACHMENT_BYTES_MAX {
        return Err(problem::body(&format!(
            "it is longer than {ATTACHMENT_BYTES_MAX} bytes"
        )));
    }
    let (told, pieces) = mpsc::channel(PIECES_MAX);
    let wire = PageWire {
        begun: None,
        pieces: Some(pieces),
    };
    let request = Request::AttachFile(AttachFile { name, file, bytes });
    let attaching = ask(&call.web, call.caller, request, wire);
    let (attached, ()) = tokio::join!(attaching, pass_on(call.body, told));
    let outcome = attached?;
    let Outcome::Attached(attached) = outcome else {
        return Err(problem::unlike(&outcome));
    };
    Ok(answer::created(&attached))
}

/// An attached file, as a download: nothing of a box is ever a page of this origin. What may be shown
/// the page shows as what it asked for.
pub(super) async fn read(call: Call) -> Called {
    let name = call.box_name().await?;
    let file: Option<String> = call.asked("name")?;
    let file = file.ok_or_else(|| problem::body("`name` is missing"))?;
    let (host, caller) = (call.host().clone(), call.caller);
    let reading =
        tokio::spawn(async move { attachments::read(&host, &caller, &name, &file).await });
    let read = reading.await.map_err(problem::ending)?;
    let (attached, content) = read.map_err(problem::attachment)?;
    let media_type = attachments::media_type(&attached.path);
    let mut given = answer::of(StatusCode::OK, media_type, content);
    let headers = given.headers_mut();
    headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    Ok(given)
}

/// Until the file ends, or nobody takes it any more.
async fn pass_on(mut body: Incoming, told: mpsc::Sender<Vec<u8>>) {
    while let Ok(Some(Ok(frame))) = timeout(PIECE_DEADLINE, body.frame()).await {
        let Ok(piece) = frame.into_data() else {
            continue;
        };
        if !piece.is_empty() && told.send(piece.to_vec()).await.is_err() {
            return;
        }
    }
}
