//! Tests of the image store with root tars, and of what it says when it cannot.

mod archives;
mod bad_registry;
mod made;
mod real_registry;

use super::*;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;

struct Silent;

impl Progress for Silent {
    fn say(&self, _: &str) {}
}

/// A data folder and a folder for tars.
struct Rig {
    data: TempDir,
    tars: TempDir,
    store: ImageStore,
    runtime: tokio::runtime::Runtime,
}

impl Rig {
    fn new() -> Self {
        Self::on(tempfile::tempdir().unwrap())
    }

    fn on(data: TempDir) -> Self {
        let store = ImageStore::open(data.path()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        Self {
            data,
            tars: tempfile::tempdir().unwrap(),
            store,
            runtime,
        }
    }

    /// Whose logins are used.
    fn logins(&mut self, logins: oci::Logins) {
        Arc::get_mut(&mut self.store.store).unwrap().logins = logins;
    }

    fn patience(&mut self, patience: oci::Patience) {
        Arc::get_mut(&mut self.store.store).unwrap().patience = patience;
    }

    fn tar(&self, name: &str, fill: impl FnOnce(&mut tar::Builder<fs::File>)) -> String {
        let path = self.tars.path().join(name);
        let mut builder = tar::Builder::new(fs::File::create(&path).unwrap());
        fill(&mut builder);
        builder.finish().unwrap();
        format!("file:{}", path.display())
    }

    fn prepare(&self, image: &str) -> Result<ImageInfo, RuntimeError> {
        self.runtime.block_on(self.store.prepare(image, &Silent))
    }

    /// The texts a person sees: what, then the hint or the causes.
    fn refusal(&self, image: &str) -> (String, Option<String>) {
        let error = self.prepare(image).unwrap_err();
        let RuntimeError::Refused { why, hint } = error else {
            panic!("{error:?}")
        };
        (
            why.replace(self.tars.path().to_str().unwrap(), "/tars"),
            hint,
        )
    }

    fn left_over(&self) -> usize {
        let left = fs::read_dir(self.data.path().join("tmp"));
        left.map_or(0, Iterator::count)
    }
}

fn entry(builder: &mut tar::Builder<fs::File>, name: &str, kind: tar::EntryType, content: &[u8]) {
    let mut header = tar::Header::new_gnu();
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_entry_type(kind);
    header.set_mode(0o755);
    header.set_size(content.len() as u64);
    header.set_cksum();
    builder.append(&header, content).unwrap();
}

fn file(builder: &mut tar::Builder<fs::File>, name: &str, content: &[u8]) {
    entry(builder, name, tar::EntryType::Regular, content);
}

#[test]
fn a_root_tar_becomes_an_image_with_mount_points_and_is_found_again() {
    let rig = Rig::new();
    let image = rig.tar("root.tar", |tar| file(tar, "bin/sh", b"#!"));
    let info = rig.prepare(&image).unwrap();
    let root = rig.store.root_of(&info.digest).unwrap();
    assert_eq!(fs::read(root.join("bin/sh")).unwrap(), b"#!");
    assert!(root.join("workspace").is_dir());
    assert_eq!((info.image.as_str(), info.bytes), (image.as_str(), 2));
    let around = fs::metadata(root.parent().unwrap()).unwrap();
    assert_eq!(around.permissions().mode() & 0o777, 0o700);

    // Ready already: nothing is unpacked again, not even by a store opened later.
    let inode = fs::metadata(&root).unwrap().ino();
    assert_eq!(rig.prepare(&image).unwrap(), info);
    let later = ImageStore::open(rig.data.path()).unwrap();
    assert_eq!(
        rig.runtime
            .block_on(later.prepare(&image, &Silent))
            .unwrap(),
        info
    );
    assert_eq!(
        fs::metadata(later.root_of(&info.digest).unwrap())
            .unwrap()
            .ino(),
        inode
    );
    assert_eq!(rig.left_over(), 0);
}

#[test]
fn what_was_changed_is_made_anew_and_what_is_the_same_is_kept_once() {
    let rig = Rig::new();
    let one = rig.tar("one.tar", |tar| file(tar, "bin/sh", b"one"));
    let first = rig.prepare(&one).unwrap();
    fs::copy(
        rig.tars.path().join("one.tar"),
        rig.tars.path().join("copy.tar"),
    )
    .unwrap();
    let copy = rig.prepare(&one.replace("one.tar", "copy.tar")).unwrap();
    assert_eq!(copy.digest, first.digest);

    rig.tar("one.tar", |tar| file(tar, "bin/sh", b"another"));
    let second = rig.prepare(&one).unwrap();
    assert_ne!(second.digest, first.digest);
    assert!(
        rig.store.root_of(&first.digest).is_some(),
        "boxes may still use it"
    );
}

#[test]
fn images_are_listed_and_removed_by_reference_and_by_digest() {
    let rig = Rig::new();
    let list = || rig.runtime.block_on(rig.store.list()).unwrap();
    let remove = |image: &str| rig.runtime.block_on(rig.store.remove(image));
    let one = rig.tar("a.tar", |tar| file(tar, "bin/sh", b"one"));
    let digest = rig.prepare(&one).unwrap().digest;
    fs::copy(rig.tars.path().join("a.tar"), rig.tars.path().join("b.tar")).unwrap();
    let two = one.replace("a.tar", "b.tar");
    rig.prepare(&two).unwrap();
    let names = || {
        list()
            .into_iter()
            .map(|info| info.image)
            .collect::<Vec<_>>()
    };
    assert_eq!(names(), [one.clone(), two.clone()]);

    remove(&one).unwrap();
    assert_eq!(names(), std::slice::from_ref(&two));
    assert!(rig.store.root_of(&digest).is_some());
    remove(&two).unwrap();
    assert_eq!(names(), [""; 0]);
    assert_eq!(rig.store.root_of(&digest), None);
    let error = remove(&two).unwrap_err().to_string();
    assert_eq!(error, format!("image `{two}` is not here"));

    rig.prepare(&one).unwrap();
    assert_eq!(
        rig.prepare(&format!("sha256:{digest}")).unwrap().digest,
        digest
    );
    remove(&format!("sha256:{digest}")).unwrap();
    assert_eq!(list(), []);
    assert_eq!(rig.left_over(), 0);
}

#[test]
fn tars_that_want_out_are_refused_and_nothing_of_them_is_kept() {
    let rig = Rig::new();
    let refused = |fill: &dyn Fn(&mut tar::Builder<fs::File>)| {
        let image = rig.tar("bad.tar", |tar| {
            file(tar, "bin/sh", b"#!");
            fill(tar);
        });
        let (why, hint) = rig.refusal(&image);
        assert_eq!(hint.as_deref(), Some("nothing of it was kept"));
        why.strip_prefix("could not prepare image `file:/tars/bad.tar`: ")
            .unwrap()
            .to_owned()
    };
    let device = tar::EntryType::Char;
    assert_eq!(
        refused(&|tar| file(tar, "../evil", b"")),
        "entry `../evil` has `..` in its name"
    );
    assert_eq!(
        refused(&|tar| file(tar, "/evil", b"")),
        "entry `/evil` has an absolute name"
    );
    assert_eq!(
        refused(&|tar| entry(tar, "dev/mem", device, b"")),
        "entry `dev/mem` is a device node"
    );
    let link = |tar: &mut tar::Builder<fs::File>| {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Link);
        header.set_size(0);
        header.set_path("shadow").unwrap();
        header.as_old_mut().linkname[..11].copy_from_slice(b"/etc/shadow");
        header.set_cksum();
        tar.append(&header, io::empty()).unwrap();
    };
    assert_eq!(
        refused(&link),
        "entry `shadow` is a hard link to a file that has an absolute name"
    );
    assert_eq!(rig.left_over(), 0);
    assert_eq!(rig.runtime.block_on(rig.store.list()).unwrap(), []);
}

#[test]
fn what_is_no_root_tar_is_told_apart() {
    let rig = Rig::new();
    let why = |image: &str| {
        let (why, _) = rig.refusal(image);
        why.split_once(".tar`: ").unwrap().1.to_owned()
    };
    let image = rig.tar("other.tar", |tar| file(tar, "notes.txt", b"hello"));
    assert_eq!(
        why(&image),
        "it holds neither a root file system (`usr`, `bin`) nor an image (`index.json`, \
         `manifest.json`)"
    );
    fs::write(rig.tars.path().join("xz.tar"), b"\xfd7zXZ\0").unwrap();
    let image = format!("file:{}/xz.tar", rig.tars.path().display());
    assert_eq!(
        why(&image),
        "it is compressed with xz, which is not supported"
    );
    let image = format!("file:{}/none.tar", rig.tars.path().display());
    assert_eq!(why(&image), "the file does not exist");
    let fifo = rig.tars.path().join("fifo.tar");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    assert_eq!(why(&format!("file:{}", fifo.display())), "it is not a file");
    fs::write(
        rig.tars.path().join("text.tar"),
        "not a tar at all\n".repeat(100),
    )
    .unwrap();
    let image = format!("file:{}/text.tar", rig.tars.path().display());
    assert_eq!(
        why(&image),
        "it is damaged at byte 512: a header with a wrong checksum"
    );
}

#[test]
fn unknown_images_are_refused_with_what_was_meant() {
    let rig = Rig::new();
    let forms = "images are `default`, `debian:<suite>` such as `debian:trixie`, `oci:<name>` such \
                 as `oci:alpine`, and `file:<archive>`";
    let hint = |image: &str| {
        let (why, hint) = rig.refusal(image);
        assert_eq!(why, format!("there is no image `{image}`"));
        hint.unwrap().replace(forms, "…")
    };
    assert_eq!(hint("foo"), "…");
    assert_eq!(hint("ubuntu:24.04"), "…");
    assert_eq!(hint("debain:sid"), "did you mean `debian:sid`? …");
    assert_eq!(hint("debian"), "did you mean `debian:trixie`? …");
    assert_eq!(hint("debian:../x"), "did you mean `debian:trixie`? …");
    assert_eq!(hint("defualt"), "did you mean `default`? …");
    assert_eq!(hint("trixi"), "did you mean `debian:trixie`? …");
    assert_eq!(hint("/root.tar"), "did you mean `file:/root.tar`? …");
    assert_eq!(hint("docker:alpine"), "did you mean `oci:alpine`? …");
    assert_eq!(
        hint("quay.example/a/b"),
        "did you mean `oci:quay.example/a/b`? …"
    );
    assert_eq!(hint("oci-archive:/x.tar"), "did you mean `file:/x.tar`? …");
    assert_eq!(
        hint("oci:Alpine"),
        "a name is of small letters, digits and `-`, `_`, `.` between them; `oci:` takes a name \
         such as `alpine`, `registry.example/team/app:1.2` or `localhost:5000/app`"
    );
    assert_eq!(
        hint("file:root.tar"),
        "`file:` takes an absolute path without `..`"
    );
    assert_eq!(
        hint("file:/a/../root.tar"),
        "`file:` takes an absolute path without `..`"
    );
}

#[test]
fn two_that_want_the_same_image_get_one_and_the_second_is_told_to_wait() {
    struct Counting(AtomicUsize);
    impl Progress for Counting {
        fn say(&self, text: &str) {
            if text.starts_with("unpacking") {
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }
    }
    let rig = Rig::new();
    let image = rig.tar("big.tar", |tar| {
        for number in 0..2000 {
            file(tar, &format!("usr/{number}"), &[1; 4096]);
        }
    });
    let count = Counting(AtomicUsize::new(0));
    let other = ImageStore::open(rig.data.path()).unwrap();
    let (first, second) = rig.runtime.block_on(async {
        tokio::join!(
            rig.store.prepare(&image, &count),
            other.prepare(&image, &count)
        )
    });
    assert_eq!(first.unwrap(), second.unwrap());
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
    assert_eq!(rig.left_over(), 0);
}

#[test]
#[expect(
    deprecated,
    reason = "safe for CLONE_NEWNS; only CLONE_FILES makes `unshare` unsafe"
)]
fn a_full_disk_is_told_and_leaves_nothing() {
    // Threads started later, the blocking pool's among them, inherit the namespace.
    rustix::thread::unshare(rustix::thread::UnshareFlags::NEWNS).unwrap();
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )
    .unwrap();
    let disk = tempfile::tempdir().unwrap();
    mount(
        "tmpfs",
        disk.path(),
        "tmpfs",
        MountFlags::empty(),
        c"size=1m",
    )
    .unwrap();
    let rig = Rig::on(disk);
    let image = rig.tar("big.tar", |tar| file(tar, "bin/sh", &vec![1; 2 << 20]));
    let error = rig.prepare(&image).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("could not prepare image `{image}`")
    );
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(cause, "the disk is full at entry `bin/sh`");
    assert_eq!(rig.left_over(), 0);
    assert_eq!(rig.runtime.block_on(rig.store.list()).unwrap(), []);
    // The control.
    let small = rig.tar("small.tar", |tar| file(tar, "bin/sh", b"#!"));
    rig.prepare(&small).unwrap();
}

#[test]
fn opening_the_store_removes_what_a_crash_left() {
    let data = tempfile::tempdir().unwrap();
    let left = data.path().join("tmp/image-1-0/root/etc");
    fs::create_dir_all(&left).unwrap();
    fs::File::create(left.join("half"))
        .unwrap()
        .write_all(b"x")
        .unwrap();
    ImageStore::open(data.path()).unwrap();
    assert_eq!(fs::read_dir(data.path().join("tmp")).unwrap().count(), 0);
}
