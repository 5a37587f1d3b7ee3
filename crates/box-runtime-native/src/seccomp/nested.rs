//! What a box may call besides that may hold containers (D7).
//!
//! A container is a user namespace below the box's own, and in it everything that makes a container:
//! mounts, another root, namespaces. The box's own root gains nothing by these calls, since it has no
//! capability they ask for. What stays refused even in there is what reaches farther than a container
//! needs: cgroup namespaces, in which the machine's groups could be mounted; time namespaces; netlink
//! beyond the addresses; packet sockets; bpf, perf, `io_uring` and the like.

use super::program::{Check, Rule, Verdict, When};

/// What containers are made with.
#[rustfmt::skip]
const ALLOWED: &[libc::c_long] = &[
    libc::SYS_chroot, libc::SYS_fsconfig, libc::SYS_fsmount, libc::SYS_fsopen, libc::SYS_fspick,
    libc::SYS_mount, libc::SYS_mount_setattr, libc::SYS_move_mount, libc::SYS_open_tree,
    libc::SYS_pivot_root, libc::SYS_setdomainname, libc::SYS_sethostname, libc::SYS_setns,
    libc::SYS_umount2,
];

/// Runtimes give each container a keyring of its own, and go on without where the kernel has none.
const ABSENT: &[libc::c_long] = &[libc::SYS_add_key, libc::SYS_keyctl, libc::SYS_request_key];

const CHECKED: &[(libc::c_long, &Check)] = &[
    (libc::SYS_clone, &NO_CGROUP_NAMESPACE),
    (libc::SYS_unshare, &NO_CGROUP_AND_NO_TIME_NAMESPACE),
];

const CLONE_NEWCGROUP: u32 = 0x0200_0000;
const CLONE_NEWTIME: u32 = 0x80;

/// In a flag word of clone(2) `CLONE_NEWTIME` is part of the signal's number and means nothing.
const NO_CGROUP_NAMESPACE: Check = Check {
    argument: 0,
    cases: &[(When::AnyBitOf(CLONE_NEWCGROUP), Verdict::Errno(libc::EPERM))],
    otherwise: &Verdict::Allow,
};

const NO_CGROUP_AND_NO_TIME_NAMESPACE: Check = Check {
    argument: 0,
    cases: &[(
        When::AnyBitOf(CLONE_NEWCGROUP | CLONE_NEWTIME),
        Verdict::Errno(libc::EPERM),
    )],
    otherwise: &Verdict::Allow,
};

/// A box's rules, with these in place of what they said.
pub(super) fn over(mut rules: Vec<Rule>) -> Vec<Rule> {
    let allowed = ALLOWED.iter().map(|number| (*number, Verdict::Allow));
    let absent = ABSENT
        .iter()
        .map(|number| (*number, Verdict::Errno(libc::ENOSYS)));
    let checked = CHECKED
        .iter()
        .map(|(number, check)| (*number, Verdict::Check(check)));
    let ours: Vec<Rule> = allowed
        .chain(absent)
        .chain(checked)
        .filter_map(|(number, verdict)| {
            let number = u32::try_from(number).ok()?;
            Some(Rule { number, verdict })
        })
        .collect();
    rules.retain(|rule| !ours.iter().any(|our| our.number == rule.number));
    rules.extend(ours);
    rules.sort_by_key(|rule| rule.number);
    rules
}
