//! Logins made inside boxes: rows that say so, and their tokens, sealed by box-egress with a key of
//! ours. The tokens themselves never come here.

use super::vault::Vault;
use super::{CredentialError, kinds};
use crate::boxes;
use crate::caller::Caller;
use crate::host::Host;
use crate::random::Random;
use crate::store::{Durability, StoreError};
use box_api::BoxId;
use box_api::control::{BoxState, LoginInfo};
use box_api::egress::LoginState;
use ring::hmac;
use rusqlite::{Connection, params};
use std::collections::{HashMap, HashSet};
use zeroize::Zeroizing;

/// What the key for logins is derived for, so that it is another one than that of credentials.
const PURPOSE: &[u8] = b"box logins 1";

/// The key box-egress seals logins with; nothing where secrets stay in memory, or are locked.
pub(crate) async fn key(
    vault: &Vault,
    random: &dyn Random,
    now_ms: i64,
) -> Option<Zeroizing<Vec<u8>>> {
    match vault.sealing(random, now_ms).await {
        Ok(found) => found.map(|(_, key)| {
            let key = hmac::Key::new(hmac::HMAC_SHA256, key.bytes());
            Zeroizing::new(hmac::sign(&key, PURPOSE).as_ref().to_vec())
        }),
        Err(error) => {
            tracing::warn!(%error, "logins made inside boxes stay in memory only");
            None
        }
    }
}

/// The logins of a box as box-egress gets them back.
///
/// # Errors
/// What the database said.
pub(crate) fn of_box(connection: &Connection, id: &BoxId) -> rusqlite::Result<Vec<LoginState>> {
    connection
        .prepare_cached(
            "SELECT kind, since_ms, sealed FROM logins WHERE box_id = ?1 ORDER BY kind",
        )?
        .query_map([id.as_str()], |row| {
            Ok(LoginState {
                kind: row.get(0)?,
                since_ms: row.get(1)?,
                sealed: row.get(2)?,
            })
        })?
        .collect()
}

/// Whether somebody logged in inside this box to what a credential of this kind is for.
///
/// # Errors
/// What the store said.
pub(crate) async fn has(host: &Host, id: Option<BoxId>, kind: &str) -> Result<bool, StoreError> {
    let Some(id) = id else { return Ok(false) };
    let made = host.store.read(move |connection| of_box(connection, &id));
    let named = |word: &str| kinds::find(word).map(|kind| kind.name.as_str());
    let wanted = named(kind);
    let fits = |login: &LoginState| wanted.is_some() && named(&login.kind) == wanted;
    Ok(made.await?.iter().any(fits))
}

/// Whether there is any login at all.
///
/// # Errors
/// What the database said.
pub(crate) fn has_some(connection: &Connection) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT 1 FROM logins")?
        .exists([])
}

/// Keeps a login of a box that is there; one of a box in the trash is forgotten already.
///
/// # Errors
/// What the database said.
pub(crate) fn keep(
    connection: &Connection,
    id: &BoxId,
    login: &LoginState,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO logins (box_id, kind, since_ms, sealed) SELECT id, ?2, ?3, ?4 FROM boxes \
             WHERE id = ?1 AND state NOT IN ('removing', 'trashed') \
             ON CONFLICT (box_id, kind) DO UPDATE SET \
             since_ms = excluded.since_ms, sealed = excluded.sealed",
        )?
        .execute(params![
            id.as_str(),
            login.kind,
            login.since_ms,
            login.sealed
        ])
        .map(drop)
}

/// Boxes whose logins are to be forgotten: all but those that are there.
///
/// # Errors
/// What the database said.
pub(crate) fn boxes_there(connection: &Connection) -> rusqlite::Result<HashSet<BoxId>> {
    let all = boxes::rows::all(connection)?.into_iter();
    Ok(all
        .filter(boxes::BoxRecord::is_live)
        .map(|record| record.id)
        .collect())
}

/// Forgets every login of a box, at once.
///
/// # Errors
/// What the store said.
pub async fn forget(host: &Host, id: BoxId) -> Result<(), StoreError> {
    let gone = host.store.write(Durability::Full, move |transaction| {
        transaction.execute("DELETE FROM logins WHERE box_id = ?1", [id.as_str()])
    });
    gone.await?;
    if let Err(error) = host.egress.forget_logins(id).await {
        // A box-egress that is away holds none, or hears of it when it is back.
        tracing::debug!(%id, %error, "logins were not forgotten yet");
    }
    Ok(())
}

/// The logins made inside the caller's boxes. One of a running box that box-egress does not have is
/// `lost`: the agent has to log in again.
///
/// # Errors
/// What the store said.
pub async fn list(host: &Host, caller: &Caller) -> Result<Vec<LoginInfo>, StoreError> {
    let all = boxes::list(host, caller).await?;
    let ids: Vec<BoxId> = all.iter().map(|record| record.id).collect();
    let kept = host.store.read(move |connection| {
        let of = |id: BoxId| Ok((id, of_box(connection, &id)?));
        ids.into_iter()
            .map(of)
            .collect::<rusqlite::Result<HashMap<_, _>>>()
    });
    let kept = kept.await?;
    if kept.values().all(Vec::is_empty) {
        return Ok(Vec::new());
    }
    let held = host.egress.logins().await.ok();
    let mut listed = Vec::new();
    for record in &all {
        for login in kept.get(&record.id).into_iter().flatten() {
            let runs = record.state == BoxState::Running;
            let is_held = |held: &HashMap<BoxId, Vec<String>>| {
                let own = held.get(&record.id);
                own.is_some_and(|kinds| kinds.contains(&login.kind))
            };
            listed.push(LoginInfo {
                name: record.name.clone(),
                kind: login.kind.clone(),
                since_ms: login.since_ms,
                is_sealed: login.sealed.is_some(),
                lost: runs && held.as_ref().is_some_and(|held| !is_held(held)),
            });
        }
    }
    Ok(listed)
}

/// A key became known: box-egress gets it, and what it can open now.
///
/// # Errors
/// What the store or box-egress said.
pub(super) async fn unlocked(host: &Host) -> Result<(), CredentialError> {
    let Some(key) = key(&host.vault, &*host.random, host.now_ms()).await else {
        return Ok(());
    };
    host.egress.login_key(key).await?;
    let running = host.store.read(|connection| {
        let all = boxes::rows::all(connection)?.into_iter();
        let running = all.filter(|record| record.state == BoxState::Running);
        let of = |record: boxes::BoxRecord| Ok((record.id, of_box(connection, &record.id)?));
        running.map(of).collect::<rusqlite::Result<Vec<_>>>()
    });
    for (id, logins) in running.await? {
        if !logins.is_empty() {
            host.egress.restore_logins(id, logins).await?;
        }
    }
    Ok(())
}
