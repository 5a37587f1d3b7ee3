//! The default image, really made: from the Debian archive this machine's apt configuration names.
//!
//! Needs root, `mmdebstrap` and that archive; half a minute. A binary of its own, so that a run
//! can leave out what downloads.

use box_runtime::{Images as _, Progress, RuntimeError};
use box_runtime_native::images::ImageStore;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::time::Instant;
use std::{fs, io};

struct Lines(Sender<String>);

impl Progress for Lines {
    fn say(&self, text: &str) {
        drop(self.0.send(text.to_owned()));
    }
}

/// Every entry below a folder, links not followed.
fn walk(folder: &Path, look: &mut dyn FnMut(&Path, &fs::Metadata)) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let found = fs::symlink_metadata(&path)?;
        look(&path, &found);
        if found.is_dir() {
            walk(&path, look)?;
        }
    }
    Ok(())
}

/// That an agent finds what it needs in the tree, and nothing special or left over is in it.
fn check(root: &Path) -> io::Result<()> {
    for program in ["bash", "curl", "git", "less", "ps", "python3", "apt-get"] {
        assert!(root.join("usr/bin").join(program).exists(), "{program}");
    }
    let bundle = fs::read_to_string(root.join("etc/ssl/certs/ca-certificates.crt"))?;
    assert!(bundle.contains("BEGIN CERTIFICATE"));
    assert!(fs::read_to_string(root.join("etc/passwd"))?.contains("agent:x:1020:1020:"));
    assert_eq!(fs::read_dir(root.join("dev"))?.count(), 0);
    for emptied in ["var/lib/apt/lists", "var/cache/apt/archives"] {
        walk(&root.join(emptied), &mut |path, found| {
            assert!(found.is_dir() || found.len() == 0, "{}", path.display());
        })?;
    }
    walk(root, &mut |path, found| {
        let kind = found.file_type();
        assert!(
            kind.is_file() || kind.is_dir() || kind.is_symlink(),
            "{}",
            path.display()
        );
        assert!(
            found.uid() < 65_536 && found.gid() < 65_536,
            "{}",
            path.display()
        );
        assert!(
            found.is_dir() || found.mode() & 0o6000 == 0,
            "{} is set-id",
            path.display()
        );
    })
}

#[test]
fn the_default_image_has_what_an_agent_needs_and_a_wrong_suite_is_told() {
    let data = tempfile::tempdir().unwrap();
    let left_over = || fs::read_dir(data.path().join("tmp")).unwrap().count();
    let store = ImageStore::open(data.path()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let (say, said) = channel();
    let lines = Lines(say);

    let started = Instant::now();
    let info = runtime.block_on(store.prepare("default", &lines)).unwrap();
    let said: Vec<String> = said.try_iter().collect();
    println!(
        "{:.1} s, {} bytes: {said:#?}",
        started.elapsed().as_secs_f32(),
        info.bytes
    );
    assert!(
        said.iter()
            .any(|line| line.contains("downloading packages")),
        "{said:?}"
    );
    check(&store.root_of(&info.digest).unwrap()).unwrap();
    assert_eq!(left_over(), 0);

    // Ready already: the very same, and nothing is said because nothing is done.
    assert_eq!(
        runtime.block_on(store.prepare("default", &lines)).unwrap(),
        info
    );

    let error = runtime
        .block_on(store.prepare("debian:trixi", &lines))
        .unwrap_err();
    let RuntimeError::Refused { why, hint } = error else {
        panic!("{error:?}")
    };
    assert_eq!(why, "there is no image `debian:trixi`");
    assert_eq!(hint.as_deref(), Some("did you mean `debian:trixie`?"));
    assert_eq!(left_over(), 0);
}
