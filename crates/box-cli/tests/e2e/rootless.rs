//! The whole product as an ordinary user, with subordinate ids and without.

use super::host::{PATIENCE, TestHost};
use super::leaks;
use super::program::Program;
use super::turn::claude_turn;
use box_drill::{Control, Outcome, ProbeReport, Report};
use box_fakes::{Account, Ids};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::time::Duration;

/// A bootstrap and its downloads.
const MAKING_DEADLINE: Duration = Duration::from_mins(10);
const DRILL_DEADLINE: Duration = Duration::from_mins(6);

#[test]
fn a_user_with_a_range_has_the_whole_product() {
    whole_product(Ids::Range);
}

#[test]
fn a_user_with_one_id_has_the_whole_product() {
    whole_product(Ids::Own);
}

fn whole_product(ids: Ids) {
    let host = TestHost::of_user(ids);
    let words = ["run", "demo", "show me", "--name", "demo", "--allow-all"];
    let said = host.program(&words).deadline(PATIENCE).run();
    said.assert_code(0);
    let info = host.ok(&["info", "demo"]);
    assert!(info.contains("best effort"), "{info}");
    assert_eq!(host.ok(&["exec", "demo", "--", "id", "-u"]), "1020\n");
    only_the_users_processes(&host, ids);

    host.ok(&["new", "web", "--profile", "root"]);
    let kept = |host: &TestHost| {
        let read = host.ok(&["exec", "web", "--", "cat", "/usr/local/kept"]);
        assert_eq!(read, "kept\n");
    };
    host.shell("web", "echo kept >/usr/local/kept")
        .assert_code(0);
    // A new host finds the boxes, in the namespace they were made from.
    let before = host.info("web").pid;
    host.kill();
    assert_eq!(host.info("web").pid, before);
    kept(&host);
    host.ok(&["stop", "web"]);
    host.ok(&["start", "web"]);
    kept(&host);
    package_is_installed(&host, ids);

    // A way out that died is replaced, by a host that did not make its sockets.
    let first = leaks::egress_of(&host.run_dir()).unwrap();
    host.kill();
    leaks::end_egress(&host.run_dir());
    assert_eq!(host.ok(&["exec", "demo", "--", "echo", "here"]), "here\n");
    assert_ne!(leaks::egress_of(&host.run_dir()), Some(first));
    host.ok(&["rm", "web", "--now", "--force"]);
    host.ok(&["rm", "demo", "--now", "--force"]);
    let boxes = fs::read_dir(host.data().join("boxes")).unwrap();
    assert_eq!(boxes.count(), 0);
}

#[test]
fn real_claude_does_a_turn_for_a_user_with_a_range() {
    claude_turn(&TestHost::of_user(Ids::Range));
}

#[test]
fn real_claude_does_a_turn_for_a_user_with_one_id() {
    claude_turn(&TestHost::of_user(Ids::Own));
}

/// Host, way out and boxes: nothing runs as root, and what is not the user's is of its range.
fn only_the_users_processes(host: &TestHost, ids: Ids) {
    let account = host.user().account;
    let status = |pid: u32| fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let uid = |pid: u32| -> u32 {
        let status = status(pid);
        let line = status.lines().find_map(|line| line.strip_prefix("Uid:"));
        let mut numbers = line.unwrap().split_whitespace();
        numbers.next().unwrap().parse().unwrap()
    };
    let guest = host.info("demo").pid.unwrap();
    let egress = leaks::egress_of(&host.run_dir()).unwrap();
    assert_eq!(uid(host.pid()), account.uid);
    match (ids, account.first) {
        (Ids::Range, Some(first)) => {
            assert_eq!(uid(guest), first + 1020);
            assert_eq!(uid(egress), first + 65_535, "nobody a box can become");
        }
        (Ids::Own, None) => {
            assert_eq!(uid(guest), account.uid);
            assert_eq!(uid(egress), account.uid);
        }
        other => panic!("{other:?}"),
    }
    assert!(status(egress).contains("CapEff:\t0000000000000000"));
}

/// Makes a package with a user and files of others, and installs it.
const PACKAGE: &str = r"set -e
mkdir -p /tmp/p/DEBIAN /tmp/p/srv/own
cd /tmp/p
echo x >srv/own/file
chown -R 33:33 srv/own
chmod 2750 srv/own
printf '%s\n' 'Package: own' 'Version: 1' 'Architecture: all' 'Description: d' \
    'Maintainer: m <m@example.org>' >DEBIAN/control
printf '%s\n' '#!/bin/sh' 'set -e' 'useradd --system maker' 'chown maker: /srv/own/file' \
    >DEBIAN/postinst
chmod 755 DEBIAN/postinst
dpkg-deb --build . /tmp/own.deb >/dev/null
dpkg -i /tmp/own.deb >/dev/null
stat -c %U:%G /srv/own /srv/own/file
dpkg-query -W -f '${Status}' own
";

fn package_is_installed(host: &TestHost, ids: Ids) {
    let said = host.shell("web", PACKAGE);
    said.assert_code(0);
    let owners = match ids {
        Ids::Range => "www-data:www-data\nmaker:maker\n",
        // Giving files away succeeds and changes nothing.
        Ids::Own => "root:root\nroot:root\n",
    };
    assert_eq!(said.out, format!("{owners}install ok installed"));
}

#[test]
fn users_make_the_default_image() {
    for ids in [Ids::Range, Ids::Own] {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let account = Account::make(folder.path(), ids).unwrap();
        let own = folder.path().join("own");
        fs::create_dir(&own).unwrap();
        account.give(&own).unwrap();
        let binary = folder.path().join("box");
        fs::copy(env!("CARGO_BIN_EXE_box"), &binary).unwrap();
        let run = |arguments: &[&str]| {
            let mut program = Program::other("setpriv", &[]);
            program.command.args(&account.words()[1..]).arg(&binary);
            program.command.args(arguments).current_dir(&own);
            for (name, place) in [("DATA_DIR", "data"), ("RUN_DIR", "run"), ("CONFIG", "none")] {
                program.command.env(format!("BOX_{name}"), own.join(place));
            }
            program.deadline(MAKING_DEADLINE).run()
        };
        // In the machine's own network: packages are downloaded.
        let made = run(&["image", "prepare"]);
        let stopped = run(&["serve", "--stop"]);
        leaks::end_egress(&own.join("run"));
        for said in [made, stopped] {
            said.assert_code(0);
        }
        let mut images = fs::read_dir(own.join("data/images")).unwrap().flatten();
        let root = images.find_map(|image| Some(image.path().join("root")).filter(|r| r.is_dir()));
        let shadow = fs::metadata(root.unwrap().join("etc/shadow")).unwrap();
        let owners = account
            .first
            .map_or((account.uid, account.gid), |first| (first, first + 42));
        assert_eq!((shadow.uid(), shadow.gid()), owners);
        rustix::mount::unmount("/etc", rustix::mount::UnmountFlags::DETACH).unwrap();
    }
}

#[test]
fn a_users_host_answers_to_that_user_alone() {
    let host = TestHost::of_user(Ids::Range);
    host.ok(&["new", "one"]);
    let folder = fs::metadata(host.run_dir()).unwrap();
    assert_eq!(folder.uid(), host.user().account.uid);
    // Root may walk anywhere, and is a stranger to this host all the same.
    let mut refused = Program::new(&["list"]);
    refused
        .command
        .env("BOX_DATA_DIR", host.data())
        .env("BOX_RUN_DIR", host.run_dir());
    let refused = refused.run();
    assert_ne!(refused.code, 0, "{refused}");
    assert!(host.ok(&["list"]).contains("one"), "the control");
}

#[test]
fn drill_holds_for_a_user_with_a_range_in_profile_locked() {
    drill(Ids::Range, "locked");
}

#[test]
fn drill_holds_for_a_user_with_a_range_in_profile_root() {
    drill(Ids::Range, "root");
}

#[test]
fn drill_holds_for_a_user_with_one_id_in_profile_locked() {
    drill(Ids::Own, "locked");
}

#[test]
fn drill_holds_for_a_user_with_one_id_in_profile_root() {
    drill(Ids::Own, "root");
}

/// What only a cgroup can keep, which this user has none of; and what only root may do anywhere.
const NOT_FOR_USERS: [&str; 5] = [
    "clocks",
    "file-handles",
    "limit-cpu",
    "limit-files-in-memory",
    "limit-shared-memory",
];

fn drill(ids: Ids, profile: &str) {
    let host = TestHost::of_user(ids);
    let words = ["drill", "--profile", profile, "--json"];
    let said = host.program(&words).deadline(DRILL_DEADLINE).run();
    let report: Report = serde_json::from_str(&said.out)
        .unwrap_or_else(|error| panic!("{error}: {} {}", said.out, said.err));
    let broken = report.probes.iter().filter(|probe| match probe.outcome {
        Outcome::Held => probe.control != Control::Passed,
        Outcome::NotApplicable => !NOT_FOR_USERS.contains(&probe.name.as_str()),
        Outcome::Broken => true,
    });
    assert_eq!(broken.collect::<Vec<_>>(), [] as [&ProbeReport; 0]);
    assert!(report.probes.len() >= 25, "{} probes", report.probes.len());
    said.assert_code(0);
}
