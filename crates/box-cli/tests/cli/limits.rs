//! Limits, use, freezes and what befalls a box, as a person types and reads them.

use super::fake_host::FakeHost;
use super::print::info;
use serde_json::{Value, json};

fn set(changes: &Value) -> Value {
    json!({"verb": "set", "name": "demo", "changes": changes})
}

#[test]
fn every_setting_is_sent_as_it_is_meant_and_what_comes_later_is_named() {
    let host = FakeHost::new();
    let asked = set(&json!([
        {"setting": "memory_bytes", "to": 4_294_967_296u64},
        {"setting": "cpu_milli", "to": 500},
        {"setting": "pids", "to": 512},
        {"setting": "disk_bytes", "to": 21_474_836_480u64},
        {"setting": "open_files", "to": 4096},
        {"setting": "tmp_bytes", "to": 1_073_741_824},
        {"setting": "deadline_ms", "to": 14_400_000},
        {"setting": "freeze_after_ms", "to": 0},
        {"setting": "nested", "to": true},
        {"setting": "title", "to": "The shop"},
    ]));
    let done = json!({
        "result": "changed", "info": info("demo", "running"), "later": ["open-files", "nested"],
    });
    host.done(asked, done);
    let said = host.run(&[
        "set",
        "demo",
        "memory=4G",
        "cpu=0.5",
        "pids=512",
        "disk=20G",
        "open-files=4096",
        "tmp=1G",
        "deadline=4h",
        "freeze-after=off",
        "nested=on",
        "title=The shop",
    ]);
    insta::assert_snapshot!(said.whole());

    let asked = set(&json!([{"setting": "deadline_ms", "to": null}]));
    let done = json!({"result": "changed", "info": info("demo", "running"), "later": []});
    host.done(asked, done);
    insta::assert_snapshot!(host.run(&["set", "demo", "deadline=off"]).whole());
}

#[test]
fn a_setting_that_is_none_is_refused_before_anybody_is_asked() {
    let host = FakeHost::new();
    let told: Vec<String> = [
        &["set", "demo"][..],
        &["set", "demo", "memory"],
        &["set", "demo", "memory=lots"],
        &["set", "demo", "memory=4G", "colour=red"],
        &["set", "demo", "pids=1", "pids=2"],
        &["set", "demo", "deadline=4"],
    ]
    .iter()
    .map(|words| {
        let said = host.run(words);
        assert!(
            said.whole().starts_with("exit 2"),
            "{words:?}: {}",
            said.whole()
        );
        said.err
    })
    .collect();
    insta::assert_snapshot!(told.join("--\n"));
}

#[test]
fn top_is_one_table_where_no_terminal_is() {
    let host = FakeHost::new();
    let used = |milli: u32, frozen: bool| {
        json!({
            "cpu_us": 1, "cpu_milli": milli, "memory_bytes": 20_000_000, "processes": 7,
            "frozen": frozen,
            "net": {
                "sent_bytes": 1_500_000, "received_bytes": 20_000_000, "sent_per_second": 200,
                "received_per_second": 3000, "open": 1,
            },
        })
    };
    let one = |name: &str, state: &str, used: Value| {
        let info = info(name, state);
        json!({
            "id": info["id"], "name": name, "state": state, "limits": info["limits"], "used": used,
        })
    };
    let boxes = json!([
        one("works", "running", used(1234, false)),
        one("sleeps", "running", used(0, true)),
        one("rests", "stopped", Value::Null),
    ]);
    let top = || json!({"verb": "top"});
    host.done(top(), json!({"result": "usage", "boxes": boxes}));
    insta::assert_snapshot!(host.run(&["top"]).whole());
    host.done(top(), json!({"result": "usage", "boxes": boxes}));
    let said = host.run(&["top", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&said.out).unwrap(), boxes);
    host.done(top(), json!({"result": "usage", "boxes": []}));
    insta::assert_snapshot!(host.run(&["top", "--once"]).whole());
}

#[test]
fn a_frozen_box_is_called_so_and_its_events_are_told() {
    let host = FakeHost::new();
    let request =
        |motion: &str| json!({"verb": "move", "target": {"box": "demo"}, "motion": motion});
    let mut demo = info("demo", "running");
    demo["result"] = json!("info");
    host.done(request("freeze"), demo.clone());
    host.done(request("thaw"), demo.clone());
    let told = [["freeze", "demo"], ["thaw", "demo"]].map(|words| host.run(&words).whole());
    insta::assert_snapshot!(told.join("\n"));

    let event = |kind: &str, text: &str| json!({"at_ms": 0, "kind": kind, "text": text});
    let events = json!([
        event(
            "out_of_memory",
            "1 process was killed: all of its 4 GiB of memory was in use"
        ),
        event("frozen", "it was idle for 30m"),
        event("on_fire", "a newer host said this"),
    ]);
    let asked = || json!({"verb": "events", "name": "demo"});
    host.done(asked(), json!({"result": "events", "events": events}));
    let said = host.run(&["events", "demo"]);
    for line in [
        "out of memory  1 process was killed",
        "frozen         it was idle",
        "other ",
    ] {
        assert!(said.out.contains(line), "{}", said.out);
    }
    host.done(asked(), json!({"result": "events", "events": []}));
    insta::assert_snapshot!(host.run(&["events", "demo"]).whole());

    demo["frozen"] = json!(true);
    demo["events"] = events;
    demo["settings"] = json!({"deadline_ms": 5_400_000, "freeze_after_ms": 1_800_000});
    host.done(json!({"verb": "info", "name": "demo"}), demo);
    let said = host.run(&["info", "demo"]).out;
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    for line in [
        "state frozen",
        "deadline 1h30m",
        "freezes when idle for 30m",
        "frozen: it was idle",
    ] {
        assert!(said.contains(line), "{said}");
    }
}

#[test]
fn limits_come_from_options_then_the_environment_then_the_host() {
    let host = FakeHost::new();
    let asked = |memory: u64, cpu: u32, deadline: Value| {
        json!({
            "verb": "new", "name": "demo", "title": null, "image": null, "profile": "locked",
            "net": "balanced", "allow": [], "start": true,
            "limits": {
                "cpu_milli": cpu, "memory_bytes": memory, "pids": 512, "tmp_bytes": 536_870_912,
                "disk_bytes": 21_474_836_480u64, "open_files": 65536,
            },
            "settings": {"deadline_ms": deadline, "freeze_after_ms": null, "nested": false},
        })
    };
    let with = |words: &[&str], variables: &[(&str, &str)]| {
        let mut program = host.program(words);
        program.command.envs(variables.iter().copied());
        program.run()
    };
    // What another room asks of a new box is its own business.
    let play = |expected: Value| {
        host.on_part(expected, |talk| {
            let mut demo = info("demo", "running");
            demo["result"] = json!("info");
            talk.done(demo);
        });
    };
    play(asked(1 << 30, 3000, Value::Null));
    with(
        &["new", "demo", "--memory", "1G"],
        &[("BOX_CPU", "3"), ("BOX_MEMORY", "8G")],
    );
    play(asked(8 << 30, 2000, json!(14_400_000)));
    with(
        &["new", "demo", "--deadline", "4h"],
        &[("BOX_MEMORY", "8G")],
    );
    let said = with(&["new", "demo"], &[("BOX_MEMORY", "lots")]);
    insta::assert_snapshot!(said.whole());
}
