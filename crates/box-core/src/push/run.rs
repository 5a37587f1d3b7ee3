//! Looks at what happened, and keeps messages on their way until they are there.

use super::courier::{Delivery, Letter};
use super::encrypt::{self, SALT_BYTES};
use super::endpoint::Endpoint;
use super::front::Watched;
use super::rows::{self, Device, Note, Queued};
use super::tell::{Judged, Told, judge};
use super::{PushError, key, message};
use crate::boxes::reason;
use crate::credentials::VaultError;
use crate::host::Host;
use crate::store::{Durability, StoreError};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

/// How often the tables are looked at for what nobody tells.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long a message is worth telling (C113).
pub(super) const TTL_MS_MAX: i64 = 12 * 3_600_000;
/// Waits between tries; the last one is repeated.
const PAUSES_MS: [i64; 6] = [5_000, 30_000, 120_000, 600_000, 1_800_000, 3_600_000];
/// Browsers that are written to at once.
const FLYING_MAX: usize = 16;

/// For as long as the host lives.
pub async fn run(host: Arc<Host>) {
    let (mut told, mut front) = (host.people.listen(), host.push.front.changed());
    let mut every = interval(LOOK_EVERY);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut flight = Flight::default();
    loop {
        if let Err(error) = look(&host, &mut flight).await {
            tracing::warn!(error = reason(&error), "what happened could not be told");
        }
        tokio::select! {
            _ = every.tick() => {}
            _ = told.recv() => {}
            _ = front.changed() => {}
            Some(landed) = flight.tasks.join_next() => {
                if let Ok(sign_in) = landed {
                    flight.busy.remove(&sign_in);
                } else {
                    // Which one is not said; none is left out for long.
                    flight.busy.clear();
                }
            }
        }
    }
}

/// Messages that are being handed over, one for each browser.
#[derive(Default)]
struct Flight {
    tasks: JoinSet<String>,
    busy: HashSet<String>,
}

async fn look(host: &Arc<Host>, flight: &mut Flight) -> Result<(), StoreError> {
    let now_ms = host.now_ms();
    let is_work = host.store.read(move |tables| rows::is_work(tables, now_ms));
    if !is_work.await? {
        return Ok(());
    }
    sort(host).await?;
    launch(host, flight).await
}

/// Notes become messages, or nothing.
pub(super) async fn sort(host: &Host) -> Result<(), StoreError> {
    let now_ms = host.now_ms();
    let settle_ms = i64::from(host.settings.push.settle_s.value) * 1000;
    let read = host.store.read(move |tables| {
        let judged = rows::notes(tables)?.into_iter().map(|note| {
            let judged = judge(tables, &note, (now_ms, settle_ms));
            (note, judged)
        });
        let judged: Vec<(Note, rusqlite::Result<Judged>)> = judged.collect();
        let stale = rows::is_stale(tables, now_ms)?;
        Ok((judged, rows::devices(tables, now_ms)?, stale))
    });
    let (judged, devices, stale) = read.await?;
    let mut done = Vec::new();
    for (note, judged) in judged {
        match judged {
            Ok(Judged::NotYet) => {}
            Ok(Judged::Over) => done.push((note, None)),
            Ok(Judged::Tell(told)) => match watched(host, &told, &note, now_ms) {
                Watched::Perhaps => {}
                Watched::Seen => done.push((note, None)),
                Watched::Nobody => done.push((note, Some(told))),
            },
            Err(error) => {
                tracing::warn!(%error, "something that happened cannot be read");
                done.push((note, None));
            }
        }
    }
    if done.is_empty() && !stale {
        return Ok(());
    }
    let write = host.store.write(Durability::Prompt, move |tables| {
        rows::drop_stale(tables, now_ms)?;
        for (note, told) in &done {
            rows::drop_note(tables, note)?;
            let Some(told) = told else { continue };
            for device in devices.iter().filter(|device| device.owner == told.owner) {
                let body = message::for_device(&told.message, device);
                rows::enqueue(
                    tables,
                    (&device.sign_in, &told.message.topic),
                    (&body, told.decision),
                    (now_ms, note.at_ms.max(now_ms - TTL_MS_MAX) + TTL_MS_MAX),
                )?;
            }
        }
        Ok(())
    });
    write.await
}

fn watched(host: &Host, told: &Told, note: &Note, now_ms: i64) -> Watched {
    told.thread.map_or(Watched::Nobody, |thread| {
        let front = &host.push.front;
        front.watched((told.owner, thread), note.at_ms, now_ms)
    })
}

async fn launch(host: &Arc<Host>, flight: &mut Flight) -> Result<(), StoreError> {
    let now_ms = host.now_ms();
    let due = host.store.read(move |tables| rows::due(tables, now_ms));
    for queued in due.await? {
        if flight.busy.len() >= FLYING_MAX {
            break;
        }
        if !flight.busy.insert(queued.sign_in.clone()) {
            continue;
        }
        let host = Arc::clone(host);
        flight.tasks.spawn(async move {
            let sign_in = queued.sign_in.clone();
            if let Err(error) = send(&host, queued).await {
                tracing::warn!(error = reason(&error), "a message stays on its way");
            }
            sign_in
        });
    }
    Ok(())
}

/// Hands one message over and writes down what became of it.
pub(super) async fn send(host: &Host, queued: Queued) -> Result<(), StoreError> {
    let (sign_in, now_ms) = (queued.sign_in.clone(), host.now_ms());
    let found = host
        .store
        .read(move |tables| rows::device(tables, &sign_in, now_ms))
        .await?;
    let Some(device) = found else {
        return Ok(());
    };
    let left_ms = queued.ends_at_ms - host.now_ms();
    let letter = seal(host, &device, (&queued.body, &queued.topic), left_ms).await;
    let delivery = match letter {
        Ok(letter) => host.push.courier().carry(host, letter).await,
        Err(why) => Delivery::Later { why, after_s: None },
    };
    tracing::debug!(
        sign_in = device.sign_in,
        ?delivery,
        "a browser was written to"
    );
    note_outcome(host, &device.sign_in, &delivery).await?;
    let (id, now_ms) = (queued.id, host.now_ms());
    let next_at_ms = now_ms + pause_ms(queued.tries, &delivery);
    host.store
        .write(Durability::Prompt, move |tables| match delivery {
            Delivery::Taken(_) | Delivery::Refused { .. } | Delivery::Gone(_) => {
                rows::drop_queued(tables, id)
            }
            Delivery::Later { .. } => rows::postpone(tables, id, next_at_ms),
        })
        .await
}

/// How long until the next try.
fn pause_ms(tries: u32, delivery: &Delivery) -> i64 {
    let last = PAUSES_MS[PAUSES_MS.len() - 1];
    let usual = usize::try_from(tries)
        .ok()
        .and_then(|tries| PAUSES_MS.get(tries).copied())
        .unwrap_or(last);
    match delivery {
        Delivery::Later {
            after_s: Some(after_s),
            ..
        } => usual.max(i64::from(*after_s) * 1000).min(last),
        Delivery::Later { .. }
        | Delivery::Taken(_)
        | Delivery::Gone(_)
        | Delivery::Refused { .. } => usual,
    }
}

/// A message as it goes out; `Err` says why not, to a person.
pub(super) async fn seal(
    host: &Host,
    device: &Device,
    (body, topic): (&str, &str),
    left_ms: i64,
) -> Result<Letter, String> {
    let key = match key::existing(host).await {
        Ok(Some(key)) if key.public() == device.key => key,
        Ok(Some(_) | None) | Err(PushError::Vault(VaultError::KeyGone)) => {
            return Err("the key it subscribed with is gone; open the page there once".to_owned());
        }
        Err(error) => return Err(reason(&error)),
    };
    let endpoint = Endpoint::parse(&device.endpoint).map_err(|error| reason(&error))?;
    let subject = host.settings.push.subject_for(&device.origin);
    let authorization = key
        .authorization(&endpoint, &subject, host.now_ms())
        .map_err(|error| reason(&error))?;
    let salt = host.random.bytes::<SALT_BYTES>();
    let body = encrypt::encrypt(&device.keys, body.as_bytes(), salt);
    Ok(Letter {
        endpoint: device.endpoint.clone(),
        body: body.map_err(|error| reason(&error))?,
        authorization,
        ttl_s: u32::try_from(left_ms / 1000).unwrap_or_default(),
        topic: topic.to_owned(),
    })
}

/// What is said of a browser after a message; one that is gone is told no more (C117).
pub(super) async fn note_outcome(
    host: &Host,
    sign_in: &str,
    delivery: &Delivery,
) -> Result<(), StoreError> {
    let (sign_in, delivery, now_ms) = (sign_in.to_owned(), delivery.clone(), host.now_ms());
    host.store
        .write(Durability::Prompt, move |tables| match &delivery {
            Delivery::Taken(_) => rows::mark(tables, &sign_in, (Some(now_ms), None)),
            Delivery::Gone(_) => rows::drop_device(tables, &sign_in).map(drop),
            Delivery::Later { why, .. } | Delivery::Refused { why } => {
                rows::mark(tables, &sign_in, (None, Some(why)))
            }
        })
        .await
}
