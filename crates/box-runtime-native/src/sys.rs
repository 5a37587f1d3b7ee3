//! The system calls no crate wraps, each in one small function.

use rustix::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use rustix::io::Errno;
use rustix::mount::MountAttrFlags;
use rustix::process::{Pid, Signal};
use std::ffi::{CStr, CString};
use std::io;
use std::ptr;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// What [`clone3`] returns to the two processes.
pub(crate) enum Cloned {
    Child,
    Parent { pid: Pid, pidfd: OwnedFd },
}

/// `struct clone_args` of clone3(2), the version with `cgroup` (`CLONE_ARGS_SIZE_VER2`, 88 bytes).
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
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

/// `CLONE_INTO_CGROUP` of clone3(2); libc has it as an `int`, which it does not fit.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// clone3(2) like fork(2), with new namespaces and a pidfd; `cgroup` is a folder of cgroup v2.
///
/// # Errors
/// What the kernel says; `EINVAL` or `ENOSYS` before Linux 5.7.
///
/// # Safety
/// The calling process has one thread only: the child is a copy of it and takes locks, such as the
/// allocator's, as they are.
pub(crate) unsafe fn clone3(namespaces: i32, cgroup: Option<BorrowedFd<'_>>) -> io::Result<Cloned> {
    let mut pidfd: i32 = -1;
    let mut args = CloneArgs {
        flags: u64::from(namespaces.cast_unsigned() | libc::CLONE_PIDFD.cast_unsigned()),
        pidfd: ptr::from_mut(&mut pidfd).addr() as u64,
        exit_signal: u64::from(libc::SIGCHLD.cast_unsigned()),
        ..CloneArgs::default()
    };
    if let Some(cgroup) = cgroup {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = u64::from(cgroup.as_raw_fd().cast_unsigned());
    }
    // SAFETY: `args` and `pidfd` live across the call and the size is the structure's own. Without
    // CLONE_VM and with no stack given the child runs on a copy of this one.
    let pid = unsafe {
        libc::syscall(
            libc::SYS_clone3,
            ptr::from_mut(&mut args),
            size_of::<CloneArgs>(),
        )
    };
    match pid {
        ..0 => Err(io::Error::last_os_error()),
        0 => Ok(Cloned::Child),
        1.. => {
            // SAFETY: the kernel has just put a descriptor of ours there.
            let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
            pid.map(|pid| Cloned::Parent { pid, pidfd })
                .ok_or_else(|| io::Error::from(Errno::OVERFLOW))
        }
    }
}

/// fork(2): the child's pid in the parent, `None` in the child.
///
/// # Safety
/// As for [`clone3`].
pub(crate) unsafe fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: the caller vouches for the single thread.
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(Pid::from_raw(pid))
    }
}

/// Ends this process without running what the parent registered for its own end.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: _exit(2) does not return and touches no memory.
    unsafe { libc::_exit(code) }
}

/// `struct mount_attr` of `mount_setattr(2)`.
#[repr(C)]
struct MountAttr {
    attr_set: u64,
    attr_clr: u64,
    propagation: u64,
    userns_fd: u64,
}

/// Sets attributes of the mount `tree`; with `ids`, a user namespace, the ids on disk are shown as
/// that namespace maps them (`mount_setattr(2)`, Linux 5.12).
pub(crate) fn mount_setattr(
    tree: impl AsFd,
    attributes: MountAttrFlags,
    ids: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let mut attr = MountAttr {
        attr_set: u64::from(attributes.bits()),
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    if let Some(ids) = ids {
        attr.attr_set |= u64::from(MountAttrFlags::MOUNT_ATTR_IDMAP.bits());
        attr.userns_fd = u64::from(ids.as_raw_fd().cast_unsigned());
    }
    // SAFETY: the path is a C string, `attr` lives across the call and its size is given.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_fd().as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            ptr::from_ref(&attr),
            size_of::<MountAttr>(),
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Loads a seccomp filter for this process and all it becomes (seccomp(2)).
pub(crate) fn seccomp(filter: &[libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).map_err(|_| io::Error::from(Errno::INVAL))?,
        filter: filter.as_ptr().cast_mut(),
    };
    // SAFETY: the program lives across the call and the kernel only reads it.
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            0,
            ptr::from_ref(&program),
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Marks every descriptor from `first` on to be closed at the next exec (`close_range(2)`).
pub fn close_on_exec_from(first: u32) -> io::Result<()> {
    // SAFETY: no memory is passed; descriptors stay open until exec.
    let result = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            first,
            u32::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Closes every descriptor from `first` on but `kept`, which is one of them.
///
/// # Safety
/// Nobody in this process may use any of them afterwards, nor drop an owner.
pub(crate) unsafe fn close_from_but(first: u32, kept: BorrowedFd<'_>) -> io::Result<()> {
    let kept = kept.as_raw_fd().cast_unsigned();
    for (first, last) in [(first, kept - 1), (kept + 1, u32::MAX)] {
        if first <= last {
            // SAFETY: the caller vouches that nobody uses these descriptors any more.
            let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
            if result != 0 {
                return Err(io::Error::last_os_error());
            }
        }
    }
    Ok(())
}

/// Runs the program behind `program` in place of this process (execveat(2)). Returns only an error.
pub(crate) fn exec(
    program: BorrowedFd<'_>,
    arguments: &[&CStr],
    variables: &[CString],
) -> io::Error {
    let pointers = |texts: &mut dyn Iterator<Item = &CStr>| {
        texts
            .map(CStr::as_ptr)
            .chain([ptr::null()])
            .collect::<Vec<_>>()
    };
    let arguments = pointers(&mut arguments.iter().copied());
    let variables = pointers(&mut variables.iter().map(CString::as_c_str));
    // SAFETY: both arrays end with a null pointer and their strings outlive the call.
    unsafe {
        libc::syscall(
            libc::SYS_execveat,
            program.as_raw_fd(),
            c"".as_ptr(),
            arguments.as_ptr(),
            variables.as_ptr(),
            libc::AT_EMPTY_PATH,
        );
    }
    io::Error::last_os_error()
}

/// Gives every signal its default effect and blocks none, as a new program expects.
pub(crate) fn reset_signals() -> io::Result<()> {
    for number in 1..=libc::SIGRTMAX() {
        // SAFETY: setting a default handler runs no code of ours. SIGKILL, SIGSTOP and the two the
        // C library keeps for itself are refused, which is fine.
        unsafe { libc::signal(number, libc::SIG_DFL) };
    }
    set_blocked(&[])
}

/// Sends a signal to every process the caller can see but itself and pid 1 of its namespace
/// (`kill(2)`). That there is none is no failure.
pub(crate) fn signal_all(signal: Signal) -> Result<(), Errno> {
    // SAFETY: takes two numbers and touches no memory of this process.
    if unsafe { libc::kill(-1, signal.as_raw()) } == 0 {
        return Ok(());
    }
    match Errno::from_io_error(&io::Error::last_os_error()) {
        Some(Errno::SRCH) => Ok(()),
        errno => Err(errno.unwrap_or(Errno::IO)),
    }
}

/// Blocks these signals and no others.
pub(crate) fn set_blocked(signals: &[i32]) -> io::Result<()> {
    // SAFETY: sigemptyset(3) initialises the set before anything reads it, and every call is given
    // the set's own address.
    let result = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in signals {
            libc::sigaddset(&raw mut set, *signal);
        }
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, ptr::null_mut())
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Lets a socket be the target of TPROXY (`IP_TRANSPARENT`, ip(7)).
pub(crate) fn set_transparent(socket: BorrowedFd<'_>) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the option is an int and its size is given.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_IP,
            libc::IP_TRANSPARENT,
            ptr::from_ref(&on).cast(),
            libc::socklen_t::try_from(size_of::<libc::c_int>()).unwrap_or(4),
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Leaves the cgroup namespace for a new one rooted where this process is.
pub(crate) fn new_cgroup_namespace() -> io::Result<()> {
    // SAFETY: the flag touches no descriptor table.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWCGROUP) }?;
    Ok(())
}

/// Gives this process a mount namespace of its own.
pub(crate) fn new_mount_namespace() -> io::Result<()> {
    // SAFETY: the flag touches no descriptor table.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNS) }?;
    Ok(())
}

/// Makes `wanted` the descriptor number of `fd` in this process, kept open across exec.
///
/// # Safety
/// Whatever had that number before must not be used or dropped any more.
pub(crate) unsafe fn place_at(fd: BorrowedFd<'_>, wanted: i32) -> io::Result<()> {
    // SAFETY: the caller vouches for the number; dup2 with equal numbers would keep close-on-exec,
    // so that case clears it by hand.
    let result = unsafe {
        if fd.as_raw_fd() == wanted {
            libc::fcntl(wanted, libc::F_SETFD, 0)
        } else {
            libc::dup2(fd.as_raw_fd(), wanted)
        }
    };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Waits for a descriptor in the async runtime, without owning it.
pub(crate) fn watch(fd: BorrowedFd<'_>) -> io::Result<AsyncFd<BorrowedFd<'_>>> {
    // SAFETY: a borrowed descriptor stays open, and the same, for as long as it is borrowed, which
    // is as long as the result lives.
    unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }.map_err(Into::into)
}

/// `NS_GET_PARENT` and `NS_GET_OWNER_UID` of `ioctl_ns(2)`.
const NS_GET_PARENT: libc::c_ulong = 0xb702;
const NS_GET_OWNER_UID: libc::c_ulong = 0xb704;

/// The user namespace around another.
pub(crate) fn parent_namespace(of: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    // SAFETY: this request takes no argument and returns a new descriptor of ours.
    let parent = unsafe { libc::ioctl(of.as_raw_fd(), NS_GET_PARENT) };
    if parent < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made it for us, close-on-exec.
    Ok(unsafe { OwnedFd::from_raw_fd(parent) })
}

/// Who made a user namespace, as this process numbers users.
pub(crate) fn namespace_owner(of: BorrowedFd<'_>) -> io::Result<u32> {
    let mut uid: libc::uid_t = 0;
    // SAFETY: the request writes one uid_t to where it is told to.
    let result = unsafe { libc::ioctl(of.as_raw_fd(), NS_GET_OWNER_UID, ptr::from_mut(&mut uid)) };
    if result == 0 {
        Ok(uid)
    } else {
        Err(io::Error::last_os_error())
    }
}
