//! Placeholders that look like the tokens they stand for: same beginning, same length, same kinds
//! of characters; a JWT stays one whose claims agents can read and whose signature is none.

use super::kinds::Kind;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

/// Shorter placeholders are made longer.
const CHARS_MIN: usize = 40;
/// What a placeholder holds by chance at least, in tenths of a bit.
const TENTHS_OF_BITS_MIN: usize = 1280;
/// Longest token there is a placeholder for.
const CHARS_MAX: usize = 16 << 10;
/// Shorter texts are no tokens.
pub(super) const TOKEN_CHARS_MIN: usize = 16;
const LOWER: &[u8] = b"abcdefghijklmnopqrstuvwxyz";
const UPPER: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const DIGITS: &[u8] = b"0123456789";
const ALL: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/// A placeholder for `secret`. `None` for what cannot be a token, and when the system has no
/// chance to give.
pub(super) fn placeholder(secret: &str, kind: &Kind) -> Option<String> {
    let is_sound = secret.len() <= CHARS_MAX && secret.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_sound {
        return None;
    }
    match jwt(secret) {
        Some((header, claims)) => jwt_like(secret, header, &claims, kind),
        None => opaque(secret, kind.prefixes),
    }
}

/// Whether a text is a signed JWT (RFC 7519, compact).
pub(super) fn is_jwt(text: &str) -> bool {
    jwt(text).is_some()
}

/// Its header as it is, and its claims.
fn jwt(text: &str) -> Option<(&str, Map<String, Value>)> {
    let mut parts = text.split('.');
    let (header, claims, signature) = (parts.next()?, parts.next()?, parts.next()?);
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if parts.next().is_some() || !signature.bytes().all(is_base64) {
        return None;
    }
    let object = |part: &str| -> Option<Map<String, Value>> {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
    };
    object(header)?.get("alg")?;
    Some((header, object(claims)?))
}

fn jwt_like(
    secret: &str,
    header: &str,
    claims: &Map<String, Value>,
    kind: &Kind,
) -> Option<String> {
    let kept = claims.iter();
    let kept = kept.filter(|(name, _)| kind.claims.contains(&name.as_str()));
    let mut kept: Map<String, Value> = kept.map(|(k, v)| (k.clone(), v.clone())).collect();
    kept.insert("jti".to_owned(), chosen(&[ALL; CHARS_MIN])?.into());
    let payload = URL_SAFE_NO_PAD.encode(serde_json::to_vec(&kept).ok()?);
    let signature = secret.rsplit('.').next().unwrap_or_default();
    // As many bytes as there were, which say nothing.
    let mut chance = vec![0; signature.len().max(CHARS_MIN) * 3 / 4];
    getrandom::fill(&mut chance).ok()?;
    let signature = URL_SAFE_NO_PAD.encode(chance);
    Some(format!("{header}.{payload}.{signature}"))
}

fn opaque(secret: &str, prefixes: &[&str]) -> Option<String> {
    let fitting = prefixes
        .iter()
        .filter(|prefix| secret.starts_with(**prefix));
    let prefix = fitting.max_by_key(|prefix| prefix.len()).copied();
    let prefix = prefix.unwrap_or_default();
    let body = secret.get(prefix.len()..)?;
    let mut kinds: Vec<&[u8]> = body.bytes().map(kind_of).collect();
    let tenths: usize = kinds.iter().map(|kind| tenths_of_bits(kind)).sum();
    if tenths < TENTHS_OF_BITS_MIN {
        kinds = vec![ALL; body.len().max(CHARS_MIN.saturating_sub(prefix.len()))];
    }
    let text = chosen(&kinds)?;
    // A character of no kind stays where it is.
    let mut own = body.bytes();
    let text = text.bytes().map(|byte| match (byte, own.next()) {
        (b'.', Some(own)) => char::from(own),
        (byte, _) => char::from(byte),
    });
    Some(prefix.chars().chain(text).collect())
}

fn kind_of(byte: u8) -> &'static [u8] {
    match byte {
        b'a'..=b'z' => LOWER,
        b'A'..=b'Z' => UPPER,
        b'0'..=b'9' => DIGITS,
        _ => b".",
    }
}

fn tenths_of_bits(kind: &[u8]) -> usize {
    match kind.len() {
        26 => 47,
        10 => 33,
        _ => 0,
    }
}

/// One character of each kind, by chance.
fn chosen(kinds: &[&[u8]]) -> Option<String> {
    let mut text = String::with_capacity(kinds.len());
    let mut chance = Vec::new();
    for kind in kinds {
        let size = u8::try_from(kind.len()).ok().filter(|size| *size > 0)?;
        // Bytes past the last whole multiple are left out, so that every letter is as likely.
        let fair = u8::MAX - u8::MAX % size;
        let byte = loop {
            match chance.pop() {
                Some(byte) if byte < fair => break byte,
                Some(_) => {}
                None => {
                    chance.resize(256, 0);
                    getrandom::fill(&mut chance).ok()?;
                }
            }
        };
        text.push(char::from(kind[usize::from(byte % size)]));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intercept::login::kinds::named;

    fn made(secret: &str, kind: &str) -> String {
        placeholder(secret, named(kind).unwrap()).unwrap()
    }

    #[test]
    fn a_placeholder_has_the_shape_of_its_token_and_none_of_its_characters_chosen() {
        let secret = "sk-ant-oat01-AbC_def-0123456789-ghijkLMNOPqrstuvwxyz-ABCDEFG";
        let (one, other) = (made(secret, "claude"), made(secret, "claude"));
        assert_ne!(one, other);
        assert_eq!(one.len(), secret.len());
        assert!(one.starts_with("sk-ant-oat01-"));
        for (own, theirs) in one.bytes().zip(secret.bytes()) {
            let kind = |byte: u8| {
                let letter = byte.is_ascii_lowercase() || byte.is_ascii_uppercase();
                (byte.is_ascii_digit(), byte.is_ascii_lowercase(), letter)
            };
            assert_eq!(kind(own), kind(theirs), "{one}");
        }
    }

    #[test]
    fn a_token_with_little_chance_in_it_gets_a_placeholder_with_enough() {
        let placeholder = made("gho_0000000000000001", "github");
        assert!(placeholder.starts_with("gho_") && placeholder.len() >= CHARS_MIN);
        assert!(placeholder.bytes().filter(u8::is_ascii_alphabetic).count() > 10);
    }

    #[test]
    fn a_jwt_stays_one_with_the_claims_agents_read() {
        let encode = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let claims = serde_json::json!({
            "exp": 1_900_000_000, "email": "a@example.org", "session_id": "s-secret",
            "https://api.openai.com/auth": {"chatgpt_plan_type": "pro", "chatgpt_account_id": "acc"},
        });
        let header = encode(serde_json::json!({"alg": "RS256", "typ": "JWT"}));
        let secret = format!("{header}.{}.{}", encode(claims), "s".repeat(342));
        let text = made(&secret, "codex");
        let (own, kept) = jwt(&text).unwrap();
        assert_eq!(own, header);
        assert_eq!(kept["exp"], 1_900_000_000);
        assert_eq!(kept["email"], "a@example.org");
        assert_eq!(
            kept["https://api.openai.com/auth"]["chatgpt_plan_type"],
            "pro"
        );
        assert!(!kept.contains_key("session_id"));
        assert_eq!(text.rsplit('.').next().unwrap().len(), 342);
        assert_ne!(text.rsplit('.').next(), secret.rsplit('.').next());
        assert_ne!(text, made(&secret, "codex"));
    }

    #[test]
    fn what_is_no_token_gets_no_placeholder() {
        let kind = named("claude").unwrap();
        for text in [
            "with space and more of it",
            "line\r\nbreak",
            "umlaut-\u{e4}",
        ] {
            assert!(placeholder(text, kind).is_none(), "{text:?}");
        }
    }
}
