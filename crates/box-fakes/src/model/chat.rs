//! `OpenAI`'s chat completions, which many others serve as well (developers.openai.com, *Chat*).

use super::asked::{Asked, Said};
use super::voice::{Call, Dialect};
use serde_json::{Value, json};

/// A request's body; `None`: no messages.
pub(crate) fn read(body: &Value) -> Option<Asked> {
    let mut asked = Asked {
        model: body["model"].as_str().unwrap_or_default().to_owned(),
        has_tools: body["tools"]
            .as_array()
            .is_some_and(|tools| !tools.is_empty()),
        said: Vec::new(),
    };
    for message in body["messages"].as_array()? {
        match message["role"].as_str().unwrap_or_default() {
            "assistant" => {
                asked.model_said(None);
                let calls = message["tool_calls"]
                    .as_array()
                    .cloned()
                    .unwrap_or_default();
                for call in calls {
                    asked.model_said(call["id"].as_str().map(str::to_owned));
                }
            }
            "tool" => {
                let call = message["tool_call_id"].as_str().unwrap_or_default();
                let text = texts(&message["content"]).join("\n");
                asked.said.push(Said::Result(call.to_owned(), text));
            }
            _ => asked.said.push(Said::User(texts(&message["content"]))),
        }
    }
    Some(asked)
}

fn texts(content: &Value) -> Vec<String> {
    if let Some(text) = content.as_str() {
        return vec![text.to_owned()];
    }
    let parts = content.as_array().map(Vec::as_slice).unwrap_or_default();
    let texts = parts.iter().filter_map(|part| part["text"].as_str());
    texts.map(str::to_owned).collect()
}

/// One completion.
pub(crate) struct Voice {
    id: String,
    model: String,
    calls: usize,
}

impl Voice {
    pub(crate) fn new(number: u64, model: &str) -> Self {
        Self {
            id: format!("chatcmpl-rig{number:020}"),
            model: model.to_owned(),
            calls: 0,
        }
    }

    fn chunk(&self, delta: &Value, finish: Option<&str>) -> Vec<String> {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        let chunk = json!({"id": self.id, "object": "chat.completion.chunk",
            "created": 1_790_000_000, "model": self.model, "choices": [choice]});
        vec![format!("data: {chunk}\n\n")]
    }
}

fn usage() -> Value {
    json!({"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120})
}

fn call_of(call: &Call) -> Value {
    let function = json!({"name": call.name, "arguments": call.input.to_string()});
    json!({"id": call.id, "type": "function", "function": function})
}

fn finish(calls: usize) -> &'static str {
    if calls == 0 { "stop" } else { "tool_calls" }
}

impl Dialect for Voice {
    fn begin(&mut self) -> Vec<String> {
        self.chunk(&json!({"role": "assistant", "content": ""}), None)
    }

    fn text(&mut self, piece: &str) -> Vec<String> {
        self.chunk(&json!({ "content": piece }), None)
    }

    fn thinking(&mut self, piece: &str) -> Vec<String> {
        self.chunk(&json!({ "reasoning_content": piece }), None)
    }

    fn call(&mut self, call: &Call) -> Vec<String> {
        let mut called = call_of(call);
        called["index"] = self.calls.into();
        self.calls += 1;
        self.chunk(&json!({ "tool_calls": [called] }), None)
    }

    fn end(&mut self) -> Vec<String> {
        let mut events = self.chunk(&json!({}), Some(finish(self.calls)));
        let last = json!({"id": self.id, "object": "chat.completion.chunk",
            "created": 1_790_000_000, "model": self.model, "choices": [], "usage": usage()});
        events.push(format!("data: {last}\n\n"));
        events.push("data: [DONE]\n\n".to_owned());
        events
    }

    fn whole(&self, text: &str, calls: &[Call]) -> Value {
        let mut message = json!({"role": "assistant", "content": text});
        if !calls.is_empty() {
            message["tool_calls"] = calls.iter().map(call_of).collect();
        }
        let choice = json!({"index": 0, "message": message, "finish_reason": finish(calls.len())});
        json!({"id": self.id, "object": "chat.completion", "created": 1_790_000_000,
            "model": self.model, "choices": [choice], "usage": usage()})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_become_answers_and_results() {
        let body = json!({"model": "m", "tools": [{}], "messages": [
            {"role": "system", "content": "be kind"},
            {"role": "user", "content": [{"type": "text", "text": "go"}]},
            {"role": "assistant", "content": null, "tool_calls": [{"id": "a"}]},
            {"role": "tool", "tool_call_id": "a", "content": "done"},
        ]});
        let asked = read(&body).unwrap();
        assert_eq!(
            asked.said[1..],
            [
                Said::User(vec!["go".to_owned()]),
                Said::Model(vec!["a".to_owned()]),
                Said::Result("a".to_owned(), "done".to_owned()),
            ]
        );
        assert!(read(&json!({"model": "m"})).is_none());
    }

    #[test]
    fn a_stream_says_why_it_ends() {
        let mut voice = Voice::new(1, "m");
        assert!(voice.end()[0].contains(r#""finish_reason":"stop""#));
        let call = Call {
            id: "c".to_owned(),
            name: "f".to_owned(),
            input: json!({}),
        };
        voice.call(&call);
        assert!(voice.end()[0].contains(r#""finish_reason":"tool_calls""#));
        assert_eq!(voice.end().last().unwrap(), "data: [DONE]\n\n");
    }
}
