//! The host dies (`kill -9`) at the worst moments; nothing a person was told is lost.

use super::control::Journal;
use super::credential::Token;
use super::host::{PATIENCE, TestHost};
use super::program::Program;
use super::terminal::{CTRL_C, CTRL_D};
use super::turn::{ALLOW, choose};
use box_api::control::{Outcome, Request};
use box_api::thread::{DecisionState, Item, OptionKind, TurnOutcome};
use box_fakes::model::{Script, Step};
use std::fs;

/// Everything in `before` stands in `after`, unchanged but for texts that grew.
#[track_caller]
fn assert_goes_on(before: &Journal, after: &Journal) {
    for (seq, old) in &before.rows {
        let new = after
            .rows
            .get(seq)
            .unwrap_or_else(|| panic!("row {seq} is lost: {old:?}"));
        match (&old.item, &new.item) {
            (Item::Text { text: old }, Item::Text { text: new })
            | (Item::Thought { text: old }, Item::Thought { text: new }) => {
                assert!(
                    new.starts_with(old),
                    "row {seq} is another: {old:?} and {new:?}"
                );
            }
            (old, new) => assert_eq!(old, new, "row {seq}"),
        }
    }
}

#[test]
fn killed_host_loses_nothing_in_mid_turn() {
    let host = TestHost::new();
    let token = Token::random();
    let model = host.rig.model(token.as_str());
    let (first, second) = ("The first half, word for word. ", "And the second half.");
    model.script(Script::on("tell it in halves").message([
        Step::thinking("Two halves."),
        Step::text(first),
        Step::gate("middle"),
        Step::text(second),
    ]));
    token.add_to(&host);
    let client = host
        .program(&["run", "claude", "tell it in halves", "--name", "one"])
        .start();
    model.wait_at("middle", PATIENCE).unwrap();
    // What a person has been shown before the host dies.
    let ((), before) = host.control().follow_until("one", |journal| {
        journal.text().contains(first.trim_end()).then_some(())
    });
    let killed = host.pid();
    host.kill();
    // The agent says its second half while no host is there.
    model.open("middle");
    // The client that ran the turn sees it to its end, through a host of its own starting.
    let said = client.finish(PATIENCE);
    said.assert_code(0);
    assert_eq!(said.out.matches("word for word").count(), 1, "{said}");
    assert_eq!(said.out.matches("And the second half").count(), 1, "{said}");

    assert_ne!(host.pid(), killed);
    let after = host.control().journal("one");
    assert_goes_on(&before, &after);
    assert_eq!(after.text(), format!("{first}{second}"));
    assert_eq!(
        after.ended().map(|(outcome, _)| outcome),
        Some(TurnOutcome::Done)
    );
    assert_eq!(model.turns().len(), 1, "the prompt was sent once");
    token.assert_only_credential(&model);
}

#[test]
fn killed_host_loses_nothing_with_an_open_permission() {
    let host = TestHost::new();
    let token = Token::random();
    let model = host.rig.model(token.as_str());
    model.script(
        Script::on("ask me first")
            .message([
                Step::text("I ask first."),
                Step::bash("python3 -c \"open('asked.txt', 'a').write('once')\""),
            ])
            .message([Step::text("It was allowed.")]),
    );
    token.add_to(&host);
    // Nobody is at a terminal: the turn is left waiting.
    let said = host.run(&["run", "claude", "ask me first", "--name", "one"]);
    said.assert_code(6);
    assert!(said.err.contains("box attach one"), "{said}");
    let before = host.control().journal("one");
    let [decision] = before
        .open_decisions()
        .try_into()
        .expect("one open decision");

    host.kill();
    host.ok(&["list"]);
    let after = host.control().journal("one");
    // Rows the agent sent after it asked may have come since.
    assert!(
        before
            .rows
            .iter()
            .all(|row| after.rows.get(row.0) == Some(row.1)),
        "{after:?}"
    );
    assert_eq!(after.open_decisions(), std::slice::from_ref(&decision));
    assert_eq!(decision.state, DecisionState::Open);
    assert!(model.turns().len() == 1, "nothing was answered yet");

    let allow = decision
        .options
        .iter()
        .find(|option| option.kind == OptionKind::AllowOnce);
    let option = allow.expect("an option that allows once").id.clone();
    let answer = Request::Answer {
        decision: decision.decision,
        option,
    };
    let first = host.control().ask(&answer);
    assert!(matches!(first, Ok(Outcome::Nothing)), "{first:?}");
    let second = host.control().ask(&answer);
    assert!(second.is_err(), "a second answer was taken: {second:?}");

    let (outcome, journal) = host.control().follow_until("one", Journal::ended);
    assert_eq!(outcome.0, TurnOutcome::Done);
    assert_goes_on(&before, &journal);
    let closed = journal.rows.values().filter(|row| {
        matches!(&row.item, Item::DecisionClosed { decision: closed, .. } if *closed == decision.decision)
    });
    assert_eq!(closed.count(), 1);
    let workspace = host.info("one").workspace.unwrap();
    assert_eq!(
        fs::read_to_string(format!("{workspace}/asked.txt")).unwrap(),
        "once"
    );
    assert_eq!(model.turns().len(), 2);
}

#[test]
fn attach_shows_what_was_missed_and_answers() {
    let host = TestHost::new();
    let token = Token::random();
    let model = host.rig.model(token.as_str());
    let append = "python3 -c \"open('asked.txt', 'a').write('once')\"";
    model.script(
        Script::on("ask me first")
            .message([Step::text("I ask first."), Step::bash(append)])
            .message([Step::text("It was allowed.")]),
    );
    token.add_to(&host);
    host.run(&["run", "claude", "ask me first", "--name", "one"])
        .assert_code(6);
    host.kill();
    let mut terminal = host.terminal(&["attach", "one"]);
    terminal.expect("ask me first", PATIENCE);
    terminal.expect("I ask first.", PATIENCE);
    choose(&mut terminal, ALLOW);
    terminal.expect("It was allowed.", PATIENCE);
    terminal.type_in(CTRL_D);
    assert_eq!(terminal.finish(PATIENCE), 0, "{}", terminal.seen);
    assert_eq!(model.turns().len(), 2);
}

#[test]
fn ctrl_c_cancels_the_turn() {
    let host = TestHost::new();
    let token = Token::random();
    let model = host.rig.model(token.as_str());
    let steps = [
        Step::text("I begin."),
        Step::gate("never"),
        Step::text("I went on."),
    ];
    model.script(Script::on("begin it").message(steps));
    token.add_to(&host);
    let mut terminal = host.terminal(&["run", "claude", "begin it", "--name", "one"]);
    terminal.expect("I begin.", PATIENCE);
    terminal.type_in(CTRL_C);
    assert_eq!(terminal.finish(PATIENCE), 4, "{}", terminal.seen);
    let journal = host.control().journal("one");
    assert_eq!(
        journal.ended().map(|(outcome, _)| outcome),
        Some(TurnOutcome::Cancelled)
    );
    assert!(!journal.text().contains("went on"));
}

#[test]
fn second_host_is_refused() {
    let host = TestHost::new();
    host.ok(&["list"]);
    let first = host.pid();
    let told = |program: Program| {
        let said = program.run();
        assert_ne!(said.code, 0, "{said}");
        let told = said.told().replace(&first.to_string(), "<pid>");
        let told = told.replace(&host.run_dir().display().to_string(), "<run>");
        let told = told.replace(&host.data().display().to_string(), "<data>");
        // The time it was started is not ours to foretell.
        match told
            .split_once("since ")
            .and_then(|(before, rest)| Some((before, rest.split_once(',')?)))
        {
            Some((before, (_, after))) => format!("{before}since <time>,{after}"),
            None => told,
        }
    };
    insta::assert_snapshot!(told(host.program(&["serve"])), @r"
    error: a host runs here already: process <pid>
    hint: `box serve --stop` stops it
    ");
    // The same data folder, reached from another run folder.
    let mut other = host.program(&["serve"]);
    other
        .command
        .env("BOX_RUN_DIR", host.run_dir().with_file_name("other"));
    insta::assert_snapshot!(told(other), @r"
    error: another host uses the data folder `<data>`
    cause: process <pid>, since <time>, at <run>
    hint: `box serve --stop` with that host's `BOX_RUN_DIR` ends it
    ");
    assert_eq!(host.pid(), first);
}
