//! Which system calls a box may make, and the filter that says so.
//!
//! The list is what the default profile of moby/profiles (`seccomp/default.json`) allows a container
//! without `CAP_SYS_ADMIN`, minus what `design/isolation.md` names: socket families beyond those
//! programs need, and characters pushed into a terminal. What that profile leaves out stays out:
//! `io_uring_*`, `keyctl` and its family, `userfaultfd`, `perf_event_open`, `bpf`, `mount` and its
//! family, `unshare`, `setns`, `chroot`, `open_by_handle_at`, modules, `kexec_*`, `reboot`.

mod allowed;
mod nested;
mod oci;
mod pretended;
mod program;

pub use oci::profile as oci_profile;

use crate::rootless::Privileges;
use box_api::control::Profile;
use box_runtime::Nesting;
use libc::sock_filter;
use program::{Check, Rule, Verdict, When};

/// The filters of the two profiles. They differ only where a box has one id, or may hold containers:
/// neither profile has a capability that would widen the list.
#[derive(Debug)]
pub(crate) struct Filters {
    plain: Vec<sock_filter>,
    nested: Vec<sock_filter>,
    of_root_with_one_id: Option<Vec<sock_filter>>,
}

impl Filters {
    pub(crate) fn new(privileges: Privileges) -> Self {
        Self {
            plain: filter(),
            nested: nested_filter(),
            of_root_with_one_id: (!privileges.has_ranges())
                .then(|| program::compile(&pretended::over(rules()), allowed::KNOWN_MAX)),
        }
    }

    pub(crate) fn of(&self, profile: Profile, nesting: Nesting) -> &[sock_filter] {
        match (profile, &self.of_root_with_one_id, nesting) {
            (Profile::Root, Some(filter), _) => filter,
            (Profile::Root, None, Nesting::Allowed) => &self.nested,
            (Profile::Root, None, Nesting::Refused) | (Profile::Locked, ..) => &self.plain,
        }
    }
}

pub(crate) use pretended::filter as pretending_filter;

fn filter() -> Vec<sock_filter> {
    program::compile(&rules(), allowed::KNOWN_MAX)
}

fn nested_filter() -> Vec<sock_filter> {
    program::compile(&nested::over(rules()), allowed::KNOWN_MAX)
}

/// The verdicts that are not EPERM, in order of their numbers.
fn rules() -> Vec<Rule> {
    let always = always().map(|(_, number)| (number, Verdict::Allow));
    let checked = CHECKED
        .iter()
        .map(|(_, number, verdict)| (*number, *verdict));
    let rule = |(number, verdict)| {
        Some(Rule {
            number: u32::try_from(number).ok()?,
            verdict,
        })
    };
    let mut rules: Vec<Rule> = always.chain(checked).filter_map(rule).collect();
    rules.sort_by_key(|rule| rule.number);
    rules
}

/// Name and number of every call that needs no look at its arguments.
fn always() -> impl Iterator<Item = allowed::Call> {
    allowed::EVERYWHERE
        .iter()
        .chain(allowed::OF_THIS_ARCHITECTURE)
        .copied()
}

/// The calls whose arguments count. The kernel takes each of these arguments as 32 bits, so the
/// upper half need not be looked at.
const CHECKED: &[(&str, libc::c_long, Verdict)] = &[
    // Its flags lie in memory a filter cannot read; the C library falls back to `clone`.
    ("clone3", libc::SYS_clone3, Verdict::Errno(libc::ENOSYS)),
    ("clone", libc::SYS_clone, Verdict::Check(&NO_NEW_NAMESPACE)),
    (
        "ioctl",
        libc::SYS_ioctl,
        Verdict::Check(&NO_TYPING_AND_NO_SUBVOLUMES),
    ),
    (
        "personality",
        libc::SYS_personality,
        Verdict::Check(&PLAIN_PERSONALITY),
    ),
    ("socket", libc::SYS_socket, Verdict::Check(&SOCKET_FAMILY)),
    (
        "socketpair",
        libc::SYS_socketpair,
        Verdict::Check(&SOCKET_PAIR_FAMILY),
    ),
];

/// Every `CLONE_NEW*` that fits a flag word of clone(2); `CLONE_NEWTIME` is none of them.
const NO_NEW_NAMESPACE: Check = Check {
    argument: 0,
    cases: &[(When::AnyBitOf(0x7E02_0000), Verdict::Errno(libc::EPERM))],
    otherwise: &Verdict::Allow,
};

/// `TIOCSTI` and `TIOCLINUX` of `ioctl_tty(2)`; and `BTRFS_IOC_SNAP_CREATE`, `_SUBVOL_CREATE` and
/// the second versions of both (linux/btrfs.h): any user may make subvolumes in a folder of its own,
/// and a snapshot of the box would be without what is in them.
const NO_TYPING_AND_NO_SUBVOLUMES: Check = Check {
    argument: 1,
    cases: &[
        (When::Is(0x5412), Verdict::Errno(libc::EPERM)),
        (When::Is(0x541C), Verdict::Errno(libc::EPERM)),
        (When::Is(0x5000_9401), Verdict::Errno(libc::EPERM)),
        (When::Is(0x5000_940E), Verdict::Errno(libc::EPERM)),
        (When::Is(0x5000_9417), Verdict::Errno(libc::EPERM)),
        (When::Is(0x5000_9418), Verdict::Errno(libc::EPERM)),
    ],
    otherwise: &Verdict::Allow,
};

/// personality(2): `PER_LINUX`, `PER_LINUX32`, both with UNAME26, and the query.
const PLAIN_PERSONALITY: Check = Check {
    argument: 0,
    cases: &[
        (When::Is(0), Verdict::Allow),
        (When::Is(0x0008), Verdict::Allow),
        (When::Is(0x0002_0000), Verdict::Allow),
        (When::Is(0x0002_0008), Verdict::Allow),
        (When::Is(0xFFFF_FFFF), Verdict::Allow),
    ],
    otherwise: &Verdict::Errno(libc::EPERM),
};

/// `AF_VSOCK`, `AF_ALG`, `AF_PACKET` and whatever comes answer as if the kernel did not have them:
/// programs that probe (libaudit in `useradd`, libpcap) then go on without.
const SOCKET_FAMILY: Check = Check {
    argument: 0,
    cases: &[
        (When::Is(libc::AF_UNIX.cast_unsigned()), Verdict::Allow),
        (When::Is(libc::AF_INET.cast_unsigned()), Verdict::Allow),
        (When::Is(libc::AF_INET6.cast_unsigned()), Verdict::Allow),
        (
            When::Is(libc::AF_NETLINK.cast_unsigned()),
            Verdict::Check(&NETLINK_PROTOCOL),
        ),
    ],
    otherwise: &Verdict::Errno(libc::EAFNOSUPPORT),
};

/// getifaddrs(3) and `os.networkInterfaces()` read `NETLINK_ROUTE`; the other protocols lead to
/// `nf_tables`, audit, crypto and the like.
const NETLINK_PROTOCOL: Check = Check {
    argument: 2,
    cases: &[(
        When::Is(libc::NETLINK_ROUTE.cast_unsigned()),
        Verdict::Allow,
    )],
    otherwise: &Verdict::Errno(libc::EPROTONOSUPPORT),
};

/// The kernel has pairs of `AF_UNIX` and `AF_TIPC`.
const SOCKET_PAIR_FAMILY: Check = Check {
    argument: 0,
    cases: &[(When::Is(libc::AF_UNIX.cast_unsigned()), Verdict::Allow)],
    otherwise: &Verdict::Errno(libc::EAFNOSUPPORT),
};

#[cfg(test)]
mod tests;
