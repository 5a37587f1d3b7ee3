//! What a real agent costs, read by the way out in the answers of its model, and a budget that
//! interrupts it.

use super::credential::Token;
use super::host::TestHost;
use box_api::budget::ModelUsage;
use box_fakes::model::{Script, Step};
use serde_json::Value;

fn usage(host: &TestHost) -> ModelUsage {
    serde_json::from_str(&host.ok(&["usage", "one", "--json"])).unwrap()
}

#[test]
fn what_real_claude_costs_is_read_on_the_way_and_a_budget_interrupts_it() {
    let host = TestHost::new();
    host.settings(
        "",
        "[budget.prices]\n\"*\" = { input = 10, output = 100 }\n",
    );
    let token = Token::random();
    let model = host.rig.model(token.as_str());
    let works = || Step::bash("true");
    // First: what was interrupted is said again in one breath with it.
    model.script(Script::on("the pause is over").message([Step::text("I went on.")]));
    model.script(
        Script::on("work a while")
            .message([works()])
            .message([works()])
            .message([works()])
            .message([works()])
            .message([Step::text("That was all.")]),
    );
    model.script(
        Script::on("and once more")
            .message([Step::text("I begin."), works()])
            .message([Step::text("Hm."), Step::gate("never")]),
    );
    token.add_to(&host);

    let run =
        |prompt: &str, how: &str| host.run(&["run", "claude", prompt, how, "one", "--allow-all"]);
    run("work a while", "--name").assert_code(0);
    let used = usage(&host);
    assert!(
        used.lines.iter().all(|line| line.thread.is_some()),
        "{used:?}"
    );
    assert!(
        used.lines
            .iter()
            .all(|line| line.credential == "claude" && line.unread == 0),
        "{used:?}"
    );
    let answers: u64 = used.lines.iter().map(|line| line.answers).sum();
    assert!(answers >= 5, "{used:?}");
    let tokens: u64 = used.lines.iter().map(|line| line.tokens.counted()).sum();
    // Each answer of this model is 100 in and 20 out; a side request may have been cut off.
    assert!(tokens >= 5 * 120 && tokens <= answers * 120, "{used:?}");
    let cost: u64 = used.lines.iter().filter_map(|line| line.cost_micro).sum();
    assert!(cost >= 5 * 3000, "{used:?}");

    host.ok(&["set", "one", &format!("budget={}", tokens + 1)]);
    let stopped = run("and once more", "--box");
    stopped.assert_code(5);
    assert!(stopped.out.contains("is used up"), "{stopped}");
    let decisions = host.ok(&["decisions", "--json"]);
    let decisions: Value = serde_json::from_str(&decisions).unwrap();
    let asked = decisions.to_string();
    assert!(
        asked.contains("\"budget\"") && asked.contains("is used up"),
        "{asked}"
    );
    let number = host.ok(&["decisions"]);
    let number: String = number.chars().take_while(char::is_ascii_digit).collect();
    host.ok(&["answer", &number, "raise"]);
    let ((), _) = host.control().follow_until("one", |journal| {
        journal.text().contains("I went on.").then_some(())
    });
    let budget = host.info("one").settings.budget.unwrap();
    assert_eq!(budget.to_string(), (2 * (tokens + 1)).to_string());
}
