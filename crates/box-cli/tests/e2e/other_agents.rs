//! Agents beside the four of every run, one turn each: a real box, offline, through the way out, with
//! a placeholder. `cargo xtask test agents --all`.

use super::agents::{ended, prompt, token};
use super::control::Journal;
use super::credential::assert_nowhere_in_box;
use super::host::{Start, TestHost};
use box_api::thread::{Item, TurnOutcome};
use box_fakes::model::{Api, Script, Step};

/// A turn, and one more by a new process that has taken the conversation up or says that it has not.
fn does_a_turn(agent: &'static str, kind: &str, prefix: &str) {
    let host = TestHost::with(Start::Agent(agent));
    let token = token(prefix);
    let model = host.rig.model_of(Api::OpenAi, &token);
    model.script(Script::on("are you there").message([Step::text("I am here.")]));
    model.script(Script::on("and now").message([Step::text("Still here.")]));
    let typed = format!("{token}\n");
    let added = host.program(&["credential", "add", kind]);
    added.input(typed.as_bytes()).run().assert_code(0);
    let said = host.run(&["run", agent, "are you there", "--name", "one"]);
    let journal = host.control().journal("one");
    assert_eq!(said.code, 0, "{said} {journal:?} {:?}", model.refusals());
    assert!(journal.text().ends_with("I am here."), "{journal:?}");

    host.ok(&["stop", "one"]);
    let outcome = ended(prompt(&host, "and now"));
    let journal = host.control().journal("one");
    assert_eq!(outcome, TurnOutcome::Done, "{journal:?}");
    assert!(journal.text().ends_with("Still here."), "{journal:?}");
    assert_eq!(
        journal.text().matches("I am here.").count(),
        1,
        "{journal:?}"
    );
    let turns = model.turns();
    let turn = turns.iter().rfind(|turn| turn.prompt == "and now").unwrap();
    let knows = turn.before.iter().any(|prompt| prompt == "are you there");
    assert_ne!(knows, begins_anew(&journal), "{turn:?} {journal:?}");

    assert_eq!(model.refusals(), [], "{:?}", model.side_requests());
    let requests = model.requests();
    let credentials = requests.iter().flat_map(|request| request.credentials());
    let values: Vec<&str> = credentials.map(|(_, value)| value).collect();
    assert!(!values.is_empty(), "no request carried a credential");
    assert!(values.iter().all(|value| value.ends_with(&token)));
    assert_nowhere_in_box(&host, "one", &token);
}

fn begins_anew(journal: &Journal) -> bool {
    let told = |item: &Item| matches!(item, Item::Notice { text } if text.contains("a new one"));
    journal.rows.values().any(|row| told(&row.item))
}

#[test]
fn real_kimi_does_a_turn_and_goes_on() {
    does_a_turn("kimi", "moonshot", "sk-");
}

#[test]
fn real_qwen_does_a_turn_and_goes_on() {
    does_a_turn("qwen", "dashscope", "sk-");
}

#[test]
fn real_copilot_does_a_turn_and_goes_on() {
    does_a_turn("copilot", "openai", "sk-proj-");
}

#[test]
fn real_grok_does_a_turn_and_goes_on() {
    does_a_turn("grok", "xai", "xai-");
}
