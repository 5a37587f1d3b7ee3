//! Boxes as portable archives: `depart` copies and writes one, `arrive` reads and checks one,
//! `settle` makes a box of it. The layout is `box_runtime::archive`'s.

mod arrive;
mod depart;
mod settle;

use crate::NativeRuntime;
use crate::rootless::Privileges;
use crate::snapshots::telling::{Teller, size};
use async_trait::async_trait;
use box_api::control::Profile;
use box_runtime::archive::{ArchiveError, OnDisk, OverlayNames, Part};
use box_runtime::unpack::Staging;
use box_runtime::{Arrival, BoxSpec, Departure, Luggage, Progress, RuntimeError, Transfer};
use rustix::fs::{Mode, OFlags, openat};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What their folders are called in `tmp/`.
pub(crate) const BEING_EXPORTED: &str = "export";
pub(crate) const BEING_IMPORTED: &str = "import";

const TOLD_EVERY: Duration = Duration::from_secs(1);

#[async_trait]
impl Transfer for NativeRuntime {
    async fn depart(
        &self,
        spec: &BoxSpec,
        luggage: Luggage,
        progress: &dyn Progress,
    ) -> Result<Box<dyn Departure>, RuntimeError> {
        depart::depart(Arc::clone(&self.engine), spec.clone(), luggage, progress).await
    }

    async fn arrive(&self, source: OwnedFd) -> Result<Box<dyn Arrival>, RuntimeError> {
        arrive::arrive(Arc::clone(&self.engine), source).await
    }
}

/// The folder of a part on disk.
fn on_disk(part: Part) -> &'static str {
    match part {
        // The upper layer of the box's root.
        Part::Root => crate::storage::layout::UPPER,
        Part::Workspace | Part::Home | Part::Image => part.name(),
    }
}

/// Whose files on disk are.
fn owners(privileges: Privileges, profile: Profile) -> OnDisk {
    match (privileges, profile) {
        (Privileges::Root | Privileges::Ranges, _) => OnDisk::Same,
        (Privileges::SingleUid { .. }, Profile::Locked) => OnDisk::One(crate::launch::AGENT_ID),
        (Privileges::SingleUid { .. }, Profile::Root) => OnDisk::One(0),
    }
}

/// Under which names the overlay keeps its marks; see `launch::overlay`.
fn overlay(privileges: Privileges) -> OverlayNames {
    match privileges {
        Privileges::Root => OverlayNames::Trusted,
        Privileges::Ranges | Privileges::SingleUid { .. } => OverlayNames::User,
    }
}

/// A file in a staging folder, which goes with it.
fn spool(staging: &Staging) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    Ok(openat(staging.folder(), "sums", flags, mode)?.into())
}

/// Tells how many bytes went by, once a second.
fn teller_of<'t>(teller: &'t Teller, verb: &'static str) -> impl FnMut(u64) + 't {
    let mut last = Instant::now();
    move |bytes| {
        if last.elapsed() >= TOLD_EVERY {
            last = Instant::now();
            teller.say(format!("{verb} {}", size(bytes)));
        }
    }
}

/// What a person is told of an archive that was not written or not read.
fn told(action: String, error: ArchiveError) -> RuntimeError {
    let gone =
        matches!(&error, ArchiveError::Write(source) if source.kind() == io::ErrorKind::BrokenPipe);
    if gone {
        let why = "whoever was given the archive does not take it any more".to_owned();
        RuntimeError::Refused { why, hint: None }
    } else if error.is_refusal() {
        RuntimeError::Refused {
            why: error.to_string(),
            hint: hint(&error),
        }
    } else {
        RuntimeError::engine(action, error)
    }
}

fn hint(error: &ArchiveError) -> Option<String> {
    let text = match error {
        ArchiveError::Cut(_) => "it was not written or not copied to its end; export it again",
        ArchiveError::Damaged(_) | ArchiveError::Checksum { .. } => {
            "it was changed since it was written; take another copy of it"
        }
        ArchiveError::Newer { .. } => "import it with the build that wrote it, or a later one",
        ArchiveError::NotOne => "`box export` writes archives that can be imported",
        ArchiveError::DiskFull => "make room where the data folder is",
        ArchiveError::Changed { .. } => "try again when nobody works on the box",
        ArchiveError::Manifest(_)
        | ArchiveError::Refused { .. }
        | ArchiveError::Lacks(_)
        | ArchiveError::TooBig { .. }
        | ArchiveError::TooManyEntries { .. }
        | ArchiveError::Silent { .. }
        | ArchiveError::Entry { .. }
        | ArchiveError::Read(_)
        | ArchiveError::Write(_) => return None,
    };
    Some(text.to_owned())
}
