//! What a box's processes may do, taken away step by step.

use super::environment::user_id;
use crate::rootless::Privileges;
use box_api::control::{Limits, Profile};
use box_runtime::Nesting;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, Gid, Uid, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_thread_groups, set_thread_res_gid,
    set_thread_res_uid,
};

/// What `apt` needs and no more (A14). Of the box's own user namespace, so nothing outside it.
const ROOT_KEEPS: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::NET_BIND_SERVICE);

/// Without it nobody may map uid 0 of the box into a user namespace below it (Linux 5.12,
/// `verify_root_map`), and so no container of root's own could be made. What it is named after, file
/// capabilities, means nothing in a box: `no_new_privs` and `nosuid` hold.
const ROOT_THAT_HOLDS_CONTAINERS_KEEPS: CapabilitySet = ROOT_KEEPS.union(CapabilitySet::SETFCAP);

/// uid and gid 0 of the new user namespace, with all capabilities in it. Where the box has one id,
/// that one has them already.
pub(super) fn become_root(ids: Privileges) -> Result<(), Errno> {
    if ids.has_ranges() {
        become_user(0, ids)
    } else {
        Ok(())
    }
}

fn become_user(id: u32, ids: Privileges) -> Result<(), Errno> {
    let (uid, gid) = (Uid::from_raw(id), Gid::from_raw(id));
    if ids.has_ranges() {
        set_thread_groups(&[])?;
    }
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)
}

/// Limits of each process. They hold beside cgroups.
pub(super) fn limit(limits: &Limits) -> Result<(), Errno> {
    set(Resource::Nofile, u64::from(limits.open_files))?;
    set(Resource::Core, 0)
}

/// All there is where no cgroup holds the box: how many processes each of its users has, and how
/// much memory each of them takes. Not set beside a cgroup: the count could not be raised while the
/// box runs, and programs that reserve more than they use would fail for nothing.
pub(super) fn limit_without_cgroup(limits: &Limits) -> Result<(), Errno> {
    set(Resource::Nproc, u64::from(limits.pids))?;
    set(Resource::Data, limits.memory_bytes)
}

/// Without `CAP_SYS_RESOURCE` outside, no limit can be raised over the spawner's own (getrlimit(2)).
fn set(resource: Resource, value: u64) -> Result<(), Errno> {
    let most = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let value = Some(value.min(most));
    setrlimit(
        resource,
        Rlimit {
            current: value,
            maximum: value,
        },
    )
}

/// Keeps what the profile has, for good: the bounding set is what any later exec can gain at most.
pub(super) fn give_up(profile: Profile, nesting: Nesting, ids: Privileges) -> Result<(), Errno> {
    let kept = match (profile, nesting) {
        (Profile::Locked, _) => CapabilitySet::empty(),
        (Profile::Root, Nesting::Refused) => ROOT_KEEPS,
        (Profile::Root, Nesting::Allowed) => ROOT_THAT_HOLDS_CONTAINERS_KEEPS,
    };
    for bit in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        if kept.contains(capability) {
            continue;
        }
        match remove_capability_from_bounding_set(capability) {
            // The kernel knows no capability from here on.
            Err(Errno::INVAL) => break,
            result => result?,
        }
    }
    clear_ambient_capability_set()?;
    become_user(user_id(profile), ids)?;
    let sets = CapabilitySets {
        effective: kept,
        permitted: kept,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, sets)
}
