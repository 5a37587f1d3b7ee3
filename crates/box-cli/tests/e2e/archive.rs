//! Archives no honest program makes (ustar, POSIX pax(1)).

use std::fs;
use std::io::Write as _;
use std::path::Path;

const BLOCK_BYTES: usize = 512;

/// One member.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry<'a> {
    pub(crate) name: &'a str,
    /// `0` file, `1` hard link, `2` symbolic link, `3` character device, `5` folder.
    pub(crate) kind: u8,
    pub(crate) link: &'a str,
    pub(crate) bytes: usize,
}

impl<'a> Entry<'a> {
    pub(crate) fn file(name: &'a str, bytes: usize) -> Self {
        Self {
            name,
            kind: b'0',
            link: "",
            bytes,
        }
    }

    pub(crate) fn folder(name: &'a str) -> Self {
        Self {
            name,
            kind: b'5',
            link: "",
            bytes: 0,
        }
    }

    pub(crate) fn link(name: &'a str, kind: u8, link: &'a str) -> Self {
        Self {
            name,
            kind,
            link,
            bytes: 0,
        }
    }

    fn header(&self) -> [u8; BLOCK_BYTES] {
        let mut header = [0; BLOCK_BYTES];
        let mut put =
            |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
        put(0, self.name);
        put(100, "0000755");
        put(108, "0000000");
        put(116, "0000000");
        put(124, &format!("{:011o}", self.bytes));
        put(136, "00000000000");
        put(148, "        ");
        put(157, self.link);
        put(257, "ustar");
        put(263, "00");
        put(329, "0000001");
        put(337, "0000003");
        header[156] = self.kind;
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        header
    }
}

/// Writes an archive of these members; contents are all `x`.
pub(crate) fn write(path: &Path, entries: &[Entry<'_>]) {
    let mut file = std::io::BufWriter::new(fs::File::create(path).unwrap());
    for entry in entries {
        file.write_all(&entry.header()).unwrap();
        let padded = entry.bytes.div_ceil(BLOCK_BYTES);
        for _ in 0..padded {
            file.write_all(&[b'x'; BLOCK_BYTES]).unwrap();
        }
    }
    file.write_all(&[0; 2 * BLOCK_BYTES]).unwrap();
    file.flush().unwrap();
}
