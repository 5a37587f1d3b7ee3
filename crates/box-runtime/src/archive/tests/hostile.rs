//! Nothing else gets in.

use super::forge::Forge;
use super::round_trip::{manifest, read, rules, with_image};
use crate::archive::{ArchiveError, Rules};
use std::fs;
use std::path::Path;

/// What is said of an archive; nothing is touched outside its folder.
fn refusal_with(archive: &[u8], rules: Rules) -> String {
    let outer = tempfile::tempdir().unwrap();
    let into = outer.path().join("into");
    fs::create_dir(&into).unwrap();
    fs::write(outer.path().join("canary"), "sings").unwrap();
    let error = read(archive, &into, rules).unwrap_err();
    assert!(error.is_refusal(), "{error:?}");
    assert_eq!(fs::read_dir(outer.path()).unwrap().count(), 2);
    assert_eq!(fs::read(outer.path().join("canary")).unwrap(), b"sings");
    error.to_string()
}

fn refusal(archive: &[u8]) -> String {
    refusal_with(archive, rules())
}

fn accepted(archive: &[u8]) {
    let into = tempfile::tempdir().unwrap();
    read(archive, into.path(), rules()).unwrap_or_else(|error| panic!("{error:?}"));
}

#[test]
fn what_is_forged_well_is_accepted() {
    accepted(&Forge::new().end());
    let furnished = Forge::new()
        .file("box/home/file", b"x")
        .hard_link("box/home/other", "box/home/file")
        .link("box/home/link", "/etc/passwd")
        .folders(&["box/root", "box/root/etc"])
        .member(
            ("box/root/etc/gone", b'0', ""),
            b"",
            &[("BOX.overlay.whiteout", b"1")],
        )
        .member(
            ("box/root/etc/new", b'5', ""),
            b"",
            &[("BOX.overlay.opaque", b"1")],
        );
    accepted(&furnished.end());
    let snapshot = Forge::of(&with_image(manifest(&["a"])))
        .folders(&["box", "box/workspace", "box/home"])
        .file("box/home/file", b"x")
        .folders(&[
            "snapshots",
            "snapshots/a",
            "snapshots/a/workspace",
            "snapshots/a/home",
        ])
        .hard_link("snapshots/a/home/file", "box/home/file")
        .folders(&["image"]);
    accepted(&snapshot.end());
}

type Row = (&'static str, fn(Forge) -> Forge, &'static str);

/// Members after an honest beginning, and what is said of them.
const ROWS: &[Row] = &[
    (
        "way up",
        |f| f.file("box/home/../../x", b"x"),
        "entry `box/home/../../x` has `..` in its name",
    ),
    (
        "way up only",
        |f| f.file("..", b"x"),
        "entry `..` has `..` in its name",
    ),
    (
        "absolute",
        |f| f.file("/etc/x", b"x"),
        "entry `/etc/x` has an absolute name",
    ),
    (
        "dot",
        |f| f.file("box/home/./x", b"x"),
        "entry `box/home/./x` has no place in an archive of a box",
    ),
    (
        "two slashes",
        |f| f.file("box//home/x", b"x"),
        "entry `box//home/x` has no place in an archive of a box",
    ),
    (
        "elsewhere",
        |f| f.file("etc", b"x"),
        "entry `etc` has no place in an archive of a box",
    ),
    (
        "beside the trees",
        |f| f.file("box/work", b"x"),
        "entry `box/work` has no place in an archive of a box",
    ),
    ("nameless", |f| f.file("", b"x"), "entry `` has no name"),
    (
        "zero byte in a long name",
        |f| f.member(("x", b'0', ""), b"x", &[("path", b"box/home/a\0b")]),
        "entry `box/home/a\u{fffd}b` has a zero byte in its name",
    ),
    (
        "very long",
        |f| f.member(("x", b'0', ""), b"x", &[("path", &[b'a'; 5000])]),
        "has a name of more than 4095 bytes",
    ),
    (
        "behind a link",
        |f| f.link("box/home/l", "/etc").file("box/home/l/x", b"x"),
        "entry `box/home/l/x` does not follow the folder it lies in",
    ),
    (
        "tree that is a link",
        |f| f.link("box/root", "/etc"),
        "entry `box/root` is no folder",
    ),
    (
        "tree that is a file",
        |f| f.file("box/root", b"x"),
        "entry `box/root` is no folder",
    ),
    (
        "behind a file",
        |f| f.file("box/home/f", b"x").file("box/home/f/x", b"x"),
        "entry `box/home/f/x` does not follow the folder it lies in",
    ),
    (
        "no folder above",
        |f| f.file("box/home/a/b", b"x"),
        "entry `box/home/a/b` does not follow the folder it lies in",
    ),
    (
        "back to a folder",
        |f| {
            f.folders(&["box/home/a", "box/home/b"])
                .file("box/home/a/x", b"x")
        },
        "entry `box/home/a/x` does not follow the folder it lies in",
    ),
    (
        "file twice",
        |f| f.file("box/home/x", b"1").file("box/home/x", b"2"),
        "entry `box/home/x` is there twice",
    ),
    (
        "folder twice",
        |f| f.folders(&["box/home/x", "box/home/x"]),
        "entry `box/home/x` is there twice",
    ),
    (
        "tree twice",
        |f| f.folders(&["box/home"]),
        "entry `box/home` is there twice",
    ),
    (
        "link over a file",
        |f| f.file("box/home/x", b"1").link("box/home/x", "y"),
        "entry `box/home/x` is there twice",
    ),
    (
        "file over a link",
        |f| f.link("box/home/x", "/tmp/y").file("box/home/x", b"1"),
        "entry `box/home/x` is there twice",
    ),
    (
        "link over a folder",
        |f| f.folders(&["box/home/x"]).link("box/home/x", "y"),
        "entry `box/home/x` is there twice",
    ),
    (
        "manifest twice",
        |f| f.file("manifest.json", b"{}"),
        "entry `manifest.json` is there twice",
    ),
    (
        "empty link",
        |f| f.link("box/home/l", ""),
        "entry `box/home/l` is a link with a target that is empty, too long or has a zero byte",
    ),
    (
        "link with content",
        |f| f.member(("box/home/l", b'2', "x"), b"x", &[]),
        "entry `box/home/l` has content although it is no file",
    ),
    (
        "hard link out",
        |f| f.hard_link("box/home/l", "../../etc/passwd"),
        HARD_LINK,
    ),
    (
        "hard link to an absolute name",
        |f| f.hard_link("box/home/l", "/etc/passwd"),
        HARD_LINK,
    ),
    (
        "hard link to nothing",
        |f| f.hard_link("box/home/l", "box/home/x"),
        HARD_LINK,
    ),
    (
        "hard link to itself",
        |f| f.hard_link("box/home/l", "box/home/l"),
        HARD_LINK,
    ),
    (
        "hard link to a folder",
        |f| {
            f.folders(&["box/home/a"])
                .hard_link("box/home/l", "box/home/a")
        },
        HARD_LINK,
    ),
    (
        "hard link to a link",
        |f| {
            f.link("box/home/a", "/etc/passwd")
                .hard_link("box/home/l", "box/home/a")
        },
        HARD_LINK,
    ),
    (
        "hard link through a link",
        |f| {
            f.link("box/home/a", "/etc")
                .hard_link("box/home/l", "box/home/a/passwd")
        },
        HARD_LINK,
    ),
    (
        "hard link to another tree",
        |f| {
            f.file("box/home/a", b"x")
                .folders(&["box/root"])
                .hard_link("box/root/l", "box/home/a")
        },
        HARD_LINK,
    ),
    (
        "hard link to the manifest",
        |f| f.hard_link("box/home/l", "manifest.json"),
        HARD_LINK,
    ),
    (
        "character device",
        |f| f.member(("box/home/d", b'3', ""), b"", &[]),
        "entry `box/home/d` is a device node",
    ),
    (
        "block device",
        |f| f.member(("box/home/d", b'4', ""), b"", &[]),
        "entry `box/home/d` is a device node",
    ),
    (
        "whiteout outside the root",
        |f| {
            f.member(
                ("box/home/d", b'0', ""),
                b"",
                &[("BOX.overlay.whiteout", b"1")],
            )
        },
        "entry `box/home/d` has a mark of an overlay outside the changes to the root",
    ),
    (
        "redirect out",
        |f| {
            f.folders(&["box/root"]).member(
                ("box/root/d", b'5', ""),
                b"",
                &[("BOX.overlay.redirect", b"/../etc")],
            )
        },
        "entry `box/root/d` has an extended attribute `BOX.overlay.redirect`, which an archive may not hold",
    ),
    (
        "opaque file",
        |f| {
            f.folders(&["box/root"]).member(
                ("box/root/d", b'0', ""),
                b"x",
                &[("BOX.overlay.opaque", b"1")],
            )
        },
        "entry `box/root/d` has a mark of an overlay outside the changes to the root",
    ),
    (
        "sparse, old GNU",
        |f| f.member(("box/home/s", b'S', ""), b"", &[]),
        "entry `box/home/s` is a sparse file",
    ),
    (
        "sparse, pax",
        |f| {
            f.member(
                ("box/home/s", b'0', ""),
                b"x",
                &[("GNU.sparse.realsize", b"99999999999")],
            )
        },
        "entry `box/home/s` is a sparse file",
    ),
    (
        "unknown kind",
        |f| f.member(("box/home/k", b'V', ""), b"", &[]),
        "entry `box/home/k` is of unknown kind 86",
    ),
    (
        "owner no box has",
        |f| f.member(("box/home/o", b'0', ""), b"", &[("uid", b"65536")]),
        "entry `box/home/o` belongs to user 65536, and the highest number a box has is 65535",
    ),
    (
        "group no box has",
        |f| f.member(("box/home/o", b'0', ""), b"", &[("gid", b"4294967296")]),
        "entry `box/home/o` belongs to group 4294967296, and the highest number a box has is 65535",
    ),
    (
        "trusted attribute",
        |f| {
            f.member(
                ("box/home/a", b'0', ""),
                b"",
                &[("SCHILY.xattr.trusted.overlay.opaque", b"y")],
            )
        },
        "entry `box/home/a` has an extended attribute `trusted.overlay.opaque`, which an archive may not hold",
    ),
    (
        "capability",
        |f| {
            f.member(
                ("box/home/a", b'0', ""),
                b"",
                &[("SCHILY.xattr.security.capability", &[1; 20])],
            )
        },
        "entry `box/home/a` has an extended attribute `security.capability`, which an archive may not hold",
    ),
    (
        "overlay mark of a user",
        |f| {
            f.member(
                ("box/home/a", b'0', ""),
                b"",
                &[("SCHILY.xattr.user.overlay.redirect", b"/")],
            )
        },
        "entry `box/home/a` has an extended attribute `user.overlay.redirect`, which an archive may not hold",
    ),
    (
        "bad access list",
        |f| {
            f.member(
                ("box/home/a", b'0', ""),
                b"",
                &[("SCHILY.xattr.system.posix_acl_access", b"x")],
            )
        },
        "entry `box/home/a` has an access list that is none",
    ),
    (
        "attribute twice",
        |f| {
            f.member(
                ("box/home/a", b'0', ""),
                b"",
                &[("SCHILY.xattr.user.a", b"x"), ("SCHILY.xattr.user.a", b"y")],
            )
        },
        "entry `box/home/a` is there twice",
    ),
    (
        "attribute of a link",
        |f| {
            f.member(
                ("box/home/a", b'2', "x"),
                b"",
                &[("SCHILY.xattr.user.a", b"x")],
            )
        },
        "entry `box/home/a` has an extended attribute `of something that has none`, which an archive may not hold",
    ),
    (
        "bad time",
        |f| f.member(("box/home/a", b'0', ""), b"", &[("mtime", b"1e9")]),
        "bad number in an extended header",
    ),
    (
        "unknown snapshot",
        |f| f.folders(&["snapshots", "snapshots/x"]),
        "entry `snapshots/x` belongs to a snapshot the manifest does not name",
    ),
    (
        "label that is none",
        |f| f.folders(&["snapshots", "snapshots/-x"]),
        "entry `snapshots/-x` has no place in an archive of a box",
    ),
    (
        "image nobody spoke of",
        |f| f.folders(&["image"]),
        "entry `image` is an image the manifest does not speak of",
    ),
    (
        "frame that is a file",
        |f| f.file("snapshots", b"x"),
        "entry `snapshots` is no folder",
    ),
    (
        "size of its own in pax",
        |f| f.member(("box/home/a", b'0', ""), b"x", &[("size", b"7")]),
        "two sizes for one entry",
    ),
    (
        "something after the checksums",
        |f| f.sums().file("box/home/late", b"x"),
        "entry `box/home/late` comes after the checksums",
    ),
    (
        "end mark before the checksums",
        Forge::end_mark,
        "it is cut short: it ends without checksums",
    ),
];

const HARD_LINK: &str = "entry `box/home/l` is a hard link to something that is no earlier file of its tree, nor the same file of an earlier state";

#[test]
fn whatever_a_writer_would_not_write_is_refused() {
    assert!(ROWS.len() >= 50, "{}", ROWS.len());
    for (what, forge, wanted) in ROWS {
        let said = refusal(&forge(Forge::new()).end());
        let wanted = wanted.replace("`box/home/l`", "");
        let found = said.replace("`box/home/l`", "").replace("`box/root/l`", "");
        assert!(found.contains(&wanted), "{what}: {said}");
    }
}

#[test]
fn a_hard_link_to_another_state_is_the_same_file_there_or_nothing() {
    let begun = || {
        Forge::of(&manifest(&["a"]))
            .folders(&["box", "box/workspace", "box/home"])
            .file("box/home/file", b"x")
            .folders(&["snapshots", "snapshots/a", "snapshots/a/workspace"])
    };
    let home = |forge: Forge| forge.folders(&["snapshots/a/home"]);
    accepted(
        &home(begun())
            .hard_link("snapshots/a/home/file", "box/home/file")
            .end(),
    );
    for archive in [
        home(begun()).hard_link("snapshots/a/home/other", "box/home/file"),
        home(begun().hard_link("snapshots/a/workspace/file", "box/home/file")),
        home(begun()).hard_link("snapshots/a/home/file", "snapshots/b/home/file"),
    ] {
        assert!(refusal(&archive.end()).contains("is a hard link to something"));
    }
}

#[test]
fn manifests_are_read_with_care() {
    let said = |text: &str| {
        refusal(
            &Forge::nothing()
                .file("manifest.json", text.as_bytes())
                .end(),
        )
    };
    let with = |change: fn(&mut serde_json::Value)| {
        let mut value = serde_json::to_value(manifest(&["a"])).unwrap();
        change(&mut value);
        said(&value.to_string())
    };
    assert_eq!(
        with(|m| m["format"] = 2.into()),
        "it has format 2, and 1 is the newest this build reads"
    );
    assert_eq!(
        with(|m| m["format"] = 0.into()),
        "its manifest has format 0, which never was"
    );
    assert!(with(|m| m["name"] = "a/b".into()).contains("a box name starts with"));
    assert!(with(|m| m["name"] = "a\u{1b}[2J".into()).contains("a box name starts with"));
    assert!(with(|m| m["snapshots"][0]["label"] = "../x".into()).contains("a label starts with"));
    assert!(with(|m| m["id"] = "x".into()).contains("an id has 16 characters"));
    assert!(
        with(|m| m["snapshots"] = serde_json::json!([m["snapshots"][0], m["snapshots"][0]]))
            .contains("names the snapshot `a` twice")
    );
    assert!(said("{").starts_with("its manifest is unreadable"));
    assert!(said("").starts_with("its manifest is unreadable"));
    let newer = serde_json::json!({"format": 7, "everything": "is otherwise"}).to_string();
    assert_eq!(
        said(&newer),
        "it has format 7, and 1 is the newest this build reads"
    );
    let giant = "x".repeat((16 << 20) + 1);
    assert_eq!(
        said(&giant),
        "entry `manifest.json` is longer than 16777216 bytes"
    );
}

#[test]
fn what_is_missing_is_told() {
    let said = |forge: Forge| refusal(&forge.end());
    let of = |labels: &[&str]| Forge::of(&manifest(labels)).folders(&["box"]);
    assert_eq!(
        said(of(&[]).folders(&["box/workspace"])),
        "it lacks `box/home`"
    );
    assert_eq!(said(of(&[])), "it lacks `box/workspace`");
    let now = |labels: &[&str]| of(labels).folders(&["box/workspace", "box/home"]);
    assert_eq!(said(now(&["a"])), "it lacks `snapshots/a/workspace`");
    assert_eq!(
        said(Forge::of(&with_image(manifest(&[]))).folders(&["box", "box/workspace", "box/home"])),
        "it lacks its image"
    );
    let plain = |forge: Forge| refusal(&forge.raw(&[0; 1024]).compressed());
    assert_eq!(
        plain(Forge::new()),
        "it is cut short: it ends without checksums"
    );
    assert_eq!(
        plain(Forge::new().sums()),
        "it is cut short: it ends without its end mark"
    );
}

#[test]
fn damage_is_told_from_what_was_written() {
    let sum = Forge::new()
        .file("box/home/a", b"one")
        .file("box/home/b", b"two");
    let sums = sum.sums_text().replace('2', "3");
    let said = refusal(&sum.with_sums(&sums).end());
    assert!(
        said.starts_with("it is damaged: the checksum of `"),
        "{said}"
    );
    let missing = Forge::new().file("box/home/a", b"one").with_sums("");
    assert_eq!(
        refusal(&missing.end()),
        "it is damaged: the checksum of `SHA256SUMS` is wrong"
    );
    let end = Forge::new()
        .sums()
        .file("end.json", br#"{"members":1,"bytes":2,"sha256":"x"}"#);
    let said = refusal(&end.raw(&[0; 1024]).compressed());
    assert_eq!(said, "it is damaged: the checksum of the whole is wrong");
    let mode = Forge::new()
        .tweaked(("box/home/a", b'0', ""), b"x", &[], |header| {
            header.set_mode(0o600);
        })
        .end();
    accepted(&mode);
    // One bit, anywhere.
    let honest = Forge::new().file("box/home/a", &[7; 5000]).end();
    accepted(&honest);
    for at in (0..honest.len()).step_by(7) {
        let mut damaged = honest.clone();
        damaged[at] ^= 0x10;
        refusal(&damaged);
    }
}

#[test]
fn what_is_no_archive_is_called_so() {
    for bytes in [&b""[..], b"hello", &[0; 4096], b"\x1f\x8b\x08\x00"] {
        assert_eq!(refusal(bytes), "it is no archive of a box");
    }
    assert!(refusal(b"\x28\xb5\x2f\xfd").starts_with("it is cut short"));
    let other = Forge::nothing().file("etc/passwd", b"x").end();
    assert_eq!(refusal(&other), "it is no archive of a box");
    let link = Forge::nothing().link("manifest.json", "/etc/passwd").end();
    assert_eq!(refusal(&link), "it is no archive of a box");
}

#[test]
fn bombs_are_refused_before_they_are_large() {
    let small = Rules {
        state_bytes_max: 1 << 20,
        ..rules()
    };
    let large = Forge::new().file("box/home/a", &vec![b'x'; 2 << 20]).end();
    assert!(large.len() < 10_000, "{}", large.len());
    let said = refusal_with(&large, small);
    assert_eq!(
        said,
        "it unpacks to more than 1048576 bytes, which its limit does not allow"
    );
    let holes = Forge::new().file("box/home/a", &vec![0; 17 << 20]).end();
    let said = refusal_with(&holes, small);
    assert_eq!(
        said,
        "it unpacks to more than 16777216 bytes, which is too much even of holes"
    );
    // The same file again and again, which costs the archive nothing.
    let labels: Vec<String> = (0..3).map(|number| format!("s{number}")).collect();
    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    let mut copies = Forge::of(&manifest(&labels))
        .folders(&["box", "box/workspace", "box/home"])
        .file("box/home/a", &vec![b'x'; 900 << 10])
        .folders(&["snapshots"]);
    for label in &labels {
        let at = |rest: &str| format!("snapshots/{label}{rest}");
        copies = copies.folders(&[&at(""), &at("/workspace"), &at("/home")]);
        copies = copies.hard_link(&at("/home/a"), "box/home/a");
    }
    let copies = copies.end();
    let less = Rules {
        state_bytes_max: 800 << 10,
        ..rules()
    };
    refusal_with(&copies, less);
    let into = tempfile::tempdir().unwrap();
    read(&copies, into.path(), small).unwrap();
    let many: Vec<String> = (0..3000)
        .map(|number| format!("box/home/{number}"))
        .collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let said = refusal_with(&Forge::new().folders(&many).end(), small);
    assert_eq!(
        said,
        "it unpacks to more than 1048576 bytes, which its limit does not allow"
    );
}

#[test]
fn what_follows_the_end_is_refused() {
    let honest = Forge::new().end();
    let behind = |more: &[u8]| refusal(&[&honest, more].concat());
    behind(b"something else");
    let more = Forge::new().end();
    behind(&[more, zstd::encode_all(&vec![1; 1 << 20][..], 1).unwrap()].concat());
}

#[test]
fn names_are_shown_without_what_steers_a_terminal() {
    let said = refusal(&Forge::new().file("box/home/../\u{1b}[2J`x", b"").end());
    assert!(!said.contains('\u{1b}'), "{said}");
    // In a tree they are names as any other.
    let into = tempfile::tempdir().unwrap();
    let odd = Forge::new().file("box/home/a\tb", b"x").end();
    read(&odd, into.path(), rules()).unwrap();
    assert!(into.path().join(Path::new("box/home/a\tb")).exists());
}

#[test]
fn whatever_is_done_to_an_archive_it_never_panics() {
    let honest = Forge::new()
        .file("box/home/a", &[7; 5000])
        .link("box/home/b", "c");
    let sums = honest.sums();
    let end = sums.plain().len();
    let plain = sums.end_mark().raw(&[0; 1024]);
    let mut seed = 7_u64;
    let mut next = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(seed >> 33).unwrap() % below
    };
    for _ in 0..300 {
        let mut bytes = plain.plain().to_vec();
        for _ in 0..=next(4) {
            let at = next(bytes.len());
            bytes[at] = u8::try_from(next(256)).unwrap();
        }
        let archive = zstd::encode_all(&bytes[..], 1).unwrap();
        let into = tempfile::tempdir().unwrap();
        match read(&archive, into.path(), rules()) {
            // Of the end mark itself only what it says is checked.
            Ok(_) => assert!(
                bytes[..end] == plain.plain()[..end],
                "a change nobody noticed"
            ),
            Err(ArchiveError::Read(error)) => panic!("{error}"),
            Err(_) => {}
        }
    }
}
