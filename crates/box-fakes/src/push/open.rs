//! Reads what was encrypted for a browser: RFC 8291 §3.4, RFC 8188 §2, one record.

use super::curve;
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hmac::{HMAC_SHA256, Key, sign};

const TAG_BYTES: usize = 16;
/// Ends the last record.
const LAST: u8 = 2;

/// The message, or what is wrong with it.
pub(super) fn open(private: &[u8; 32], auth: &[u8; 16], body: &[u8]) -> Result<Vec<u8>, String> {
    let short = || "the body is cut short".to_owned();
    let (salt, rest) = body.split_first_chunk::<16>().ok_or_else(short)?;
    let (size, rest) = rest.split_first_chunk::<4>().ok_or_else(short)?;
    let (&length, rest) = rest.split_first().ok_or_else(short)?;
    let (key, record) = rest.split_at_checked(length.into()).ok_or_else(short)?;
    if u32::from_be_bytes(*size) < 18 || record.len() > u32::from_be_bytes(*size) as usize {
        return Err("it is more than one record".to_owned());
    }
    let shared = curve::shared(private, key).ok_or("its key is no point of P-256")?;
    let own = curve::public(private).ok_or("the browser has no key")?;
    let info = [&b"WebPush: info\0"[..], &own, key].concat();
    let input = derive(auth, &shared, &info);
    let content = derive(salt, &input, b"Content-Encoding: aes128gcm\0");
    let nonce = derive(salt, &input, b"Content-Encoding: nonce\0");
    let cipher = UnboundKey::new(&AES_128_GCM, &content[..16]).map_err(|_| "no key".to_owned())?;
    let nonce =
        Nonce::try_assume_unique_for_key(&nonce[..12]).map_err(|_| "no nonce".to_owned())?;
    if record.len() <= TAG_BYTES {
        return Err(short());
    }
    let mut record = record.to_vec();
    let plain = LessSafeKey::new(cipher)
        .open_in_place(nonce, Aad::empty(), &mut record)
        .map_err(|_| "it does not open with the browser's key".to_owned())?;
    let end = plain.iter().rposition(|byte| *byte != 0);
    match end.map(|end| plain.split_at(end)) {
        Some((message, [LAST, ..])) => Ok(message.to_vec()),
        Some(_) | None => Err("its last record does not say that it is".to_owned()),
    }
}

/// HKDF with SHA-256, at most 32 bytes (RFC 5869).
fn derive(salt: &[u8], secret: &[u8], info: &[u8]) -> [u8; 32] {
    let extracted = sign(&Key::new(HMAC_SHA256, salt), secret);
    let expanded = sign(
        &Key::new(HMAC_SHA256, extracted.as_ref()),
        &[info, &[1]].concat(),
    );
    let mut out = [0; 32];
    out.copy_from_slice(expanded.as_ref());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    fn bytes(text: &str) -> Vec<u8> {
        URL_SAFE_NO_PAD.decode(text).unwrap()
    }

    /// RFC 8291 §5.
    #[test]
    fn the_message_of_the_rfc_is_read_and_a_changed_one_is_not() {
        let private = bytes("q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94")
            .try_into()
            .unwrap();
        let auth = bytes("BTBZMqHH6r4Tts7J_aSIgg").try_into().unwrap();
        let body = bytes(
            "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27ml\
             mlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPT\
             pK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN",
        );
        let opened = open(&private, &auth, &body).unwrap();
        assert_eq!(opened, b"When I grow up, I want to be a watermelon");
        for at in [0, 30, 90, body.len() - 1] {
            let mut changed = body.clone();
            changed[at] ^= 1;
            assert!(open(&private, &auth, &changed).is_err(), "byte {at}");
        }
        assert!(open(&private, &auth, &body[..80]).is_err());
    }
}
