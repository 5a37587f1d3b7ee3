//! Archives no writer makes: members as told, checksums and end mark right unless told otherwise.

use super::round_trip::manifest;
use crate::Manifest;
use crate::archive::attributes::Attributes;
use crate::archive::header::{self, Member};
use crate::archive::sums::hex;
use sha2::{Digest as _, Sha256};
use std::io::Write as _;

/// An archive being forged.
pub(super) struct Forge {
    plain: Vec<u8>,
    sums: String,
    members: u64,
}

impl Forge {
    pub(super) fn nothing() -> Self {
        Self {
            plain: Vec::new(),
            sums: String::new(),
            members: 0,
        }
    }

    /// With a manifest, and the folders every archive has.
    pub(super) fn new() -> Self {
        Self::of(&manifest(&[])).folders(&["box", "box/workspace", "box/home"])
    }

    pub(super) fn of(manifest: &Manifest) -> Self {
        let text = serde_json::to_vec(manifest).unwrap();
        Self::nothing().file("manifest.json", &text)
    }

    pub(super) fn folders(self, names: &[&str]) -> Self {
        names
            .iter()
            .fold(self, |forge, name| forge.member((name, b'5', ""), b"", &[]))
    }

    pub(super) fn file(self, name: &str, content: &[u8]) -> Self {
        self.member((name, b'0', ""), content, &[])
    }

    pub(super) fn link(self, name: &str, target: &str) -> Self {
        self.member((name, b'2', target), b"", &[])
    }

    pub(super) fn hard_link(self, name: &str, target: &str) -> Self {
        self.member((name, b'1', target), b"", &[])
    }

    /// A member with these records in its extended header.
    pub(super) fn member(
        self,
        what: (&str, u8, &str),
        content: &[u8],
        records: &[(&str, &[u8])],
    ) -> Self {
        self.tweaked(what, content, records, |_| {})
    }

    /// As [`Forge::member`], with a header changed before its checksum is made.
    pub(super) fn tweaked(
        mut self,
        (name, kind, link): (&str, u8, &str),
        content: &[u8],
        records: &[(&str, &[u8])],
        tweak: impl FnOnce(&mut tar::Header),
    ) -> Self {
        let member = |name, kind, link, size| Member {
            name,
            kind,
            link,
            size,
        };
        if !records.is_empty() {
            let text = extended(records);
            let extended = member(b"extended", b'x', b"", text.len() as u64);
            header::put(&mut self.plain, &extended, &Attributes::fixed(0)).unwrap();
            self.plain.extend(&text);
            header::pad(&mut self.plain, text.len() as u64).unwrap();
        }
        let size = content.len() as u64;
        let made = member(name.as_bytes(), kind, link.as_bytes(), size);
        header::put(&mut self.plain, &made, &Attributes::fixed(0o755)).unwrap();
        let start = self.plain.len() - 512;
        let mut header = tar::Header::new_ustar();
        header.as_mut_bytes().copy_from_slice(&self.plain[start..]);
        tweak(&mut header);
        header.set_cksum();
        self.plain[start..].copy_from_slice(header.as_bytes());
        self.plain.extend(content);
        header::pad(&mut self.plain, size).unwrap();
        self.members += 1;
        let whiteout = records
            .iter()
            .any(|(key, _)| *key == "BOX.overlay.whiteout");
        if kind == b'0' && !whiteout {
            let sum = hex(&Sha256::digest(content));
            self.sums.extend([&sum, "  ", name, "\n"]);
        }
        self
    }

    pub(super) fn sums_text(&self) -> String {
        self.sums.clone()
    }

    /// With other checksums than those of its files.
    pub(super) fn with_sums(mut self, sums: &str) -> Self {
        sums.clone_into(&mut self.sums);
        self
    }

    /// The tar so far.
    pub(super) fn plain(&self) -> &[u8] {
        &self.plain
    }

    /// Plain bytes, as they are.
    pub(super) fn raw(mut self, bytes: &[u8]) -> Self {
        self.plain.extend(bytes);
        self
    }

    pub(super) fn sums(self) -> Self {
        let (sums, members) = (self.sums.clone(), self.members);
        let mut forge = self.file("SHA256SUMS", sums.as_bytes());
        forge.members = members;
        forge
    }

    pub(super) fn end_mark(self) -> Self {
        let text = serde_json::json!({
            "members": self.members,
            "bytes": self.plain.len(),
            "sha256": hex(&Sha256::digest(&self.plain)),
        });
        self.file("end.json", text.to_string().as_bytes())
    }

    /// The whole of it, compressed.
    pub(super) fn end(self) -> Vec<u8> {
        self.sums().end_mark().raw(&[0; 1024]).compressed()
    }

    pub(super) fn compressed(self) -> Vec<u8> {
        let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
        encoder.include_checksum(true).unwrap();
        encoder.write_all(&self.plain).unwrap();
        encoder.finish().unwrap()
    }
}

fn extended(records: &[(&str, &[u8])]) -> Vec<u8> {
    let mut text = Vec::new();
    for (key, value) in records {
        let body = [b" ".as_slice(), key.as_bytes(), b"=", value, b"\n"].concat();
        let length = (body.len()..body.len() + 10)
            .find(|length| *length == body.len() + length.to_string().len());
        text.extend(length.unwrap().to_string().bytes());
        text.extend(body);
    }
    text
}
