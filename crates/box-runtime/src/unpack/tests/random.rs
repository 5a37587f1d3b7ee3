//! Archives made and broken at random: whatever they say, nothing outside the folder changes.

use super::*;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// xorshift64* (Vigna 2016); a failing seed is printed and can be run again.
struct Chance(u64);

impl Chance {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        usize::try_from(self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33).unwrap() % below
    }
}

const PARTS: [&str; 20] = [
    "a",
    "b",
    "c",
    "d",
    "a",
    "b",
    "c",
    "d",
    "e",
    "f",
    "..",
    ".",
    "",
    "/",
    "out",
    "canary",
    ".wh.a",
    ".wh.b",
    ".wh.canary",
    ".wh..wh..opq",
];
const KINDS: &[u8] = b"00000055555552222211134L";

fn name(chance: &mut Chance, outside: &str) -> String {
    match chance.next(40) {
        0 => format!("{outside}/canary"),
        1 => format!("../{}", PARTS[chance.next(PARTS.len())]),
        _ => {
            let parts = 1 + chance.next(3);
            (0..parts)
                .map(|_| PARTS[chance.next(PARTS.len())])
                .collect::<Vec<_>>()
                .join("/")
        }
    }
}

fn archive(chance: &mut Chance, outside: &str) -> Vec<u8> {
    let mut archive = Archive::default();
    for _ in 0..=chance.next(8) {
        let (own, target) = (name(chance, outside), name(chance, outside));
        let kind = KINDS[chance.next(KINDS.len())];
        let content: &[u8] = if kind == b'0' { b"overwritten" } else { b"" };
        archive = match chance.next(4) {
            0 => archive.extended(&[("path", &own), ("linkpath", &target)]),
            _ => archive,
        };
        archive = archive.add(kind, (&own, &target), content, |_| {});
    }
    let mut bytes = archive.end();
    for _ in 0..chance.next(6).saturating_sub(3) {
        let at = chance.next(bytes.len());
        bytes[at] = u8::try_from(chance.next(256)).unwrap();
        // Half of the broken headers get a right checksum, so that they are looked into.
        let header = at / 512 * 512;
        if chance.next(2) == 0 {
            let mut fixed = Header::new_old();
            fixed
                .as_mut_bytes()
                .copy_from_slice(&bytes[header..header + 512]);
            fixed.set_cksum();
            bytes[header..header + 512].copy_from_slice(fixed.as_bytes());
        }
    }
    bytes
}

/// Every path below a folder with its kind, links and content, without following a link.
fn look(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let meta = fs::symlink_metadata(&path).unwrap();
        let what = if meta.is_file() {
            format!(
                "{} {} {:?}",
                meta.mode(),
                meta.nlink(),
                fs::read(&path).unwrap()
            )
        } else {
            format!("{} {}", meta.mode(), meta.mtime())
        };
        if meta.is_dir() {
            found.extend(look(&path));
        }
        found.insert(path, what);
    }
    found
}

#[test]
fn no_archive_touches_anything_outside_its_folder() {
    attack(&Policy::IMAGE, 1);
}

#[test]
fn no_layers_over_each_other_touch_anything_outside_their_folder() {
    attack(&Policy::LAYER, 3);
}

/// Unpacks so many archives of a seed into one folder, one after the other.
fn attack(policy: &Policy, archives: usize) {
    let outer = tempfile::tempdir().unwrap();
    let outside = outer.path().join("out");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("canary"), "alive").unwrap();
    fs::write(outer.path().join("canary"), "alive").unwrap();
    let root = outer.path().join("root");
    let (mut done, mut refused) = (0, 0);
    for seed in 1..=2000 {
        let mut chance = Chance(seed);
        fs::create_dir(&root).unwrap();
        let before = look(&outside);
        for _ in 0..archives {
            let bytes = archive(&mut chance, outside.to_str().unwrap());
            match unpack_into(&root, &bytes, policy) {
                Ok(_) => done += 1,
                Err(_) => refused += 1,
            }
        }
        assert_eq!(look(&outside), before, "seed {seed}");
        assert_eq!(
            fs::read(outer.path().join("canary")).unwrap(),
            b"alive",
            "seed {seed}"
        );
        assert_eq!(
            fs::read_dir(outer.path()).unwrap().count(),
            3,
            "seed {seed}"
        );
        for (path, what) in look(&root) {
            assert!(
                !what.contains("alive"),
                "seed {seed}: {path:?} got in from outside"
            );
        }
        fs::remove_dir_all(&root).unwrap();
    }
    // Otherwise the test would prove nothing.
    assert!(
        done > 100 && refused > 100,
        "{done} unpacked, {refused} refused"
    );
}
