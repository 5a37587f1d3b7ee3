//! Who a process is and what it may.

use crate::outcome::Outcome;
use crate::words::{Usage, Words};

pub(crate) fn setuid(words: &Words) -> Result<Outcome, Usage> {
    let uid: libc::uid_t = words.number(0)?;
    // SAFETY: numbers; changes only this process, which ends next.
    let done = Outcome::of_call(unsafe { libc::setresuid(uid, uid, uid) }.into());
    Ok(really(done, (uid, rustix::process::geteuid().as_raw())))
}

/// A box with one id is told that it changed, so that package managers go on, and does not change.
fn really(told: Outcome, (asked, has): (u32, u32)) -> Outcome {
    if told == Outcome::ok() && asked != has {
        Outcome::of_errno(libc::EPERM)
    } else {
        told
    }
}

pub(crate) fn setgid(words: &Words) -> Result<Outcome, Usage> {
    let gid: libc::gid_t = words.number(0)?;
    // SAFETY: as above.
    let done = Outcome::of_call(unsafe { libc::setresgid(gid, gid, gid) }.into());
    Ok(really(done, (gid, rustix::process::getegid().as_raw())))
}

pub(crate) fn setgroups(words: &Words) -> Result<Outcome, Usage> {
    let gid: libc::gid_t = words.number(0)?;
    // SAFETY: one group id, its count given.
    Ok(Outcome::of_call(
        unsafe { libc::setgroups(1, &raw const gid) }.into(),
    ))
}

/// Always `ok`; the detail says what this process has:
/// `uid=0 eff=… prm=… inh=… bnd=… amb=… nnp=1 seccomp=2`, sets in hex.
pub(crate) fn capabilities() -> Outcome {
    /// `_LINUX_CAPABILITY_VERSION_3` (capget(2)).
    const VERSION: u32 = 0x2008_0522;
    let header = [VERSION, 0];
    let mut sets = [0_u32; 6];
    // SAFETY: header and sets have the sizes of this version.
    let got = unsafe { libc::syscall(libc::SYS_capget, header.as_ptr(), sets.as_mut_ptr()) };
    if got != 0 {
        return Outcome::of_call(got);
    }
    let set = |low: u32, high: u32| (u64::from(high) << 32) | u64::from(low);
    let [eff, prm, inh] = [
        set(sets[0], sets[3]),
        set(sets[1], sets[4]),
        set(sets[2], sets[5]),
    ];
    let bnd = collect(|cap| control(libc::PR_CAPBSET_READ, cap, 0));
    let is_set = libc::PR_CAP_AMBIENT_IS_SET.cast_unsigned().into();
    let amb = collect(|cap| control(libc::PR_CAP_AMBIENT, is_set, cap));
    let (nnp, seccomp) = (
        control(libc::PR_GET_NO_NEW_PRIVS, 0, 0),
        control(libc::PR_GET_SECCOMP, 0, 0),
    );
    let uid = rustix::process::geteuid().as_raw();
    Outcome::ok().with(format!(
        "uid={uid} eff={eff:x} prm={prm:x} inh={inh:x} bnd={bnd:x} amb={amb:x} nnp={nnp} seccomp={seccomp}"
    ))
}

/// prctl(2) with numbers.
fn control(what: i32, first: u64, second: u64) -> i32 {
    // SAFETY: the operations used here take numbers and change nothing.
    unsafe { libc::prctl(what, first, second, 0, 0) }
}

fn collect(has: impl Fn(u64) -> i32) -> u64 {
    (0..64)
        .filter(|cap| has(*cap) == 1)
        .fold(0, |set, cap| set | 1 << cap)
}

/// `0x0040000` (no address randomisation) is what exploits ask for.
pub(crate) fn personality(words: &Words) -> Result<Outcome, Usage> {
    let wanted = words.hex(0)?;
    // SAFETY: a number; changes only this process, which ends next.
    Ok(Outcome::of_call(unsafe {
        libc::syscall(libc::SYS_personality, wanted)
    }))
}
