//! Tests of following mmdebstrap, with scripts in its place.

use super::*;
use box_runtime::RuntimeError;
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt as _;
use tokio::sync::mpsc;

/// Runs a script as mmdebstrap would be, its tar unpacked into a new folder.
fn followed(script: &str, time_max: Duration) -> (Followed, bool, tempfile::TempDir) {
    let work = tempfile::tempdir().unwrap();
    let program = work.path().join("mmdebstrap");
    std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let root = tempfile::tempdir().unwrap();
    let recipe = Recipe::of(&Reference::Default).unwrap();
    let (sender, _lines) = mpsc::channel(1);
    let mut child = command(
        &program,
        &recipe,
        &work.path().join("sources"),
        Privileges::Root,
    )
    .spawn()
    .unwrap();
    let folder = File::open(root.path()).unwrap();
    let followed = follow(
        &mut child,
        folder.as_fd(),
        (&Say(sender), &Policy::IMAGE),
        time_max,
    )
    .unwrap();
    (followed, child.wait().unwrap().success(), root)
}

const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn what_it_writes_is_unpacked_and_the_end_of_what_it_says_is_kept() {
    let (followed, success, root) = followed(
        "for n in $(seq 30); do echo line $n >&2; done; cd $(mktemp -d) && mkdir bin && tar c .",
        PATIENCE,
    );
    assert!(success && !followed.late);
    assert!(followed.unwrap_entries() >= 1);
    assert!(root.path().join("bin").is_dir());
    assert_eq!(followed.tail.lines().count(), TAIL_LINES_MAX);
    assert!(followed.tail.ends_with("line 30"), "{}", followed.tail);
}

#[test]
fn a_failure_is_told_in_its_own_words() {
    let (followed, success, _root) = followed("echo E: no space here >&2; exit 25", PATIENCE);
    assert!(!success && !followed.late);
    assert!(matches!(
        followed.unpacked,
        Err(UnpackError::Damaged { .. })
    ));
    assert_eq!(followed.tail, "E: no space here");
}

#[test]
fn it_is_ended_with_all_it_started_when_it_takes_too_long() {
    // It returns only when nobody holds the far end of its standard error any more.
    let (followed, success, _root) = followed(
        "sleep 1000 & setsid sleep 1000 & exec sleep 1000",
        Duration::from_millis(300),
    );
    assert!(followed.late && !success);
}

#[test]
fn it_is_ended_when_its_tar_is_refused() {
    let (followed, success, _root) = followed(
        "cd $(mktemp -d) && mkfifo x && tar c . ; sleep 1000",
        PATIENCE,
    );
    assert!(!followed.late && !success);
    assert_eq!(
        followed.unpacked.unwrap_err().to_string(),
        "entry `./x` is a fifo"
    );
}

#[test]
fn what_is_missing_on_the_machine_is_named_with_the_remedy() {
    assert_eq!(on_path("mmdebstrap", None), None);
    assert_eq!(
        on_path("no-such-program", Some("/usr/bin:/bin".into())),
        None
    );
    assert!(on_path("sh", Some("/nowhere:/bin".into())).is_some());
    let image = || "default".to_owned();
    let told = |error: ImageError| {
        let RuntimeError::Refused { why, hint } = RuntimeError::from(error) else {
            panic!()
        };
        (why, hint.unwrap())
    };
    assert_eq!(
        told(ImageError::NoMmdebstrap { image: image() }),
        (
            "could not prepare image `default`: `mmdebstrap` is not installed".to_owned(),
            "install it with `apt-get install mmdebstrap`".to_owned()
        )
    );
    assert_eq!(
        told(ImageError::NoArchive { image: image() }),
        (
            "could not prepare image `default`: this machine's apt configuration names no Debian \
             archive"
                .to_owned(),
            "add Debian's archive to `/etc/apt/sources.list.d`, or use `file:<root tar>`"
                .to_owned()
        )
    );
}

impl Followed {
    fn unwrap_entries(&self) -> u64 {
        self.unpacked.as_ref().unwrap().entries
    }
}
