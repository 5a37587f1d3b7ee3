//! Checksums: of every file as sha256sum(1) writes them, and of all that went by.

use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Read, Seek as _, Write};

/// A stream that knows how much went through it, and its SHA-256.
#[derive(Debug)]
pub(super) struct Summed<S> {
    stream: S,
    sum: Sha256,
    bytes: u64,
}

impl<S> Summed<S> {
    pub(super) fn new(stream: S) -> Self {
        Self {
            stream,
            sum: Sha256::new(),
            bytes: 0,
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn sum(&self) -> String {
        hex(&self.sum.clone().finalize())
    }

    pub(super) fn into_inner(self) -> S {
        self.stream
    }

    fn see(&mut self, bytes: &[u8]) {
        self.sum.update(bytes);
        self.bytes += bytes.len() as u64;
    }
}

impl<R: Read> Read for Summed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.stream.read(buffer)?;
        self.see(&buffer[..count]);
        Ok(count)
    }
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.stream.write(bytes)?;
        self.see(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The lines so far, on disk: a box may have millions of files.
#[derive(Debug)]
pub(super) struct Spool {
    file: BufWriter<File>,
    bytes: u64,
}

impl Spool {
    /// `file` is empty, and gone when it is closed.
    pub(super) fn new(file: File) -> Self {
        Self {
            file: BufWriter::new(file),
            bytes: 0,
        }
    }

    pub(super) fn add(&mut self, name: &[u8], sum: &[u8]) -> io::Result<()> {
        let line = line(name, sum);
        self.bytes += line.len() as u64;
        self.file.write_all(&line)
    }

    /// All lines from the first on, and how many bytes they have.
    pub(super) fn read(self) -> io::Result<(u64, BufReader<File>)> {
        let mut file = self
            .file
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        file.rewind()?;
        Ok((self.bytes, BufReader::new(file)))
    }
}

/// Compares lines that came with those that should have come.
#[derive(Debug)]
pub(super) struct Compare {
    ours: BufReader<File>,
}

/// What came of comparing.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Compared {
    Same,
    /// The name in our line, as it stands there.
    Other(Vec<u8>),
}

impl Compare {
    pub(super) fn new(ours: BufReader<File>) -> Self {
        Self { ours }
    }

    /// Whether `theirs` goes on as our lines do.
    pub(super) fn next(&mut self, theirs: &[u8]) -> io::Result<Compared> {
        let mut rest = theirs;
        while !rest.is_empty() {
            let buffer = self.ours.fill_buf()?;
            let most = buffer.len().min(rest.len());
            if most == 0 {
                return Ok(Compared::Other(b"SHA256SUMS".to_vec()));
            }
            if buffer[..most] != rest[..most] {
                let at = (0..most).find(|at| buffer[*at] != rest[*at]).unwrap_or(0);
                self.ours.consume(at);
                let mut line = Vec::new();
                self.ours.read_until(b'\n', &mut line)?;
                let name = line.split(|byte| *byte == b' ').next_back();
                return Ok(Compared::Other(
                    name.unwrap_or_default().trim_ascii().to_vec(),
                ));
            }
            self.ours.consume(most);
            rest = &rest[most..];
        }
        Ok(Compared::Same)
    }

    /// Whether all our lines were met.
    pub(super) fn is_over(&mut self) -> io::Result<bool> {
        Ok(self.ours.fill_buf()?.is_empty())
    }
}

/// `<sum>  <name>`; a name with `\`, a newline or a carriage return is written with escapes, which
/// a `\` before the sum tells (coreutils, *cksum general options*).
fn line(name: &[u8], sum: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(name.len());
    for byte in name {
        match byte {
            b'\\' => escaped.extend(br"\\"),
            b'\n' => escaped.extend(br"\n"),
            b'\r' => escaped.extend(br"\r"),
            plain => escaped.push(*plain),
        }
    }
    let mut line = Vec::with_capacity(escaped.len() + 68);
    if escaped.len() != name.len() {
        line.push(b'\\');
    }
    line.extend(hex(sum).bytes());
    line.extend(b"  ");
    line.extend(escaped);
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_as_sha256sum_writes_them() {
        assert_eq!(line(b"a b", &[0xab, 1]), b"ab01  a b\n");
        assert_eq!(line(b"a\nb\\", &[1]), b"\\01  a\\nb\\\\\n");
    }

    #[test]
    fn the_first_line_that_differs_is_named() {
        let spool = || {
            let mut spool = Spool::new(tempfile::tempfile().unwrap());
            spool.add(b"one", &[1]).unwrap();
            spool.add(b"two", &[2]).unwrap();
            let (bytes, lines) = spool.read().unwrap();
            assert_eq!(bytes, 16);
            Compare::new(lines)
        };
        let mut same = spool();
        assert_eq!(same.next(b"01  one\n02").unwrap(), Compared::Same);
        assert!(!same.is_over().unwrap());
        assert_eq!(same.next(b"  two\n").unwrap(), Compared::Same);
        assert!(same.is_over().unwrap());
        assert_eq!(
            same.next(b"x").unwrap(),
            Compared::Other(b"SHA256SUMS".to_vec())
        );
        assert_eq!(
            spool().next(b"01  one\n03  two\n").unwrap(),
            Compared::Other(b"two".to_vec())
        );
    }
}
