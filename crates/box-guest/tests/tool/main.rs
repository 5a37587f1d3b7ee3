//! box-tool as a program: what it packs, where it unpacks, how it relays.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test starts programs, and one that cannot go on fails"
)]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};

const TOOL: &str = env!("CARGO_BIN_EXE_box-tool");

fn tool(words: &[&str], folder: &Path, input: &[u8]) -> Output {
    let mut child = Command::new(TOOL)
        .args(words)
        .current_dir(folder)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let feed = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    feed.join().unwrap();
    output
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
fn ok(output: Output) -> Vec<u8> {
    assert!(output.status.success(), "{}", words(&output));
    output.stdout
}

/// A folder with everything a folder can have.
fn sample() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path().join("top");
    fs::create_dir_all(top.join("sub/empty")).unwrap();
    fs::write(top.join("sub/script"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(top.join("sub/script"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(top.join("with\nnewline"), "odd").unwrap();
    symlink("sub/script", top.join("link")).unwrap();
    symlink("/nowhere", top.join("dangling")).unwrap();
    folder
}

/// Names, kinds and contents below a folder, as text.
fn tree(folder: &Path) -> String {
    let mut lines = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(place) = folders.pop() {
        for entry in fs::read_dir(&place).unwrap().flatten() {
            let path = entry.path();
            let about = fs::symlink_metadata(&path).unwrap();
            let what = if about.is_dir() {
                folders.push(path.clone());
                "folder".to_owned()
            } else if about.is_symlink() {
                format!("-> {}", fs::read_link(&path).unwrap().display())
            } else {
                let mode = about.mode() & 0o777;
                format!("{mode:o} {:?}", fs::read_to_string(&path).unwrap())
            };
            let name = path.strip_prefix(folder).unwrap().display().to_string();
            lines.push(format!("{name:?} {what}"));
        }
    }
    lines.sort();
    lines.join("\n")
}

#[test]
fn a_folder_comes_out_as_it_went_in() {
    let from = sample();
    let stream = ok(tool(&["pack", "top"], from.path(), b""));
    let to = tempfile::tempdir().unwrap();
    ok(tool(&["unpack", "new", "top"], to.path(), &stream));
    assert_eq!(tree(&to.path().join("new")), tree(&from.path().join("top")));
    // Again, into the folder that is there now; and what is in it, over it.
    ok(tool(&["unpack", "new", "top"], to.path(), &stream));
    assert!(to.path().join("new/top/sub/script").exists());
    fs::write(to.path().join("new/sub/script"), "changed").unwrap();
    ok(tool(
        &["unpack", "new", "top", "--content"],
        to.path(),
        &stream,
    ));
    let script = fs::read_to_string(to.path().join("new/sub/script")).unwrap();
    assert_eq!(script, "#!/bin/sh\n");
}

#[test]
fn a_file_goes_where_it_is_sent() {
    let from = sample();
    let stream = ok(tool(&["pack", "top/sub/script"], from.path(), b""));
    let to = tempfile::tempdir().unwrap();
    fs::create_dir(to.path().join("bin")).unwrap();
    ok(tool(&["unpack", "new", "script"], to.path(), &stream));
    ok(tool(&["unpack", "bin", "script"], to.path(), &stream));
    for place in ["new", "bin/script"] {
        let path = to.path().join(place);
        assert_eq!(fs::read_to_string(&path).unwrap(), "#!/bin/sh\n");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o755);
    }
    let slash = tool(&["unpack", "none/", "script"], to.path(), &stream);
    assert_eq!(
        words(&slash),
        "box-tool: could not copy to `none/`: the destination ends with `/` and is no folder\n"
    );
    // Nothing is left beside a file that could not be put there.
    fs::create_dir_all(to.path().join("bin/folder/script")).unwrap();
    let taken = tool(&["unpack", "bin/folder", "script"], to.path(), &stream);
    assert!(
        words(&taken).contains("it is a folder"),
        "{}",
        words(&taken)
    );
    assert_eq!(tree(&to.path().join("bin/folder")), "\"script\" folder");
}

#[test]
fn nothing_is_unpacked_through_a_link_below_the_target() {
    let outside = tempfile::tempdir().unwrap();
    let from = sample();
    let stream = ok(tool(&["pack", "top"], from.path(), b""));
    let to = tempfile::tempdir().unwrap();
    fs::create_dir(to.path().join("new")).unwrap();
    symlink(outside.path(), to.path().join("new/sub")).unwrap();
    let through = tool(&["unpack", "new", "top", "--content"], to.path(), &stream);
    assert!(!through.status.success());
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    // The control: a folder in its place takes it.
    fs::remove_file(to.path().join("new/sub")).unwrap();
    ok(tool(
        &["unpack", "new", "top", "--content"],
        to.path(),
        &stream,
    ));
}

#[test]
fn a_tar_of_others_is_taken_and_ours_is_one() {
    let from = sample();
    let tar = Command::new("tar")
        .args(["c", "top"])
        .current_dir(from.path())
        .output()
        .unwrap();
    let to = tempfile::tempdir().unwrap();
    ok(tool(&["unpack", "--plain", "."], to.path(), &tar.stdout));
    assert_eq!(tree(to.path()), tree(from.path()));
    let ours = ok(tool(&["pack", "--plain", "top"], to.path(), b""));
    let other = tempfile::tempdir().unwrap();
    let mut child = Command::new("tar")
        .arg("x")
        .current_dir(other.path())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&ours).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(tree(other.path()), tree(from.path()));
    let evil = Command::new("tar")
        .args(["c", "-P", "--transform", "s,^top,../evil,", "top"])
        .current_dir(from.path())
        .output()
        .unwrap();
    let refused = tool(&["unpack", "--plain", "."], to.path(), &evil.stdout);
    assert!(words(&refused).contains("leads out"), "{}", words(&refused));
}

#[test]
fn a_wrong_call_and_a_missing_source_are_told() {
    let folder = tempfile::tempdir().unwrap();
    for wrong in [&["pack"][..], &["dial", "x"], &["unpack", "a"], &[]] {
        assert_eq!(tool(wrong, folder.path(), b"").status.code(), Some(2));
    }
    let missing = tool(&["pack", "none"], folder.path(), b"");
    assert_eq!(missing.status.code(), Some(1));
    assert_eq!(
        words(&missing),
        "box-tool: could not read `none`: No such file or directory (os error 2)\n"
    );
}

#[test]
fn each_half_of_a_dialled_connection_ends_by_itself() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port().to_string();
    let answering = std::thread::spawn(move || {
        let (mut connection, _): (TcpStream, _) = server.accept().unwrap();
        let mut heard = String::new();
        connection.read_to_string(&mut heard).unwrap();
        connection
            .write_all(heard.to_uppercase().as_bytes())
            .unwrap();
        connection.shutdown(Shutdown::Write).unwrap();
    });
    let folder = tempfile::tempdir().unwrap();
    let said = ok(tool(&["dial", &port], folder.path(), b"hello"));
    assert_eq!(said, b"HELLO");
    answering.join().unwrap();
    let refused = tool(&["dial", &port], folder.path(), b"");
    assert!(
        words(&refused).contains("could not reach port"),
        "{}",
        words(&refused)
    );
}

#[test]
fn processes_are_listed_a_line_each() {
    let folder = tempfile::tempdir().unwrap();
    let said = ok(tool(&["ps"], folder.path(), b""));
    let own = format!("\"pid\":{},", std::process::id());
    assert!(String::from_utf8(said).unwrap().contains(&own));
}
