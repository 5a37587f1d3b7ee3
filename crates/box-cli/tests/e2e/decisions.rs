//! Decisions and usage limits with real agents in real boxes: what outlives a host and what a box
//! takes with it, and a turn that goes on by itself.

use super::credential::Token;
use super::host::TestHost;
use box_api::thread::{Item, TurnOutcome};
use box_fakes::model::{Fault, Script, Step};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The number of the one decision that is open.
fn open_decision(host: &TestHost) -> String {
    let said = host.run(&["decisions"]);
    said.assert_code(0);
    let number: String = said.out.chars().take_while(char::is_ascii_digit).collect();
    assert!(!number.is_empty(), "nothing waits: {said}");
    number
}

#[test]
fn a_decision_outlives_the_host_and_is_lost_with_its_box() {
    let host = TestHost::new();
    let waits = host.run(&["run", "demo", "show me", "--name", "demo"]);
    waits.assert_code(6);
    let number = open_decision(&host);
    host.kill();
    assert_eq!(open_decision(&host), number, "the next host knows it");
    host.run(&["stop", "demo"]).assert_code(0);
    let late = host.run(&["answer", &number, "allow"]);
    late.assert_code(1);
    assert!(late.err.contains("is lost"), "{late}");
    assert!(host.run(&["decisions"]).err.contains("nothing waits"));

    // Once the box is back, the agent asks anew (its question, for it has its project already).
    host.run(&["run", "demo", "once more", "--name", "demo"])
        .assert_code(6);
    let again = open_decision(&host);
    assert_ne!(again, number);
    host.run(&["answer", &again, "--decline"]).assert_code(0);
    let second = host.run(&["answer", &again, "error"]);
    second.assert_code(1);
    assert!(second.err.contains("was answered"), "{second}");
}

#[test]
fn a_turn_at_a_usage_limit_goes_on_by_itself_when_that_is_over() {
    let host = TestHost::new();
    let token = Token::random();
    let model = host.rig.model(token.as_str());
    let soon = SystemTime::now() + Duration::from_secs(5);
    let resets_at_s = soon.duration_since(UNIX_EPOCH).unwrap().as_secs();
    let fault = Fault::UsageLimit { resets_at_s };
    // An agent that had shown nothing yet is asked the same again.
    let stops = Step::Fail { fault, times: 1 };
    let over = Step::text("Over the wall.");
    model.script(Script::on("hit the wall").message([stops, over]));
    token.add_to(&host);
    let said = host.run(&["run", "claude", "hit the wall", "--name", "one"]);
    said.assert_code(5);
    assert!(said.err.contains("goes on by itself at"), "{said}");
    let ((), journal) = host.control().follow_until("one", |journal| {
        journal.text().contains("Over the wall.").then_some(())
    });
    let ends = journal.rows.values().filter_map(|row| {
        let Item::TurnEnded { outcome, .. } = &row.item else {
            return None;
        };
        Some(*outcome)
    });
    assert_eq!(ends.collect::<Vec<_>>().first(), Some(&TurnOutcome::Parked));
}
