//! Staging folders: published whole, removed otherwise, cleared after a crash.

use super::*;

#[test]
fn a_staging_folder_is_published_once_and_only_its_owner_may_look() {
    let data = tempfile::tempdir().unwrap();
    let (tmp, target) = (data.path().join("tmp"), data.path().join("place"));
    let first = Staging::new(&tmp, "image").unwrap();
    assert_eq!(
        fs::metadata(first.path()).unwrap().permissions().mode() & 0o777,
        0o700
    );
    fs::write(first.path().join("a"), "first").unwrap();
    assert_eq!(first.publish(&target).unwrap(), Published::Done);

    let second = Staging::new(&tmp, "image").unwrap();
    fs::write(second.path().join("a"), "second").unwrap();
    assert_eq!(second.publish(&target).unwrap(), Published::AlreadyThere);
    assert_eq!(fs::read(target.join("a")).unwrap(), b"first");
    assert_eq!(fs::read_dir(&tmp).unwrap().count(), 0);
}

#[test]
fn clearing_takes_what_a_crash_left_and_leaves_what_is_in_use() {
    let data = tempfile::tempdir().unwrap();
    let tmp = data.path().join("tmp");
    assert_eq!(clear(&tmp, "image").unwrap(), 0);
    let live = Staging::new(&tmp, "image").unwrap();
    fs::create_dir_all(tmp.join("image-1-0/root/etc")).unwrap();
    fs::create_dir_all(tmp.join("agent-1-0")).unwrap();
    assert_eq!(clear(&tmp, "image").unwrap(), 1);
    assert!(live.path().exists());
    assert!(tmp.join("agent-1-0").exists());
    assert!(!tmp.join("image-1-0").exists());
}

#[test]
fn a_tree_too_deep_for_a_stack_and_for_descriptors_goes_with_its_staging() {
    let data = tempfile::tempdir().unwrap();
    let tmp = data.path().join("tmp");
    let staging = Staging::new(&tmp, "image").unwrap();
    let mut folder = staging.folder().try_clone_to_owned().unwrap();
    for _ in 0..20_000 {
        rustix::fs::mkdirat(&folder, "d", rustix::fs::Mode::RWXU).unwrap();
        let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC;
        folder = rustix::fs::openat(&folder, "d", flags, rustix::fs::Mode::empty()).unwrap();
    }
    drop(staging);
    assert_eq!(fs::read_dir(&tmp).unwrap().count(), 0);
}
