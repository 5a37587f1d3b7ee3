//! Between fork and exec: what a new process does before it becomes its program.
//!
//! Still a copy of the guest and non-dumpable until exec, which takes all memory away. Every
//! descriptor but 0, 1 and 2 is closed by exec.

use crate::arguments::User;
use crate::launch::{ChildStreams, Plan};
use crate::system::last_errno;
use rustix::io::Errno;
use std::ffi::{CStr, c_char};
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd, RawFd};

const CODE_CANNOT: u8 = 126;
const CODE_NOT_FOUND: u8 = 127;
/// One more than the highest signal number on Linux.
const SIGNALS_END: i32 = 65;

/// Becomes the program, or tells `status` and stderr why not and ends with 126 or 127.
pub(crate) fn run(plan: &Plan, streams: &ChildStreams, status: &OwnedFd) -> ! {
    let (code, text) = match prepare(plan, streams) {
        Ok(()) => program(plan),
        Err(failed) => failed,
    };
    tell(code, &text, status);
    // SAFETY: ends the process without running what the guest would do at its own end.
    unsafe { libc::_exit(i32::from(code)) }
}

fn tell(code: u8, text: &str, status: &OwnedFd) {
    let message = [&[code], text.as_bytes()].concat();
    // One write each; a pipe takes as much as this at once (PIPE_BUF, pipe(7)). If nobody listens
    // the exit code still says it.
    let _ = rustix::io::write(status, &message);
    // SAFETY: descriptor 2 is open, see `take_over_descriptors` and `place_streams`.
    let stderr = unsafe { BorrowedFd::borrow_raw(2) };
    let _ = rustix::io::write(stderr, format!("box: {text}\n").as_bytes());
}

type Failed = (u8, String);

fn prepare(plan: &Plan, streams: &ChildStreams) -> Result<(), Failed> {
    let failed = |what: &str| {
        let program = &plan.program;
        (
            CODE_CANNOT,
            format!("could not run `{program}`: {what}: {}", last_errno()),
        )
    };
    reset_signals();
    // SAFETY: a forked child leads no group, so this cannot fail; it touches no memory.
    unsafe { libc::setsid() };
    place_streams(streams).map_err(|()| failed("could not set up its streams"))?;
    // SAFETY: takes numbers only. Everything above 2 goes at exec.
    unsafe {
        libc::syscall(
            libc::SYS_close_range,
            3,
            u32::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        );
        libc::umask(0o022);
    }
    if let Some(user) = plan.user {
        switch_to(user).map_err(|()| failed("could not become its user"))?;
    }
    // SAFETY: the path ends with zero and lives until the call is over.
    if unsafe { libc::chdir(plan.folder.as_ptr()) } != 0 {
        let folder = plan.folder.to_string_lossy();
        let folder: String = folder
            .chars()
            .filter(|c| !c.is_control())
            .take(200)
            .collect();
        return Err((
            CODE_CANNOT,
            format!("could not enter folder `{folder}`: {}", last_errno()),
        ));
    }
    Ok(())
}

/// Default dispositions and an empty mask, whatever the launcher or the guest had.
fn reset_signals() {
    // A kernel_sigaction of zeros is the default, no flags, an empty mask. The raw call, because
    // the C library keeps two signals for itself and would leave them as the launcher had them.
    let default = [0_u64; 8];
    let mask_bytes = size_of::<u64>();
    for signal in 1..SIGNALS_END {
        // SAFETY: the kernel reads less than the array holds and writes nothing; it fails harmlessly
        // for the two signals that cannot be changed.
        unsafe {
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                default.as_ptr(),
                0_usize,
                mask_bytes,
            )
        };
    }
    let mut none = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is initialised by the first call before the second reads it.
    unsafe {
        libc::sigemptyset(none.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut());
    }
}

fn place_streams(streams: &ChildStreams) -> Result<(), ()> {
    match streams {
        ChildStreams::Pipes {
            stdin,
            stdout,
            stderr,
        } => {
            for (fd, place) in [(stdin, 0), (stdout, 1), (stderr, 2)] {
                place_at(fd.as_raw_fd(), place)?;
            }
        }
        ChildStreams::Terminal(terminal) => {
            // SAFETY: takes a descriptor and a number; the process leads a session without a
            // terminal, which is what TIOCSCTTY asks for (ioctl_tty(2)).
            if unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSCTTY, 0) } != 0 {
                return Err(());
            }
            for place in 0..3 {
                place_at(terminal.as_raw_fd(), place)?;
            }
        }
    }
    Ok(())
}

/// `fd` is above 2 (see `take_over_descriptors`), so nothing is overwritten before it is moved.
fn place_at(fd: RawFd, place: RawFd) -> Result<(), ()> {
    // SAFETY: takes two numbers; what was at `place` belongs to the guest's copy that ends here.
    if unsafe { libc::dup2(fd, place) } < 0 {
        Err(())
    } else {
        Ok(())
    }
}

fn switch_to(user: User) -> Result<(), ()> {
    // The raw calls: the C library's would look for other threads to change with this one.
    let calls = [
        (libc::SYS_setgroups, [0, 0, 0]),
        (libc::SYS_setresgid, [user.gid; 3]),
        (libc::SYS_setresuid, [user.uid; 3]),
    ];
    for (call, [a, b, c]) in calls {
        // SAFETY: numbers only; setgroups with a count of 0 reads no memory.
        if unsafe { libc::syscall(call, a, b, c) } != 0 {
            return Err(());
        }
    }
    Ok(())
}

/// Tries each place the program may be in. Comes back only with a failure, chosen as execvp(3)
/// does: *permission denied* somewhere wins over *not there*.
fn program(plan: &Plan) -> Failed {
    let arguments = plan.arguments.pointers();
    let variables = plan.variables.pointers();
    let mut denied = false;
    let mut error = Errno::NOENT;
    for candidate in &plan.candidates {
        error = exec(candidate, &arguments, &variables);
        match error {
            Errno::NOENT | Errno::NOTDIR => {}
            Errno::ACCESS => denied = true,
            _ => break,
        }
    }
    if denied && matches!(error, Errno::NOENT | Errno::NOTDIR) {
        error = Errno::ACCESS;
    }
    let (code, why) = match error {
        Errno::NOENT | Errno::NOTDIR => (CODE_NOT_FOUND, "not found".to_owned()),
        Errno::ACCESS => (CODE_CANNOT, "permission denied".to_owned()),
        Errno::NOEXEC => (CODE_CANNOT, "not a program for this machine".to_owned()),
        _ => (CODE_CANNOT, error.to_string()),
    };
    (code, format!("could not run `{}`: {why}", plan.program))
}

fn exec(path: &CStr, arguments: &[*const c_char], variables: &[*const c_char]) -> Errno {
    // SAFETY: the path ends with zero; both arrays end with a null pointer and point at zero-ended
    // words that live as long as the plan.
    unsafe { libc::execve(path.as_ptr(), arguments.as_ptr(), variables.as_ptr()) };
    last_errno()
}
