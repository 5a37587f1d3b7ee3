//! `application/x-www-form-urlencoded`, as token endpoints take and give it (RFC 6749 §4.1.3,
//! appendix B).

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// What `+` stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plus {
    /// In a form.
    Space,
    /// In a path.
    Itself,
}

/// The pairs of a form, in their order. `None` when it is none: no pair, or a byte that cannot
/// stand in one.
pub(crate) fn pairs(text: &str) -> Option<Vec<(String, String)>> {
    let is_form = |byte: u8| byte.is_ascii_graphic() && !b"<>\"{}\\^`".contains(&byte);
    if !text.contains('=') || !text.bytes().all(is_form) {
        return None;
    }
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let decode = |text: &str| decoded(text, Plus::Space);
    Some(
        pairs
            .map(|(name, value)| (decode(name), decode(value)))
            .collect(),
    )
}

/// Writes pairs as a form.
pub(crate) fn written(pairs: &[(String, String)]) -> String {
    let pairs = pairs
        .iter()
        .map(|(name, value)| format!("{}={}", encoded(name), encoded(value)));
    pairs.collect::<Vec<_>>().join("&")
}

fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' ' => out.push('+'),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'*' => {
                out.push(char::from(byte));
            }
            _ => {
                let digit = |value: u8| char::from(HEX[usize::from(value)]);
                out.extend(['%', digit(byte >> 4), digit(byte & 15)]);
            }
        }
    }
    out
}

/// Decodes `%xx`; whatever is no UTF-8 afterwards is replaced.
pub(crate) fn decoded(text: &str, plus: Plus) -> String {
    let digit = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .and_then(|v| u8::try_from(v).ok())
    };
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let (byte, left) = match (first, tail) {
            (b'%', [high, low, left @ ..]) => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, left),
                _ => (b'%', tail),
            },
            (b'+', _) if plus == Plus::Space => (b' ', tail),
            (byte, _) => (*byte, tail),
        };
        out.push(byte);
        rest = left;
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_comes_back_as_it_was() {
        let all = pairs("access_token=gho_a%2Bb&scope=repo%2Cgist+x&token_type=bearer&e=").unwrap();
        assert_eq!(all[0], ("access_token".to_owned(), "gho_a+b".to_owned()));
        assert_eq!(all[1].1, "repo,gist x");
        assert_eq!(
            written(&all),
            "access_token=gho_a%2Bb&scope=repo%2Cgist+x&token_type=bearer&e="
        );
    }

    #[test]
    fn what_is_no_form_is_none() {
        for text in [
            "",
            "gho_x",
            "<html a=b>",
            "{\"a\":\"=\"}",
            "a=b c",
            "a=\u{e4}",
        ] {
            assert!(pairs(text).is_none(), "{text}");
        }
    }
}
