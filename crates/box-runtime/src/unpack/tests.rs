//! Tests of the unpacker, with archives made byte by byte.

mod copies;
mod disk;
mod hostile;
mod layers;
mod random;
mod staging;

use super::*;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use tar::Header;
use tempfile::TempDir;

/// An archive in the making. Headers are right unless a test says otherwise.
#[derive(Default, Clone)]
struct Archive(Vec<u8>);

impl Archive {
    fn file(self, name: &str, content: &[u8]) -> Self {
        self.add(b'0', (name, ""), content, |_| {})
    }

    fn folder(self, name: &str) -> Self {
        self.add(b'5', (name, ""), b"", |header| {
            header.set_mode(0o755);
        })
    }

    fn link(self, name: &str, target: &str) -> Self {
        self.add(b'2', (name, target), b"", |_| {})
    }

    fn hard_link(self, name: &str, target: &str) -> Self {
        self.add(b'1', (name, target), b"", |_| {})
    }

    /// Extended header records for the next entry.
    fn extended(self, records: &[(&str, &str)]) -> Self {
        let data: String = records
            .iter()
            .map(|(key, value)| record(key, value))
            .collect();
        self.add(b'x', ("PaxHeaders/x", ""), data.as_bytes(), |_| {})
    }

    /// An entry as given, then changed, then summed.
    fn add(
        mut self,
        kind: u8,
        (name, link): (&str, &str),
        content: &[u8],
        change: impl FnOnce(&mut Header),
    ) -> Self {
        let mut header = Header::new_ustar();
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(1_700_000_000);
        header.set_size(content.len() as u64);
        let old = header.as_old_mut();
        old.linkflag = [kind];
        old.name[..name.len()].copy_from_slice(name.as_bytes());
        old.linkname[..link.len()].copy_from_slice(link.as_bytes());
        change(&mut header);
        header.set_cksum();
        self.0.extend_from_slice(header.as_bytes());
        self.0.extend_from_slice(content);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    fn end(mut self) -> Vec<u8> {
        self.0.resize(self.0.len() + 1024, 0);
        self.0
    }
}

fn record(key: &str, value: &str) -> String {
    let rest = key.len() + value.len() + 3;
    let mut length = rest + 1;
    while length != rest + length.to_string().len() {
        length += 1;
    }
    format!("{length} {key}={value}\n")
}

fn unpack_into(folder: &Path, archive: &[u8], policy: &Policy) -> Result<Unpacked, UnpackError> {
    unpack(archive, fs::File::open(folder).unwrap().as_fd(), policy)
}

fn unpacked(archive: Archive) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    unpack_into(folder.path(), &archive.end(), &Policy::IMAGE).unwrap();
    folder
}

fn refusal(archive: &[u8], policy: &Policy) -> String {
    let folder = tempfile::tempdir().unwrap();
    unpack_into(folder.path(), archive, policy)
        .unwrap_err()
        .to_string()
}

#[test]
fn a_root_file_system_comes_out_as_it_went_in() {
    let root = unpacked(
        Archive::default()
            .folder("./")
            .add(b'5', ("./tmp/", ""), b"", |header| {
                header.set_mode(0o1777);
            })
            .file("./etc/passwd", b"root:x:0:0\n")
            .add(b'0', ("./usr/bin/su", ""), b"ELF", |header| {
                header.set_mode(0o4755);
                header.set_uid(6);
                header.set_gid(65_535);
            })
            .link("./etc/alternatives/awk", "/usr/bin/mawk")
            .link("./bin", "usr/bin")
            .hard_link("./usr/bin/su2", "./usr/bin/su"),
    );
    let at = |name: &str| root.path().join(name);
    assert_eq!(fs::read(at("etc/passwd")).unwrap(), b"root:x:0:0\n");
    assert_eq!(
        fs::metadata(at("etc/passwd")).unwrap().mtime(),
        1_700_000_000
    );
    assert_eq!(
        fs::metadata(at("tmp")).unwrap().permissions().mode() & 0o7777,
        0o1777
    );
    assert_eq!(fs::metadata(at("tmp")).unwrap().mtime(), 1_700_000_000);
    let su = fs::metadata(at("usr/bin/su")).unwrap();
    assert_eq!(
        (su.uid(), su.gid(), su.permissions().mode() & 0o7777),
        (6, 65_535, 0o755)
    );
    assert_eq!(su.ino(), fs::metadata(at("usr/bin/su2")).unwrap().ino());
    assert_eq!(
        fs::read_link(at("etc/alternatives/awk")).unwrap(),
        Path::new("/usr/bin/mawk")
    );
    assert_eq!(fs::read_link(at("bin")).unwrap(), Path::new("usr/bin"));
}

#[test]
fn folders_an_archive_only_implies_are_open_to_all() {
    let root = unpacked(Archive::default().file("a/b/c", b"1"));
    for name in ["a", "a/b"] {
        let mode = fs::metadata(root.path().join(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o7777, 0o755, "{name}");
    }
}

#[test]
fn long_names_are_understood_in_every_dialect() {
    let long = format!("{}/{}", "d".repeat(120), "f".repeat(130));
    let gnu = Archive::default()
        .add(
            b'L',
            ("././@LongLink", ""),
            format!("{long}\0").as_bytes(),
            |_| {},
        )
        .file("cut", b"gnu")
        .add(
            b'K',
            ("././@LongLink", ""),
            format!("{long}\0").as_bytes(),
            |_| {},
        )
        .link("gnu-link", "cut");
    let root = unpacked(gnu);
    assert_eq!(fs::read(root.path().join(&long)).unwrap(), b"gnu");
    assert_eq!(
        fs::read_link(root.path().join("gnu-link")).unwrap(),
        Path::new(&long)
    );

    let pax = Archive::default()
        .extended(&[("path", &long), ("uid", "7"), ("mtime", "1600000000.25")])
        .file("cut", b"pax")
        .extended(&[("linkpath", &long)])
        .hard_link("pax-link", "cut");
    let root = unpacked(pax);
    let found = fs::metadata(root.path().join("pax-link")).unwrap();
    assert_eq!(
        (found.size(), found.uid(), found.mtime()),
        (3, 7, 1_600_000_000)
    );

    let ustar = Archive::default().add(b'0', ("file", ""), b"ustar", |header| {
        let prefix = &mut header.as_ustar_mut().unwrap().prefix;
        prefix[..3].copy_from_slice(b"a/b");
    });
    assert_eq!(
        fs::read(unpacked(ustar).path().join("a/b/file")).unwrap(),
        b"ustar"
    );
}

#[test]
fn a_gzipped_archive_is_told_by_its_first_bytes_and_checked_to_its_last() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder
        .write_all(&Archive::default().file("a", &[7; 5000]).end())
        .unwrap();
    let mut packed = encoder.finish().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let done = unpack_into(folder.path(), &packed, &Policy::IMAGE).unwrap();
    assert_eq!(
        done,
        Unpacked {
            entries: 1,
            bytes: 5000,
            left_out: 0
        }
    );

    let crc = packed.len() - 8;
    packed[crc] ^= 1;
    assert_eq!(
        refusal(&packed, &Policy::IMAGE),
        "could not read the archive"
    );
}

#[test]
fn a_package_loses_its_first_folder_and_gets_npms_modes() {
    let archive = Archive::default()
        .add(b'0', ("package/package.json", ""), b"{}", |header| {
            header.set_mode(0o600);
        })
        .add(b'0', ("package/bin/run", ""), b"#!", |header| {
            header.set_mode(0o6711);
        })
        .add(b'0', ("top-level", ""), b"left out", |header| {
            header.set_uid(1_000_000);
        });
    let folder = tempfile::tempdir().unwrap();
    unpack_into(folder.path(), &archive.end(), &Policy::PACKAGE).unwrap();
    let mode = |name: &str| {
        fs::metadata(folder.path().join(name))
            .unwrap()
            .permissions()
            .mode()
            & 0o7777
    };
    assert_eq!(mode("package.json"), 0o644);
    assert_eq!(mode("bin/run"), 0o755);
    assert_eq!(mode("bin"), 0o755);
    assert!(!folder.path().join("top-level").exists());
}

#[test]
fn a_later_file_replaces_an_earlier_one_and_leaves_hard_links_alone() {
    let root = unpacked(
        Archive::default()
            .file("a", b"one")
            .hard_link("b", "a")
            .file("a", b"two")
            .link("c", "a")
            .file("c", b"three"),
    );
    let read = |name: &str| fs::read_to_string(root.path().join(name)).unwrap();
    assert_eq!(
        (read("a"), read("b"), read("c")),
        ("two".into(), "one".into(), "three".into())
    );
}

#[test]
fn blank_owners_and_times_count_as_nothing() {
    let root = unpacked(Archive::default().add(b'0', ("a", ""), b"", |header| {
        let old = header.as_old_mut();
        (old.uid, old.gid, old.mtime) = ([0; 8], [b' '; 8], [0xff; 12]);
    }));
    let found = fs::metadata(root.path().join("a")).unwrap();
    assert_eq!((found.uid(), found.gid(), found.mtime()), (0, 0, 0));
}
