//! Keeps a credential that a host sends back from reaching the box: replaced by the placeholder
//! in headers, and, best effort, in plain text bodies (catalogue G20, G24), as it is, in base64, in
//! hexadecimal and percent-encoded. A body that is compressed is looked into and broken off where it
//! holds one. Other spellings of the secret are out of reach.

mod folded;
mod frames;

pub(crate) use folded::ask_for_readable;
pub(crate) use frames::FrameScrub;

use super::grant::Grant;
use super::verdict::is_harmless_cookie;
use crate::secret::Secret;
use base64::Engine as _;
use base64::engine::GeneralPurpose;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use bytes::{Bytes, BytesMut};
use folded::Folded;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use memchr::memmem;
use zeroize::Zeroizing;

/// A secret and what stands in its place.
struct Needle {
    secret: Secret,
    placeholder: String,
}

/// Replaces secrets in a body that passes through in pieces. Holds back no more than could be the
/// beginning of a secret, so that a stream of events is not delayed.
pub(crate) struct Scrub {
    needles: Vec<Needle>,
    held: Bytes,
    tell: Option<Box<dyn Fn() + Send + Sync>>,
    /// What a compressed body unfolds to; nothing of such a body is replaced.
    folded: Option<Folded>,
    is_broken: bool,
}

/// Bytes that base64 takes at a time.
const BASE64_PLACES: usize = 3;
const ALPHABETS: [&GeneralPurpose; 2] = [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD];
/// Less of a secret would be found where it is not.
const BASE64_CHARS_MIN: usize = 12;

/// Media types in which a secret would stand as it is.
const TEXT_TYPES: [&str; 6] = [
    "text/",
    "application/json",
    "application/xml",
    "application/javascript",
    "application/x-ndjson",
    "application/x-www-form-urlencoded",
];

impl Scrub {
    /// A scrub for a response with these headers, if it needs one.
    pub(crate) fn for_body(
        grants: &[Grant],
        headers: &HeaderMap,
        tell: Box<dyn Fn() + Send + Sync>,
    ) -> Option<Self> {
        let mut scrub = Self {
            needles: needles(grants),
            held: Bytes::new(),
            tell: Some(tell),
            folded: None,
            is_broken: false,
        };
        if !scrub.needles.is_empty() && !is_identity(headers) {
            scrub.folded = Folded::new(headers, std::mem::take(&mut scrub.needles));
            return scrub.folded.is_some().then_some(scrub);
        }
        // What calls itself an image may be an echo too; it keeps its length, as downloads need it.
        let wanted = is_identity(headers) && (is_text(headers) || scrub.keeps_length());
        (wanted && !scrub.needles.is_empty()).then_some(scrub)
    }

    /// Whether the body stays as long as it is.
    pub(crate) fn keeps_length(&self) -> bool {
        self.needles
            .iter()
            .all(|needle| needle.secret.bytes().len() == needle.placeholder.len())
    }

    /// Whether nothing is held back.
    pub(crate) fn is_idle(&self) -> bool {
        self.held.is_empty()
    }

    /// Whether the body must not go on: the secret is in it, and cannot be replaced.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// The next piece, without what may still become a secret.
    pub(crate) fn pass(&mut self, piece: Bytes) -> Bytes {
        if let Some(folded) = &mut self.folded {
            if !folded.sees(&piece) {
                return piece;
            }
            self.is_broken = true;
            if let Some(tell) = self.tell.take() {
                tell();
            }
            return Bytes::new();
        }
        let mut text = if self.held.is_empty() {
            piece
        } else {
            let mut joined = BytesMut::with_capacity(self.held.len() + piece.len());
            joined.extend_from_slice(&self.held);
            joined.extend_from_slice(&piece);
            joined.freeze()
        };
        let mut found = false;
        for needle in &self.needles {
            if let Some(clean) = replaced(&text, needle) {
                text = clean;
                found = true;
            }
        }
        if let Some(tell) = self.tell.take_if(|_| found) {
            tell();
        }
        let beginnings = self
            .needles
            .iter()
            .map(|needle| beginning_at_end(&text, needle.secret.bytes()));
        let kept_back = beginnings.max().unwrap_or_default();
        self.held = text.split_off(text.len() - kept_back);
        text
    }

    /// What was held back, once nothing follows.
    pub(crate) fn finish(&mut self) -> Bytes {
        std::mem::take(&mut self.held)
    }
}

/// Replaces secrets in headers and takes away cookies that could log somebody in. Says whether a
/// secret was there.
pub(crate) fn scrub_headers(headers: &mut HeaderMap, grants: &[Grant]) -> bool {
    if grants.is_empty() {
        return false;
    }
    drop_cookies(headers);
    let mut found = false;
    for needle in needles(grants) {
        for value in headers.values_mut() {
            let clean = replaced(&Bytes::copy_from_slice(value.as_bytes()), &needle);
            let Some(clean) = clean else { continue };
            found = true;
            let withheld = HeaderValue::from_static("withheld");
            *value = HeaderValue::from_bytes(&clean).unwrap_or(withheld);
        }
        // Names are in lower case.
        let lower = Secret::new(&needle.secret.bytes().to_ascii_lowercase());
        let named =
            |name: &&HeaderName| memmem::find(name.as_str().as_bytes(), lower.bytes()).is_some();
        let odd: Vec<HeaderName> = headers.keys().filter(named).cloned().collect();
        found |= !odd.is_empty();
        for name in odd {
            headers.remove(name);
        }
    }
    found
}

/// A session the host opened for the credential must not end up in the box, which could not use
/// it anyway: its cookies are refused on the way out.
fn drop_cookies(headers: &mut HeaderMap) {
    let name_of = |value: &HeaderValue| {
        let text = value.to_str().unwrap_or_default();
        text.split(['=', ';'])
            .next()
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    let all = headers.get_all(header::SET_COOKIE).iter();
    let harmless: Vec<HeaderValue> = all
        .filter(|value| is_harmless_cookie(&name_of(value)))
        .cloned()
        .collect();
    headers.remove(header::SET_COOKIE);
    for value in harmless {
        headers.append(header::SET_COOKIE, value);
    }
}

fn needles(grants: &[Grant]) -> Vec<Needle> {
    let present = grants
        .iter()
        .filter_map(|grant| Some((grant.secret()?, &grant.placeholder)));
    let spellings = |(secret, placeholder): (&[u8], &String)| {
        let plain = Needle {
            secret: Secret::new(secret),
            placeholder: placeholder.clone(),
        };
        let encoded = (0..BASE64_PLACES).flat_map(move |place| {
            ALPHABETS.map(|alphabet| in_base64(secret, placeholder, place, alphabet))
        });
        let encoded = encoded.filter(|needle| needle.placeholder.len() >= BASE64_CHARS_MIN);
        let spelled = SPELLINGS.map(|spell| spelled(secret, placeholder, spell));
        let mut all = vec![plain];
        for needle in encoded.chain(spelled) {
            // Both alphabets spell most tokens alike.
            if all
                .iter()
                .all(|own| own.secret.bytes() != needle.secret.bytes())
            {
                all.push(needle);
            }
        }
        all
    };
    present.flat_map(spellings).collect()
}

/// Other ways to write bytes as text.
const SPELLINGS: [fn(u8) -> Spelled; 4] = [
    |byte| {
        Spelled::Hex([
            b'\0',
            LOWER[usize::from(byte >> 4)],
            LOWER[usize::from(byte & 15)],
        ])
    },
    |byte| {
        Spelled::Hex([
            b'\0',
            UPPER[usize::from(byte >> 4)],
            UPPER[usize::from(byte & 15)],
        ])
    },
    // RFC 3986 §2.3: what is unreserved stays.
    |byte| match byte {
        b'-' | b'.' | b'_' | b'~' => Spelled::Same(byte),
        _ if byte.is_ascii_alphanumeric() => Spelled::Same(byte),
        _ => Spelled::Hex([
            b'%',
            UPPER[usize::from(byte >> 4)],
            UPPER[usize::from(byte & 15)],
        ]),
    },
    // JSON of PHP and others.
    |byte| match byte {
        b'/' => Spelled::Escaped(byte),
        _ => Spelled::Same(byte),
    },
];
const LOWER: &[u8; 16] = b"0123456789abcdef";
const UPPER: &[u8; 16] = b"0123456789ABCDEF";

/// One byte of a secret, written otherwise.
enum Spelled {
    Same(u8),
    /// A mark, if any, and two digits.
    Hex([u8; 3]),
    /// Behind a backslash.
    Escaped(u8),
}

/// A secret in another spelling. What takes its place is as long.
fn spelled(secret: &[u8], placeholder: &str, spell: fn(u8) -> Spelled) -> Needle {
    // With the whole capacity from the start it is never copied by growing.
    let mut text = Zeroizing::new(Vec::with_capacity(secret.len() * 3));
    for byte in secret {
        match spell(*byte) {
            Spelled::Same(byte) => text.push(byte),
            Spelled::Hex([0, high, low]) => text.extend([high, low]),
            Spelled::Hex(all) => text.extend(all),
            Spelled::Escaped(byte) => text.extend([b'\\', byte]),
        }
    }
    Needle {
        placeholder: filled(placeholder.as_bytes(), text.len()),
        secret: Secret::new(&text),
    }
}

/// A text again and again, until it is as long.
fn filled(text: &[u8], bytes: usize) -> String {
    let all = text.iter().cycle().take(bytes);
    all.map(|byte| char::from(*byte)).collect()
}

/// The characters of a secret in base64 that are the same whatever stands around it, when it
/// begins `place` bytes into a group of three; `Basic` with a user of the box's choice, echoed,
/// would spell it so. What takes their place is as long.
fn in_base64(secret: &[u8], placeholder: &str, place: usize, alphabet: &GeneralPurpose) -> Needle {
    let core = |bytes: &[u8]| {
        let shifted = Zeroizing::new([&[0; BASE64_PLACES][..place], bytes].concat());
        let text = Zeroizing::new(alphabet.encode(&*shifted));
        let (first, end) = ((place * 8).div_ceil(6), shifted.len() * 8 / 6);
        Secret::new(&text.as_bytes()[first..end])
    };
    let (secret, filler) = (core(secret), core(placeholder.as_bytes()));
    Needle {
        placeholder: filled(filler.bytes(), secret.bytes().len()),
        secret,
    }
}

fn is_identity(headers: &HeaderMap) -> bool {
    headers
        .get(header::CONTENT_ENCODING)
        .is_none_or(|value| value.as_bytes().eq_ignore_ascii_case(b"identity"))
}

fn is_text(headers: &HeaderMap) -> bool {
    let media_type = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let media_type = media_type.map(str::to_ascii_lowercase);
    media_type.is_none_or(|media_type| {
        TEXT_TYPES.iter().any(|text| media_type.starts_with(text))
            || media_type.contains("+json")
            || media_type.contains("+xml")
    })
}

fn replaced(text: &Bytes, needle: &Needle) -> Option<Bytes> {
    let secret = needle.secret.bytes();
    let mut places = memmem::find_iter(text, secret).peekable();
    places.peek()?;
    let mut clean = BytesMut::with_capacity(text.len());
    let mut done = 0;
    for place in places {
        clean.extend_from_slice(&text[done..place]);
        clean.extend_from_slice(needle.placeholder.as_bytes());
        done = place + secret.len();
    }
    clean.extend_from_slice(&text[done..]);
    Some(clean.freeze())
}

/// How many bytes at the end of `text` are the beginning of `secret`.
fn beginning_at_end(text: &[u8], secret: &[u8]) -> usize {
    let longest = text.len().min(secret.len().saturating_sub(1));
    let tail = &text[text.len() - longest..];
    let Some(first) = secret.first() else {
        return 0;
    };
    let mut starts = memchr::memchr_iter(*first, tail);
    starts
        .find(|start| secret.starts_with(&tail[*start..]))
        .map_or(0, |start| longest - start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intercept::grant::Credential;
    use box_api::egress::{Carriage, CredentialSpec};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    const SECRET: &str = "sk-ant-oat01-S3CRET";
    const PLACEHOLDER: &str = "sk-ant-oat01-PLACEHOLDER-A";

    fn grants() -> Vec<Grant> {
        let spec = CredentialSpec {
            id: "c".into(),
            kind: "claude".into(),
            hosts: Vec::new(),
            carried: vec![Carriage::Bearer],
        };
        let credential = Credential {
            spec,
            secret: Some(Secret::new(SECRET.as_bytes())),
        };
        vec![Grant {
            placeholder: PLACEHOLDER.into(),
            credential: Some(Arc::new(credential)),
        }]
    }

    fn scrub(headers: &HeaderMap) -> (Option<Scrub>, Arc<AtomicU32>) {
        let told = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&told);
        let tell = Box::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
        });
        (Scrub::for_body(&grants(), headers, tell), told)
    }

    fn passed(scrub: &mut Scrub, pieces: &[&str]) -> String {
        let mut all = Vec::new();
        for piece in pieces {
            all.extend_from_slice(&scrub.pass(Bytes::copy_from_slice(piece.as_bytes())));
        }
        all.extend_from_slice(&scrub.finish());
        String::from_utf8(all).unwrap()
    }

    #[test]
    fn secret_in_a_body_becomes_the_placeholder_however_it_is_cut() {
        let text = format!("{{\"a\":\"{SECRET}\",\"b\":\"{SECRET}{SECRET}\"}}");
        let clean = text.replace(SECRET, PLACEHOLDER);
        for cut in 0..text.len() {
            let (scrub, told) = scrub(&HeaderMap::new());
            let mut scrub = scrub.unwrap();
            assert_eq!(
                passed(&mut scrub, &[&text[..cut], &text[cut..]]),
                clean,
                "cut at {cut}"
            );
            assert_eq!(told.load(Ordering::Relaxed), 1);
        }
        let (scrub, _) = scrub(&HeaderMap::new());
        let letters: Vec<String> = text.chars().map(String::from).collect();
        let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
        assert_eq!(passed(&mut scrub.unwrap(), &letters), clean);
    }

    #[test]
    fn secret_in_base64_is_found_wherever_it_begins() {
        for user in ["", "u", "us", "use", "user:"] {
            let text = STANDARD_NO_PAD.encode(format!("{user}:{SECRET}:more"));
            for cut in 0..text.len() {
                let (scrub, told) = scrub(&HeaderMap::new());
                let mut scrub = scrub.unwrap();
                let clean = passed(&mut scrub, &[&text[..cut], &text[cut..]]);
                assert_eq!(clean.len(), text.len());
                let decoded = STANDARD_NO_PAD.decode(clean).unwrap();
                let decoded = String::from_utf8_lossy(&decoded).into_owned();
                // No more than a letter at either end is left.
                assert!(!decoded.contains("S3CRE"), "{decoded}");
                assert_eq!(told.load(Ordering::Relaxed), 1);
            }
        }
        let harmless = STANDARD_NO_PAD.encode("nothing to be seen in this text");
        let (scrub, told) = scrub(&HeaderMap::new());
        assert_eq!(passed(&mut scrub.unwrap(), &[&harmless]), harmless);
        assert_eq!(told.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn secret_in_another_spelling_is_found() {
        let hex: Vec<String> = SECRET.bytes().map(|byte| format!("{byte:02x}")).collect();
        let hex = hex.concat();
        for text in [hex.clone(), hex.to_ascii_uppercase()] {
            for cut in [0, 1, 7, text.len()] {
                let (scrub, told) = scrub(&HeaderMap::new());
                let clean = passed(&mut scrub.unwrap(), &[&text[..cut], &text[cut..]]);
                assert_eq!(clean.len(), text.len());
                assert_ne!(clean, text);
                assert_eq!(told.load(Ordering::Relaxed), 1);
            }
        }
        let spellings = |secret: &str| {
            let needles = SPELLINGS.map(|spell| spelled(secret.as_bytes(), PLACEHOLDER, spell));
            needles.map(|needle| String::from_utf8(needle.secret.bytes().to_vec()).unwrap())
        };
        let [_, _, percent, escaped] = spellings("a+b/c=");
        assert_eq!(percent, "a%2Bb%2Fc%3D");
        assert_eq!(escaped, "a+b\\/c=");
    }

    #[test]
    fn event_is_not_held_back() {
        let (scrub, told) = scrub(&HeaderMap::new());
        let event = Bytes::from_static(b"data: {\"s\":\"sk-\"}\n\n");
        assert_eq!(scrub.unwrap().pass(event.clone()), event);
        assert_eq!(told.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn compressed_and_binary_bodies_are_left_alone() {
        let mut headers = HeaderMap::new();
        headers.insert("content-encoding", HeaderValue::from_static("br"));
        assert!(scrub(&headers).0.is_none());
        let mut headers = HeaderMap::new();
        headers.insert(
            "content-type",
            HeaderValue::from_static("application/octet-stream"),
        );
        assert!(scrub(&headers).0.is_none(), "its length would change");
        headers.insert(
            "content-type",
            HeaderValue::from_static("text/event-stream; charset=utf-8"),
        );
        assert!(scrub(&headers).0.is_some());
    }

    #[test]
    fn headers_lose_secrets_and_session_cookies() {
        let mut headers = HeaderMap::new();
        headers.insert("x-echo", format!("Bearer {SECRET}").parse().unwrap());
        headers.append("set-cookie", HeaderValue::from_static("__cf_bm=1; Path=/"));
        headers.append(
            "set-cookie",
            HeaderValue::from_static("user_session=2; Path=/"),
        );
        headers.insert("x-other", HeaderValue::from_static("kept"));
        let in_a_name: HeaderName = format!("x-{SECRET}").parse().unwrap();
        headers.insert(&in_a_name, HeaderValue::from_static("1"));
        assert!(scrub_headers(&mut headers, &grants()));
        assert_eq!(headers["x-echo"], format!("Bearer {PLACEHOLDER}"));
        assert_eq!(headers["x-other"], "kept");
        assert!(!headers.contains_key(&in_a_name));
        let cookies: Vec<_> = headers.get_all("set-cookie").iter().collect();
        assert_eq!(cookies, ["__cf_bm=1; Path=/"]);
        assert!(!scrub_headers(&mut headers, &grants()));
    }
}
