//! Durable processes: they outlive their caller and the host, and nothing they print is lost.

use super::host::{PATIENCE, TestHost};
use super::program::Said;
use std::time::Instant;

/// Until a command says what is waited for; the host is asked again and again.
#[track_caller]
fn until(what: &str, said: impl Fn() -> Said, is: impl Fn(&Said) -> bool) -> Said {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let said = said();
        if is(&said) {
            return said;
        }
        assert!(Instant::now() < deadline, "never {what}: {said}");
    }
}

#[track_caller]
fn detach(host: &TestHost, name: &str, script: &str) {
    let words = [
        "exec", "--detach", "--name", name, "one", "--", "sh", "-c", script,
    ];
    assert_eq!(host.ok(&words), format!("{name}\n"));
}

/// Lines `1` to `count`.
fn counted(count: u32) -> String {
    let lines: Vec<String> = (1..=count).map(|number| number.to_string()).collect();
    lines.join("\n") + "\n"
}

#[test]
fn a_detached_process_is_listed_followed_and_ended() {
    let host = TestHost::new();
    host.ok(&["new", "one"]);
    detach(
        &host,
        "server",
        "echo up; echo err >&2; trap 'echo bye; exit 7' TERM; while :; do sleep 0.1; done",
    );
    let up = |said: &Said| said.out.contains("up\n") && said.out.contains("err\n");
    until("said up", || host.run(&["logs", "one", "server"]), up);
    let listed = host.ok(&["ps", "one"]);
    assert!(listed.contains("server   running"), "{listed}");
    let json: serde_json::Value = serde_json::from_str(&host.ok(&["ps", "one", "--json"])).unwrap();
    assert_eq!(json["processes"][0]["kind"], "detached");
    assert_eq!(json["processes"][0]["command"][0], "sh");
    let all = host.ok(&["ps", "one", "--all"]);
    assert!(
        all.contains("sh -c echo up") && all.contains("sleep 0.1"),
        "{all}"
    );

    // Whoever follows it is done when it ends, and has its last words.
    let follower = host.program(&["logs", "-f", "one", "server"]).start();
    host.ok(&["kill", "one", "server"]);
    let last_words = follower.finish(PATIENCE);
    last_words.assert_code(0);
    // What its shell says of a child that was told as well may follow.
    assert!(last_words.out.contains("bye\n"), "{last_words}");
    let listed = host.ok(&["ps", "one"]);
    assert!(listed.contains("ended, code 7"), "{listed}");

    // The name is free again; a process that does not heed is killed with what it started.
    detach(
        &host,
        "server",
        "trap '' TERM; (setsid sleep 1000 &) ; echo on; while :; do sleep 0.1; done",
    );
    let on = |said: &Said| said.out == "on\n";
    until("said on", || host.run(&["logs", "one", "server"]), on);
    let taken = host.run(&["exec", "-d", "--name", "server", "one", "--", "true"]);
    taken.assert_code(125);
    assert!(taken.err.contains("runs already"), "{taken}");
    host.ok(&["kill", "one", "server", "--now"]);
    let gone = |said: &Said| !said.out.contains("sleep 1000");
    until("gone", || host.run(&["ps", "one", "--all"]), gone);

    // What does not work is told.
    let none = host.run(&["kill", "one", "nobody"]);
    none.assert_code(1);
    assert!(none.err.contains("processes: `server`"), "{none}");
    let missing = host.run(&["exec", "-d", "one", "--", "no-such-program"]);
    missing.assert_code(125);
    assert!(missing.err.contains("no-such-program"), "{missing}");
    assert!(!host.ok(&["ps", "one"]).contains("no-such-program"));
}

#[test]
fn hosts_come_and_go_and_no_process_and_no_line_is_lost() {
    let host = TestHost::new();
    host.ok(&["new", "one"]);
    // Says a line whenever it is told to, so that no clock is in it.
    let script = "n=0; while [ ! -e stop ]; do
        if [ -e go ]; then rm go; i=0; while [ $i -lt 5000 ]; do n=$((n+1)); i=$((i+1)); echo $n; done; touch done; fi
        sleep 0.02; done; echo end; exit 3";
    detach(&host, "counter", script);
    let burst = || {
        host.shell(
            "one",
            "rm -f done; touch go; until [ -e done ]; do sleep 0.02; done",
        )
        .assert_code(0);
    };
    let pid = |host: &TestHost| {
        let json: serde_json::Value =
            serde_json::from_str(&host.ok(&["ps", "one", "--json"])).unwrap();
        json["processes"][0]["pid"]
            .as_u64()
            .expect("a running process")
    };
    let (first_host, process) = (host.pid(), pid(&host));
    burst();
    // Killed, and so whatever it had not said yet is said by the next.
    host.kill();
    host.ok(&["list"]);
    let second_host = host.pid();
    assert_ne!(first_host, second_host);
    assert_eq!(pid(&host), process);
    // Told to speak while no host is there: a command of its own sees to it.
    let delayed = "until [ -e no-host ]; do sleep 0.02; done; touch go; until [ -e done ]; do sleep 0.02; done; touch spoken";
    host.shell("one", "rm -f done").assert_code(0);
    detach(&host, "delayed", delayed);
    let workspace = host.info("one").workspace.unwrap();
    host.ok(&["serve", "--stop"]);
    std::fs::write(format!("{workspace}/no-host"), "").unwrap();
    let deadline = Instant::now() + PATIENCE;
    while !std::path::Path::new(&workspace).join("spoken").exists() {
        assert!(
            Instant::now() < deadline,
            "the process waits although its spool has room"
        );
    }
    host.ok(&["list"]);
    assert_ne!(host.pid(), second_host);
    assert_eq!(pid(&host), process);
    host.ok(&["serve", "--stop"]);
    burst();
    host.shell("one", "touch stop").assert_code(0);
    let followed = host.run(&["logs", "-f", "one", "counter"]);
    followed.assert_code(0);
    assert!(
        followed.out == format!("{}end\n", counted(15_000)),
        "lines are lost or doubled"
    );
    assert!(host.ok(&["ps", "one"]).contains("ended, code 3"));
}

#[test]
fn a_log_has_a_limit_and_a_process_that_floods_goes_on() {
    let host = TestHost::new();
    host.ok(&["new", "one"]);
    detach(
        &host,
        "flood",
        "head -c 30000000 /dev/zero | tr '\\0' x; echo last; sleep 1000",
    );
    let last = |said: &Said| said.out.ends_with("last\n");
    let said = until("ended", || host.run(&["logs", "one", "flood"]), last);
    assert!(
        said.out.starts_with("[box: "),
        "what was dropped is not told"
    );
    assert!(
        said.out.len() < 10 << 20,
        "{} bytes are kept",
        said.out.len()
    );
}

#[test]
fn a_process_ends_with_its_box_and_that_is_said() {
    let host = TestHost::new();
    host.ok(&["new", "one"]);
    detach(&host, "server", "echo up; exec sleep 1000");
    let up = |said: &Said| said.out == "up\n";
    until("up", || host.run(&["logs", "one", "server"]), up);
    host.ok(&["stop", "one"]);
    let listed = host.ok(&["ps", "one"]);
    assert!(listed.contains("ended"), "{listed}");
    assert_eq!(host.ok(&["logs", "-f", "one", "server"]), "up\n");
    let stopped = host.run(&["exec", "-d", "one", "--", "true"]);
    stopped.assert_code(125);
    assert!(stopped.err.contains("box start one"), "{stopped}");
}

#[test]
fn logs_say_where_the_conversation_is() {
    let host = TestHost::new();
    host.ok(&["run", "demo", "--name", "one", "--allow-all"]);
    let said = host.run(&["logs", "one"]);
    assert!(said.err.contains("box attach one"), "{said}");
    // The control: a process of a person's has no conversation.
    detach(&host, "server", "echo up");
    let up = |said: &Said| said.out == "up\n";
    let said = until("up", || host.run(&["logs", "one", "server"]), up);
    assert!(!said.err.contains("box attach"), "{said}");
}
