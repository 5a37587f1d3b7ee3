//! Answers packed as content codings (RFC 9110 §8.4.1).

use super::Said;
use crate::rig::AnswerBody;
use flate2::Compression;
use flate2::read::{DeflateEncoder, GzEncoder, ZlibEncoder};
use http::Response;
use std::io::Read;

/// How an answer is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Packing {
    #[default]
    None,
    Gzip,
    /// In zlib's frame, as the RFC has it.
    Deflate,
    /// Without it, as some servers do.
    RawDeflate,
    Brotli,
    /// A coding nobody knows.
    Unknown,
}

pub(super) fn packed(mut said: Said, packing: Packing) -> Response<AnswerBody> {
    let plain = std::mem::take(&mut said.body);
    if !said.is_token {
        return said.response(plain);
    }
    let level = Compression::default();
    let (coding, body) = match packing {
        Packing::None => return said.response(plain),
        Packing::Gzip => ("gzip", whole(GzEncoder::new(&*plain, level))),
        Packing::Deflate => ("deflate", whole(ZlibEncoder::new(&*plain, level))),
        Packing::RawDeflate => ("deflate", whole(DeflateEncoder::new(&*plain, level))),
        Packing::Brotli => ("br", stored_brotli(&plain)),
        Packing::Unknown => ("x-rig", plain),
    };
    said.headers.push(("content-encoding", coding.to_owned()));
    said.response(body)
}

fn whole(mut reader: impl Read) -> Vec<u8> {
    let mut body = Vec::new();
    let _from_memory = reader.read_to_end(&mut body);
    body
}

/// One uncompressed meta-block (RFC 7932 §9.2); bodies here are shorter than 64 KiB.
fn stored_brotli(plain: &[u8]) -> Vec<u8> {
    // WBITS 16 is the bit 0. Then ISLAST 0, MNIBBLES 4 (two bits 00), 16 bits of MLEN - 1,
    // ISUNCOMPRESSED 1: 1 + 1 + 2 + 16 + 1 bits, padded to three bytes.
    let length = u32::try_from(plain.len().saturating_sub(1)).unwrap_or(0) & 0xffff;
    let head = length << 4 | 1 << 20;
    let [first, second, third, _] = head.to_le_bytes();
    let mut body = vec![first, second, third];
    body.extend_from_slice(plain);
    // ISLAST 1, ISLASTEMPTY 1.
    body.push(3);
    body
}
