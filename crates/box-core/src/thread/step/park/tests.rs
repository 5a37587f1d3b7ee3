//! Parked threads and permissions nobody answers.

use crate::acp::Incoming;
use crate::decisions::Hold;
use crate::thread::state::{Action, Asks, Settings, ThreadInput, ThreadState};
use crate::thread::step::Moment;
use box_api::decision::FormAnswer;
use box_api::thread::{DecisionState, Item, ThreadState as Shown, TurnOutcome};
use box_api::{BoxId, DecisionId, ThreadId};
use serde_json::{Value, json};

const HOLD_MS: i64 = 120 * 60_000;

struct Stage {
    state: ThreadState,
    now_ms: i64,
    decisions: i64,
}

impl Stage {
    /// A thread whose prompt `go` is with the agent, as request 4.
    fn running(hold: Hold) -> Self {
        let profile = crate::agents::find("demo").unwrap();
        let of = (BoxId::from_random([1; 10]), ThreadId::from_random([2; 10]));
        let mut state = ThreadState::new(Settings::new(profile, of, Asks::Person));
        state.hold(hold);
        let mut made = Self {
            state,
            now_ms: 1_795_953_600_000,
            decisions: 0,
        };
        made.step(ThreadInput::Prompt { text: "go".into() });
        made.step(ThreadInput::Started);
        made.line(&json!({"id":1,"result":{"protocolVersion":1}}));
        made.line(&json!({"id":2,"result":{"sessionId":"s"}}));
        assert_eq!(made.state.shown(), Shown::Running);
        made
    }

    fn step(&mut self, input: ThreadInput) -> Vec<Action> {
        let decisions = &mut self.decisions;
        let mut number = || {
            *decisions += 1;
            DecisionId(*decisions)
        };
        let moment = Moment {
            now_ms: self.now_ms,
            number: &mut number,
        };
        self.state.step(input, moment)
    }

    fn line(&mut self, line: &Value) -> Vec<Action> {
        let line = Incoming::parse(line.to_string().as_bytes()).unwrap();
        self.step(ThreadInput::Line(line))
    }

    fn asks(&mut self, id: i64, kind: &str, options: &Value) {
        self.line(
            &json!({"id":id,"method":"session/request_permission","params":{"sessionId":"s",
            "toolCall":{"toolCallId":"t","title":"touch","kind":kind},"options":options}}),
        );
    }

    fn limit(&mut self, data: &Value) -> Vec<Action> {
        let data = json!({"errorKind":"rate_limit","data":data,"resetsAt":data["resetsAt"]});
        self.line(&json!({"id":3,"error":{"code":-32603,"message":"limit","data":data}}))
    }
}

fn sent(actions: &[Action]) -> Vec<Value> {
    let line = |action: &Action| {
        let Action::Send(line) = action else {
            return None;
        };
        Some(serde_json::from_str(line).unwrap())
    };
    actions.iter().filter_map(line).collect()
}

fn closed(actions: &[Action]) -> Vec<(DecisionState, Option<String>, Option<String>)> {
    let closed = |action: &Action| {
        let Action::CloseDecision(closed) = action else {
            return None;
        };
        let (by, note) = (closed.by.clone(), closed.note.clone());
        Some((closed.state.clone(), by, note))
    };
    actions.iter().filter_map(closed).collect()
}

fn options() -> Value {
    json!([{"optionId":"y","kind":"allow_once"},{"optionId":"never","kind":"reject_always"},
        {"optionId":"n","kind":"reject_once"}])
}

#[test]
fn a_permission_nobody_answers_is_denied_when_its_time_is_over_and_by_nobody() {
    let mut stage = Stage::running(Hold::ThenDeny { after_ms: HOLD_MS });
    stage.asks(7, "execute", &options());
    let due_ms = stage.now_ms + HOLD_MS;
    assert_eq!(stage.state.deadline_ms(), Some(due_ms));
    stage.now_ms = due_ms - 1;
    assert_eq!(stage.step(ThreadInput::Tick), []);
    stage.now_ms = due_ms;
    let actions = stage.step(ThreadInput::Tick);
    let no = DecisionState::Answered { option: "n".into() };
    let note = Some("the hold time ran out".to_owned());
    assert_eq!(closed(&actions), [(no, None, note)]);
    assert_eq!(
        sent(&actions)[0]["result"]["outcome"],
        json!({"outcome":"selected","optionId":"n"})
    );
    assert_eq!(stage.state.deadline_ms(), None);
}

#[test]
fn what_has_no_option_that_says_no_is_cancelled_and_never_approved() {
    let mut stage = Stage::running(Hold::ThenDeny { after_ms: HOLD_MS });
    stage.asks(
        7,
        "switch_mode",
        &json!([{"optionId":"y","kind":"allow_once"},
        {"optionId":"z","kind":"something_else"}]),
    );
    stage.now_ms += HOLD_MS;
    let actions = stage.step(ThreadInput::Tick);
    assert_eq!(closed(&actions)[0].0, DecisionState::Cancelled);
    assert_eq!(
        sent(&actions)[0]["result"]["outcome"],
        json!({"outcome":"cancelled"})
    );
}

#[test]
fn without_a_fallback_and_for_questions_nothing_is_denied() {
    let mut stage = Stage::running(Hold::Forever);
    stage.asks(7, "execute", &options());
    assert_eq!(stage.state.deadline_ms(), None);
    stage.now_ms += 100 * HOLD_MS;
    assert_eq!(stage.step(ThreadInput::Tick), []);
    let mut stage = Stage::running(Hold::ThenDeny { after_ms: HOLD_MS });
    stage.line(
        &json!({"id":8,"method":"elicitation/create","params":{"message":"?",
        "requestedSchema":{"properties":{"q":{"enum":["a"]}}}}}),
    );
    stage.now_ms += 100 * HOLD_MS;
    assert_eq!(stage.step(ThreadInput::Tick), []);
    assert_eq!(
        stage.state.takes(DecisionId(1), &FormAnswer::Decline),
        Ok(())
    );
}

#[test]
fn a_form_is_filled_in_declined_or_taken_away() {
    for (answer, result) in [
        (
            FormAnswer::Fill {
                values: serde_json::from_value(json!({"a":"x","b":"2"})).unwrap(),
            },
            json!({"action":"accept","content":{"a":"x","b":2}}),
        ),
        (FormAnswer::Decline, json!({"action":"decline"})),
        (FormAnswer::Cancel, json!({"action":"cancel"})),
    ] {
        let mut stage = Stage::running(Hold::Forever);
        stage.line(
            &json!({"id":8,"method":"elicitation/create","params":{"message":"?",
            "requestedSchema":{"properties":{"a":{"type":"string"},"b":{"type":"integer"}},
            "required":["a"]}}}),
        );
        let decision = DecisionId(1);
        assert_eq!(stage.state.takes(decision, &answer), Ok(()));
        let by = "me".to_owned();
        let actions = stage.step(ThreadInput::AnswerForm {
            decision,
            answer,
            by,
        });
        assert_eq!(
            sent(&actions)[0],
            json!({"jsonrpc":"2.0","id":8,"result":result})
        );
        assert_eq!(closed(&actions)[0].1.as_deref(), Some("me"));
        assert!(
            stage.state.takes(decision, &FormAnswer::Decline).is_err(),
            "once"
        );
    }
}

#[test]
fn a_turn_at_a_limit_goes_on_by_itself_with_what_it_was_asked() {
    let mut stage = Stage::running(Hold::Forever);
    let resets_at = stage.now_ms / 1000 + 3600;
    let ended = stage.limit(&json!({"resetsAt":resets_at}));
    let note = ended.iter().find_map(|action| {
        let Action::Append(row) = action else {
            return None;
        };
        let Item::TurnEnded { outcome, note } = &row.item else {
            return None;
        };
        note.clone().filter(|_| *outcome == TurnOutcome::Parked)
    });
    assert!(
        note.unwrap()
            .ends_with("goes on by itself at 2026-11-29T13:00:00Z")
    );
    assert_eq!(stage.state.shown(), Shown::Parked);
    stage.step(ThreadInput::Prompt {
        text: "and then".into(),
    });
    assert_eq!(
        sent(&stage.step(ThreadInput::Resume { by: None })),
        Vec::<Value>::new()
    );
    stage.now_ms = resets_at * 1000;
    let prompt = |actions: &[Action]| sent(actions)[0]["params"]["prompt"][0]["text"].clone();
    let resumed = stage.step(ThreadInput::Resume { by: None });
    assert_eq!(prompt(&resumed), "go", "nothing of it was done");
    assert_eq!(
        sent(&stage.step(ThreadInput::Resume { by: None })),
        Vec::<Value>::new(),
        "once"
    );
    let rpc = sent(&resumed)[0]["id"].clone();
    let next = stage.line(&json!({"id":rpc,"result":{"stopReason":"end_turn"}}));
    assert_eq!(prompt(&next), "and then", "what waited comes after it");
}

#[test]
fn an_agent_that_had_begun_is_asked_to_go_on_and_unknown_ends_are_tried_later_and_later() {
    let mut stage = Stage::running(Hold::Forever);
    stage.line(
        &json!({"method":"session/update","params":{"sessionId":"s","update":{
        "sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"I "}}}}),
    );
    let mut rpc = json!(3);
    let mut waits = Vec::new();
    for _ in 0..6 {
        let data = json!({"errorKind":"rate_limit"});
        stage.line(&json!({"id":rpc,"error":{"code":-32603,"message":"busy","data":data}}));
        let until_ms = stage.state.parked.as_ref().unwrap().until_ms.unwrap();
        waits.push((until_ms - stage.now_ms) / 60_000);
        stage.now_ms = until_ms;
        let resumed = stage.step(ThreadInput::Resume { by: None });
        let line = &sent(&resumed)[0];
        assert!(
            line["params"]["prompt"][0]["text"]
                .as_str()
                .unwrap()
                .starts_with("Go on")
        );
        rpc = line["id"].clone();
    }
    assert_eq!(waits, [5, 10, 20, 40, 60, 60]);
}

#[test]
fn a_person_parks_resumes_and_cancels() {
    let mut stage = Stage::running(Hold::Forever);
    let by = || "me".to_owned();
    stage.step(ThreadInput::Park {
        until_ms: None,
        by: by(),
    });
    assert_eq!(
        stage.state.shown(),
        Shown::Running,
        "the turn is not touched"
    );
    stage.step(ThreadInput::Prompt {
        text: "next".into(),
    });
    stage.line(&json!({"id":3,"result":{"stopReason":"end_turn"}}));
    assert_eq!(stage.state.shown(), Shown::Parked);
    assert_eq!(
        sent(&stage.step(ThreadInput::Resume { by: None })),
        Vec::<Value>::new()
    );
    let mut other = Stage {
        state: stage.state.clone(),
        ..stage
    };
    let resumed = stage.step(ThreadInput::Resume { by: Some(by()) });
    assert_eq!(sent(&resumed)[0]["params"]["prompt"][0]["text"], "next");
    let cancelled = other.step(ThreadInput::Cancel { by: by() });
    assert_eq!(sent(&cancelled), Vec::<Value>::new());
    assert_ne!(other.state.shown(), Shown::Parked);
    assert_eq!(other.state.parked, None);
}

#[test]
fn a_limit_that_ended_while_it_was_told_is_tried_again_soon_and_not_tomorrow() {
    let mut stage = Stage::running(Hold::Forever);
    let just_past = stage.now_ms / 1000 - 17;
    stage.line(
        &json!({"method":"_claude/sdkMessage","params":{"sessionId":"s","message":{
        "type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":just_past}}}}),
    );
    let data = json!({"errorKind":"rate_limit"});
    let message = "You've hit your 5-hour limit · resets 11:59am (UTC)";
    stage.line(&json!({"id":3,"error":{"code":-32603,"message":message,"data":data}}));
    let until_ms = stage.state.parked.as_ref().unwrap().until_ms;
    assert_eq!(until_ms, Some(stage.now_ms + 10_000));
}

#[test]
fn a_budget_interrupts_a_turn_that_goes_on_where_it_stopped() {
    let mut stage = Stage::running(Hold::Forever);
    stage.line(
        &json!({"method":"session/update","params":{"sessionId":"s","update":{
        "sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"I begin"}}}}),
    );
    stage.asks(7, "execute", &options());
    let why = "the budget is used up".to_owned();
    let actions = stage.step(ThreadInput::Pause {
        until_ms: None,
        why: why.clone(),
    });
    let methods: Vec<Value> = sent(&actions).iter().map(|m| m["method"].clone()).collect();
    assert!(methods.contains(&json!("session/cancel")), "{methods:?}");
    assert_eq!(closed(&actions)[0].0, DecisionState::Cancelled);
    // Said again while it ends: nothing more comes of it.
    assert_eq!(
        stage.step(ThreadInput::Pause {
            until_ms: None,
            why
        }),
        []
    );
    let actions = stage.line(&json!({"id":3,"result":{"stopReason":"cancelled"}}));
    let ended = actions.iter().any(|action| {
        matches!(action, Action::Append(row)
            if matches!(row.item, Item::TurnEnded { outcome: TurnOutcome::Parked, .. }))
    });
    assert!(ended, "{actions:?}");
    assert_eq!(stage.state.shown(), Shown::Parked);
    // What is asked meanwhile waits.
    let text = "more".to_owned();
    assert!(sent(&stage.step(ThreadInput::Prompt { text })).is_empty());
    let why = "me".to_owned();
    let actions = stage.step(ThreadInput::Unpause { why });
    let again = &sent(&actions)[0]["params"]["prompt"][0]["text"];
    assert!(
        again
            .as_str()
            .unwrap()
            .starts_with("Go on where you stopped")
    );
}

#[test]
fn a_budget_lets_go_on_only_what_it_parked_itself() {
    let mut stage = Stage::running(Hold::Forever);
    stage.line(&json!({"id":3,"result":{"stopReason":"end_turn"}}));
    let by = "me".to_owned();
    stage.step(ThreadInput::Park { until_ms: None, by });
    let why = "used up".to_owned();
    stage.step(ThreadInput::Pause {
        until_ms: Some(1),
        why: why.clone(),
    });
    stage.step(ThreadInput::Unpause { why: why.clone() });
    assert_eq!(stage.state.shown(), Shown::Parked);
    stage.step(ThreadInput::Resume {
        by: Some("me".to_owned()),
    });
    assert_eq!(stage.state.shown(), Shown::Idle);
    stage.step(ThreadInput::Pause {
        until_ms: None,
        why: why.clone(),
    });
    assert_eq!(stage.state.shown(), Shown::Parked);
    stage.step(ThreadInput::Unpause { why });
    assert_eq!(stage.state.shown(), Shown::Idle);
}
