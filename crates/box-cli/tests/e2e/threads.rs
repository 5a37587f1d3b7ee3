//! Several threads of the real Claude Code in one box: queue, fork in mid-turn, options, work in the
//! background, and the thread as a document.

use super::credential::Token;
use super::host::{PATIENCE, TestHost};
use box_fakes::model::{Script, Step};
use serde_json::{Value, json};
use std::time::Instant;

const ATTACHED: &str = "a line is the next prompt";

fn json_of(host: &TestHost, arguments: &[&str]) -> Value {
    let out = host.ok(&[arguments, &["--json"]].concat());
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
}

/// The box's threads, once they are as `wanted`.
fn threads_once(host: &TestHost, wanted: impl Fn(&Value) -> bool) -> Value {
    let until = Instant::now() + PATIENCE;
    loop {
        let threads = json_of(host, &["threads", "one"]);
        if wanted(&threads) {
            return threads;
        }
        assert!(Instant::now() < until, "{threads:#}");
    }
}

/// Attaches, sees `text`, leaves.
fn sees(host: &TestHost, thread: &str, text: &str) {
    let mut terminal = host.terminal(&["attach", thread, "--all"]);
    terminal.expect(ATTACHED, PATIENCE);
    terminal.expect(text, PATIENCE);
    terminal.type_in("\u{4}");
    terminal.finish(PATIENCE);
}

#[test]
#[expect(clippy::too_many_lines, reason = "one story, told in order")]
fn threads_of_one_box_queue_fork_and_work_in_the_background() {
    let host = TestHost::new();
    let token = Token::random();
    let model = host.rig.model(token.as_str());
    let answer = |on: &str, text: &str| Script::on(on).message([Step::text(text)]);
    model.script(answer("zero question", "Zero answer."));
    model.script(Script::on("first question").message([
        Step::text("Working."),
        Step::gate("hold"),
        Step::text(" First answer."),
    ]));
    model.script(answer("second question", "Second answer."));
    model.script(answer("forked question", "Fork answer."));
    let behind = json!({"command":"sleep 600","description":"Waits","run_in_background":true});
    model.script(
        Script::on("run it behind")
            .message([Step::tool("Bash", behind)])
            .message([Step::text("It runs.")]),
    );
    token.add_to(&host);
    host.run(&[
        "run",
        "claude",
        "zero question",
        "--name",
        "one",
        "--allow-all",
    ])
    .assert_code(0);

    // A turn is held open: what comes meanwhile waits.
    host.ok(&["thread", "send", "one", "first question"]);
    model.wait_at("hold", PATIENCE).unwrap();
    host.ok(&["thread", "send", "one", "second question"]);
    let threads = threads_once(&host, |threads| threads[0]["queued"] == 1);
    assert_eq!(threads[0]["state"], "running");

    // A fork of it works while it does, in plan mode, on everything said so far.
    let fork = host.ok(&["thread", "fork", "one"]).trim().to_owned();
    host.ok(&["thread", "send", &fork, "forked question"]);
    sees(&host, &fork, "Fork answer.");
    let shown = json_of(&host, &["thread", "show", &fork]);
    let mode = |shown: &Value| {
        let options = shown["options"].as_array().unwrap();
        let mode = options.iter().find(|one| one["category"] == "mode");
        mode.unwrap()["value"].clone()
    };
    assert_eq!(mode(&shown), "plan", "{shown:#}");
    let told = host.ok(&["thread", "export", &fork]);
    assert!(
        told.contains("Zero answer.") && told.contains("Fork answer."),
        "{told}"
    );

    let source = threads[0]["thread"].as_str().unwrap();
    let source = format!("one/{source}");
    model.open("hold");
    sees(&host, &source, "Second answer.");
    let told = host.ok(&["thread", "export", &source]);
    assert!(!told.contains("Fork answer."), "{told}");

    // Chosen options hold at once.
    host.ok(&["thread", "set", &source, "mode=plan"]);
    threads_once(&host, |_| {
        mode(&json_of(&host, &["thread", "show", &source])) == "plan"
    });
    host.ok(&["thread", "set", &source, "mode=bypassPermissions"]);
    host.run(&["thread", "set", &source, "mode=nonsense"])
        .assert_code(2);

    // The turn is over and its work goes on.
    host.ok(&["thread", "send", &source, "run it behind"]);
    sees(&host, &source, "It runs.");
    let of_source = |threads: &Value| -> Value {
        let all = threads.as_array().unwrap().iter();
        let mut found = all.filter(|one| source.ends_with(one["thread"].as_str().unwrap()));
        found.next().unwrap().clone()
    };
    let threads = threads_once(&host, |threads| of_source(threads)["state"] == "background");
    assert_eq!(of_source(&threads)["background"], 1, "{threads:#}");
    let tasks = host.ok(&["thread", "tasks", &source]);
    assert!(tasks.contains("local_bash"), "{tasks}");
    token.assert_only_credential(&model);
}
