//! What a registry that wants a login asks for: the `WWW-Authenticate` header (RFC 9110, 11.6.1).

use std::collections::BTreeMap;

/// Longest header read, bytes.
const HEADER_BYTES_MAX: usize = 8 << 10;

/// How to show who one is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Challenge {
    Basic,
    /// A token from somewhere (distribution, *Token Authentication*).
    Bearer {
        realm: String,
        service: Option<String>,
        scope: Option<String>,
    },
}

/// The best of what the headers offer.
pub(super) fn parse<'header>(headers: impl Iterator<Item = &'header str>) -> Option<Challenge> {
    let found: Vec<Challenge> = headers.filter_map(one).collect();
    let bearer = found
        .iter()
        .find(|one| matches!(one, Challenge::Bearer { .. }));
    bearer.or(found.first()).cloned()
}

fn one(header: &str) -> Option<Challenge> {
    if header.len() > HEADER_BYTES_MAX {
        return None;
    }
    let (scheme, rest) = header.trim().split_once(' ').unwrap_or((header.trim(), ""));
    if scheme.eq_ignore_ascii_case("basic") {
        return Some(Challenge::Basic);
    } else if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let mut all = parameters(rest)?;
    Some(Challenge::Bearer {
        realm: all.remove("realm")?,
        service: all.remove("service"),
        scope: all.remove("scope"),
    })
}

/// `name="value", name=value`, values with `\` before what would end them.
fn parameters(mut text: &str) -> Option<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    loop {
        text = text.trim_start_matches([' ', '\t', ',']);
        if text.is_empty() {
            return Some(found);
        }
        let (name, rest) = text.split_once('=')?;
        let (value, rest) = if let Some(quoted) = rest.strip_prefix('"') {
            unquoted(quoted)?
        } else {
            let end = rest.find([',', ' ']).unwrap_or(rest.len());
            (rest[..end].to_owned(), &rest[end..])
        };
        text = rest;
        found.insert(name.trim().to_ascii_lowercase(), value);
    }
}

/// A value up to its closing quote, and what follows that.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    loop {
        match chars.next()? {
            (at, '"') => return Some((value, &text[at + 1..])),
            (_, '\\') => value.push(chars.next()?.1),
            (_, other) => value.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_preferred_and_its_place_is_read() {
        let bearer = r#"Bearer realm="https://auth.example/token?a=b",service="reg, \"one\"",scope="repository:a/b:pull,push", error=x"#;
        let expected = Challenge::Bearer {
            realm: "https://auth.example/token?a=b".to_owned(),
            service: Some("reg, \"one\"".to_owned()),
            scope: Some("repository:a/b:pull,push".to_owned()),
        };
        let both = ["Basic realm=\"x\"", "Digest realm=\"x\"", bearer];
        assert_eq!(parse(both.into_iter()), Some(expected));
        assert_eq!(parse(["basic"].into_iter()), Some(Challenge::Basic));
        let plain = parse(["bearer realm=http://a/b service=s"].into_iter());
        assert!(matches!(plain, Some(Challenge::Bearer { realm, .. }) if realm == "http://a/b"));
    }

    #[test]
    fn what_is_no_challenge_gives_none() {
        let long = format!("Bearer realm=\"{}\"", "x".repeat(HEADER_BYTES_MAX));
        for header in [
            "",
            "Bearer",
            "Bearer service=\"x\"",
            "Bearer realm=\"x",
            "Bearer realm=\"x\\",
            "Bearer x",
            "Digest realm=\"x\"",
            &long,
        ] {
            assert_eq!(parse([header].into_iter()), None, "{header}");
        }
    }
}
