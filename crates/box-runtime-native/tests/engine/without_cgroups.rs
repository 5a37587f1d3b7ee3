//! A machine that lets us make no cgroups.

use crate::harness::{GRACE, Host};
use box_api::control::Profile;
use box_runtime::Runtime as _;
use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_change, unmount};
use rustix::thread::{UnshareFlags, unshare_unsafe};

crate::claims!(on no_cgroups; limits_are_best_effort_and_said_to_be);

/// Takes the cgroup file systems out of this process's sight.
fn no_cgroups() {
    // SAFETY: this process has one thread, and the flag shares no descriptor table.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }.unwrap();
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )
    .unwrap();
    unmount("/sys/fs/cgroup", UnmountFlags::DETACH).unwrap();
}

fn limits_are_best_effort_and_said_to_be(host: &mut Host) {
    assert_eq!(host.engine().limits_held_by(), "best effort");
    let mut spec = host.spec(Profile::Locked);
    spec.limits.pids = 40;
    spec.limits.memory_bytes = 64 << 20;
    host.run(&spec);
    let (neighbour, _sockets) = host.running(Profile::Locked);

    // Each box has a user namespace, so the count is its own.
    let bomb = "my $made = 0; for (1..100) { my $pid = fork; last unless defined $pid;
        if (!$pid) { close STDOUT; close STDERR; sleep 600; exit } $made++ } print $made";
    let made: u32 = host.perl(&spec, bomb).parse().unwrap();
    assert!((25..40).contains(&made), "{made} processes");
    let free: u32 = host.perl(&neighbour, bomb).parse().unwrap();
    assert_eq!(free, 100, "the control");

    host.wait(host.engine().stop(&spec.id, GRACE)).unwrap();
    host.wait(host.engine().start(&spec)).unwrap();
    let grow = |mebibytes: u32| format!("my $x = 'x' x ({mebibytes} << 20); print length $x");
    assert_eq!(host.perl(&spec, &grow(20)), (20 << 20).to_string());
    let output = host.exec(&spec, &["perl", "-e", &grow(100)]);
    assert!(output.code != 0 && output.stdout.is_empty(), "{output:?}");
    assert_eq!(host.ask(&spec, "cat /proc/self/oom_score_adj"), "500\n");
}
