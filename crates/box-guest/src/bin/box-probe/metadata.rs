//! Owners, attributes, links and the small files through which the kernel is told something.

use crate::outcome::Outcome;
use crate::words::{Usage, Words};
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;

/// Gives a file to somebody, and back.
pub(crate) fn chown(words: &Words) -> Result<Outcome, Usage> {
    let path = words.text(0)?;
    let (uid, gid) = (words.number(1)?, words.number(2)?);
    let Ok(before) = fs::symlink_metadata(path) else {
        return Ok(Outcome::not_tried(format!("`{path}` cannot be looked at")));
    };
    let given = std::os::unix::fs::lchown(path, Some(uid), Some(gid));
    if given.is_ok() {
        let after = fs::symlink_metadata(path).map(|found| (found.uid(), found.gid()));
        if !after.is_ok_and(|after| after == (uid, gid)) {
            // A box with one id is told "done".
            return Ok(Outcome::of_errno(libc::EPERM));
        }
        drop(std::os::unix::fs::lchown(
            path,
            Some(before.uid()),
            Some(before.gid()),
        ));
    }
    Ok(Outcome::of(given))
}

/// Sets an extended attribute, and removes it again.
pub(crate) fn setxattr(words: &Words) -> Result<Outcome, Usage> {
    let (path, name, value) = (words.c_text(0)?, words.c_text(1)?, words.text(2)?);
    // SAFETY: two texts that end with zero and a value with its length; all outlive the call.
    let set = unsafe {
        libc::lsetxattr(
            path.as_ptr(),
            name.as_ptr(),
            value.as_ptr().cast(),
            value.len(),
            0,
        )
    };
    let outcome = Outcome::of_call(set.into());
    if set == 0 {
        // SAFETY: two texts that end with zero.
        unsafe { libc::lremovexattr(path.as_ptr(), name.as_ptr()) };
    }
    Ok(outcome)
}

/// A second name for a file, removed again.
pub(crate) fn link(words: &Words) -> Result<Outcome, Usage> {
    let (from, to) = (words.text(0)?, words.text(1)?);
    let linked = fs::hard_link(from, to);
    if linked.is_ok() {
        drop(fs::remove_file(to));
    }
    Ok(Outcome::of(linked))
}

pub(crate) fn list(words: &Words) -> Result<Outcome, Usage> {
    Ok(match fs::read_dir(words.text(0)?) {
        Ok(entries) => Outcome::ok().with(format!("{} entries", entries.count())),
        Err(error) => Outcome::of(Err(error)),
    })
}

pub(crate) fn readlink(words: &Words) -> Result<Outcome, Usage> {
    Ok(match fs::read_link(words.text(0)?) {
        Ok(target) => Outcome::ok().with(target.to_string_lossy()),
        Err(error) => Outcome::of(Err(error)),
    })
}

/// Writes a text to a file that is there, such as one of `/proc`. It is not taken back.
pub(crate) fn put(words: &Words) -> Result<Outcome, Usage> {
    let (path, text) = (words.text(0)?, words.text(1)?);
    let put = OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()));
    Ok(Outcome::of(put))
}

/// Mounted once more with the right to write, everything else as it is.
pub(crate) fn remount_writable(words: &Words) -> Result<Outcome, Usage> {
    let path = words.c_text(0)?;
    // SAFETY: all zeros is a valid struct, which the kernel fills.
    let mut about: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: a text that ends with zero and the struct this call takes.
    let looked = unsafe { libc::statvfs(path.as_ptr(), &raw mut about) };
    if looked != 0 {
        return Ok(Outcome::of_call(looked.into()).with("it cannot be looked at"));
    }
    let kept = [
        (libc::ST_NOSUID, libc::MS_NOSUID),
        (libc::ST_NODEV, libc::MS_NODEV),
        (libc::ST_NOEXEC, libc::MS_NOEXEC),
        (libc::ST_NOATIME, libc::MS_NOATIME),
        (libc::ST_NODIRATIME, libc::MS_NODIRATIME),
        (libc::ST_RELATIME, libc::MS_RELATIME),
    ];
    let kept = kept
        .iter()
        .filter(|(shown, _)| about.f_flag & shown != 0)
        .fold(0, |flags, (_, asked)| flags | asked);
    let nothing = std::ptr::null();
    // SAFETY: a text that ends with zero; a remount needs neither source nor type.
    let mounted = unsafe {
        libc::mount(
            nothing,
            path.as_ptr(),
            nothing,
            libc::MS_REMOUNT | libc::MS_BIND | kept,
            nothing.cast(),
        )
    };
    Ok(Outcome::of_call(mounted.into()))
}

/// The same through `mount_setattr(2)`: asks to clear `MOUNT_ATTR_RDONLY`.
pub(crate) fn mount_setattr(words: &Words) -> Result<Outcome, Usage> {
    let path = words.c_text(0)?;
    // `struct mount_attr`: set, clear, propagation, user namespace.
    let attributes: [u64; 4] = [0, libc::MOUNT_ATTR_RDONLY, 0, 0];
    // SAFETY: a text that ends with zero and a struct of the length given.
    Ok(Outcome::of_call(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            0,
            attributes.as_ptr(),
            size_of_val(&attributes),
        )
    }))
}

/// Changes the root to a folder, for this process alone.
pub(crate) fn chroot(words: &Words) -> Result<Outcome, Usage> {
    let path = words.c_text(0)?;
    // SAFETY: a text that ends with zero; changes only this process, which ends next.
    Ok(Outcome::of_call(
        unsafe { libc::chroot(path.as_ptr()) }.into(),
    ))
}

/// Where a page of this process lies in the machine's memory (`proc_pid_pagemap(5)`): the kernel
/// shows zeros to those who may not know.
pub(crate) fn pagemap() -> Outcome {
    const PAGE_BYTES: usize = 4096;
    const FRAME_BITS: u64 = (1 << 55) - 1;
    let page = std::hint::black_box(vec![1_u8; PAGE_BYTES]);
    let entry_at = i64::try_from(page.as_ptr().addr() / PAGE_BYTES * 8).unwrap_or_default();
    let file = match File::open("/proc/self/pagemap") {
        Ok(file) => file,
        Err(error) => return Outcome::of(Err(error)),
    };
    let mut entry = 0_u64;
    // SAFETY: eight bytes are read into eight bytes.
    let read = unsafe { libc::pread(file.as_raw_fd(), (&raw mut entry).cast(), 8, entry_at) };
    if read != 8 {
        return Outcome::of_call(if read < 0 { -1 } else { 0 }).with("no entry");
    }
    if entry & FRAME_BITS == 0 {
        Outcome::of_errno(libc::EPERM).with("the frame is not told")
    } else {
        Outcome::ok()
    }
}
