//! What a person can undo: snapshots, clones, removals, a set-up that went wrong.

use super::credential::Token;
use super::host::{PATIENCE, Start, TestHost};
use super::program::{Program, Said};
use box_api::control::BoxState;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

fn labels(host: &TestHost, name: &str) -> Vec<String> {
    let all: Value = serde_json::from_str(&host.ok(&["snapshots", name, "--json"])).unwrap();
    let all = all.as_array().unwrap().iter();
    all.map(|one| one["label"].as_str().unwrap().to_owned())
        .collect()
}

#[track_caller]
fn sh(host: &TestHost, name: &str, script: &str) -> String {
    let said = host.shell(name, script);
    said.assert_code(0);
    said.out
}

#[track_caller]
fn refused(host: &TestHost, words: &[&str], code: i32) -> Said {
    let said = host.run(words);
    said.assert_code(code);
    said
}

#[test]
fn a_box_comes_back_to_its_snapshot_and_the_restore_can_be_undone() {
    let host = TestHost::new();
    host.ok(&["new", "demo", "--profile", "root"]);
    assert_eq!(labels(&host, "demo"), ["pristine"]);
    // Something of every tree: workspace, home, root.
    sh(
        &host,
        "demo",
        "echo work > note; echo home > ~/note; echo root > /etc/note",
    );
    assert_eq!(host.ok(&["snapshot", "demo", "good"]), "good\n");
    let running = "while :; do date +%s%N >> busy; done";
    let said = host.run(&[
        "exec",
        "demo",
        "--",
        "sh",
        "-c",
        &format!("({running}) >/dev/null 2>&1 & echo"),
    ]);
    said.assert_code(0);
    let default = host.ok(&["snapshot", "demo"]);
    assert!(default.starts_with("manual-"), "{default}");
    // It goes on after the snapshot.
    let grew = "a=$(wc -c < busy); n=0; while [ $(wc -c < busy) = $a ]; do n=$((n+1)); [ $n -lt 100000 ]; done";
    sh(&host, "demo", grew);

    sh(&host, "demo", "rm -f note ~/note; echo ruined > /etc/note");
    // No yes, no restore.
    let said = refused(&host, &["restore", "demo", "good"], 2);
    assert!(said.err.contains("hint:"), "{said}");
    let said = host.run(&["restore", "demo", "good", "--force"]);
    said.assert_code(0);
    assert_eq!(
        sh(&host, "demo", "cat note ~/note /etc/note"),
        "work\nhome\nroot\n"
    );
    let undo = labels(&host, "demo").pop().unwrap();
    assert!(undo.starts_with("before-restore-"), "{undo}");
    assert!(said.err.contains(&undo), "the way back is told: {said}");
    host.ok(&["restore", "demo", &undo, "--force"]);
    assert_eq!(
        sh(&host, "demo", "cat /etc/note; ls note 2>/dev/null; echo"),
        "ruined\n\n"
    );
    // The whole of what was done in it.
    host.ok(&["restore", "demo", "pristine", "--force"]);
    assert_eq!(
        sh(
            &host,
            "demo",
            "ls -A; ls ~/note /etc/note 2>/dev/null; echo"
        ),
        "\n"
    );
    let said = refused(&host, &["restore", "demo", "nosuch", "--force"], 1);
    assert!(said.err.contains("`good`"), "what there is: {said}");
    host.ok(&["snapshot", "--remove", "demo", "good"]);
    assert!(!labels(&host, "demo").contains(&"good".to_owned()));
    assert_eq!(host.info("demo").state, BoxState::Running);
}

#[test]
fn a_clone_is_a_machine_of_its_own_with_the_same_files() {
    let host = TestHost::new();
    host.rig.origin("ok.test");
    host.ok(&["new", "demo", "--allow", "ok.test", "--pids", "200"]);
    sh(&host, "demo", "echo work > note; echo home > ~/note");
    // Its fake address is learned, and may be in files.
    let address = "getent hosts ok.test | cut -d' ' -f1";
    let learned = sh(&host, "demo", address);
    host.ok(&["snapshot", "demo", "early"]);
    sh(&host, "demo", "echo later > note");
    let said = host.run(&["new", "copy", "--from", "demo"]);
    said.assert_code(0);
    assert!(said.err.contains("`pristine`, `early`"), "B16: {said}");
    assert_eq!(
        sh(&host, "copy", "cat note ~/note; hostname"),
        "later\nhome\ncopy\n"
    );
    assert_eq!(labels(&host, "copy"), ["pristine", "early"]);
    assert_eq!(sh(&host, "copy", address), learned);
    let curl = "curl -sS -m 20 https://ok.test/";
    assert_eq!(sh(&host, "copy", curl), "hello from ok.test\n");
    let machine = "cat /etc/machine-id";
    let ids = ["demo", "copy"].map(|name| sh(&host, name, machine));
    assert_ne!(ids[0], ids[1], "B11");
    assert_eq!(ids[1].trim().len(), 32, "{ids:?}");
    let (source, copy) = (host.info("demo"), host.info("copy"));
    assert_ne!(source.id, copy.id);
    assert_eq!(
        (copy.limits, copy.net, copy.profile),
        (source.limits, source.net, source.profile)
    );

    let said = host.run(&["new", "past", "--from", "demo/early", "--pids", "100"]);
    said.assert_code(0);
    assert!(said.err.contains("without snapshots"), "B16: {said}");
    assert_eq!(sh(&host, "past", "cat note"), "work\n");
    assert!(labels(&host, "past").is_empty());
    assert_eq!(host.info("past").limits.pids, 100);
    // Neither touches the other.
    sh(&host, "copy", "echo mine > note");
    assert_eq!(sh(&host, "demo", "cat note"), "later\n");
    refused(
        &host,
        &["new", "x", "--from", "demo", "--image", "default"],
        2,
    );
    refused(
        &host,
        &["new", "x", "--from", "demo", "--profile", "root"],
        2,
    );
    refused(&host, &["new", "x", "--from", "demo/nosuch"], 1);
}

#[test]
fn a_clone_gets_placeholders_of_its_own_for_the_same_account() {
    let host = TestHost::new();
    let token = Token::random();
    token.add_to(&host);
    host.ok(&["new", "demo"]);
    let variable = "echo $CLAUDE_CODE_OAUTH_TOKEN";
    let first = sh(&host, "demo", variable);
    assert!(first.starts_with("sk-ant-oat01-"), "{first}");
    host.ok(&["new", "copy", "--from", "demo"]);
    let second = sh(&host, "copy", variable);
    assert!(second.starts_with("sk-ant-oat01-"), "{second}");
    assert_ne!(first, second);
    assert!(!second.contains(token.as_str()));
}

#[test]
fn a_set_up_that_was_seen_to_succeed_is_marked_and_one_that_failed_is_not() {
    let host = TestHost::new();
    let folder = tempfile::tempdir().unwrap();
    let script = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let good = script(
        "good.sh",
        "#!/bin/sh\necho from-the-set-up; echo and-an-error >&2; echo done > ~/done; sleep 3600 &\n",
    );
    let said = host.run(&["new", "good", "--setup", &good]);
    said.assert_code(0);
    for line in ["from-the-set-up", "and-an-error", "box `good` is running"] {
        assert!(said.err.contains(line), "{line}: {said}");
    }
    assert_eq!(said.out, "");
    assert_eq!(labels(&host, "good"), ["pristine", "bootstrapped"]);
    sh(&host, "good", "rm ~/done");
    host.ok(&["restore", "good", "bootstrapped", "--force"]);
    assert_eq!(sh(&host, "good", "cat ~/done"), "done\n");
    // The other mark undoes all of it (B15).
    host.ok(&["restore", "good", "pristine", "--force"]);
    assert_eq!(sh(&host, "good", "ls ~/done 2>/dev/null; echo"), "\n");

    let bad = script(
        "bad.sh",
        "#!/usr/bin/python3\nprint('half way')\nraise SystemExit(7)\n",
    );
    let said = host.run(&["new", "bad", "--setup", &bad]);
    said.assert_code(1);
    for word in [
        "half way",
        "ended with code 7",
        "box shell bad",
        "box snapshot bad bootstrapped",
        "box restore bad pristine",
    ] {
        assert!(said.err.contains(word), "{word}: {said}");
    }
    assert_eq!(labels(&host, "bad"), ["pristine"]);
    assert_eq!(host.info("bad").state, BoxState::Running, "it stays up");

    let mut without = host.program(&["new", "bare", "--setup", &bad]);
    without.command.env("BOX_SNAPSHOT_PRISTINE", "0");
    let said = without.run();
    said.assert_code(1);
    assert!(!said.err.contains("pristine"), "no mark, no offer: {said}");
    assert!(labels(&host, "bare").is_empty());
    let mut unmarked = host.program(&["new", "unmarked", "--setup", &good]);
    unmarked.command.env("BOX_SNAPSHOT_BOOTSTRAPPED", "0");
    unmarked.run().assert_code(0);
    assert_eq!(labels(&host, "unmarked"), ["pristine"]);
    // A box without a set-up was never bootstrapped (B19).
    host.ok(&["new", "blank"]);
    assert_eq!(labels(&host, "blank"), ["pristine"]);
    refused(&host, &["new", "x", "--setup", "/nonexistent"], 2);
    refused(&host, &["new", "x", "--setup", &good, "--no-start"], 2);
}

#[test]
fn a_removed_box_comes_back_and_one_with_unpushed_commits_is_not_removed() {
    let host = TestHost::new();
    host.ok(&["new", "demo"]);
    sh(&host, "demo", "echo work > note");
    host.ok(&["rm", "demo", "--force"]);
    refused(&host, &["info", "demo"], 1);
    let trash = host.ok(&["list", "--trash"]);
    assert!(trash.contains("demo"), "{trash}");
    assert_eq!(host.ok(&["list"]), "");
    host.ok(&["new", "demo"]);
    let said = refused(&host, &["undelete", "demo"], 1);
    assert!(said.err.contains("--as"), "{said}");
    host.ok(&["undelete", "demo", "--as", "old"]);
    assert_eq!(host.info("old").state, BoxState::Stopped);
    host.ok(&["start", "old"]);
    assert_eq!(sh(&host, "old", "cat note"), "work\n");

    let commit = "git init -q app && cd app && git -c user.name=a -c user.email=a@example.com \
        commit -q --allow-empty -m one && printf '#!/bin/sh\ntouch /workspace/hooked\n' > \
        .git/hooks/post-checkout && chmod 755 .git/hooks/post-checkout";
    sh(&host, "old", commit);
    for state in ["running", "stopped"] {
        if state == "stopped" {
            host.ok(&["stop", "old"]);
        }
        let mut terminal = host.terminal(&["rm", "old"]);
        terminal.expect("[y/N]", PATIENCE);
        terminal.type_in("y\n");
        terminal.expect("pushed nowhere", PATIENCE);
        assert_eq!(terminal.finish(PATIENCE), 3, "{state}: {}", terminal.seen);
        assert!(terminal.seen.contains("1 in `app`"), "{}", terminal.seen);
    }
    assert_eq!(
        host.info("old").state,
        BoxState::Stopped,
        "as it was before"
    );
    host.ok(&["rm", "old", "--force", "--now"]);
    assert!(!host.ok(&["list", "--trash"]).contains("old"));
    // One without commits goes without --force.
    let mut terminal = host.terminal(&["rm", "demo"]);
    terminal.expect("[y/N]", PATIENCE);
    terminal.type_in("y\n");
    assert_eq!(terminal.finish(PATIENCE), 0, "{}", terminal.seen);
    refused(&host, &["prune", "--all"], 2);
    let said = host.run(&["prune", "--all", "--force"]);
    said.assert_code(0);
    assert!(said.err.contains("removed box `demo`"), "{said}");
    assert_eq!(host.ok(&["list", "--trash"]), "");
    let left: Vec<_> = fs::read_dir(host.data().join("boxes")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_kept_workspace_is_that_of_the_next_box_of_the_name() {
    let host = TestHost::new();
    host.ok(&["new", "demo"]);
    sh(&host, "demo", "echo work > note; echo home > ~/note");
    host.ok(&["rm", "demo", "--force", "--keep-workspace"]);
    let said = host.run(&["new", "demo"]);
    said.assert_code(0);
    assert!(said.err.contains("workspace kept"), "{said}");
    assert_eq!(
        sh(&host, "demo", "cat note; ls ~/note 2>/dev/null; echo"),
        "work\n\n"
    );
    sh(&host, "demo", "echo more >> note");
    // Once: the next has none.
    host.ok(&["rm", "demo", "--force"]);
    host.ok(&["new", "demo"]);
    assert_eq!(sh(&host, "demo", "ls"), "");
    refused(
        &host,
        &["rm", "demo", "--force", "--now", "--keep-workspace"],
        2,
    );
}

#[test]
fn names_sizes_and_waits_follow_a_box() {
    let host = TestHost::new();
    host.ok(&["new", "demo"]);
    host.ok(&["new", "other"]);
    refused(&host, &["rename", "demo", "other"], 1);
    host.ok(&["rename", "demo", "shop"]);
    refused(&host, &["info", "demo"], 1);
    assert_eq!(
        sh(&host, "shop", "hostname"),
        "demo\n",
        "until the next start"
    );
    let boot = "cat /proc/1/stat | cut -d' ' -f22";
    let before = [sh(&host, "shop", boot), sh(&host, "other", boot)];
    host.ok(&["restart", "all"]);
    let after = [sh(&host, "shop", boot), sh(&host, "other", boot)];
    assert!(
        before[0] != after[0] && before[1] != after[1],
        "{before:?} {after:?}"
    );
    assert_eq!(sh(&host, "shop", "hostname"), "shop\n");

    sh(&host, "shop", "head -c 3000000 /dev/urandom > ~/random");
    host.ok(&["snapshot", "shop", "big"]);
    let used: Value = serde_json::from_str(&host.ok(&["du", "shop", "--json"])).unwrap();
    for key in ["home_bytes", "snapshots_bytes"] {
        assert!(used[0][key].as_u64().unwrap() >= 3_000_000, "{key}: {used}");
    }
    assert!(host.ok(&["du"]).contains("other"));

    host.ok(&["wait", "shop", "--for", "running"]);
    host.ok(&["wait", "shop", "--for", "idle"]);
    refused(&host, &["wait", "shop", "--timeout", "1s"], 1);
    let waiting = host.program(&["wait", "shop"]).start();
    host.ok(&["stop", "shop", "--force"]);
    waiting.finish(PATIENCE).assert_code(0);
    host.ok(&["stop", "all"]);
    host.ok(&["start", "all"]);
    for name in ["shop", "other"] {
        assert_eq!(host.info(name).state, BoxState::Running);
    }
}

#[test]
fn an_images_own_set_up_is_run_and_marked() {
    let host = TestHost::with(Start::Bare);
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    let busybox = ["/bin/busybox", "/usr/bin/busybox"].map(Path::new);
    let busybox = busybox.into_iter().find(|path| path.exists());
    fs::create_dir_all(root.join("bin")).unwrap();
    fs::create_dir_all(root.join("etc/box")).unwrap();
    for name in ["sh", "cat"] {
        let busybox = busybox.expect("`busybox` of busybox-static is needed");
        fs::copy(busybox, root.join("bin").join(name)).unwrap();
    }
    let setup = root.join("etc/box/setup");
    fs::write(
        &setup,
        "#!/bin/sh\necho of-the-image; echo set-up > /workspace/done\n",
    )
    .unwrap();
    fs::set_permissions(&setup, fs::Permissions::from_mode(0o755)).unwrap();
    let tar = folder.path().join("image.tar");
    let words = [
        "--create",
        "--file",
        tar.to_str().unwrap(),
        "--directory",
        root.to_str().unwrap(),
        ".",
    ];
    Program::other("tar", &words).run().assert_code(0);
    let image = format!("file:{}", tar.display());
    let said = host.run(&["new", "own", "--image", &image]);
    said.assert_code(0);
    assert!(said.err.contains("of-the-image"), "{said}");
    assert_eq!(labels(&host, "own"), ["pristine", "bootstrapped"]);
    assert_eq!(sh(&host, "own", "cat done"), "set-up\n");
}

#[test]
fn a_conversation_stays_to_be_read_when_its_box_is_restored() {
    let host = TestHost::new();
    host.ok(&["run", "demo", "hello", "--name", "one", "--allow-all"]);
    let before = host.control().journal("one");
    assert!(!before.rows.is_empty());
    let said = host.run(&["restore", "one", "pristine", "--force"]);
    said.assert_code(0);
    assert!(said.err.contains("stay to be read"), "{said}");
    let after = host.control().journal("one");
    for (seq, row) in &before.rows {
        assert_eq!(after.rows.get(seq), Some(row));
    }
    host.ok(&["run", "demo", "again", "--name", "one", "--allow-all"]);
}
