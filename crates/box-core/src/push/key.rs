//! The host's own key for push services (RFC 8292): made at first use, sealed as credentials are,
//! and shown to every browser that subscribes.

use super::endpoint::Endpoint;
use super::rows::{self, KeptKey};
use crate::credentials::{VaultError, open_aside, seal_aside};
use crate::host::Host;
use crate::store::{Durability, StoreError};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::json;
use zeroize::Zeroizing;

/// How long a signature holds, seconds (C113; RFC 8292 §2 allows 24 hours).
const SIGNED_S: i64 = 12 * 3600;
/// What it is sealed for: it opens as nothing else.
const CONTEXT: &str = "box push key 1";

/// Why the key is not there.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("could not make the key that push services know this host by")]
    Make,
    #[error("the key that push services know this host by cannot be read")]
    Broken,
}

/// The key.
pub(super) struct HostKey {
    pair: EcdsaKeyPair,
}

impl HostKey {
    fn read(private: &[u8]) -> Result<Self, KeyError> {
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, private, &SystemRandom::new());
        let pair = pair.map_err(|_| KeyError::Broken)?;
        Ok(Self { pair })
    }

    /// An uncompressed point.
    pub(super) fn public(&self) -> &[u8] {
        self.pair.public_key().as_ref()
    }

    /// The value of `Authorization` for a push service (RFC 8292 §3).
    pub(super) fn authorization(
        &self,
        endpoint: &Endpoint,
        subject: &str,
        now_ms: i64,
    ) -> Result<String, KeyError> {
        let head = json!({ "typ": "JWT", "alg": "ES256" });
        let claims = json!({
            "aud": endpoint.audience(),
            "exp": now_ms / 1000 + SIGNED_S,
            "sub": subject,
        });
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let said = [head, claims].map(|part| encode(part.to_string().as_bytes()));
        let said = said.join(".");
        let signature = self.pair.sign(&SystemRandom::new(), said.as_bytes());
        let signature = encode(signature.map_err(|_| KeyError::Make)?.as_ref());
        Ok(format!(
            "vapid t={said}.{signature}, k={}",
            encode(self.public())
        ))
    }
}

/// The key there is; none where none was made.
///
/// # Errors
/// As [`ensure`], and [`VaultError::KeyGone`].
pub(super) async fn existing(host: &Host) -> Result<Option<HostKey>, super::PushError> {
    let Some(kept) = host.store.read(rows::key).await? else {
        return Ok(None);
    };
    let private = match &kept.seal {
        Some(seal) => open_aside(host, (seal, CONTEXT), &kept.private).await?,
        None => Zeroizing::new(kept.private),
    };
    Ok(Some(HostKey::read(&private)?))
}

/// The key, made when there is none or when what sealed it is gone for good: then browsers subscribe
/// anew.
pub(super) async fn ensure(host: &Host) -> Result<HostKey, super::PushError> {
    let _one = host.push.making.lock().await;
    match existing(host).await {
        Ok(Some(key)) => return Ok(key),
        Ok(None) | Err(super::PushError::Vault(VaultError::KeyGone)) => {}
        Err(error) => return Err(error),
    }
    let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
    let made = made.map_err(|_| KeyError::Make)?;
    let private = Zeroizing::new(made.as_ref().to_vec());
    let key = HostKey::read(&private)?;
    let sealed = seal_aside(host, CONTEXT, &private).await?;
    let (seal, private) = match sealed {
        Some((seal, sealed)) => (Some(seal), sealed),
        None => (None, private.to_vec()),
    };
    let kept = KeptKey {
        public: key.public().to_vec(),
        seal,
        private,
    };
    keep(host, kept).await?;
    Ok(key)
}

async fn keep(host: &Host, kept: KeptKey) -> Result<(), StoreError> {
    let now_ms = host.now_ms();
    host.store
        .write(Durability::Full, move |tables| {
            rows::put_key(tables, &kept, now_ms)
        })
        .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};

    fn part(text: &str) -> serde_json::Value {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).unwrap()).unwrap()
    }

    #[test]
    fn a_push_service_can_check_who_signed_for_whom_and_until_when() {
        let made =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        let key = HostKey::read(made.unwrap().as_ref()).unwrap();
        let endpoint = Endpoint::parse("https://push.example.org/x").unwrap();
        let said = key
            .authorization(&endpoint, "mailto:me@example.org", 1_000_000)
            .unwrap();
        let said = said.strip_prefix("vapid t=").unwrap();
        let (token, public) = said.split_once(", k=").unwrap();
        let public = URL_SAFE_NO_PAD.decode(public).unwrap();
        assert_eq!((public.len(), public[0]), (65, 4));
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, public)
            .verify(signed.as_bytes(), &signature)
            .unwrap();
        let (head, claims) = signed.split_once('.').unwrap();
        assert_eq!(part(head)["alg"], "ES256");
        let claims = part(claims);
        assert_eq!(claims["aud"], "https://push.example.org");
        assert_eq!(claims["exp"], 1_000 + SIGNED_S);
        assert_eq!(claims["sub"], "mailto:me@example.org");
    }
}
