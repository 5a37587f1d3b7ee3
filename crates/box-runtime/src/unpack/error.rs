//! Why an archive was not unpacked. Names in messages are cut and made printable.

use super::OWNER_MAX;
use super::name::EntryName;
use std::io;

/// Longest entry name shown, characters.
const SHOWN_CHARS_MAX: usize = 120;

/// Why an archive was not unpacked.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    #[error("entry `{entry}` {why}")]
    Refused { entry: String, why: Refusal },
    #[error("it has more than {max} entries")]
    TooManyEntries { max: u64 },
    #[error("it unpacks to more than {max} bytes")]
    TooBig { max: u64 },
    #[error("it is damaged at byte {at}: {what}")]
    Damaged { at: u64, what: &'static str },
    #[error("it is compressed with {with}, which is not supported")]
    Compression { with: &'static str },
    #[error("the disk is full at entry `{entry}`")]
    DiskFull { entry: String },
    #[error("could not {action} entry `{entry}`")]
    Write {
        action: &'static str,
        entry: String,
        #[source]
        source: io::Error,
    },
    #[error("could not read the archive")]
    Read(#[source] io::Error),
}

/// What is wrong with an entry; completes a sentence that begins with its name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("has an absolute name")]
    Absolute,
    #[error("has `..` in its name")]
    Parent,
    #[error("has no name")]
    Nameless,
    #[error("has a zero byte in its name")]
    ZeroByte,
    #[error("has a name of more than {max} bytes")]
    Long { max: usize },
    #[error("comes when the names of its folders are over {max} bytes")]
    FolderNames { max: usize },
    #[error("is a mark that hides nothing")]
    HidesNothing,
    #[error("lies behind a link")]
    BehindLink,
    #[error("lies behind a file")]
    BehindFile,
    #[error("would replace a folder")]
    ReplacesFolder,
    #[error("is a folder in the place of a file or link")]
    FolderInPlace,
    #[error("is a link, which this kind of archive may not hold")]
    Link,
    #[error("is a link with a target that is empty or has a zero byte")]
    LinkTarget,
    #[error("is a hard link, which this kind of archive may not hold")]
    HardLink,
    #[error("is a hard link to a file that {0}")]
    HardLinkTarget(Box<Self>),
    #[error("is a hard link to something that is no file of the archive before it")]
    HardLinkToNothing,
    #[error("is a device node")]
    Device,
    #[error("is a fifo")]
    Fifo,
    #[error("is a sparse file")]
    Sparse,
    #[error("is of unknown kind {0}")]
    Kind(u8),
    #[error("has content although it is no file")]
    Content,
    #[error("belongs to {of} {id}, and the highest number a box has is {OWNER_MAX}")]
    Owner { of: &'static str, id: u64 },
}

impl UnpackError {
    pub(super) fn refused(entry: &[u8], why: Refusal) -> Self {
        Self::Refused {
            entry: shown(entry),
            why,
        }
    }

    pub(super) fn io(action: &'static str, entry: &EntryName, error: impl Into<io::Error>) -> Self {
        let source: io::Error = error.into();
        let entry = shown(entry.as_bytes());
        let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
        if full.contains(&source.kind()) {
            Self::DiskFull { entry }
        } else {
            Self::Write {
                action,
                entry,
                source,
            }
        }
    }
}

/// A name an archive chose, fit to be printed.
pub(crate) fn shown(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name);
    let mut chars = text.chars();
    let mut shown: String = chars
        .by_ref()
        .take(SHOWN_CHARS_MAX)
        .map(|c| {
            if c.is_control() || c == '`' {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect();
    if chars.next().is_some() {
        shown.push('…');
    }
    shown
}
