//! Google's `generateContent` and its stream (ai.google.dev/api/generate-content).

use super::asked::{Asked, Said};
use super::voice::{Call, Dialect};
use serde_json::{Value, json};

/// A request's body; `None`: no contents. The model is named in the path. Calls have no id there,
/// so a result belongs to the call of its function.
pub(crate) fn read(model: &str, body: &Value) -> Option<Asked> {
    let mut asked = Asked {
        model: model.to_owned(),
        has_tools: body["tools"]
            .as_array()
            .is_some_and(|tools| !tools.is_empty()),
        said: Vec::new(),
    };
    for content in body["contents"].as_array()? {
        let parts = content["parts"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        if content["role"] == "model" {
            asked.model_said(None);
            for part in parts {
                asked.model_said(part["functionCall"]["name"].as_str().map(str::to_owned));
            }
            continue;
        }
        let mut texts = Vec::new();
        for part in parts {
            if let Some(name) = part["functionResponse"]["name"].as_str() {
                let response = part["functionResponse"]["response"].to_string();
                asked.said.push(Said::Result(name.to_owned(), response));
            } else if let Some(text) = part["text"].as_str() {
                texts.push(text.to_owned());
            }
        }
        if !texts.is_empty() {
            asked.said.push(Said::User(texts));
        }
    }
    Some(asked)
}

/// One answer.
pub(crate) struct Voice {
    id: String,
    model: String,
}

impl Voice {
    pub(crate) fn new(number: u64, model: &str) -> Self {
        Self {
            id: format!("rig{number:020}"),
            model: model.to_owned(),
        }
    }

    fn answer(&self, parts: &Value, finish: Option<&str>) -> Value {
        let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
        if let Some(finish) = finish {
            candidate["finishReason"] = finish.into();
        }
        let usage = json!({"promptTokenCount": 100, "candidatesTokenCount": 20,
            "totalTokenCount": 120});
        json!({"candidates": [candidate], "usageMetadata": usage, "modelVersion": self.model,
            "responseId": self.id})
    }

    fn event(&self, part: &Value) -> Vec<String> {
        vec![format!("data: {}\n\n", self.answer(&json!([part]), None))]
    }
}

fn part_of(call: &Call) -> Value {
    json!({"functionCall": {"name": call.name, "args": call.input}})
}

impl Dialect for Voice {
    fn begin(&mut self) -> Vec<String> {
        Vec::new()
    }

    fn text(&mut self, piece: &str) -> Vec<String> {
        self.event(&json!({ "text": piece }))
    }

    fn thinking(&mut self, piece: &str) -> Vec<String> {
        self.event(&json!({"text": piece, "thought": true}))
    }

    fn call(&mut self, call: &Call) -> Vec<String> {
        self.event(&part_of(call))
    }

    fn end(&mut self) -> Vec<String> {
        let last = self.answer(&json!([{"text": ""}]), Some("STOP"));
        vec![format!("data: {last}\n\n")]
    }

    fn whole(&self, text: &str, calls: &[Call]) -> Value {
        let said = (!text.is_empty()).then(|| json!({ "text": text }));
        let parts: Value = said.into_iter().chain(calls.iter().map(part_of)).collect();
        self.answer(&parts, Some("STOP"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_become_answers_and_results() {
        let body = json!({"tools": [{}], "contents": [
            {"role": "user", "parts": [{"text": "go"}]},
            {"role": "model", "parts": [{"text": "ok"}, {"functionCall": {"name": "f"}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": 1}}}]},
        ]});
        let asked = read("m", &body).unwrap();
        assert_eq!(
            asked.said,
            [
                Said::User(vec!["go".to_owned()]),
                Said::Model(vec!["f".to_owned()]),
                Said::Result("f".to_owned(), r#"{"output":1}"#.to_owned()),
            ]
        );
        assert!(read("m", &json!({})).is_none());
    }
}
