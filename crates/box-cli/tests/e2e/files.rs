//! `box cp` with real boxes, and with boxes that lie.

use super::host::TestHost;
use super::program::Said;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;

/// `box` in a folder of the caller's.
fn in_folder(host: &TestHost, folder: &Path, arguments: &[&str]) -> Said {
    let mut program = host.program(arguments);
    program.command.current_dir(folder);
    program.run()
}

#[track_caller]
fn ok(said: &Said) {
    said.assert_code(0);
}

#[test]
fn files_go_in_and_come_out_as_docker_cp_has_them() {
    let host = TestHost::new();
    host.ok(&["new", "one"]);
    let here = tempfile::tempdir().unwrap();
    let cp = |from: &str, to: &str| in_folder(&host, here.path(), &["cp", from, to]);
    fs::create_dir_all(here.path().join("src/deep")).unwrap();
    fs::write(here.path().join("src/deep/a.txt"), "a").unwrap();
    fs::write(here.path().join("src/run.sh"), "#!/bin/sh\necho ran\n").unwrap();
    let script = here.path().join("src/run.sh");
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    symlink("deep/a.txt", here.path().join("src/link")).unwrap();

    ok(&cp("src", "one:"));
    ok(&cp("src/.", "one:/tmp"));
    ok(&cp("src/run.sh", "one:renamed.sh"));
    let inside = "./src/run.sh; cat src/link /tmp/deep/a.txt; ./renamed.sh; stat -c %U src/run.sh";
    let said = host.shell("one", inside);
    assert_eq!(said.out, "ran\naaran\nagent\n", "{said}");

    // Out again: under its name, as a new name, its content, one file.
    ok(&cp("one:src", "."));
    fs::remove_dir_all(here.path().join("src")).unwrap();
    ok(&cp("one:src", "."));
    ok(&cp("one:src", "copy"));
    fs::create_dir(here.path().join("content")).unwrap();
    ok(&cp("one:src/.", "content"));
    ok(&cp("one:/workspace/src/run.sh", "content"));
    for place in ["src", "copy", "content"] {
        let folder = here.path().join(place);
        assert_eq!(fs::read_to_string(folder.join("link")).unwrap(), "a");
        let about = fs::metadata(folder.join("run.sh")).unwrap();
        assert_eq!(about.mode() & 0o777, 0o755, "{place}");
        assert_eq!(about.uid(), rustix::process::geteuid().as_raw());
    }
    // As a tar, both ways, with a tar of others.
    let tar = in_folder(&host, here.path(), &["cp", "one:src", "-"]);
    ok(&tar);
    let mut back = host
        .program(&["cp", "-", "one:/tmp"])
        .input(tar.out.as_bytes());
    back.command.current_dir(here.path());
    ok(&back.run());
    assert_eq!(host.shell("one", "cat /tmp/src/deep/a.txt").out, "a");

    // What does not work is told, with the reason the box has.
    let missing = cp("one:none", ".");
    missing.assert_code(1);
    assert!(missing.err.contains("could not read `none`"), "{missing}");
    let denied = cp("src/run.sh", "one:/etc/x");
    denied.assert_code(1);
    assert!(denied.err.contains("Read-only file system"), "{denied}");
    let folder_over_file = cp("one:src", "content/run.sh");
    folder_over_file.assert_code(1);
}

#[test]
fn a_stopped_box_is_started_for_a_copy_and_that_is_said() {
    let host = TestHost::new();
    host.ok(&["new", "one"]);
    host.shell("one", "echo kept > file").assert_code(0);
    host.ok(&["stop", "one"]);
    let here = tempfile::tempdir().unwrap();
    let said = in_folder(&host, here.path(), &["cp", "one:file", "."]);
    ok(&said);
    assert!(
        said.err.contains("box `one` is stopped: starting it"),
        "{said}"
    );
    assert_eq!(
        fs::read_to_string(here.path().join("file")).unwrap(),
        "kept\n"
    );
}

/// The agent's uid may trace the tool that packs for its owner, so what comes is whatever it likes.
/// Here that is played by a stand-in for the tool, mounted by nobody: the box's own answer.
#[test]
fn a_path_leads_nowhere_but_into_the_box() {
    let host = TestHost::new();
    host.ok(&["new", "one"]);
    let here = tempfile::tempdir().unwrap();
    let secret = tempfile::NamedTempFile::new().unwrap();
    fs::write(secret.path(), "the host's own").unwrap();
    let path = secret.path().to_str().unwrap();
    // A link to a file that is there on the machine and not in the box.
    host.shell(
        "one",
        &format!("ln -s {path} link; ln -s / root; echo ours > ours"),
    )
    .assert_code(0);
    let cp = |from: &str, to: &str| in_folder(&host, here.path(), &["cp", from, to]);
    let through = cp("one:link", "stolen");
    through.assert_code(1);
    assert!(!here.path().join("stolen").exists(), "{through}");
    let up = cp(&format!("one:root/../../../../..{path}"), "stolen");
    up.assert_code(1);
    assert!(!here.path().join("stolen").exists());
    // In: through a link of the box it ends in the box.
    fs::write(here.path().join("mine"), "mine").unwrap();
    cp("mine", "one:root/tmp/x").assert_code(0);
    assert_eq!(host.shell("one", "cat /tmp/x").out, "mine");
    assert!(!Path::new("/tmp/x").exists());
    // The control: what is there comes.
    ok(&cp("one:ours", "ours"));
    // A whole tree with links that lead out: they stay behind, the rest comes.
    let tree = cp("one:.", "tree");
    ok(&tree);
    assert!(tree.err.contains("2 left out"), "{tree}");
    assert!(fs::symlink_metadata(here.path().join("tree/link")).is_err());
    assert!(here.path().join("tree/ours").exists());
}

#[test]
fn a_tree_that_changes_under_the_copy_harms_nobody() {
    let host = TestHost::new();
    host.ok(&["new", "one"]);
    // Swaps a folder and a link to `/etc` as fast as it can, beside names that could steer a
    // terminal, and things no copy has.
    let race = "mkdir -p t/a t/b; echo x > t/a/passwd; mkfifo t/fifo; touch \"$(printf 't/\\033[31m\\nred')\"
        python3 - <<'END' &
import os
while not os.path.exists('stop'):
    os.rename('t/a', 't/c'); os.symlink('/etc', 't/a')
    os.unlink('t/a'); os.rename('t/c', 't/a')
END
        for n in $(seq 200); do :; done";
    let begun = host.run(&[
        "exec",
        "--detach",
        "--name",
        "race",
        "one",
        "--",
        "sh",
        "-c",
        &format!("{race}; wait"),
    ]);
    begun.assert_code(0);
    let here = tempfile::tempdir().unwrap();
    for round in 0..10 {
        let to = format!("round-{round}");
        let said = in_folder(&host, here.path(), &["cp", "one:t", &to]);
        assert!(said.code == 0 || said.code == 1, "{said}");
        assert!(!said.err.contains('\u{1b}'), "{said}");
        let passwd = here.path().join(&to).join("a/passwd");
        if let Ok(text) = fs::read_to_string(&passwd) {
            assert!(
                !text.contains("root:"),
                "round {round} brought a file of /etc by a link"
            );
        }
        let link = fs::symlink_metadata(here.path().join(&to).join("a"));
        assert!(
            link.is_err() || link.unwrap().is_dir(),
            "a link that leads out came"
        );
    }
    host.shell("one", "touch stop").assert_code(0);
}
