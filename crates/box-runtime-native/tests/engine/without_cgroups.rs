//! A machine that lets us make no cgroups.

use crate::freeze;
use crate::harness::{GRACE, Host};
use box_api::control::Profile;
use box_runtime::{LimitName, Limiter as _, Runtime as _};
use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_change, unmount};
use rustix::thread::{UnshareFlags, unshare_unsafe};

crate::claims!(on no_cgroups;
    limits_are_best_effort_and_said_to_be,
    without_cgroups_a_frozen_box_stands_still,
    without_cgroups_a_box_that_forks_without_end_is_frozen_whole,
    without_cgroups_a_frozen_box_is_stopped,
    without_cgroups_what_a_box_uses_is_counted,
);

fn without_cgroups_a_frozen_box_stands_still(host: &mut Host) {
    freeze::a_frozen_box_stands_still_and_goes_on(host);
    freeze::a_freeze_outlives_the_host(host);
}

fn without_cgroups_a_box_that_forks_without_end_is_frozen_whole(host: &mut Host) {
    freeze::a_box_that_forks_without_end_is_frozen_whole(host);
}

fn without_cgroups_a_frozen_box_is_stopped(host: &mut Host) {
    freeze::a_frozen_box_is_stopped_as_any_other(host);
    freeze::only_what_runs_is_frozen(host);
}

fn without_cgroups_what_a_box_uses_is_counted(host: &mut Host) {
    let (spec, _sockets) = host.running(Profile::Locked);
    let usage = |host: &Host| host.wait(host.engine().usage(&spec.id)).unwrap();
    let before = usage(host);
    let held = "my $x = 'x' x (40 << 20); my $end = (times)[0] + 0.3; 1 while (times)[0] < $end;
        open(my $f, '>', '/workspace/n') or die; print $f 1; close $f; sleep 600";
    let program = freeze::begin(host, &spec, held);
    freeze::counted_beyond(host, &spec, 0);
    let after = usage(host);
    assert!(
        after.cpu_us - before.cpu_us >= 250_000,
        "{before:?} {after:?}"
    );
    assert!(
        after.memory_bytes - before.memory_bytes >= 40 << 20,
        "{after:?}"
    );
    assert_eq!(after.processes, before.processes + 1);
    assert!(
        host.engine()
            .live()
            .iter()
            .all(|limit| *limit == LimitName::Disk)
    );
    drop(program);
}

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
