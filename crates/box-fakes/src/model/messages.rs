//! `POST /v1/messages`: finds the script and the place in it.

use super::script::Step;
use super::state::Turn;
use super::{ok, side, stream};
use crate::rig::{AnswerBody, Recorded, internet::Internet};
use http::Response;
use serde_json::{Value, json};
use std::rc::Rc;

/// Starts the prompt suggestion request of Claude Code.
const SUGGESTION_MARK: &str = "[SUGGESTION MODE";

pub(crate) fn answer(
    internet: &Rc<Internet>,
    head: &Recorded,
    body: &Value,
) -> Response<AnswerBody> {
    let messages = body["messages"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let steps = match side_kind(body, messages) {
        Some((kind, text)) => {
            side::note(internet, head, kind);
            vec![Step::text(text)]
        }
        None => scripted(internet, head, body, messages),
    };
    if let Some(Step::Fail { fault, .. }) = steps.first() {
        let (kind, message) = fault.words();
        let mut response = super::failure(super::Api::Anthropic, fault.status(), kind, message);
        for (name, value) in fault.headers() {
            if let Ok(value) = http::HeaderValue::from_str(&value) {
                response.headers_mut().insert(name, value);
            }
        }
        return response;
    }
    let model = body["model"].as_str().unwrap_or_default().to_owned();
    if body["stream"] == true {
        stream::start(internet, model, steps)
    } else {
        ok(&stream::whole(internet, &model, &steps))
    }
}

/// A request beside the turn, and what it is told. Titles and classifiers come without tools.
fn side_kind(body: &Value, messages: &[Value]) -> Option<(&'static str, &'static str)> {
    let asks_suggestion = messages.last().is_some_and(|message| {
        texts(message)
            .iter()
            .any(|text| text.contains(SUGGESTION_MARK))
    });
    if asks_suggestion {
        return Some(("suggestion", ""));
    }
    body["tools"]
        .as_array()
        .is_none_or(Vec::is_empty)
        .then_some(("without tools", r#"{"title": "A turn on the rig"}"#))
}

fn scripted(internet: &Internet, head: &Recorded, body: &Value, messages: &[Value]) -> Vec<Step> {
    internet.with(|world| {
        let Some((prompt, message)) = place(&world.model.scripts, messages) else {
            world
                .model
                .side(format!("{} {}: no script", head.method, head.path));
            return vec![Step::text("(no script for this prompt)")];
        };
        let turn = Turn {
            prompt,
            message,
            session: head.header("x-claude-code-session-id").map(str::to_owned),
            model: body["model"].as_str().unwrap_or_default().to_owned(),
            before: before(&world.model.scripts, messages),
            tool_results: messages.last().map(results).unwrap_or_default(),
        };
        world.note(format!(
            "model: `{}`, message {}",
            turn.prompt, turn.message
        ));
        world.model.take(turn)
    })
}

/// The newest prompt that has a script, and how many answers came since.
fn place(scripts: &[super::Script], messages: &[Value]) -> Option<(String, usize)> {
    let mut answers = 0;
    for message in messages.iter().rev() {
        if message["role"] == "assistant" {
            answers += 1;
            continue;
        }
        let texts = texts(message);
        let fits = |script: &&super::Script| texts.iter().any(|text| text.contains(&script.prompt));
        if let Some(script) = scripts.iter().find(fits) {
            return Some((script.prompt.clone(), answers));
        }
    }
    None
}

/// Prompts of scripts in all the messages but the newest.
fn before(scripts: &[super::Script], messages: &[Value]) -> Vec<String> {
    let prompts = messages.iter().filter_map(|message| {
        let texts = texts(message);
        let fits = |script: &&super::Script| texts.iter().any(|text| text.contains(&script.prompt));
        scripts
            .iter()
            .find(fits)
            .map(|script| script.prompt.clone())
    });
    let mut all: Vec<String> = prompts.collect();
    all.pop();
    all
}

/// Texts of a message, those inside tool results left out.
fn texts(message: &Value) -> Vec<&str> {
    match &message["content"] {
        Value::String(text) => vec![text.as_str()],
        Value::Array(blocks) => blocks
            .iter()
            .filter(|block| block["type"] == "text")
            .filter_map(|block| block["text"].as_str())
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    }
}

fn results(message: &Value) -> Vec<String> {
    let blocks = message["content"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let of_kind = blocks.iter().filter(|block| block["type"] == "tool_result");
    of_kind
        .map(|block| match &block["content"] {
            Value::String(text) => text.clone(),
            Value::Array(_) => texts(&json!({"content": block["content"]})).join("\n"),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::Script;
    use super::*;

    #[test]
    fn the_place_is_the_number_of_answers_since_the_prompt() {
        let scripts = [Script::on("make it"), Script::on("undo it")];
        let user =
            |text: &str| json!({"role": "user", "content": [{"type": "text", "text": text}]});
        let said = json!({"role": "assistant", "content": "ok"});
        let result = json!({"role": "user", "content": [
            {"type": "tool_result", "content": "make it undo it"}]});
        let at = |messages: &[Value]| place(&scripts, messages);
        assert_eq!(
            at(&[user("please make it")]),
            Some(("make it".to_owned(), 0))
        );
        assert_eq!(
            at(&[user("make it"), said.clone(), result.clone()]),
            Some(("make it".to_owned(), 1))
        );
        assert_eq!(
            at(&[user("make it"), said, result, user("undo it")]),
            Some(("undo it".to_owned(), 0))
        );
        assert_eq!(at(&[user("other")]), None);
    }
}
