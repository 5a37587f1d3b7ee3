//! Our static programs: embedded in this one, written out once, mounted into every box.

use crate::folders::path_only;
use box_runtime::erase::erase;
use box_runtime::unpack::{Published, Staging};
use rustix::fs::Mode;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

// `PROGRAMS`: name and content of each; made by build.rs.
include!(concat!(env!("OUT_DIR"), "/programs.rs"));

const GUEST: &str = "box-guest";
const STAGING: &str = "programs";

/// The folder they lie in, `<data>/programs/<hash of them all>`.
#[derive(Debug)]
pub(crate) struct Programs(PathBuf);

impl Programs {
    /// Writes them out unless they are there.
    pub(crate) fn install(data: &Path) -> io::Result<Self> {
        let tmp = data.join("tmp");
        box_runtime::unpack::clear(&tmp, STAGING)?;
        let all = data.join("programs");
        std::fs::create_dir_all(&all)?;
        let place = all.join(digest());
        if !place.is_dir() {
            let staging = Staging::new(&tmp, STAGING)?;
            for (name, content) in PROGRAMS {
                write(&staging.path().join(name), content)?;
            }
            rustix::fs::fchmod(staging.folder(), Mode::from_raw_mode(0o755))?;
            match staging.publish(&place)? {
                Published::Done | Published::AlreadyThere => {}
            }
        }
        Ok(Self(place))
    }

    /// Removes those of earlier builds. Boxes that run show them, so there must be none.
    pub(crate) fn forget_others(&self) -> io::Result<()> {
        let Some(all) = self.0.parent() else {
            return Ok(());
        };
        for entry in std::fs::read_dir(all)? {
            let path = entry?.path();
            if path != self.0 {
                erase(&path)?;
            }
        }
        Ok(())
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }

    /// box-guest, for exec by descriptor.
    pub(crate) fn guest(&self) -> io::Result<OwnedFd> {
        path_only(&self.0.join(GUEST))
    }
}

/// One of our static programs, as it was embedded.
pub fn program(name: &str) -> Option<&'static [u8]> {
    PROGRAMS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, content)| *content)
}

fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o555)
        .open(path)?;
    file.write_all(content)?;
    file.set_permissions(std::fs::Permissions::from_mode(0o555))?;
    file.sync_all()
}

fn digest() -> String {
    let mut hash = Sha256::new();
    for (name, content) in PROGRAMS {
        hash.update(name);
        hash.update([0]);
        hash.update((content.len() as u64).to_le_bytes());
        hash.update(content);
    }
    let bytes = hash.finalize();
    bytes.iter().take(16).fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
