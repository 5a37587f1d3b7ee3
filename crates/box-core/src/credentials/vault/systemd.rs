//! systemd-creds(1): encrypts with the machine's own key, in its TPM where there is one. What it
//! gives opens on this machine alone, by root.

use super::VaultError;
use crate::credentials::command::{self, Line};
use crate::credentials::seal::SealKey;
use std::path::Path;
use zeroize::Zeroizing;

const PROGRAM: &str = "/usr/bin/systemd-creds";

pub(super) fn works() -> Result<(), VaultError> {
    if !Path::new(PROGRAM).exists() {
        return Err(VaultError::Systemd(format!("there is no `{PROGRAM}`")));
    }
    if rustix::process::geteuid().is_root() {
        Ok(())
    } else {
        Err(VaultError::Systemd("only root may use it".to_owned()))
    }
}

pub(super) async fn encrypt(id: &str, key: &SealKey) -> Result<Vec<u8>, VaultError> {
    let encrypted = run(["encrypt", &named(id), "-", "-"], key.bytes()).await?;
    Ok(encrypted.to_vec())
}

pub(super) async fn decrypt(id: &str, wrapped: &[u8]) -> Result<SealKey, VaultError> {
    let bytes = run(["decrypt", &named(id), "-", "-"], wrapped).await?;
    let key = SealKey::from_bytes(&bytes);
    key.ok_or_else(|| VaultError::Systemd("it gave a key of another length".to_owned()))
}

/// What it is for; systemd-creds binds the two together.
fn named(id: &str) -> String {
    format!("--name=box-seal-{id}")
}

async fn run(arguments: [&str; 4], input: &[u8]) -> Result<Zeroizing<Vec<u8>>, VaultError> {
    works()?;
    let line = Line {
        program: PROGRAM,
        arguments: &arguments,
        input,
        person: None,
    };
    let output = command::run(line).await;
    output.map_err(|error| VaultError::Systemd(error.to_string()))
}
