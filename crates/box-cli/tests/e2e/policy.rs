//! What a box may reach, level by level: the settings, a set of them, the environment of the host,
//! the box; the proxy of a company; and one private address.

use super::credential::Token;
use super::host::TestHost;
use super::program::Said;
use box_fakes::rig::{Answer, StrictProxy};
use serde_json::Value;

const NO_PROXY: &str = "env -u HTTP_PROXY -u HTTPS_PROXY -u ALL_PROXY \
    -u http_proxy -u https_proxy -u all_proxy";
const PASSWORD: &str = "pass-of-the-company";

/// Fetches `https://<name>/` from inside the box `one`; says what the way out saw when the answer
/// is another.
#[track_caller]
fn answers(host: &TestHost, name: &str, expected: &str) {
    let said = status(host, name);
    if said.out != expected {
        let seen = host.run(&["net", "one"]);
        panic!(
            "{name}: not {expected}: {said}\n{seen}\n{}",
            host.whereabouts()
        );
    }
}

/// The status of `https://<name>/`, from inside the box `one`.
fn status(host: &TestHost, name: &str) -> Said {
    let script =
        format!("{NO_PROXY} curl -sS -m 40 -o /dev/null -w '%{{http_code}}' https://{name}/");
    host.shell("one", &script)
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn origins(host: &TestHost, names: &[&str]) {
    for name in names {
        host.rig.origin(name);
    }
}

#[test]
fn levels_add_deny_wins_and_the_settings_are_read_again() {
    let host = TestHost::new();
    origins(&host, &["ok.test", "bad.test", "ci.test", "later.test"]);
    host.settings(
        "",
        "[net]\ndeny = [\"bad.test\"]\n[net.sets.ci]\nallow = [\"ci.test\"]\n",
    );
    host.ok(&[
        "new", "one", "--net", "locked", "--allow", "ok.test", "--allow", "bad.test",
    ]);
    answers(&host, "ok.test", "200");
    answers(&host, "bad.test", "451");
    let shown = json(&host.ok(&["policy", "show", "one", "--json"]));
    let entries = shown["entries"].to_string();
    assert!(
        entries.contains(r#"{"entry":"bad.test","from":"settings","verdict":"deny"}"#),
        "{entries}"
    );
    let findings = shown["findings"].to_string();
    assert!(findings.contains("deny wins"), "{findings}");
    // A set is taken on by its name.
    answers(&host, "ci.test", "451");
    host.run(&["set", "one", "net-set=nope"]).assert_code(2);
    host.ok(&["set", "one", "net-set=ci"]);
    answers(&host, "ci.test", "200");
    let text = host.ok(&["policy", "show", "one"]);
    assert!(text.contains("set ci"), "{text}");
    // What cannot be used changes nothing; what can holds at once.
    host.settings("", "[net]\nallow = [\"later.test\", \"*.co.uk\"]\n");
    let refused = host.run(&["policy", "reload"]);
    refused.assert_code(2);
    assert!(refused.err.contains("`*.co.uk`"), "{refused}");
    answers(&host, "later.test", "451");
    answers(&host, "ci.test", "200");
    host.settings(
        "",
        "[net]\nallow = [\"later.test\"]\n[net.sets.ci]\ndeny = [\"ok.test\"]\n",
    );
    host.ok(&["policy", "reload"]);
    answers(&host, "later.test", "200");
    answers(&host, "bad.test", "200");
    answers(&host, "ok.test", "451");
    let differs = json(&host.ok(&["policy", "diff", "one", "--defaults", "--json"]));
    let only = differs["only_first"].to_string();
    assert!(only.contains(r#"["deny","ok.test"]"#), "{only}");
    assert!(!only.contains("later.test"), "{only}");
}

#[test]
fn hosts_of_the_environment_are_the_only_ones_whatever_the_preset() {
    let host = TestHost::new();
    origins(
        &host,
        &[
            "ok.test",
            "a.wild.test",
            "wild.test",
            "x.a.wild.test",
            "other.test",
        ],
    );
    let mut first = host.program(&["new", "one", "--net", "open"]);
    first
        .command
        .env("EGRESS_ALLOWED_HOSTS", "OK.test., *.wild.test");
    first.run().assert_code(0);
    for (name, expected) in [
        ("ok.test", "200"),
        ("a.wild.test", "200"),
        ("wild.test", "451"),
        ("x.a.wild.test", "451"),
        ("other.test", "451"),
    ] {
        assert_eq!(status(&host, name).out, expected, "{name}");
    }
    let shown = host.ok(&["policy", "show", "one"]);
    assert!(shown.contains("environment"), "{shown}");
    // Empty: any public host, and that is what new boxes have.
    host.ok(&["serve", "--stop"]);
    let mut second = host.program(&["new", "two"]);
    second.command.env("EGRESS_ALLOWED_HOSTS", "");
    second.run().assert_code(0);
    let shown = json(&host.ok(&["policy", "show", "two", "--json"]));
    assert_eq!(shown["net"], "open");
    assert_eq!(status(&host, "other.test").out, "200");
}

#[test]
fn entries_of_a_box_are_checked_told_and_taken_away() {
    let host = TestHost::new();
    origins(&host, &["ok.test"]);
    host.ok(&["new", "one", "--allow", "ok.test", "--net", "locked"]);
    let check = |arguments: &[&str]| {
        let all = [["policy", "check", "one"].as_slice(), arguments].concat();
        host.run(&all)
    };
    host.ok(&["policy", "set", "one", "--deny", "45.33.0.0/16"]);
    assert_eq!(status(&host, "ok.test").out, "451");
    let refused = check(&["https://ok.test/", "--address", "45.33.32.1"]);
    refused.assert_code(3);
    assert!(
        refused.out.contains("denied_network, deny 45.33.0.0/16"),
        "{refused}"
    );
    host.ok(&["policy", "set", "one", "--remove", "45.33.0.0/16"]);
    assert_eq!(status(&host, "ok.test").out, "200");
    // A rule about requests wants a host whose requests can be read.
    let rule = "GET https://ok.test/repos/*";
    let refused = host.run(&["policy", "set", "one", "--allow", rule]);
    refused.assert_code(3);
    assert!(refused.err.contains("credential"), "{refused}");
    for (option, entry) in [
        ("--allow", "*.co.uk"),
        ("--allow", "10.0.0.0/8"),
        ("--allow", "db.internal"),
        ("--allow-private", "localhost:5432"),
        ("--allow-private", "*.corp.test:5432"),
        ("--deny", "10.0.0.1/8"),
    ] {
        let refused = host.run(&["policy", "set", "one", option, entry]);
        refused.assert_code(2);
        assert!(refused.err.contains(entry), "{refused}");
    }
    let private = ["db.corp.test:5432", "--address", "10.1.2.3"];
    check(&private).assert_code(3);
    host.ok(&[
        "policy",
        "set",
        "one",
        "--allow-private",
        "db.corp.test:5432",
    ]);
    check(&private).assert_code(0);
    check(&["db.corp.test:5432", "--address", "127.0.0.1"]).assert_code(3);
    let shown = json(&host.ok(&["policy", "show", "one", "--json"]));
    assert!(shown["entries"].to_string().contains("private"), "{shown}");
    host.ok(&["policy", "set", "one", "--remove", "db.corp.test:5432"]);
    check(&private).assert_code(3);
    let events = host.ok(&["events", "one"]);
    assert!(
        events.contains("may reach `db.corp.test:5432` on a private address"),
        "{events}"
    );
    assert!(
        events.contains("may no longer reach `db.corp.test:5432`"),
        "{events}"
    );
}

/// C139. A box that runs trusts the old one until it is started again.
#[test]
fn another_ca_is_trusted_by_boxes_started_since() {
    let host = TestHost::new();
    host.rig.origin("api.anthropic.com");
    let token = Token::random();
    token.add_to(&host);
    host.ok(&["new", "one"]);
    let secret = format!("Bearer {}", token.as_str());
    let ask = || {
        let asks = "curl -sS -m 40 -o /dev/null -w '%{http_code}' \
            -H \"authorization: Bearer $CLAUDE_CODE_OAUTH_TOKEN\" https://api.anthropic.com/";
        host.shell("one", asks)
    };
    let asked = ask();
    assert_eq!(asked.out, "200", "{asked}");
    host.run(&["policy", "new-ca"]).assert_code(2);
    assert_eq!(ask().out, "200", "nothing was done");
    let replaced = host.run(&["policy", "new-ca", "--force"]);
    replaced.assert_code(0);
    assert!(replaced.err.contains("box restart one"), "{replaced}");
    let distrusted = ask();
    assert_eq!(distrusted.out, "000", "{distrusted}");
    host.ok(&["restart", "one"]);
    let trusted = ask();
    assert_eq!(trusted.out, "200", "{trusted}");
    let seen = host.rig.requests("api.anthropic.com");
    assert_eq!(seen.len(), 3);
    for request in &seen {
        assert_eq!(request.header("authorization"), Some(secret.as_str()));
    }
}

#[test]
fn boxes_behind_a_company_reach_hosts_through_its_proxy() {
    let host = TestHost::new();
    let ok = host.rig.origin("ok.test").address;
    host.rig.zone(
        "proxy.corp.test",
        Answer::addresses(["10.9.8.7".parse().unwrap()]),
    );
    host.rig
        .proxy(StrictProxy {
            port: 3129,
            authorization: "Basic bWU6cGFzcy1vZi10aGUtY29tcGFueQ==".to_owned(),
            refused: Vec::new(),
        })
        .unwrap();
    let proxy = format!("proxy = \"http://me:{PASSWORD}@proxy.corp.test:3129\"");
    host.settings(&proxy, "");
    host.ok(&["new", "one", "--allow", "ok.test"]);
    assert_eq!(status(&host, "ok.test").out, "200");
    assert_eq!(host.rig.tunnels(), [format!("{ok}:443")]);
    let shown = host.ok(&["config"]);
    assert!(shown.contains("http://***@proxy.corp.test:3129"), "{shown}");
    assert!(!shown.contains(PASSWORD), "{shown}");
    let found = host.shell(
        "one",
        "env; cat /proc/*/cmdline /proc/*/environ 2>/dev/null",
    );
    assert!(!found.out.contains(PASSWORD), "{found}");
    let log = std::fs::read_dir(host.data().join("log"))
        .into_iter()
        .flatten();
    for file in log.flatten() {
        let text = std::fs::read(file.path()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        assert!(!text.contains(PASSWORD), "{}", file.path().display());
    }
    // Without the setting it is done without.
    host.settings("", "");
    host.ok(&["policy", "reload"]);
    assert_eq!(status(&host, "ok.test").out, "200");
    assert_eq!(host.rig.tunnels().len(), 1);
}
