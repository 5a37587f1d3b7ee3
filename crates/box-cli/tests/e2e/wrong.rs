//! Wrong input through the real product, each with its exact message.

use super::archive::{self, Entry};
use super::host::{Start, TestHost};
use box_fakes::rig::private_mounts;
use std::fs;
use std::path::{Path, PathBuf};

/// Exit code and message, with the test's own folders named.
#[track_caller]
fn refused(host: &TestHost, arguments: &[&str]) -> String {
    let said = host.run(arguments);
    assert_ne!(said.code, 0, "{said}");
    let named = said
        .told()
        .replace(&host.data().display().to_string(), "<data>");
    let named = named.replace(&archives(host).display().to_string(), "<archives>");
    format!("exit {}\n{}", said.code, named.trim_end())
}

/// Where the test's archives lie.
fn archives(host: &TestHost) -> PathBuf {
    host.run_dir().with_file_name("home")
}

/// Tries to use an archive of these members as an image.
#[track_caller]
fn image_of(host: &TestHost, name: &str, entries: &[Entry<'_>]) -> String {
    let path = archives(host).join(name);
    archive::write(&path, entries);
    refused(
        host,
        &["image", "prepare", &format!("file:{}", path.display())],
    )
}

#[test]
fn wrong_words_are_refused_with_what_would_be_right() {
    let host = TestHost::new();
    let refused = |arguments: &[&str]| refused(&host, arguments);
    insta::assert_snapshot!(refused(&["info", "nobody"]), @r"
    exit 1
    error: there is no box `nobody`
    hint: make it with `box new nobody`
    ");
    insta::assert_snapshot!(refused(&["new", "Bad_Name"]), @r"
    exit 2
    error: `Bad_Name` does not work for `NAME`
    cause: a box name starts with a letter a-z, then letters, digits and `-`, 63 at most
    hint: `box new --help` shows examples
    ");
    insta::assert_snapshot!(refused(&["new", "all"]), @r"
    exit 2
    error: `all` does not work for `NAME`
    cause: `all` stands for every box and cannot name one
    hint: `box new --help` shows examples
    ");
    host.ok(&["new", "taken"]);
    insta::assert_snapshot!(refused(&["new", "taken"]), @r"
    exit 1
    error: there is a box `taken` already
    hint: choose another name, or remove that box with `box rm taken`
    ");
    insta::assert_snapshot!(refused(&["info", "takn"]), @r"
    exit 1
    error: there is no box `takn`
    hint: did you mean `taken`?
    ");
    insta::assert_snapshot!(refused(&["run", "clade", "hello"]), @r"
    exit 2
    error: there is no agent `clade`
    hint: did you mean `claude`? agents here: `claude`, `codex`, `opencode`, `gemini`, `grok`, `kimi`, `copilot`, `qwen`, `demo`
    ");
    insta::assert_snapshot!(refused(&["run", "claude", "hello"]), @r#"
    exit 1
    error: there is no credential for `claude`
    hint: add one with `box credential add claude`, or see it work without: `box run demo "hello"`
    "#);
    insta::assert_snapshot!(refused(&["exec", "taken", "--", "no-such-program"]), @r"
    exit 127
    box: could not run `no-such-program`: not found
    ");
    insta::assert_snapshot!(refused(&["nwe", "x"]), @r"
    exit 2
    error: there is no verb `nwe`
    hint: did you mean `new`?
    ");
    let credential = host
        .program(&["credential", "add", "claude"])
        .input(b"hunter2\n")
        .run();
    assert_ne!(credential.code, 0);
    assert!(!credential.err.contains("hunter2"), "{credential}");
    insta::assert_snapshot!(credential.err.trim_end(), @r"
    error: could not use the secret for `claude`
    cause: it does not begin as one does: `sk-ant-oat01-…` or `sk-ant-oat…` or `sk-ant-api03-…` or `sk-ant-api…`
    hint: paste the whole token, and only it
    ");
}

#[test]
fn images_that_are_not_there_are_refused() {
    let host = TestHost::with(Start::Bare);
    let refused = |arguments: &[&str]| refused(&host, arguments);
    insta::assert_snapshot!(refused(&["image", "prepare", "file:/nowhere.tar"]), @r"
    exit 2
    error: there is no image file `/nowhere.tar`
    cause: No such file or directory (os error 2)
    hint: `file:` takes a tar of a root file system, or what `docker save` writes
    ");
    insta::assert_snapshot!(refused(&["image", "prepare", "floppy:a"]), @r"
    exit 1
    error: could not get the image `floppy:a` ready
    cause: there is no image `floppy:a`
    hint: images are `default`, `debian:<suite>` such as `debian:trixie`, `oci:<name>` such as `oci:alpine`, and `file:<archive>`
    ");
    insta::assert_snapshot!(refused(&["new", "one", "--image", "file:/nowhere.tar"]), @r"
    exit 2
    error: there is no image file `/nowhere.tar`
    cause: No such file or directory (os error 2)
    hint: `file:` takes a tar of a root file system, or what `docker save` writes
    ");
    insta::assert_snapshot!(refused(&["image", "rm", "debian:trixie"]), @r"
    exit 1
    error: there is no image `debian:trixie`
    hint: there is none yet; the first box makes one
    ");
}

#[test]
fn archives_that_could_escape_are_refused() {
    let host = TestHost::with(Start::Bare);
    let image = |name: &str, entries: &[Entry<'_>]| image_of(&host, name, entries);
    let outside = archives(&host).join("outside");
    insta::assert_snapshot!(image("parent.tar", &[Entry::file("../outside", 1)]), @r"
    exit 1
    error: could not get the image `file:<archives>/parent.tar` ready
    cause: could not prepare image `file:<archives>/parent.tar`: entry `../outside` has `..` in its name
    hint: nothing of it was kept
    ");
    insta::assert_snapshot!(image("deep.tar", &[Entry::file("a/../../outside", 1)]), @r"
    exit 1
    error: could not get the image `file:<archives>/deep.tar` ready
    cause: could not prepare image `file:<archives>/deep.tar`: entry `a/../../outside` has `..` in its name
    hint: nothing of it was kept
    ");
    insta::assert_snapshot!(image("absolute.tar", &[Entry::file("/outside", 1)]), @r"
    exit 1
    error: could not get the image `file:<archives>/absolute.tar` ready
    cause: could not prepare image `file:<archives>/absolute.tar`: entry `/outside` has an absolute name
    hint: nothing of it was kept
    ");
    let hard = [Entry::link("shadow", b'1', "/etc/shadow")];
    insta::assert_snapshot!(image("hard.tar", &hard), @r"
    exit 1
    error: could not get the image `file:<archives>/hard.tar` ready
    cause: could not prepare image `file:<archives>/hard.tar`: entry `shadow` is a hard link to a file that has an absolute name
    hint: nothing of it was kept
    ");
    let through = [
        Entry::link("door", b'2', "/tmp"),
        Entry::file("door/outside", 1),
    ];
    insta::assert_snapshot!(image("through.tar", &through), @r"
    exit 1
    error: could not get the image `file:<archives>/through.tar` ready
    cause: could not prepare image `file:<archives>/through.tar`: entry `door/outside` lies behind a link
    hint: nothing of it was kept
    ");
    insta::assert_snapshot!(image("device.tar", &[Entry::link("null", b'3', "")]), @r"
    exit 1
    error: could not get the image `file:<archives>/device.tar` ready
    cause: could not prepare image `file:<archives>/device.tar`: entry `null` is a device node
    hint: nothing of it was kept
    ");
    assert!(
        !outside.exists() && !Path::new("/outside").exists() && !Path::new("/tmp/outside").exists()
    );
    assert_eq!(host.ok(&["image", "list", "--json"]).trim(), "[]");
    assert_nothing_half_done(&host);
    // The control: an honest archive of the same shape is an image.
    let honest = archives(&host).join("honest.tar");
    let members = [
        Entry::folder("bin/"),
        Entry::file("bin/sh", 1),
        Entry::link("sh", b'2', "/bin/sh"),
    ];
    archive::write(&honest, &members);
    host.ok(&["image", "prepare", &format!("file:{}", honest.display())]);
}

#[test]
fn a_damaged_archive_is_refused() {
    let host = TestHost::with(Start::Bare);
    let cut = archives(&host).join("cut.tar");
    archive::write(&cut, &[Entry::file("f", 1 << 20)]);
    fs::File::options()
        .write(true)
        .open(&cut)
        .unwrap()
        .set_len(1 << 19)
        .unwrap();
    let cut = format!("file:{}", cut.display());
    insta::assert_snapshot!(refused(&host, &["image", "prepare", &cut]), @r"
    exit 1
    error: could not get the image `file:<archives>/cut.tar` ready
    cause: could not prepare image `file:<archives>/cut.tar`: it is damaged at byte 524288: it ends inside an entry
    hint: nothing of it was kept
    ");
    assert_nothing_half_done(&host);
}

#[test]
fn a_full_disk_while_unpacking_is_told_and_cleaned_up() {
    let host = TestHost::with(Start::Bare);
    private_mounts().unwrap();
    let flags = rustix::mount::MountFlags::empty();
    rustix::mount::mount(
        "none",
        host.data(),
        "tmpfs",
        flags,
        Some(c"size=64m,mode=755"),
    )
    .unwrap();
    let said = image_of(
        &host,
        "big.tar",
        &[Entry::folder("bin/"), Entry::file("bin/big", 80 << 20)],
    );
    insta::assert_snapshot!(said, @r"
    exit 125
    error: could not get the image `file:<archives>/big.tar` ready
    cause: could not prepare image `file:<archives>/big.tar`: the disk is full at entry `bin/big`
    ");
    assert_nothing_half_done(&host);
    let small = archives(&host).join("small.tar");
    archive::write(
        &small,
        &[Entry::folder("bin/"), Entry::file("bin/sh", 20 << 20)],
    );
    host.ok(&["image", "prepare", &format!("file:{}", small.display())]);
}

/// No image, no part of one, and nothing that was on its way there.
#[track_caller]
fn assert_nothing_half_done(host: &TestHost) {
    let names = |folder: &str| {
        let entries = fs::read_dir(host.data().join(folder))
            .into_iter()
            .flatten()
            .flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names
            .filter(|name| !name.ends_with("lock"))
            .collect::<Vec<_>>()
    };
    assert_eq!(names("tmp"), Vec::<String>::new());
    assert_eq!(names("images/refs"), Vec::<String>::new());
    assert_eq!(names("images"), ["refs"]);
}
