//! A message only the browser can read: RFC 8291 on top of RFC 8188, in one record.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::agreement::{ECDH_P256, EphemeralPrivateKey, UnparsedPublicKey, agree_ephemeral};
use ring::hkdf::{HKDF_SHA256, KeyType, Salt};
use ring::rand::SystemRandom;

/// An uncompressed point of P-256.
pub(super) const POINT_BYTES: usize = POINT_LENGTH as usize;
const POINT_LENGTH: u8 = 65;
pub(super) const AUTH_BYTES: usize = 16;
pub(super) const SALT_BYTES: usize = 16;
/// The size of a record; push services take no more in all (RFC 8030 §7.2, RFC 8291 §4).
pub(super) const RECORD_BYTES: u32 = 4096;
/// Salt, record size, length of the key, key.
const HEADER_BYTES: usize = SALT_BYTES + 4 + 1 + POINT_BYTES;
const TAG_BYTES: usize = 16;
/// Longest message: a record less its header, its tag and its last byte.
pub(super) const PLAIN_BYTES_MAX: usize = RECORD_BYTES as usize - HEADER_BYTES - TAG_BYTES - 1;
/// Ends the last record (RFC 8188 §2).
const LAST: u8 = 2;

/// Why a message cannot be encrypted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncryptError {
    #[error("its public key is no point of P-256")]
    Point,
    #[error("its secret has not {AUTH_BYTES} bytes")]
    Auth,
    #[error("the message has more than {PLAIN_BYTES_MAX} bytes")]
    Long,
}

/// A browser's keys.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Keys {
    pub(super) p256dh: Vec<u8>,
    pub(super) auth: Vec<u8>,
}

impl Keys {
    /// Reads both from base64url, with padding or without.
    pub(super) fn parse(p256dh: &str, auth: &str) -> Result<Self, EncryptError> {
        let decoded = |text: &str| URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok();
        let p256dh = decoded(p256dh).ok_or(EncryptError::Point)?;
        if p256dh.len() != POINT_BYTES || p256dh.first() != Some(&4) {
            return Err(EncryptError::Point);
        }
        let auth = decoded(auth).filter(|auth| auth.len() == AUTH_BYTES);
        let keys = Self {
            p256dh,
            auth: auth.ok_or(EncryptError::Auth)?,
        };
        // Whether the point lies on the curve is found out by using it.
        encrypt(&keys, b"", [0; SALT_BYTES])?;
        Ok(keys)
    }
}

/// The body of a push message. `salt` is random and never used again.
pub(super) fn encrypt(
    to: &Keys,
    plain: &[u8],
    salt: [u8; SALT_BYTES],
) -> Result<Vec<u8>, EncryptError> {
    let random = SystemRandom::new();
    let own = EphemeralPrivateKey::generate(&ECDH_P256, &random);
    let own = own.map_err(|_| EncryptError::Point)?;
    let public = own.compute_public_key().map_err(|_| EncryptError::Point)?;
    let theirs = UnparsedPublicKey::new(&ECDH_P256, &to.p256dh);
    let ends = Ends {
        to,
        from: public.as_ref(),
        salt,
    };
    let sealed = agree_ephemeral(own, &theirs, |shared| ends.seal(shared, plain));
    sealed.map_err(|_| EncryptError::Point)?
}

/// Both public keys and the salt: what goes into the keys beside the shared secret.
struct Ends<'a> {
    to: &'a Keys,
    from: &'a [u8],
    salt: [u8; SALT_BYTES],
}

/// How long a derived value is.
#[derive(Debug, Clone, Copy)]
struct Bytes(usize);

impl KeyType for Bytes {
    fn len(&self) -> usize {
        self.0
    }
}

fn derive<const N: usize>(salt: &[u8], secret: &[u8], info: &[&[u8]]) -> [u8; N] {
    let mut out = [0; N];
    let key = Salt::new(HKDF_SHA256, salt).extract(secret);
    #[expect(
        clippy::expect_used,
        reason = "fails only for more than 255 blocks (ring::hkdf)"
    )]
    key.expand(info, Bytes(N))
        .and_then(|material| material.fill(&mut out))
        .expect("a key is short");
    out
}

impl Ends<'_> {
    fn seal(&self, shared: &[u8], plain: &[u8]) -> Result<Vec<u8>, EncryptError> {
        if plain.len() > PLAIN_BYTES_MAX {
            return Err(EncryptError::Long);
        }
        // RFC 8291 §3.4.
        let info: [&[u8]; 3] = [b"WebPush: info\0", &self.to.p256dh, self.from];
        let input: [u8; 32] = derive(&self.to.auth, shared, &info);
        let key: [u8; 16] = derive(&self.salt, &input, &[b"Content-Encoding: aes128gcm\0"]);
        let nonce: [u8; NONCE_LEN] = derive(&self.salt, &input, &[b"Content-Encoding: nonce\0"]);
        let mut record = plain.to_vec();
        record.push(LAST);
        #[expect(
            clippy::expect_used,
            reason = "the key has the length the cipher takes, and a record is short"
        )]
        let tag = UnboundKey::new(&AES_128_GCM, &key)
            .and_then(|key| {
                LessSafeKey::new(key).seal_in_place_separate_tag(
                    Nonce::assume_unique_for_key(nonce),
                    Aad::empty(),
                    &mut record,
                )
            })
            .expect("16 bytes");
        let length = [POINT_LENGTH];
        let size = RECORD_BYTES.to_be_bytes();
        Ok([
            &self.salt[..],
            &size,
            &length,
            self.from,
            &record,
            tag.as_ref(),
        ]
        .concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Vec<u8> {
        URL_SAFE_NO_PAD.decode(text).unwrap()
    }

    /// RFC 8291 §5 and appendix A.
    #[test]
    fn the_message_of_the_rfc_comes_out_byte_for_byte() {
        let keys = Keys::parse(
            "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
            "BTBZMqHH6r4Tts7J_aSIgg",
        )
        .unwrap();
        let from = bytes(
            "BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8",
        );
        let ends = Ends {
            to: &keys,
            from: &from,
            salt: bytes("DGv6ra1nlYgDCS1FRnbzlw").try_into().unwrap(),
        };
        let shared = bytes("kyrL1jIIOHEzg3sM2ZWRHDRB62YACZhhSlknJ672kSs");
        let sealed = ends
            .seal(&shared, b"When I grow up, I want to be a watermelon")
            .unwrap();
        assert_eq!(
            URL_SAFE_NO_PAD.encode(sealed),
            "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27ml\
             mlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPT\
             pK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
        );
    }

    #[test]
    fn keys_that_are_none_are_refused() {
        let (point, auth) = (
            "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
            "BTBZMqHH6r4Tts7J_aSIgg",
        );
        assert!(Keys::parse(point, &format!("{auth}==")).is_ok());
        let off = format!("{}A", &point[..point.len() - 1]);
        for bad in ["", "BCVx", "!", off.as_str()] {
            assert_eq!(
                Keys::parse(bad, auth).err(),
                Some(EncryptError::Point),
                "{bad}"
            );
        }
        for bad in ["", "BTBZ", "?"] {
            assert_eq!(
                Keys::parse(point, bad).err(),
                Some(EncryptError::Auth),
                "{bad}"
            );
        }
    }

    #[test]
    fn a_message_fits_into_one_record_or_is_refused() {
        let keys = Keys::parse(
            "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
            "BTBZMqHH6r4Tts7J_aSIgg",
        )
        .unwrap();
        let longest = vec![b'x'; PLAIN_BYTES_MAX];
        let sealed = encrypt(&keys, &longest, [7; SALT_BYTES]).unwrap();
        assert_eq!(sealed.len(), RECORD_BYTES as usize);
        let longer = vec![b'x'; PLAIN_BYTES_MAX + 1];
        let refused = encrypt(&keys, &longer, [7; SALT_BYTES]);
        assert_eq!(refused, Err(EncryptError::Long));
    }
}
