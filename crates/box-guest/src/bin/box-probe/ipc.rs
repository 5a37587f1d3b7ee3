//! Memory shared by key (System V), which programs of one machine find by its number alone.

use crate::outcome::Outcome;
use crate::words::{Usage, Words};

const BYTES: usize = 4096;

fn get(key: u64, flags: i32) -> i32 {
    let key = libc::key_t::try_from(key).unwrap_or(1);
    // SAFETY: numbers; nothing is attached.
    unsafe { libc::shmget(key, BYTES, flags) }
}

/// Makes a segment that stays until it is removed.
pub(crate) fn make(words: &Words) -> Result<Outcome, Usage> {
    let flags = libc::IPC_CREAT | libc::IPC_EXCL | 0o666;
    Ok(Outcome::of_call(get(words.hex(0)?, flags).into()))
}

pub(crate) fn find(words: &Words) -> Result<Outcome, Usage> {
    Ok(Outcome::of_call(get(words.hex(0)?, 0).into()))
}

pub(crate) fn remove(words: &Words) -> Result<Outcome, Usage> {
    let id = get(words.hex(0)?, 0);
    if id < 0 {
        return Ok(Outcome::of_call(id.into()));
    }
    // SAFETY: removes the segment just found; a removal takes no buffer.
    let removed = unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
    Ok(Outcome::of_call(removed.into()))
}
