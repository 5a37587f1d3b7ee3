//! A placeholder in a request that goes out unencrypted, wherever in its head it stands.

use box_api::BoxId;
use box_api::egress::PLACEHOLDER_BYTES_MIN;
use http::HeaderMap;

/// Whose placeholder is among the headers or in the path and query, if one is. `owner_of` tells
/// whose a text is. What is base64 in `authorization: Basic` is looked into.
pub(crate) fn placeholder_in(
    headers: &HeaderMap,
    path: &str,
    owner_of: impl Fn(&str) -> Option<BoxId>,
) -> Option<BoxId> {
    let values = headers.values().filter_map(|value| value.to_str().ok());
    values
        .chain([path])
        .find_map(|text| words(text, &owner_of).or_else(|| in_basic(text, &owner_of)))
}

/// Placeholders are of visible characters; whatever parts a text is written in, one of these does
/// not cut them.
fn words(text: &str, owner_of: &impl Fn(&str) -> Option<BoxId>) -> Option<BoxId> {
    let cuts: [&[char]; 3] = [
        &[' ', '\t'],
        &[' ', '\t', ',', ';', '=', '&', '?', '/', ':', '"', '\''],
        &[' ', '\t', '&', '?', ';', ','],
    ];
    cuts.iter().find_map(|cut| {
        text.split(*cut)
            .filter(|word| word.len() >= PLACEHOLDER_BYTES_MIN)
            .find_map(owner_of)
    })
}

fn in_basic(text: &str, owner_of: &impl Fn(&str) -> Option<BoxId>) -> Option<BoxId> {
    use base64::Engine as _;
    let (scheme, encoded) = text.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let pair = base64::engine::general_purpose::STANDARD
        .decode(encoded.trim())
        .ok()?;
    let pair = String::from_utf8(pair).ok()?;
    words(&pair, owner_of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    const PLACEHOLDER: &str = "sk-ant-oat01-PLACEHOLDER-of-box-a-0000000000";

    fn found(headers: &[(&'static str, &str)], path: &str) -> bool {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_str(value).unwrap());
        }
        let owner_of = |text: &str| (text == PLACEHOLDER).then(|| BoxId::from_random([1; 10]));
        placeholder_in(&map, path, owner_of).is_some()
    }

    #[test]
    fn a_placeholder_is_found_wherever_a_head_can_carry_one() {
        let basic = {
            use base64::Engine as _;
            let pair = format!("user:{PLACEHOLDER}");
            let pair = base64::engine::general_purpose::STANDARD.encode(pair);
            format!("Basic {pair}")
        };
        for value in [
            PLACEHOLDER.to_owned(),
            format!("Bearer {PLACEHOLDER}"),
            format!("session={PLACEHOLDER}; x=1"),
            format!("token=\"{PLACEHOLDER}\""),
            basic,
        ] {
            assert!(found(&[("x-any", &value)], "/"), "{value}");
        }
        assert!(found(&[], &format!("/leak/{PLACEHOLDER}")));
        assert!(found(&[], &format!("/?a=1&t={PLACEHOLDER}")));
    }

    #[test]
    fn ordinary_requests_carry_none() {
        let ordinary = [
            ("user-agent", "Debian APT-HTTP/1.3 (2.6.1)"),
            ("if-none-match", "\"5f3d-sk-ant-oat01-not-one-of-ours\""),
            ("authorization", "Basic dXNlcjpwYXNzd29yZA=="),
            ("cookie", "a=b; c=sk-ant-oat01-PLACEHOLDER"),
        ];
        assert!(!found(
            &ordinary,
            "/debian/pool/main/c/curl/curl_8.14.1-2_amd64.deb"
        ));
    }
}
