//! System calls by another numbering, which a filter for one alone would not see.

use crate::outcome::Outcome;
use crate::words::{Usage, Words};

/// `unshare(CLONE_NEWUSER)` as a 32-bit or an x32 program would ask for it, in a child: a filter may
/// end who tries.
pub(crate) fn unshare(words: &Words) -> Result<Outcome, Usage> {
    let call = match words.text(0)? {
        "native" => native,
        "i386" => i386,
        "x32" => x32,
        _ => return Err(Usage),
    };
    // SAFETY: this process has one thread; the child makes one system call and ends.
    match unsafe { libc::fork() } {
        0 => {
            let result = call(libc::CLONE_NEWUSER);
            // SAFETY: ends the child without running anything of the parent's.
            unsafe { libc::_exit(i32::try_from(-result).unwrap_or(libc::EIO)) }
        }
        child if child > 0 => {
            let mut status = 0;
            // SAFETY: waits for our own child; `status` takes an int.
            unsafe { libc::waitpid(child, &raw mut status, 0) };
            Ok(crate::limits::ended(status))
        }
        failed => Ok(Outcome::of_call(failed.into()).with("no process could be started")),
    }
}

/// 0, or the error's number below zero.
fn native(flags: i32) -> i64 {
    // SAFETY: a number; changes only this process.
    let result = unsafe { libc::syscall(libc::SYS_unshare, flags) };
    if result < 0 {
        -i64::from(last_errno())
    } else {
        0
    }
}

fn last_errno() -> i32 {
    let errno = std::io::Error::last_os_error().raw_os_error();
    errno.unwrap_or(libc::EIO)
}

/// The x32 numbering: that of x86-64 with one bit more (`__X32_SYSCALL_BIT`).
#[cfg(target_arch = "x86_64")]
fn x32(flags: i32) -> i64 {
    const X32_BIT: i64 = 0x4000_0000;
    // SAFETY: a number; changes only this process.
    let result = unsafe { libc::syscall(libc::SYS_unshare | X32_BIT, flags) };
    if result < 0 {
        -i64::from(last_errno())
    } else {
        0
    }
}

/// The entry of 32-bit programs, which a 64-bit one may use too (`arch/x86/entry/entry_64_compat.S`
/// of the kernel). 310 is `unshare` there.
#[cfg(target_arch = "x86_64")]
fn i386(flags: i32) -> i64 {
    const UNSHARE: i32 = 310;
    let result: i32;
    // SAFETY: the call takes a number. `rbx` carries it and is put back, since the compiler keeps
    // it for itself; the kernel zeroes r8 to r11.
    unsafe {
        std::arch::asm!(
            "push rbx",
            "mov ebx, {flags:e}",
            "int 0x80",
            "pop rbx",
            flags = in(reg) flags,
            inlateout("eax") UNSHARE => result,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    i64::from(result)
}

#[cfg(not(target_arch = "x86_64"))]
fn x32(_: i32) -> i64 {
    -i64::from(libc::ENOSYS)
}

#[cfg(not(target_arch = "x86_64"))]
fn i386(_: i32) -> i64 {
    -i64::from(libc::ENOSYS)
}
