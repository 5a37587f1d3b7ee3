//! The beginning of a push: the list of commands in pkt-lines (gitprotocol-pack(5), *Pushing Data To
//! a Server*; gitprotocol-common(5), *pkt-line Format*). Pure.

use super::why::Why;
use std::fmt;

/// Longest list of commands, with its options.
pub(crate) const COMMANDS_BYTES_MAX: usize = 1 << 20;
/// Most refs of one push.
pub(crate) const COMMANDS_MAX: usize = 2000;
/// Longest pkt-line, its length included.
const LINE_BYTES_MAX: usize = 65_520;

/// The name of an object: SHA-1.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Oid(pub(crate) [u8; 20]);

impl Oid {
    pub(crate) const ZERO: Self = Self([0; 20]);

    /// Forty hexadecimal digits.
    pub(crate) fn parse(hex: &[u8]) -> Option<Self> {
        if hex.len() != 40 {
            return None;
        }
        let mut bytes = [0; 20];
        for (byte, pair) in bytes.iter_mut().zip(hex.chunks_exact(2)) {
            let [high, low] = pair else { return None };
            let digit = |byte: u8| char::from(byte).to_digit(16);
            *byte = u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Debug for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// What is to become of one ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Command {
    /// What it is now, as the client says; the server compares. Zero: there is none.
    pub(crate) old: Oid,
    /// Zero: it goes.
    pub(crate) new: Oid,
    pub(crate) name: String,
}

/// How the client wants to hear what came of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// It takes a report at all.
    pub(crate) is_wanted: bool,
    /// It takes it in bands, and words for a person beside it.
    pub(crate) in_bands: bool,
}

/// A list of commands, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Push {
    pub(crate) commands: Vec<Command>,
    pub(crate) report: Report,
    /// Where the pack begins.
    pub(crate) pack_at: usize,
}

/// Reads the list of commands. `None`: it goes on behind `bytes`.
pub(crate) fn read(bytes: &[u8]) -> Result<Option<Push>, Why> {
    let mut lines = Lines { bytes, at: 0 };
    let mut commands = Vec::new();
    let mut abilities = Vec::new();
    loop {
        let line = match lines.next()? {
            Line::Missing => return missing(bytes),
            Line::Flush => break,
            Line::Data(line) => line.strip_suffix(b"\n").unwrap_or(line),
        };
        let (line, told) = told_abilities(line);
        match told {
            None if is_shallow(line) && commands.is_empty() => continue,
            Some(told) if commands.is_empty() => abilities = told.to_vec(),
            Some(_) => return Err(Why::Unclear("a push says what it can with its first ref")),
            None => {}
        }
        if line.starts_with(b"push-cert") {
            return Err(Why::Unclear("a signed push cannot be judged"));
        }
        if commands.len() == COMMANDS_MAX {
            return Err(Why::Unclear("a push has too many refs"));
        }
        commands.push(command(line)?);
    }
    check_names(&commands)?;
    if has(&abilities, b"push-options") && !commands.is_empty() {
        loop {
            match lines.next()? {
                Line::Missing => return missing(bytes),
                Line::Flush => break,
                Line::Data(_) => {}
            }
        }
    }
    let format = value_of(&abilities, b"object-format=");
    if format.is_some_and(|format| format != b"sha1") {
        return Err(Why::Unclear("a push names objects by SHA-1"));
    }
    Ok(Some(Push {
        commands,
        report: Report {
            is_wanted: has(&abilities, b"report-status") || has(&abilities, b"report-status-v2"),
            in_bands: has(&abilities, b"side-band-64k") || has(&abilities, b"side-band"),
        },
        pack_at: lines.at,
    }))
}

fn missing(bytes: &[u8]) -> Result<Option<Push>, Why> {
    if bytes.len() > COMMANDS_BYTES_MAX {
        return Err(Why::Unclear("a push has too many refs"));
    }
    Ok(None)
}

/// A ref that stands twice could be judged as one thing and done as the other.
fn check_names(commands: &[Command]) -> Result<(), Why> {
    let mut names = std::collections::HashSet::new();
    if commands.iter().all(|command| names.insert(&command.name)) {
        Ok(())
    } else {
        Err(Why::Unclear("a push names a ref twice"))
    }
}

fn is_shallow(line: &[u8]) -> bool {
    let oid = line.strip_prefix(b"shallow ");
    oid.is_some_and(|oid| Oid::parse(oid).is_some())
}

/// What stands behind the NUL of the first line.
fn told_abilities(line: &[u8]) -> (&[u8], Option<&[u8]>) {
    match line.iter().position(|byte| *byte == 0) {
        Some(at) => (&line[..at], Some(&line[at + 1..])),
        None => (line, None),
    }
}

/// `<old> <new> <name>`
fn command(line: &[u8]) -> Result<Command, Why> {
    let read = || {
        let (old, rest) = (line.get(..40)?, line.get(40..)?);
        let rest = rest.strip_prefix(b" ")?;
        let (new, rest) = (rest.get(..40)?, rest.get(40..)?);
        let name = std::str::from_utf8(rest.strip_prefix(b" ")?).ok()?;
        Some(Command {
            old: Oid::parse(old)?,
            new: Oid::parse(new)?,
            name: name.to_owned(),
        })
    };
    let command = read().ok_or(Why::Unclear("this is no push"))?;
    if command.old == Oid::ZERO && command.new == Oid::ZERO {
        return Err(Why::Unclear("this is no push"));
    }
    Ok(command)
}

fn has(abilities: &[u8], name: &[u8]) -> bool {
    words(abilities).any(|word| word == name)
}

fn value_of<'a>(abilities: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    words(abilities).find_map(|word| word.strip_prefix(name))
}

fn words(abilities: &[u8]) -> impl Iterator<Item = &[u8]> {
    abilities.split(|byte| *byte == b' ')
}

enum Line<'a> {
    Data(&'a [u8]),
    Flush,
    /// It goes on behind what there is.
    Missing,
}

struct Lines<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Lines<'a> {
    fn next(&mut self) -> Result<Line<'a>, Why> {
        let unclear = Why::Unclear("this is no push");
        let Some(head) = self.bytes.get(self.at..self.at + 4) else {
            return Ok(Line::Missing);
        };
        let mut length = 0;
        for byte in head {
            let digit = char::from(*byte)
                .to_digit(16)
                .ok_or_else(|| unclear.clone())?;
            length = length << 4 | digit as usize;
        }
        // 1 and 2 end parts of protocol 2, which has no push; 3 and 4 are nothing.
        if length == 0 {
            self.at += 4;
            return Ok(Line::Flush);
        }
        if !(5..=LINE_BYTES_MAX).contains(&length) {
            return Err(unclear);
        }
        let Some(line) = self.bytes.get(self.at + 4..self.at + length) else {
            return Ok(Line::Missing);
        };
        self.at += length;
        Ok(Line::Data(line))
    }
}

/// `<length><data>`, for data that is short enough.
pub(crate) fn line(data: &[u8]) -> Vec<u8> {
    let mut line = format!("{:04x}", data.len() + 4).into_bytes();
    line.extend_from_slice(data);
    line
}

pub(crate) const FLUSH: &[u8] = b"0000";

#[cfg(test)]
mod tests;
