//! Why an archive was not written or not read.

use super::layout::FORMAT;
use crate::unpack::{Refusal, UnpackError, shown};
use std::error::Error;
use std::io;

/// Why an archive was not written or not read. The words complete *the archive …* or stand alone.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error("it is no archive of a box")]
    NotOne,
    #[error("it has format {found}, and {FORMAT} is the newest this build reads")]
    Newer { found: u32 },
    #[error("its manifest {0}")]
    Manifest(String),
    #[error("it is cut short: {0}")]
    Cut(&'static str),
    #[error("it is damaged: {0}")]
    Damaged(String),
    #[error("it is damaged: the checksum of `{entry}` is wrong")]
    Checksum { entry: String },
    #[error("entry `{entry}` {why}")]
    Refused { entry: String, why: Offence },
    #[error("it lacks {0}")]
    Lacks(String),
    #[error("it unpacks to more than {max} bytes, {of}")]
    TooBig { max: u64, of: &'static str },
    #[error("it has more than {max} entries")]
    TooManyEntries { max: u64 },
    #[error("the disk is full")]
    DiskFull,
    #[error("nothing came or went for {seconds} seconds")]
    Silent { seconds: u64 },
    #[error("`{entry}` changed while it was read")]
    Changed { entry: String },
    #[error("could not {action} `{entry}`")]
    Entry {
        action: &'static str,
        entry: String,
        #[source]
        source: io::Error,
    },
    #[error("could not read the archive")]
    Read(#[source] io::Error),
    #[error("could not write the archive")]
    Write(#[source] io::Error),
}

/// What is wrong with an entry; completes a sentence that begins with its name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Offence {
    #[error(transparent)]
    Name(Refusal),
    #[error("has no place in an archive of a box")]
    NoPlace,
    #[error("is there twice")]
    Twice,
    #[error("does not follow the folder it lies in")]
    OutOfOrder,
    #[error("is no folder")]
    NoFolder,
    #[error("is no plain file")]
    NoFile,
    #[error("is a device node")]
    Device,
    #[error("is a sparse file")]
    Sparse,
    #[error("is of unknown kind {0}")]
    Kind(u8),
    #[error("has content although it is no file")]
    Content,
    #[error("is longer than {max} bytes")]
    Long { max: u64 },
    #[error("belongs to {of} {id}, and the highest number a box has is 65535")]
    Owner { of: &'static str, id: u64 },
    #[error(
        "is a hard link to something that is no earlier file of its tree, nor the same file of an earlier state"
    )]
    HardLink,
    #[error("is a link with a target that is empty, too long or has a zero byte")]
    LinkTarget,
    #[error("has an extended attribute `{0}`, which an archive may not hold")]
    Attribute(String),
    #[error("has an access list that is none")]
    AccessList,
    #[error("has a mark of an overlay outside the changes to the root")]
    Overlay,
    #[error("is a renamed folder of the image, which boxes of an ordinary user cannot have")]
    Redirect,
    #[error("has a bad time")]
    Time,
    #[error("belongs to a snapshot the manifest does not name")]
    UnknownSnapshot,
    #[error("is an image the manifest does not speak of")]
    UnknownImage,
    #[error("comes after the checksums")]
    AfterSums,
}

impl ArchiveError {
    pub(super) fn refused(entry: &[u8], why: Offence) -> Self {
        Self::Refused {
            entry: shown(entry),
            why,
        }
    }

    pub(super) fn entry(action: &'static str, entry: &[u8], error: impl Into<io::Error>) -> Self {
        let source = error.into();
        if is_full(&source) {
            return Self::DiskFull;
        }
        Self::Entry {
            action,
            entry: shown(entry),
            source,
        }
    }

    /// Whether the archive is at fault, not this machine.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::NotOne
            | Self::Newer { .. }
            | Self::Manifest(_)
            | Self::Cut(_)
            | Self::Damaged(_)
            | Self::Checksum { .. }
            | Self::Refused { .. }
            | Self::Lacks(_)
            | Self::TooBig { .. }
            | Self::TooManyEntries { .. }
            | Self::DiskFull
            | Self::Silent { .. }
            | Self::Changed { .. } => true,
            Self::Entry { .. } | Self::Read(_) | Self::Write(_) => false,
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
    full.contains(&error.kind())
}

impl From<UnpackError> for ArchiveError {
    fn from(error: UnpackError) -> Self {
        match error {
            UnpackError::TooManyEntries { max } => Self::TooManyEntries { max },
            UnpackError::Read(source) => read(source),
            UnpackError::Damaged { what, .. } if what.starts_with("it ends") => Self::Cut(what),
            error @ (UnpackError::Refused { .. }
            | UnpackError::TooBig { .. }
            | UnpackError::Damaged { .. }
            | UnpackError::Compression { .. }
            | UnpackError::DiskFull { .. }
            | UnpackError::Write { .. }) => Self::Damaged(error.to_string()),
        }
    }
}

/// What reading the archive failed of: the archive, or the pipe it comes through.
fn read(error: io::Error) -> ArchiveError {
    let kind = error.kind();
    if kind == io::ErrorKind::TimedOut {
        silent()
    } else if is_cut(&error) {
        ArchiveError::Cut("it ends inside a block")
    } else if [io::ErrorKind::Other, io::ErrorKind::InvalidData].contains(&kind) {
        // The decoder's own words.
        ArchiveError::Damaged(error.to_string())
    } else {
        ArchiveError::Read(error)
    }
}

pub(super) fn written(error: io::Error) -> ArchiveError {
    if error.kind() == io::ErrorKind::TimedOut {
        silent()
    } else {
        ArchiveError::Write(error)
    }
}

/// Whether the end came too early, however deep in the decoder's words that is.
fn is_cut(error: &io::Error) -> bool {
    let mut cause = error.get_ref().map(|inner| inner as &(dyn Error + 'static));
    let mut kind = error.kind();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            kind = error.kind();
        }
        cause = error.source();
    }
    kind == io::ErrorKind::UnexpectedEof
}

fn silent() -> ArchiveError {
    ArchiveError::Silent {
        seconds: super::pipe::SILENCE_MAX.as_secs(),
    }
}
