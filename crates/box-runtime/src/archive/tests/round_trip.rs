//! What goes in comes out.

use super::trees::{look, set};
use crate::Manifest;
use crate::archive::{
    ArchiveError, ArchiveWriter, Arriving, Grounds, ImageInArchive, LeftOut, OnDisk, OverlayNames,
    Part, Received, Rules, State, Tree,
};
use crate::unpack::SetId;
use box_api::snapshot::{SnapshotInfo, SnapshotKind};
use box_api::{BoxId, BoxName, Label};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, Timespec, Timestamps, linkat, mkfifoat, mknodat, utimensat,
};
use std::fs::{self, File};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::Path;

pub(super) fn with_image(mut manifest: Manifest) -> Manifest {
    manifest.with_image = true;
    manifest
}

pub(super) fn manifest(labels: &[&str]) -> Manifest {
    let snapshot = |label: &&str| SnapshotInfo {
        label: Label::parse(label).unwrap(),
        kind: SnapshotKind::Manual,
        created_at_ms: 1,
        bytes: 2,
    };
    Manifest {
        format: 1,
        id: BoxId::from_random([7; 10]),
        name: BoxName::parse("demo").unwrap(),
        exported_at_ms: 1_790_000_000_000,
        runtime: "native".to_owned(),
        image: "debian:trixie".to_owned(),
        image_digest: "0".repeat(64),
        with_image: false,
        image_env: Vec::new(),
        snapshots: labels.iter().map(snapshot).collect(),
        host: serde_json::json!({"title": null}),
    }
}

pub(super) fn rules() -> Rules {
    Rules {
        state_bytes_max: 1 << 30,
        set_id: SetId::Keep,
        owners: OnDisk::Same,
        image: ImageInArchive::Unpacked,
        overlay: OverlayNames::Trusted,
    }
}

fn later(path: &Path, seconds: i64, nanoseconds: i64) {
    let time = Timespec {
        tv_sec: seconds,
        tv_nsec: nanoseconds,
    };
    let times = Timestamps {
        last_access: time,
        last_modification: time,
    };
    utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

fn noise(bytes: usize, mut seed: u64) -> Vec<u8> {
    (0..bytes)
        .map(|_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 56) as u8
        })
        .collect()
}

/// A bit of everything a box can have.
fn furnish(top: &Path) {
    let at = |name: &str| top.join(name);
    fs::create_dir_all(at("a/b/c")).unwrap();
    fs::write(at("a/short"), "x").unwrap();
    fs::write(at("a/long"), noise(700_000, 1)).unwrap();
    fs::write(at("a/b/empty"), "").unwrap();
    let mut holes = vec![0; 3 << 20];
    holes[1 << 20] = 1;
    fs::write(at("a/holes"), holes).unwrap();
    linkat(
        CWD,
        at("a/long"),
        CWD,
        at("a/b/other-name"),
        AtFlags::empty(),
    )
    .unwrap();
    symlink("/etc/passwd", at("a/absolute")).unwrap();
    symlink("../../..", at("a/up")).unwrap();
    mkfifoat(CWD, at("a/fifo"), Mode::from_raw_mode(0o622)).unwrap();
    let long = "n".repeat(200);
    fs::write(at(&long), "long name").unwrap();
    symlink("t".repeat(300), at("long-target")).unwrap();
    let odd = std::ffi::OsStr::from_bytes(b"odd \xff\n\r\\ name");
    fs::write(top.join(odd), "odd").unwrap();
    fs::create_dir(at("sticky")).unwrap();
    fs::set_permissions(at("sticky"), fs::Permissions::from_mode(0o3777)).unwrap();
    for (name, uid, gid, mode) in [
        ("a/short", 1020, 1020, 0o640),
        ("a/b", 0, 65_535, 0o2750),
        ("a/long", 7, 8, 0o6755),
        ("a/b/empty", 0, 0, 0o000),
    ] {
        chown(at(name), Some(uid), Some(gid)).unwrap();
        fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    set(&at("a/short"), "user.key", b"value");
    set(&at("a/short"), "user.a=b%", &[0, 255, 10]);
    set(&at("a/b"), "user.folder", &[7; 900]);
    for (name, seconds, nanoseconds) in [
        ("a/short", 1_700_000_000, 123_456_789),
        ("a/long", -5, 250_000_000),
        ("a/absolute", 3, 1),
        ("a/fifo", 4, 0),
        ("a/b/c", 1 << 33, 999),
        ("a/b", 1, 0),
        ("a", 2, 500),
    ] {
        later(&at(name), seconds, nanoseconds);
    }
}

/// As [`furnish`], with what an overlay marks.
fn change(top: &Path) {
    furnish(top);
    let mode = Mode::from_raw_mode(0);
    mknodat(CWD, top.join("a/gone"), FileType::CharacterDevice, mode, 0).unwrap();
    fs::write(top.join("odd-one"), "").unwrap();
    chown(top.join("odd-one"), Some(65_536), Some(65_536)).unwrap();
    fs::create_dir(top.join("anew")).unwrap();
    set(&top.join("anew"), "trusted.overlay.opaque", b"y");
    fs::create_dir(top.join("moved")).unwrap();
    set(
        &top.join("moved"),
        "trusted.overlay.redirect",
        b"/usr/share",
    );
    set(&top.join("moved"), "trusted.overlay.impure", b"y");
}

fn on_disk(top: &Path, state: &State, part: Part) -> std::path::PathBuf {
    top.join(state.tree(part))
}

/// Writes the trees of `from`, which lies as what is unpacked does.
fn write(from: &Path, manifest: &Manifest) -> (Vec<u8>, LeftOut) {
    let mut progress = |_| {};
    let spool = tempfile::tempfile().unwrap();
    let mut writer = ArchiveWriter::begin(Vec::new(), spool, manifest, &mut progress).unwrap();
    let folder = |state: &State, part| File::open(on_disk(from, state, part));
    let labels = manifest
        .snapshots
        .iter()
        .map(|info| State::Snapshot(info.label.clone()));
    let states: Vec<State> = std::iter::once(State::Now).chain(labels).collect();
    for state in &states {
        if let State::Snapshot(label) = state {
            writer.snapshot(label).unwrap();
        }
        for part in [Part::Workspace, Part::Home, Part::Root] {
            let (Ok(here), Ok(now)) = (folder(state, part), folder(&State::Now, part)) else {
                continue;
            };
            let tree = |state: &State, folder| Tree {
                state: state.clone(),
                part,
                folder,
                owners: OnDisk::Same,
                overlay: OverlayNames::Trusted,
            };
            let before = [tree(&State::Now, now.as_fd())];
            let before = if *state == State::Now {
                &[][..]
            } else {
                &before[..]
            };
            writer.tree(&tree(state, here.as_fd()), before).unwrap();
        }
    }
    if manifest.with_image {
        let image = folder(&State::Now, Part::Image).unwrap();
        let tree = Tree {
            state: State::Now,
            part: Part::Image,
            folder: image.as_fd(),
            owners: OnDisk::Same,
            overlay: OverlayNames::Trusted,
        };
        writer.tree(&tree, &[]).unwrap();
    }
    writer.finish().unwrap()
}

pub(super) fn read(archive: &[u8], into: &Path, rules: Rules) -> Result<Received, ArchiveError> {
    let arriving = Arriving::open(archive, tempfile::tempfile().unwrap())?;
    let snapshots = into.join("snapshots");
    fs::create_dir(&snapshots).unwrap();
    let (top, snapshots) = (File::open(into).unwrap(), File::open(snapshots).unwrap());
    let grounds = Grounds {
        now: (top.as_fd(), "box"),
        snapshots: snapshots.as_fd(),
        image: (top.as_fd(), "image"),
        make_state: &|folder, name| Ok(rustix::fs::mkdirat(folder, name, Mode::RWXU)?),
    };
    arriving.receive(grounds, rules, &mut |_| {})
}

/// A box with one snapshot, `root` and an image.
fn whole(top: &Path) {
    for part in [Part::Workspace, Part::Home] {
        for state in [State::Now, State::Snapshot(Label::pristine())] {
            let path = on_disk(top, &state, part);
            fs::create_dir_all(&path).unwrap();
            furnish(&path);
        }
    }
    let root = on_disk(top, &State::Now, Part::Root);
    fs::create_dir_all(&root).unwrap();
    change(&root);
    let image = on_disk(top, &State::Now, Part::Image);
    fs::create_dir_all(image.join("etc")).unwrap();
    fs::write(image.join("etc/passwd"), "root\n").unwrap();
    // What the snapshot alone has, and what it has otherwise.
    let home = on_disk(top, &State::Snapshot(Label::pristine()), Part::Home);
    fs::write(home.join("a/only-then"), noise(5000, 3)).unwrap();
    fs::write(home.join("a/long"), noise(700_000, 2)).unwrap();
}

#[test]
fn a_box_comes_out_as_it_went_in() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    whole(from.path());
    let manifest = with_image(manifest(&["pristine"]));
    let (archive, left_out) = write(from.path(), &manifest);
    assert_eq!(left_out, LeftOut::default());
    let received = read(&archive, to.path(), rules()).unwrap();
    assert_eq!(received.manifest, manifest);
    for (state, part) in [
        (State::Now, Part::Workspace),
        (State::Now, Part::Home),
        (State::Snapshot(Label::pristine()), Part::Workspace),
        (State::Snapshot(Label::pristine()), Part::Home),
        (State::Now, Part::Image),
    ] {
        let (before, after) = (
            on_disk(from.path(), &state, part),
            on_disk(to.path(), &state, part),
        );
        similar(&look(&before), &look(&after));
        assert!(look(&after).len() > 1, "{state:?} {part:?}");
    }
    let after = look(&on_disk(to.path(), &State::Now, Part::Root));
    let line = |name: &str| after[Path::new(name)].clone();
    assert!(line("a/gone").ends_with("device 0"), "{}", line("a/gone"));
    assert!(
        line("anew").contains("trusted.overlay.opaque"),
        "{}",
        line("anew")
    );
    let moved = line("moved");
    assert!(
        moved.contains("trusted.overlay.redirect") && !moved.contains("impure"),
        "{moved}"
    );
    // The overlay's own is nobody's in the box.
    assert!(
        line("odd-one").contains(" 65534:65534 "),
        "{}",
        line("odd-one")
    );
}

#[track_caller]
fn similar<K: Ord + std::fmt::Debug>(
    before: &std::collections::BTreeMap<K, String>,
    after: &std::collections::BTreeMap<K, String>,
) {
    for (name, line) in before {
        assert_eq!(Some(line), after.get(name), "{name:?}");
    }
    assert_eq!(before.len(), after.len());
}

#[test]
fn what_a_snapshot_shares_with_the_box_is_in_the_archive_once() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    whole(from.path());
    let once = write(from.path(), &with_image(manifest(&[]))).0.len();
    let (archive, _) = write(from.path(), &with_image(manifest(&["pristine"])));
    // The one file that differs has 700,000 bytes no compression makes smaller.
    let more = archive.len() - once;
    assert!((700_000..800_000).contains(&more), "{more} bytes more");
    read(&archive, to.path(), rules()).unwrap();
    let file = |state: &State| {
        let path = on_disk(to.path(), state, Part::Workspace).join("a/long");
        fs::metadata(path).unwrap()
    };
    let (now, then) = (file(&State::Now), file(&State::Snapshot(Label::pristine())));
    assert_ne!(
        now.ino(),
        then.ino(),
        "a change to one must not be one to the other"
    );
    assert_eq!(now.len(), then.len());
}

#[test]
fn writing_the_same_box_twice_gives_the_same_bytes_and_the_image_one_digest() {
    let from = tempfile::tempdir().unwrap();
    whole(from.path());
    let manifest = with_image(manifest(&["pristine"]));
    let (one, _) = write(from.path(), &manifest);
    let (other, _) = write(from.path(), &manifest);
    assert!(one == other);
    let digest = |archive: &[u8]| {
        let to = tempfile::tempdir().unwrap();
        read(archive, to.path(), rules()).unwrap().image.unwrap()
    };
    let before = digest(&one);
    assert_eq!(before, digest(&other));
    let passwd = on_disk(from.path(), &State::Now, Part::Image).join("etc/passwd");
    let meta = fs::metadata(&passwd).unwrap();
    fs::write(&passwd, "evil\n").unwrap();
    later(&passwd, meta.mtime(), meta.mtime_nsec());
    assert_ne!(before, digest(&write(from.path(), &manifest).0));
}

#[test]
fn an_image_nobody_needs_is_checked_and_not_unpacked() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    whole(from.path());
    let (archive, _) = write(from.path(), &with_image(manifest(&[])));
    let passed = Rules {
        image: ImageInArchive::PassedOver,
        ..rules()
    };
    assert_eq!(read(&archive, to.path(), passed).unwrap().image, None);
    assert!(!to.path().join("image").exists());
    assert!(to.path().join("box/home/a/long").exists());
}

#[test]
fn what_cannot_travel_is_told() {
    let from = tempfile::tempdir().unwrap();
    for part in [Part::Workspace, Part::Home] {
        fs::create_dir_all(on_disk(from.path(), &State::Now, part)).unwrap();
    }
    let home = on_disk(from.path(), &State::Now, Part::Home);
    drop(std::os::unix::net::UnixListener::bind(home.join("socket")).unwrap());
    fs::write(home.join("file"), "x").unwrap();
    set(&home.join("file"), "trusted.secret", b"x");
    let (archive, left_out) = write(from.path(), &manifest(&[]));
    let told = [
        "`box/home/file` is without some of its attributes in the archive",
        "`box/home/socket` is a socket",
    ];
    assert_eq!(left_out.told, told);
    assert_eq!(left_out.count, 2);
    let to = tempfile::tempdir().unwrap();
    read(&archive, to.path(), rules()).unwrap();
}

#[test]
fn set_id_bits_of_a_box_without_root_are_dropped() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for part in [Part::Workspace, Part::Home] {
        fs::create_dir_all(on_disk(from.path(), &State::Now, part)).unwrap();
    }
    let home = on_disk(from.path(), &State::Now, Part::Home);
    fs::write(home.join("su"), "x").unwrap();
    fs::set_permissions(home.join("su"), fs::Permissions::from_mode(0o6755)).unwrap();
    let (archive, _) = write(from.path(), &manifest(&[]));
    let strip = Rules {
        set_id: SetId::Strip,
        ..rules()
    };
    read(&archive, to.path(), strip).unwrap();
    let mode = fs::metadata(on_disk(to.path(), &State::Now, Part::Home).join("su"))
        .unwrap()
        .mode();
    assert_eq!(mode & 0o7777, 0o755);
}

#[test]
fn an_archive_is_read_by_tar_zstd_and_sha256sum() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    whole(from.path());
    let manifest = with_image(manifest(&["pristine"]));
    let (archive, _) = write(from.path(), &manifest);
    let mut plain = Vec::new();
    std::io::copy(&mut crate::unpack::Zstd::new(&archive[..]), &mut plain).unwrap();
    let tar = to.path().join("plain.tar");
    fs::write(&tar, plain).unwrap();
    let run = |program: &str, arguments: &[&str]| {
        #[expect(
            clippy::disallowed_methods,
            reason = "the point is that others can read it"
        )]
        let done = std::process::Command::new(program)
            .args(arguments)
            .current_dir(to.path())
            .output()
            .unwrap();
        assert!(
            done.status.success(),
            "{program}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
    };
    run(
        "tar",
        &["--xattrs", "--xattrs-include=user.*", "-xpf", "plain.tar"],
    );
    run("sha256sum", &["--quiet", "-c", "SHA256SUMS"]);
    let state = State::Snapshot(Label::pristine());
    for part in [Part::Workspace, Part::Home] {
        let (before, after) = (
            on_disk(from.path(), &state, part),
            on_disk(to.path(), &state, part),
        );
        let mut before = look(&before);
        let mut after = look(&after);
        // tar makes hard links of what the states share, here within the tree as well.
        for lines in [&mut before, &mut after] {
            for line in lines.values_mut() {
                *line = line.split(" = ").next().unwrap().to_owned();
            }
        }
        similar(&before, &after);
    }
}

#[test]
fn an_archive_cut_anywhere_is_refused() {
    let from = tempfile::tempdir().unwrap();
    whole(from.path());
    let (archive, _) = write(from.path(), &with_image(manifest(&["pristine"])));
    for sixteenth in 0..16 {
        let to = tempfile::tempdir().unwrap();
        let cut = &archive[..archive.len() * sixteenth / 16];
        let error = read(cut, to.path(), rules()).unwrap_err();
        assert!(error.is_refusal(), "{sixteenth}/16: {error:?}");
    }
    for less in (1..40).step_by(4) {
        let to = tempfile::tempdir().unwrap();
        let error = read(&archive[..archive.len() - less], to.path(), rules()).unwrap_err();
        assert!(error.is_refusal(), "{less} bytes: {error:?}");
    }
    let to = tempfile::tempdir().unwrap();
    read(&archive, to.path(), rules()).unwrap();
}

#[test]
fn a_file_of_nothing_but_holes_keeps_nobody_waiting() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for part in [Part::Workspace, Part::Home, Part::Root] {
        fs::create_dir_all(on_disk(from.path(), &State::Now, part)).unwrap();
    }
    let home = on_disk(from.path(), &State::Now, Part::Home);
    for (name, bytes) in [("endless", 1 << 40), ("small", 8 << 20)] {
        let file = File::create(home.join(name)).unwrap();
        file.set_len(bytes).unwrap();
    }
    let (archive, left_out) = write(from.path(), &manifest(&[]));
    assert_eq!(left_out.count, 1, "{left_out:?}");
    assert!(left_out.told[0].contains("endless"), "{left_out:?}");
    read(&archive, to.path(), rules()).unwrap();
    let home = on_disk(to.path(), &State::Now, Part::Home);
    assert_eq!(fs::metadata(home.join("small")).unwrap().len(), 8 << 20);
    assert!(!home.join("endless").exists());
}
