//! How much an archive may unpack to.

use super::error::ArchiveError;
use super::layout::State;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::fstatvfs;
use std::collections::BTreeMap;
use std::io;

/// Most entries of one archive.
pub(super) const ENTRIES_MAX: u64 = 20_000_000;
/// Most bytes of names of files with several names that are remembered, of one tree; files beyond
/// that lose their other names' kinship and become files of their own.
pub(super) const NAMES_MAX: usize = 256 << 20;
/// How much larger than what it stores an archive may seem: holes cost nothing, looking at them
/// does.
const SEEMING_TIMES: u64 = 16;
/// What is left for everybody else on the disk.
const RESERVE_BYTES: u64 = 512 << 20;
const RESERVE_INODES: u64 = 10_000;
/// How often the disk is looked at anew.
const LOOK_EVERY_BYTES: u64 = 64 << 20;
/// A folder or a link is not nothing.
const ENTRY_BYTES: u64 = 512;

/// What the disk has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    pub bytes: u64,
    pub entries: u64,
}

impl Room {
    /// What is free where `folder` lies, less what others need.
    ///
    /// # Errors
    /// What fstatvfs(3) says.
    pub fn at(folder: BorrowedFd<'_>) -> io::Result<Self> {
        let found = fstatvfs(folder)?;
        let free = found.f_bavail.saturating_mul(found.f_frsize);
        let inodes = if found.f_files == 0 {
            // It makes them as they are needed.
            u64::MAX
        } else {
            found.f_favail
        };
        Ok(Self {
            bytes: free.saturating_sub(RESERVE_BYTES),
            entries: inodes.saturating_sub(RESERVE_INODES).min(ENTRIES_MAX),
        })
    }
}

/// What was unpacked so far, against what may be.
#[derive(Debug)]
pub(super) struct Budget {
    room: Room,
    /// Most of one state: the box's disk limit, or that of any image.
    state_bytes_max: u64,
    of_states: BTreeMap<State, u64>,
    now: State,
    stored: u64,
    seeming: u64,
    entries: u64,
    /// The disk, and how much was stored when it was looked at.
    disk: Option<(OwnedFd, u64)>,
}

impl Budget {
    pub(super) fn new(disk: BorrowedFd<'_>, state_bytes_max: u64) -> io::Result<Self> {
        Ok(Self {
            room: Room::at(disk)?,
            state_bytes_max,
            of_states: BTreeMap::new(),
            now: State::Now,
            stored: 0,
            seeming: 0,
            entries: 0,
            disk: Some((disk.try_clone_to_owned()?, 0)),
        })
    }

    #[cfg(test)]
    pub(super) fn unbounded() -> Self {
        Self {
            room: Room {
                bytes: u64::MAX,
                entries: u64::MAX,
            },
            state_bytes_max: u64::MAX,
            of_states: BTreeMap::new(),
            now: State::Now,
            stored: 0,
            seeming: 0,
            entries: 0,
            disk: None,
        }
    }

    #[cfg(test)]
    pub(super) fn stored(&self) -> u64 {
        self.stored
    }

    /// One more entry, of this state.
    pub(super) fn entry(&mut self, state: &State) -> Result<(), ArchiveError> {
        self.entries += 1;
        if self.entries > self.room.entries {
            return Err(ArchiveError::TooManyEntries {
                max: self.room.entries,
            });
        }
        if self.now != *state {
            self.now = state.clone();
        }
        self.store(ENTRY_BYTES)
    }

    /// Bytes that take room.
    pub(super) fn store(&mut self, bytes: u64) -> Result<(), ArchiveError> {
        self.stored = self.stored.saturating_add(bytes);
        let of_state = self.of_states.entry(self.now.clone()).or_default();
        *of_state = of_state.saturating_add(bytes);
        if *of_state > self.state_bytes_max {
            return Err(ArchiveError::TooBig {
                max: self.state_bytes_max,
                of: "which its limit does not allow",
            });
        }
        if self.stored > self.room.bytes {
            return Err(self.no_room());
        }
        self.look()
    }

    /// Bytes of a hole.
    pub(super) fn seem(&mut self, bytes: u64) -> Result<(), ArchiveError> {
        self.seeming = self.seeming.saturating_add(bytes);
        let max = self
            .state_bytes_max
            .min(self.room.bytes)
            .saturating_mul(SEEMING_TIMES);
        if self.seeming > max {
            return Err(ArchiveError::TooBig {
                max,
                of: "which is too much even of holes",
            });
        }
        Ok(())
    }

    /// Others write to the disk as well.
    fn look(&mut self) -> Result<(), ArchiveError> {
        let Some((disk, looked_at)) = &mut self.disk else {
            return Ok(());
        };
        if self.stored - *looked_at < LOOK_EVERY_BYTES {
            return Ok(());
        }
        *looked_at = self.stored;
        let found = fstatvfs(disk).map_err(|errno| ArchiveError::Write(errno.into()))?;
        if found.f_bavail.saturating_mul(found.f_frsize) < RESERVE_BYTES {
            return Err(self.no_room());
        }
        Ok(())
    }

    fn no_room(&self) -> ArchiveError {
        ArchiveError::TooBig {
            max: self.room.bytes,
            of: "which this disk has no room for",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use box_api::Label;

    #[test]
    fn each_state_has_the_disk_limit_and_all_of_them_the_disk() {
        let snapshot = State::Snapshot(Label::pristine());
        let mut budget = Budget::unbounded();
        budget.state_bytes_max = 2000;
        budget.room.bytes = 3000;
        budget.entry(&State::Now).unwrap();
        budget.store(1488).unwrap();
        assert!(budget.store(1).is_err(), "over the limit of one state");
        budget.entry(&snapshot).unwrap();
        assert!(matches!(
            budget.store(1000),
            Err(ArchiveError::TooBig { max: 3000, .. })
        ));
    }

    #[test]
    fn entries_and_holes_are_counted() {
        let mut budget = Budget::unbounded();
        budget.room.entries = 2;
        budget.state_bytes_max = 10_000;
        budget.entry(&State::Now).unwrap();
        budget.entry(&State::Now).unwrap();
        assert!(budget.entry(&State::Now).is_err());
        budget.seem(160_000).unwrap();
        assert!(budget.seem(1).is_err());
    }
}
