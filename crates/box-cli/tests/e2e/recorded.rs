//! Conversations that real agents recorded in one box, taken in by another: they are there to be
//! read, and the next prompt goes on with them.

use super::credential::Token;
use super::host::{Start, TestHost};
use box_fakes::model::{Api, Model, Script, Step};
use serde_json::Value;
use std::fs;

/// A turn of `agent` in box `one`, whose record goes on in box `two`.
fn goes_on_elsewhere(host: &TestHost, agent: &str, record: &str, model: &Model) {
    model.script(Script::on("remember the heron").message([Step::text("I keep that in mind.")]));
    model.script(Script::on("which bird").message([Step::text("It was the heron.")]));
    host.run(&["run", agent, "remember the heron", "--name", "one"])
        .assert_code(0);
    let recorded = host.shell("one", &format!("cat {record}"));
    recorded.assert_code(0);
    // A line that is not whole, as of an agent that was killed, costs only itself.
    let file = host.home().join("recorded.jsonl");
    fs::create_dir_all(host.home()).unwrap();
    fs::write(&file, format!("{}{{\"type\":\n", recorded.out)).unwrap();

    host.ok(&["new", "two"]);
    let file = file.to_str().unwrap();
    let taken = host.ok(&["thread", "import", file, "--box", "two", "--json"]);
    let taken: Value = serde_json::from_str(&taken).unwrap();
    assert_eq!(taken["damaged_count"], 1, "{taken}");
    let lines = recorded.out.lines().count() as u64;
    assert_eq!(taken["damaged"][0]["line"], lines + 1, "{taken}");
    assert_eq!(
        (&taken["agent"], &taken["goes_on"]),
        (&agent.into(), &true.into()),
        "{taken}"
    );
    let thread = format!("two/{}", taken["thread"].as_str().unwrap());
    let shown = host.ok(&["thread", "export", &thread]);
    assert!(shown.contains("I keep that in mind."), "{shown}");
    let found = host.ok(&["search", "heron", "--box", "two"]);
    assert!(found.contains("two"), "{found}");

    host.ok(&["thread", "send", &thread, "which bird was it?"]);
    let ((), _) = host.control().follow_until("two", |journal| {
        journal.text().contains("It was the heron.").then_some(())
    });
    let turn = model.turns().pop().unwrap();
    // The model is told what was said elsewhere.
    let before = turn.before.first().map(String::as_str);
    assert_eq!(before, Some("remember the heron"), "{turn:?}");
    let rows = host.ok(&["thread", "export", &thread]);
    assert_eq!(rows.matches("I keep that in mind.").count(), 1, "{rows}");
}

#[test]
fn a_conversation_of_real_claude_goes_on_in_another_box() {
    let host = TestHost::new();
    let token = Token::random();
    let model = host.rig.model(token.as_str());
    token.add_to(&host);
    goes_on_elsewhere(&host, "claude", "~/.claude/projects/*/*.jsonl", &model);
}

#[test]
fn a_conversation_of_real_codex_goes_on_in_another_box() {
    let host = TestHost::with(Start::Agent("codex"));
    let token = "sk-proj-of-a-test-of-recorded-conversations";
    let model = host.rig.model_of(Api::OpenAi, token);
    let added = host.program(&["credential", "add", "openai"]);
    added
        .input(format!("{token}\n").as_bytes())
        .run()
        .assert_code(0);
    goes_on_elsewhere(
        &host,
        "codex",
        "~/.codex/sessions/*/*/*/rollout-*.jsonl",
        &model,
    );
}
