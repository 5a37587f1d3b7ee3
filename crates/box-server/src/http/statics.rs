//! The page's own files, and the pairing page: what anybody may have.
//!
//! A path without an ending is a place in the page and gets its frame; a file that is not there is
//! never answered with it, or an old page would take HTML for the script it asked for.

use super::answer::{self, Answer};
use super::assets::{self, Asset};
use crate::problem;
use hyper::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, ETAG, HeaderValue, IF_NONE_MATCH, VARY,
};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};

const PAIR_PAGE: &str = include_str!("pair.html");
const PAIR_SCRIPT: &str = include_str!("pair.js");
const PLAIN_STYLE: &str = include_str!("plain.css");
const PAIR_STYLE: &str = include_str!("pair.css");

pub(super) fn handle(head: &Parts) -> Answer {
    let path = head.uri.path();
    let own = match path {
        "/pair" => Some(("text/html; charset=utf-8", PAIR_PAGE)),
        "/pair.js" => Some(("text/javascript; charset=utf-8", PAIR_SCRIPT)),
        "/plain.css" => Some(("text/css; charset=utf-8", PLAIN_STYLE)),
        "/pair.css" => Some(("text/css; charset=utf-8", PAIR_STYLE)),
        _ => None,
    };
    if let Some((media_type, text)) = own {
        return answer::of(StatusCode::OK, media_type, text);
    }
    let is_file = path
        .rsplit('/')
        .next()
        .is_some_and(|last| last.contains('.'));
    let asset = assets::asset(path).or_else(|| {
        let frame = !is_file && !path.starts_with("/assets/");
        frame.then(|| assets::asset("/index.html")).flatten()
    });
    match asset {
        Some(asset) => give(head, &asset),
        None => answer::problem(&problem::no_endpoint(path)),
    }
}

fn give(head: &Parts, asset: &Asset) -> Answer {
    let known = head.headers.get(IF_NONE_MATCH);
    let fresh = known.is_some_and(|known| known.as_bytes() == asset.etag.as_bytes());
    let accepted = head
        .headers
        .get(ACCEPT_ENCODING)
        .and_then(|value| value.to_str().ok());
    let (body, encoding) = asset.encoded(accepted.unwrap_or_default());
    let mut done = if fresh {
        answer::empty(StatusCode::NOT_MODIFIED)
    } else if head.method == Method::HEAD {
        answer::of(StatusCode::OK, asset.media_type, "")
    } else {
        answer::of(StatusCode::OK, asset.media_type, body)
    };
    let headers = done.headers_mut();
    if let (Some(encoding), false) = (encoding, fresh) {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    if let Ok(etag) = HeaderValue::from_str(asset.etag) {
        headers.insert(ETAG, etag);
    }
    let kept = if asset.immutable {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(kept));
    done
}
