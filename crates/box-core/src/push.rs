//! Web Push: a browser is told what happens while nobody looks (C110–C117).
//!
//! What happens is noted by the tables themselves, in the commit in which it happens. [`run`] looks
//! at the notes: what somebody has in front of them, what is answered or goes on by now is dropped
//! ([`tell`]); the rest becomes a message for each of the owner's browsers, on a queue in the tables.
//! Messages are encrypted for the browser (RFC 8291), signed by the host's key (RFC 8292) and handed
//! to the browser's push service, which can read none of it.

mod courier;
mod dial;
mod encrypt;
mod endpoint;
mod front;
mod key;
mod message;
mod rows;
mod run;
mod tell;
#[cfg(test)]
mod tests;

pub use courier::{Courier, Delivery, Letter};
pub use encrypt::EncryptError;
pub use endpoint::EndpointError;
pub use front::{Front, Seat};
pub use key::KeyError;
pub use run::run;

use crate::caller::Caller;
use crate::credentials::VaultError;
use crate::host::Host;
use crate::sign_ins;
use crate::store::{Durability, StoreError};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use box_api::page::{PushAsk, PushDevice, PushHop, PushState, PushTested, Tint};
use courier::Internet;
use encrypt::Keys;
use endpoint::Endpoint;
use rows::Device;
use std::sync::Arc;
use tokio::sync::{Mutex, watch};

/// The part of it that is not in the tables. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Push {
    /// Who has what in front of them.
    pub front: Front,
    courier: Arc<watch::Sender<Arc<dyn Courier>>>,
    /// One at a time makes the key.
    making: Arc<Mutex<()>>,
}

impl Default for Push {
    fn default() -> Self {
        Self {
            front: Front::default(),
            courier: Arc::new(watch::Sender::new(Arc::new(Internet))),
            making: Arc::default(),
        }
    }
}

impl Push {
    /// From now on messages are handed over in another way than over the internet.
    pub fn deliver_through(&self, courier: Arc<dyn Courier>) {
        self.courier.send_replace(courier);
    }

    fn courier(&self) -> Arc<dyn Courier> {
        self.courier.borrow().clone()
    }
}

/// Why a browser is not told.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    #[error("could not use the address of this subscription: {0}")]
    Endpoint(#[from] EndpointError),
    #[error("could not use the keys of this subscription: {0}")]
    Keys(#[from] EncryptError),
    #[error("this page has no origin that notifications could lead to")]
    Origin,
    #[error("there is no browser `{0}` that is told")]
    Unknown(String),
    #[error("only a paired browser can be told")]
    NotPaired,
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(transparent)]
    Vault(#[from] VaultError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Who is told, as the browser `own` sees it.
///
/// # Errors
/// What the store said.
pub async fn state(host: &Host, caller: &Caller, own: &str) -> Result<PushState, StoreError> {
    let (sign_ins, caller) = (sign_ins::list(host, caller).await?, *caller);
    let (own, now_ms) = (own.to_owned(), host.now_ms());
    let settle_s = host.settings.push.settle_s.value;
    host.store
        .read(move |tables| {
            let mut devices = Vec::new();
            for device in rows::devices(tables, now_ms)? {
                let known = sign_ins.iter().find(|one| one.id == device.sign_in);
                if let Some(known) = known.filter(|known| caller.may(&known.owner)) {
                    devices.push(shown(tables, &device, &known.agent)?);
                }
            }
            Ok(PushState {
                key: rows::key(tables)?.map(|kept| URL_SAFE_NO_PAD.encode(kept.public)),
                devices,
                own,
                settle_s,
            })
        })
        .await
}

/// The host's key for subscriptions, made when there is none that opens.
///
/// # Errors
/// [`PushError::Vault`]: it is locked with a passphrase.
pub async fn public_key(host: &Host) -> Result<String, PushError> {
    let key = key::ensure(host).await?;
    Ok(URL_SAFE_NO_PAD.encode(key.public()))
}

/// Takes a browser's subscription; the one before is forgotten. `origin` is that of its page.
///
/// # Errors
/// [`PushError`]
pub async fn subscribe(
    host: &Host,
    caller: &Caller,
    (sign_in, origin): (&str, &str),
    asked: PushAsk,
) -> Result<PushDevice, PushError> {
    let endpoint = Endpoint::parse(&asked.endpoint)?;
    let keys = Keys::parse(&asked.p256dh, &asked.auth)?;
    let is_page = origin.starts_with("https://") || origin.starts_with("http://");
    if !is_page || origin.len() > box_api::page::PUSH_ENDPOINT_BYTES_MAX {
        return Err(PushError::Origin);
    }
    let known = sign_ins::list(host, caller).await?;
    let known = known.into_iter().find(|one| one.id == sign_in);
    let known = known.ok_or(PushError::NotPaired)?;
    let key = key::ensure(host).await?;
    let device = Device {
        sign_in: sign_in.to_owned(),
        owner: known.owner,
        endpoint: endpoint.as_str().to_owned(),
        keys,
        key: key.public().to_vec(),
        origin: origin.to_owned(),
        names_only: asked.names_only,
        made_at_ms: host.now_ms(),
        told_at_ms: None,
        problem: None,
    };
    let kept = host.store.write(Durability::Full, move |tables| {
        rows::put_device(tables, &device)?;
        shown(tables, &device, &known.agent)
    });
    Ok(kept.await?)
}

/// A browser of the caller's is told no more.
///
/// # Errors
/// [`PushError::Unknown`]
pub async fn unsubscribe(host: &Host, caller: &Caller, sign_in: &str) -> Result<(), PushError> {
    let unknown = || PushError::Unknown(sign_in.to_owned());
    let known = sign_ins::list(host, caller).await?;
    if !known.iter().any(|one| one.id == sign_in) {
        return Err(unknown());
    }
    let gone = sign_in.to_owned();
    let removed = host
        .store
        .write(Durability::Full, move |tables| {
            rows::drop_device(tables, &gone)
        })
        .await?;
    if removed { Ok(()) } else { Err(unknown()) }
}

/// Sends a message to the browser itself at once, and says what became of it at every hop.
///
/// # Errors
/// [`PushError::Unknown`]: it is not told at all.
pub async fn test(host: &Arc<Host>, sign_in: &str) -> Result<PushTested, PushError> {
    let (wanted, now_ms) = (sign_in.to_owned(), host.now_ms());
    let found = host
        .store
        .read(move |tables| rows::device(tables, &wanted, now_ms))
        .await?;
    let device = found.ok_or_else(|| PushError::Unknown(sign_in.to_owned()))?;
    let tag = format!("test-{}", host.now_ms());
    let endpoint = Endpoint::parse(&device.endpoint)?;
    let mut hops = vec![hop(
        "subscribed",
        Tint::Good,
        format!("this browser is reached through `{}`", endpoint.host()),
    )];
    let body = message::of_test(&device, &tag);
    let letter = match run::seal(host, &device, (&body, &tag), run::TTL_MS_MAX).await {
        Ok(letter) => letter,
        Err(why) => {
            hops.push(hop("encrypted", Tint::Bad, why));
            return Ok(PushTested { hops, tag });
        }
    };
    let text = format!("for this browser alone, {} bytes", letter.body.len());
    hops.push(hop("encrypted", Tint::Good, text));
    let delivery = host.push.courier().carry(host, letter).await;
    let (tint, text) = match &delivery {
        Delivery::Taken(status) => (Tint::Good, format!("it answered {status}: taken")),
        Delivery::Gone(status) => (
            Tint::Bad,
            format!("it answered {status}: it does not know this browser any more"),
        ),
        Delivery::Later { why, .. } | Delivery::Refused { why } => (Tint::Bad, why.clone()),
    };
    hops.push(hop("push service", tint, text));
    run::note_outcome(host, &device.sign_in, &delivery).await?;
    Ok(PushTested { hops, tag })
}

fn hop(what: &str, tint: Tint, text: String) -> PushHop {
    PushHop {
        what: what.to_owned(),
        tint,
        text,
    }
}

fn shown(
    tables: &rusqlite::Connection,
    device: &Device,
    agent: &str,
) -> rusqlite::Result<PushDevice> {
    let service = Endpoint::parse(&device.endpoint).map(|endpoint| endpoint.host().to_owned());
    Ok(PushDevice {
        sign_in: device.sign_in.clone(),
        agent: agent.to_owned(),
        service: service.unwrap_or_default(),
        names_only: device.names_only,
        made_at_ms: device.made_at_ms,
        told_at_ms: device.told_at_ms,
        waiting: rows::waiting(tables, &device.sign_in)?,
        problem: device.problem.clone(),
    })
}
