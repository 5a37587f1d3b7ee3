//! Interfaces of the kernel that a box has no business with.

use crate::outcome::Outcome;
use crate::words::{Usage, Words};

/// A system call of numbers only.
fn numbers(call: i64, arguments: [u64; 4]) -> Outcome {
    let [a, b, c, d] = arguments;
    // SAFETY: callers give calls that take no pointers, or null ones where the kernel checks them.
    Outcome::of_call(unsafe { libc::syscall(call, a, b, c, d) })
}

/// A map of one entry.
pub(crate) fn bpf() -> Outcome {
    const BPF_MAP_CREATE: u64 = 0;
    const BPF_MAP_TYPE_ARRAY: u32 = 2;
    // Type, key size, value size, entries: the start of `union bpf_attr` (bpf(2)).
    let mut attributes = [0_u32; 32];
    attributes[..4].copy_from_slice(&[BPF_MAP_TYPE_ARRAY, 4, 4, 1]);
    // SAFETY: the attributes are as long as said and outlive the call.
    Outcome::of_call(unsafe {
        libc::syscall(
            libc::SYS_bpf,
            BPF_MAP_CREATE,
            attributes.as_ptr(),
            size_of_val(&attributes),
        )
    })
}

/// A software clock on this process.
pub(crate) fn perf_event_open() -> Outcome {
    const PERF_TYPE_SOFTWARE: u32 = 1;
    const ATTRIBUTES_BYTES: u32 = 64;
    // Type and size: the start of `struct perf_event_attr`, its first version.
    let mut attributes = [0_u32; ATTRIBUTES_BYTES as usize / 4];
    attributes[..2].copy_from_slice(&[PERF_TYPE_SOFTWARE, ATTRIBUTES_BYTES]);
    // SAFETY: the attributes are as long as they say and outlive the call.
    Outcome::of_call(unsafe {
        libc::syscall(libc::SYS_perf_event_open, attributes.as_ptr(), 0, -1, -1, 0)
    })
}

pub(crate) fn io_uring_setup() -> Outcome {
    // `struct io_uring_params`.
    let mut parameters = [0_u32; 30];
    // SAFETY: as long as the kernel's struct, and outlives the call.
    Outcome::of_call(unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr()) })
}

/// The id of the session keyring.
pub(crate) fn keyctl() -> Outcome {
    const KEYCTL_GET_KEYRING_ID: u64 = 0;
    const SESSION_KEYRING: u64 = (-3_i64).cast_unsigned();
    numbers(
        libc::SYS_keyctl,
        [KEYCTL_GET_KEYRING_ID, SESSION_KEYRING, 0, 0],
    )
}

/// A key in this process's own keyring, gone with it.
pub(crate) fn add_key() -> Outcome {
    const PROCESS_KEYRING: i64 = -2;
    // SAFETY: two texts that end with zero and one byte, its length given.
    Outcome::of_call(unsafe {
        libc::syscall(
            libc::SYS_add_key,
            c"user".as_ptr(),
            c"box-probe".as_ptr(),
            c"x".as_ptr(),
            1,
            PROCESS_KEYRING,
        )
    })
}

/// Looks for a key nobody has; to be told so means that it was allowed to look.
pub(crate) fn request_key() -> Outcome {
    // SAFETY: two texts that end with zero; no key is made.
    let found = unsafe {
        libc::syscall(
            libc::SYS_request_key,
            c"user".as_ptr(),
            c"box-probe".as_ptr(),
            std::ptr::null::<u8>(),
            0,
        )
    };
    let errno = std::io::Error::last_os_error().raw_os_error();
    if found < 0 && errno == Some(libc::ENOKEY) {
        return Outcome::ok().with("there is no such key");
    }
    Outcome::of_call(found)
}

pub(crate) fn userfaultfd() -> Outcome {
    numbers(libc::SYS_userfaultfd, [0; 4])
}

pub(crate) fn fanotify_init() -> Outcome {
    const FAN_CLASS_CONTENT: u64 = 4;
    numbers(libc::SYS_fanotify_init, [FAN_CLASS_CONTENT, 0, 0, 0])
}

/// No segments: where it is allowed it unloads nothing that was not there.
pub(crate) fn kexec_load() -> Outcome {
    numbers(libc::SYS_kexec_load, [0; 4])
}

/// An empty module, which no kernel takes; `EPERM` comes before it is looked at.
pub(crate) fn init_module() -> Outcome {
    // SAFETY: no image, and a text that ends with zero.
    Outcome::of_call(unsafe {
        libc::syscall(
            libc::SYS_init_module,
            std::ptr::null::<u8>(),
            0,
            c"".as_ptr(),
        )
    })
}

pub(crate) fn swapon(words: &Words) -> Result<Outcome, Usage> {
    let path = words.c_text(0)?;
    // SAFETY: a text that ends with zero.
    Ok(Outcome::of_call(unsafe {
        libc::syscall(libc::SYS_swapon, path.as_ptr(), 0)
    }))
}

/// Sets what Ctrl-Alt-Del does to what it does everywhere: the harmless one of reboot(2).
pub(crate) fn reboot() -> Outcome {
    // SAFETY: a number.
    Outcome::of_call(unsafe { libc::reboot(libc::RB_DISABLE_CAD) }.into())
}

/// The kernel's log, read without clearing it.
pub(crate) fn syslog() -> Outcome {
    const SYSLOG_ACTION_READ_ALL: i32 = 3;
    let mut buffer = [0_u8; 64];
    // SAFETY: a buffer of the length given.
    Outcome::of_call(unsafe {
        libc::syscall(
            libc::SYS_syslog,
            SYSLOG_ACTION_READ_ALL,
            buffer.as_mut_ptr(),
            i32::try_from(buffer.len()).unwrap_or(0),
        )
    })
}

/// Turns process accounting off, where it is off.
pub(crate) fn acct() -> Outcome {
    // SAFETY: a null path means off.
    Outcome::of_call(unsafe { libc::acct(std::ptr::null()) }.into())
}

/// Sets the clock to what it shows.
pub(crate) fn clock_settime() -> Outcome {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` takes a timespec and is then read as one.
    Outcome::of_call(
        unsafe {
            libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut now);
            libc::clock_settime(libc::CLOCK_REALTIME, &raw const now)
        }
        .into(),
    )
}

/// Sets how long a tick of the clock is to what it is (adjtimex(2)).
pub(crate) fn adjtimex() -> Outcome {
    // SAFETY: all zeros is a valid request: it changes nothing and asks.
    let mut clock: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills the struct; the second call names one field to be set to its value.
    let set = unsafe {
        libc::adjtimex(&raw mut clock);
        clock.modes = libc::ADJ_TICK;
        libc::adjtimex(&raw mut clock)
    };
    Outcome::of_call(set.into())
}

/// Raw access to input and output ports.
pub(crate) fn iopl() -> Outcome {
    #[cfg(target_arch = "x86_64")]
    return numbers(libc::SYS_iopl, [3, 0, 0, 0]);
    #[cfg(not(target_arch = "x86_64"))]
    return Outcome::not_tried("this machine has no such call");
}
