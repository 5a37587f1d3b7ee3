//! The lines a client sends, whole, each with its newline.

use super::message::{RpcError, RpcId};
use super::options::Setter;
use super::setup::ModeSetter;
use super::{LINE_OUT_BYTES_MAX, PROTOCOL_VERSION};
use box_api::thread::ChosenOption;
use serde_json::{Map, Value, json};

/// Room a prompt's line needs besides the prompt.
const PROMPT_ENVELOPE_BYTES: usize = 4 << 10;

/// What the agent is asked to open a conversation with.
#[derive(Debug, Clone, Copy)]
pub struct Opening<'a> {
    /// The folder the agent works in, absolute, inside the box.
    pub cwd: &'a str,
    /// The `_meta` object; empty: none is sent.
    pub meta: &'a Map<String, Value>,
}

/// `initialize`: no files and no terminal of the client's, forms yes.
pub fn initialize(id: i64) -> String {
    let capabilities = json!({
        "fs": { "readTextFile": false, "writeTextFile": false },
        "terminal": false,
        "elicitation": { "form": {} },
    });
    let client = json!({ "name": "boxes", "title": "Boxes", "version": env!("CARGO_PKG_VERSION") });
    let params = json!({
        "protocolVersion": PROTOCOL_VERSION,
        "clientCapabilities": capabilities,
        "clientInfo": client,
    });
    request(id, "initialize", &params)
}

/// `authenticate`: the agent takes the account it finds in its environment.
pub fn authenticate(id: i64, method: &str) -> String {
    request(id, "authenticate", &json!({ "methodId": method }))
}

/// `session/new`.
pub fn new_conversation(id: i64, opening: Opening<'_>) -> String {
    request(id, "session/new", &opening_params(opening))
}

/// `session/load`: the agent repeats the conversation before it answers.
pub fn load_conversation(id: i64, known_as: &str, opening: Opening<'_>) -> String {
    let mut params = opening_params(opening);
    params["sessionId"] = json!(known_as);
    request(id, "session/load", &params)
}

/// `session/fork`: a copy of a conversation under a name of its own.
pub fn fork_conversation(id: i64, of: &str, opening: Opening<'_>) -> String {
    let mut params = opening_params(opening);
    params["sessionId"] = json!(of);
    request(id, "session/fork", &params)
}

/// Sets an option the way the agent offers it.
pub fn set_option(id: i64, known_as: &str, setter: Setter, chosen: &ChosenOption) -> String {
    let ChosenOption { option, value } = chosen;
    let config = |value: Value| {
        let params = json!({ "sessionId": known_as, "configId": option, "value": value });
        request(id, "session/set_config_option", &params)
    };
    match setter {
        Setter::Config => config(json!(value)),
        Setter::Switch => config(json!(value == "true")),
        Setter::Mode => set_mode(id, known_as, &ModeSetter::Mode, value),
    }
}

/// `_session/steering`: a prompt for the turn that runs. The agent answers what became of it; with
/// `promptRequired` it leaves the prompt to the client when there is no turn any more.
pub fn steer(id: i64, known_as: &str, text: &str) -> String {
    let content = json!([{ "type": "text", "text": text }]);
    let meta = json!({ "steering": { "idleBehavior": "promptRequired" } });
    let params = json!({ "sessionId": known_as, "prompt": content, "_meta": meta });
    request(id, "_session/steering", &params)
}

/// `_session/async_task/stop`: ends one task of the background.
pub fn stop_task(id: i64, known_as: &str, task: &str) -> String {
    let params = json!({ "sessionId": known_as, "asyncTaskId": task });
    request(id, "_session/async_task/stop", &params)
}

/// Sets the mode the way the agent offers it.
pub fn set_mode(id: i64, known_as: &str, setter: &ModeSetter, mode: &str) -> String {
    match setter {
        ModeSetter::Config { config } => {
            let params = json!({ "sessionId": known_as, "configId": config, "value": mode });
            request(id, "session/set_config_option", &params)
        }
        ModeSetter::Mode => request(
            id,
            "session/set_mode",
            &json!({ "sessionId": known_as, "modeId": mode }),
        ),
    }
}

/// `session/prompt` with one piece of text.
pub fn prompt(id: i64, known_as: &str, text: &str) -> String {
    let content = json!([{ "type": "text", "text": text }]);
    request(
        id,
        "session/prompt",
        &json!({ "sessionId": known_as, "prompt": content }),
    )
}

/// Whether a prompt of this text fits into one line of `line_bytes_max` and the host's own bound.
pub fn prompt_fits(text: &str, line_bytes_max: usize) -> bool {
    let bytes = json!(text).to_string().len() + PROMPT_ENVELOPE_BYTES;
    bytes <= line_bytes_max.min(LINE_OUT_BYTES_MAX)
}

/// `session/cancel`.
pub fn cancel(known_as: &str) -> String {
    let params = json!({ "sessionId": known_as });
    line(&json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": params }))
}

/// The answer to a request of the agent.
pub fn result(id: &RpcId, result: &Value) -> String {
    line(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

/// The refusal of a request of the agent.
pub fn error(id: &RpcId, error: &RpcError) -> String {
    let error = json!({ "code": error.code, "message": error.message });
    line(&json!({ "jsonrpc": "2.0", "id": id, "error": error }))
}

/// The refusal of a request nobody here serves, `fs/*` and `terminal/*` among them.
pub fn unknown_method(id: &RpcId, method: &str) -> String {
    let method: String = method.chars().take(100).collect();
    let message = format!("this client does not serve `{method}`");
    error(
        id,
        &RpcError {
            code: -32601,
            message,
            data: Value::Null,
        },
    )
}

fn opening_params(opening: Opening<'_>) -> Value {
    let mut params = json!({ "cwd": opening.cwd, "mcpServers": [] });
    if !opening.meta.is_empty() {
        params["_meta"] = Value::Object(opening.meta.clone());
    }
    params
}

fn request(id: i64, method: &str, params: &Value) -> String {
    line(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
}

fn line(message: &Value) -> String {
    let mut line = message.to_string();
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_one_line_each() {
        let text = "two\nlines \u{2028} and \"quotes\"";
        let line = prompt(7, "s", text);
        assert_eq!(line.matches('\n').count(), 1);
        assert!(line.ends_with('\n'));
        let parsed: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(parsed["params"]["prompt"][0]["text"], text);
        assert_eq!(parsed["id"], 7);
    }

    #[test]
    fn nothing_is_offered_that_the_client_does_not_do() {
        let line: Value = serde_json::from_str(&initialize(0)).unwrap();
        let capabilities = &line["params"]["clientCapabilities"];
        assert_eq!(
            *capabilities,
            json!({"fs":{"readTextFile":false,"writeTextFile":false},"terminal":false,
                "elicitation":{"form":{}}})
        );
        assert_eq!(line["params"]["protocolVersion"], 1);
    }

    #[test]
    fn a_prompt_is_measured_as_it_will_be_written() {
        assert!(prompt_fits("short", 1 << 20));
        // A control character takes six bytes on the wire.
        assert!(!prompt_fits(&"\u{1}".repeat(200_000), 1 << 20));
        assert!(prompt_fits(&"x".repeat(200_000), 1 << 20));
        assert!(!prompt_fits(&"x".repeat(LINE_OUT_BYTES_MAX), usize::MAX));
    }

    #[test]
    fn ids_come_back_as_they_were_sent() {
        for id in [json!(0), json!("a-b"), Value::Null, json!(1.5)] {
            let line: Value =
                serde_json::from_str(&unknown_method(&RpcId(id.clone()), "fs/read_text_file"))
                    .unwrap();
            assert_eq!(line["id"], id);
            assert_eq!(line["error"]["code"], -32601);
        }
    }
}
