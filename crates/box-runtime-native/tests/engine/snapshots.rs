//! Snapshots and clones, on a disk that copies everything, one that shares files and one that has
//! subvolumes.

use crate::harness::{Claim, GRACE, Host, Quiet, names, told};
use crate::tree::{assert_same, of_box};
use crate::{crash, machines};
use box_api::BoxId;
use box_api::control::Profile;
use box_api::snapshot::{CopyMethod, Label, SnapshotKind};
use box_runtime::{BoxSpec, CloneSource, Freezer as _, Runtime as _, SnapshotSpec, Snapshots};
use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

macro_rules! on_each_disk {
    ($($name:ident = $claim:path),+ $(,)?) => {
        pub(crate) const CLAIMS: &[Claim] = &[
            Claim("the_copy_method_is_what_the_disk_can", the_copy_method_is_what_the_disk_can, machines::plain),
            $(
                Claim(concat!(stringify!($name), "_on_ext4"), $claim, machines::plain),
                Claim(concat!(stringify!($name), "_on_xfs"), $claim, machines::xfs),
                Claim(concat!(stringify!($name), "_on_btrfs"), $claim, machines::btrfs),
            )+
            Claim("a_store_of_its_own_shares_files", a_store_of_its_own_shares_files, machines::own_mounts),
        ];
    };
}

on_each_disk!(
    any_snapshot_of_random_work_comes_back_exactly = any_snapshot_of_random_work_comes_back_exactly,
    a_copy_of_a_box_that_works_against_it_stays_in_it =
        a_copy_of_a_box_that_works_against_it_stays_in_it,
    clones_keep_what_a_change_of_owner_takes = clones_keep_what_a_change_of_owner_takes,
    killed_at_any_point_a_verb_happened_or_did_not =
        crash::killed_at_any_point_a_verb_happened_or_did_not,
);

pub(crate) fn label(text: &str) -> Label {
    Label::parse(text).unwrap()
}

pub(crate) fn take(host: &Host, id: &BoxId, text: &str) {
    let spec = SnapshotSpec {
        label: label(text),
        kind: SnapshotKind::Manual,
        at_ms: 1_000,
    };
    host.wait(host.engine().take(id, &spec, &Quiet))
        .unwrap_or_else(|error| panic!("{}", told(&error)));
}

pub(crate) fn restore(host: &Host, id: &BoxId, text: &str) {
    host.wait(host.engine().restore(id, &label(text), &Quiet))
        .unwrap_or_else(|error| panic!("{}", told(&error)));
}

pub(crate) fn source(spec: &BoxSpec, of: Option<&str>) -> CloneSource {
    CloneSource {
        id: spec.id,
        id_offset: spec.id_offset,
        label: of.map(label),
    }
}

/// Where the boxes of this host lie.
fn store(host: &Host) -> PathBuf {
    let own = host.path("data/store");
    if own.join("boxes").exists() {
        return own;
    }
    host.path("data")
}

fn snapshot(host: &Host, id: &BoxId, text: &str) -> PathBuf {
    store(host).join("snapshots").join(id.as_str()).join(text)
}

fn the_copy_method_is_what_the_disk_can(host: &mut Host) {
    // This machine's own disk, wherever tests put their files.
    let folder = rustix::fs::statfs(host.path("data").as_path()).unwrap();
    let method = host.engine().method();
    if folder.f_type == 0xEF53 {
        assert_eq!(method, CopyMethod::Full, "ext4 shares nothing");
    }
    assert_eq!(names(&host.path("data/tmp")), Vec::<String>::new());
}

/// Numbers from a seed, the same each time (`splitmix64`).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (x ^ (x >> 31)) % bound
    }
}

/// Does one thing at random in each of three places. What cannot be done is not.
const EDIT: &str = r#"
my $seed = shift; srand($seed);
sub pick { $_[int rand @_] }
my @all = map { my $d = $_; map { "$d/$_" } qw(a b c d e a/x a/y b/x c/x c/y d/z e/z) } @ARGV;
my @system = map { "/usr/bin/$_" } qw(id wc tr env head);
for (1 .. 6) {
    my $p = int rand 4 ? pick(@all) : pick(@system, '/etc/new', '/usr/lib2', '/usr/new/x');
    my $q = pick(@all);
    my $act = int rand 16;
    $act = 4 if -p $p and $act < 3;
    if ($act == 0) { open(F, '>', $p) and print F 'x' x int rand 70000; close F }
    elsif ($act == 1) { open(F, '>>', $p) and print F "more $seed"; close F }
    elsif ($act == 2) { open(F, '>', $p) and truncate(F, 3 << 20) and seek(F, 1 << 20, 0) and print F 'deep'; close F }
    elsif ($act == 3) { mkdir $p, 0777 & rand 0777 | 0700 }
    elsif ($act == 4) { unlink $p }
    elsif ($act == 5) { system 'rm', '-rf', $p }
    elsif ($act == 6) { rename $p, $q }
    elsif ($act == 7) { link $p, $q }
    elsif ($act == 8) { symlink pick('/etc/passwd', '../..', 'nowhere', 'x' x 200), $p }
    elsif ($act == 9) { system "mknod $p p 2>/dev/null" }
    elsif ($act == 10) { chmod pick(04755, 02711, 0600, 01777, 0444), $p unless -l $p }
    elsif ($act == 11) { chown int rand 60000, int rand 60000, $p unless -l $p }
    elsif ($act == 12) { utime 1e9 * rand, 1e9 * rand, $p unless -l $p }
    elsif ($act == 13) { my ($n, $v) = ("user.k" . int rand 3, 'v' x int rand 300);
        syscall 188, $p, $n, $v, length $v, 0 }
    elsif ($act == 14) { use Socket; socket my $s, AF_UNIX, SOCK_STREAM, 0; bind $s, pack_sockaddr_un($p) }
    elsif ($act == 15) { rename '/var', '/var2' or rename '/var2', '/var'; mkdir '/usr/new' }
}
print 'done';
"#;

/// What installing something does: files of root's with other owners and set-uid bits, over what the
/// image has, folders replaced as a whole.
const INSTALL: &str = "n=$1; mkdir -p /usr/share/p$n/doc && cp /usr/bin/true /usr/bin/p$n && \
    chown 0:$((n + 5)) /usr/bin/p$n && chmod 2755 /usr/bin/p$n && \
    cp /usr/bin/true /usr/share/p$n/tool && chmod 4755 /usr/share/p$n/tool && \
    ln /usr/bin/p$n /usr/share/p$n/doc/hard && ln -sf p$n /usr/bin/p && \
    rm -rf /usr/share/p$((n - 1)) && mkdir -p /usr/share/p$((n - 1)) && echo $n >>/etc/installed";

pub(crate) fn edit(host: &Host, spec: &BoxSpec, seed: u64) {
    let seed = seed.to_string();
    let command = ["perl", "-e", EDIT, &seed, "/workspace", "/root"];
    let output = host.exec(spec, &command);
    assert_eq!(output.stdout, "done", "seed {seed}: {output:?}");
}

pub(crate) fn install(host: &Host, spec: &BoxSpec, step: u64) {
    let number = step.to_string();
    host.exec(spec, &["sh", "-c", INSTALL, "sh", &number]);
}

fn any_snapshot_of_random_work_comes_back_exactly(host: &mut Host) {
    let seed = std::env::var("BOX_TEST_CHANCE").map_or(20, |seed| seed.parse().unwrap());
    let mut random = Random(seed);
    let (spec, _sockets) = host.running(Profile::Root);
    let mut taken: BTreeMap<String, _> = BTreeMap::new();
    for step in 0..200 {
        match random.below(8) {
            0 => {
                let name = format!("s{step}");
                host.wait(host.engine().freeze(&spec.id)).unwrap();
                let tree = of_box(&host.folder(&spec));
                take(host, &spec.id, &name);
                host.wait(host.engine().thaw(&spec.id)).unwrap();
                taken.insert(name, tree);
            }
            1 => {
                install(host, &spec, step);
            }
            _ => edit(host, &spec, random.below(1 << 30)),
        }
    }
    assert!(taken.len() > 10, "seed {seed}: {} snapshots", taken.len());
    // The control: all of it was there to be lost.
    let everything: String = taken.values().flat_map(BTreeMap::values).cloned().collect();
    let parts = [
        " user.k1=",
        "overlay.redirect=",
        "overlay.opaque=",
        " device 0",
        " -> nowhere",
        "140",
        "10644 ",
        " 3145728 bytes",
    ];
    for part in parts {
        assert!(
            everything.contains(part),
            "seed {seed}: nothing with `{part}`"
        );
    }
    let files: usize = taken.values().map(BTreeMap::len).max().unwrap();
    assert!(files > 30, "seed {seed}: {files} files");
    host.wait(host.engine().stop(&spec.id, GRACE)).unwrap();
    for (name, tree) in &taken {
        let what = format!("seed {seed}, snapshot {name}");
        assert_same(&of_box(&snapshot(host, &spec.id, name)), tree, &what);
    }
    let labels: Vec<String> = taken.keys().cloned().collect();
    for _ in 0..8 {
        let at = usize::try_from(random.below(labels.len() as u64)).unwrap();
        let name = &labels[at];
        restore(host, &spec.id, name);
        let what = format!("seed {seed}, restored to {name}");
        assert_same(&of_box(&host.folder(&spec)), &taken[name], &what);
    }
    // It is a box still, and what comes next does not reach into the snapshots.
    host.wait(host.engine().start(&spec)).unwrap();
    edit(host, &spec, seed);
    for (name, tree) in &taken {
        let what = format!("seed {seed}, snapshot {name} later");
        assert_same(&of_box(&snapshot(host, &spec.id, name)), tree, &what);
    }
}

/// Swaps folders with links that lead out, for as long as it is let.
const SWAP: &str = r"
my $out = shift; mkdir '/workspace/d'; mkdir '/workspace/d/e';
open my $f, '>', '/workspace/d/e/mine'; close $f;
symlink $out, '/workspace/l'; symlink $out, '/workspace/up';
$| = 1; print qq(up\n);
for (;;) {
    rename '/workspace/d', '/workspace/t'; rename '/workspace/l', '/workspace/d';
    rename '/workspace/d', '/workspace/l'; rename '/workspace/t', '/workspace/d';
    rename '/workspace/d/e', '/workspace/e'; rename '/workspace/e', '/workspace/d/e';
    unlink '/workspace/hard'; link '/workspace/d/e/mine', '/workspace/hard';
}";

fn a_copy_of_a_box_that_works_against_it_stays_in_it(host: &mut Host) {
    let outside = host.path("outside");
    std::fs::create_dir_all(outside.join("e")).unwrap();
    std::fs::write(outside.join("e/secret"), "of the host").unwrap();
    let before = of_outside(&outside);
    let (spec, _sockets) = host.running(Profile::Root);
    let swaps = host.begin(&spec, &["perl", "-e", SWAP, outside.to_str().unwrap()]);
    for number in 0..30 {
        let name = format!("n{number}");
        take(host, &spec.id, &name);
        let tree = of_box(&snapshot(host, &spec.id, &name));
        let stolen = tree.keys().find(|path| path.ends_with("secret"));
        assert_eq!(stolen, None, "a file of the host was copied");
    }
    drop(swaps);
    host.wait(host.engine().stop(&spec.id, GRACE)).unwrap();
    restore(host, &spec.id, "n7");
    host.wait(host.engine().remove(&spec.id)).unwrap();
    assert_eq!(
        of_outside(&outside),
        before,
        "the host's files are as they were"
    );
}

fn of_outside(folder: &Path) -> Vec<(PathBuf, u32, i64, Vec<u8>)> {
    let names = [
        folder.join("e"),
        folder.join("e/secret"),
        folder.to_path_buf(),
    ];
    let about = names.map(|path| {
        let about = std::fs::symlink_metadata(&path).unwrap();
        let content = std::fs::read(&path).unwrap_or_default();
        (path, about.mode(), about.mtime(), content)
    });
    about.to_vec()
}

fn clones_keep_what_a_change_of_owner_takes(host: &mut Host) {
    let (source_spec, _sockets) = host.running(Profile::Root);
    let set = "cp /usr/bin/true /usr/bin/s && chown 7:0 /usr/bin/s && chmod 6755 /usr/bin/s && \
        cp /usr/bin/true /usr/bin/c && cp /usr/bin/true s && chmod 4755 s";
    host.ask(&source_spec, set);
    host.wait(host.engine().stop(&source_spec.id, GRACE))
        .unwrap();

    let clone = host.spec(Profile::Root);
    assert_ne!(clone.id_offset, source_spec.id_offset);
    let of = source(&source_spec, None);
    host.wait(host.engine().clone_from(&of, &clone, &Quiet))
        .unwrap();
    assert_same(
        &of_box(&host.folder(&clone)),
        &of_box(&host.folder(&source_spec)),
        "a clone in another range",
    );
    host.wait(host.engine().start(&clone)).unwrap();
    assert_eq!(
        host.ask(
            &clone,
            "stat -c '%u:%g %a' /usr/bin/s s; touch /usr/bin/mine && echo yes"
        ),
        "7:0 6755\n0:0 4755\nyes\n"
    );
    // Nobody on the machine but root comes near them.
    for folder in ["boxes", "snapshots", "tmp"] {
        let about = std::fs::metadata(store(host).join(folder)).unwrap();
        assert_eq!(about.mode() & 0o7777, 0o700, "{folder}");
    }
}

fn a_store_of_its_own_shares_files(host: &mut Host) {
    use box_runtime_native::storage::loopback;
    let image = host.image.clone();
    let spec = host.made(Profile::Locked);
    let refused = host
        .replace_after(|data| loopback::make(data, None))
        .unwrap_err();
    assert!(told(&refused).contains("there are boxes in"), "{refused}");
    host.wait(host.engine().remove(&spec.id)).unwrap();
    let small = host.replace_after(|data| loopback::make(data, Some(1 << 20)));
    assert!(small.unwrap_err().hint().unwrap().contains("20GiB"));
    assert_eq!(host.engine().method(), CopyMethod::Full);

    host.replace_after(|data| loopback::make(data, Some(2 << 30)))
        .unwrap();
    assert_eq!(host.engine().method(), CopyMethod::Subvolume);
    let file = std::fs::metadata(host.path("data/store.btrfs")).unwrap();
    assert!(
        file.blocks() * 512 < 64 << 20,
        "the file takes space as it fills"
    );
    assert_eq!(file.permissions().mode() & 0o777, 0o600);
    let (spec, _sockets) = host.running(Profile::Root);
    assert_eq!(spec.image_digest, image, "images stay where they were");
    host.ask(&spec, "echo one >f; echo one >/usr/f");
    take(host, &spec.id, "one");
    // The next host finds the store mounted, and everything in it.
    host.replace();
    host.ask(&spec, "echo two >f; echo two >/usr/f");
    host.wait(host.engine().stop(&spec.id, GRACE)).unwrap();
    restore(host, &spec.id, "one");
    host.wait(host.engine().start(&spec)).unwrap();
    assert_eq!(host.ask(&spec, "cat f /usr/f"), "one\none\n");
    let listed = host.wait(Snapshots::list(host.engine(), &spec.id)).unwrap();
    assert!(listed[0].bytes > 0, "{listed:?}");
    // Somebody unmounts it below a box that runs: the next host mounts the same device again.
    host.replace_after(loopback::unmount_store).unwrap();
    assert_eq!(host.ask(&spec, "echo three >f; cat f"), "three\n");
    let seen = std::fs::read_to_string(
        host.path("data/store/boxes")
            .join(spec.id.as_str())
            .join("workspace/f"),
    );
    assert_eq!(seen.unwrap(), "three\n");
    assert_eq!(devices_over(&host.path("data/store.btrfs")), 1);
    host.wait(host.engine().remove(&spec.id)).unwrap();
    let left = host.replace_after(|data| {
        loopback::unmount_store(data).unwrap();
        assert!(!loopback::is_mounted(data).unwrap());
        let left = devices_over(&data.join("store.btrfs"));
        std::fs::remove_file(data.join("store.btrfs")).unwrap();
        left
    });
    assert_eq!(left, 0, "loop devices are left");
    assert_eq!(host.engine().method(), CopyMethod::Full);
}

/// Loop devices with this file.
fn devices_over(file: &Path) -> usize {
    let devices = std::fs::read_dir("/sys/block").unwrap();
    let files = devices.filter_map(|device| {
        let file = device.unwrap().path().join("loop/backing_file");
        std::fs::read_to_string(file).ok()
    });
    files
        .filter(|found| Path::new(found.trim_end()) == file)
        .count()
}
