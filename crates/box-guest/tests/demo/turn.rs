//! Whole turns.

use crate::client::{Answers, Client, Handled, Seen};

const YES: Answers = Answers {
    permission: "allow_once",
    form: Some("nothing"),
};

fn whole(client: &mut Client, answers: Answers) -> Seen {
    client.turn(answers, |_, _| Handled::No)
}

fn statuses(seen: &Seen) -> Vec<String> {
    seen.calls().into_iter().map(|call| call.1).collect()
}

#[test]
fn a_turn_that_is_allowed_finds_the_bug_and_fixes_it() {
    let mut client = Client::start("default");
    let seen = whole(&mut client, YES);
    assert_eq!(seen.stop_reason, "end_turn");
    assert_eq!(
        seen.methods(),
        ["elicitation/create", "session/request_permission"]
    );
    assert!(
        seen.text("agent_thought_chunk")
            .starts_with("Demo – no model")
    );
    assert!(
        seen.text("agent_message_chunk")
            .contains("The bug is fixed and the tests pass.")
    );
    assert!(
        seen.text("agent_message_chunk")
            .ends_with("Demo – no model.")
    );

    let calls = seen.calls();
    let titles: Vec<&str> = calls.iter().map(|call| call.0.as_str()).collect();
    assert_eq!(
        titles,
        [
            "Write demo-calculator/calculator.py",
            "Write demo-calculator/test_calculator.py",
            "Run the tests: python3 -B -m unittest -v",
            "Fix demo-calculator/calculator.py",
            "Run the tests again: python3 -B -m unittest -v",
            "Try a host that is not allowed: http://blocked.example/",
        ]
    );
    assert_eq!(
        statuses(&seen),
        [
            "completed",
            "completed",
            "failed",
            "completed",
            "completed",
            "failed"
        ]
    );
    // Real output of real runs.
    assert!(
        calls[2].2.contains("FAILED (failures=1, errors=1)"),
        "{}",
        calls[2].2
    );
    assert!(calls[4].2.contains("OK"), "{}", calls[4].2);
    assert!(
        calls[5].2.contains("`blocked.example` does not resolve"),
        "{}",
        calls[5].2
    );
    // The answer to the question is in the file.
    let fixed = std::fs::read_to_string(client.file("calculator.py")).unwrap();
    assert!(
        fixed.contains("return None") && !fixed.contains("//"),
        "{fixed}"
    );
}

#[test]
fn the_plan_goes_from_nothing_to_everything_done() {
    let mut client = Client::start("bypassPermissions");
    let seen = whole(&mut client, YES);
    let plans: Vec<Vec<&str>> = seen
        .updates
        .iter()
        .filter(|update| update["sessionUpdate"] == "plan")
        .map(|plan| plan["entries"].as_array().unwrap())
        .map(|entries| {
            entries
                .iter()
                .map(|entry| entry["status"].as_str().unwrap())
                .collect()
        })
        .collect();
    assert_eq!(
        plans[0],
        ["in_progress", "pending", "pending", "pending", "pending"]
    );
    assert_eq!(plans.last().unwrap(), &["completed"; 5]);
}

#[test]
fn edits_are_shown_as_diffs_of_what_is_there() {
    let mut client = Client::start("default");
    let first = whole(&mut client, YES);
    let second = whole(&mut client, YES);
    let diffs = |seen: &Seen| -> Vec<(bool, String)> {
        let calls = seen
            .updates
            .iter()
            .filter(|update| update["kind"] == "edit");
        let diffs = calls.map(|call| &call["content"][0]);
        diffs
            .map(|diff| {
                (
                    diff["oldText"].is_null(),
                    diff["newText"].as_str().unwrap().to_owned(),
                )
            })
            .collect()
    };
    let new: Vec<bool> = diffs(&first).into_iter().map(|diff| diff.0).collect();
    assert_eq!(new, [true, true, false]);
    assert!(diffs(&second).into_iter().all(|diff| !diff.0));
    assert_eq!(
        diffs(&second)[2].1,
        std::fs::read_to_string(client.file("calculator.py")).unwrap()
    );
}

#[test]
fn a_rejected_fix_leaves_the_bug_and_ends_the_turn() {
    let mut client = Client::start("default");
    let seen = whole(
        &mut client,
        Answers {
            permission: "reject_once",
            ..YES
        },
    );
    assert_eq!(seen.stop_reason, "end_turn");
    assert_eq!(
        statuses(&seen),
        [
            "completed",
            "completed",
            "failed",
            "failed",
            "failed",
            "failed"
        ]
    );
    assert!(
        std::fs::read_to_string(client.file("calculator.py"))
            .unwrap()
            .contains("a // b")
    );
}

#[test]
fn without_an_answer_to_the_question_the_default_is_taken() {
    let mut client = Client::start("default");
    let seen = whole(&mut client, Answers { form: None, ..YES });
    assert_eq!(seen.stop_reason, "end_turn");
    assert!(
        std::fs::read_to_string(client.file("calculator.py"))
            .unwrap()
            .contains("raise ValueError")
    );
}

#[test]
fn bypass_asks_nothing() {
    let mut client = Client::start("bypassPermissions");
    let seen = whole(&mut client, YES);
    assert_eq!(
        (seen.stop_reason.as_str(), seen.methods().len()),
        ("end_turn", 0)
    );
    assert!(
        std::fs::read_to_string(client.file("calculator.py"))
            .unwrap()
            .contains("raise ValueError")
    );
}

#[test]
fn always_is_remembered_for_the_session() {
    let mut client = Client::start("default");
    let first = whole(
        &mut client,
        Answers {
            permission: "allow_always",
            ..YES
        },
    );
    assert!(first.methods().contains(&"session/request_permission"));
    let second = whole(&mut client, YES);
    assert_eq!(second.methods(), ["elicitation/create"]);
}

#[test]
fn without_python_it_says_so_and_uses_the_shell() {
    let mut client = Client::start_with(&["env", "PATH=/nowhere"], "default");
    let seen = whole(&mut client, YES);
    assert_eq!(seen.stop_reason, "end_turn");
    assert!(
        seen.text("agent_message_chunk")
            .contains("There is no Python here")
    );
    assert_eq!(
        statuses(&seen),
        [
            "completed",
            "completed",
            "failed",
            "completed",
            "completed",
            "failed"
        ]
    );
    let calls = seen.calls();
    assert!(calls[2].2.contains("divide ... FAIL"), "{}", calls[2].2);
    assert!(
        calls[4].2.contains("divide_by_zero ... ok"),
        "{}",
        calls[4].2
    );
}
