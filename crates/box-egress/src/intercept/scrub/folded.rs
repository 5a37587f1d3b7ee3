//! Looks into a compressed body on its way to a box. Nothing in it is replaced: a body in which the
//! secret comes back is broken off before the piece that would complete it.
//!
//! Requests that carry a secret ask for codings that can be looked into, and no other
//! ([`ask_for_readable`]); a host that answers in another is passed on unread.

use super::{Needle, beginning_at_end};
use flate2::write::{MultiGzDecoder, ZlibDecoder};
use http::header::{self, HeaderMap, HeaderValue};
use memchr::memmem;
use std::io::{self, Write};

/// Unfolded bytes that are looked at; what lies behind them passes.
const LOOKED_AT_BYTES_MAX: usize = 256 << 20;

/// A coding that can be looked into.
enum Decoder {
    Gzip(Box<MultiGzDecoder<Look>>),
    Deflate(Box<ZlibDecoder<Look>>),
}

/// What a body unfolds to, piece by piece.
struct Look {
    needles: Vec<Needle>,
    /// The end of what was seen, as far as a secret may begin in it.
    tail: Vec<u8>,
    seen_bytes: usize,
    is_found: bool,
}

/// A compressed body that is watched.
pub(super) struct Folded(Option<Decoder>);

impl Folded {
    /// A watch over bodies of this coding, if it is one that can be looked into.
    pub(super) fn new(headers: &HeaderMap, needles: Vec<Needle>) -> Option<Self> {
        let mut codings = headers.get_all(header::CONTENT_ENCODING).iter();
        let (coding, None) = (codings.next()?, codings.next()) else {
            return None;
        };
        let coding = coding.to_str().ok()?.trim().to_ascii_lowercase();
        let look = Look {
            needles,
            tail: Vec::new(),
            seen_bytes: 0,
            is_found: false,
        };
        Some(Self(Some(match coding.as_str() {
            "gzip" | "x-gzip" => Decoder::Gzip(Box::new(MultiGzDecoder::new(look))),
            "deflate" => Decoder::Deflate(Box::new(ZlibDecoder::new(look))),
            _ => return None,
        })))
    }

    /// Looks at the next piece; says whether the secret is there.
    pub(super) fn sees(&mut self, piece: &[u8]) -> bool {
        let Some(decoder) = &mut self.0 else {
            return false;
        };
        // A decoder hands on what it has when it is flushed.
        let (read, look) = match decoder {
            Decoder::Gzip(gzip) => (
                gzip.write_all(piece).and_then(|()| gzip.flush()),
                gzip.get_ref(),
            ),
            Decoder::Deflate(deflate) => {
                let read = deflate.write_all(piece).and_then(|()| deflate.flush());
                (read, deflate.get_ref())
            }
        };
        let (is_found, is_enough) = (look.is_found, look.seen_bytes > LOOKED_AT_BYTES_MAX);
        // What does not unfold is nothing the box could unfold either.
        if read.is_err() || is_enough {
            self.0 = None;
        }
        is_found
    }
}

impl Write for Look {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.seen_bytes = self.seen_bytes.saturating_add(piece.len());
        if self.is_found {
            return Ok(piece.len());
        }
        self.tail.extend_from_slice(piece);
        let text = &self.tail;
        let mut secrets = self.needles.iter().map(|needle| needle.secret.bytes());
        self.is_found = secrets.any(|secret| memmem::find(text, secret).is_some());
        let secrets = self.needles.iter().map(|needle| needle.secret.bytes());
        let kept = secrets.map(|secret| beginning_at_end(text, secret));
        let kept = kept.max().unwrap_or_default();
        self.tail.drain(..self.tail.len() - kept);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Of the codings a request asks for, leaves those that can be looked into.
pub(crate) fn ask_for_readable(headers: &mut HeaderMap) {
    let asked = headers.get_all(header::ACCEPT_ENCODING).iter();
    let mut listed = asked
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    let wants_gzip = listed.any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let is_gzip = ["gzip", "x-gzip", "*"].contains(&name.trim().to_ascii_lowercase().as_str());
        is_gzip && weight.trim().trim_start_matches("q=").trim() != "0"
    });
    // Absent, any coding may come (RFC 9110 §12.5.3).
    let readable = if wants_gzip { "gzip" } else { "identity" };
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(readable));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;
    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};

    fn watch(coding: &'static str) -> Option<Folded> {
        let mut headers = HeaderMap::new();
        headers.insert("content-encoding", HeaderValue::from_static(coding));
        let needle = Needle {
            secret: Secret::new(b"sk-ant-oat01-S3CRET"),
            placeholder: String::new(),
        };
        Folded::new(&headers, vec![needle])
    }

    fn text(secret: &str) -> Vec<u8> {
        let around = "nothing to be seen here ".repeat(200);
        format!("{around}{secret}{around}").into_bytes()
    }

    #[test]
    fn a_secret_is_seen_in_gzip_and_deflate_however_they_are_cut() {
        let (found, clean) = (text("sk-ant-oat01-S3CRET"), text("sk-ant-oat01-S3CR"));
        let gzip = |text: &[u8]| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(text).unwrap();
            encoder.finish().unwrap()
        };
        let deflate = |text: &[u8]| {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
            encoder.write_all(text).unwrap();
            encoder.finish().unwrap()
        };
        for (coding, body, is_there) in [
            ("gzip", gzip(&found), true),
            ("gzip", gzip(&clean), false),
            ("deflate", deflate(&found), true),
            ("deflate", deflate(&clean), false),
        ] {
            for size in [1, 7, 4096] {
                let mut watch = watch(coding).unwrap();
                let seen = body.chunks(size).any(|piece| watch.sees(piece));
                assert_eq!(seen, is_there, "{coding} by {size}");
            }
        }
    }

    #[test]
    fn what_is_no_such_body_is_left_alone() {
        assert!(watch("br").is_none());
        let mut watch = watch("gzip").unwrap();
        assert!(!watch.sees(b"no gzip at all"));
        assert!(!watch.sees(b"sk-ant-oat01-S3CRET"));
    }

    #[test]
    fn a_request_asks_for_what_can_be_looked_into() {
        for (asked, left) in [
            (Some("br, gzip;q=0.9, zstd"), "gzip"),
            (Some("*"), "gzip"),
            (Some("br"), "identity"),
            (Some("gzip;q=0, br"), "identity"),
            (None, "identity"),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(asked) = asked {
                headers.insert("accept-encoding", HeaderValue::from_static(asked));
            }
            ask_for_readable(&mut headers);
            assert_eq!(headers["accept-encoding"], left, "{asked:?}");
        }
    }
}
