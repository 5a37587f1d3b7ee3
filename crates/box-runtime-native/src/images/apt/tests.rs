//! Tests of reading apt's configuration.

use super::*;

const DEB822: &str = "\
Types: deb deb-src
# a comment
URIs: http://mirror.test/debian
Suites: bookworm bookworm-updates bookworm-backports
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.test/debian-security
Suites: bookworm-security
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
";

fn configured(files: &[(&str, &str)]) -> Vec<Source> {
    let etc = tempfile::tempdir().unwrap();
    std::fs::create_dir(etc.path().join("sources.list.d")).unwrap();
    for (name, text) in files {
        std::fs::write(etc.path().join(name), text).unwrap();
    }
    sources(etc.path())
}

#[test]
fn another_suite_comes_from_the_same_mirror_with_updates_and_security() {
    let sources = configured(&[("sources.list.d/debian.sources", DEB822)]);
    assert_eq!(
        for_suite(&sources, "trixie").unwrap(),
        "Types: deb\n\
         URIs: http://mirror.test/debian\n\
         Suites: trixie trixie-updates\n\
         Components: main\n\
         Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n\
         \n\
         Types: deb\n\
         URIs: http://mirror.test/debian-security\n\
         Suites: trixie-security\n\
         Components: main\n\
         Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
    );
    let sid = for_suite(&sources, "sid").unwrap();
    assert!(
        sid.contains("Suites: sid\n") && !sid.contains("security"),
        "{sid}"
    );
}

#[test]
fn the_one_line_form_means_the_same() {
    let list = "\
# deb http://old.test/debian buster main
deb http://mirror.test/debian bookworm main contrib # here
deb http://mirror.test/debian bookworm-updates main contrib
deb-src http://mirror.test/debian bookworm main contrib
deb [arch=amd64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://mirror.test/debian-security bookworm-security main
";
    let sources = configured(&[("sources.list", list)]);
    assert_eq!(
        for_suite(&sources, "trixie").unwrap(),
        "Types: deb\n\
         URIs: http://mirror.test/debian\n\
         Suites: trixie trixie-updates\n\
         Components: main\n\
         \n\
         Types: deb\n\
         URIs: http://mirror.test/debian-security\n\
         Suites: trixie-security\n\
         Components: main\n\
         Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
    );
}

#[test]
fn other_packagers_repositories_are_not_taken_for_debian() {
    let others = configured(&[
        (
            "sources.list.d/node.sources",
            "Types: deb\nURIs: http://node.test/node_20.x\nSuites: nodistro\nComponents: main\nSigned-By: /usr/share/keyrings/node.gpg\n",
        ),
        (
            "sources.list.d/a.list",
            "deb http://tools.test/apt tools-bookworm main\ndeb http://x.test/debian bookworm stable\n",
        ),
        (
            "sources.list.d/off.sources",
            format!(
                "Enabled: no
{DEB822}"
            )
            .split(
                "

",
            )
            .next()
            .unwrap(),
        ),
        ("sources.list.d/debian.sources.bak", DEB822),
    ]);
    assert_eq!(for_suite(&others, "trixie"), None);
    assert_eq!(for_suite(&configured(&[]), "trixie"), None);
}
