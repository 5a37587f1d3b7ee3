//! Which method of the agent means what.

use super::ask;
use super::content::whole_or_size;
use super::extension::{self, Extension};
use super::message::RpcId;
use super::update::{self, foreign};
use box_api::thread::Item;
use serde_json::{Value, json};

/// A request of the agent.
#[derive(Debug, Clone, PartialEq)]
pub enum Wanted {
    /// May a tool be used?
    Permission(Value),
    /// A form to fill in.
    Form(Value),
    /// Nothing this client serves: files, terminals, extensions.
    Unserved,
}

/// A notification of the agent.
#[derive(Debug, Clone, PartialEq)]
pub enum News {
    /// Something about the conversation.
    Update(Value),
    /// A request the agent made is void.
    TakenBack(RpcId),
    /// Something the protocol leaves out, and the row that keeps it.
    Extension(Extension, Item),
    /// Anything else, as the row that keeps it.
    Other(Item),
}

pub fn request(method: &str, params: Value) -> Wanted {
    match method {
        "session/request_permission" => Wanted::Permission(params),
        "elicitation/create" => Wanted::Form(params),
        _ => Wanted::Unserved,
    }
}

/// `known_as` is what the agent calls the thread's own conversation.
pub fn notification(method: &str, params: Value, known_as: Option<&str>) -> News {
    match method {
        "session/update" => match (params["sessionId"].as_str(), known_as) {
            (Some(told), Some(known)) if told != known => News::Other(foreign(params)),
            (_, _) => News::Update(params),
        },
        "$/cancel_request" => News::TakenBack(ask::taken_back(params)),
        _ if method.starts_with('_') => {
            let meaning = extension::read(method, &params);
            News::Extension(meaning, update::detail(raw(method, &params)))
        }
        _ => News::Other(Item::Unknown {
            raw: whole_or_size(raw(method, &params)),
        }),
    }
}

fn raw(method: &str, params: &Value) -> Value {
    json!({ "method": method, "params": params })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_of_another_conversation_are_kept_apart() {
        let update = json!({"sessionId":"mine","update":{"sessionUpdate":"plan"}});
        let read = |known| notification("session/update", update.clone(), known);
        assert_eq!(read(Some("mine")), News::Update(update.clone()));
        assert_eq!(read(None), News::Update(update.clone()));
        assert!(matches!(
            read(Some("other")),
            News::Other(Item::Detail { .. })
        ));
    }

    #[test]
    fn unknown_notifications_are_rows_and_unknown_requests_unserved() {
        let told = notification("_x.ai/thing", json!({"a":1}), None);
        assert_eq!(
            told,
            News::Extension(
                Extension::Other,
                Item::Detail {
                    raw: json!({"method":"_x.ai/thing","params":{"a":1}})
                }
            )
        );
        assert_eq!(
            notification("craft/x", Value::Null, None),
            News::Other(Item::Unknown {
                raw: json!({"method":"craft/x","params":null})
            })
        );
        for method in [
            "fs/write_text_file",
            "terminal/create",
            "craft/drainMidTurnQueue",
            "_auth/x",
        ] {
            assert_eq!(request(method, Value::Null), Wanted::Unserved, "{method}");
        }
    }
}
