//! Whose the files are that this process makes.

use super::Privileges;
use rustix::process::{getegid, geteuid};
use rustix::thread::{CapabilitySets, capabilities, set_capabilities};
use std::io;
use std::marker::PhantomData;

/// While it lives, files the calling thread makes belong to root of the boxes and not to the host:
/// in a user's own namespace these are two. Stays on its thread.
#[derive(Debug)]
pub(crate) struct MakesRootsFiles {
    changed: bool,
    _on_this_thread: PhantomData<*const ()>,
}

impl MakesRootsFiles {
    /// # Errors
    /// Never as root; else what the kernel says.
    pub(crate) fn begin(privileges: Privileges) -> io::Result<Self> {
        // Root makes them in any case, and where there is one id there is nobody else.
        let changed = privileges == Privileges::Ranges && !geteuid().is_root();
        let guard = Self {
            changed,
            _on_this_thread: PhantomData,
        };
        if changed {
            make_files_as(0, 0)?;
        }
        Ok(guard)
    }
}

impl Drop for MakesRootsFiles {
    fn drop(&mut self) {
        if self.changed {
            // Both were just possible. Failing, files are made as somebody who may do less.
            drop(make_files_as(geteuid().as_raw(), getegid().as_raw()));
        }
    }
}

/// setfsuid(2), which knows only the calling thread. The kernel takes capabilities over files away
/// from whoever stops being 0 (capabilities(7), "Effect of user ID changes"); they are taken back.
fn make_files_as(uid: u32, gid: u32) -> io::Result<()> {
    // SAFETY: neither touches memory. Both return the id before, and no error.
    unsafe {
        libc::syscall(libc::SYS_setfsgid, gid);
        libc::syscall(libc::SYS_setfsuid, uid);
    }
    let sets = capabilities(None)?;
    let all = CapabilitySets {
        effective: sets.permitted,
        ..sets
    };
    Ok(set_capabilities(None, all)?)
}
