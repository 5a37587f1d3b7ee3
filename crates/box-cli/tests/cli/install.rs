//! `box install` and `box uninstall` on a tree of the test's own: what comes is what goes.

use super::person::Person;
use super::program::Program;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Files and folders below, without the folder itself.
fn tree(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for entry in std::fs::read_dir(&at).unwrap() {
            let path = entry.unwrap().path();
            let shown = path.strip_prefix(folder).unwrap().display().to_string();
            if path.is_dir() {
                folders.push(path);
            }
            found.insert(shown);
        }
    }
    found
}

fn root(folder: &Path, arguments: &[&str]) -> Program {
    let place = ["--root", folder.to_str().unwrap()];
    Program::new(&[arguments, &place].concat())
}

#[test]
fn what_is_installed_runs_and_goes_again_without_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let said = root(folder.path(), &["install"]).run();
    said.assert_code(0);
    let program = folder.path().join("usr/local/bin/box");
    let mode = std::fs::metadata(&program).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o755);
    let installed = tree(folder.path());
    for file in [
        "etc/systemd/system/box.service",
        "usr/local/share/bash-completion/completions/box",
        "usr/local/share/zsh/site-functions/_box",
        "usr/local/share/fish/vendor_completions.d/box.fish",
        "usr/local/share/man/man1/box.1",
        "usr/local/share/man/man1/box-run.1",
    ] {
        assert!(installed.contains(file), "no `{file}` in {installed:?}");
    }
    let version = Program::other(program.to_str().unwrap(), &["--version"]).run();
    version.assert_code(0);
    // By the installed program itself, which removes its own file.
    let place = [
        "uninstall",
        "--force",
        "--root",
        folder.path().to_str().unwrap(),
    ];
    let said = Program::other(program.to_str().unwrap(), &place).run();
    said.assert_code(0);
    assert_eq!(tree(folder.path()), BTreeSet::new());
}

#[test]
fn what_was_there_before_stays_there() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("usr/local/share/man/man1/other.1");
    std::fs::create_dir_all(page.parent().unwrap()).unwrap();
    std::fs::write(&page, "").unwrap();
    let before = tree(folder.path());
    root(folder.path(), &["install"]).run().assert_code(0);
    // Once more: a newer build over an older one.
    root(folder.path(), &["install"]).run().assert_code(0);
    assert_ne!(tree(folder.path()), before);
    root(folder.path(), &["uninstall", "--force"])
        .run()
        .assert_code(0);
    assert_eq!(tree(folder.path()), before);
}

#[test]
fn files_an_older_version_had_go_with_the_next_install() {
    let folder = tempfile::tempdir().unwrap();
    root(folder.path(), &["install"]).run().assert_code(0);
    let old = "/usr/local/share/man/man1/box-old-verb.1";
    let place = folder.path().join(&old[1..]);
    std::fs::write(&place, "").unwrap();
    let list = folder.path().join("usr/local/share/box/installed");
    let text = std::fs::read_to_string(&list).unwrap();
    std::fs::write(&list, format!("{text}{old}\n")).unwrap();
    root(folder.path(), &["install"]).run().assert_code(0);
    assert!(!place.exists());
}

#[test]
fn asks_before_it_installs_and_before_it_removes() {
    let folder = tempfile::tempdir().unwrap();
    let mut person = Person::at(&root(folder.path(), &["install"]));
    person
        .sees("? [Y/n] ")
        .types("n\n")
        .sees("nothing was installed");
    assert_eq!(person.finish(), 1);
    assert_eq!(tree(folder.path()), BTreeSet::new());
    let mut person = Person::at(&root(folder.path(), &["install"]));
    person
        .sees("? [Y/n] ")
        .types("\n")
        .sees("files are installed");
    assert_eq!(person.finish(), 0);
    let installed = tree(folder.path());
    let mut person = Person::at(&root(folder.path(), &["uninstall"]));
    person
        .sees("? [y/N] ")
        .types("\n")
        .sees("nothing was removed");
    assert_eq!(person.finish(), 1);
    assert_eq!(tree(folder.path()), installed);
    let said = root(folder.path(), &["uninstall"]).run();
    said.assert_code(2);
    assert!(said.err.contains("box uninstall --force"), "{said:?}");
    assert_eq!(tree(folder.path()), installed);
}

#[test]
fn a_folder_that_cannot_be_written_is_named_with_what_helps() {
    let said = Program::new(&["install", "--yes", "--root", "/proc/self/fdinfo"]).run();
    said.assert_code(1);
    assert!(
        said.err.contains("could not install `/proc/self/fdinfo/"),
        "{said:?}"
    );
}
