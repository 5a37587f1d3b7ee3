//! Who this process is to the kernel, and so what its boxes are made of.
//!
//! As root each box has a range of host ids of its own, and files on disk hold ids 0–65535, shown to
//! the box by idmapped mounts. An ordinary user's host moves into a user namespace of its own before
//! it does anything ([`enter`]): with subordinate ids (subuid(5)) these are its ids 0–65535, so that
//! files on disk look to it as they look to root, and all its boxes share them; the user's own id is
//! [`OWN_ID`] there. Without them there is one id, and everything belongs to it.
//!
//! Mounts are made in the mount namespace that belongs to that user namespace, where the kernel lets
//! an ordinary user mount; each box is a user namespace below it.

mod enter;
mod files;
mod forbidden;
mod ranges;

pub use enter::{EnterError, enter, lend_to_children};
pub use forbidden::{Forbidden, forbidden};

pub(crate) use files::MakesRootsFiles;

use crate::launch::{AGENT_ID, IDS};
use box_api::control::Profile;
use box_runtime::unpack::{Owners, Policy};
use ranges::{IdMap, Ranges};
use rustix::fs::{Gid, Uid};
use rustix::process::{getegid, geteuid};
use rustix::thread::{CapabilitySet, capabilities};
use std::io;
use std::path::Path;

/// Who the user is in its own namespace: the first id that no file of a box has.
const OWN_ID: u32 = IDS;
/// The one of the subordinate ids no box has.
const EGRESS_ID: u32 = IDS - 1;
/// Says in a data folder whose ids its files have.
const MARK: &str = "ids";

/// What the kernel lets this process do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privileges {
    /// Root of the machine.
    Root,
    /// An ordinary user with 65,536 subordinate ids.
    Ranges,
    /// An ordinary user with its own id alone, which is `uid` and `gid` here as well.
    SingleUid { uid: u32, gid: u32 },
}

impl Privileges {
    /// Looks what this process is.
    ///
    /// # Errors
    /// When it is an ordinary user that has not called [`enter`], or `/proc` cannot be read.
    pub fn current() -> io::Result<Self> {
        let users = IdMap::of_this_process("uid_map")?;
        if users.is_everything() {
            return if geteuid().is_root() {
                Ok(Self::Root)
            } else {
                Err(not_entered())
            };
        }
        if !capabilities(None)?
            .effective
            .contains(CapabilitySet::SYS_ADMIN)
        {
            return Err(not_entered());
        }
        let groups = IdMap::of_this_process("gid_map")?;
        Ok(if users.covers(IDS - 1) && groups.covers(IDS - 1) {
            Self::Ranges
        } else {
            Self::SingleUid {
                uid: geteuid().as_raw(),
                gid: getegid().as_raw(),
            }
        })
    }

    /// As `box doctor` and `box up` tell it.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Root => "root: each box has ids of its own",
            Self::Ranges => "an ordinary user with subordinate ids, which all its boxes share",
            Self::SingleUid { .. } => "an ordinary user with one id, which all its boxes share",
        }
    }

    /// Who box-egress runs as, where somebody other than the host can be had without root.
    pub fn egress_id(self) -> Option<u32> {
        match self {
            Self::Ranges => Some(EGRESS_ID),
            Self::Root | Self::SingleUid { .. } => None,
        }
    }

    /// Whether mounts can show other ids than those on disk. The kernel lets only root of the
    /// machine, whose file systems these are (`mount_setattr(2)`, `MOUNT_ATTR_IDMAP`).
    pub(crate) fn maps_mounts(self) -> bool {
        self == Self::Root
    }

    /// Whether a box's processes may have other ids than the one they start with.
    pub(crate) fn has_ranges(self) -> bool {
        !matches!(self, Self::SingleUid { .. })
    }

    /// Who owns a file on disk that belongs to `id` of a box; this process can always set it.
    pub(crate) fn on_disk(self, id: u32) -> (Uid, Gid) {
        match self {
            Self::Root | Self::Ranges => (Uid::from_raw(id), Gid::from_raw(id)),
            Self::SingleUid { uid, gid } => (Uid::from_raw(uid), Gid::from_raw(gid)),
        }
    }

    /// What an archive may set of whose its files are.
    pub(crate) fn policy(self, policy: Policy) -> Policy {
        match self {
            Self::Root | Self::Ranges => policy,
            Self::SingleUid { .. } => Policy {
                owners: Owners::Ours,
                ..policy
            },
        }
    }

    /// Who `id` of the box whose range begins at `offset` is outside the box.
    pub(crate) fn outside(self, offset: u32, id: u32) -> (Uid, Gid) {
        match self {
            Self::Root => (Uid::from_raw(offset + id), Gid::from_raw(offset + id)),
            Self::Ranges | Self::SingleUid { .. } => self.on_disk(id),
        }
    }

    /// How many ids a box has, from 0 on.
    pub(crate) fn ids_of_a_box(self) -> u32 {
        match self {
            Self::Root => IDS,
            Self::Ranges => EGRESS_ID,
            Self::SingleUid { .. } => 1,
        }
    }

    /// `uid_map` and `gid_map` of a box (`user_namespaces(7)`).
    pub(crate) fn maps(self, offset: u32, profile: Profile) -> [String; 2] {
        match self {
            Self::Root => [0; 2].map(|_| format!("0 {offset} {}\n", self.ids_of_a_box())),
            Self::Ranges => [0; 2].map(|_| format!("0 0 {}\n", self.ids_of_a_box())),
            Self::SingleUid { uid, gid } => {
                let inside = match profile {
                    Profile::Locked => AGENT_ID,
                    Profile::Root => 0,
                };
                [uid, gid].map(|outside| format!("{inside} {outside} 1\n"))
            }
        }
    }

    /// Holds a data folder to the ids its files have: a box made with other ones could not read
    /// its own.
    ///
    /// # Errors
    /// When it was made with others, or cannot be read or written.
    pub(crate) fn claim(self, data: &Path) -> io::Result<()> {
        let own = match self {
            Self::Root => "root\n".to_owned(),
            Self::Ranges => {
                let first = IdMap::of_this_process("uid_map")?.outside(0);
                format!("subordinate ids from {first}\n")
            }
            Self::SingleUid { .. } => "one id\n".to_owned(),
        };
        let mark = data.join(MARK);
        match std::fs::read_to_string(&mark) {
            Ok(found) if found == own => Ok(()),
            Ok(found) => Err(io::Error::other(format!(
                "the files in `{}` were made with {}, this host has {}; give it another folder \
                 with `BOX_DATA_DIR`, or restore what /etc/subuid said",
                data.display(),
                found.trim_end(),
                own.trim_end()
            ))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => std::fs::write(&mark, own),
            Err(error) => Err(error),
        }
    }
}

/// What [`enter`] will find, as far as it can be told without entering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outlook {
    Root,
    Ranges,
    /// The user has no subordinate ids.
    NoRange,
    /// It has, and nothing that maps them: the package `uidmap` is missing.
    NoHelpers,
}

/// See [`Outlook`]. Does not say whether namespaces are allowed; [`forbidden`] does.
pub fn outlook() -> Outlook {
    let uid = geteuid();
    if uid.is_root() {
        return Outlook::Root;
    }
    let helpers = ["newuidmap", "newgidmap"];
    let path = std::env::var_os("PATH").unwrap_or_default();
    let there = |program: &&str| std::env::split_paths(&path).any(|at| at.join(program).is_file());
    match Ranges::of_user(uid.as_raw()) {
        None => Outlook::NoRange,
        Some(_) if helpers.iter().all(there) => Outlook::Ranges,
        Some(_) => Outlook::NoHelpers,
    }
}

/// The number a user has outside this process's user namespace: what the machine calls them. The
/// number itself when `/proc` cannot be read, which is nobody's then.
pub fn outside_uid(uid: u32) -> u32 {
    IdMap::of_this_process("uid_map").map_or(uid, |users| users.outside(uid))
}

fn not_entered() -> io::Error {
    io::Error::new(
        io::ErrorKind::PermissionDenied,
        "this process is neither root nor in a user namespace of its own",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALONE: Privileges = Privileges::SingleUid {
        uid: 1500,
        gid: 1600,
    };

    #[test]
    fn each_box_of_root_has_its_own_ids_and_all_of_a_user_share_theirs() {
        let offset = 2_000_000_000;
        let maps = |privileges: Privileges, profile| privileges.maps(offset, profile);
        let own = "0 2000000000 65536\n".to_owned();
        assert_eq!(
            maps(Privileges::Root, Profile::Locked),
            [own.clone(), own.clone()]
        );
        let shared = "0 0 65535\n".to_owned();
        assert_eq!(
            maps(Privileges::Ranges, Profile::Root),
            [shared.clone(), shared]
        );
        assert_eq!(
            maps(ALONE, Profile::Locked),
            ["1020 1500 1\n", "1020 1600 1\n"]
        );
        assert_eq!(maps(ALONE, Profile::Root), ["0 1500 1\n", "0 1600 1\n"]);
    }

    #[test]
    fn the_way_out_is_nobody_a_box_can_become() {
        let id = Privileges::Ranges.egress_id().unwrap();
        assert_eq!(id, EGRESS_ID);
        assert_eq!(
            Privileges::Ranges.maps(0, Profile::Root)[0],
            format!("0 0 {id}\n")
        );
        assert_eq!(ALONE.egress_id(), None);
    }

    #[test]
    fn a_data_folder_is_held_to_its_ids() {
        let data = tempfile::tempdir().unwrap();
        Privileges::Root.claim(data.path()).unwrap();
        Privileges::Root.claim(data.path()).unwrap();
        let other = ALONE.claim(data.path()).unwrap_err().to_string();
        assert!(
            other.contains("made with root, this host has one id"),
            "{other}"
        );
    }
}
