//! Runs the commands secrets come from again: before what they gave expires, as often as was asked,
//! and when box-egress has lost what they gave. One task a host.

use super::rows::{self, CredentialRow};
use super::{add, holds};
use crate::boxes;
use crate::egress::LinkState;
use crate::events;
use crate::host::Host;
use crate::store::{Durability, StoreError};
use box_api::control::{CredentialSource, EventKind};
use box_api::egress::CredentialState;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// How long before its end a secret is renewed, or half its life where that is shorter.
const MARGIN_MS: i64 = 5 * 60 * 1000;
/// After a failure: again after this, and twice that each time.
const RETRY_MS_MIN: i64 = 5_000;
const RETRY_MS_MAX: i64 = 10 * 60 * 1000;
/// Looked at this often in any case, as clocks are set.
const LOOK_EVERY_MS: i64 = 60_000;

/// What came of the last attempts at one credential.
#[derive(Debug, Clone, Copy)]
struct Failed {
    /// Of which secret; a new one starts anew.
    fetched_at_ms: i64,
    times: u32,
    again_at_ms: i64,
}

/// Works until the host ends.
pub async fn run(host: Arc<Host>) {
    let mut failures: HashMap<String, Failed> = HashMap::new();
    let mut link = host.egress.watch();
    loop {
        let is_up = matches!(*link.borrow_and_update(), LinkState::Up { .. });
        let next = if is_up {
            look(&host, &mut failures).await
        } else {
            Ok(LOOK_EVERY_MS)
        };
        let wait_ms = next.unwrap_or_else(|error| {
            tracing::warn!(%error, "credentials are not looked at");
            LOOK_EVERY_MS
        });
        let wait_ms = u64::try_from(wait_ms).unwrap_or(0);
        let until = Instant::now() + Duration::from_millis(wait_ms);
        tokio::select! {
            () = sleep_until(until) => {}
            () = host.vault.changed.notified() => {}
            changed = link.changed() => if changed.is_err() { return },
        }
    }
}

/// Renews what is due; answers when the next thing is, in milliseconds from now.
async fn look(host: &Host, failures: &mut HashMap<String, Failed>) -> Result<i64, StoreError> {
    let Ok(held) = host.egress.credentials().await else {
        return Ok(LOOK_EVERY_MS);
    };
    let all = host.store.read(rows::every).await?;
    failures.retain(|id, _| all.iter().any(|(row, _)| row.id() == *id));
    let mut next_ms = LOOK_EVERY_MS;
    for (row, _) in all {
        let failed = failures.get(&row.id()).copied();
        let failed = failed.filter(|failed| failed.fetched_at_ms == row.fetched_at_ms);
        match due_ms(&row, &held, failed) {
            Some(at_ms) if at_ms <= host.now_ms() => {
                renew(host, row.clone(), failed, failures).await;
                next_ms = next_ms.min(RETRY_MS_MIN);
            }
            Some(at_ms) => next_ms = next_ms.min(at_ms - host.now_ms()),
            None => {}
        }
        match row.expires_at_ms {
            Some(at_ms) if at_ms <= host.now_ms() => end(host, &row, &held).await?,
            Some(at_ms) => next_ms = next_ms.min(at_ms - host.now_ms()),
            None => {}
        }
    }
    Ok(next_ms)
}

/// When a credential's command is to be run; nothing where it has none, or is good for ever.
fn due_ms(row: &CredentialRow, held: &[CredentialState], failed: Option<Failed>) -> Option<i64> {
    let CredentialSource::Command { every_ms, .. } = &row.source else {
        return None;
    };
    if let Some(failed) = failed {
        return Some(failed.again_at_ms);
    }
    if !holds(held, row) {
        return Some(row.fetched_at_ms);
    }
    let asked = every_ms.and_then(|ms| i64::try_from(ms).ok());
    let asked = asked.map(|ms| row.fetched_at_ms.saturating_add(ms));
    let expiring = row.expires_at_ms.map(|at_ms| {
        let life_ms = at_ms.saturating_sub(row.fetched_at_ms);
        at_ms - MARGIN_MS.min(life_ms / 2)
    });
    [asked, expiring].into_iter().flatten().min()
}

async fn renew(
    host: &Host,
    row: CredentialRow,
    failed: Option<Failed>,
    failures: &mut HashMap<String, Failed>,
) {
    let id = row.id();
    let outcome = match add::fetch(host, &row, None).await {
        Ok(fetched) => add::renewed(host, &row, row.clone(), fetched).await,
        Err(error) => Err(error),
    };
    let Err(error) = outcome else {
        failures.remove(&id);
        tracing::info!(credential = id, "a secret was renewed");
        return;
    };
    let times = failed.map_or(0, |failed| failed.times);
    let pause_ms = RETRY_MS_MIN
        .saturating_mul(1 << times.min(10))
        .min(RETRY_MS_MAX);
    let now = Failed {
        fetched_at_ms: row.fetched_at_ms,
        times: times.saturating_add(1),
        again_at_ms: host.now_ms().saturating_add(pause_ms),
    };
    failures.insert(id.clone(), now);
    let why = boxes::reason(&error);
    tracing::warn!(credential = id, why, "a secret was not renewed");
    let (noted, text) = (row.clone(), why.clone());
    let written = host.store.write(Durability::Grouped, move |rows| {
        rows::note_problem(rows, &noted, Some(&text))
    });
    if let Err(error) = written.await {
        tracing::warn!(%error, "why a secret was not renewed is not on record");
    }
    // Said once, and not again at every attempt.
    if times == 0 {
        tell(
            host,
            &row,
            &format!(
                "its credential `{}:{}` could not be renewed: {why}",
                row.kind, row.name
            ),
        )
        .await;
    }
}

/// A secret that is over is taken out of box-egress; requests are refused from then on.
async fn end(host: &Host, row: &CredentialRow, held: &[CredentialState]) -> Result<(), StoreError> {
    let (owner, kind, name) = (row.owner, row.kind.clone(), row.name.clone());
    let now = host
        .store
        .read(move |rows| rows::find(rows, &owner, &kind, &name))
        .await?;
    let is_over = now.is_some_and(|now| now.expires_at_ms == row.expires_at_ms);
    if !is_over || !holds(held, row) {
        return Ok(());
    }
    match host.egress.remove_credential(row.id()).await {
        Ok(()) => {
            let text = format!("its credential `{}:{}` has expired", row.kind, row.name);
            tell(host, row, &text).await;
        }
        Err(error) => tracing::warn!(%error, "a secret that is over was not taken away"),
    }
    Ok(())
}

/// Tells every box that uses a credential.
async fn tell(host: &Host, row: &CredentialRow, text: &str) {
    let owner = row.owner;
    let users = host.store.read(move |rows| rows::users(rows, &owner)).await;
    for (id, _, kind, name) in users.unwrap_or_default() {
        if (kind, name) == (row.kind.clone(), row.name.clone()) {
            events::try_note(host, id, EventKind::Credential, text).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use box_api::Owner;
    use box_api::control::{CredentialForm, SealMethod};

    fn row(every_ms: Option<u64>, expires_at_ms: Option<i64>) -> CredentialRow {
        CredentialRow {
            owner: Owner::Uid(1),
            kind: "claude".to_owned(),
            name: "default".to_owned(),
            prefix: "sk-ant-oat01-".to_owned(),
            chars: 40,
            added_at_ms: 0,
            source: CredentialSource::Command {
                command: "true".to_owned(),
                every_ms,
            },
            form: CredentialForm::default(),
            fetched_at_ms: 1_000_000,
            expires_at_ms,
            problem: None,
            sealed: SealMethod::Memory,
        }
    }

    fn held(row: &CredentialRow) -> Vec<CredentialState> {
        let spec = crate::credentials::spec_of(row).unwrap();
        vec![CredentialState {
            spec,
            present: true,
            bound: 0,
        }]
    }

    #[test]
    fn a_secret_is_renewed_as_asked_or_before_it_ends_whichever_comes_first() {
        for (every_ms, expires_at_ms, due) in [
            (None, None, None),
            (Some(60_000), None, Some(1_060_000)),
            (None, Some(4_600_000), Some(4_300_000)),
            (Some(60_000), Some(4_600_000), Some(1_060_000)),
            // A life shorter than the margin: half of it.
            (None, Some(1_100_000), Some(1_050_000)),
        ] {
            let row = row(every_ms, expires_at_ms);
            assert_eq!(due_ms(&row, &held(&row), None), due, "{row:?}");
        }
    }

    #[test]
    fn what_box_egress_lost_is_fetched_at_once_and_a_failure_waits() {
        let row = row(None, None);
        assert_eq!(due_ms(&row, &[], None), Some(1_000_000));
        let failed = Failed {
            fetched_at_ms: 1_000_000,
            times: 1,
            again_at_ms: 5,
        };
        assert_eq!(due_ms(&row, &[], Some(failed)), Some(5));
        let typed = CredentialRow {
            source: CredentialSource::Typed,
            ..row
        };
        assert_eq!(due_ms(&typed, &[], None), None);
    }
}
