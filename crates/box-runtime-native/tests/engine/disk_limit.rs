//! The limit on disk, and what is kept free of the machine's.

use crate::harness::{Host, told};
use crate::machines;
use box_api::control::Profile;
use box_runtime::{
    Disk as _, DiskEvent, DiskShort, Freezer as _, Fullness, Limiter as _, Runtime as _,
};

crate::claims!(
    what_a_box_uses_is_told_by_part,
    a_box_over_its_limit_stands_still_until_it_has_room,
    a_box_over_its_limit_can_be_tidied_up_but_not_filled,
    the_next_host_holds_the_limit_as_well,
    a_box_that_moves_its_folders_about_is_counted_all_the_same,
);

/// Moves folders about far below, where a count has let go of those above.
const MOVE: &str = "chdir '/workspace'; for (1 .. 200) { mkdir 'a'; mkdir 'b'; chdir 'a' }
    chdir '/workspace' . '/a' x 40; $| = 1; print 'u';
    while (1) { rename 'a', 'b/a'; rename 'b/a', 'a' }";

/// On a disk of 512 MiB, of which 128 are kept free.
pub(crate) const SMALL: &[crate::harness::Claim] = &[crate::harness::Claim(
    "a_box_never_fills_the_machines_disk",
    a_box_never_fills_the_machines_disk,
    machines::small,
)];

const MIB: u64 = 1 << 20;
const FILL: &str = "open my $f, '>', $ARGV[0] or die; $| = 1; print 'u'; my $x = 'x' x 1048576;
    while (1) { syswrite $f, $x or die $!; select undef, undef, undef, 0.02 }";

fn event(host: &Host) -> DiskEvent {
    host.wait(host.engine().next_event())
}

fn frozen(host: &Host, spec: &box_runtime::BoxSpec) -> bool {
    host.wait(host.engine().usage(&spec.id)).unwrap().frozen
}

fn small_box(host: &mut Host) -> (box_runtime::BoxSpec, box_runtime::BoxSockets) {
    let mut spec = host.spec(Profile::Locked);
    spec.limits.disk_bytes = 32 * MIB;
    let sockets = host.run(&spec);
    (spec, sockets)
}

fn what_a_box_uses_is_told_by_part(host: &mut Host) {
    let (spec, _sockets) = host.running(Profile::Root);
    let fill = |name: &str, mib: u32| format!("dd if=/dev/zero of={name} bs=1M count={mib} 2>&1");
    for (name, mib) in [("/workspace/f", 3), ("/root/f", 2), ("/usr/f", 1)] {
        host.ask(&spec, &fill(name, mib));
    }
    host.ask(
        &spec,
        "ln f hard; dd if=/dev/zero of=/tmp/f bs=1M count=5 2>&1",
    );
    let used = host.wait(host.engine().disk_usage(&spec.id)).unwrap();
    let about = |bytes: u64, mib: u64| {
        assert!(
            (mib * MIB..mib * MIB + 200_000).contains(&bytes),
            "{used:?}"
        );
    };
    about(used.workspace_bytes, 3);
    about(used.home_bytes, 2);
    about(used.root_bytes, 1);
    assert_eq!(used.snapshots_bytes, 0);
    crate::snapshots::take(host, &spec.id, "one");
    let used = host.wait(host.engine().disk_usage(&spec.id)).unwrap();
    about(used.snapshots_bytes, 6);
}

fn a_box_over_its_limit_stands_still_until_it_has_room(host: &mut Host) {
    let (spec, _sockets) = small_box(host);
    let (neighbour, _its_sockets) = host.running(Profile::Locked);
    let _fills = host.begin(&spec, &["perl", "-e", FILL, "/workspace/f"]);
    let full = event(host);
    assert_eq!((full.id, full.full), (spec.id, Fullness::Full));
    assert_eq!(full.short, DiskShort::Limit);
    assert!(full.used_bytes > full.limit_bytes, "{full:?}");
    assert_eq!(full.limit_bytes, 32 * MIB);
    assert!(frozen(host, &spec), "it runs on");
    assert_eq!(host.ask(&neighbour, "echo here >f; cat f"), "here\n");
    let size = || {
        std::fs::metadata(host.folder(&spec).join("workspace/f"))
            .unwrap()
            .len()
    };
    let stood_at = size();

    let more = box_api::control::Limits {
        disk_bytes: 4096 * MIB,
        ..spec.limits
    };
    host.wait(host.engine().set(&spec.id, &more)).unwrap();
    let room = event(host);
    assert_eq!((room.id, room.full), (spec.id, Fullness::Room));
    assert_eq!(size(), stood_at.max(size()), "it only grows");
    assert_eq!(host.ask(&spec, "echo here"), "here\n");
    host.wait(async {
        while size() == stood_at {
            tokio::task::yield_now().await;
        }
    });
}

fn a_box_over_its_limit_can_be_tidied_up_but_not_filled(host: &mut Host) {
    let (spec, _sockets) = small_box(host);
    let fills = host.begin(&spec, &["perl", "-e", FILL, "/workspace/f"]);
    let first = event(host);
    assert_eq!(first.full, Fullness::Full);
    // A person lets it go on, and it goes on as before.
    host.wait(host.engine().thaw(&spec.id)).unwrap();
    let second = event(host);
    assert_eq!(second.full, Fullness::Full);
    assert!(second.used_bytes > first.used_bytes);
    assert!(frozen(host, &spec));
    host.wait(host.engine().thaw(&spec.id)).unwrap();
    drop(fills);
    host.ask(&spec, "rm f");
    let room = event(host);
    assert_eq!(room.full, Fullness::Room, "{room:?}");
    assert_eq!(host.ask(&spec, "echo here"), "here\n");
}

fn the_next_host_holds_the_limit_as_well(host: &mut Host) {
    let (spec, _sockets) = small_box(host);
    host.replace();
    let fills = host.begin(&spec, &["perl", "-e", FILL, "/workspace/f"]);
    let full = event(host);
    assert_eq!((full.id, full.full), (spec.id, Fullness::Full));
    assert_eq!(full.limit_bytes, 32 * MIB);
    // A box that stands still can be ended, and is not measured any more.
    drop(fills);
    host.wait(host.engine().stop(&spec.id, crate::harness::GRACE))
        .unwrap_or_else(|error| panic!("{}", told(&error)));
}

fn a_box_that_moves_its_folders_about_is_counted_all_the_same(host: &mut Host) {
    let (spec, _sockets) = small_box(host);
    let _moves = host.begin(&spec, &["perl", "-e", MOVE]);
    let _fills = host.begin(&spec, &["perl", "-e", FILL, "/workspace/f"]);
    let full = event(host);
    assert_eq!((full.id, full.full), (spec.id, Fullness::Full));
    assert!(frozen(host, &spec));
}

fn a_box_never_fills_the_machines_disk(host: &mut Host) {
    let (writer, _sockets) = host.running(Profile::Locked);
    let (other, _its_sockets) = host.running(Profile::Locked);
    let _fills = host.begin(&writer, &["perl", "-e", FILL, "/workspace/f"]);
    let full = event(host);
    assert_eq!((full.id, full.full), (writer.id, Fullness::Full));
    assert_eq!(full.short, DiskShort::Machine);
    assert!(full.used_bytes < full.limit_bytes);
    let about = rustix::fs::statvfs(host.path("data").as_path()).unwrap();
    let free = about.f_bavail * about.f_frsize;
    assert!((MIB..128 * MIB).contains(&free), "{free} bytes are left");
    assert_eq!(host.ask(&other, "echo here >f; cat f"), "here\n");
    std::fs::remove_file(host.folder(&writer).join("workspace/f")).unwrap();
}
