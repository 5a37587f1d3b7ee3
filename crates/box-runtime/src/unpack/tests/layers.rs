//! Tests of layers: what they hide, what they replace, and that they stay in their folder.

use super::*;
use std::os::unix::fs::symlink;

/// Unpacks layers one over the other.
fn over(layers: &[Archive]) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for layer in layers {
        unpack_into(root.path(), &layer.clone().end(), &Policy::LAYER).unwrap();
    }
    root
}

/// Everything below a folder, sorted; a folder's name ends in a slash, a link shows its target.
fn tree(root: &Path) -> Vec<String> {
    fn walk(folder: &Path, prefix: &str, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                walk(&entry.path(), &format!("{name}/"), found);
                found.push(format!("{name}/"));
            } else if kind.is_symlink() {
                let target = fs::read_link(entry.path()).unwrap();
                found.push(format!("{name} -> {}", target.display()));
            } else {
                let content = fs::read_to_string(entry.path()).unwrap();
                found.push(format!("{name} {content}").trim_end().to_owned());
            }
        }
    }
    let mut found = Vec::new();
    walk(root, "", &mut found);
    found.sort();
    found
}

fn refused(layers: &[Archive], last: Archive) -> String {
    let root = over(layers);
    unpack_into(root.path(), &last.end(), &Policy::LAYER)
        .unwrap_err()
        .to_string()
}

#[test]
fn a_whiteout_hides_what_is_below_and_never_what_the_layer_itself_brings() {
    let below = Archive::default()
        .file("kept", b"1")
        .file("gone", b"1")
        .file("anew", b"1")
        .file("dir/a", b"1")
        .file("dir/b", b"1")
        .file("mixed/low", b"1")
        .file("mixed/deep/low", b"1")
        .link("link", "/etc");
    let above = Archive::default()
        .file(".wh.gone", b"")
        .file("anew", b"2")
        .file(".wh.anew", b"")
        .file(".wh.dir", b"")
        .file("mixed/high", b"2")
        .file("mixed/deep/high", b"2")
        .file(".wh.mixed", b"")
        .file(".wh.link", b"")
        .file(".wh.never-was", b"")
        .file("nowhere/.wh.thing", b"");
    let root = over(&[below, above]);
    let expected = [
        "anew 2",
        "kept 1",
        "mixed/",
        "mixed/deep/",
        "mixed/deep/high 2",
        "mixed/high 2",
    ];
    assert_eq!(tree(root.path()), expected);
}

#[test]
fn an_opaque_folder_loses_what_is_below_wherever_the_mark_stands() {
    let below = || {
        Archive::default()
            .file("d/low", b"1")
            .file("d/deep/low", b"1")
            .file("d/other/low", b"1")
            .file("beside", b"1")
    };
    let first = Archive::default()
        .folder("d/")
        .file("d/.wh..wh..opq", b"")
        .file("d/high", b"2")
        .file("d/deep/high", b"2");
    let last = Archive::default()
        .folder("d/")
        .file("d/high", b"2")
        .file("d/deep/high", b"2")
        .file("d/.wh..wh..opq", b"");
    for above in [first, last] {
        let expected = ["beside 1", "d/", "d/deep/", "d/deep/high 2", "d/high 2"];
        assert_eq!(tree(over(&[below(), above]).path()), expected);
    }
    let all = Archive::default()
        .file("new", b"2")
        .file(".wh..wh..opq", b"");
    assert_eq!(tree(over(&[below(), all]).path()), ["new 2"]);
}

#[test]
fn a_link_the_layer_brings_is_not_followed_by_what_it_hides() {
    let below = Archive::default()
        .file("etc/passwd", b"1")
        .file("d/low", b"1");
    let above = Archive::default()
        .link("d/link", "/etc")
        .file("d/.wh..wh..opq", b"")
        .link("top", "/etc")
        .file(".wh.top", b"");
    let expected = [
        "d/",
        "d/link -> /etc",
        "etc/",
        "etc/passwd 1",
        "top -> /etc",
    ];
    assert_eq!(tree(over(&[below, above]).path()), expected);
}

#[test]
fn a_later_layer_replaces_folders_by_files_and_files_and_links_by_folders() {
    let below = Archive::default()
        .file("folder/deep/file", b"1")
        .file("file", b"1")
        .link("link", "/folder")
        .file("folder2/x", b"1");
    let above = Archive::default()
        .file("folder", b"2")
        .folder("file/")
        .file("file/in", b"2")
        .folder("link/")
        .file("link/in", b"2")
        .link("folder2", "file");
    let expected = [
        "file/",
        "file/in 2",
        "folder 2",
        "folder2 -> file",
        "link/",
        "link/in 2",
    ];
    assert_eq!(tree(over(&[below, above]).path()), expected);
    // What the layer itself brought as a folder stays one.
    let both = Archive::default().folder("a/").file("a", b"2");
    assert_eq!(refused(&[], both), "entry `a` would replace a folder");
}

#[test]
fn an_entry_behind_a_link_lands_where_the_link_leads_in_a_box() {
    let outside = tempfile::tempdir().unwrap();
    fs::create_dir(outside.path().join("bin")).unwrap();
    let up = format!("../../../../../..{}", outside.path().display());
    let below = Archive::default()
        .file("usr/bin/sh", b"1")
        .link("bin", "usr/bin")
        .link("sbin", "/usr/bin")
        .link("up", &up);
    let above = Archive::default()
        .file("bin/a", b"2")
        .file("sbin/b", b"2")
        .file("sbin/new/c", b"2")
        .file("bin/.wh.sh", b"");
    let root = over(&[below.clone(), above]);
    let expected = [
        "bin -> usr/bin".to_owned(),
        "sbin -> /usr/bin".to_owned(),
        format!("up -> {up}"),
        "usr/".to_owned(),
        "usr/bin/".to_owned(),
        "usr/bin/a 2".to_owned(),
        "usr/bin/b 2".to_owned(),
        "usr/bin/new/".to_owned(),
        "usr/bin/new/c 2".to_owned(),
    ];
    assert_eq!(tree(root.path()), expected);
    // However far up a link leads, the tree is all there is.
    let out = Archive::default().file("up/bin/evil", b"2");
    assert!(refused(&[below], out).contains("`up/bin/evil`"));
    assert_eq!(fs::read_dir(outside.path().join("bin")).unwrap().count(), 0);
}

#[test]
fn no_layer_touches_anything_outside_its_folder() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("kept"), "kept").unwrap();
    let place = outside.path().to_str().unwrap().to_owned();
    let hostile: [(&str, &dyn Fn(Archive) -> Archive); 6] = [
        ("whiteout behind a link", &|layer| {
            layer.link("l", &place).file("l/.wh.kept", b"")
        }),
        ("opaque link", &|layer| {
            layer.link("l", &place).file("l/.wh..wh..opq", b"")
        }),
        ("file behind a link", &|layer| {
            layer.link("l", &place).file("l/kept", b"2")
        }),
        ("absolute hard link", &|layer| {
            layer.hard_link("l", &format!("{place}/kept"))
        }),
        ("absolute name", &|layer| {
            layer.file(&format!("{place}/kept"), b"2")
        }),
        ("way up", &|layer| layer.file("a/../../kept", b"2")),
    ];
    for (what, layer) in hostile {
        let root = tempfile::tempdir().unwrap();
        symlink(&place, root.path().join("below")).unwrap();
        // Refused or put inside: both are well.
        drop(unpack_into(
            root.path(),
            &layer(Archive::default()).end(),
            &Policy::LAYER,
        ));
        let names = fs::read_dir(outside.path()).unwrap().count();
        let kept = fs::read_to_string(outside.path().join("kept")).unwrap();
        assert_eq!((names, kept.as_str()), (1, "kept"), "{what}");
    }
    for name in ["a/.wh...", ".wh..", ".wh."] {
        let told = refused(&[], Archive::default().file(name, b""));
        assert_eq!(told, format!("entry `{name}` is a mark that hides nothing"));
    }
}

#[test]
fn devices_and_pipes_are_left_out_set_id_is_stripped_and_odd_owners_are_nobody() {
    let root = tempfile::tempdir().unwrap();
    let layer = Archive::default()
        .add(b'3', ("dev/null", ""), b"", |_| {})
        .add(b'4', ("dev/sda", ""), b"", |_| {})
        .add(b'6', ("run/pipe", ""), b"", |_| {})
        .add(b'0', ("/usr/bin/su", ""), b"ELF", |header| {
            header.set_mode(0o6755);
            header.set_uid(2_000_000);
            header.set_gid(7);
        })
        .hard_link("usr/bin/su2", "/usr/bin/su")
        .link("usr/bin/l", "su")
        .hard_link("usr/bin/l2", "usr/bin/l");
    let done = unpack_into(root.path(), &layer.end(), &Policy::LAYER).unwrap();
    assert_eq!((done.left_out, done.bytes), (3, 3));
    let expected = [
        "usr/",
        "usr/bin/",
        "usr/bin/l -> su",
        "usr/bin/l2 -> su",
        "usr/bin/su ELF",
        "usr/bin/su2 ELF",
    ];
    assert_eq!(tree(root.path()), expected);
    let su = fs::metadata(root.path().join("usr/bin/su2")).unwrap();
    let mode = su.permissions().mode() & 0o7777;
    assert_eq!((su.uid(), su.gid(), mode), (NOBODY, 7, 0o755));
}

#[test]
fn a_layer_without_an_end_mark_and_an_empty_one_are_whole() {
    let root = tempfile::tempdir().unwrap();
    let Archive(open) = Archive::default().file("a", b"1");
    unpack_into(root.path(), &open, &Policy::LAYER).unwrap();
    unpack_into(root.path(), b"", &Policy::LAYER).unwrap();
    assert_eq!(tree(root.path()), ["a 1"]);
    let cut = &open[..700];
    let told = unpack_into(root.path(), cut, &Policy::LAYER).unwrap_err();
    assert!(told.to_string().starts_with("it is damaged"), "{told}");
}

#[test]
fn hiding_the_same_again_and_again_costs_nothing() {
    let mut layer = Archive::default();
    for number in 0..2000 {
        layer = layer
            .file(&format!("d/{number}"), b"")
            .file("d/.wh..wh..opq", b"")
            .file(".wh.d", b"");
    }
    let root = over(&[Archive::default().file("d/low", b"1"), layer]);
    assert_eq!(fs::read_dir(root.path().join("d")).unwrap().count(), 2000);
}

#[test]
fn zstd_is_read_frame_by_frame_and_checked() {
    let plain = Archive::default().file("a", &vec![7; 300_000]).end();
    let (first, rest) = plain.split_at(100_000);
    let frame = |part: &[u8]| {
        use ruzstd::encoding::{CompressionLevel, compress_to_vec};
        compress_to_vec(part, CompressionLevel::Fastest)
    };
    // A frame to be skipped at the start, in between and at the end.
    let skipped = |bytes: u32| {
        let mut frame = vec![0x5e, 0x2a, 0x4d, 0x18];
        frame.extend(bytes.to_le_bytes());
        frame.resize(frame.len() + bytes as usize, 9);
        frame
    };
    let packed = [
        skipped(5),
        frame(first),
        skipped(0),
        frame(rest),
        skipped(300),
    ]
    .concat();
    let root = tempfile::tempdir().unwrap();
    let mut seen = Vec::new();
    let folder = fs::File::open(root.path()).unwrap();
    let done = unpack_seen(packed.as_slice(), folder.as_fd(), &Policy::IMAGE, |bytes| {
        seen.extend_from_slice(bytes);
    });
    assert_eq!(done.unwrap().bytes, 300_000);
    assert!(seen == plain, "the whole plain tar is seen");

    let cut = &packed[..packed.len() - 310];
    assert_eq!(
        refusal(cut, &Policy::IMAGE),
        "could not read the archive",
        "a frame without its end"
    );
}
