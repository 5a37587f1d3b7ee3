//! What a box sends to a token endpoint, with its placeholders turned back into tokens.

use super::OwnerOf;
use super::book::Token;
use super::form;
use crate::intercept::verdict::Offence;
use http::header::{self, HeaderMap};
use serde_json::{Map, Value};

/// Fields with which a token makes another. One that is no placeholder of the box would log it in to
/// an account somebody else chose (RFC 6749 §6, RFC 8693 §2.1).
const RENEWING: [&str; 2] = ["refresh_token", "subject_token"];

/// Refuses a query with a token that makes another: it belongs into the body, where it is looked at.
pub(super) fn check_query(query: &str) -> Result<(), Offence> {
    let mut pairs = query
        .split('&')
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let renews = pairs.any(|(name, value)| {
        !value.is_empty() && RENEWING.contains(&form::decoded(name, form::Plus::Space).as_str())
    });
    if renews {
        return Err(Offence::ForeignCredential);
    }
    Ok(())
}

/// Turns placeholders in `fields` of a body back into tokens. A token that makes another and is no
/// placeholder of this box is refused, and so is a body that is neither JSON nor a form, as nobody
/// can say what is in it.
pub(super) fn swapped(
    headers: &HeaderMap,
    body: &[u8],
    fields: &[&str],
    (tokens, owner_of): (&[Token], OwnerOf<'_>),
) -> Result<Option<Vec<u8>>, Offence> {
    let text = std::str::from_utf8(body).map_err(|_| Offence::ForeignCredential)?;
    if text.trim().is_empty() {
        return Ok(None);
    }
    let swap = |name: &str, value: &str| -> Result<Option<String>, Offence> {
        if let Some(token) = tokens.iter().find(|token| token.placeholder == value) {
            return Ok(String::from_utf8(token.secret().to_vec()).ok());
        }
        match owner_of(value) {
            Some(belongs_to) => Err(Offence::ForeignPlaceholder { belongs_to }),
            None if RENEWING.contains(&name) && !value.is_empty() => {
                Err(Offence::ForeignCredential)
            }
            None => Ok(None),
        }
    };
    if let Ok(mut object) = serde_json::from_str::<Map<String, Value>>(text) {
        let own = object.iter_mut();
        for (name, value) in own.filter(|(name, _)| fields.contains(&name.as_str())) {
            let text = match value {
                Value::String(text) => text,
                Value::Null => continue,
                Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                    return Err(Offence::ForeignCredential);
                }
            };
            if let Some(secret) = swap(name, text)? {
                *text = secret;
            }
        }
        return Ok(serde_json::to_vec(&object).ok());
    }
    let media_type = headers.get(header::CONTENT_TYPE);
    let media_type = media_type
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    if !media_type
        .to_ascii_lowercase()
        .starts_with("application/x-www-form-urlencoded")
    {
        // What some send where there is nothing to send.
        let is_bare = serde_json::from_str::<Value>(text).is_ok_and(|value| value.is_null());
        return is_bare.then_some(None).ok_or(Offence::ForeignCredential);
    }
    let mut pairs = form::pairs(text).ok_or(Offence::ForeignCredential)?;
    for (name, value) in pairs
        .iter_mut()
        .filter(|(name, _)| fields.contains(&name.as_str()))
    {
        if let Some(secret) = swap(name, value)? {
            *value = secret;
        }
    }
    Ok(Some(form::written(&pairs).into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intercept::login::kinds::{Role, named};
    use box_api::BoxId;
    use http::HeaderValue;

    fn sent(kind: &'static str, body: &str) -> Result<Option<String>, Offence> {
        let github = named("github").unwrap();
        let own = Token::new(github, Role::Refresh, "ghr_PLACE".into(), b"ghr_S3CRET+/=");
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        let other = BoxId::from_random([2; 10]);
        let owner_of = move |text: &str| (text == "ghr_OTHER").then_some(other);
        let body = swapped(
            &headers,
            body.as_bytes(),
            &["refresh_token"],
            (&[own], &owner_of),
        )?;
        Ok(body.map(|body| String::from_utf8(body).unwrap()))
    }

    #[test]
    fn a_placeholder_becomes_the_token_in_its_field_alone() {
        assert_eq!(
            sent(
                "application/json",
                r#"{"refresh_token":"ghr_PLACE","state":"ghr_PLACE"}"#
            ),
            Ok(Some(
                r#"{"refresh_token":"ghr_S3CRET+/=","state":"ghr_PLACE"}"#.to_owned()
            ))
        );
        assert_eq!(
            sent(
                "application/x-www-form-urlencoded",
                "refresh_token=ghr_PLACE&redirect_uri=http%3A%2F%2Fx%2Fghr_PLACE"
            ),
            Ok(Some(
                "refresh_token=ghr_S3CRET%2B%2F%3D&redirect_uri=http%3A%2F%2Fx%2Fghr_PLACE"
                    .to_owned()
            ))
        );
        assert_eq!(sent("application/json", ""), Ok(None));
        assert_eq!(sent("application/json", "null"), Ok(None));
        let other = BoxId::from_random([2; 10]);
        assert_eq!(
            sent("application/json", r#"{"refresh_token":"ghr_OTHER"}"#),
            Err(Offence::ForeignPlaceholder { belongs_to: other })
        );
    }

    #[test]
    fn somebody_elses_token_makes_no_login() {
        let json = "application/json";
        let form = "application/x-www-form-urlencoded";
        for (kind, body) in [
            (json, r#"{"refresh_token":"ghr_ATTACKERS"}"#),
            (json, r#"{"refresh\u005ftoken":"ghr_ATTACKERS"}"#),
            (json, r#"{"refresh_token":["ghr_ATTACKERS"]}"#),
            (json, r#"[{"refresh_token":"ghr_ATTACKERS"}]"#),
            (form, "refresh_token=ghr_ATTACKERS"),
            (
                form,
                "refresh_token=ghr_PLACE&refresh%5Ftoken=ghr_ATTACKERS",
            ),
            ("text/plain", "refresh_token=ghr_ATTACKERS"),
            ("multipart/form-data; boundary=x", "--x"),
        ] {
            assert_eq!(sent(kind, body), Err(Offence::ForeignCredential), "{body}");
        }
        for query in ["refresh_token=x", "a=b&refresh%5Ftoken=x"] {
            assert_eq!(check_query(query), Err(Offence::ForeignCredential));
        }
        // Controls: a first login and one whose field is empty.
        for body in [r#"{"code":"c"}"#, r#"{"code":"c","refresh_token":null}"#] {
            assert!(sent(json, body).is_ok(), "{body}");
        }
        assert!(sent(form, "device_code=d&refresh_token=").is_ok());
        assert_eq!(check_query("client_id=x&refresh_token="), Ok(()));
    }
}
