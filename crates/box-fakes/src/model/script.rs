//! What a test lets the model say.

use http::StatusCode;
use serde_json::Value;
use std::time::Duration;

/// The answers to one prompt, one message after the other.
#[derive(Debug, Clone)]
pub struct Script {
    pub(crate) prompt: String,
    pub(crate) messages: Vec<Vec<Step>>,
}

impl Script {
    /// For prompts that contain `part`.
    pub fn on(part: &str) -> Self {
        Self {
            prompt: part.to_owned(),
            messages: Vec::new(),
        }
    }

    /// The next message. One with a tool call ends with `tool_use`, any other with `end_turn`.
    #[must_use]
    pub fn message(mut self, steps: impl IntoIterator<Item = Step>) -> Self {
        self.messages.push(steps.into_iter().collect());
        self
    }
}

/// A part of a message.
#[derive(Debug, Clone)]
pub enum Step {
    /// Text after text is one block, also over a gate.
    Text(String),
    Thinking(String),
    ToolUse {
        name: String,
        input: Value,
    },
    /// Goes on once the test opens it.
    Gate(String),
    /// From here on this long between two pieces.
    Pace(Duration),
    /// Nothing more comes; the connection stays.
    Hang,
    /// The stream ends here, unfinished.
    Cut,
    /// First in a message: this many requests are answered with the error, then it goes on.
    Fail {
        fault: Fault,
        times: u32,
    },
}

impl Step {
    pub fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    pub fn thinking(text: &str) -> Self {
        Self::Thinking(text.to_owned())
    }

    pub fn gate(name: &str) -> Self {
        Self::Gate(name.to_owned())
    }

    pub fn tool(name: &str, input: Value) -> Self {
        Self::ToolUse {
            name: name.to_owned(),
            input,
        }
    }

    /// Claude Code's `Bash`.
    pub fn bash(command: &str) -> Self {
        let input = serde_json::json!({"command": command, "description": "Runs a command"});
        Self::tool("Bash", input)
    }

    /// Claude Code's `Write`; the path is absolute.
    pub fn write(path: &str, content: &str) -> Self {
        Self::tool(
            "Write",
            serde_json::json!({"file_path": path, "content": content}),
        )
    }
}

/// An error of the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// 401
    Unauthorized,
    /// 429 of a subscription that is used up until this second since 1970.
    UsageLimit { resets_at_s: u64 },
    /// 429 without more.
    RateLimited,
    /// 529
    Overloaded,
    /// 400, out of credit.
    Credit,
}

impl Fault {
    pub(crate) fn status(&self) -> StatusCode {
        let code = match self {
            Self::Unauthorized => 401,
            Self::UsageLimit { .. } | Self::RateLimited => 429,
            Self::Overloaded => 529,
            Self::Credit => 400,
        };
        StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Type and message as the API words them.
    pub(crate) fn words(&self) -> (&'static str, &'static str) {
        match self {
            Self::Unauthorized => ("authentication_error", "OAuth token has been revoked"),
            Self::UsageLimit { .. } => (
                "rate_limit_error",
                "This request would exceed your account's rate limit",
            ),
            Self::RateLimited => (
                "rate_limit_error",
                "Number of requests has exceeded the limit",
            ),
            Self::Overloaded => ("overloaded_error", "Overloaded"),
            Self::Credit => ("invalid_request_error", "Your credit balance is too low"),
        }
    }

    pub(crate) fn headers(&self) -> Vec<(&'static str, String)> {
        let Self::UsageLimit { resets_at_s } = self else {
            return Vec::new();
        };
        let reset = resets_at_s.to_string();
        vec![
            ("anthropic-ratelimit-unified-status", "rejected".to_owned()),
            ("anthropic-ratelimit-unified-reset", reset.clone()),
            (
                "anthropic-ratelimit-unified-representative-claim",
                "five_hour".to_owned(),
            ),
            (
                "anthropic-ratelimit-unified-5h-status",
                "rejected".to_owned(),
            ),
            ("anthropic-ratelimit-unified-5h-reset", reset),
            (
                "anthropic-ratelimit-unified-5h-utilization",
                "1.0".to_owned(),
            ),
        ]
    }
}
