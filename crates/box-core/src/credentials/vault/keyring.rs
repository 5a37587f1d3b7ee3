//! The kernel's keyring of the host's user (user-keyring(7)): it is no file, no process has to hold
//! it, and it ends with the machine, or with the host's user namespace where it has one.

use super::VaultError;
use crate::credentials::seal::SealKey;
use linux_keyutils::{
    Key, KeyError, KeyPermissionsBuilder, KeyRing, KeyRingIdentifier, Permission,
};
use zeroize::Zeroizing;

const KEY_BYTES_READ_MAX: usize = 64;

/// Whether there is one. Seccomp filters of containers often say no.
pub(super) fn works() -> Result<(), VaultError> {
    user_keyring().map(drop)
}

/// Keeps a key under this id.
pub(super) fn put(id: &str, key: &SealKey) -> Result<(), VaultError> {
    let added = user_keyring()?.add_key(&description(id), key.bytes());
    let added = added.map_err(failed)?;
    // A session may not have the user's keyring linked (session-keyring(7)): then the rights of
    // the user count, not those of a possessor. Whoever is that user could read the host anyway.
    let rights = KeyPermissionsBuilder::builder()
        .posessor(Permission::ALL)
        .user(Permission::ALL)
        .build();
    let set = added.set_perms(rights);
    set.map_err(failed)
}

pub(super) fn get(id: &str) -> Result<SealKey, VaultError> {
    let found = find(id)?;
    let mut bytes = Zeroizing::new([0; KEY_BYTES_READ_MAX]);
    let length = found.read(&mut *bytes).map_err(failed)?;
    let key = bytes.get(..length).and_then(SealKey::from_bytes);
    key.ok_or_else(|| VaultError::Keyring("the key has another length".to_owned()))
}

pub(super) fn forget(id: &str) {
    if let Ok(key) = find(id)
        && let Err(error) = key.invalidate()
    {
        tracing::warn!(%error, "a key stays in the kernel's keyring");
    }
}

fn find(id: &str) -> Result<Key, VaultError> {
    match user_keyring()?.search(&description(id)) {
        Err(
            KeyError::KeyDoesNotExist
            | KeyError::KeyExpired
            | KeyError::KeyRevoked
            | KeyError::KeyringDoesNotExist,
        ) => Err(VaultError::KeyGone),
        found => found.map_err(failed),
    }
}

fn user_keyring() -> Result<KeyRing, VaultError> {
    let ring = KeyRing::from_special_id(KeyRingIdentifier::User, true);
    ring.map_err(failed)
}

fn description(id: &str) -> String {
    format!("box:seal:{id}")
}

fn failed(error: KeyError) -> VaultError {
    VaultError::Keyring(format!("{error:?}"))
}
