//! Whom mmdebstrap runs as: root, in whichever namespace there is one.

use crate::rootless::Privileges;
use crate::{seccomp, sys};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// What unshare(1) is told beside the namespaces every making has.
pub(super) fn namespaces(privileges: Privileges) -> &'static [&'static str] {
    match privileges {
        Privileges::Root | Privileges::Ranges => &[],
        Privileges::SingleUid { .. } => &["--user", "--map-root-user"],
    }
}

/// What mmdebstrap is told. Where there is one id, apt has nobody else to download as, and the
/// terminals mmdebstrap mounts want a group that is not there.
pub(super) fn options(privileges: Privileges) -> &'static [&'static str] {
    match privileges {
        Privileges::Root | Privileges::Ranges => &[],
        Privileges::SingleUid { .. } => &[
            "--aptopt=APT::Sandbox::User \"root\"",
            "--skip=chroot/mount/dev",
        ],
    }
}

/// Makes the program root when it starts. With one id, giving files to others succeeds and does
/// nothing, for it and all it starts.
pub(super) fn give(command: &mut Command, privileges: Privileges) {
    match privileges {
        Privileges::Root => {}
        Privileges::Ranges => {
            command.uid(0).gid(0);
        }
        Privileges::SingleUid { .. } => {
            let filter = seccomp::pretending_filter();
            // SAFETY: between fork and exec this makes two system calls on memory that is there.
            unsafe {
                command.pre_exec(move || {
                    rustix::thread::set_no_new_privs(true)?;
                    sys::seccomp(&filter)
                });
            }
        }
    }
}
