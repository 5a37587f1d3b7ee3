//! A machine with cgroup v2 alone: as root of all of it, as a unit systemd has delegated a part to,
//! and as one it has not. Shown in a machine made for it (`cargo xtask test hosts`).

use crate::cgroup::{Cgroup, Version};
use crate::freeze::{begin, counted, counted_beyond};
use crate::harness::{GRACE, Host};
use box_api::control::Profile;
use box_runtime::{Freezer as _, Limiter as _, Runtime as _};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

crate::claims!(
    the_host_stands_in_a_leaf_of_its_own,
    a_box_is_held_by_every_file_of_its_cgroup,
);

/// These make the machine one that systemd rules, for good: shown last.
pub(crate) mod systemd {
    use super::{delegated, shared, undelegated};
    use crate::harness::Claim;

    pub(crate) const CLAIMS: &[Claim] = &[
        Claim(
            "under_systemd_nothing_but_the_delegated_part_is_written",
            super::under_systemd_nothing_but_the_delegated_part_is_written,
            delegated,
        ),
        Claim(
            "a_unit_without_delegation_is_left_alone",
            super::a_unit_without_delegation_is_left_alone,
            undelegated,
        ),
        Claim(
            "a_unit_with_other_processes_in_it_is_left_alone",
            super::a_unit_with_other_processes_in_it_is_left_alone,
            shared,
        ),
    ];
}

const TOP: &str = "/sys/fs/cgroup";
/// What tells whether anybody wrote to a cgroup.
const FILES: [&str; 8] = [
    "cgroup.subtree_control",
    "cgroup.procs",
    "cgroup.freeze",
    "cgroup.max.descendants",
    "memory.max",
    "memory.swap.max",
    "pids.max",
    "cpu.max",
];

/// A unit of this claim's own: what another one left in its is no matter.
fn unit_name() -> String {
    format!("system.slice/box-{}.service", std::process::id())
}

fn unit() -> PathBuf {
    Path::new(TOP).join(unit_name())
}

/// What the tree was like before the host looked at it.
static BEFORE: OnceLock<BTreeMap<PathBuf, String>> = OnceLock::new();

fn write(path: &Path, value: &str) {
    std::fs::write(path, value).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// What systemd makes: slices with controllers for their children, a neighbour with a process in it,
/// and the host's own unit.
fn systemd() -> PathBuf {
    std::fs::create_dir_all("/run/systemd/system").unwrap();
    let top = Path::new(TOP);
    let unit = unit();
    std::fs::create_dir_all(&unit).unwrap();
    for above in [top.to_path_buf(), top.join("system.slice")] {
        write(&above.join("cgroup.subtree_control"), "+memory +pids +cpu");
    }
    let neighbour = top.join("system.slice/neighbour.service");
    std::fs::create_dir_all(&neighbour).unwrap();
    write(&neighbour.join("memory.max"), "104857600");
    write(&neighbour.join("cgroup.procs"), &sleeper().to_string());
    write(&unit.join("cgroup.procs"), "0");
    unit
}

/// A process that is there until this machine ends.
#[expect(
    clippy::zombie_processes,
    reason = "nobody waits for it; it goes with the machine"
)]
fn sleeper() -> u32 {
    #[expect(clippy::disallowed_methods, reason = "a test needs a neighbour")]
    let child = std::process::Command::new("/bin/sh")
        .args(["-c", "exec busybox sleep 3600"])
        .spawn()
        .unwrap();
    child.id()
}

fn delegated() {
    let unit = systemd();
    let flags = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(&unit, "trusted.delegate", b"1", flags).unwrap();
    remember();
}

fn undelegated() {
    systemd();
    remember();
}

/// Delegated, but somebody else stands where the host does.
fn shared() {
    let unit = systemd();
    let flags = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(&unit, "trusted.delegate", b"1", flags).unwrap();
    write(&unit.join("cgroup.procs"), &sleeper().to_string());
    remember();
}

fn remember() {
    BEFORE.set(tree()).unwrap();
}

/// Every cgroup below the slice, and the top itself, with what its files say. Who stands in the top
/// changes by itself.
fn tree() -> BTreeMap<PathBuf, String> {
    let mut seen = BTreeMap::new();
    let control = "cgroup.subtree_control";
    let top = std::fs::read_to_string(Path::new(TOP).join(control)).unwrap();
    seen.insert(PathBuf::from(TOP), top);
    let mut open = vec![Path::new(TOP).join("system.slice")];
    while let Some(folder) = open.pop() {
        let files =
            FILES.map(|file| std::fs::read_to_string(folder.join(file)).unwrap_or_default());
        for name in crate::harness::names(&folder) {
            open.push(folder.join(name));
        }
        seen.insert(folder, files.join("|"));
    }
    seen
}

/// What was written since [`remember`].
fn changed() -> Vec<PathBuf> {
    let (before, now) = (BEFORE.get().unwrap(), tree());
    let all = before.keys().chain(now.keys());
    let mut changed: Vec<PathBuf> = all
        .filter(|folder| before.get(*folder) != now.get(*folder))
        .cloned()
        .collect();
    changed.sort();
    changed.dedup();
    changed
}

fn own_cgroup() -> String {
    let text = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    text.trim().strip_prefix("0::").unwrap().to_owned()
}

fn the_host_stands_in_a_leaf_of_its_own(host: &mut Host) {
    assert_eq!(host.engine().limits_held_by(), "cgroup v2");
    assert_eq!(own_cgroup(), "/supervisor");
    // The host after this one begins there and finds its way.
    host.replace();
    assert_eq!(host.engine().limits_held_by(), "cgroup v2");
    assert_eq!(own_cgroup(), "/supervisor");
    let (spec, _sockets) = host.running(Profile::Locked);
    let cgroup = Cgroup::of(host, &spec);
    assert_eq!(cgroup.version, Version::Two);
    assert_eq!(cgroup.folder("pids").parent(), Some(Path::new(TOP)));
}

fn a_box_is_held_by_every_file_of_its_cgroup(host: &mut Host) {
    let mut spec = host.spec(Profile::Locked);
    spec.limits.memory_bytes = 96 << 20;
    spec.limits.pids = 55;
    spec.limits.cpu_milli = 500;
    let _sockets = host.run(&spec);
    let cgroup = Cgroup::of(host, &spec);
    let said = |file: &str| cgroup.read("", file).trim().to_owned();
    assert_eq!(said("memory.max"), (96 << 20).to_string());
    assert_eq!(said("memory.swap.max"), "0");
    assert_eq!(
        said("memory.oom.group"),
        "0",
        "one program dies, not the box"
    );
    assert_eq!(said("pids.max"), "55");
    assert_eq!(said("cpu.max"), "50000 100000");
    assert_eq!(said("cgroup.freeze"), "0");

    let counter = begin(
        host,
        &spec,
        "my $n = 0; while (1) { $n++; open(my $f, '>', '/workspace/m') or die;
        print $f $n; close $f; rename '/workspace/m', '/workspace/n' or die }",
    );
    counted_beyond(host, &spec, 0);
    host.wait(host.engine().freeze(&spec.id)).unwrap();
    assert_eq!(said("cgroup.freeze"), "1");
    assert!(said("cgroup.events").contains("frozen 1"));
    let still = counted(host, &spec);
    host.wait(host.engine().thaw(&spec.id)).unwrap();
    counted_beyond(host, &spec, still);
    drop(counter);

    let grow = "my $x = 'x' x (200 << 20)";
    assert_eq!(host.exec(&spec, &["perl", "-e", grow]).code, 137);
    assert!(said("memory.events").contains("oom_kill 1"));
    let usage = host.wait(host.engine().usage(&spec.id)).unwrap();
    assert_eq!(usage.out_of_memory, 1);
}

fn under_systemd_nothing_but_the_delegated_part_is_written(host: &mut Host) {
    assert_eq!(host.engine().limits_held_by(), "cgroup v2");
    let unit = unit();
    assert_eq!(own_cgroup(), format!("/{}/supervisor", unit_name()));
    let (spec, _sockets) = host.running(Profile::Locked);
    let cgroup = Cgroup::of(host, &spec).folder("pids");
    assert_eq!(cgroup.parent(), Some(unit.as_path()));
    host.wait(host.engine().freeze(&spec.id)).unwrap();
    host.wait(host.engine().thaw(&spec.id)).unwrap();
    host.wait(host.engine().set(&spec.id, &spec.limits))
        .unwrap();
    let written = changed();
    assert!(written.contains(&cgroup), "the control: {written:?}");
    for folder in &written {
        assert!(
            folder.starts_with(&unit),
            "{} was written",
            folder.display()
        );
    }
    host.wait(host.engine().stop(&spec.id, GRACE)).unwrap();
    assert!(!cgroup.exists());
}

fn a_unit_without_delegation_is_left_alone(host: &mut Host) {
    assert_eq!(host.engine().limits_held_by(), "best effort");
    let (spec, _sockets) = host.running(Profile::Locked);
    assert_eq!(host.ask(&spec, "echo here"), "here\n");
    assert_eq!(own_cgroup(), format!("/{}", unit_name()));
    assert_eq!(within_unit_only_processes_changed(), Vec::<PathBuf>::new());
}

fn a_unit_with_other_processes_in_it_is_left_alone(host: &mut Host) {
    assert_eq!(host.engine().limits_held_by(), "best effort");
    let (spec, _sockets) = host.running(Profile::Locked);
    assert_eq!(host.ask(&spec, "echo here"), "here\n");
    let controls = unit().join("cgroup.subtree_control");
    assert_eq!(std::fs::read_to_string(controls).unwrap().trim(), "");
    let neighbours = changed()
        .into_iter()
        .filter(|folder| !folder.starts_with(unit()));
    assert_eq!(neighbours.collect::<Vec<_>>(), Vec::<PathBuf>::new());
}

/// Boxes without cgroups of their own stand where the host stands; nothing else may have changed.
fn within_unit_only_processes_changed() -> Vec<PathBuf> {
    let unit = unit();
    let (before, now) = (BEFORE.get().unwrap(), tree());
    let without_processes = |text: &String| {
        let mut parts: Vec<&str> = text.split('|').collect();
        parts.remove(1);
        parts.join("|")
    };
    let mut changed = changed();
    changed.retain(|folder| {
        *folder != unit
            || before.get(folder).map(without_processes) != now.get(folder).map(without_processes)
    });
    changed
}
