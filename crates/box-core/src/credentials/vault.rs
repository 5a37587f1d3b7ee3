//! Keeps the keys that secrets are sealed with, none of them beside the data: in the kernel's
//! keyring, with systemd-creds, or in a person's head.

mod keyring;
mod systemd;

use super::seal::{OpenError, ROUNDS, SALT_BYTES, SealKey};
use crate::host::Host;
use crate::random::Random;
use crate::settings::SealChoice;
use crate::store::{Durability, Store, StoreError};
use box_api::control::{SealInfo, SealMethod};
use rusqlite::{Connection, OptionalExtension as _, params};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::{Mutex, Notify};
use zeroize::Zeroizing;

const PASSPHRASE_CHARS_MIN: usize = 8;
const PASSPHRASE_BYTES_MAX: usize = 1024;

/// Why a key is not there.
#[derive(Debug, Clone, thiserror::Error)]
pub enum VaultError {
    #[error("could not use the kernel's keyring: {0}")]
    Keyring(String),
    #[error("the kernel's keyring has no key for what is sealed: the machine was started anew")]
    KeyGone,
    #[error("could not use systemd-creds: {0}")]
    Systemd(String),
    #[error("what is sealed is locked with a passphrase")]
    Locked,
    #[error("the passphrase is not the one that secrets are sealed with")]
    WrongPassphrase,
    #[error("a passphrase has at least {PASSPHRASE_CHARS_MIN} characters")]
    WeakPassphrase,
    #[error("no passphrase was set here")]
    NoPassphrase,
    #[error("secrets are not sealed with a passphrase here")]
    OtherSeal,
    #[error("what is sealed names a key nobody knows")]
    Unknown,
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the host is ending")]
    Ending,
}

/// The keys this host has opened, and what it opens others with.
#[derive(Debug)]
pub struct Vault {
    store: Store,
    choice: SealChoice,
    /// By the id of their rows.
    open: Mutex<HashMap<String, Arc<SealKey>>>,
    /// Woken when a credential with a command comes or changes.
    pub(super) changed: Notify,
}

/// A row of `seals`.
#[derive(Debug, Clone)]
struct SealRow {
    id: String,
    method: SealMethod,
    wrapped: Vec<u8>,
    salt: Vec<u8>,
    rounds: u32,
}

impl Vault {
    pub fn new(store: Store, choice: SealChoice) -> Self {
        Self {
            store,
            choice,
            open: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// The key for what is sealed from now on, made if there is none yet; nothing where secrets
    /// stay in memory.
    ///
    /// # Errors
    /// [`VaultError`]: a method was chosen and does not work.
    pub(super) async fn sealing(
        &self,
        random: &dyn Random,
        at_ms: i64,
    ) -> Result<Option<(String, Arc<SealKey>)>, VaultError> {
        let method = match self.choice {
            SealChoice::Memory => return Ok(None),
            SealChoice::Auto if self.has_passphrase().await? => SealMethod::Passphrase,
            SealChoice::Auto | SealChoice::Keyring => SealMethod::Keyring,
            SealChoice::SystemdCreds => SealMethod::SystemdCreds,
            SealChoice::Passphrase => SealMethod::Passphrase,
        };
        match self.of_method(method, random, at_ms).await {
            Ok(found) => Ok(Some(found)),
            Err(error) if self.choice == SealChoice::Auto && method == SealMethod::Keyring => {
                tracing::warn!(%error, "secrets stay in memory only");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    async fn of_method(
        &self,
        method: SealMethod,
        random: &dyn Random,
        at_ms: i64,
    ) -> Result<(String, Arc<SealKey>), VaultError> {
        if let Some(row) = self.newest(method).await? {
            match self.key(&row.id).await {
                Ok(key) => return Ok((row.id, key)),
                // What it sealed is lost; what comes now gets another.
                Err(VaultError::KeyGone) => {}
                Err(error) => return Err(error),
            }
        }
        let key = SealKey::fresh(random);
        let id = hex(&random.bytes::<16>());
        let wrapped = match method {
            SealMethod::Keyring => {
                keyring::put(&id, &key)?;
                Vec::new()
            }
            SealMethod::SystemdCreds => systemd::encrypt(&id, &key).await?,
            SealMethod::Passphrase => return Err(VaultError::Locked),
            SealMethod::Memory => return Err(VaultError::Unknown),
        };
        let row = SealRow {
            id,
            method,
            wrapped,
            salt: Vec::new(),
            rounds: 0,
        };
        Ok((row.id.clone(), self.keep(row, key, at_ms).await?))
    }

    /// The key of a row of `seals`.
    pub(super) async fn key(&self, id: &str) -> Result<Arc<SealKey>, VaultError> {
        if let Some(key) = self.open.lock().await.get(id) {
            return Ok(Arc::clone(key));
        }
        let wanted = id.to_owned();
        let row = self.store.read(move |rows| seal(rows, &wanted)).await?;
        let row = row.ok_or(VaultError::Unknown)?;
        let key = match row.method {
            SealMethod::Keyring => keyring::get(id)?,
            SealMethod::SystemdCreds => systemd::decrypt(id, &row.wrapped).await?,
            SealMethod::Passphrase => return Err(VaultError::Locked),
            SealMethod::Memory => return Err(VaultError::Unknown),
        };
        let key = Arc::new(key);
        let mut open = self.open.lock().await;
        open.insert(id.to_owned(), Arc::clone(&key));
        Ok(key)
    }

    /// Opens what a passphrase seals.
    ///
    /// # Errors
    /// [`VaultError::WrongPassphrase`], [`VaultError::NoPassphrase`]
    pub(super) async fn unlock(&self, passphrase: Zeroizing<String>) -> Result<(), VaultError> {
        let row = self.newest(SealMethod::Passphrase).await?;
        let row = row.ok_or(VaultError::NoPassphrase)?;
        let (salt, rounds) = (row.salt.clone(), row.rounds);
        let over = derive(passphrase, salt, rounds).await?;
        let opened = over.open(&wrapping(&row.id), &row.wrapped);
        let bytes = opened.map_err(|_| VaultError::WrongPassphrase)?;
        let key = SealKey::from_bytes(&bytes).ok_or(VaultError::Unknown)?;
        self.open.lock().await.insert(row.id, Arc::new(key));
        Ok(())
    }

    /// From now on secrets are sealed with a key under this passphrase. One that is there already
    /// gets the new passphrase, if it is open.
    ///
    /// # Errors
    /// [`VaultError::Locked`]: the old passphrase is asked for first. [`VaultError::OtherSeal`]: the
    /// settings say otherwise.
    pub(super) async fn set_passphrase(
        &self,
        passphrase: Zeroizing<String>,
        random: &dyn Random,
        at_ms: i64,
    ) -> Result<(), VaultError> {
        match self.choice {
            SealChoice::Auto | SealChoice::Passphrase => {}
            SealChoice::Keyring | SealChoice::SystemdCreds | SealChoice::Memory => {
                return Err(VaultError::OtherSeal);
            }
        }
        let fits = passphrase.len() <= PASSPHRASE_BYTES_MAX;
        if !fits || passphrase.chars().count() < PASSPHRASE_CHARS_MIN {
            return Err(VaultError::WeakPassphrase);
        }
        let before = self.newest(SealMethod::Passphrase).await?;
        let (id, key) = match before {
            Some(row) => {
                let key = self.key(&row.id).await?;
                let same = SealKey::from_bytes(key.bytes()).ok_or(VaultError::Unknown)?;
                (row.id, same)
            }
            None => (hex(&random.bytes::<16>()), SealKey::fresh(random)),
        };
        let salt = random.bytes::<SALT_BYTES>().to_vec();
        let over = derive(passphrase, salt.clone(), ROUNDS).await?;
        let row = SealRow {
            wrapped: over.seal(&wrapping(&id), key.bytes(), random),
            id,
            method: SealMethod::Passphrase,
            salt,
            rounds: ROUNDS,
        };
        self.keep(row, key, at_ms).await.map(drop)
    }

    async fn keep(
        &self,
        row: SealRow,
        key: SealKey,
        at_ms: i64,
    ) -> Result<Arc<SealKey>, VaultError> {
        let (id, key) = (row.id.clone(), Arc::new(key));
        let written = self.store.write(Durability::Full, move |rows| {
            rows.execute(
                "INSERT INTO seals (id, method, wrapped, salt, rounds, made_at_ms) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (id) DO UPDATE SET \
                 wrapped = excluded.wrapped, salt = excluded.salt, rounds = excluded.rounds",
                params![
                    row.id,
                    row.method.word(),
                    row.wrapped,
                    row.salt,
                    row.rounds,
                    at_ms
                ],
            )
            .map(drop)
        });
        written.await?;
        self.open.lock().await.insert(id, Arc::clone(&key));
        Ok(key)
    }

    async fn newest(&self, method: SealMethod) -> Result<Option<SealRow>, VaultError> {
        Ok(self
            .store
            .read(move |rows| {
                rows.prepare_cached(&format!(
                    "SELECT {COLUMNS} FROM seals WHERE method = ?1 ORDER BY made_at_ms DESC LIMIT 1"
                ))?
                .query_row([method.word()], read)
                .optional()
            })
            .await?)
    }

    async fn has_passphrase(&self) -> Result<bool, VaultError> {
        Ok(self.newest(SealMethod::Passphrase).await?.is_some())
    }

    /// How secrets are kept here.
    pub(super) async fn info(&self) -> Result<SealInfo, VaultError> {
        let has_passphrase = self.has_passphrase().await?;
        let (method, problem) = match self.choice {
            SealChoice::Memory => (SealMethod::Memory, None),
            SealChoice::Auto if has_passphrase => (SealMethod::Passphrase, None),
            SealChoice::Auto => match keyring::works() {
                Ok(()) => (SealMethod::Keyring, None),
                Err(error) => (SealMethod::Memory, Some(error.to_string())),
            },
            SealChoice::Keyring => {
                let problem = keyring::works().err().map(|error| error.to_string());
                (SealMethod::Keyring, problem)
            }
            SealChoice::SystemdCreds => {
                let problem = systemd::works().err().map(|error| error.to_string());
                (SealMethod::SystemdCreds, problem)
            }
            SealChoice::Passphrase => (SealMethod::Passphrase, None),
        };
        let is_open = match (method, self.newest(method).await?) {
            (SealMethod::Memory, _) => true,
            (SealMethod::Passphrase, None) => false,
            (_, None) => problem.is_none(),
            (_, Some(row)) => self.key(&row.id).await.is_ok(),
        };
        let why = problem.or_else(|| match method {
            SealMethod::Memory => Some("secrets end with box-egress".to_owned()),
            SealMethod::Passphrase if !is_open => {
                Some("`box credential unlock` asks for the passphrase".to_owned())
            }
            SealMethod::Keyring | SealMethod::SystemdCreds | SealMethod::Passphrase => None,
        });
        Ok(SealInfo {
            method,
            is_open,
            why,
        })
    }
}

/// Takes the keys of this deployment out of the kernel's keyring: whatever they seal is lost.
///
/// # Errors
/// What the store said.
pub async fn discard_keys(host: &Host) -> Result<(), StoreError> {
    let rows = host.store.read(|rows| {
        let sql = "SELECT id FROM seals WHERE method = 'keyring'";
        let mut statement = rows.prepare(sql)?;
        let ids = statement.query_map([], |row| row.get::<_, String>(0))?;
        ids.collect::<rusqlite::Result<Vec<_>>>()
    });
    for id in rows.await? {
        keyring::forget(&id);
    }
    Ok(())
}

/// What the key under a passphrase is for.
fn wrapping(id: &str) -> String {
    format!("box seal 1\0{id}")
}

async fn derive(
    passphrase: Zeroizing<String>,
    salt: Vec<u8>,
    rounds: u32,
) -> Result<SealKey, VaultError> {
    let work = move || SealKey::from_passphrase(passphrase.as_bytes(), &salt, rounds);
    let derived = tokio::task::spawn_blocking(work).await;
    derived.map_err(|_| VaultError::Ending)
}

const COLUMNS: &str =
    "id, method, COALESCE(wrapped, x''), COALESCE(salt, x''), COALESCE(rounds, 0)";

fn seal(rows: &Connection, id: &str) -> rusqlite::Result<Option<SealRow>> {
    rows.prepare_cached(&format!("SELECT {COLUMNS} FROM seals WHERE id = ?1"))?
        .query_row([id], read)
        .optional()
}

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<SealRow> {
    let method: String = row.get(1)?;
    Ok(SealRow {
        id: row.get(0)?,
        method: super::method_of(&method).unwrap_or_default(),
        wrapped: row.get(2)?,
        salt: row.get(3)?,
        rounds: row.get(4)?,
    })
}

fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from(b"0123456789abcdef"[usize::from(nibble)]);
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(digit).collect()
}
