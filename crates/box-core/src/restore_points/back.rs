//! Conversations go back with the files.

use super::rows::{self, Stood};
use crate::boxes;
use crate::host::Host;
use crate::thread::GoneBack;
use box_api::{BoxId, Label};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Brings the threads of a box to where they stood when the snapshot was taken. Its files are the
/// snapshot's and nothing of it runs. A thread that cannot be reached is told in the log: its agent
/// then finds out by itself that it knows less.
pub(crate) async fn go_back(host: &Arc<Host>, box_id: BoxId, label: &Label) {
    let noted = label.clone();
    let read = host.store.read(move |tables| {
        let then = rows::stood(tables, &box_id, &noted)?;
        Ok((then, rows::stand(tables, &box_id)?))
    });
    let (then, now) = match read.await {
        Ok((Some(then), now)) => (then, now),
        // Taken when nobody wrote that down.
        Ok((None, _)) => return,
        Err(error) => {
            let why = boxes::reason(&error);
            return tracing::error!(%box_id, why, "conversations were not brought back");
        }
    };
    for (thread, gone) in changed(then, now) {
        let told = match host.threads.handle(host, thread.thread).await {
            Ok(handle) => handle.go_back(gone.with(label)).await,
            Err(error) => Err(error),
        };
        if let Err(error) = told {
            let why = boxes::reason(&error);
            tracing::error!(%box_id, thread = %thread.thread, why, "a conversation was not brought back");
        }
    }
}

/// Where a thread goes.
struct Going {
    before: u64,
    known_as: Option<String>,
}

impl Going {
    fn with(self, label: &Label) -> GoneBack {
        GoneBack {
            before: self.before,
            known_as: self.known_as,
            snapshot: label.to_string(),
        }
    }
}

/// The threads that have gone on since. One begun since goes back to its beginning.
fn changed(then: Vec<Stood>, now: Vec<Stood>) -> Vec<(Stood, Going)> {
    let mut then: BTreeMap<_, _> = then.into_iter().map(|one| (one.thread, one)).collect();
    let going = now.into_iter().filter_map(|now| {
        let going = match then.remove(&now.thread) {
            // A journal that was built anew has other numbers: it can only be told at its end.
            Some(then) if then.epoch != now.epoch => Going {
                before: now.before,
                known_as: then.known_as,
            },
            Some(then) if then == now => return None,
            Some(then) => Going {
                before: then.before,
                known_as: then.known_as,
            },
            None => Going {
                before: 1,
                known_as: None,
            },
        };
        Some((now, going))
    });
    going.collect()
}
