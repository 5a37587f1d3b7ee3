//! Archives that want out, or want too much. Each refusal with its exact text.

use super::*;

fn image(archive: Archive) -> String {
    refusal(&archive.end(), &Policy::IMAGE)
}

#[test]
fn names_that_lead_out_are_refused() {
    let file = |name: &str| image(Archive::default().file(name, b"x"));
    assert_eq!(file("../evil"), "entry `../evil` has `..` in its name");
    assert_eq!(
        file("a/../../evil"),
        "entry `a/../../evil` has `..` in its name"
    );
    assert_eq!(file("a/.."), "entry `a/..` has `..` in its name");
    assert_eq!(
        file("/etc/passwd"),
        "entry `/etc/passwd` has an absolute name"
    );
    assert_eq!(file(""), "entry `` has no name");
    assert_eq!(file("."), "entry `.` would replace a folder");
    let zero = Archive::default()
        .extended(&[("path", "a\0b")])
        .file("a", b"");
    assert_eq!(
        image(zero),
        "entry `a\u{fffd}b` has a zero byte in its name"
    );
    let long = "a/".repeat(2100);
    let long = Archive::default()
        .extended(&[("path", &long)])
        .file("a", b"");
    assert!(image(long).ends_with("…` has a name of more than 4095 bytes"));
}

#[test]
fn the_same_names_hidden_in_extended_headers_are_refused() {
    let pax = Archive::default()
        .extended(&[("path", "../evil")])
        .file("good", b"x");
    assert_eq!(image(pax), "entry `../evil` has `..` in its name");
    let gnu = Archive::default()
        .add(b'L', ("x", ""), b"/evil\0", |_| {})
        .file("good", b"x");
    assert_eq!(image(gnu), "entry `/evil` has an absolute name");
    let prefix = Archive::default().add(b'0', ("evil", ""), b"x", |header| {
        header.as_ustar_mut().unwrap().prefix[..2].copy_from_slice(b"..");
    });
    assert_eq!(image(prefix), "entry `../evil` has `..` in its name");
}

#[test]
fn nothing_is_written_through_a_link() {
    let outside = tempfile::tempdir().unwrap();
    let target = outside.path().to_str().unwrap();
    let through = Archive::default().link("a", target).file("a/evil", b"x");
    assert_eq!(image(through), "entry `a/evil` lies behind a link");
    let up = Archive::default()
        .folder("b")
        .link("b/c", "..")
        .file("b/c/evil", b"x");
    assert_eq!(image(up), "entry `b/c/evil` lies behind a link");
    let last = Archive::default().link("a", target).folder("a");
    assert_eq!(
        image(last),
        "entry `a` is a folder in the place of a file or link"
    );
    let swap = Archive::default()
        .folder("a")
        .file("a/x", b"")
        .link("a", target);
    assert_eq!(image(swap), "entry `a` would replace a folder");
    let behind_file = Archive::default().file("a", b"").file("a/b", b"");
    assert_eq!(image(behind_file), "entry `a/b` lies behind a file");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);

    // The control: a file in the place of a link replaces the link, not what it points at.
    let file = outside.path().join("kept");
    fs::write(&file, "kept").unwrap();
    let root = unpacked(
        Archive::default()
            .link("a", file.to_str().unwrap())
            .file("a", b"new"),
    );
    assert_eq!(fs::read(root.path().join("a")).unwrap(), b"new");
    assert_eq!(fs::read(&file).unwrap(), b"kept");
}

#[test]
fn hard_links_lead_only_to_files_of_the_archive() {
    let link = |target: &str| image(Archive::default().hard_link("a", target));
    assert_eq!(
        link("/etc/shadow"),
        "entry `a` is a hard link to a file that has an absolute name"
    );
    assert_eq!(
        link("../x"),
        "entry `a` is a hard link to a file that has `..` in its name"
    );
    let nothing = "entry `a` is a hard link to something that is no file of the archive before it";
    assert_eq!(link("later"), nothing);
    assert_eq!(link("a"), nothing);
    assert_eq!(link("./"), nothing);
    let through = Archive::default()
        .link("etc", "/etc")
        .hard_link("a", "etc/passwd");
    assert_eq!(image(through), nothing);
    let to_link = Archive::default()
        .link("l", "/etc/passwd")
        .hard_link("a", "l");
    assert_eq!(image(to_link), nothing);
    let to_folder = Archive::default().folder("d").hard_link("a", "d");
    assert_eq!(image(to_folder), nothing);
}

#[test]
fn special_files_are_refused_by_name() {
    let kind = |flag| image(Archive::default().add(flag, ("dev/sda", ""), b"", |_| {}));
    assert_eq!(kind(b'3'), "entry `dev/sda` is a device node");
    assert_eq!(kind(b'4'), "entry `dev/sda` is a device node");
    assert_eq!(kind(b'6'), "entry `dev/sda` is a fifo");
    assert_eq!(kind(b'S'), "entry `dev/sda` is a sparse file");
    assert_eq!(kind(b'V'), "entry `dev/sda` is of unknown kind 86");
    let sparse = Archive::default()
        .extended(&[
            ("GNU.sparse.major", "1"),
            ("GNU.sparse.realsize", "99999999999999"),
        ])
        .file("hole", b"x");
    assert_eq!(image(sparse), "entry `hole` is a sparse file");
    let content = Archive::default().add(b'2', ("l", "to"), b"hidden", |_| {});
    assert_eq!(
        image(content),
        "entry `l` has content although it is no file"
    );
    assert_eq!(
        image(Archive::default().link("l", "")),
        "entry `l` is a link with a target that is empty or has a zero byte"
    );
}

#[test]
fn packages_hold_no_links() {
    let package = |archive: Archive| refusal(&archive.end(), &Policy::PACKAGE);
    let link = Archive::default().link("package/a", "b");
    assert_eq!(
        package(link),
        "entry `package/a` is a link, which this kind of archive may not hold"
    );
    let hard = Archive::default()
        .file("package/a", b"")
        .hard_link("package/b", "package/a");
    assert_eq!(
        package(hard),
        "entry `package/b` is a hard link, which this kind of archive may not hold"
    );
}

#[test]
fn owners_beyond_a_boxs_range_are_refused() {
    let wide = Archive::default()
        .extended(&[("uid", "2000000000")])
        .file("a", b"");
    assert_eq!(
        image(wide),
        "entry `a` belongs to user 2000000000, and the highest number a box has is 65535"
    );
    let binary = Archive::default().add(b'0', ("a", ""), b"", |header| {
        header.set_gid(65_536);
    });
    assert_eq!(
        image(binary),
        "entry `a` belongs to group 65536, and the highest number a box has is 65535"
    );
}

#[test]
fn counts_and_sizes_are_bounded_before_anything_is_written() {
    let tight = Policy {
        entries_max: 3,
        bytes_max: 10,
        ..Policy::IMAGE
    };
    let files = |count: u32| {
        let add = |archive: Archive, n| archive.file(&format!("f{n}"), b"");
        (0..count).fold(Archive::default(), add).end()
    };
    assert_eq!(refusal(&files(4), &tight), "it has more than 3 entries");
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(
        unpack_into(folder.path(), &files(3), &tight)
            .unwrap()
            .entries,
        3
    );

    let deep = Archive::default().file("a/b/c/d/e", b"").end();
    assert_eq!(refusal(&deep, &tight), "it has more than 3 entries");
    let big = Archive::default()
        .file("a", b"123456")
        .file("b", b"12345")
        .end();
    assert_eq!(refusal(&big, &tight), "it unpacks to more than 10 bytes");
    // A header that lies about its size reserves nothing.
    let liar = Archive::default().add(b'0', ("a", ""), b"", |header| {
        header.set_size(1 << 60);
    });
    assert_eq!(image(liar), "it unpacks to more than 34359738368 bytes");
    let liar = Archive::default().add(b'0', ("a", ""), b"", |header| {
        header.set_size(1 << 20);
    });
    assert!(image(liar).ends_with("it ends inside an entry"));
    let bomb = Archive::default().add(b'x', ("x", ""), b"", |header| {
        header.set_size(1 << 40);
    });
    assert!(image(bomb).ends_with("an extended header or long name over its limit"));
    let headers = (0..5).fold(Archive::default(), |archive, _| {
        archive.extended(&[("a", "b")])
    });
    assert_eq!(
        refusal(&headers.end(), &tight),
        "it has more than 3 entries"
    );
}

#[test]
fn a_size_beyond_all_bounds_is_counted_like_any_other() {
    let huge = Archive::default()
        .file("small", b"xx")
        .add(b'0', ("huge", ""), b"", |header| {
            header.as_old_mut().size = [0x80, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255];
        });
    assert_eq!(
        image(huge),
        format!("it unpacks to more than {} bytes", Policy::IMAGE.bytes_max)
    );
}

#[test]
fn the_same_folder_again_and_again_is_not_remembered_without_end() {
    // Parts of one letter would cost a folder each.
    let name = vec!["x".repeat(250); 16].join("/");
    let times = (64 << 20) / name.len() + 1;
    let mut archive = Archive::default();
    for _ in 0..times {
        archive = archive.extended(&[("path", &name)]).folder("x");
    }
    assert!(
        image(archive).ends_with("comes when the names of its folders are over 67108864 bytes")
    );
}

#[test]
fn damage_is_told_with_its_place() {
    let whole = Archive::default().file("a", b"abc").end();
    let cut = |length: usize| refusal(&whole[..length], &Policy::IMAGE);
    assert_eq!(
        cut(0),
        "it is damaged at byte 0: it ends without an end mark"
    );
    assert_eq!(
        cut(100),
        "it is damaged at byte 100: it ends inside a header"
    );
    assert_eq!(
        cut(514),
        "it is damaged at byte 514: it ends inside an entry"
    );
    assert_eq!(
        cut(1024),
        "it is damaged at byte 1024: it ends without an end mark"
    );
    let mut bent = whole.clone();
    bent[3] ^= 1;
    assert_eq!(
        refusal(&bent, &Policy::IMAGE),
        "it is damaged at byte 512: a header with a wrong checksum"
    );
    let mut more = whole.clone();
    more.resize(whole.len() + (2 << 20), 1);
    assert!(refusal(&more, &Policy::IMAGE).ends_with("much follows its end mark"));
    let global = Archive::default()
        .add(
            b'g',
            ("pax_global_header", ""),
            record("path", "../evil").as_bytes(),
            |_| {},
        )
        .file("a", b"");
    assert!(image(global).ends_with("a global header that changes entries"));
    let sizes = Archive::default()
        .extended(&[("size", "9")])
        .file("a", b"abc");
    assert!(image(sizes).ends_with("two sizes for one entry"));
    for bad in ["5 a\n", "99 a=b\n", "x a=b\n", "+6 a=b\n", "6 a=bc"] {
        let pax = Archive::default()
            .add(b'x', ("x", ""), bad.as_bytes(), |_| {})
            .file("a", b"");
        assert!(image(pax).starts_with("it is damaged"), "{bad:?}");
    }
}

#[test]
fn compressions_nobody_reads_are_named() {
    for (magic, with) in [(&b"\xfd7zXZ\0rest"[..], "xz"), (b"BZh9rest", "bzip2")] {
        assert_eq!(
            refusal(magic, &Policy::IMAGE),
            format!("it is compressed with {with}, which is not supported")
        );
    }
}
