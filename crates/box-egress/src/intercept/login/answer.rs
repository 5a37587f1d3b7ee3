//! The answer of a token endpoint: read whole, its tokens taken out and placeholders put in. What
//! cannot be read is not passed on.

use super::form;
use super::kinds::{Endpoint, Role, every_prefix};
use super::shape::{TOKEN_CHARS_MIN, is_jwt};
use flate2::read::{DeflateDecoder, GzDecoder, ZlibDecoder};
use http::header::{self, HeaderMap};
use serde_json::{Map, Value};
use std::io::Read;

/// Longest answer, before and after it was unpacked. Tokens take a few thousand bytes.
pub(super) const ANSWER_BYTES_MAX: usize = 256 << 10;
const BROTLI_BUFFER_BYTES: usize = 4096;

/// An answer that was not understood.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unread;

/// An answer as fields.
#[derive(Debug)]
pub(super) enum Fields {
    Json(Map<String, Value>),
    Form(Vec<(String, String)>),
    Empty,
}

/// Words in the name of a field that hold a secret, where nothing is known of the field.
const TELLING: [&str; 8] = [
    "token",
    "secret",
    "password",
    "_key",
    "apikey",
    "jwt",
    "assertion",
    "cookie",
];
/// Fields with such a word that hold none.
const HARMLESS: [&str; 4] = [
    "token_type",
    "issued_token_type",
    "token_endpoint",
    "requested_token_type",
];

/// Unpacks an answer.
pub(super) fn unpacked(headers: &HeaderMap, body: &[u8]) -> Result<Vec<u8>, Unread> {
    let mut codings = headers.get_all(header::CONTENT_ENCODING).iter();
    let coding = match (codings.next(), codings.next()) {
        (None, _) => return Ok(body.to_vec()),
        (Some(coding), None) => coding.to_str().map_err(|_| Unread)?.to_ascii_lowercase(),
        (Some(_), Some(_)) => return Err(Unread),
    };
    match coding.trim() {
        "identity" | "" => Ok(body.to_vec()),
        "gzip" | "x-gzip" => whole(GzDecoder::new(body)),
        // With zlib's frame (RFC 9110 §8.4.1.2), or as some send it, without.
        "deflate" => whole(ZlibDecoder::new(body)).or_else(|_| whole(DeflateDecoder::new(body))),
        "br" => whole(brotli_decompressor::Decompressor::new(
            body,
            BROTLI_BUFFER_BYTES,
        )),
        _ => Err(Unread),
    }
}

fn whole(reader: impl Read) -> Result<Vec<u8>, Unread> {
    let mut text = Vec::new();
    let limit = ANSWER_BYTES_MAX as u64 + 1;
    reader
        .take(limit)
        .read_to_end(&mut text)
        .map_err(|_| Unread)?;
    if text.len() > ANSWER_BYTES_MAX {
        return Err(Unread);
    }
    Ok(text)
}

/// Reads an answer, by what it calls itself.
pub(super) fn read(headers: &HeaderMap, text: &[u8]) -> Result<Fields, Unread> {
    let text = std::str::from_utf8(text).map_err(|_| Unread)?.trim();
    if text.is_empty() {
        return Ok(Fields::Empty);
    }
    let media_type = headers.get(header::CONTENT_TYPE);
    let media_type = media_type
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let media_type = media_type.split(';').next().unwrap_or_default().trim();
    if media_type.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        return form::pairs(text).map(Fields::Form).ok_or(Unread);
    }
    let fields = serde_json::from_str(text).map_err(|_| Unread)?;
    Ok(Fields::Json(fields))
}

/// Puts `mint`'s placeholders where tokens are. `mint` refuses what it cannot make one for.
pub(super) fn disguise(
    fields: &mut Fields,
    endpoint: &Endpoint,
    mint: &mut dyn FnMut(Role, &str) -> Result<String, Unread>,
) -> Result<(), Unread> {
    let role = |name: &str| {
        let mut gives = endpoint.gives.iter();
        gives.find(|(own, _)| *own == name).map(|(_, role)| *role)
    };
    match fields {
        Fields::Empty => Ok(()),
        Fields::Form(pairs) => {
            for (name, value) in pairs {
                no_token(name)?;
                text(role(name), name, value, mint)?;
            }
            Ok(())
        }
        Fields::Json(object) => {
            for (name, value) in object {
                no_token(name)?;
                match (role(name), value) {
                    (Some(role), Value::String(own)) => text(Some(role), name, own, mint)?,
                    // A token that is no text is one we do not know.
                    (Some(_), Value::Object(_) | Value::Array(_) | Value::Number(_)) => {
                        return Err(Unread);
                    }
                    (_, value) => deep(name, value, mint)?,
                }
            }
            Ok(())
        }
    }
}

fn deep(
    name: &str,
    value: &mut Value,
    mint: &mut dyn FnMut(Role, &str) -> Result<String, Unread>,
) -> Result<(), Unread> {
    match value {
        Value::String(own) => text(None, name, own, mint),
        Value::Array(all) => all.iter_mut().try_for_each(|one| deep(name, one, mint)),
        Value::Object(all) => all.iter_mut().try_for_each(|(name, value)| {
            no_token(name)?;
            deep(name, value, mint)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

fn text(
    role: Option<Role>,
    name: &str,
    value: &mut String,
    mint: &mut dyn FnMut(Role, &str) -> Result<String, Unread>,
) -> Result<(), Unread> {
    if let Some(role) = role.filter(|_| !value.is_empty()) {
        *value = mint(role, value)?;
        return Ok(());
    }
    if tells(name) && value.len() >= TOKEN_CHARS_MIN && value.bytes().all(|b| b.is_ascii_graphic())
    {
        *value = mint(Role::Other, value)?;
        return Ok(());
    }
    // A token inside of a sentence, such as one that complains of it.
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.~+/=".contains(c);
    let pieces = value.split(|c| !is_part(c));
    let found: Vec<String> = pieces
        .map(|piece| piece.trim_matches(['.', '=', '/']))
        .filter(|piece| looks_like_token(piece))
        .map(str::to_owned)
        .collect();
    for piece in found {
        let placeholder = mint(Role::Other, &piece)?;
        *value = value.replace(&piece, &placeholder);
    }
    Ok(())
}

/// A name with a token in it could be passed on by no means.
fn no_token(name: &str) -> Result<(), Unread> {
    if looks_like_token(name) {
        Err(Unread)
    } else {
        Ok(())
    }
}

fn tells(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    !HARMLESS.contains(&name.as_str()) && TELLING.iter().any(|word| name.contains(word))
}

fn looks_like_token(text: &str) -> bool {
    let begins = || every_prefix().iter().any(|prefix| text.starts_with(prefix));
    text.len() >= TOKEN_CHARS_MIN && (begins() || is_jwt(text))
}

impl Fields {
    /// As it goes to the box.
    pub(super) fn written(&self) -> Vec<u8> {
        match self {
            Self::Empty => Vec::new(),
            Self::Form(pairs) => form::written(pairs).into_bytes(),
            Self::Json(object) => serde_json::to_vec(object).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intercept::login::kinds::endpoint;
    use box_api::egress::HostName;
    use http::HeaderValue;

    const TOKEN: &str = "gho_0123456789abcdefghijABCDEFGHIJ0123";

    fn github() -> &'static Endpoint {
        let host = HostName::parse("github.com").unwrap();
        endpoint(&host, "/login/oauth/access_token").unwrap().1
    }

    fn disguised(kind: &'static str, body: &str) -> Result<(String, Vec<Role>), Unread> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        let mut fields = read(&headers, &unpacked(&headers, body.as_bytes())?)?;
        let mut roles = Vec::new();
        disguise(&mut fields, github(), &mut |role, _| {
            roles.push(role);
            Ok("P".to_owned())
        })?;
        Ok((String::from_utf8(fields.written()).unwrap(), roles))
    }

    #[test]
    fn tokens_are_found_by_name_by_shape_and_inside_of_sentences() {
        let json = "application/json; charset=utf-8";
        let body = format!(
            r#"{{"access_token":"x","token_type":"bearer","note":"bad token '{TOKEN}'.",
               "more":[{{"client_secret":"0123456789abcdef"}}],"expires_in":5}}"#
        );
        let (text, roles) = disguised(json, &body).unwrap();
        assert_eq!(
            text,
            r#"{"access_token":"P","expires_in":5,"more":[{"client_secret":"P"}],"note":"bad token 'P'.","token_type":"bearer"}"#
        );
        assert_eq!(roles, [Role::Access, Role::Other, Role::Other]);
        let form = "application/x-www-form-urlencoded";
        let (text, _) = disguised(form, &format!("access_token={TOKEN}&scope=repo")).unwrap();
        assert_eq!(text, "access_token=P&scope=repo");
    }

    #[test]
    fn answers_without_a_token_say_what_they_said() {
        let body = r#"{"error":"authorization_pending","interval":5}"#;
        assert_eq!(
            disguised("application/json", body).unwrap(),
            (body.to_owned(), Vec::new())
        );
        assert_eq!(disguised("application/json", " ").unwrap().0, "");
    }

    #[test]
    fn a_field_that_comes_twice_comes_once() {
        let body = format!(r#"{{"access_token":"{TOKEN}","access_token":"{TOKEN}"}}"#);
        assert_eq!(
            disguised("application/json", &body).unwrap().0,
            r#"{"access_token":"P"}"#
        );
    }

    #[test]
    fn what_cannot_be_read_is_not_passed_on() {
        let in_a_name = format!(r#"{{"{TOKEN}":1}}"#);
        for (kind, body) in [
            ("text/html", "<html>no</html>"),
            ("application/json", "[1]"),
            ("application/json", "\"text\""),
            ("application/json", "{\"a\":1"),
            ("application/json", "{\"access_token\":{\"v\":1}}"),
            ("application/x-www-form-urlencoded", "<html a=b>"),
            ("application/json", in_a_name.as_str()),
        ] {
            assert_eq!(disguised(kind, body), Err(Unread), "{body}");
        }
        for coding in ["zstd", "gzip, br", "gzip"] {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding));
            assert_eq!(unpacked(&headers, b"{}"), Err(Unread), "{coding}");
        }
    }

    #[test]
    fn a_bomb_is_not_unpacked() {
        let zeros = vec![b' '; 8 << 20];
        let mut packed = Vec::new();
        let encoder = flate2::read::GzEncoder::new(zeros.as_slice(), flate2::Compression::best());
        { encoder }.read_to_end(&mut packed).unwrap();
        assert!(packed.len() < ANSWER_BYTES_MAX);
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        assert_eq!(unpacked(&headers, &packed), Err(Unread));
    }
}
