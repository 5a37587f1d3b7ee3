//! Limits of real boxes: changed while they run, run into, told in words; freezes and deadlines.

use super::credential::Token;
use super::host::{PATIENCE, TestHost};
use super::program::Said;
use box_api::control::{BoxEvent, BoxState, BoxUsage, EventKind};
use box_fakes::model::{Script, Step};
use std::time::Instant;

/// Takes this many MiB of memory and says so.
fn take(mebibytes: u32) -> String {
    format!("import sys; x = b'x' * ({mebibytes} << 20); sys.stdout.write('took')")
}

fn python(host: &TestHost, name: &str, program: &str) -> Said {
    host.run(&["exec", name, "--", "python3", "-c", program])
}

fn events(host: &TestHost, name: &str) -> Vec<BoxEvent> {
    serde_json::from_str(&host.ok(&["events", name, "--json"])).unwrap()
}

/// Waits until this has befallen the box.
#[track_caller]
fn befalls(host: &TestHost, name: &str, kind: EventKind) -> BoxEvent {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let found = events(host, name)
            .into_iter()
            .rfind(|event| event.kind == kind);
        if let Some(event) = found {
            return event;
        }
        assert!(
            Instant::now() < deadline,
            "{:?}\n{}",
            events(host, name),
            host.whereabouts()
        );
    }
}

fn top(host: &TestHost, name: &str) -> BoxUsage {
    let boxes: Vec<BoxUsage> = serde_json::from_str(&host.ok(&["top", "--json"])).unwrap();
    boxes
        .into_iter()
        .find(|one| one.name.as_str() == name)
        .unwrap()
}

#[test]
fn limits_change_while_a_box_runs_and_what_befalls_it_is_told() {
    let host = TestHost::new();
    host.ok(&["new", "small", "--memory", "64M", "--pids", "40"]);
    host.ok(&["new", "neighbour"]);
    assert_eq!(python(&host, "small", &take(10)).out, "took", "the control");
    assert_eq!(python(&host, "small", &take(100)).code, 137);
    assert_eq!(host.shell("neighbour", "echo here").out, "here\n");
    let event = befalls(&host, "small", EventKind::OutOfMemory);
    assert!(event.text.contains("64 MiB of memory"), "{event:?}");

    let said = host.run(&[
        "set",
        "small",
        "memory=512M",
        "pids=100",
        "title=The small one",
        "tmp=64M",
    ]);
    assert_eq!(
        (said.code, said.err.contains("next start on: `tmp`")),
        (0, true),
        "{said}"
    );
    assert_eq!(python(&host, "small", &take(100)).out, "took");
    assert_eq!(host.info("small").title.unwrap().as_str(), "The small one");
    let used = top(&host, "small").used.unwrap();
    assert!(
        used.processes >= 1 && used.memory_bytes > 0 && !used.frozen,
        "{used:?}"
    );
    assert_eq!(top(&host, "small").limits.memory_bytes, 512 << 20);
    let table = host.ok(&["top", "--once"]);
    assert!(
        table.contains("512 MiB") && table.contains("neighbour"),
        "{table}"
    );

    // More than a hundred processes; the box can still be asked and told of.
    let forked = host.shell(
        "small",
        "i=0; while [ $i -lt 200 ]; do sleep 60 & i=$((i+1)); done",
    );
    assert_ne!(forked.code, 0, "{forked}");
    befalls(&host, "small", EventKind::OutOfProcesses);
    assert_eq!(host.shell("neighbour", "echo here").out, "here\n");
    assert!(host.ok(&["info", "small"]).contains("out of processes"));
}

#[test]
fn a_frozen_box_is_thawed_by_whoever_wants_something_of_it() {
    let host = TestHost::new();
    host.ok(&["new", "demo"]);
    host.ok(&["freeze", "demo"]);
    assert!(host.ok(&["list"]).contains("frozen"));
    assert!(top(&host, "demo").used.unwrap().frozen);
    // The host that comes next keeps it frozen, and thaws it for a command.
    host.kill();
    assert!(
        host.ok(&["list"]).contains("frozen"),
        "the next verb starts it"
    );
    assert!(host.info("demo").frozen);
    assert_eq!(host.shell("demo", "echo here").out, "here\n");
    assert!(!host.info("demo").frozen);

    host.ok(&["set", "demo", "freeze-after=1s"]);
    befalls(&host, "demo", EventKind::Frozen);
    let idle = |event: &BoxEvent| event.text.contains("idle");
    let deadline = Instant::now() + PATIENCE;
    while !events(&host, "demo").iter().any(idle) {
        assert!(Instant::now() < deadline, "{:?}", events(&host, "demo"));
    }
    assert_eq!(host.shell("demo", "echo here").out, "here\n");
    // What is frozen is stopped as any other.
    host.ok(&["freeze", "demo"]);
    host.ok(&["stop", "demo"]);
    assert_eq!(host.info("demo").state, BoxState::Stopped);
}

#[test]
fn a_box_that_filled_its_disk_stands_still_until_something_is_removed() {
    let host = TestHost::new();
    host.ok(&["new", "full", "--disk", "64M"]);
    let endless = "dd if=/dev/zero of=$HOME/big bs=1M & echo $! >/tmp/writer; wait";
    let mut writer = host.terminal(&["exec", "full", "--", "sh", "-c", endless]);
    writer.expect(
        "box `full` stands still; `box events full` says why",
        PATIENCE,
    );
    let event = befalls(&host, "full", EventKind::DiskFull);
    assert!(event.text.contains("64 MiB"), "{event:?}");
    assert!(host.info("full").frozen);
    // The writer goes on with the box, and not far.
    let said = host.shell(
        "full",
        "kill $(cat /tmp/writer); rm $HOME/big && echo removed",
    );
    assert_eq!((said.code, said.out.as_str()), (0, "removed\n"), "{said}");
    writer.finish(PATIENCE);
    befalls(&host, "full", EventKind::DiskRoom);
    assert!(!host.info("full").frozen);
    assert_eq!(host.shell("full", "echo here").out, "here\n");
}

#[test]
fn a_box_is_stopped_at_its_deadline_and_says_why() {
    let host = TestHost::new();
    host.ok(&["new", "timed", "--deadline", "3s"]);
    befalls(&host, "timed", EventKind::Deadline);
    host.ok(&["wait", "timed", "--for", "stopped"]);
    let info = host.info("timed");
    assert_eq!(info.state, BoxState::Stopped);
    assert_eq!(
        info.problem.as_deref(),
        Some("its deadline came: it had run for 3s")
    );
    host.ok(&["set", "timed", "deadline=off"]);
    host.ok(&["start", "timed"]);
    assert_eq!(host.info("timed").problem, None);
}

#[test]
fn a_turn_keeps_its_box_awake_though_nobody_looks_on() {
    let host = TestHost::new();
    let token = Token::random();
    let model = host.rig.model(token.as_str());
    model.script(Script::on("think for long").message([
        Step::thinking("Hm."),
        Step::gate("thinking"),
        Step::text("Done."),
    ]));
    token.add_to(&host);
    let words = [
        "run",
        "claude",
        "think for long",
        "--name",
        "busy",
        "--freeze-after",
        "1s",
    ];
    let client = host.program(&words).start();
    model.wait_at("thinking", PATIENCE).unwrap();
    client.kill();
    // Another box is frozen, thawed and frozen: so often at least were boxes looked at meanwhile.
    host.ok(&["new", "idle", "--freeze-after", "1s"]);
    for frozen in 1..=3 {
        let deadline = Instant::now() + PATIENCE;
        let times = || {
            let events = events(&host, "idle").into_iter();
            events
                .filter(|event| event.kind == EventKind::Frozen)
                .count()
        };
        while times() < frozen {
            assert!(Instant::now() < deadline, "{:?}", events(&host, "idle"));
        }
        host.ok(&["thaw", "idle"]);
    }
    assert_eq!(events(&host, "busy"), [], "its turn is open");
    model.open("thinking");
    befalls(&host, "busy", EventKind::Frozen);
    // And thawed for the next prompt.
    model.script(Script::on("say it").message([Step::text("It.")]));
    let said = host.ok(&["run", "claude", "say it", "--name", "busy"]);
    assert!(said.contains("It."), "{said}");
}
