//! Judges what a request carries to a host that is opened up for logins alone.

use super::OwnerOf;
use super::desk::Judged;
use crate::intercept::grant::Grant;
use crate::intercept::verdict::{Offence, Swaps, is_credential_header, judge};
use http::header::{self, HeaderMap};

/// Turns the box's own placeholders into tokens. Pages where people log in use cookies and codes of
/// their own; those pass, as they do at any host that is no credential's. Where the box is logged in,
/// headers take its own login alone.
pub(crate) fn judge_logins(
    judged: Judged,
    headers: &HeaderMap,
    query: &str,
    (grants, owner_of): (&[Grant], OwnerOf<'_>),
) -> Result<Swaps, Offence> {
    let own = |text: &str| grants.iter().any(|grant| grant.placeholder == text);
    for value in query.split(['&', ';', '=']) {
        if let Some(belongs_to) = owner_of(value).filter(|_| !own(value)) {
            return Err(Offence::ForeignPlaceholder { belongs_to });
        }
    }
    let mut swaps = Vec::new();
    for name in headers.keys() {
        if *name == header::COOKIE || !is_credential_header(name) {
            continue;
        }
        let mut alone = HeaderMap::new();
        for value in headers.get_all(name) {
            alone.append(name.clone(), value.clone());
        }
        match judge(&alone, "", grants, owner_of) {
            Ok(found) => swaps.extend(found.headers),
            Err(Offence::ForeignCredential) if judged == Judged::LoginHost => {}
            Err(offence) => return Err(offence),
        }
    }
    Ok(Swaps {
        headers: swaps,
        query: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intercept::login::book::Token;
    use crate::intercept::login::kinds::{Role, named};
    use box_api::BoxId;
    use http::HeaderValue;
    use std::sync::Arc;

    fn grants() -> Vec<Grant> {
        let kind = named("github").unwrap();
        let own = Token::new(kind, Role::Access, "gho_PLACE".into(), b"gho_S3CRET");
        vec![Grant {
            placeholder: own.placeholder.clone(),
            credential: Some(Arc::clone(&own.credential)),
        }]
    }

    fn outcome(judged: Judged, name: &'static str, value: &str) -> Result<HeaderMap, Offence> {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_str(value).unwrap());
        let other = BoxId::from_random([2; 10]);
        let owner_of = move |text: &str| (text == "gho_OTHER").then_some(other);
        for swap in judge_logins(judged, &headers, "", (&grants(), &owner_of))?.headers {
            swap.apply(&mut headers);
        }
        Ok(headers)
    }

    #[test]
    fn own_login_is_swapped_and_that_of_another_box_refused_everywhere() {
        for judged in [Judged::LoggedIn, Judged::LoginHost] {
            let swapped = outcome(judged, "authorization", "token gho_PLACE").unwrap();
            assert_eq!(swapped["authorization"], "token gho_S3CRET");
            assert!(matches!(
                outcome(judged, "authorization", "Bearer gho_OTHER"),
                Err(Offence::ForeignPlaceholder { .. })
            ));
            let cookie = outcome(judged, "cookie", "session=1").unwrap();
            assert_eq!(cookie["cookie"], "session=1");
        }
    }

    #[test]
    fn foreign_credential_passes_only_where_nobody_is_logged_in() {
        let passed = outcome(Judged::LoginHost, "authorization", "Bearer mine").unwrap();
        assert_eq!(passed["authorization"], "Bearer mine");
        let refused = outcome(Judged::LoggedIn, "authorization", "Bearer mine");
        assert_eq!(refused, Err(Offence::ForeignCredential));
    }
}
