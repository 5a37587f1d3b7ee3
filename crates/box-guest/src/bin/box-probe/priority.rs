//! Being served before others: priorities, and limits raised over what was given.

use crate::outcome::Outcome;
use crate::words::{Usage, Words};

/// setpriority(2): below 0 is before others.
pub(crate) fn nice(words: &Words) -> Result<Outcome, Usage> {
    let value: i32 = words.number(0)?;
    // SAFETY: numbers; changes only this process.
    Ok(Outcome::of_call(
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, value) }.into(),
    ))
}

/// `SCHED_FIFO`, which runs until it stops by itself.
pub(crate) fn realtime() -> Outcome {
    let first = libc::sched_param { sched_priority: 1 };
    // SAFETY: a struct that outlives the call; changes only this process.
    Outcome::of_call(
        unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const first) }.into(),
    )
}

/// `IOPRIO_CLASS_RT` of `ioprio_set(2)`.
pub(crate) fn io_realtime() -> Outcome {
    const OF_PROCESS: u64 = 1;
    const CLASS_REALTIME: u64 = 1 << 13;
    // SAFETY: numbers; changes only this process.
    Outcome::of_call(unsafe { libc::syscall(libc::SYS_ioprio_set, OF_PROCESS, 0, CLASS_REALTIME) })
}

const LIMITS: [(&str, i32); 3] = [
    ("nofile", libc::RLIMIT_NOFILE.cast_signed()),
    ("nproc", libc::RLIMIT_NPROC.cast_signed()),
    ("core", libc::RLIMIT_CORE.cast_signed()),
];

/// A limit of this process raised by one over its hard limit, or lowered by one where the second
/// word is `lower`.
pub(crate) fn limit(words: &Words) -> Result<Outcome, Usage> {
    let which = words.one_of(0, &LIMITS)?.cast_unsigned();
    let lowers = match words.text(1)? {
        "raise" => false,
        "lower" => true,
        _ => return Err(Usage),
    };
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: a struct the kernel fills.
    if unsafe { libc::getrlimit(which, &raw mut limit) } != 0 {
        return Ok(Outcome::of_call(-1));
    }
    if limit.rlim_max == libc::RLIM_INFINITY {
        return Ok(Outcome::not_tried("there is no limit"));
    }
    let most = if lowers {
        limit.rlim_max.saturating_sub(1)
    } else {
        limit.rlim_max + 1
    };
    let wanted = libc::rlimit {
        rlim_cur: most,
        rlim_max: most,
    };
    // SAFETY: a struct that outlives the call; changes only this process.
    let set = unsafe { libc::setrlimit(which, &raw const wanted) };
    Ok(Outcome::of_call(set.into()).with(format!("{} was the most", limit.rlim_max)))
}
