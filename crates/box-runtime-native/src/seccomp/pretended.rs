//! Calls that change owners and ids, where there is one id: they succeed and change nothing.
//!
//! Package managers give files to other users and become other users. With one id the kernel refuses
//! both, and `dpkg` stops at the first file. Answering "done" lets it go on: every file belongs to
//! root of the box in any case. (Charliecloud builds images the same way.)

use super::program::{self, Rule, Verdict};
use libc::sock_filter;

const DONE: Verdict = Verdict::Errno(0);

/// In order of what they change: owners, ids, groups. On architectures without the older names the
/// list is shorter.
const PRETENDED: &[libc::c_long] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setfsuid,
    libc::SYS_setfsgid,
    libc::SYS_setgroups,
];

/// A box's rules, with these in place of what they said.
pub(super) fn over(mut rules: Vec<Rule>) -> Vec<Rule> {
    rules.retain(|rule| !pretended().any(|number| number == rule.number));
    rules.extend(done());
    rules.sort_by_key(|rule| rule.number);
    rules
}

/// These calls alone, and everything else as the kernel has it: for making an image.
pub(crate) fn filter() -> Vec<sock_filter> {
    let mut rules: Vec<Rule> = done().collect();
    rules.sort_by_key(|rule| rule.number);
    program::compile_over(&rules, Verdict::Allow)
}

fn pretended() -> impl Iterator<Item = u32> {
    PRETENDED
        .iter()
        .filter_map(|number| u32::try_from(*number).ok())
}

fn done() -> impl Iterator<Item = Rule> {
    pretended().map(|number| Rule {
        number,
        verdict: DONE,
    })
}
