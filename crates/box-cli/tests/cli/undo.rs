//! What is said of snapshots, clones, the trash and waiting.

use super::fake_host::FakeHost;
use super::person::Person;
use super::program::Program;
use serde_json::{Value, json};

fn taken(label: &str) -> Value {
    let snapshot =
        json!({"label": label, "kind": "manual", "created_at_ms": 1, "bytes": 2_500_000});
    json!({"result": "taken", "taken": [{"name": "demo", "snapshot": snapshot}]})
}

fn info(name: &str, state: &str) -> Value {
    json!({
        "id": "aaaaaaaaaaaaaaaa", "name": name, "title": null, "owner": "uid:0", "state": state,
        "runtime": "native", "image": "default", "profile": "locked", "net": "balanced",
        "limits": box_api::control::Limits::default(), "limits_held_by": "cgroup v1",
        "created_at_ms": 1, "threads": [], "workspace": null, "pid": null, "problem": null,
    })
}

fn result(kind: &str, mut object: Value) -> Value {
    object["result"] = json!(kind);
    object
}

#[test]
fn a_snapshot_prints_its_label_and_says_how_to_come_back() {
    let host = FakeHost::new();
    let take = |label: Value| json!({"verb": "snapshots", "act": "take", "target": {"box": "demo"}, "label": label});
    host.done(take(json!("good")), taken("good"));
    insta::assert_snapshot!(host.run(&["snapshot", "demo", "good"]).whole(), @r"
    exit 0
    --- out
    good
    --- err
    box `demo` is kept as `good` (2.5 MB); `box restore demo good` comes back to it
    ");
    host.done(take(Value::Null), taken("manual-1790000000"));
    assert_eq!(host.run(&["snapshot", "demo"]).out, "manual-1790000000\n");
    let remove = json!({"verb": "snapshots", "act": "remove", "name": "demo", "label": "good"});
    host.done(remove, json!({"result": "nothing"}));
    host.run(&["snapshot", "--remove", "demo", "good"])
        .assert_code(0);
    for wrong in [
        &["snapshot", "--remove", "demo"][..],
        &["snapshot", "--remove", "all", "good"],
        &["snapshot", "demo", "../x"],
        &["snapshot", "demo", "Good"],
    ] {
        host.run(wrong).assert_code(2);
    }
}

#[test]
fn a_restore_asks_and_tells_what_undoes_it() {
    let host = FakeHost::new();
    insta::assert_snapshot!(host.run(&["restore", "demo", "good"]).whole(), @r"
    exit 2
    --- err
    error: restoring box `demo` needs a yes
    cause: there is no terminal to ask at
    hint: `box restore demo good --force` does not ask
    ");
    let ask = || json!({"verb": "info", "name": "demo"});
    for refusal in ["\n", "n\n", "\u{4}"] {
        host.done(ask(), result("info", info("demo", "running")));
        let mut person = Person::at(&host.program(&["restore", "demo", "good"]));
        person
            .sees("stop box `demo` and bring it back to `good`? [y/N] ")
            .types(refusal);
        person.sees("nothing was restored");
        assert_eq!(person.finish(), 1, "{}", person.seen);
    }
    let restore = json!({"verb": "snapshots", "act": "restore", "name": "demo", "label": "good"});
    let mut with_thread = info("demo", "running");
    with_thread["threads"] = json!([{
        "thread": "tttttttttttttttt", "agent": "demo", "title": "t", "state": "idle",
        "created_at_ms": 1,
    }]);
    let restored = json!({
        "result": "restored", "info": with_thread, "undo": "before-restore-1790000000",
    });
    host.done(restore, restored);
    insta::assert_snapshot!(host.run(&["restore", "demo", "good", "--force"]).whole(), @r"
    exit 0
    --- err
    box `demo` is as `good` has it, and running
    its conversations stay to be read; an agent goes on with what it knew then, or begins anew and says so
    hint: `box restore demo before-restore-1790000000` undoes this
    ");
}

#[test]
fn a_clone_keeps_what_was_not_said_and_refuses_what_cannot_be_changed() {
    let host = FakeHost::new();
    let sizes = json!({
        "cpu_milli": null, "memory_bytes": 8_589_934_592u64, "disk_bytes": null, "pids": null,
        "open_files": null, "tmp_bytes": null, "deadline_ms": null, "freeze_after_ms": null,
        "nested": false,
    });
    let clone = json!({
        "verb": "clone", "name": "copy", "title": null, "source": "demo", "label": "good",
        "sizes": sizes, "start": true,
    });
    host.done(clone, result("info", info("copy", "running")));
    let list = json!({"verb": "snapshots", "act": "list", "name": "copy"});
    host.done(list, json!({"result": "snapshots", "snapshots": []}));
    let said = host.run(&["new", "copy", "--from", "demo/good", "--memory", "8G"]);
    insta::assert_snapshot!(said.whole(), @r"
    exit 0
    --- err
    box `copy` is running
    hint: `box shell copy` goes in
    it is a copy of snapshot `good` of box `demo`, without snapshots yet
    ");
    for option in [
        &["--image", "default"][..],
        &["--profile", "root"],
        &["--net", "open"],
        &["--allow", "a.example"],
        &["--setup", "x.sh"],
    ] {
        let words = [&["new", "copy", "--from", "demo"], option].concat();
        let said = Program::new(&words).run();
        said.assert_code(2);
        assert!(said.err.contains("exclude each other"), "{said:?}");
    }
}

#[test]
fn the_trash_is_listed_taken_from_and_emptied() {
    let host = FakeHost::new();
    let list = || json!({"verb": "trash", "act": "list"});
    host.done(list(), json!({"result": "boxes", "boxes": []}));
    assert_eq!(host.run(&["list", "--trash"]).err, "the trash is empty\n");
    let mut gone = info("demo", "trashed");
    gone["trashed_at_ms"] = json!(1);
    host.done(list(), json!({"result": "boxes", "boxes": [gone]}));
    let shown = host.run(&["list", "--trash"]).out;
    assert!(shown.contains("aaaaaaaaaaaaaaaa"), "{shown}");
    let undelete = json!({"verb": "trash", "act": "undelete", "what": "demo", "name": "again"});
    host.done(undelete, result("info", info("again", "stopped")));
    insta::assert_snapshot!(host.run(&["undelete", "demo", "--as", "again"]).whole(), @r"
    exit 0
    --- err
    box `again` is back, stopped
    hint: `box start again` starts it
    ");
    let prune = |depth: &str| json!({"verb": "trash", "act": "prune", "depth": depth});
    let nothing =
        json!({"result": "pruned", "trash": [], "strangers": [], "packs": [], "left": []});
    host.done(prune("expired"), nothing);
    assert_eq!(host.run(&["prune"]).err, "there is nothing to remove\n");
    let much = json!({
        "result": "pruned", "trash": ["demo"], "strangers": ["aaaaaaaaaaaaaaaa"],
        "packs": ["claude/1.0"], "left": ["could not remove box `other`"],
    });
    host.done(prune("all"), much);
    insta::assert_snapshot!(host.run(&["prune", "--all", "--force"]).whole(), @r"
    exit 1
    --- err
    removed box `demo`
    removed box aaaaaaaaaaaaaaaa, which nobody owned
    removed agent `claude/1.0`
    could not remove box `other`
    ");
    host.run(&["prune", "--all"]).assert_code(2);
}

#[test]
fn a_wait_ends_with_1_when_its_time_is_over_and_goes_on_when_the_hosts_is() {
    let host = FakeHost::new();
    let wait = |timeout_ms: u64| json!({"verb": "wait", "name": "demo", "until": "stopped", "timeout_ms": timeout_ms});
    let waited = |reached: bool| json!({"result": "waited", "reached": reached});
    // One request is at most ten minutes; without a limit of the person's, it asks again.
    host.done(wait(600_000), waited(false));
    host.done(wait(600_000), waited(true));
    host.run(&["wait", "demo"]).assert_code(0);
    host.on(
        json!({"verb": "rename", "name": "demo", "to": "shop"}),
        |talk| talk.done(result("info", info("shop", "running"))),
    );
    insta::assert_snapshot!(host.run(&["rename", "demo", "shop"]).whole(), @r"
    exit 0
    --- err
    box `demo` is `shop` now
    inside, the host name follows with the next start
    ");
    host.run(&["wait", "demo", "--timeout", "soon"])
        .assert_code(2);
}
