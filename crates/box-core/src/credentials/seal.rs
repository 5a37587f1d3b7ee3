//! Seals secrets: AES-256-GCM with a random nonce (NIST SP 800-38D), bound to what the secret is
//! for, so that it opens in its own row alone.

use crate::random::Random;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::pbkdf2;
use std::num::NonZeroU32;
use zeroize::Zeroizing;

pub(super) const KEY_BYTES: usize = 32;
const TAG_BYTES: usize = 16;
/// First byte of everything sealed in this way.
const FORMAT: u8 = 1;
/// PBKDF2-HMAC-SHA256 rounds for a passphrase (OWASP Password Storage Cheat Sheet, 2023).
pub(super) const ROUNDS: u32 = 600_000;
pub(super) const SALT_BYTES: usize = 16;

/// Why something sealed does not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    #[error("what is sealed is cut short or of a format this build does not know")]
    Format,
    #[error("what is sealed was changed, belongs elsewhere, or was sealed with another key")]
    Refused,
}

/// A key that secrets are sealed with. Has no `Debug` that shows it; wiped when it is let go.
pub(in crate::credentials) struct SealKey(Zeroizing<[u8; KEY_BYTES]>);

impl std::fmt::Debug for SealKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SealKey(not shown)")
    }
}

impl SealKey {
    pub(super) fn fresh(random: &dyn Random) -> Self {
        Self(Zeroizing::new(random.bytes()))
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        if bytes.len() != KEY_BYTES {
            return None;
        }
        key.copy_from_slice(bytes);
        Some(Self(key))
    }

    /// The key a passphrase stands for.
    pub(super) fn from_passphrase(passphrase: &[u8], salt: &[u8], rounds: u32) -> Self {
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        let rounds = NonZeroU32::new(rounds).unwrap_or(NonZeroU32::MIN);
        pbkdf2::derive(
            pbkdf2::PBKDF2_HMAC_SHA256,
            rounds,
            salt,
            passphrase,
            &mut *key,
        );
        Self(key)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &*self.0
    }

    /// `format ‖ nonce ‖ ciphertext ‖ tag`
    pub(super) fn seal(&self, context: &str, secret: &[u8], random: &dyn Random) -> Vec<u8> {
        let nonce: [u8; NONCE_LEN] = random.bytes();
        let mut body = Zeroizing::new(Vec::with_capacity(secret.len() + TAG_BYTES));
        body.extend_from_slice(secret);
        let key = self.cipher();
        let tag = key.seal_in_place_separate_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(context.as_bytes()),
            &mut body,
        );
        #[expect(
            clippy::expect_used,
            reason = "fails only for more than 64 GiB (ring::aead)"
        )]
        let tag = tag.expect("a secret is short");
        [&[FORMAT][..], &nonce, &body, tag.as_ref()].concat()
    }

    pub(super) fn open(
        &self,
        context: &str,
        sealed: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, OpenError> {
        let Some((&FORMAT, rest)) = sealed.split_first() else {
            return Err(OpenError::Format);
        };
        let (nonce, body) = rest.split_first_chunk().ok_or(OpenError::Format)?;
        let mut body = Zeroizing::new(body.to_vec());
        let opened = self.cipher().open_in_place(
            Nonce::assume_unique_for_key(*nonce),
            Aad::from(context.as_bytes()),
            &mut body,
        );
        let length = opened.map_err(|_| OpenError::Refused)?.len();
        body.truncate(length);
        Ok(body)
    }

    fn cipher(&self) -> LessSafeKey {
        #[expect(
            clippy::expect_used,
            reason = "the key has the length the cipher takes"
        )]
        let key = UnboundKey::new(&AES_256_GCM, self.bytes()).expect("32 bytes");
        LessSafeKey::new(key)
    }
}

/// What a secret is for: it opens with the same words only.
pub(super) fn context_of(credential_id: &str) -> String {
    format!("box credential 1\0{credential_id}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SystemRandom;

    const SECRET: &[u8] = b"sk-ant-oat01-TELLTALE";

    #[test]
    fn what_is_sealed_opens_with_its_own_key_in_its_own_row_alone() {
        let key = SealKey::fresh(&SystemRandom);
        let mine = context_of("uid:1/claude/default");
        let sealed = key.seal(&mine, SECRET, &SystemRandom);
        assert_eq!(*key.open(&mine, &sealed).unwrap(), SECRET);
        assert!(!sealed.windows(8).any(|window| window == &SECRET[13..]));
        assert_ne!(sealed, key.seal(&mine, SECRET, &SystemRandom));

        let other = SealKey::fresh(&SystemRandom);
        assert_eq!(other.open(&mine, &sealed).err(), Some(OpenError::Refused));
        for elsewhere in [
            "uid:2/claude/default",
            "uid:1/github/default",
            "uid:1/claude/work",
        ] {
            let opened = key.open(&context_of(elsewhere), &sealed);
            assert_eq!(opened.err(), Some(OpenError::Refused), "{elsewhere}");
        }
    }

    #[test]
    fn any_changed_or_missing_byte_is_refused() {
        let key = SealKey::fresh(&SystemRandom);
        let sealed = key.seal("c", SECRET, &SystemRandom);
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(key.open("c", &changed).is_err(), "byte {at}");
            assert!(key.open("c", &sealed[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn a_passphrase_stands_for_one_key() {
        let key = |phrase: &str, salt: &[u8]| SealKey::from_passphrase(phrase.as_bytes(), salt, 2);
        assert_eq!(key("a", b"salt").bytes(), key("a", b"salt").bytes());
        assert_ne!(key("a", b"salt").bytes(), key("b", b"salt").bytes());
        assert_ne!(key("a", b"salt").bytes(), key("a", b"tlas").bytes());
        assert!(!format!("{:?}", key("a", b"salt")).contains('['));
    }
}
