//! What is sealed goes back into box-egress: after it died, after the host came anew, after a
//! passphrase was given.

use super::rows::{self, CredentialRow, Sealed};
use super::seal::context_of;
use super::vault::{Vault, VaultError};
use super::{CredentialError, holds};
use crate::host::Host;
use crate::store::{Store, StoreError};
use box_api::control::{CredentialSource, SealInfo};
use box_api::egress::{CredentialSpec, CredentialState};
use zeroize::Zeroizing;

/// A secret that box-egress is to have again.
pub(crate) struct Restored {
    pub(crate) spec: CredentialSpec,
    pub(crate) secret: Zeroizing<Vec<u8>>,
}

/// Every sealed secret that box-egress does not hold and that can be opened now.
///
/// # Errors
/// What the store said. A secret that does not open is told and left out.
pub(crate) async fn restored(
    store: &Store,
    vault: &Vault,
    held: &[CredentialState],
    now_ms: i64,
) -> Result<Vec<Restored>, StoreError> {
    let all = store.read(rows::every).await?;
    let mut opened = Vec::new();
    for (row, sealed) in all {
        let is_over = row.expires_at_ms.is_some_and(|at_ms| at_ms <= now_ms);
        let Some(sealed) = sealed.filter(|_| !is_over && !holds(held, &row)) else {
            continue;
        };
        let Some(spec) = super::spec_of(&row) else {
            continue;
        };
        match open(vault, &row, &sealed).await {
            Ok(secret) => opened.push(Restored { spec, secret }),
            Err(error) => {
                let credential = row.id();
                tracing::warn!(credential, %error, "a sealed secret does not open");
            }
        }
    }
    Ok(opened)
}

/// A credential that box-egress holds and that nobody could give to another one.
///
/// # Errors
/// What the store said.
pub(crate) async fn lost_with_it(
    store: &Store,
    vault: &Vault,
    held: &[CredentialState],
) -> Result<Option<String>, StoreError> {
    for (row, sealed) in store.read(rows::every).await? {
        if !holds(held, &row) || matches!(row.source, CredentialSource::Command { .. }) {
            continue;
        }
        let opens = match &sealed {
            Some(sealed) => open(vault, &row, sealed).await.is_ok(),
            None => false,
        };
        if !opens {
            return Ok(Some(row.id()));
        }
    }
    Ok(None)
}

async fn open(
    vault: &Vault,
    row: &CredentialRow,
    sealed: &Sealed,
) -> Result<Zeroizing<Vec<u8>>, VaultError> {
    let key = vault.key(&sealed.seal).await?;
    Ok(key.open(&context_of(&row.id()), &sealed.bytes)?)
}

/// Opens what a passphrase seals, or sets one, and hands box-egress what it lacks.
///
/// # Errors
/// [`VaultError::WrongPassphrase`] and others of [`VaultError`].
pub async fn unlock(
    host: &Host,
    passphrase: Zeroizing<String>,
    is_new: New,
) -> Result<SealInfo, CredentialError> {
    match is_new {
        New::Yes => {
            let set = host
                .vault
                .set_passphrase(passphrase, &*host.random, host.now_ms());
            set.await?;
        }
        New::No => host.vault.unlock(passphrase).await?,
    }
    let held = host.egress.credentials().await?;
    for Restored { spec, secret } in
        restored(&host.store, &host.vault, &held, host.now_ms()).await?
    {
        host.egress.add_credential(spec, secret).await?;
    }
    super::logins::unlocked(host).await?;
    host.vault.changed.notify_one();
    seal_info(host).await
}

/// Whether a passphrase is the first or a changed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum New {
    Yes,
    No,
}

/// How secrets are kept here.
///
/// # Errors
/// What the store said.
pub async fn seal_info(host: &Host) -> Result<SealInfo, CredentialError> {
    Ok(host.vault.info().await?)
}
