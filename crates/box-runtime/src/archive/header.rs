//! Makes headers of members: ustar, with an extended header of POSIX before it where that has no
//! room (pax(1), *pax Extended Header*).

use super::attributes::{Attributes, Record};
use std::io::{self, Write};
use tar::Header;

const BLOCK_BYTES: usize = 512;
/// Room for a name in a header.
const NAME_BYTES: usize = 100;
/// What extended headers are called; no reader looks.
const EXTENDED: &[u8] = b"././@PaxHeader";

/// A member, before its content.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member<'a> {
    pub(super) name: &'a [u8],
    /// `0` file, `1` hard link, `2` symbolic link, `5` folder, `6` fifo.
    pub(super) kind: u8,
    pub(super) link: &'a [u8],
    pub(super) size: u64,
}

impl<'a> Member<'a> {
    pub(super) fn file(name: &'a str, size: u64) -> Self {
        Self {
            name: name.as_bytes(),
            kind: b'0',
            link: &[],
            size,
        }
    }
}

/// Writes a member's header, and the extended one before it if it needs one.
pub(super) fn put(
    out: &mut impl Write,
    member: &Member<'_>,
    attributes: &Attributes,
) -> io::Result<()> {
    let mut records = attributes.records();
    let long = [(&b"path"[..], member.name), (b"linkpath", member.link)];
    for (key, value) in long
        .into_iter()
        .filter(|(_, value)| value.len() > NAME_BYTES)
    {
        records.push((key.to_vec(), value.to_vec()));
        if std::str::from_utf8(value).is_err() {
            records.push((b"hdrcharset".to_vec(), b"BINARY".to_vec()));
        }
    }
    if !records.is_empty() {
        let text = extended(&records);
        let member = Member {
            name: EXTENDED,
            kind: b'x',
            link: &[],
            size: text.len() as u64,
        };
        out.write_all(header(&member, &Attributes::fixed(0o644)).as_bytes())?;
        out.write_all(&text)?;
        pad(out, text.len() as u64)?;
    }
    out.write_all(header(member, attributes).as_bytes())
}

/// Fills the last block of a member's content.
pub(super) fn pad(out: &mut impl Write, size: u64) -> io::Result<()> {
    let over = usize::try_from(size % BLOCK_BYTES as u64).unwrap_or(0);
    out.write_all(&[0; BLOCK_BYTES][..(BLOCK_BYTES - over) % BLOCK_BYTES])
}

/// The end mark of a tar.
pub(super) fn end(out: &mut impl Write) -> io::Result<()> {
    out.write_all(&[0; 2 * BLOCK_BYTES])
}

fn header(member: &Member<'_>, attributes: &Attributes) -> Header {
    let mut header = Header::new_ustar();
    let cut = |name: &[u8], field: &mut [u8]| {
        let most = name.len().min(field.len());
        field[..most].copy_from_slice(&name[..most]);
    };
    let old = header.as_old_mut();
    cut(member.name, &mut old.name);
    cut(member.link, &mut old.linkname);
    old.linkflag[0] = member.kind;
    header.set_mode(attributes.mode);
    header.set_uid(attributes.uid.into());
    header.set_gid(attributes.gid.into());
    header.set_size(member.size);
    header.set_mtime(u64::try_from(attributes.mtime.0).unwrap_or(0));
    header.set_cksum();
    header
}

fn extended(records: &[Record]) -> Vec<u8> {
    let mut text = Vec::new();
    for (key, value) in records {
        // Blank, `=`, newline.
        let rest = key.len() + value.len() + 3;
        let digits = |number: usize| number.to_string().len();
        // The length counts its own digits, of which it may need one more for that.
        let mut length = rest + digits(rest);
        length = rest + digits(length);
        text.extend(format!("{length} ").bytes());
        text.extend(key);
        text.push(b'=');
        text.extend(value);
        text.push(b'\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_records_length_counts_its_own_digits() {
        for size in 0..1200 {
            let text = extended(&[(b"k".to_vec(), vec![b'v'; size])]);
            let space = text.iter().position(|byte| *byte == b' ').unwrap();
            let told: usize = std::str::from_utf8(&text[..space])
                .unwrap()
                .parse()
                .unwrap();
            assert_eq!(told, text.len());
        }
    }
}
