//! The three folders an archive is unpacked into: the box, its snapshots, its image.

use super::attributes::{Attributes, Setting};
use super::budget::Budget;
use super::error::{ArchiveError, Offence};
use super::layout::{BOX, Part, SNAPSHOTS, State};
use super::plant::{Home, Kin, MakeFolder, Plant, file_at};
use super::read::{Grounds, Rules};
use crate::unpack::Policy;
use rustix::fd::BorrowedFd;

/// One of them, and how names of the archive are called in it.
#[derive(Debug)]
pub(super) struct Bed<'into> {
    pub(super) plant: Plant<'into>,
    pub(super) budget: Budget,
    /// What a name begins with in the archive, and what with here.
    archive: &'static str,
    here: String,
}

impl Bed<'_> {
    pub(super) fn name(&self, name: &[u8]) -> Vec<u8> {
        let rest = name.strip_prefix(self.archive.as_bytes()).unwrap_or(name);
        [self.here.as_bytes(), rest].concat()
    }
}

pub(super) struct Garden<'into> {
    now: Bed<'into>,
    snapshots: Bed<'into>,
    image: Bed<'into>,
    make_state: MakeFolder<'into>,
    pub(super) has_snapshots: bool,
}

impl<'into> Garden<'into> {
    pub(super) fn new(grounds: Grounds<'into>, rules: Rules) -> Result<Self, ArchiveError> {
        let bed = |folder: BorrowedFd<'into>, bytes_max, (archive, here): (_, &str)| {
            let setting = Setting {
                owners: rules.owners,
                overlay: rules.overlay,
            };
            let failed = |error| ArchiveError::entry("look at", b".", error);
            Ok::<_, ArchiveError>(Bed {
                plant: Plant::new(folder, setting).map_err(failed)?,
                budget: Budget::new(folder, bytes_max).map_err(failed)?,
                archive,
                here: here.to_owned(),
            })
        };
        let (now, name) = grounds.now;
        let (image, image_name) = grounds.image;
        let max = rules.state_bytes_max;
        Ok(Self {
            now: bed(now, max, (BOX, name))?,
            snapshots: bed(grounds.snapshots, max, ("snapshots/", ""))?,
            image: bed(image, Policy::IMAGE.bytes_max, ("image", image_name))?,
            make_state: grounds.make_state,
            has_snapshots: false,
        })
    }

    pub(super) fn bed(&mut self, state: &State, part: Part) -> &mut Bed<'into> {
        match (state, part) {
            (_, Part::Image) => &mut self.image,
            (State::Now, _) => &mut self.now,
            (State::Snapshot(_), _) => &mut self.snapshots,
        }
    }

    /// The folder of a state.
    pub(super) fn state(&mut self, state: &State) -> Result<(), ArchiveError> {
        let name = state.folder();
        if name.starts_with(SNAPSHOTS) && !self.has_snapshots {
            return Err(ArchiveError::refused(name.as_bytes(), Offence::OutOfOrder));
        }
        let make = self.make_state;
        let bed = self.bed(state, Part::Home);
        let here = bed.name(name.as_bytes());
        bed.plant.folder_made(&here, None, make)
    }

    pub(super) fn hard_link(
        &mut self,
        (name, home): (&[u8], &Home),
        (target, kin): (&[u8], Kin),
        attributes: &Attributes,
    ) -> Result<(), ArchiveError> {
        if target == name {
            return Err(ArchiveError::refused(name, Offence::HardLink));
        }
        match kin {
            Kin::Name => {
                let bed = self.bed(&home.state, home.part);
                let (name, target) = (bed.name(name), bed.name(target));
                bed.plant.hard_link(&name, &target)
            }
            Kin::Copy(state) => {
                let bed = self.bed(&state, home.part);
                let old = file_at(bed.plant.into, &bed.name(target))
                    .ok_or_else(|| ArchiveError::refused(name, Offence::HardLink))?;
                let bed = self.bed(&home.state, home.part);
                let name = bed.name(name);
                bed.plant.copy(&name, &old, attributes, &mut bed.budget)
            }
        }
    }

    /// Leaves every folder.
    pub(super) fn finish(&mut self) -> Result<(), ArchiveError> {
        let beds = [&mut self.now, &mut self.snapshots, &mut self.image];
        beds.into_iter().try_for_each(|bed| bed.plant.finish())
    }
}
