//! How a refused write is told, so that whoever made it shows the words: git prints a report on its
//! refs, and a plain page where a push begins; `gh` prints `message`.

use super::push::{FLUSH, Push, line};
use super::why::Why;
use crate::http::body::Flow;
use crate::refuse::REASON_HEADER;
use box_api::egress::Reason;
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::json;

/// Longest line of a report; the rest of a band is its length and number.
const LINE_BYTES_MAX: usize = 900;
/// What a pkt-line of a band holds at most (gitprotocol-common(5)).
const BAND_BYTES_MAX: usize = 990;
const REPORT_BAND: u8 = 1;
const WORDS_BAND: u8 = 2;

/// Why each ref of a push stays as it is; `None`: because of another one.
pub(super) type Reasons = Vec<(String, Option<Why>)>;

/// What whoever asks for JSON, or nothing in particular, is told.
pub(super) fn page(why: &Why) -> Response<Flow> {
    let message = why.line();
    let error =
        json!({"type": "box_egress", "reason": Reason::GithubScope.slug(), "message": message});
    let body = json!({"message": message, "error": error, "errors": [{"message": message}]});
    made(
        StatusCode::FORBIDDEN,
        "application/json",
        format!("{body}\n").into(),
    )
}

/// What git shows line by line behind `remote:`.
pub(super) fn text(why: &Why) -> Response<Flow> {
    let body = format!("{}\n", why.line());
    made(
        StatusCode::FORBIDDEN,
        "text/plain; charset=utf-8",
        body.into(),
    )
}

/// What a client of a push hears about each of its refs (gitprotocol-pack(5), *Report Status*).
pub(super) fn report(push: &Push, reasons: &Reasons) -> Response<Flow> {
    let mut report = line(b"unpack ok\n");
    let mut words = Vec::new();
    for (name, why) in reasons {
        let reason = match why {
            Some(why) => {
                words.push(why.line());
                why.line()
            }
            None => "not sent: another ref of this push is refused".into(),
        };
        let text: String = format!("ng {name} {reason}");
        report.extend(line(format!("{}\n", clipped(&text)).as_bytes()));
    }
    report.extend_from_slice(FLUSH);
    let mut body = Vec::new();
    if push.report.in_bands {
        words.dedup();
        for text in &words {
            let text = format!("{}\n", clipped(text));
            body.extend(line(&[&[WORDS_BAND], text.as_bytes()].concat()));
        }
        for piece in report.chunks(BAND_BYTES_MAX) {
            body.extend(line(&[&[REPORT_BAND], piece].concat()));
        }
        body.extend_from_slice(FLUSH);
    } else {
        body = report;
    }
    made(
        StatusCode::OK,
        "application/x-git-receive-pack-result",
        body.into(),
    )
}

fn clipped(text: &str) -> &str {
    let mut end = text.len().min(LINE_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn made(status: StatusCode, kind: &'static str, body: Bytes) -> Response<Flow> {
    let mut response = Response::new(Flow::page(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let reason = HeaderValue::from_static(Reason::GithubScope.slug());
    headers.insert(REASON_HEADER, reason);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
