//! A terminal made from the box's own `/dev/ptmx`.

use crate::arguments::User;
use crate::launch::Refused;
use box_api::control::TerminalSize;
use box_api::guest::Refusal;
use rustix::fs::{Gid, Uid};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::os::fd::OwnedFd;

/// The outer side, for the host, and the inner, for the command.
pub(crate) fn open(size: TerminalSize, user: Option<User>) -> Result<(OwnedFd, OwnedFd), Refused> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let open = || {
        let outer = openpt(flags)?;
        unlockpt(&outer)?;
        // By the outer descriptor, so that nothing in `/dev` is looked up a second time.
        let inner = ioctl_tiocgptpeer(&outer, flags)?;
        tcsetwinsize(
            &outer,
            Winsize {
                ws_row: size.rows,
                ws_col: size.columns,
                ws_xpixel: 0,
                ws_ypixel: 0,
            },
        )?;
        Ok((outer, inner))
    };
    let (outer, inner) = open().map_err(|error: rustix::io::Errno| {
        Refused::new(
            Refusal::Failed,
            format!("could not open a terminal in the box: {error}"),
        )
    })?;
    if let Some(user) = user {
        let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
        // Without CAP_CHOWN the command cannot open its terminal by name; it has it open anyway.
        let _ = rustix::fs::fchown(&inner, Some(uid), Some(gid));
    }
    Ok((outer, inner))
}
