//! Requests beside the turn: answered, listed, never a step of a script.

use super::{Api, failure, ok};
use crate::rig::{AnswerBody, Recorded, internet::Internet};
use http::{Response, StatusCode};
use serde_json::json;

pub(crate) fn note(internet: &Internet, head: &Recorded, kind: &str) {
    internet.with(|world| {
        world
            .model
            .side(format!("{} {}: {kind}", head.method, head.path));
    });
}

pub(crate) fn answer(internet: &Internet, head: &Recorded, path: &str) -> Response<AnswerBody> {
    let known = if path == "/v1/models" {
        let model = |id: &str| json!({"type": "model", "id": id, "display_name": id});
        let models = ["claude-opus-4-5", "claude-sonnet-4-5", "claude-haiku-4-5"].map(model);
        Some(json!({"data": models, "has_more": false, "first_id": null, "last_id": null}))
    } else if path.starts_with("/mcp-registry/") {
        Some(json!({"servers": [], "metadata": {"count": 0}}))
    } else if path == "/api/claude_code/policy_limits" {
        // `{}` here makes Claude Code ask again for five seconds before a session starts.
        Some(json!({"restrictions": {}, "compliance_taints": []}))
    } else if path == "/api/claude_code/settings" {
        // Nothing is configured; Claude Code believes it only with a request id.
        note(internet, head, "side");
        let status = StatusCode::NOT_FOUND;
        return failure(Api::Anthropic, status, "not_found_error", "no settings");
    } else if path.starts_with("/api/") {
        Some(json!({}))
    } else {
        None
    };
    if let Some(value) = known {
        note(internet, head, "side");
        ok(&value)
    } else {
        unknown(internet, Api::Anthropic, head)
    }
}

/// A request for what is not there.
pub(crate) fn unknown(internet: &Internet, api: Api, head: &Recorded) -> Response<AnswerBody> {
    note(internet, head, "unknown");
    failure(
        api,
        StatusCode::NOT_FOUND,
        "not_found_error",
        "no such path",
    )
}
