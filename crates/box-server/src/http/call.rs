//! One request of somebody who is known: its parts, and how it is carried out.

use super::Web;
use super::answer::Answer;
use crate::control::carry_out;
use crate::control::client::{Client, PageWire, Spoken};
use crate::problem;
use box_api::control::{Outcome, Request};
use box_api::{BoxId, BoxName, Problem, ThreadId};
use box_core::boxes::{self, BoxRecord};
use box_core::caller::Caller;
use box_core::host::Host;
use box_core::thread::{ThreadError, ThreadHandle};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap};
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Largest JSON body, bytes.
const BODY_BYTES_MAX: usize = 1 << 20;
/// Longest a body may take.
const BODY_DEADLINE: Duration = Duration::from_mins(1);

/// What an endpoint comes to.
pub(super) type Called = Result<Answer, Problem>;

/// A request.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) web: Arc<Web>,
    pub(super) caller: Caller,
    /// The sign-in it came with.
    pub(super) sign_in: String,
    /// The name and port it came to.
    pub(super) at: String,
    /// What stands in the path where the route has a name in braces, in order.
    pub(super) names: Vec<String>,
    pub(super) query: Vec<(String, String)>,
    pub(super) headers: HeaderMap,
    pub(super) body: Incoming,
}

impl Call {
    pub(super) fn host(&self) -> &Arc<Host> {
        &self.web.door.host
    }

    /// Does it as the control socket does. What was begun is finished, also when the browser goes.
    pub(super) async fn ask(&self, request: Request) -> Result<Outcome, Problem> {
        self.ask_with(request, PageWire::default()).await
    }

    pub(super) async fn ask_with(
        &self,
        request: Request,
        wire: PageWire,
    ) -> Result<Outcome, Problem> {
        ask(&self.web, self.caller, request, wire).await
    }

    /// The body, as JSON that says it is.
    pub(super) async fn json<T: DeserializeOwned>(&mut self) -> Result<T, Problem> {
        let is_json = self
            .headers
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .is_some_and(|value| {
                value.split(';').next().map(str::trim) == Some("application/json")
            });
        if !is_json {
            return Err(problem::body(
                "it does not say that it is `application/json`",
            ));
        }
        let bytes = self.bytes().await?;
        serde_json::from_slice(&bytes).map_err(|error| problem::body(&error.to_string()))
    }

    /// As [`Self::json`]; no body at all means the defaults.
    pub(super) async fn json_or_default<T: DeserializeOwned + Default>(
        &mut self,
    ) -> Result<T, Problem> {
        if self.headers.contains_key(CONTENT_TYPE) {
            self.json().await
        } else {
            Ok(T::default())
        }
    }

    async fn bytes(&mut self) -> Result<Bytes, Problem> {
        let whole = Limited::new(&mut self.body, BODY_BYTES_MAX).collect();
        let whole = timeout(BODY_DEADLINE, whole)
            .await
            .map_err(|_| problem::body("it took too long"))?;
        let whole = whole.map_err(|error| problem::body(&error.to_string()))?;
        Ok(whole.to_bytes())
    }

    /// The name in braces at `place`, parsed.
    pub(super) fn name<T>(&self, place: usize) -> Result<T, Problem>
    where
        T: std::str::FromStr<Err: std::fmt::Display>,
    {
        let text = self.names.get(place).map_or("", String::as_str);
        text.parse()
            .map_err(|error: T::Err| problem::body(&error.to_string()))
    }

    /// The value of a key of the query, parsed; absent when it is not there.
    pub(super) fn asked<T>(&self, key: &str) -> Result<Option<T>, Problem>
    where
        T: std::str::FromStr<Err: std::fmt::Display>,
    {
        let found = self.query.iter().find(|(name, _)| name == key);
        let parsed = found.map(|(_, value)| value.parse::<T>());
        parsed
            .transpose()
            .map_err(|error| problem::body(&format!("`{key}`: {error}")))
    }

    /// The caller's box that the first name in braces means, by its id or by its name.
    pub(super) async fn box_named(&self) -> Result<BoxRecord, Problem> {
        let text = self.names.first().map_or("", String::as_str);
        let host = self.host();
        let id = BoxId::parse(text).ok();
        let by_id = match id {
            Some(id) => visible(host, &self.caller, id).await?,
            None => None,
        };
        if let Some(record) = by_id {
            return sole(host, &self.caller, record).await;
        }
        let name = BoxName::parse(text).map_err(|error| match id {
            // An id need not look like a name to be one that nobody has.
            Some(id) => problem::no_box(id),
            None => problem::body(&error.to_string()),
        })?;
        boxes::find(host, &self.caller, &name)
            .await
            .map_err(problem::find)
    }

    pub(super) async fn box_name(&self) -> Result<BoxName, Problem> {
        Ok(self.box_named().await?.name)
    }

    /// The caller's thread that the first name in braces means, with its box.
    pub(super) async fn thread_named(&self) -> Result<(ThreadHandle, BoxRecord), Problem> {
        let thread: ThreadId = self.name(0)?;
        thread_of(self.host(), &self.caller, thread).await
    }
}

/// As [`Call::ask`], for whoever has no request.
pub(super) async fn ask(
    web: &Arc<Web>,
    caller: Caller,
    request: Request,
    wire: PageWire,
) -> Result<Outcome, Problem> {
    let door = web.door.clone();
    let task = tokio::spawn(async move {
        let mut client = Client::page(wire);
        carry_out(&door, &caller, &mut client, request).await
    });
    task.await.map_err(problem::ending)?
}

/// For whoever hears every reply and speaks meanwhile. It ends with its caller.
pub(super) async fn ask_speaking(
    web: &Arc<Web>,
    caller: Caller,
    request: Request,
    spoken: Spoken,
) -> Result<Outcome, Problem> {
    let mut client = Client::spoken(spoken);
    carry_out(&web.door, &caller, &mut client, request).await
}

/// A thread of the caller's, whose box is there.
pub(super) async fn thread_of(
    host: &Arc<Host>,
    caller: &Caller,
    thread: ThreadId,
) -> Result<(ThreadHandle, BoxRecord), Problem> {
    let unknown = || problem::thread(ThreadError::Unknown(thread));
    let handle = host.threads.handle(host, thread).await;
    let handle = handle.map_err(problem::thread)?;
    let record = visible(host, caller, handle.box_id()).await?;
    let record = record.ok_or_else(unknown)?;
    Ok((handle, sole(host, caller, record).await?))
}

async fn visible(host: &Host, caller: &Caller, id: BoxId) -> Result<Option<BoxRecord>, Problem> {
    let all = boxes::list(host, caller).await.map_err(problem::store)?;
    Ok(all.into_iter().find(|record| record.id == id))
}

/// The box, if its name leads to it and not to one of the caller's own.
async fn sole(host: &Host, caller: &Caller, record: BoxRecord) -> Result<BoxRecord, Problem> {
    let named = boxes::find(host, caller, &record.name).await;
    if named.map_err(problem::find)?.id == record.id {
        Ok(record)
    } else {
        Err(problem::ambiguous(record.name.as_str()))
    }
}
