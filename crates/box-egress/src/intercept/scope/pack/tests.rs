//! Packs: made by hand, by git, and out of noise.

use super::*;
use crate::intercept::scope::testing::Dice;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::io::Write as _;
use std::process::{Command, Stdio};

const TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

fn commit(parents: &[Oid], text: &str) -> Vec<u8> {
    let parents: Vec<String> = parents
        .iter()
        .map(|oid| {
            format!(
                "parent {oid:?}
"
            )
        })
        .collect();
    let parents = parents.concat();
    format!("tree {TREE}\n{parents}author a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\n\n{text}\n")
        .into_bytes()
}

fn low(size: usize, mask: usize) -> u8 {
    u8::try_from(size & mask).unwrap()
}

fn zipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Type and size, and what stands between them and the object.
fn object(kind: u8, size: usize, between: &[u8], bytes: &[u8]) -> Vec<u8> {
    let mut head = vec![kind << 4 | low(size, 15)];
    let mut size = size >> 4;
    while size > 0 {
        *head.last_mut().unwrap() |= 0x80;
        head.push(low(size, 0x7f));
        size >>= 7;
    }
    [head, between.to_vec(), zipped(bytes)].concat()
}

fn pack(objects: &[Vec<u8>]) -> Vec<u8> {
    let count = u32::try_from(objects.len()).unwrap().to_be_bytes();
    let mut pack = [b"PACK\0\0\0\x02".as_slice(), &count].concat();
    pack.extend(objects.iter().flatten());
    pack.extend_from_slice(&[0; 20]);
    pack
}

fn plain(commit: &[u8]) -> Vec<u8> {
    object(1, commit.len(), &[], commit)
}

/// A delta that adds all of `to`.
fn delta(from: &[u8], to: &[u8]) -> Vec<u8> {
    let size = |mut size: usize| {
        let mut bytes = Vec::new();
        loop {
            let more = if size > 0x7f { 0x80 } else { 0 };
            bytes.push(low(size, 0x7f) | more);
            size >>= 7;
            if size == 0 {
                return bytes;
            }
        }
    };
    let mut out = [size(from.len()), size(to.len())].concat();
    for piece in to.chunks(127) {
        out.push(low(piece.len(), 0x7f));
        out.extend_from_slice(piece);
    }
    out
}

fn read(pack: &[u8]) -> PackReader {
    let mut reader = PackReader::new();
    reader.feed(pack).unwrap();
    reader
}

#[test]
fn commits_show_what_comes_after_what() {
    let old = Oid([7; 20]);
    let first = commit(&[old], "first");
    let other = commit(&[], "elsewhere");
    let merge = commit(&[name_of(&other), name_of(&first)], "merge");
    let pack = pack(&[
        plain(&merge),
        plain(&first),
        plain(&other),
        object(3, 4, &[], b"blob"),
    ]);
    let reader = read(&pack);
    assert_eq!(reader.commits(), 3);
    assert!(reader.saw_other());
    assert!(reader.leads(old, name_of(&merge)));
    assert!(reader.leads(name_of(&other), name_of(&merge)));
    assert!(!reader.leads(old, name_of(&other)));
    assert!(!reader.leads(name_of(&merge), name_of(&first)));
    // Cut anywhere, it is read the same.
    for cut in 0..pack.len() {
        let mut reader = PackReader::new();
        reader.feed(&pack[..cut]).unwrap();
        reader.feed(&pack[cut..]).unwrap();
        assert!(reader.leads(old, name_of(&merge)), "{cut}");
    }
}

#[test]
fn commit_that_is_a_delta_of_one_before_is_read() {
    let old = Oid([7; 20]);
    let first = commit(&[old], "first");
    let second = commit(&[name_of(&first)], "second");
    let change = delta(&first, &second);
    let base = plain(&first);
    let before = u8::try_from(base.len()).unwrap();
    let by_place = match before {
        0..=127 => vec![before],
        _ => vec![0x80 | ((before >> 7) - 1), before & 0x7f],
    };
    let placed = object(6, change.len(), &by_place, &change);
    assert!(read(&pack(&[base.clone(), placed])).leads(old, name_of(&second)));
    let named = object(7, change.len(), &name_of(&first).0, &change);
    assert!(read(&pack(&[base.clone(), named])).leads(old, name_of(&second)));
    // Of a base that is not there, nothing is believed.
    let thin = object(7, change.len(), &[9; 20], &change);
    let reader = read(&pack(&[base, thin]));
    assert!(!reader.leads(old, name_of(&second)));
    assert_eq!(reader.commits(), 1);
}

#[test]
fn what_only_looks_like_a_commit_shows_nothing() {
    let old = Oid([7; 20]);
    let forged = commit(&[old], "forged");
    let blob = object(3, forged.len(), &[], &forged);
    assert!(!read(&pack(&[blob])).leads(old, name_of(&forged)));
    let late = b"tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor a <a@b> 1 +0000\n\
        parent 0707070707070707070707070707070707070707\n\nx\n";
    assert!(!read(&pack(&[plain(late)])).leads(old, name_of(late)));
    let mut reader = PackReader::new();
    assert!(reader.feed(&pack(&[plain(b"no tree")])).is_err());
}

#[test]
fn pack_that_unfolds_without_end_is_given_up() {
    let zeros = vec![0; 64 << 20];
    let bomb = object(3, zeros.len(), &[], &zeros);
    let mut reader = PackReader::new();
    assert_eq!(
        reader.feed(&pack(&vec![bomb; 5])),
        Err(Unreadable),
        "it unfolds to more than is read"
    );
    let long = vec![b'x'; COMMIT_BYTES_MAX + 1];
    assert!(PackReader::new().feed(&pack(&[plain(&long)])).is_err());
    let lies = object(1, 5, &[], &commit(&[], "longer than it says"));
    assert!(PackReader::new().feed(&pack(&[lies])).is_err());
}

#[test]
fn noise_never_trips_the_reader() {
    let old = Oid([7; 20]);
    let first = commit(&[old], "first");
    let second = commit(&[name_of(&first)], "second");
    let change = delta(&first, &second);
    let whole = pack(&[
        plain(&first),
        object(7, change.len(), &name_of(&first).0, &change),
        object(3, 4, &[], b"blob"),
    ]);
    let mut dice = Dice::new(2);
    for _ in 0..4000 {
        let mut bytes = whole.clone();
        for _ in 0..=dice.below(4) {
            let at = dice.below(bytes.len());
            bytes[at] = dice.byte();
        }
        let mut reader = PackReader::new();
        let cut = dice.below(bytes.len());
        if reader.feed(&bytes[..cut]).is_ok() {
            let _unread = reader.feed(&bytes[cut..]);
        }
        let noise: Vec<u8> = (0..dice.below(200)).map(|_| dice.byte()).collect();
        let _unread =
            PackReader::new().feed(&[b"PACK\0\0\0\x02\0\0\xff\xff".as_slice(), &noise].concat());
        drop(applied(&first, &noise));
    }
}

/// Runs git in a folder, without anybody's configuration.
fn git(folder: &std::path::Path, input: &[u8], args: &[&str]) -> Vec<u8> {
    #[expect(clippy::disallowed_methods, reason = "a pack of git's own is read")]
    let mut git = Command::new("git");
    git.env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    for who in ["AUTHOR", "COMMITTER"] {
        git.env(format!("GIT_{who}_NAME"), "a");
        git.env(format!("GIT_{who}_EMAIL"), "a@b");
    }
    git.current_dir(folder).args(args);
    git.stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut git = git.spawn().unwrap();
    git.stdin.take().unwrap().write_all(input).unwrap();
    let output = git.wait_with_output().unwrap();
    assert!(output.status.success(), "git {args:?}");
    output.stdout
}

#[test]
fn packs_of_git_with_deltas_of_commits_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    git(folder, b"", &["init", "-q"]);
    let mut names = Vec::new();
    // Long messages that differ little: git makes deltas of such commits.
    let text = "the same words over and over\n".repeat(60);
    for n in 0..60 {
        let tree = git(folder, b"", &["mktree"]);
        let tree = String::from_utf8(tree).unwrap();
        let mut args = vec!["commit-tree".to_owned(), tree.trim().to_owned()];
        if let Some(parent) = names.last() {
            args.extend(["-p".to_owned(), String::clone(parent)]);
        }
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let name = git(folder, format!("{n}\n{text}").as_bytes(), &args);
        names.push(String::from_utf8(name).unwrap().trim().to_owned());
    }
    let wanted = format!("{}\n^{}\n", names[59], names[5]);
    for extra in [&["--delta-base-offset"][..], &[]] {
        let mut args = vec![
            "pack-objects",
            "--revs",
            "--thin",
            "--stdout",
            "-q",
            "--depth=50",
        ];
        args.extend(extra);
        let pack = git(folder, wanted.as_bytes(), &args);
        let reader = read(&pack);
        assert_eq!(reader.commits(), 54);
        let oid = |n: usize| Oid::parse(names[n].as_bytes()).unwrap();
        assert!(reader.leads(oid(5), oid(59)));
        assert!(reader.leads(oid(30), oid(59)));
        assert!(!reader.leads(oid(4), oid(59)), "it is not in the pack");
    }
}
