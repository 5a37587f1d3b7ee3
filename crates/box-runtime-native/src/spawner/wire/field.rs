//! What messages are made of: numbers, texts, limits.

use super::MESSAGE_BYTES;
use box_api::BoxId;
use box_api::control::Limits;
use std::io;

pub(super) fn malformed(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("malformed message: {what}"),
    )
}

/// Writes fields one after the other.
pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn new(serial: u64, kind: u32) -> Self {
        let mut writer = Self(Vec::with_capacity(MESSAGE_BYTES));
        writer.number64(serial);
        writer.number(kind);
        writer
    }

    pub(super) fn number(&mut self, value: u32) {
        self.0.extend(value.to_ne_bytes());
    }

    pub(super) fn number64(&mut self, value: u64) {
        self.0.extend(value.to_ne_bytes());
    }

    pub(super) fn text(&mut self, text: &str) {
        self.number(u32::try_from(text.len()).unwrap_or(u32::MAX));
        self.0.extend(text.as_bytes());
    }

    pub(super) fn limits(&mut self, limits: &Limits) {
        self.number(limits.cpu_milli);
        self.number(limits.pids);
        self.number(limits.open_files);
        self.number64(limits.memory_bytes);
        self.number64(limits.tmp_bytes);
        self.number64(limits.disk_bytes);
    }

    pub(super) fn finish(mut self) -> io::Result<Vec<u8>> {
        if self.0.len() > MESSAGE_BYTES {
            return Err(malformed("too long"));
        }
        self.0.resize(MESSAGE_BYTES, 0);
        Ok(self.0)
    }
}

/// Reads them back and trusts none.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> io::Result<&'a [u8]> {
        let (taken, rest) = self
            .0
            .split_at_checked(length)
            .ok_or_else(|| malformed("too short"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| malformed("too short"))
    }

    pub(super) fn number(&mut self) -> io::Result<u32> {
        Ok(u32::from_ne_bytes(self.array()?))
    }

    pub(super) fn number64(&mut self) -> io::Result<u64> {
        Ok(u64::from_ne_bytes(self.array()?))
    }

    pub(super) fn count(&mut self, max: usize) -> io::Result<usize> {
        let count = self.number()? as usize;
        if count > max {
            Err(malformed("too many"))
        } else {
            Ok(count)
        }
    }

    pub(super) fn text(&mut self, bytes_max: usize) -> io::Result<String> {
        let length = self.count(bytes_max)?;
        let bytes = self.take(length)?;
        String::from_utf8(bytes.to_vec()).map_err(|_| malformed("text is not UTF-8"))
    }

    pub(super) fn limits(&mut self) -> io::Result<Limits> {
        let (cpu_milli, pids, open_files) = (self.number()?, self.number()?, self.number()?);
        Ok(Limits {
            cpu_milli,
            pids,
            open_files,
            memory_bytes: self.number64()?,
            tmp_bytes: self.number64()?,
            disk_bytes: self.number64()?,
        })
    }

    pub(super) fn id(&mut self) -> io::Result<BoxId> {
        let text = self.text(32)?;
        BoxId::parse(&text).map_err(|_| malformed("no box id"))
    }
}
