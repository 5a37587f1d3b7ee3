//! Conversations as transcripts of what went in and what came out.

use super::*;
use box_api::thread::{DecisionKind, DecisionOption, OptionKind, PlanEntry};

const THREAD: &str = "tttttttttttttttt";

fn row(seq: u64, item: Item) -> Input {
    Input::Reply(
        Reply::Update(ThreadUpdate::Row(JournalRow {
            seq,
            at_ms: 0,
            item,
        }))
        .into(),
    )
}

fn text(seq: u64, text: &str) -> Input {
    row(
        seq,
        Item::Text {
            text: text.to_owned(),
        },
    )
}

fn prompt(seq: u64, text: &str) -> Input {
    row(
        seq,
        Item::Prompt {
            text: text.to_owned(),
        },
    )
}

fn grew(seq: u64, from_byte: u64, text: &str) -> Input {
    Input::Reply(
        Reply::Update(ThreadUpdate::Grew {
            seq,
            from_byte,
            text: text.to_owned(),
        })
        .into(),
    )
}

fn caught_up(epoch: u32, seq: u64, bytes: u64) -> Input {
    let cursor = Cursor { epoch, seq, bytes };
    Input::Reply(Reply::Update(ThreadUpdate::CaughtUp { cursor }).into())
}

fn ended(seq: u64, outcome: TurnOutcome) -> Input {
    row(
        seq,
        Item::TurnEnded {
            outcome,
            note: None,
        },
    )
}

fn decision(number: i64, about: DecisionKind, options: &[(&str, OptionKind)]) -> Decision {
    Decision {
        decision: DecisionId(number),
        box_id: box_api::BoxId::from_random([0; 10]),
        thread: Some(ThreadId::parse(THREAD).unwrap()),
        about,
        title: "Run `make`?".to_owned(),
        call: None,
        options: options
            .iter()
            .map(|(id, kind)| DecisionOption {
                id: (*id).to_owned(),
                label: id.to_uppercase(),
                kind: *kind,
            })
            .collect(),
        form: None,
        text: None,
        state: DecisionState::Open,
    }
}

fn permission(number: i64) -> Decision {
    let options = [
        ("reject", OptionKind::RejectOnce),
        ("always", OptionKind::AllowAlways),
        ("once", OptionKind::AllowOnce),
    ];
    decision(number, DecisionKind::Permission, &options)
}

fn opened(seq: u64, decision: &Decision) -> Input {
    row(seq, Item::DecisionOpened(decision.clone()))
}

fn closed(seq: u64, number: i64) -> Input {
    let state = DecisionState::Answered {
        option: "once".to_owned(),
    };
    row(
        seq,
        Item::DecisionClosed {
            decision: DecisionId(number),
            state,
            by: None,
            note: None,
        },
    )
}

fn answer(number: i64, option: &str) -> Action {
    Action::Say(ClientMessage::Answer {
        decision: DecisionId(number),
        option: option.to_owned(),
    })
}

fn begun(answers: Answers) -> Conversation {
    let mut conversation = Conversation::run(answers);
    let thread = Reply::Thread {
        box_id: box_api::BoxId::from_random([0; 10]),
        name: BoxName::parse("demo").unwrap(),
        thread: ThreadId::parse(THREAD).unwrap(),
    };
    assert_eq!(
        notes(&conversation.step(Input::Reply(thread.into()))),
        ["box `demo`"]
    );
    conversation.step(prompt(1, "go"));
    conversation
}

fn attached(answers: Answers) -> Conversation {
    Conversation::attach(
        answers,
        Past::Turns(1),
        BoxName::parse("demo").unwrap(),
        None,
    )
}

/// What is shown, as text.
fn shown(actions: &[Action]) -> String {
    let texts = actions.iter().map(|action| {
        if let Action::Show(ThreadUpdate::Grew { text, .. }) = action {
            return text.as_str();
        }
        let Action::Show(ThreadUpdate::Row(row)) = action else {
            return "";
        };
        if let Item::Text { text } | Item::Prompt { text } = &row.item {
            text
        } else {
            ""
        }
    });
    texts.collect()
}

fn notes(actions: &[Action]) -> Vec<&str> {
    let mut notes = Vec::new();
    for action in actions {
        if let Action::Note(text) = action {
            notes.push(text.as_str());
        }
    }
    notes
}

#[test]
fn a_run_ends_with_the_code_of_its_outcome() {
    for (outcome, code) in [
        (TurnOutcome::Done, 0),
        (TurnOutcome::Refused, 3),
        (TurnOutcome::Parked, 5),
    ] {
        let mut conversation = begun(Answers::Nobody);
        conversation.step(ended(2, outcome));
        let done = Input::Reply(Reply::Done(Outcome::Turn { outcome }).into());
        assert_eq!(conversation.step(done), [Action::Finish(code)]);
    }
}

#[test]
fn nobody_there_leaves_the_turn_waiting() {
    let mut conversation = begun(Answers::Nobody);
    let actions = conversation.step(opened(2, &permission(7)));
    assert_eq!(
        notes(&actions),
        ["the agent waits for your answer: `box attach demo`"]
    );
    assert_eq!(actions.last(), Some(&Action::Finish(6)));
}

#[test]
fn allow_all_allows_once_and_takes_the_first_choice() {
    let mut conversation = begun(Answers::AllowAll);
    let actions = conversation.step(opened(2, &permission(7)));
    assert!(actions.contains(&answer(7, "once")), "{actions:?}");
    assert_eq!(notes(&actions), ["chose “ONCE” by --allow-all"]);
    conversation.step(closed(3, 7));
    let choices = [("red", OptionKind::Choice), ("blue", OptionKind::Choice)];
    let question = decision(8, DecisionKind::Question, &choices);
    assert!(
        conversation
            .step(opened(4, &question))
            .contains(&answer(8, "red"))
    );
    // What can only be allowed for ever is left to a person.
    conversation.step(closed(5, 8));
    let always = [
        ("always", OptionKind::AllowAlways),
        ("reject", OptionKind::RejectOnce),
    ];
    let network = decision(9, DecisionKind::Network, &always);
    assert_eq!(
        conversation.step(opened(6, &network)).last(),
        Some(&Action::Finish(6))
    );
}

#[test]
fn a_person_answers_by_number_one_question_after_the_other() {
    let mut conversation = begun(Answers::Person);
    let asked = conversation.step(opened(2, &permission(7)));
    assert_eq!(asked.last(), Some(&Action::Ask(permission(7))));
    // The second waits its turn.
    assert!(
        !conversation
            .step(opened(3, &permission(8)))
            .contains(&Action::Ask(permission(8)))
    );
    for wrong in ["", "0", "4", "once", "-1"] {
        let actions = conversation.step(Input::Line(wrong.to_owned()));
        assert_eq!(notes(&actions), ["type a number from 1 to 3"], "{wrong}");
    }
    assert_eq!(
        conversation.step(Input::Line(" 3 ".to_owned())),
        [answer(7, "once")]
    );
    // Not asked, and not answered, twice.
    assert_eq!(conversation.step(Input::Line("1".to_owned())), []);
    let next = conversation.step(closed(4, 7));
    assert_eq!(next.last(), Some(&Action::Ask(permission(8))));
}

#[test]
fn an_answer_that_came_too_late_is_told_and_the_next_is_asked() {
    let mut conversation = begun(Answers::Person);
    conversation.step(opened(2, &permission(7)));
    conversation.step(opened(3, &permission(8)));
    conversation.step(Input::Line("3".to_owned()));
    let why = "uid:1000 was faster".to_owned();
    let refused = Input::Reply(
        Reply::AnswerRefused {
            decision: DecisionId(7),
            why: why.clone(),
        }
        .into(),
    );
    assert_eq!(
        conversation.step(refused),
        [Action::Note(why), Action::Ask(permission(8))]
    );
}

#[test]
fn the_first_interrupt_cancels_and_the_second_leaves() {
    let mut conversation = begun(Answers::Person);
    let first = conversation.step(Input::Interrupt);
    assert_eq!(first[0], Action::Say(ClientMessage::CancelTurn));
    let second = conversation.step(Input::Interrupt);
    assert_eq!(
        notes(&second),
        ["left while the turn is being cancelled; `box attach demo` shows its end"]
    );
    assert_eq!(second.last(), Some(&Action::Finish(130)));
}

#[test]
fn a_signal_that_ends_us_leaves_the_turn_alone() {
    let mut conversation = begun(Answers::Person);
    let actions = conversation.step(Input::Terminate(15));
    assert_eq!(actions.last(), Some(&Action::Finish(143)));
    assert!(
        !actions
            .iter()
            .any(|action| matches!(action, Action::Say(_))),
        "{actions:?}"
    );
}

#[test]
fn a_lost_host_is_taken_up_where_we_stood() {
    let mut conversation = begun(Answers::Nobody);
    conversation.step(caught_up(4, 1, 0));
    conversation.step(text(2, "one "));
    conversation.step(grew(2, 4, "two "));
    let cursor = Cursor {
        epoch: 4,
        seq: 2,
        bytes: 8,
    };
    assert_eq!(
        conversation.step(Input::Lost),
        [Action::TakeUp(Some(cursor))]
    );
    // The new host sends a little too much; nothing is shown before it has caught up.
    assert_eq!(conversation.step(text(2, "one two three ")), []);
    assert_eq!(conversation.step(text(3, "four")), []);
    let actions = conversation.step(caught_up(4, 3, 4));
    assert_eq!(shown(&actions), "three four");
    let actions = conversation.step(ended(4, TurnOutcome::Done));
    assert_eq!(
        actions.last(),
        Some(&Action::Finish(0)),
        "an attachment has no end of its own"
    );
}

#[test]
fn what_the_dead_host_may_not_have_heard_is_said_again() {
    let mut conversation = begun(Answers::Person);
    conversation.step(opened(2, &permission(7)));
    conversation.step(Input::Line("3".to_owned()));
    conversation.step(Input::Lost);
    let actions = conversation.step(caught_up(0, 2, 0));
    assert_eq!(actions, [answer(7, "once")]);
    // It is known to have arrived: not again.
    conversation.step(closed(3, 7));
    conversation.step(Input::Lost);
    assert_eq!(conversation.step(caught_up(0, 3, 0)), []);
    conversation.step(Input::Interrupt);
    conversation.step(Input::Lost);
    assert_eq!(
        conversation.step(caught_up(0, 3, 0)),
        [Action::Say(ClientMessage::CancelTurn)]
    );
}

#[test]
fn a_permission_open_when_the_host_died_is_asked_again() {
    let mut conversation = begun(Answers::Person);
    conversation.step(opened(2, &permission(7)));
    conversation.step(Input::Lost);
    assert_eq!(
        conversation.step(caught_up(0, 2, 0)),
        [Action::Ask(permission(7))]
    );
}

#[test]
fn a_host_lost_after_the_end_or_before_the_beginning_is_not_taken_up() {
    let mut conversation = begun(Answers::Nobody);
    conversation.step(ended(2, TurnOutcome::Failed));
    assert_eq!(conversation.step(Input::Lost), [Action::Finish(1)]);
    let mut conversation = Conversation::run(Answers::Nobody);
    let actions = conversation.step(Input::Lost);
    assert!(
        matches!(actions.as_slice(), [Action::Complain(_)]),
        "{actions:?}"
    );
}

#[test]
fn a_hole_in_the_text_is_filled_by_asking_again() {
    let mut conversation = begun(Answers::Nobody);
    conversation.step(text(2, "ab"));
    let cursor = Cursor {
        epoch: 0,
        seq: 2,
        bytes: 2,
    };
    assert_eq!(
        conversation.step(grew(2, 5, "f")),
        [Action::TakeUp(Some(cursor))]
    );
}

#[test]
fn a_rebuilt_journal_is_told_from_the_beginning_of_the_turn() {
    let mut conversation = begun(Answers::Nobody);
    conversation.step(caught_up(1, 1, 0));
    conversation.step(text(9, "old numbering"));
    conversation.step(Input::Lost);
    conversation.step(prompt(1, "first"));
    conversation.step(text(2, "first answer"));
    conversation.step(prompt(3, "go"));
    conversation.step(text(4, "second answer"));
    let actions = conversation.step(caught_up(2, 4, 13));
    assert_eq!(shown(&actions), "gosecond answer");
    assert_eq!(notes(&actions).len(), 1);
    let live = conversation.step(grew(4, 13, "!"));
    assert_eq!(shown(&live), "!");
}

#[test]
fn attaching_shows_the_last_turn_or_all() {
    for (past, expected) in [(Past::Turns(1), "twoB"), (Past::All, "oneAtwoB")] {
        let mut conversation =
            Conversation::attach(Answers::Person, past, BoxName::parse("demo").unwrap(), None);
        for input in [
            prompt(1, "one"),
            text(2, "A"),
            ended(3, TurnOutcome::Done),
            prompt(4, "two"),
            text(5, "B"),
        ] {
            assert_eq!(conversation.step(input), []);
        }
        assert_eq!(shown(&conversation.step(caught_up(0, 5, 1))), expected);
    }
}

#[test]
fn attaching_asks_what_is_open_and_not_what_is_closed() {
    let mut conversation = attached(Answers::Person);
    for input in [
        prompt(1, "go"),
        opened(2, &permission(7)),
        closed(3, 7),
        opened(4, &permission(8)),
    ] {
        conversation.step(input);
    }
    let actions = conversation.step(caught_up(0, 4, 0));
    let asked: Vec<&Action> = actions
        .iter()
        .filter(|action| matches!(action, Action::Ask(_)))
        .collect();
    assert_eq!(asked, [&Action::Ask(permission(8))]);
}

#[test]
fn a_line_typed_at_an_idle_agent_is_the_next_prompt_and_is_sent_once() {
    let mut conversation = attached(Answers::Person);
    conversation.step(prompt(1, "one"));
    conversation.step(caught_up(0, 1, 0));
    // While a turn runs it waits at the host.
    let waits = Action::Say(ClientMessage::Prompt {
        text: "now?".to_owned(),
    });
    assert_eq!(conversation.step(Input::Line("now?".to_owned())), [waits]);
    conversation.step(ended(2, TurnOutcome::Done));
    let say = Action::Say(ClientMessage::Prompt {
        text: "go on".to_owned(),
    });
    assert_eq!(conversation.step(Input::Line("go on\n".to_owned())), [say]);
    // The host died, but the prompt stands in the journal: it is not sent again.
    conversation.step(Input::Lost);
    conversation.step(prompt(3, "go on"));
    let actions = conversation.step(caught_up(0, 3, 0));
    assert!(
        !actions
            .iter()
            .any(|action| matches!(action, Action::Say(_))),
        "{actions:?}"
    );
}

#[test]
fn attaching_without_a_terminal_ends_with_the_turn() {
    let mut conversation = attached(Answers::Nobody);
    conversation.step(prompt(1, "one"));
    conversation.step(caught_up(0, 1, 0));
    let actions = conversation.step(ended(2, TurnOutcome::Cancelled));
    assert_eq!(actions.last(), Some(&Action::Finish(4)));
    let mut conversation = attached(Answers::Nobody);
    assert_eq!(
        conversation.step(caught_up(0, 0, 0)),
        [Action::Finish(0)],
        "an empty thread"
    );
}

#[test]
fn the_end_of_input_leaves_what_is_asked_waiting() {
    let mut conversation = begun(Answers::Person);
    assert_eq!(conversation.step(Input::Silence), []);
    let actions = conversation.step(opened(2, &permission(7)));
    assert_eq!(actions.last(), Some(&Action::Finish(6)));
    let mut conversation = begun(Answers::Person);
    conversation.step(opened(2, &permission(7)));
    assert_eq!(
        conversation.step(Input::Silence).last(),
        Some(&Action::Finish(6))
    );
    let mut conversation = attached(Answers::Person);
    conversation.step(caught_up(0, 0, 0));
    assert_eq!(conversation.step(Input::Silence), [Action::Finish(0)]);
}

#[test]
fn an_end_that_needs_a_word_gets_one() {
    let mut conversation = begun(Answers::Nobody);
    conversation.step(row(
        2,
        Item::Plan {
            entries: vec![PlanEntry {
                text: "x".into(),
                status: "pending".into(),
            }],
        },
    ));
    let note = Some("resets at 15:00".to_owned());
    let actions = conversation.step(row(
        3,
        Item::TurnEnded {
            outcome: TurnOutcome::Parked,
            note: note.clone(),
        },
    ));
    assert_eq!(
        actions.last(),
        Some(&Action::Ended {
            outcome: TurnOutcome::Parked,
            note
        })
    );
}

#[test]
fn a_marked_line_goes_to_the_box_and_a_slash_lists_what_the_agent_offers() {
    let mut conversation = attached(Answers::Person);
    conversation.step(prompt(1, "one"));
    conversation.step(caught_up(0, 1, 0));
    assert_eq!(
        conversation.step(Input::Line("! ls -l\n".to_owned())),
        [Action::Shell("ls -l".to_owned())]
    );
    let nothing = conversation.step(Input::Line("/".to_owned()));
    assert_eq!(
        notes(&nothing),
        ["the agent has not said yet what it offers"]
    );
    let raw = serde_json::json!({
        "sessionUpdate": "available_commands_update",
        "availableCommands": [{"name": "compact", "description": "Make room\nand more"}],
    });
    conversation.step(row(2, Item::Detail { raw }));
    let offered = conversation.step(Input::Line("/".to_owned()));
    assert_eq!(notes(&offered), ["/compact  Make room"]);
}

#[test]
fn who_looks_on_stays_when_a_turn_ends_and_leaves_answers_to_others() {
    let mut conversation = attached(Answers::Elsewhere);
    conversation.step(prompt(1, "one"));
    conversation.step(caught_up(0, 1, 0));
    let finishes = |actions: &[Action]| {
        let mut of = actions.iter();
        of.any(|action| matches!(action, Action::Finish(_)))
    };
    assert!(!finishes(&conversation.step(ended(2, TurnOutcome::Done))));
    // Nobody at all: the end of the turn is ours.
    let mut alone = attached(Answers::Nobody);
    alone.step(prompt(1, "one"));
    alone.step(caught_up(0, 1, 0));
    assert!(finishes(&alone.step(ended(2, TurnOutcome::Done))));
}
