//! What a box sends to a token endpoint, with its placeholders turned back into tokens.

use super::OwnerOf;
use super::book::Token;
use super::form;
use crate::intercept::verdict::Offence;
use http::header::{self, HeaderMap};
use serde_json::{Map, Value};

/// Turns placeholders in `fields` of a body back into tokens. A body that is neither JSON nor a form
/// stays as it is: there is nothing in it that is worth anything.
pub(super) fn swapped(
    headers: &HeaderMap,
    body: &[u8],
    fields: &[&str],
    (tokens, owner_of): (&[Token], OwnerOf<'_>),
) -> Result<Option<Vec<u8>>, Offence> {
    let Ok(text) = std::str::from_utf8(body) else {
        return Ok(None);
    };
    let swap = |value: &str| -> Result<Option<String>, Offence> {
        if let Some(token) = tokens.iter().find(|token| token.placeholder == value) {
            return Ok(String::from_utf8(token.secret().to_vec()).ok());
        }
        match owner_of(value) {
            Some(belongs_to) => Err(Offence::ForeignPlaceholder { belongs_to }),
            None => Ok(None),
        }
    };
    if let Ok(mut object) = serde_json::from_str::<Map<String, Value>>(text) {
        let own = object.iter_mut();
        for (_, value) in own.filter(|(name, _)| fields.contains(&name.as_str())) {
            let Value::String(text) = value else { continue };
            if let Some(secret) = swap(text)? {
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
        return Ok(None);
    }
    let Some(mut pairs) = form::pairs(text) else {
        return Ok(None);
    };
    for (_, value) in pairs
        .iter_mut()
        .filter(|(name, _)| fields.contains(&name.as_str()))
    {
        if let Some(secret) = swap(value)? {
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
        assert_eq!(sent("multipart/form-data; boundary=x", "--x"), Ok(None));
        let other = BoxId::from_random([2; 10]);
        assert_eq!(
            sent("application/json", r#"{"refresh_token":"ghr_OTHER"}"#),
            Err(Offence::ForeignPlaceholder { belongs_to: other })
        );
    }
}
