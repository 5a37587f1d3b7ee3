//! Names, the envelope, and the script that writes, in the shell it is for.

use super::*;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

#[test]
fn a_name_is_harmless_and_keeps_its_extension() {
    for (given, clean) in [
        ("shot.png", "shot.png"),
        ("/home/me/a b  c.txt", "a_b_c.txt"),
        ("../../etc/passwd", "passwd"),
        (".bashrc", "bashrc"),
        ("-rf.txt", "rf.txt"),
        ("größe.PDF", "größe.PDF"),
        ("a\nb.md", "a_b.md"),
        ("</attachments>", "attachments_"),
        ("…", "attachment"),
        ("..", "attachment"),
    ] {
        assert_eq!(clean_name(given), clean, "{given:?}");
        assert_eq!(clean_name(clean), clean, "{clean:?} again");
    }
    let long = clean_name(&format!("{}.jpeg", "x".repeat(300)));
    assert_eq!(long.chars().count(), 100);
    assert!(long.ends_with("x.jpeg"), "{long}");
}

#[test]
fn what_cannot_be_attached_is_told_before_a_byte_is_read() {
    assert!(matches!(check("", 1), Err(AttachmentError::Nameless)));
    assert!(matches!(check("a/", 1), Err(AttachmentError::Nameless)));
    assert!(matches!(
        check("a.txt", 0),
        Err(AttachmentError::Empty { .. })
    ));
    check("a.txt", ATTACHMENT_BYTES_MAX).unwrap();
    let error = check("a.txt", ATTACHMENT_BYTES_MAX + 1).unwrap_err();
    assert_eq!(error.to_string(), "`a.txt` is larger than 25 MiB");
}

#[test]
fn a_prompt_names_its_files_and_carries_none() {
    assert_eq!(envelope(&[], "go"), "go");
    let attached = Attached {
        path: "/workspace/.box/attachments/shot.png".to_owned(),
        media_type: media_type("shot.png").to_owned(),
        bytes: 7,
    };
    assert_eq!(
        envelope(&[attached], "what is wrong here?"),
        "<attachments>\n- /workspace/.box/attachments/shot.png (image/png, 7 bytes)\n\
         </attachments>\n\nwhat is wrong here?"
    );
}

#[expect(
    clippy::disallowed_methods,
    reason = "the script's own shell, as a box has it"
)]
fn shell(script: &str, workspace: &Path, args: &[&str], content: &[u8]) -> (Option<i32>, Vec<u8>) {
    let mut child = std::process::Command::new("sh")
        .args(["-c", script, "sh", FOLDER])
        .args(args)
        .current_dir(workspace)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // A script that ends early reads nothing.
    drop(child.stdin.take().unwrap().write_all(content));
    let done = child.wait_with_output().unwrap();
    (done.status.code(), done.stdout)
}

#[test]
fn files_of_one_name_get_numbers_and_git_sees_none_of_them() {
    let workspace = tempfile::tempdir().unwrap();
    let write = |content: &[u8]| shell(WRITE, workspace.path(), &["a", ".txt"], content);
    assert_eq!(write(b"one"), (Some(0), b"a.txt".to_vec()));
    assert_eq!(write(b"two"), (Some(0), b"a-2.txt".to_vec()));
    let folder = workspace.path().join(FOLDER);
    assert_eq!(std::fs::read(folder.join("a.txt")).unwrap(), b"one");
    assert_eq!(std::fs::read(folder.join("a-2.txt")).unwrap(), b"two");
    assert_eq!(std::fs::read(folder.join(".gitignore")).unwrap(), b"*\n");
    for number in 3..=100 {
        std::fs::write(folder.join(format!("a-{number}.txt")), "x").unwrap();
    }
    assert_eq!(write(b"more").0, Some(NAMES_TAKEN));
    let read = |name: &str| shell(READ, workspace.path(), &[name], b"");
    assert_eq!(read("a-2.txt"), (Some(0), b"two".to_vec()));
    assert_eq!(read("b.txt").0, Some(NOT_THERE));
}

#[test]
fn a_gitignore_that_is_there_is_its_owners() {
    let workspace = tempfile::tempdir().unwrap();
    let folder = workspace.path().join(FOLDER);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(".gitignore"), "mine").unwrap();
    assert_eq!(shell(WRITE, workspace.path(), &["a", ""], b"x").0, Some(0));
    assert_eq!(std::fs::read(folder.join(".gitignore")).unwrap(), b"mine");
    // Where nothing can be written it fails and does not look for a name for ever.
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::write(&folder, "a file").unwrap();
    assert_eq!(shell(WRITE, workspace.path(), &["a", ""], b"x").0, Some(1));
}
