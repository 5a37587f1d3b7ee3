//! Says the steps of an answer in the words of an API, piece by piece or whole.

use super::script::Step;
use super::stream::pieces;
use crate::rig::{AnswerBody, internet::Internet, site};
use bytes::Bytes;
use http::Response;
use serde_json::Value;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::mpsc;

/// A call of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    /// No other call has it.
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) input: Value,
}

/// How an API words a stream; each gives the events of one step, whole, in order.
pub(crate) trait Dialect {
    fn begin(&mut self) -> Vec<String>;
    fn text(&mut self, piece: &str) -> Vec<String>;
    fn thinking(&mut self, piece: &str) -> Vec<String>;
    fn call(&mut self, call: &Call) -> Vec<String>;
    fn end(&mut self) -> Vec<String>;
    /// The answer to a request that wants no stream.
    fn whole(&self, text: &str, calls: &[Call]) -> Value;
}

/// The answer in one piece; gates and paces do not count.
pub(crate) fn whole(internet: &Internet, dialect: &impl Dialect, steps: &[Step]) -> Value {
    let (mut text, mut calls) = (String::new(), Vec::new());
    for step in steps {
        match step {
            Step::Text(more) => text.push_str(more),
            Step::ToolUse { name, input } => calls.push(made(internet, name, input)),
            Step::Thinking(_)
            | Step::Gate(_)
            | Step::Pace(_)
            | Step::Hang
            | Step::Cut
            | Step::Fail { .. } => {}
        }
    }
    dialect.whole(&text, &calls)
}

/// Streams the steps as server-sent events.
pub(crate) fn start(
    internet: &Rc<Internet>,
    dialect: impl Dialect + 'static,
    steps: Vec<Step>,
) -> Response<AnswerBody> {
    let (body, sent) = site::streamed();
    let mut speaker = Speaker {
        internet: Rc::clone(internet),
        sent,
        dialect,
        pace: None,
    };
    tokio::task::spawn_local(async move {
        // None: the client left, or the script cut the stream.
        let _said = speaker.speak(&steps).await;
    });
    let mut response = Response::new(body);
    let kind = http::HeaderValue::from_static("text/event-stream; charset=utf-8");
    response
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, kind);
    response
}

fn made(internet: &Internet, name: &str, input: &Value) -> Call {
    let number = internet.with(|world| world.model.next_id());
    Call {
        id: format!("call_rig{number:020}"),
        name: name.to_owned(),
        input: input.clone(),
    }
}

struct Speaker<D> {
    internet: Rc<Internet>,
    sent: mpsc::Sender<Bytes>,
    dialect: D,
    pace: Option<Duration>,
}

impl<D: Dialect> Speaker<D> {
    async fn speak(&mut self, steps: &[Step]) -> Option<()> {
        let begin = self.dialect.begin();
        self.send(begin).await?;
        for step in steps {
            match step {
                Step::Text(text) => self.say(text, D::text).await?,
                Step::Thinking(text) => self.say(text, D::thinking).await?,
                Step::ToolUse { name, input } => {
                    let call = made(&self.internet, name, input);
                    let events = self.dialect.call(&call);
                    self.send(events).await?;
                }
                Step::Gate(gate) => pass(&self.internet, &self.sent, gate).await,
                Step::Pace(gap) => self.pace = Some(*gap),
                Step::Hang => self.sent.closed().await,
                Step::Cut => return None,
                Step::Fail { .. } => {}
            }
        }
        let end = self.dialect.end();
        self.send(end).await
    }

    async fn say(&mut self, text: &str, word: fn(&mut D, &str) -> Vec<String>) -> Option<()> {
        for piece in pieces(text) {
            if let Some(pace) = self.pace {
                tokio::time::sleep(pace).await;
            }
            let events = word(&mut self.dialect, &piece);
            self.send(events).await?;
        }
        Some(())
    }

    async fn send(&self, events: Vec<String>) -> Option<()> {
        for event in events {
            self.sent.send(Bytes::from(event)).await.ok()?;
        }
        Some(())
    }
}

/// Waits at a gate until the test opens it or the client leaves.
pub(crate) async fn pass(internet: &Internet, sent: &mpsc::Sender<Bytes>, gate: &str) {
    internet.with(|world| {
        world.note(format!("model: at gate {gate}"));
        world
            .model
            .gates
            .entry(gate.to_owned())
            .or_default()
            .reached += 1;
    });
    let is_open = internet.until(|world| {
        world
            .model
            .gates
            .get(gate)
            .filter(|gate| gate.open)
            .map(|_| ())
    });
    tokio::select! {
        () = is_open => {}
        () = sent.closed() => {}
    }
}
