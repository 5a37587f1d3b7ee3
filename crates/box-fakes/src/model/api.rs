//! Whose API a model server speaks: its host, its credential, its errors.

use super::check::Refusal;
use super::script::Fault;
use crate::rig::Recorded;
use http::StatusCode;
use serde_json::{Value, json};

/// A vendor's API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Api {
    /// Messages.
    Anthropic,
    /// Responses and chat completions.
    OpenAi,
    /// `generateContent` and its stream.
    Gemini,
}

impl Api {
    const ALL: [Self; 3] = [Self::Anthropic, Self::OpenAi, Self::Gemini];

    /// Where agents look for it. Others serve chat completions as `OpenAI` does.
    pub fn hosts(self) -> &'static [&'static str] {
        match self {
            Self::Anthropic => &[super::HOST],
            Self::OpenAi => &[
                "api.openai.com",
                "api.moonshot.ai",
                "api.x.ai",
                "dashscope-intl.aliyuncs.com",
            ],
            Self::Gemini => &["generativelanguage.googleapis.com"],
        }
    }

    pub(crate) fn at(host: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|api| api.hosts().contains(&host))
    }

    /// Paths below it that nobody may ask for without a credential.
    fn guarded(self) -> &'static str {
        match self {
            Self::Anthropic | Self::OpenAi => "/v1/",
            Self::Gemini => "/v1beta/",
        }
    }

    fn carries(self, name: &str, value: &str, token: &str) -> bool {
        let bearer = name == "authorization" && value.strip_prefix("Bearer ") == Some(token);
        match self {
            Self::Anthropic => bearer || (name == "x-api-key" && value == token),
            Self::OpenAi => bearer,
            Self::Gemini => name == "x-goog-api-key" && value == token,
        }
    }

    /// Every credential that is there must be the right one, where the API wants it. What lies
    /// beside the API (telemetry and the like) may come without.
    pub(crate) fn check_credential(self, head: &Recorded, token: &str) -> Result<(), Refusal> {
        let refuse = |why| Err(Refusal::of(head, StatusCode::UNAUTHORIZED, why));
        let given = head.credentials();
        if let Some((name, _)) = given
            .iter()
            .find(|(name, value)| !self.carries(name, value, token))
        {
            return refuse(format!("`{name}` is not the expected credential"));
        }
        let query = head.path.split_once('?').map_or("", |(_, query)| query);
        let keys = query
            .split('&')
            .filter_map(|pair| pair.strip_prefix("key="));
        if keys.into_iter().any(|key| key != token) {
            return refuse("`key=` is not the expected credential".to_owned());
        }
        if head.path.starts_with(self.guarded()) && given.is_empty() {
            return refuse("no credential".to_owned());
        }
        Ok(())
    }

    /// An error as the API words it.
    pub(crate) fn error(self, status: StatusCode, kind: &str, message: &str) -> Value {
        match self {
            Self::Anthropic => {
                json!({"type": "error", "error": {"type": kind, "message": message}})
            }
            Self::OpenAi => json!({"error": {
                "message": message, "type": kind, "param": null, "code": null}}),
            Self::Gemini => json!({"error": {
                "code": status.as_u16(), "message": message, "status": google_status(status)}}),
        }
    }

    pub(crate) fn fault(self, fault: &Fault) -> Value {
        let (kind, message) = fault.words();
        match (self, fault) {
            // As the back end of a ChatGPT plan words it; codex reads the time from it.
            (Self::OpenAi, Fault::UsageLimit { resets_at_s }) => json!({"error": {
                "type": "usage_limit_reached", "message": message,
                "plan_type": "pro", "resets_at": resets_at_s}}),
            (Self::Anthropic | Self::OpenAi | Self::Gemini, _) => {
                self.error(fault.status(), kind, message)
            }
        }
    }
}

/// google.rpc.Code of an HTTP status.
fn google_status(status: StatusCode) -> &'static str {
    match status.as_u16() {
        400 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        _ => "UNAVAILABLE",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(path: &str, headers: &[(&str, &str)]) -> Recorded {
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Recorded {
            name: "api.test".to_owned(),
            at: "45.33.32.100:443".parse().unwrap(),
            sni: None,
            version: "HTTP/1.1".to_owned(),
            method: "POST".to_owned(),
            path: path.to_owned(),
            headers: headers.iter().map(pair).collect(),
            body_bytes: 0,
            complete: true,
        }
    }

    #[test]
    fn only_the_right_credential_is_taken() {
        let takes = |api: Api, headers: &[(&str, &str)]| {
            api.check_credential(&head("/v1/messages", headers), "T")
                .is_ok()
        };
        assert!(takes(Api::Anthropic, &[("authorization", "Bearer T")]));
        assert!(takes(Api::Anthropic, &[("x-api-key", "T")]));
        assert!(!takes(Api::Anthropic, &[]));
        assert!(!takes(Api::Anthropic, &[("authorization", "Bearer U")]));
        let two = [("authorization", "Bearer T"), ("x-api-key", "U")];
        assert!(!takes(Api::Anthropic, &two));
        let cookie = [("authorization", "Bearer T"), ("cookie", "s=1")];
        assert!(!takes(Api::Anthropic, &cookie));
        assert!(takes(Api::OpenAi, &[("authorization", "Bearer T")]));
        assert!(!takes(Api::OpenAi, &[("x-api-key", "T")]));
        assert!(!takes(Api::OpenAi, &[]));
        assert!(takes(Api::Gemini, &[("x-goog-api-key", "T")]));
        assert!(!takes(Api::Gemini, &[("authorization", "Bearer T")]));
        let bare = |path: &str| Api::Gemini.check_credential(&head(path, &[]), "T").is_ok();
        assert!(!bare("/v1beta/models"));
        assert!(!bare("/v1beta/models?key=U"));
        assert!(bare("/telemetry"));
    }
}
