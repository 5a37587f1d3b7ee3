//! A host that is not listed, from the inside of a box to the person who answers; the network log
//! and the policy.

use super::host::{PATIENCE, TestHost};
use super::program::Said;
use serde_json::Value;

const NO_PROXY: &str = "env -u HTTP_PROXY -u HTTPS_PROXY -u ALL_PROXY \
    -u http_proxy -u https_proxy -u all_proxy";

fn curl(host: &TestHost, url: &str) -> Said {
    let script = format!("{NO_PROXY} curl -sS -m 40 -w ' %{{http_code}}' {url}");
    host.shell("one", &script)
}

fn host_with_box() -> TestHost {
    let host = TestHost::new();
    host.rig.origin("new.test");
    host.rig.origin("ok.test");
    host.ok(&["new", "one", "--allow", "ok.test"]);
    host
}

#[test]
fn a_held_connection_goes_on_when_a_person_answers() {
    let host = host_with_box();
    let mut follower = host.terminal(&["decisions", "--follow"]);
    follower.expect("waiting for what is asked", PATIENCE);
    // Tried again until box-egress has heard that somebody looks.
    let script = format!(
        "{NO_PROXY} curl -sS --fail --retry 20 --retry-all-errors -m 100 https://new.test/a"
    );
    let held = host
        .program(&["exec", "one", "--", "sh", "-c", &script])
        .start();
    let asked = follower.expect("keep blocked", PATIENCE);
    assert!(asked.contains("wants to reach new.test:443"), "{asked}");
    assert!(asked.contains(" once    allow once"), "{asked}");
    let listed: Value = serde_json::from_str(&host.ok(&["decisions", "--json"])).unwrap();
    let number = listed[0]["decision"]["decision"].as_i64().unwrap();
    assert_eq!(listed[0]["name"], "one");
    host.ok(&["answer", &number.to_string(), "once"]);
    let held = held.finish(PATIENCE);
    assert_eq!(held.out, "hello from new.test\n", "{held}");
    // It was once, for this name alone, and is nothing that lasts.
    let policy: Value =
        serde_json::from_str(&host.ok(&["policy", "show", "one", "--json"])).unwrap();
    let entries = policy["entries"].as_array().unwrap();
    assert!(
        entries.iter().all(|entry| entry["entry"] != "new.test"),
        "{entries:?}"
    );
    let again = host.run(&["answer", &number.to_string(), "box"]);
    assert_eq!(again.code, 1, "{again}");
    assert!(
        again.err.contains("was answered by uid:0: `once`"),
        "{again}"
    );
    follower.type_in("\u{3}");
}

#[test]
fn nobody_to_ask_is_refused_at_once_and_a_policy_lets_it_through() {
    let host = host_with_box();
    let refused = curl(&host, "https://new.test/");
    assert!(refused.out.contains("not_listed"), "{refused}");
    assert_eq!(
        host.run(&["policy", "check", "one", "https://new.test/"])
            .code,
        3
    );
    host.ok(&["policy", "set", "one", "--allow", "new.test"]);
    let said = curl(&host, "https://new.test/");
    assert_eq!(said.out, "hello from new.test\n 200", "{said}");
    assert_eq!(
        host.run(&["policy", "check", "one", "https://new.test/"])
            .code,
        0
    );
    // Deny wins, for every box of the owner.
    host.ok(&["policy", "set", "one", "--deny", "new.test", "--everywhere"]);
    let denied = curl(&host, "https://new.test/");
    assert!(denied.out.contains("denied"), "{denied}");
    host.ok(&[
        "policy",
        "set",
        "one",
        "--remove",
        "new.test",
        "--everywhere",
    ]);
    assert_eq!(
        curl(&host, "https://new.test/").out,
        "hello from new.test\n 200"
    );
    let log: Value = serde_json::from_str(&host.ok(&["net", "one", "--json"])).unwrap();
    let verdicts: Vec<(&str, &str)> = log
        .as_array()
        .unwrap()
        .iter()
        .map(|line| {
            (
                line["host"].as_str().unwrap(),
                line["verdict"].as_str().unwrap(),
            )
        })
        .collect();
    for wanted in [
        ("new.test:443", "not_listed"),
        ("new.test:443", "denied"),
        ("new.test:443", "allowed"),
    ] {
        assert!(verdicts.contains(&wanted), "{wanted:?} in {verdicts:?}");
    }
    let text = host.ok(&["net", "one", "--refused"]);
    assert!(
        text.contains("blocked: not_listed") && !text.contains("allowed"),
        "{text}"
    );
}

#[test]
fn a_policy_that_cannot_be_is_refused_before_anything_changes() {
    let host = host_with_box();
    let before = host.ok(&["policy", "show", "one", "--json"]);
    for (arguments, code) in [
        (vec!["--allow", "fine.test", "--allow", "*"], 2),
        (vec!["--allow", "a.test", "--deny", "a.test"], 2),
        (vec!["--allow", "fine.test", "--remove", "never.test"], 3),
        (vec!["--net", "open", "--everywhere"], 2),
        (vec![], 2),
    ] {
        let all: Vec<&str> = ["policy", "set", "one"]
            .into_iter()
            .chain(arguments)
            .collect();
        let said = host.run(&all);
        assert_eq!(said.code, code, "{all:?} {said}");
    }
    assert_eq!(host.ok(&["policy", "show", "one", "--json"]), before);
    // The control.
    host.ok(&["policy", "set", "one", "--net", "open"]);
    assert_eq!(
        curl(&host, "https://new.test/").out,
        "hello from new.test\n 200"
    );
}
