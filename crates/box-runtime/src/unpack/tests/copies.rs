//! What a box sends its owner: nothing of it leads out, is a device, or runs as somebody else.

use super::*;

/// Into a folder that has something already.
fn copied(archive: Archive) -> (TempDir, Result<Unpacked, String>) {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(folder.path().join("mine"), "mine").unwrap();
    let root = fs::File::open(folder.path()).unwrap();
    let done = unpack(archive.end().as_slice(), root.as_fd(), &Policy::COPY);
    (folder, done.map_err(|error| error.to_string()))
}

#[test]
fn links_that_lead_out_are_left_out_and_others_kept() {
    let archive = Archive::default()
        .folder("a")
        .folder("a/b")
        .link("absolute", "/etc/passwd")
        .link("up", "../x")
        .link("a/b/too-far", "../../../x")
        // `down` leads deep, so that a way up behind it would come out above the root.
        .link("down", "a/b")
        .link("a/b/behind", "../../down/../../../x")
        .link("a/b/right", "../../mine")
        .link("sibling", "a/./b/right");
    let (folder, done) = copied(archive);
    let done = done.unwrap();
    assert_eq!((done.entries, done.left_out), (5, 4));
    for gone in ["absolute", "up", "a/b/too-far", "a/b/behind"] {
        let found = fs::symlink_metadata(folder.path().join(gone));
        assert!(found.is_err(), "{gone} is there");
    }
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(
        (read("a/b/right"), read("sibling")),
        ("mine".into(), "mine".into())
    );
}

#[test]
fn a_copy_is_the_owners_and_has_plain_modes() {
    let special = |mode: u32| move |header: &mut Header| header.set_mode(mode);
    let archive = Archive::default()
        .add(b'5', ("./", ""), b"", special(0o777))
        .add(b'0', ("tool", ""), b"x", special(0o6777))
        .add(b'5', ("folder", ""), b"", special(0o7000))
        .file("mine", b"theirs");
    let (folder, done) = copied(archive);
    done.unwrap();
    let mode = |name: &str| {
        let about = fs::metadata(folder.path().join(name)).unwrap();
        about.mode() & 0o7777
    };
    assert_eq!((mode("tool"), mode("folder")), (0o755, 0o700));
    assert_eq!(mode("."), 0o700, "the owner's folder was changed");
    assert_eq!(fs::read(folder.path().join("mine")).unwrap(), b"theirs");
}

#[test]
fn what_no_honest_box_sends_is_refused() {
    let refused = |archive: Archive| copied(archive).1.unwrap_err();
    let device = Archive::default().add(b'3', ("null", ""), b"", |_| {});
    assert_eq!(refused(device), "entry `null` is a device node");
    let fifo = Archive::default().add(b'6', ("pipe", ""), b"", |_| {});
    assert_eq!(refused(fifo), "entry `pipe` is a fifo");
    let hard = Archive::default().hard_link("theirs", "mine");
    assert_eq!(
        refused(hard),
        "entry `theirs` is a hard link, which this kind of archive may not hold"
    );
    let out = Archive::default().file("../evil", b"x");
    assert_eq!(refused(out), "entry `../evil` has `..` in its name");
    let behind = Archive::default()
        .folder("a")
        .link("l", "a")
        .file("l/x", b"x");
    assert_eq!(refused(behind), "entry `l/x` lies behind a link");
    let shown = Archive::default().file("\u{1b}[31m\nx/../y", b"x");
    assert!(!refused(shown).contains(['\u{1b}', '\n']));
}

#[test]
fn one_file_is_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let root = fs::File::open(folder.path()).unwrap();
    let one = |archive: Archive| {
        let bytes = archive.end();
        unpack(bytes.as_slice(), root.as_fd(), &Policy::COPIED_FILE)
    };
    one(Archive::default().file("file", b"x")).unwrap();
    let link = one(Archive::default().link("file", "mine"));
    assert!(link.is_err(), "a link came for a file");
    let two = Archive::default().file("file", b"x").file("other", b"x");
    assert!(one(two).is_err(), "two came for one");
}
