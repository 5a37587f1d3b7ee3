//! The stores as their programs read them, and git with its rewriting.

use super::*;
use crate::egress::ca;
use crate::random::SystemRandom;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use rusqlite::Connection;
use std::os::unix::fs::MetadataExt as _;

struct World {
    _folder: tempfile::TempDir,
    paths: Paths,
    authority: Authority,
    roots: Roots,
}

fn world() -> World {
    let folder = tempfile::tempdir().unwrap();
    let paths = Paths::below(folder.path()).unwrap();
    fs::create_dir_all(paths.tmp()).unwrap();
    let other = tempfile::tempdir().unwrap();
    let elsewhere = Paths::below(other.path()).unwrap();
    fs::create_dir_all(elsewhere.tmp()).unwrap();
    let root = || {
        drop(fs::remove_dir_all(elsewhere.ca_dir()));
        ca::ensure(&elsewhere, &SystemRandom).unwrap().cert_pem
    };
    World {
        authority: ca::ensure(&paths, &SystemRandom).unwrap(),
        roots: Roots {
            system_pem: root() + &root(),
            extra_pem: root(),
        },
        _folder: folder,
        paths,
    }
}

#[test]
fn every_store_holds_what_its_programs_add_to_their_own() {
    let World {
        paths,
        authority,
        roots,
        _folder,
    } = world();
    write(&paths, &roots, &authority).unwrap();
    let bundle = fs::read_to_string(paths.bundle()).unwrap();
    let added = fs::read_to_string(paths.added_roots()).unwrap();
    assert_eq!(added, roots.extra_pem.clone() + &authority.cert_pem);
    assert_eq!(bundle, roots.system_pem.clone() + &added);
    assert!(!bundle.contains("PRIVATE"));

    let java = fs::read(paths.java_roots()).unwrap();
    let (content, hash) = java.split_at(java.len() - 20);
    let mut hashed = Vec::new();
    hashed.extend("changeit".encode_utf16().flat_map(u16::to_be_bytes));
    hashed.extend(b"Mighty Aphrodite");
    hashed.extend(content);
    let expected = digest(&SHA1_FOR_LEGACY_USE_ONLY, &hashed);
    assert_eq!(hash, expected.as_ref());
    let all = certificates(&bundle);
    assert_eq!((all.len(), java[11]), (4, 4));
    for der in &all {
        assert!(java.windows(der.len()).any(|window| window == der));
    }

    let nss = Connection::open(paths.nss_roots()).unwrap();
    let trusted = |der: &Der| -> u32 {
        nss.query_row(
            "SELECT count(*) FROM nssPublic c JOIN nssPublic t ON (c.a81, c.a82) = (t.a81, t.a82) \
             WHERE c.a11 = ?1 AND t.ace536358 = x'ce534352'",
            [der],
            |row| row.get(0),
        )
        .unwrap()
    };
    let added = certificates(&added);
    assert_eq!(added.iter().map(trusted).collect::<Vec<_>>(), [1, 1]);
    assert_eq!(
        trusted(&all[0]),
        0,
        "Chromium has the system's roots itself"
    );
}

#[test]
fn the_same_certificates_are_written_once_and_others_anew() {
    let mut world = world();
    let files = [
        world.paths.bundle(),
        world.paths.added_roots(),
        world.paths.java_roots(),
        world.paths.nss_roots(),
    ];
    let inodes = || {
        files
            .iter()
            .map(|path| fs::metadata(path).unwrap().ino())
            .collect::<Vec<_>>()
    };
    write(&world.paths, &world.roots, &world.authority).unwrap();
    let first = inodes();
    write(&world.paths, &world.roots, &world.authority).unwrap();
    assert_eq!(inodes(), first);
    // What an interrupted run left in the way does no harm.
    fs::write(world.paths.tmp().join("bundle.pem"), "half").unwrap();
    world.roots.extra_pem = String::new();
    write(&world.paths, &world.roots, &world.authority).unwrap();
    for (now, before) in inodes().iter().zip(&first) {
        assert_ne!(now, before);
    }
}

#[test]
fn git_reaches_forges_by_https_and_a_users_own_rule_wins() {
    let folder = tempfile::tempdir().unwrap();
    let ours = folder.path().join("ours");
    fs::write(&ours, git_config()).unwrap();
    let users = folder.path().join("users");
    fs::write(&users, "").unwrap();
    let resolved = |address: &str| {
        let mut git = git();
        git.args(["ls-remote", "--get-url", address])
            .current_dir(folder.path())
            .env("GIT_CONFIG_GLOBAL", &users)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_COUNT", "1")
            .env("GIT_CONFIG_KEY_0", "include.path")
            .env("GIT_CONFIG_VALUE_0", &ours);
        let said = git.output().unwrap();
        assert!(said.status.success(), "{said:?}");
        String::from_utf8(said.stdout).unwrap().trim().to_owned()
    };
    for from in [
        "git@github.com:a/b.git",
        "ssh://git@github.com/a/b.git",
        "ssh://git@github.com:22/a/b.git",
        "git://github.com/a/b.git",
    ] {
        assert_eq!(resolved(from), "https://github.com/a/b.git");
    }
    assert_eq!(resolved("git@git.sr.ht:~a/b"), "https://git.sr.ht/~a/b");
    for other in ["git@example.org:a/b.git", "https://github.com/a/b.git"] {
        assert_eq!(resolved(other), other);
    }
    fs::write(
        &users,
        "[url \"https://mirror.example/\"]\n\tinsteadOf = git@github.com:\n",
    )
    .unwrap();
    assert_eq!(
        resolved("git@github.com:a/b.git"),
        "https://mirror.example/a/b.git"
    );
}

#[test]
fn git_speaks_http_1_unless_it_is_told_otherwise_on_its_own_line() {
    let folder = tempfile::tempdir().unwrap();
    let ours = folder.path().join("ours");
    fs::write(&ours, git_config()).unwrap();
    let version = |args: &[&str]| {
        let mut git = git();
        git.args(args)
            .args(["config", "http.version"])
            .current_dir(folder.path())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_COUNT", "1")
            .env("GIT_CONFIG_KEY_0", "include.path")
            .env("GIT_CONFIG_VALUE_0", &ours);
        String::from_utf8(git.output().unwrap().stdout).unwrap()
    };
    assert_eq!(version(&[]), "HTTP/1.1\n");
    assert_eq!(version(&["-c", "http.version=HTTP/2"]), "HTTP/2\n");
}

#[expect(clippy::disallowed_methods, reason = "git itself judges its settings")]
fn git() -> std::process::Command {
    std::process::Command::new("git")
}
