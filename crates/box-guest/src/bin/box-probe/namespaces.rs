//! Mounts and namespaces.

use crate::outcome::Outcome;
use crate::words::{Usage, Words};
use std::fs::File;
use std::os::fd::AsRawFd as _;

const KINDS: [(&str, i32); 8] = [
    ("user", libc::CLONE_NEWUSER),
    ("mnt", libc::CLONE_NEWNS),
    ("pid", libc::CLONE_NEWPID),
    ("net", libc::CLONE_NEWNET),
    ("ipc", libc::CLONE_NEWIPC),
    ("uts", libc::CLONE_NEWUTS),
    ("cgroup", libc::CLONE_NEWCGROUP),
    ("time", libc::CLONE_NEWTIME),
];

fn kinds(words: &Words) -> Result<i32, Usage> {
    flags(words.text(0)?)
}

pub(crate) fn flags(kinds: &str) -> Result<i32, Usage> {
    kinds.split(',').try_fold(0, |flags, kind| {
        let known = KINDS.iter().find(|(name, _)| *name == kind).ok_or(Usage)?;
        Ok(flags | known.1)
    })
}

pub(crate) fn mount(words: &Words) -> Result<Outcome, Usage> {
    let (source, target, kind) = (words.c_text(0)?, words.c_text(1)?, words.c_text(2)?);
    // SAFETY: three texts that end with zero and outlive the call; no data.
    let mounted = unsafe {
        libc::mount(
            source.as_ptr(),
            target.as_ptr(),
            kind.as_ptr(),
            0,
            std::ptr::null(),
        )
    };
    Ok(undone(mounted, &target))
}

pub(crate) fn bind_mount(words: &Words) -> Result<Outcome, Usage> {
    let (source, target) = (words.c_text(0)?, words.c_text(1)?);
    let nothing = std::ptr::null();
    // SAFETY: two texts that end with zero and outlive the call; a bind needs no type.
    let mounted = unsafe {
        libc::mount(
            source.as_ptr(),
            target.as_ptr(),
            nothing,
            libc::MS_BIND,
            nothing.cast(),
        )
    };
    Ok(undone(mounted, &target))
}

fn undone(mounted: i32, target: &std::ffi::CStr) -> Outcome {
    let outcome = Outcome::of_call(mounted.into());
    if mounted == 0 {
        // SAFETY: a text that ends with zero.
        unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) };
    }
    outcome
}

/// Unmounts only if nobody uses it, and only what it is given.
pub(crate) fn umount(words: &Words) -> Result<Outcome, Usage> {
    let target = words.c_text(0)?;
    // SAFETY: a text that ends with zero.
    Ok(Outcome::of_call(
        unsafe { libc::umount2(target.as_ptr(), 0) }.into(),
    ))
}

pub(crate) fn fsopen(words: &Words) -> Result<Outcome, Usage> {
    let kind = words.c_text(0)?;
    // SAFETY: a text that ends with zero; what is opened closes with this process.
    Ok(Outcome::of_call(unsafe {
        libc::syscall(libc::SYS_fsopen, kind.as_ptr(), 0)
    }))
}

pub(crate) fn open_tree(words: &Words) -> Result<Outcome, Usage> {
    const OPEN_TREE_CLONE: i32 = 1;
    let path = words.c_text(0)?;
    // SAFETY: a text that ends with zero; a clone that is never moved into place closes with us.
    let opened = unsafe {
        libc::syscall(
            libc::SYS_open_tree,
            libc::AT_FDCWD,
            path.as_ptr(),
            OPEN_TREE_CLONE,
        )
    };
    Ok(Outcome::of_call(opened))
}

pub(crate) fn pivot_root(words: &Words) -> Result<Outcome, Usage> {
    let (new, old) = (words.c_text(0)?, words.c_text(1)?);
    // SAFETY: two texts that end with zero.
    Ok(Outcome::of_call(unsafe {
        libc::syscall(libc::SYS_pivot_root, new.as_ptr(), old.as_ptr())
    }))
}

pub(crate) fn unshare(words: &Words) -> Result<Outcome, Usage> {
    // SAFETY: a number; changes only this process, which ends next.
    Ok(Outcome::of_call(
        unsafe { libc::unshare(kinds(words)?) }.into(),
    ))
}

pub(crate) fn clone3(words: &Words) -> Result<Outcome, Usage> {
    /// `struct clone_args` up to `tls`, its first version (clone(2)).
    #[repr(C)]
    #[derive(Default)]
    struct CloneArgs {
        flags: u64,
        pidfd: u64,
        child_tid: u64,
        parent_tid: u64,
        exit_signal: u64,
        stack: u64,
        stack_size: u64,
        tls: u64,
    }
    let args = CloneArgs {
        flags: u64::from(kinds(words)?.cast_unsigned()),
        exit_signal: libc::SIGCHLD as u64,
        ..CloneArgs::default()
    };
    // SAFETY: no stack and no CLONE_VM, so the child runs on a copy as after fork; it only ends.
    let child = unsafe { libc::syscall(libc::SYS_clone3, &raw const args, size_of::<CloneArgs>()) };
    if child == 0 {
        // SAFETY: ends the child.
        unsafe { libc::_exit(0) };
    }
    let outcome = Outcome::of_call(child);
    if let Ok(child @ 1..) = libc::pid_t::try_from(child) {
        // SAFETY: waits for our own child and wants no status.
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    }
    Ok(outcome)
}

pub(crate) fn setns(words: &Words) -> Result<Outcome, Usage> {
    Ok(match File::open(words.text(0)?) {
        // SAFETY: a descriptor that is open; changes only this process, which ends next.
        Ok(file) => Outcome::of_call(unsafe { libc::setns(file.as_raw_fd(), 0) }.into()),
        Err(error) => Outcome::of(Err(error)).with("the file could not be opened"),
    })
}

pub(crate) fn sethostname(words: &Words) -> Result<Outcome, Usage> {
    let name = words.text(0)?;
    let mut before = [0_u8; 65];
    // SAFETY: a buffer of the length given; the name that is set is read, its length given.
    let (set, outcome) = unsafe {
        libc::gethostname(before.as_mut_ptr().cast(), before.len());
        let set = libc::sethostname(name.as_ptr().cast(), name.len());
        (set, Outcome::of_call(set.into()))
    };
    if set == 0 {
        let length = before.iter().position(|byte| *byte == 0).unwrap_or(0);
        // SAFETY: as above.
        unsafe { libc::sethostname(before.as_ptr().cast(), length) };
    }
    Ok(outcome)
}
