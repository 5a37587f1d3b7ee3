//! A full disk, on a small tmpfs in a mount namespace of the test's own thread.

use super::*;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};

#[expect(
    deprecated,
    reason = "safe for CLONE_NEWNS; only CLONE_FILES makes `unshare` unsafe"
)]
fn small_disk() -> TempDir {
    let place = tempfile::tempdir().unwrap();
    rustix::thread::unshare(rustix::thread::UnshareFlags::NEWNS).unwrap();
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )
    .unwrap();
    mount(
        "tmpfs",
        place.path(),
        "tmpfs",
        MountFlags::empty(),
        c"size=512k,nr_inodes=40",
    )
    .unwrap();
    place
}

#[test]
fn a_full_disk_is_told_and_nothing_stays_behind() {
    let disk = small_disk();
    let tmp = disk.path().join("tmp");
    let unpack_staged = |archive: Archive| {
        let staging = Staging::new(&tmp, "image").unwrap();
        unpack(archive.end().as_slice(), staging.folder(), &Policy::IMAGE)?;
        staging.publish(&disk.path().join("image")).unwrap();
        Ok::<_, UnpackError>(())
    };

    let big = Archive::default()
        .file("small", b"x")
        .file("big", &vec![1; 1 << 20]);
    let error = unpack_staged(big).unwrap_err();
    assert_eq!(error.to_string(), "the disk is full at entry `big`");
    let many = (0..60).fold(Archive::default(), |archive, n| {
        archive.folder(&format!("d{n}"))
    });
    let error = unpack_staged(many).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("the disk is full at entry `d"),
        "{error}"
    );

    assert_eq!(fs::read_dir(&tmp).unwrap().count(), 0);
    assert!(!disk.path().join("image").exists());
    // The control: the same way with room enough.
    unpack_staged(Archive::default().file("small", b"x")).unwrap();
    assert_eq!(fs::read(disk.path().join("image/small")).unwrap(), b"x");
}
