//! `OpenAI`'s Responses API, as Codex and others use it (developers.openai.com, *Responses*).

use super::asked::{Asked, Said};
use super::voice::{Call, Dialect};
use serde_json::{Value, json};

/// A request's body; `None`: no list of items.
pub(crate) fn read(body: &Value) -> Option<Asked> {
    let mut asked = Asked {
        model: body["model"].as_str().unwrap_or_default().to_owned(),
        has_tools: body["tools"]
            .as_array()
            .is_some_and(|tools| !tools.is_empty()),
        said: Vec::new(),
    };
    if let Some(text) = body["input"].as_str() {
        asked.said.push(Said::User(vec![text.to_owned()]));
        return Some(asked);
    }
    for item in body["input"].as_array()? {
        let text = |key: &str| item[key].as_str().unwrap_or_default().to_owned();
        match text("type").as_str() {
            "message" | "" if text("role") == "assistant" => asked.model_said(None),
            "message" | "" => asked.said.push(Said::User(texts(&item["content"]))),
            // Where Codex lists its tools.
            "additional_tools" => asked.has_tools = true,
            "reasoning" => asked.model_said(None),
            kind if kind.ends_with("_call_output") => {
                let output = texts(&item["output"]).join("\n");
                asked.said.push(Said::Result(text("call_id"), output));
            }
            kind if kind.ends_with("_call") => {
                let id = text("call_id");
                asked.model_said((!id.is_empty()).then_some(id));
            }
            _ => {}
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

/// One response.
pub(crate) struct Voice {
    id: String,
    model: String,
    /// Items that are over.
    done: Vec<Value>,
    open: Option<Item>,
    sequence: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
}

struct Item {
    kind: Kind,
    text: String,
}

impl Voice {
    pub(crate) fn new(number: u64, model: &str) -> Self {
        Self {
            id: format!("resp_rig{number:020}"),
            model: model.to_owned(),
            done: Vec::new(),
            open: None,
            sequence: 0,
        }
    }

    fn item_id(&self) -> String {
        format!("{}_{}", self.id.replace("resp", "item"), self.done.len())
    }

    fn event(&mut self, kind: &str, mut data: Value) -> String {
        data["type"] = kind.into();
        data["sequence_number"] = self.sequence.into();
        self.sequence += 1;
        format!("event: {kind}\ndata: {data}\n\n")
    }

    fn response(&self, status: &str, output: &[Value]) -> Value {
        json!({
            "id": self.id, "object": "response", "created_at": 1_790_000_000, "status": status,
            "model": self.model, "output": output, "error": null, "incomplete_details": null,
            "parallel_tool_calls": false, "tool_choice": "auto", "tools": [], "metadata": {},
            "usage": {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 0},
                      "output_tokens": 20, "output_tokens_details": {"reasoning_tokens": 0},
                      "total_tokens": 120},
        })
    }

    fn item(&self, item: &Item, status: &str) -> Value {
        let id = self.item_id();
        if item.kind == Kind::Thinking {
            let summary = json!([{"type": "summary_text", "text": item.text}]);
            return json!({"type": "reasoning", "id": id, "summary": summary, "encrypted_content": null});
        }
        message(&id, &item.text, status)
    }

    fn close(&mut self) -> Vec<String> {
        let Some(item) = self.open.take() else {
            return Vec::new();
        };
        let (index, whole) = (self.done.len(), self.item(&item, "completed"));
        let mut events = Vec::new();
        if item.kind == Kind::Text {
            let over = json!({"item_id": self.item_id(), "output_index": index,
                "content_index": 0, "text": item.text, "logprobs": []});
            events.push(self.event("response.output_text.done", over));
        }
        let done = json!({"output_index": index, "item": whole});
        events.push(self.event("response.output_item.done", done));
        self.done.push(whole);
        events
    }

    fn piece(&mut self, piece: &str, kind: Kind) -> Vec<String> {
        let mut events = Vec::new();
        if self.open.as_ref().is_none_or(|item| item.kind != kind) {
            events.extend(self.close());
            let item = Item {
                kind,
                text: String::new(),
            };
            let mut shown = self.item(&item, "in_progress");
            if let Some(empty) = ["content", "summary"]
                .into_iter()
                .find(|key| shown[*key].is_array())
            {
                shown[empty] = json!([]);
            }
            self.open = Some(item);
            let added = json!({"output_index": self.done.len(), "item": shown});
            events.push(self.event("response.output_item.added", added));
            let (name, part) = if kind == Kind::Thinking {
                let part = json!({"type": "summary_text", "text": ""});
                ("response.reasoning_summary_part.added", part)
            } else {
                let part = json!({"type": "output_text", "text": "", "annotations": []});
                ("response.content_part.added", part)
            };
            let begun = json!({"item_id": self.item_id(), "output_index": self.done.len(),
                "content_index": 0, "summary_index": 0, "part": part});
            events.push(self.event(name, begun));
        }
        if let Some(item) = &mut self.open {
            item.text.push_str(piece);
        }
        let name = if kind == Kind::Thinking {
            "response.reasoning_summary_text.delta"
        } else {
            "response.output_text.delta"
        };
        let delta = json!({"item_id": self.item_id(), "output_index": self.done.len(),
            "content_index": 0, "summary_index": 0, "delta": piece, "logprobs": []});
        events.push(self.event(name, delta));
        events
    }
}

fn message(id: &str, text: &str, status: &str) -> Value {
    json!({"type": "message", "id": id, "role": "assistant", "status": status,
        "content": [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]})
}

/// A tool whose input is text is called with it as it is, by the name Codex gives its own.
fn call_item(id: &str, call: &Call, status: &str) -> Value {
    if let Some(text) = call.input.as_str() {
        return json!({"type": "custom_tool_call", "id": id, "call_id": call.id,
            "namespace": "functions", "name": call.name, "input": text, "status": status});
    }
    json!({"type": "function_call", "id": id, "call_id": call.id, "name": call.name,
        "arguments": call.input.to_string(), "status": status})
}

impl Dialect for Voice {
    fn begin(&mut self) -> Vec<String> {
        let response = json!({"response": self.response("in_progress", &[])});
        vec![self.event("response.created", response)]
    }

    fn text(&mut self, piece: &str) -> Vec<String> {
        self.piece(piece, Kind::Text)
    }

    fn thinking(&mut self, piece: &str) -> Vec<String> {
        self.piece(piece, Kind::Thinking)
    }

    fn call(&mut self, call: &Call) -> Vec<String> {
        let mut events = self.close();
        let (index, id) = (self.done.len(), self.item_id());
        let mut begun = call_item(&id, call, "in_progress");
        let whole = call_item(&id, call, "completed");
        if begun["arguments"].is_string() {
            begun["arguments"] = "".into();
        }
        let added = json!({"output_index": index, "item": begun});
        events.push(self.event("response.output_item.added", added));
        if let Some(arguments) = whole["arguments"].as_str() {
            let delta = json!({"item_id": id, "output_index": index, "delta": arguments});
            events.push(self.event("response.function_call_arguments.delta", delta));
            let over = json!({"item_id": id, "output_index": index, "arguments": arguments});
            events.push(self.event("response.function_call_arguments.done", over));
        }
        let done = json!({"output_index": index, "item": whole});
        events.push(self.event("response.output_item.done", done));
        self.done.push(whole);
        events
    }

    fn end(&mut self) -> Vec<String> {
        let mut events = self.close();
        let response = json!({"response": self.response("completed", &self.done)});
        events.push(self.event("response.completed", response));
        events
    }

    fn whole(&self, text: &str, calls: &[Call]) -> Value {
        let id = self.item_id();
        let said = (!text.is_empty()).then(|| message(&id, text, "completed"));
        let calls = calls.iter().map(|call| call_item(&id, call, "completed"));
        let output: Vec<Value> = said.into_iter().chain(calls).collect();
        self.response("completed", &output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_become_answers_and_results() {
        let body = json!({"model": "m", "tools": [{}], "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
            {"type": "reasoning", "summary": []},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]},
            {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "a", "output": "done"},
        ]});
        let asked = read(&body).unwrap();
        let user = Said::User(vec!["go".to_owned()]);
        let model = Said::Model(vec!["a".to_owned()]);
        let result = Said::Result("a".to_owned(), "done".to_owned());
        assert_eq!(asked.said, [user, model, result]);
        assert!(read(&json!({"model": "m"})).is_none());
    }

    #[test]
    fn every_item_that_is_begun_is_ended_and_is_in_the_response() {
        let mut voice = Voice::new(1, "m");
        let mut events = voice.begin();
        events.extend(voice.thinking("hm"));
        events.extend(voice.text("a"));
        events.extend(voice.text("b"));
        let call = Call {
            id: "c".to_owned(),
            name: "f".to_owned(),
            input: json!({"x": 1}),
        };
        events.extend(voice.call(&call));
        events.extend(voice.end());
        let count = |kind: &str| {
            let line = format!("event: {kind}\n");
            events
                .iter()
                .filter(|event| event.starts_with(&line))
                .count()
        };
        assert_eq!(count("response.output_item.added"), 3);
        assert_eq!(count("response.output_item.done"), 3);
        assert_eq!(voice.done[1]["content"][0]["text"], "ab");
        assert!(events.last().unwrap().contains("response.completed"));
    }
}
