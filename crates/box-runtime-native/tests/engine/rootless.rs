//! What is so for ordinary users only.

use crate::harness::{Host, names};
use box_api::control::Profile;
use box_runtime::Runtime as _;
use box_runtime_native::Privileges;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

crate::claims!(
    the_kernel_is_asked_once_what_a_user_may_do,
    limits_of_a_user_are_best_effort_and_said_to_be,
    the_devices_are_the_machines_own_and_no_others,
    folders_of_the_image_are_copied_when_they_are_moved,
    what_only_the_box_could_read_is_removed_with_it,
    packages_can_give_files_to_others,
    a_data_folder_of_other_ids_is_refused,
);

fn has_ranges(host: &Host) -> bool {
    host.engine().privileges() == Privileges::Ranges
}

fn the_kernel_is_asked_once_what_a_user_may_do(host: &mut Host) {
    assert_ne!(host.engine().privileges(), Privileges::Root);
    let (locked, _locked) = host.running(Profile::Locked);
    let (root, _root) = host.running(Profile::Root);
    let map =
        "cat /proc/self/uid_map /proc/self/gid_map | tr -s ' ' | wc -l; cat /proc/self/uid_map";
    let columns = |text: String| {
        let last = text.lines().last().unwrap().split_whitespace();
        last.map(|number| number.parse().unwrap())
            .collect::<Vec<u32>>()
    };
    let (locked, root) = (
        columns(host.ask(&locked, map)),
        columns(host.ask(&root, map)),
    );
    if has_ranges(host) {
        // Seen from the namespace around it, whose ids 0 to 65534 a box has.
        assert_eq!((locked[0], locked[2]), (0, 65_535));
        assert_eq!(locked, root, "one range for all boxes of the user");
    } else {
        assert_eq!((locked[0], locked[2]), (1020, 1));
        assert_eq!((root[0], root[2]), (0, 1));
    }
}

fn limits_of_a_user_are_best_effort_and_said_to_be(host: &mut Host) {
    assert_eq!(host.engine().limits_held_by(), "best effort");
    let mut spec = host.spec(Profile::Root);
    spec.limits.pids = 40;
    host.run(&spec);
    let (neighbour, _sockets) = host.running(Profile::Root);
    let bomb = "my $made = 0; for (1..100) { my $pid = fork; last unless defined $pid;
        if (!$pid) { close STDOUT; close STDERR; sleep 600; exit } $made++ } print $made";
    let made: u32 = host.perl(&spec, bomb).parse().unwrap();
    assert!((25..40).contains(&made), "{made} processes");
    let free: u32 = host.perl(&neighbour, bomb).parse().unwrap();
    assert_eq!(free, 100, "the control: the count is each box's own");
    assert_eq!(
        host.ask(&neighbour, "cat /proc/self/oom_score_adj"),
        "500\n"
    );
}

fn the_devices_are_the_machines_own_and_no_others(host: &mut Host) {
    let (spec, _sockets) = host.running(Profile::Root);
    let look = "cd /dev && stat -c '%n %t %T' full null random tty urandom zero";
    let nodes = "full 1 7\nnull 1 3\nrandom 1 8\ntty 5 0\nurandom 1 9\nzero 1 5\n";
    assert_eq!(host.ask(&spec, look), nodes);
    host.ask(&spec, "echo x >/dev/null && head -c 3 /dev/zero | wc -c");
    let others = "cd /dev && for name in *; do test -c $name && echo $name; done";
    assert_eq!(
        host.ask(&spec, others),
        "full\nnull\nptmx\nrandom\ntty\nurandom\nzero\n"
    );
    host.refused(
        &spec,
        "mknod /tmp/own c 1 3 2>/dev/null && echo x >/tmp/own && test -c /tmp/own",
    );
    host.refused(&spec, "rm /dev/null");
}

/// The overlay a user may mount keeps no note of a folder that moved: rename(2) fails with EXDEV and
/// `mv` copies. Files are renamed, and so are folders the box made itself.
fn folders_of_the_image_are_copied_when_they_are_moved(host: &mut Host) {
    let (spec, _sockets) = host.running(Profile::Root);
    host.ask(&spec, "mkdir /usr/own && touch /usr/own/x");
    let rename =
        |from: &str, to: &str| format!("print rename('{from}', '{to}') ? 'renamed' : 0 + $!");
    assert_eq!(
        host.perl(&spec, &rename("/usr/own", "/usr/other")),
        "renamed"
    );
    assert_eq!(
        host.perl(&spec, &rename("/usr/bin/uname", "/usr/bin/un")),
        "renamed"
    );
    assert_eq!(host.perl(&spec, &rename("/var", "/opt/var")), "18", "EXDEV");
    host.ask(
        &spec,
        "mv /var /opt/var && test -d /opt/var && ! test -e /var",
    );
}

fn what_only_the_box_could_read_is_removed_with_it(host: &mut Host) {
    let (spec, _sockets) = host.running(Profile::Root);
    let dark = "mkdir -p /workspace/a/b /usr/dark/c && touch /workspace/a/b/f /usr/dark/c/f && \
                chmod 0 /workspace/a/b /workspace/a /usr/dark/c /usr/dark";
    host.ask(&spec, dark);
    let folder = host.folder(&spec);
    let owner = |path: &Path| std::fs::symlink_metadata(path).unwrap().uid();
    let own = rustix::process::geteuid().as_raw();
    let inside = if has_ranges(host) { 0 } else { own };
    assert_eq!(owner(&folder), own);
    assert_eq!(owner(&folder.join("workspace/a")), inside);
    let mode = std::fs::metadata(folder.join("workspace/a"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0);
    host.wait(host.engine().remove(&spec.id)).unwrap();
    assert!(!folder.exists());
    assert_eq!(names(&host.path("data/tmp")), [""; 0]);
}

fn packages_can_give_files_to_others(host: &mut Host) {
    let (spec, _sockets) = host.running(Profile::Root);
    host.ask(
        &spec,
        "touch /usr/file && chown 33:34 /usr/file && chmod 4755 /usr/file",
    );
    let owner = host.ask(&spec, "stat -c %u:%g /usr/file");
    if has_ranges(host) {
        assert_eq!(owner, "33:34\n");
        assert_eq!(
            host.perl(&spec, "$) = '8 8'; $> = 6; print \"$> \", $) + 0"),
            "6 8"
        );
        host.refused(&spec, "chown 65535 /usr/file");
    } else {
        assert_eq!(owner, "0:0\n", "it succeeds and changes nothing");
    }
    let (locked, _sockets) = host.running(Profile::Locked);
    host.refused(&locked, "touch /workspace/f && chown 33 /workspace/f");
}

fn a_data_folder_of_other_ids_is_refused(host: &mut Host) {
    let mark = host.path("data/ids");
    let own = std::fs::read_to_string(&mark).unwrap();
    std::fs::write(&mark, "root\n").unwrap();
    let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| host.replace()));
    let said = refused.unwrap_err();
    let said = said.downcast_ref::<String>().unwrap();
    assert!(said.contains("were made with root"), "{said}");
    std::fs::write(&mark, own).unwrap();
    host.replace();
}
