//! Secrets of the host's own, sealed as credentials are and kept elsewhere.

use super::vault::VaultError;
use crate::host::Host;
use zeroize::Zeroizing;

/// Seals a secret for `context` alone; answers the row of `seals` and the sealed bytes. Nothing
/// where nothing is sealed on this machine.
pub(crate) async fn seal_aside(
    host: &Host,
    context: &str,
    secret: &[u8],
) -> Result<Option<(String, Vec<u8>)>, VaultError> {
    let sealing = host.vault.sealing(&*host.random, host.now_ms()).await?;
    Ok(sealing.map(|(seal, key)| {
        let sealed = key.seal(context, secret, &*host.random);
        (seal, sealed)
    }))
}

/// Opens what [`seal_aside`] sealed.
pub(crate) async fn open_aside(
    host: &Host,
    (seal, context): (&str, &str),
    sealed: &[u8],
) -> Result<Zeroizing<Vec<u8>>, VaultError> {
    let key = host.vault.key(seal).await?;
    Ok(key.open(context, sealed)?)
}
