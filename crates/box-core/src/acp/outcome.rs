//! How a prompt ended, from its response.

use super::message::RpcError;
use box_api::thread::TurnOutcome;
use serde_json::Value;

/// How a turn ended and what to say about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    pub outcome: TurnOutcome,
    pub note: Option<String>,
}

/// What kind of failure an error response is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    Ended(Ended),
    /// The agent does not know the conversation (any more); taking it up again may help.
    Forgotten,
}

/// From the result of `session/prompt`. An unknown stop reason is told as *stopped short*: it is
/// no promise that the work is done, and no failure the agent has admitted to.
pub fn from_result(result: &Value) -> Ended {
    let (outcome, note) = match result["stopReason"].as_str() {
        Some("end_turn") => (TurnOutcome::Done, None),
        Some("refusal") => (TurnOutcome::Refused, Some("the agent refused".to_owned())),
        Some("cancelled") => (TurnOutcome::Cancelled, None),
        Some("max_tokens") => (
            TurnOutcome::StoppedShort,
            Some("the agent ran out of tokens".to_owned()),
        ),
        Some("max_turn_requests") => {
            let note = "the agent reached its limit of requests in one turn";
            (TurnOutcome::StoppedShort, Some(note.to_owned()))
        }
        Some(other) => {
            let reason: String = other.chars().take(100).collect();
            let note = format!("the agent stopped for a reason unknown here: `{reason}`");
            (TurnOutcome::StoppedShort, Some(note))
        }
        None => {
            let note = "the agent ended the turn without saying why";
            (TurnOutcome::Failed, Some(note.to_owned()))
        }
    };
    Ended { outcome, note }
}

/// Whether an error says that a usage limit was met (claude's `errorKind`, codex's
/// `codexErrorInfo`).
pub fn is_limit(error: &RpcError) -> bool {
    error.data["errorKind"] == "rate_limit" || error.data["codexErrorInfo"] == "usageLimitExceeded"
}

/// From an error response to `session/prompt`. `resets_at_ms` is what the agent said before about
/// the end of a usage limit, `login` what to do to get an account.
pub fn from_error(error: &RpcError, resets_at_ms: Option<i64>, login: Option<&str>) -> Failure {
    let (outcome, note) = match error.code {
        _ if is_limit(error) => (
            TurnOutcome::Parked,
            limit_note(&error.message, resets_at_ms),
        ),
        -32002 => return Failure::Forgotten,
        -32800 => (
            TurnOutcome::Cancelled,
            "the agent cancelled the turn".to_owned(),
        ),
        -32000 => (TurnOutcome::Failed, login_note(&error.message, login)),
        code => (
            TurnOutcome::Failed,
            format!("the agent failed: {} ({code})", error.message),
        ),
    };
    Failure::Ended(Ended {
        outcome,
        note: Some(note),
    })
}

/// What to say when the agent wants an account.
pub fn login_note(message: &str, login: Option<&str>) -> String {
    match login {
        Some(login) => format!("the agent is not logged in: {message}; hint: {login}"),
        None => format!("the agent is not logged in: {message}"),
    }
}

fn limit_note(message: &str, resets_at_ms: Option<i64>) -> String {
    let ends = resets_at_ms
        .and_then(|ms| u64::try_from(ms).ok())
        .map(|ms| {
            let at = std::time::UNIX_EPOCH + std::time::Duration::from_millis(ms);
            humantime::format_rfc3339_seconds(at).to_string()
        });
    match ends {
        Some(at) => format!("usage limit until {at}: {message}"),
        None => format!("usage limit: {message}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn error(code: i64, data: Value) -> RpcError {
        RpcError {
            code,
            message: "it says so".into(),
            data,
        }
    }

    #[test]
    fn every_stop_reason_has_an_outcome() {
        let outcome = |reason: &str| from_result(&json!({ "stopReason": reason })).outcome;
        assert_eq!(outcome("end_turn"), TurnOutcome::Done);
        assert_eq!(outcome("refusal"), TurnOutcome::Refused);
        assert_eq!(outcome("cancelled"), TurnOutcome::Cancelled);
        assert_eq!(outcome("max_tokens"), TurnOutcome::StoppedShort);
        assert_eq!(outcome("max_turn_requests"), TurnOutcome::StoppedShort);
        assert_eq!(outcome("got_bored"), TurnOutcome::StoppedShort);
        assert_eq!(from_result(&Value::Null).outcome, TurnOutcome::Failed);
        assert_eq!(
            from_result(&json!({"stopReason":"got_bored"}))
                .note
                .unwrap(),
            "the agent stopped for a reason unknown here: `got_bored`"
        );
    }

    #[test]
    fn errors_say_what_to_do() {
        let ended = |error: &RpcError, at| match from_error(error, at, Some("do this")) {
            Failure::Ended(ended) => (ended.outcome, ended.note.unwrap()),
            Failure::Forgotten => panic!("{error:?} is no forgotten conversation"),
        };
        let limit = error(-32603, json!({"errorKind":"rate_limit"}));
        assert_eq!(
            ended(&limit, Some(1_795_962_995_000)),
            (
                TurnOutcome::Parked,
                "usage limit until 2026-11-29T14:36:35Z: it says so".to_owned()
            )
        );
        assert_eq!(
            ended(
                &error(-32603, json!({"codexErrorInfo":"usageLimitExceeded"})),
                None
            ),
            (TurnOutcome::Parked, "usage limit: it says so".to_owned())
        );
        assert_eq!(
            ended(&error(-32000, Value::Null), None),
            (
                TurnOutcome::Failed,
                "the agent is not logged in: it says so; hint: do this".to_owned()
            )
        );
        assert_eq!(
            ended(&error(-32603, json!({"errorKind":"server_error"})), None),
            (
                TurnOutcome::Failed,
                "the agent failed: it says so (-32603)".to_owned()
            )
        );
        assert_eq!(
            ended(&error(-32800, Value::Null), None).0,
            TurnOutcome::Cancelled
        );
        assert_eq!(
            from_error(&error(-32002, Value::Null), None, None),
            Failure::Forgotten
        );
    }
}
