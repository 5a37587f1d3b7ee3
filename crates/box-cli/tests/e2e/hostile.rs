//! Agents that misbehave, in the place of the real adapter in an installed pack.

use super::credential::Token;
use super::host::TestHost;
use super::program::Said;
use super::turn::ADAPTER;
use box_fakes::hostile::{Behaviour, PRINTED_KEY};

/// A host whose `claude` behaves like this, with a credential.
fn host_with(behaviour: Behaviour) -> (TestHost, Token) {
    let host = TestHost::new();
    behaviour
        .take_place_of(&host.pack("claude").join(ADAPTER))
        .unwrap();
    let token = Token::random();
    host.rig.model(token.as_str());
    token.add_to(&host);
    (host, token)
}

fn turn(host: &TestHost) -> Said {
    host.run(&["run", "claude", "misbehave", "--name", "one", "--allow-all"])
}

/// Another box of the same host still works.
#[track_caller]
fn assert_host_is_well(host: &TestHost) {
    host.ok(&["new", "neighbour"]);
    assert_eq!(host.shell("neighbour", "echo well").out, "well\n");
}

#[test]
fn an_agent_that_dies_at_start_is_told_with_its_last_words() {
    let (host, _) = host_with(Behaviour::DiesAtStart);
    let said = turn(&host);
    said.assert_code(1);
    insta::assert_snapshot!(said.told(), @r"
    box `one`
    ■ the turn failed: the agent ended with code 3 before it was ready
    ");
    assert!(said.out.contains("cannot find my own head"), "{said}");
    assert_host_is_well(&host);
}

#[test]
fn an_agent_that_prints_garbage_is_told() {
    let (host, _) = host_with(Behaviour::PrintsGarbage);
    let said = turn(&host);
    said.assert_code(1);
    insta::assert_snapshot!(said.told(), @r#"
    box `one`
    ■ the turn failed: the agent did not answer the first message within 60 s; it printed: ··[31mthis is no protocol {"id":
    "#);
    let all = said.out.clone() + &said.err;
    assert!(
        !all.contains('\u{1b}') && !all.contains('\0'),
        "raw bytes: {said}"
    );
    assert_host_is_well(&host);
}

#[test]
fn garbage_between_messages_does_not_end_a_turn() {
    let (host, _) = host_with(Behaviour::PrintsGarbageBetween);
    let said = turn(&host);
    said.assert_code(0);
    assert_eq!(host.control().journal("one").text(), "before after");
    assert!(
        !said.out.contains('\u{1b}') && !said.out.contains('\0'),
        "raw bytes: {said}"
    );
}

#[test]
fn a_line_of_100_mb_ends_the_turn_and_nothing_else() {
    let (host, _) = host_with(Behaviour::PrintsLongLine);
    let said = turn(&host);
    said.assert_code(1);
    insta::assert_snapshot!(said.told(), @r"
    box `one`
    ■ the turn failed: the agent sent a line longer than 32 MiB
    ");
    assert!(said.out.contains("here it comes"), "{said}");
    assert_host_is_well(&host);
}

#[test]
fn unknown_updates_are_kept_and_unknown_requests_refused() {
    let (host, _) = host_with(Behaviour::SendsUnknown);
    let said = turn(&host);
    said.assert_code(0);
    let journal = host.control().journal("one");
    assert_eq!(journal.text(), "still here, told -32601");
    let rows = format!("{:?}", journal.rows);
    assert!(
        rows.contains("hologram") && rows.contains("green"),
        "{rows}"
    );
}

#[test]
fn a_permission_id_used_twice_is_two_decisions() {
    let (host, _) = host_with(Behaviour::ReusesPermissionIds);
    let said = turn(&host);
    said.assert_code(0);
    let text = host.control().journal("one").text();
    assert!(
        text.contains("answer 1") && text.contains("answer 2"),
        "{said}"
    );
    assert_eq!(text.matches("\"selected\"").count(), 2, "{text}");
}

#[test]
fn a_permission_of_a_dead_agent_is_lost_and_says_so() {
    let (host, _) = host_with(Behaviour::DiesWithOpenPermission);
    let said = host.run(&["run", "claude", "misbehave", "--name", "one"]);
    assert_ne!(said.code, 0, "{said}");
    let (_, journal) = host
        .control()
        .follow_until("one", super::control::Journal::ended);
    assert_eq!(journal.open_decisions(), []);
    let rows = format!("{:?}", journal.rows);
    assert!(rows.contains("Lost"), "{rows}");
}

#[test]
fn a_flood_of_updates_arrives_whole() {
    let (host, _) = host_with(Behaviour::Floods);
    let said = turn(&host);
    said.assert_code(0);
    assert_eq!(host.control().journal("one").text().len(), 10_000);
}

#[test]
fn what_an_agent_can_see_holds_no_secret() {
    let (host, token) = host_with(Behaviour::PrintsSecrets);
    let said = turn(&host);
    said.assert_code(0);
    // The control: it did look.
    assert!(said.out.contains("CLAUDE_CODE_OAUTH_TOKEN"), "{said}");
    assert!(!said.out.contains(token.as_str()), "{said}");
}

#[test]
fn a_key_an_agent_prints_is_found_by_no_search() {
    let (host, _) = host_with(Behaviour::PrintsKeys);
    turn(&host).assert_code(0);
    // The control: it did say it, and what stands around it is found.
    assert!(host.control().journal("one").text().contains(PRINTED_KEY));
    let around = host.ok(&["search", "marmoset"]);
    assert!(around.contains("marmoset"), "{around}");
    assert!(!around.contains(PRINTED_KEY), "{around}");
    for word in [PRINTED_KEY, &PRINTED_KEY[13..]] {
        let found = host.run(&["search", word]);
        assert!(!found.out.contains("marmoset"), "{found}");
    }
}

#[test]
fn answers_out_of_order_end_one_turn_once_and_lose_nothing() {
    let (host, _) = host_with(Behaviour::AnswersOutOfOrder);
    turn(&host).assert_code(0);
    let ((), journal) = host.control().follow_until("one", |journal| {
        journal.text().ends_with("three").then_some(())
    });
    assert_eq!(journal.text(), "one two three");
    let rows = format!("{:?}", journal.rows);
    assert_eq!(rows.matches("TurnEnded").count(), 1, "{rows}");
    // And it is asked again as if nothing had been.
    turn(&host).assert_code(0);
}

#[test]
fn a_conversation_that_is_repeated_late_is_not_written_twice() {
    let (host, _) = host_with(Behaviour::RepeatsLate);
    turn(&host).assert_code(0);
    host.ok(&["stop", "one"]);
    let outcome = super::agents::ended(super::agents::prompt(&host, "once more"));
    assert_eq!(outcome, box_api::thread::TurnOutcome::Done);
    let journal = host.control().journal("one");
    assert_eq!(journal.text(), "firstsecond");
    let rows = format!("{:?}", journal.rows);
    assert!(!rows.contains("t1"), "{rows}");
}

#[test]
fn a_turn_that_never_ends_can_be_left_and_its_box_stopped() {
    let (host, _) = host_with(Behaviour::NeverEnds);
    let mut terminal = host.terminal(&["run", "claude", "misbehave", "--name", "one"]);
    terminal.expect("I will not end", super::host::PATIENCE);
    terminal.type_in(super::terminal::CTRL_C);
    terminal.expect("cancelling", super::host::PATIENCE);
    terminal.type_in(super::terminal::CTRL_C);
    assert_eq!(terminal.finish(super::host::PATIENCE), 130);
    host.ok(&["stop", "one"]);
}
