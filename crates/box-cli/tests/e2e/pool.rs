//! Boxes begun ahead, as a person has them: counted, in no list, and gone with their host.

use super::host::{PATIENCE, TestHost};
use std::collections::BTreeSet;
use std::time::Instant;

fn ahead(host: &TestHost) -> u64 {
    let status: serde_json::Value = serde_json::from_str(&host.ok(&["status", "--json"])).unwrap();
    status["boxes_ahead"].as_u64().unwrap()
}

#[track_caller]
fn come_to(host: &TestHost, count: u64) {
    let deadline = Instant::now() + PATIENCE;
    while ahead(host) != count {
        assert!(Instant::now() < deadline, "{}", host.whereabouts());
    }
}

fn listed(host: &TestHost) -> usize {
    let list: Vec<serde_json::Value> = serde_json::from_str(&host.ok(&["list", "--json"])).unwrap();
    list.len()
}

#[test]
fn boxes_begun_ahead_are_counted_listed_nowhere_and_end_with_a_killed_host() {
    let host = TestHost::new();
    // Whatever this machine has is enough.
    host.settings("", "[pool]\nmax = 1\nreserve = \"1MiB\"\n");
    host.ok(&["new", "one"]);
    assert_eq!(ahead(&host), 0, "one box says nothing of a second");
    host.ok(&["new", "two"]);
    come_to(&host, 1);
    assert_eq!(listed(&host), 2);
    assert!(host.ok(&["status"]).contains("1 begun ahead"));
    host.ok(&["new", "three"]);
    let mut ids = BTreeSet::new();
    for name in ["one", "two", "three"] {
        let line = "hostname; cat /etc/machine-id; echo $$ > /tmp/mine; ls /tmp";
        let said = host.shell(name, line);
        let lines: Vec<&str> = said.out.lines().collect();
        assert_eq!(
            (lines[0], lines[2..].join(" ").as_str()),
            (name, "mine"),
            "{said}"
        );
        ids.insert(lines[1].to_owned());
    }
    assert_eq!(ids.len(), 3, "{ids:?}");
    come_to(&host, 1);
    host.kill();
    assert_eq!(listed(&host), 3, "the verb starts the next host");
    assert_eq!(ahead(&host), 0);
    host.ok(&["new", "four"]);
    assert_eq!(host.shell("four", "hostname").out, "four\n");
}
