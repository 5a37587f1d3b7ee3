//! Says a message, event by event or whole.

use super::script::Step;
use super::voice;
use crate::rig::{AnswerBody, internet::Internet, site};
use bytes::Bytes;
use http::Response;
use serde_json::{Value, json};
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::mpsc;

/// About a word or two, so that a stream is one.
const PIECE_CHARS: usize = 12;

/// Streams the steps as server-sent events.
pub(crate) fn start(
    internet: &Rc<Internet>,
    model: String,
    steps: Vec<Step>,
) -> Response<AnswerBody> {
    let (body, pieces) = site::streamed();
    let internet = Rc::clone(internet);
    tokio::task::spawn_local(async move {
        let ids = Ids::take(&internet);
        let mut speaker = Speaker {
            internet,
            pieces,
            ids,
            open: None,
            next: 0,
            pace: None,
        };
        // None: the client left, or the script cut the stream.
        let _said = speaker.speak(&model, &steps).await;
    });
    let mut response = Response::new(body);
    let kind = http::HeaderValue::from_static("text/event-stream; charset=utf-8");
    response
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, kind);
    response
}

/// The message in one piece; gates and paces do not count.
pub(crate) fn whole(internet: &Internet, model: &str, steps: &[Step]) -> Value {
    let ids = Ids::take(internet);
    let mut message = empty(&ids, model);
    let content: Vec<Value> = steps
        .iter()
        .enumerate()
        .filter_map(|(place, step)| match step {
            Step::Text(text) => Some(json!({"type": "text", "text": text})),
            Step::Thinking(text) => {
                Some(json!({"type": "thinking", "thinking": text, "signature": "rig"}))
            }
            Step::ToolUse { name, input } => Some(
                json!({"type": "tool_use", "id": ids.tool(place), "name": name, "input": input}),
            ),
            Step::Gate(_) | Step::Pace(_) | Step::Hang | Step::Cut | Step::Fail { .. } => None,
        })
        .collect();
    message["content"] = content.into();
    message["stop_reason"] = stop_reason(steps).into();
    message
}

struct Ids(u64);

impl Ids {
    fn take(internet: &Internet) -> Self {
        Self(internet.with(|world| world.model.next_id()))
    }

    fn message(&self) -> String {
        format!("msg_rig{:020}", self.0)
    }

    fn tool(&self, place: usize) -> String {
        format!("toolu_rig{:016}{place:04}", self.0)
    }
}

fn empty(ids: &Ids, model: &str) -> Value {
    json!({
        "id": ids.message(), "type": "message", "role": "assistant", "model": model,
        "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": 100, "cache_creation_input_tokens": 0,
                  "cache_read_input_tokens": 0, "output_tokens": 1},
    })
}

fn stop_reason(steps: &[Step]) -> &'static str {
    if steps
        .iter()
        .any(|step| matches!(step, Step::ToolUse { .. }))
    {
        "tool_use"
    } else {
        "end_turn"
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    Text,
    Thinking,
    Tool,
}

struct Speaker {
    internet: Rc<Internet>,
    pieces: mpsc::Sender<Bytes>,
    ids: Ids,
    open: Option<Block>,
    /// Index of the next block.
    next: usize,
    pace: Option<Duration>,
}

impl Speaker {
    async fn speak(&mut self, model: &str, steps: &[Step]) -> Option<()> {
        let message = empty(&self.ids, model);
        self.event(json!({"type": "message_start", "message": message}))
            .await?;
        self.event(json!({"type": "ping"})).await?;
        for (place, step) in steps.iter().enumerate() {
            self.step(place, step).await?;
        }
        self.close().await?;
        let delta = json!({"stop_reason": stop_reason(steps), "stop_sequence": null});
        let usage = json!({"output_tokens": 20});
        self.event(json!({"type": "message_delta", "delta": delta, "usage": usage}))
            .await?;
        self.event(json!({"type": "message_stop"})).await
    }

    async fn step(&mut self, place: usize, step: &Step) -> Option<()> {
        match step {
            Step::Text(text) => {
                self.open(Block::Text, json!({"type": "text", "text": ""}))
                    .await?;
                for piece in pieces(text) {
                    self.delta(json!({"type": "text_delta", "text": piece}))
                        .await?;
                }
            }
            Step::Thinking(text) => {
                let block = json!({"type": "thinking", "thinking": "", "signature": ""});
                self.open(Block::Thinking, block).await?;
                for piece in pieces(text) {
                    self.delta(json!({"type": "thinking_delta", "thinking": piece}))
                        .await?;
                }
            }
            Step::ToolUse { name, input } => {
                // Two calls are two blocks.
                self.close().await?;
                let id = self.ids.tool(place);
                let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
                self.open(Block::Tool, block).await?;
                for piece in pieces(&input.to_string()) {
                    self.delta(json!({"type": "input_json_delta", "partial_json": piece}))
                        .await?;
                }
            }
            Step::Gate(gate) => voice::pass(&self.internet, &self.pieces, gate).await,
            Step::Pace(gap) => self.pace = Some(*gap),
            Step::Hang => self.pieces.closed().await,
            Step::Cut => return None,
            Step::Fail { .. } => {}
        }
        Some(())
    }

    async fn open(&mut self, block: Block, content: Value) -> Option<()> {
        if self.open == Some(block) && block != Block::Tool {
            return Some(());
        }
        self.close().await?;
        self.open = Some(block);
        let index = self.next;
        let start =
            json!({"type": "content_block_start", "index": index, "content_block": content});
        self.event(start).await
    }

    async fn close(&mut self) -> Option<()> {
        let Some(block) = self.open.take() else {
            return Some(());
        };
        if block == Block::Thinking {
            self.delta(json!({"type": "signature_delta", "signature": "rig"}))
                .await?;
        }
        let index = self.next;
        self.next += 1;
        self.event(json!({"type": "content_block_stop", "index": index}))
            .await
    }

    async fn delta(&mut self, delta: Value) -> Option<()> {
        if let Some(pace) = self.pace {
            tokio::time::sleep(pace).await;
        }
        let index = self.next;
        self.event(json!({"type": "content_block_delta", "index": index, "delta": delta}))
            .await
    }

    async fn event(&mut self, data: Value) -> Option<()> {
        let name = data["type"].as_str().unwrap_or_default();
        let event = format!("event: {name}\ndata: {data}\n\n");
        self.pieces.send(Bytes::from(event)).await.ok()
    }
}

pub(super) fn pieces(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars
        .chunks(PIECE_CHARS)
        .map(|piece| piece.iter().collect())
        .collect()
}
