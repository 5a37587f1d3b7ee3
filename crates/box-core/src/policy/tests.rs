//! What `balanced` stands for.

use super::*;
use box_api::control::{BoxSettings, BoxState, Limits, Profile};
use box_api::{BoxId, BoxName, Owner};
use std::ffi::OsString;
use std::path::Path;

/// A machine with one file of each kind, and a variable.
fn machine(root: &Path) -> Machine {
    let write = |path: &str, text: &str| {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(
        "home/.npmrc",
        "audit=false\nregistry=https://npm.example.com/repo/\n\
                          @corp:registry = \"https://npm.corp.example:8443/\"\n",
    );
    write(
        "etc/pip.conf",
        "[global]\nindex-url = https://user:pw@pypi.example.com/simple\n\
                           extra-index-url =\n    https://one.example.com/simple\n    https://two.example.com\n\
                           timeout = 5\n",
    );
    write(
        "home/.cargo/config.toml",
        "[registries.corp]\nindex = \"sparse+https://crates.example.com/\"\n\
                                      [source.mirror]\nregistry = \"https://mirror.example.com/git\"\n",
    );
    write(
        "etc/apt/sources.list",
        "# deb http://old.example.com x\ndeb [signed-by=/a] http://deb.example.com/debian trixie main\n",
    );
    write(
        "etc/apt/sources.list.d/a.sources",
        "Types: deb\nURIs: http://sec.example.com/s https://b.example.com\n\n\
                                               Enabled: no\nURIs: http://off.example.com\n",
    );
    write(
        "etc/apt/sources.list.d/off.list.disabled",
        "deb http://ignored.example.com x main\n",
    );
    let home = OsString::from(root.join("home"));
    Machine::at(root, &move |name| match name {
        "HOME" => Some(home.clone()),
        "UV_INDEX_URL" => Some("https://uv.example.com".into()),
        _ => None,
    })
}

#[test]
fn balanced_has_the_registries_the_clients_are_configured_for_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let hosts: Vec<String> = machine(folder.path())
        .registries()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        hosts,
        [
            "npm.example.com",
            "npm.corp.example:8443",
            "uv.example.com",
            "pypi.example.com",
            "one.example.com",
            "two.example.com",
            "crates.example.com",
            "mirror.example.com",
            "deb.example.com",
            "sec.example.com",
            "b.example.com",
        ]
    );
    assert!(
        Machine::at(folder.path().join("none").as_path(), &|_| None)
            .registries()
            .is_empty()
    );
}

#[test]
fn a_client_without_settings_says_itself_what_it_uses() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let write = |path: &str, text: &str| {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(
        "usr/lib/node_modules/npm/node_modules/@npmcli/config/lib/definitions/definitions.js",
        "  before: new Definition('before', {\n    default: null,\n  }),\n\
         registry: new Definition('registry', {\n    default: 'https://npm.example.org/',\n",
    );
    write(
        "usr/lib/python3/dist-packages/pip/_internal/models/index.py",
        "class PackageIndex:\n    pass\n\n\nPyPI = PackageIndex(\n    \"https://py.example.org/\", \
         file_storage_domain=\"files.example.org\"\n)\n",
    );
    write(
        "home/.cargo/registry/index/index.example.org-0123456789abcdef/config.json",
        "{\"dl\": \"https://static.example.org/crates\"}",
    );
    let home = OsString::from(root.join("home"));
    let variable = move |name: &str| (name == "HOME").then(|| home.clone());
    let hosts = || -> Vec<String> {
        Machine::at(root, &variable)
            .registries()
            .iter()
            .map(ToString::to_string)
            .collect()
    };
    assert_eq!(
        hosts(),
        [
            "npm.example.org",
            "py.example.org",
            "files.example.org",
            "index.example.org",
            "static.example.org",
        ]
    );
    // Settings take the place of a default.
    write("home/.npmrc", "registry=https://npm.corp.example/\n");
    write(
        "etc/pip.conf",
        "[global]\nindex-url = https://py.corp.example/simple\n",
    );
    let mirror = "[source.crates-io]\nreplace-with = \"corp\"\n\
                  [source.corp]\nregistry = \"sparse+https://cargo.corp.example/\"\n";
    write("home/.cargo/config.toml", mirror);
    assert_eq!(
        hosts(),
        ["npm.corp.example", "py.corp.example", "cargo.corp.example"]
    );
}

#[test]
fn balanced_has_the_forges_and_the_agents_hosts() {
    let hosts = balanced(&Machine::default());
    let has = |host: &str| hosts.contains(&HostPattern::parse(host).unwrap());
    for host in FORGES {
        assert!(has(host), "{host}");
    }
    for profile in agents::profiles() {
        assert!(
            profile.hosts.iter().all(|host| has(host)),
            "{}",
            profile.name
        );
    }
}

/// A box of the fixed kind these tests have no other use for.
fn record() -> BoxRecord {
    BoxRecord {
        id: BoxId::from_random([1; 10]),
        owner: Owner::Uid(0),
        name: BoxName::parse("demo").unwrap(),
        title: None,
        state: BoxState::Running,
        runtime: "native".to_owned(),
        image: "debian:trixie".to_owned(),
        image_digest: "sha256:abc".to_owned(),
        profile: Profile::Root,
        net: NetPreset::Open,
        limits: Limits::default(),
        allow: vec!["example.com".to_owned()],
        id_offset: 0,
        created_at_ms: 12,
        problem: None,
        settings: BoxSettings::default(),
        origin: None,
        trashed_at_ms: None,
    }
}

#[test]
fn denial_that_cannot_be_read_closes_the_box_and_is_named() {
    let settings = Settings::default();
    let (record, machine) = (record(), Machine::default());
    let rule = |ruling, entry: &str| Rule {
        entry: entry.to_owned(),
        ruling,
        box_id: None,
    };
    let of_rules = |rules: &[Rule]| {
        let own = Own {
            rules: rules.to_vec(),
            ..Own::default()
        };
        of_box(&record, &settings, &machine, own, Unlisted::Refuse)
    };
    // Controls: one that can be read, and one that only lets through.
    let fine = [
        rule(Ruling::Deny, "bad.example"),
        rule(Ruling::Allow, "from a newer build"),
    ];
    assert_eq!(levels(&record, &settings, &fine).unwrap().len(), 2);
    let policy = of_rules(&fine);
    assert_eq!((policy.deny.len(), policy.preset), (1, NetPreset::Open));
    assert!(policy.deny_networks.is_empty());

    let unread = [fine[0].clone(), rule(Ruling::Deny, "from a newer build")];
    let unknown = Unknown::Denial {
        entry: "from a newer build".to_owned(),
        from: "all boxes",
    };
    assert_eq!(levels(&record, &settings, &unread), Err(unknown));
    let policy = of_rules(&unread);
    assert_eq!((policy.preset, policy.allow.len()), (NetPreset::Locked, 0));
    for address in ["1.1.1.1", "192.0.2.1", "2606:4700::1111", "fd00::1"] {
        let address = address.parse().unwrap();
        let mut networks = policy.deny_networks.iter();
        assert!(networks.any(|own| own.contains(address)), "{address}");
    }
}
