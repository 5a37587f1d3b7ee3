//! Transcripts: what happens to a thread, and exactly what follows.

#![expect(
    clippy::needless_pass_by_value,
    reason = "JSON literals read better as they are"
)]

mod many;
mod repeats;

use super::Moment;
use crate::acp::Incoming;
use crate::agents::profile::Repeating;
use crate::thread::back::GoneBack;
use crate::thread::state::{Action, Asks, Settings, ThreadInput, ThreadState};
use box_api::decision::FormAnswer;
use box_api::thread::{DecisionState, Item, ThreadState as Shown};
use box_api::{BoxId, DecisionId, ThreadId};
use serde_json::{Value, json};

/// A thread and the clock it lives by. Actions are written as text, one line each.
struct Stage {
    state: ThreadState,
    now_ms: i64,
    decisions: i64,
}

impl Stage {
    fn new(asks: Asks) -> Self {
        let settings = Settings {
            box_id: BoxId::from_random([1; 10]),
            thread: ThreadId::from_random([2; 10]),
            cwd: "/workspace".into(),
            mode_ask: "default".into(),
            mode_bypass: Some("bypassPermissions".into()),
            asks,
            start_ms_max: 60_000,
            login: Some("log in first".into()),
            meta: serde_json::Map::new(),
            authenticate: None,
            repeating: Repeating::default(),
        };
        Self {
            state: ThreadState::new(settings),
            now_ms: 1000,
            decisions: 6,
        }
    }

    /// A thread whose agent is ready, after one turn `hi` that ended well.
    fn ready() -> Self {
        let mut stage = Self::new(Asks::Person);
        stage.prompt("hi");
        stage.set_up();
        stage.reply(4, json!({"stopReason":"end_turn"}));
        assert_eq!(stage.state.shown(), Shown::Idle);
        stage
    }

    /// A thread with the prompt `go` sent as number 5, its row number 4.
    fn running() -> Self {
        let mut stage = Self::ready();
        assert_eq!(
            stage.prompt("go"),
            [
                r#"4 {"kind":"prompt","text":"go"}"#,
                r#"send session/prompt 5 "go""#
            ]
        );
        assert_eq!(stage.state.shown(), Shown::Running);
        stage
    }

    fn set_up(&mut self) {
        self.step(ThreadInput::Started);
        self.reply(
            1,
            json!({"protocolVersion":1,"agentCapabilities":{"loadSession":true}}),
        );
        self.reply(2, json!({"sessionId":"s1","configOptions":modes("auto")}));
        self.reply(3, json!({"configOptions":modes("default")}));
    }

    fn step(&mut self, input: ThreadInput) -> Vec<String> {
        // Every state survives being written and read.
        let saved = serde_json::to_string(&self.state).unwrap();
        let mut read: ThreadState = serde_json::from_str(&saved).unwrap();
        assert_eq!(read, self.state);

        let before = self.decisions;
        let mut decisions = before;
        let mut number = || {
            decisions += 1;
            DecisionId(decisions)
        };
        let actions = self.state.step(
            input.clone(),
            Moment {
                now_ms: self.now_ms,
                number: &mut number,
            },
        );
        self.decisions = decisions;

        let mut decisions = before;
        let mut number = || {
            decisions += 1;
            DecisionId(decisions)
        };
        let again = read.step(
            input,
            Moment {
                now_ms: self.now_ms,
                number: &mut number,
            },
        );
        assert_eq!(
            (&again, &read),
            (&actions, &self.state),
            "a step is a function"
        );
        actions.iter().map(shown).collect()
    }

    fn prompt(&mut self, text: &str) -> Vec<String> {
        self.step(ThreadInput::Prompt { text: text.into() })
    }

    fn cancel(&mut self) -> Vec<String> {
        self.step(ThreadInput::Cancel { by: "me".into() })
    }

    fn answer(&mut self, decision: i64, option: &str) -> Vec<String> {
        let decision = DecisionId(decision);
        self.step(ThreadInput::Answer {
            decision,
            option: option.into(),
            by: "me".into(),
        })
    }

    fn line(&mut self, line: Value) -> Vec<String> {
        self.step(ThreadInput::Line(
            Incoming::parse(line.to_string().as_bytes()).unwrap(),
        ))
    }

    fn reply(&mut self, id: i64, result: Value) -> Vec<String> {
        self.line(json!({"jsonrpc":"2.0","id":id,"result":result}))
    }

    fn fail(&mut self, id: i64, error: Value) -> Vec<String> {
        self.line(json!({"jsonrpc":"2.0","id":id,"error":error}))
    }

    fn update(&mut self, update: Value) -> Vec<String> {
        self.line(json!({"method":"session/update","params":{"sessionId":"s1","update":update}}))
    }

    fn text(&mut self, text: &str) -> Vec<String> {
        self.update(json!({"sessionUpdate":"agent_message_chunk",
            "content":{"type":"text","text":text}}))
    }

    fn permission(&mut self, id: Value, call: &str) -> Vec<String> {
        self.line(
            json!({"id":id,"method":"session/request_permission","params":{"sessionId":"s1",
            "toolCall":{"toolCallId":call,"title":"touch a","kind":"execute","status":"pending"},
            "options":[{"optionId":"ok","name":"Allow","kind":"allow_once"},
                       {"optionId":"no","name":"Reject","kind":"reject_once"}]}}),
        )
    }

    fn gone(&mut self, why: &str) -> Vec<String> {
        self.step(ThreadInput::AgentGone {
            why: why.into(),
            last_words: String::new(),
        })
    }
}

fn modes(current: &str) -> Value {
    json!([{"id":"mode","category":"mode","type":"select","currentValue":current,"options":[
        {"value":"auto","name":"Auto"},{"value":"default","name":"Ask"},
        {"value":"bypassPermissions","name":"Bypass"}]}])
}

/// An action in one line.
fn shown(action: &Action) -> String {
    match action {
        Action::Append(row) => format!("{} {}", row.seq, serde_json::to_string(&row.item).unwrap()),
        Action::Grow {
            seq,
            from_byte,
            text,
        } => format!("{seq} grows at {from_byte}: {text}"),
        Action::OpenDecision { seq, decision, .. } => {
            let options: Vec<&str> = decision.options.iter().map(|o| o.id.as_str()).collect();
            let (id, title) = (decision.decision, &decision.title);
            format!("{seq} open {id} {:?} `{title}` {options:?}", decision.about)
        }
        Action::CloseDecision(closed) => {
            let state = match &closed.state {
                DecisionState::Open => "open".to_owned(),
                DecisionState::Answered { option } => format!("answered {option}"),
                DecisionState::Cancelled => "cancelled".to_owned(),
                DecisionState::Lost { reason } => format!("lost ({reason})"),
            };
            let by = closed
                .by
                .as_deref()
                .map(|by| format!(" by {by}"))
                .unwrap_or_default();
            let note = closed
                .note
                .as_deref()
                .map(|note| format!(": {note}"))
                .unwrap_or_default();
            format!("{} close {} {state}{by}{note}", closed.seq, closed.decision)
        }
        Action::Send(line) => sent(line),
        Action::StartAgent { generation } => format!("start {generation}"),
        Action::KillAgent { generation } => format!("kill {generation}"),
    }
}

fn sent(line: &str) -> String {
    assert!(
        line.ends_with('\n') && line.matches('\n').count() == 1,
        "{line:?}"
    );
    let line: Value = serde_json::from_str(line).unwrap();
    match line["method"].as_str() {
        Some("session/prompt") => {
            format!(
                "send session/prompt {} {}",
                line["id"], line["params"]["prompt"][0]["text"]
            )
        }
        Some("initialize") => format!("send initialize {}", line["id"]),
        Some(method) if line["id"].is_null() => format!("send {method} {}", line["params"]),
        Some(method) => format!("send {method} {} {}", line["id"], line["params"]),
        None if line["error"].is_null() => format!("send {} result {}", line["id"], line["result"]),
        None => format!("send {} error {}", line["id"], line["error"]),
    }
}

#[test]
fn a_first_prompt_starts_the_agent_sets_the_mode_and_is_sent_once() {
    let mut stage = Stage::new(Asks::Person);
    assert_eq!(
        stage.prompt("hi\nthere"),
        [r#"1 {"kind":"prompt","text":"hi\nthere"}"#, "start 1"]
    );
    assert_eq!(stage.state.title, "hi");
    assert_eq!(stage.state.shown(), Shown::Starting);
    assert_eq!(stage.step(ThreadInput::Started), ["send initialize 1"]);
    assert_eq!(
        stage.reply(1, json!({"protocolVersion":1})),
        [r#"send session/new 2 {"cwd":"/workspace","mcpServers":[]}"#]
    );
    assert_eq!(
        stage.reply(2, json!({"sessionId":"s1","configOptions":modes("auto")})),
        [
            r#"send session/set_config_option 3 {"configId":"mode","sessionId":"s1","value":"default"}"#
        ]
    );
    assert_eq!(
        stage.reply(3, json!({"configOptions":modes("default")})),
        [
            r#"2 {"kind":"mode","mode":"default"}"#,
            r#"send session/prompt 4 "hi\nthere""#
        ]
    );
    assert_eq!(
        stage.reply(4, json!({"stopReason":"end_turn"})),
        [r#"3 {"kind":"turn_ended","outcome":"done","note":null}"#]
    );
    // The same answer again belongs to nothing.
    assert_eq!(
        stage.reply(4, json!({"stopReason":"end_turn"})),
        [r#"4 {"kind":"detail","raw":{"late_response":4}}"#]
    );
}

#[test]
fn a_mode_is_never_left_to_the_agent() {
    let offered = |options: Value| {
        let mut stage = Stage::new(Asks::Person);
        stage.prompt("hi");
        stage.step(ThreadInput::Started);
        stage.reply(1, json!({"protocolVersion":1}));
        stage.reply(2, json!({"sessionId":"s1","modes":options}))
    };
    assert_eq!(
        offered(json!({"currentModeId":"default","availableModes":[{"id":"default"}]})),
        [r#"send session/set_mode 3 {"modeId":"default","sessionId":"s1"}"#],
        "set even when the agent says it is in it"
    );
    assert_eq!(
        offered(json!({"currentModeId":"yolo","availableModes":[{"id":"yolo"},{"id":"auto"}]})),
        [
            "kill 1",
            r#"2 {"kind":"turn_ended","outcome":"failed","note":"the agent has no mode `default`, only `yolo`, `auto`"}"#
        ]
    );
    assert_eq!(
        offered(Value::Null),
        [r#"send session/prompt 3 "hi""#],
        "no modes, no default"
    );
}

#[test]
fn a_mode_that_does_not_take_ends_the_turn() {
    let mut stage = Stage::new(Asks::Person);
    stage.prompt("hi");
    stage.step(ThreadInput::Started);
    stage.reply(1, json!({"protocolVersion":1}));
    stage.reply(2, json!({"sessionId":"s1","configOptions":modes("auto")}));
    assert_eq!(
        stage.reply(3, json!({"configOptions":modes("auto")})),
        [
            "kill 1",
            r#"2 {"kind":"turn_ended","outcome":"failed","note":"the agent stays in mode `auto`, not `default`"}"#
        ]
    );
    assert_eq!(stage.state.shown(), Shown::Failed);
}

#[test]
fn allow_all_takes_the_bypass_mode_or_says_that_there_is_none() {
    let set = |offered: Value| {
        let mut stage = Stage::new(Asks::Nobody);
        stage.prompt("hi");
        stage.step(ThreadInput::Started);
        stage.reply(1, json!({"protocolVersion":1}));
        stage.reply(2, json!({"sessionId":"s1","modes":offered}))
    };
    assert_eq!(
        set(
            json!({"currentModeId":"d","availableModes":[{"id":"default"},{"id":"bypassPermissions"}]})
        ),
        [r#"send session/set_mode 3 {"modeId":"bypassPermissions","sessionId":"s1"}"#]
    );
    assert_eq!(
        set(json!({"currentModeId":"d","availableModes":[{"id":"default"}]})),
        [
            r#"2 {"kind":"notice","text":"the agent has no mode without questions; each is to be allowed once"}"#,
            r#"send session/set_mode 3 {"modeId":"default","sessionId":"s1"}"#
        ]
    );
}

#[test]
fn chunks_of_one_message_are_one_row_that_grows() {
    let mut stage = Stage::running();
    assert_eq!(stage.text("Hel"), [r#"5 {"kind":"text","text":"Hel"}"#]);
    assert_eq!(stage.text("lö"), ["5 grows at 3: lö"]);
    assert_eq!(stage.text("!"), ["5 grows at 6: !"]);
    let thought =
        json!({"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}});
    assert_eq!(
        stage.update(thought),
        [r#"6 {"kind":"thought","text":"hm"}"#]
    );
    let other = json!({"sessionUpdate":"agent_message_chunk","messageId":"m2",
        "content":{"type":"text","text":"a"}});
    assert_eq!(
        stage.update(other.clone()),
        [r#"7 {"kind":"text","text":"a"}"#]
    );
    assert_eq!(stage.update(other), ["7 grows at 1: a"]);
    stage.update(json!({"sessionUpdate":"usage_update","used":1,"size":2}));
    assert_eq!(
        stage.text("b"),
        [r#"9 {"kind":"text","text":"b"}"#],
        "only the last row grows"
    );
}

#[test]
fn a_row_of_text_has_a_bound_and_loses_nothing() {
    let mut stage = Stage::running();
    let text = "ä".repeat(300_000);
    let actions = stage.text(&text);
    let rows: Vec<String> = actions
        .iter()
        .map(|row| row.split_once(' ').unwrap().1)
        .map(|item| serde_json::from_str::<Item>(item).unwrap())
        .map(|item| {
            let Item::Text { text } = item else {
                panic!("{item:?}")
            };
            text
        })
        .collect();
    assert_eq!(rows.len(), 3);
    assert_eq!(rows.concat(), text);
}

#[test]
fn updates_after_the_prompt_was_answered_are_kept() {
    let mut stage = Stage::ready();
    assert_eq!(
        stage.text("a task has ended"),
        [r#"4 {"kind":"text","text":"a task has ended"}"#]
    );
    assert_eq!(stage.state.shown(), Shown::Idle);
}

#[test]
fn calls_are_told_once_and_then_updated_whatever_comes_first() {
    let mut stage = Stage::running();
    let call = json!({"sessionUpdate":"tool_call","toolCallId":"t1","title":"ls","kind":"execute",
        "status":"pending"});
    assert_eq!(
        stage.update(call.clone()),
        [r#"5 {"kind":"tool_call","call":"t1","title":"ls","tool":"execute","status":"pending"}"#]
    );
    assert_eq!(
        stage.update(
            json!({"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed",
            "content":[{"type":"content","content":{"type":"text","text":"a b"}}]})
        ),
        [
            r#"6 {"kind":"tool_update","call":"t1","status":"completed","content":[{"type":"text","text":"a b"}]}"#
        ]
    );
    assert_eq!(
        stage.update(
            json!({"sessionUpdate":"tool_call_update","toolCallId":"t2","status":"in_progress"})
        ),
        [r#"7 {"kind":"tool_call","call":"t2","title":"t2","tool":"other","status":"running"}"#]
    );
    assert_eq!(
        stage.update(call),
        [r#"8 {"kind":"tool_update","call":"t1","title":"ls","status":"pending"}"#]
    );
    let meta = json!({"sessionUpdate":"tool_call_update","toolCallId":"t1","_meta":{"x":1}});
    assert!(stage.update(meta)[0].starts_with(r#"9 {"kind":"detail""#));
}

#[test]
fn a_permission_is_asked_answered_and_answered_only_once() {
    let mut stage = Stage::running();
    assert_eq!(
        stage.permission(json!(0), "t1"),
        [
            r#"5 {"kind":"tool_call","call":"t1","title":"touch a","tool":"execute","status":"pending"}"#,
            r#"6 open 7 Permission `touch a` ["ok", "no"]"#
        ]
    );
    assert_eq!(stage.state.shown(), Shown::NeedsYou);
    assert_eq!(
        stage.answer(7, "maybe"),
        Vec::<String>::new(),
        "not one of the options"
    );
    assert_eq!(
        stage.answer(8, "ok"),
        Vec::<String>::new(),
        "no such decision"
    );
    assert_eq!(
        stage.answer(7, "ok"),
        [
            "7 close 7 answered ok by me",
            r#"send 0 result {"outcome":{"optionId":"ok","outcome":"selected"}}"#
        ]
    );
    assert_eq!(stage.answer(7, "no"), Vec::<String>::new(), "late");
    assert_eq!(stage.state.shown(), Shown::Running);
}

#[test]
fn a_form_is_a_question_and_what_cannot_be_asked_is_declined() {
    let mut stage = Stage::running();
    let form = |properties: Value| {
        json!({"id":"f","method":"elicitation/create","params":{"sessionId":"s1","mode":"form",
            "message":"Which?","requestedSchema":{"type":"object","properties":properties}}})
    };
    assert_eq!(
        stage.line(form(json!({"q":{"type":"string","enum":["red","blue"]}}))),
        [r#"5 open 7 Question `Which?` ["red", "blue"]"#]
    );
    assert_eq!(
        stage.answer(7, "blue"),
        [
            "6 close 7 answered blue by me",
            r#"send "f" result {"action":"accept","content":{"q":"blue"}}"#
        ]
    );
    assert_eq!(
        stage.line(form(json!({"name":{"type":"object"}}))),
        [
            r#"7 {"kind":"notice","text":"the agent asked for something that cannot be asked here; it was declined"}"#,
            r#"send "f" result {"action":"decline"}"#
        ]
    );
}

#[test]
fn two_questions_in_one_form_are_one_decision_answered_once() {
    let mut stage = Stage::running();
    let form = json!({"id":1,"method":"elicitation/create","params":{"mode":"form","message":"m",
        "requestedSchema":{"properties":{"a":{"enum":["x"],"title":"A?"},"b":{"enum":["y"],"title":"B?"}}}}});
    assert_eq!(stage.line(form), ["5 open 7 Question `m` []"]);
    let values = json!({"a":"x","b":"y"}).as_object().cloned().unwrap();
    let answer = ThreadInput::AnswerForm {
        decision: DecisionId(7),
        answer: FormAnswer::Fill { values },
        by: "me".into(),
    };
    assert_eq!(
        stage.step(answer.clone()),
        [
            "6 close 7 answered a=x b=y by me",
            r#"send 1 result {"action":"accept","content":{"a":"x","b":"y"}}"#
        ]
    );
    assert_eq!(stage.step(answer), Vec::<String>::new(), "once");
}

#[test]
fn unknown_requests_are_refused_and_never_hang() {
    let mut stage = Stage::running();
    for method in [
        "fs/write_text_file",
        "terminal/create",
        "craft/drainMidTurnQueue",
    ] {
        let answer = stage.line(json!({"id":9,"method":method,"params":{}}));
        assert_eq!(
            answer,
            [format!(
                r#"send 9 error {{"code":-32601,"message":"this client does not serve `{method}`"}}"#
            )]
        );
    }
}

#[test]
fn a_number_used_again_closes_what_it_stood_for() {
    let mut stage = Stage::running();
    stage.permission(json!(0), "t1");
    assert_eq!(
        stage.permission(json!(0), "t1"),
        [
            "7 close 7 cancelled: the agent asked something else under the same number",
            r#"8 open 8 Permission `touch a` ["ok", "no"]"#
        ]
    );
    assert_eq!(stage.answer(7, "ok"), Vec::<String>::new());
    assert_eq!(stage.answer(8, "no").len(), 2);
    // After the answer the number is free again.
    assert_eq!(stage.permission(json!(0), "t1").len(), 1);
}

#[test]
fn a_request_taken_back_is_cancelled() {
    let mut stage = Stage::running();
    stage.permission(json!("p"), "t1");
    let back = |id: Value| json!({"method":"$/cancel_request","params":{"requestId":id}});
    assert_eq!(stage.line(back(json!("other"))), Vec::<String>::new());
    assert_eq!(
        stage.line(back(json!("p"))),
        [
            "7 close 7 cancelled: the agent took the request back",
            r#"send "p" result {"outcome":{"outcome":"cancelled"}}"#
        ]
    );
}

#[test]
fn a_second_prompt_waits_for_the_first_turn() {
    let mut stage = Stage::running();
    assert_eq!(
        stage.prompt("and then"),
        [r#"5 {"kind":"queue","waiting":[{"queued":1,"text":"and then","bytes":8}]}"#]
    );
    assert_eq!(
        stage.reply(5, json!({"stopReason":"end_turn"})),
        [
            r#"6 {"kind":"turn_ended","outcome":"done","note":null}"#,
            r#"7 {"kind":"queue","waiting":[]}"#,
            r#"8 {"kind":"prompt","text":"and then"}"#,
            r#"send session/prompt 6 "and then""#
        ]
    );
}

#[test]
fn cancel_settles_open_permissions_and_holds_what_waits() {
    let mut stage = Stage::running();
    stage.permission(json!(0), "t1");
    stage.prompt("later");
    assert_eq!(
        stage.cancel(),
        [
            r#"send session/cancel {"sessionId":"s1"}"#,
            "8 close 7 cancelled by me",
            r#"send 0 result {"outcome":{"outcome":"cancelled"}}"#
        ]
    );
    assert_eq!(stage.cancel(), Vec::<String>::new(), "once is enough");
    assert_eq!(
        stage.permission(json!(1), "t1"),
        [r#"send 1 result {"outcome":{"outcome":"cancelled"}}"#],
        "what is asked after that is not shown to anybody"
    );
    assert_eq!(
        stage.reply(5, json!({"stopReason":"cancelled"})),
        [
            r#"9 {"kind":"tool_update","call":"t1","status":"interrupted"}"#,
            r#"10 {"kind":"turn_ended","outcome":"cancelled","note":null}"#,
            r#"11 {"kind":"notice","text":"a prompt waits; it is sent after your next one"}"#
        ]
    );
    assert_eq!(
        stage.prompt("now")[0],
        r#"12 {"kind":"prompt","text":"now"}"#,
        "what waits does not go first"
    );
    let ended = stage.reply(6, json!({"stopReason":"end_turn"}));
    assert_eq!(
        ended[2], r#"15 {"kind":"prompt","text":"later"}"#,
        "{ended:?}"
    );
}

#[test]
fn cancel_before_the_agent_is_ready_ends_the_turn_at_once() {
    let mut stage = Stage::new(Asks::Person);
    stage.prompt("hi");
    assert_eq!(
        stage.cancel(),
        [r#"2 {"kind":"turn_ended","outcome":"cancelled","note":null}"#]
    );
    stage.set_up();
    assert_eq!(stage.state.shown(), Shown::Idle);
    assert_eq!(
        stage.prompt("again"),
        [
            r#"4 {"kind":"prompt","text":"again"}"#,
            r#"send session/prompt 4 "again""#
        ]
    );
}

#[test]
fn an_agent_that_does_not_stop_is_ended() {
    let mut stage = Stage::running();
    stage.cancel();
    assert_eq!(stage.state.deadline_ms(), Some(16_000));
    assert_eq!(
        stage.step(ThreadInput::Tick),
        Vec::<String>::new(),
        "not yet"
    );
    stage.now_ms = 16_000;
    assert_eq!(
        stage.step(ThreadInput::Tick),
        [
            "kill 1",
            r#"5 {"kind":"turn_ended","outcome":"cancelled","note":"the agent did not stop when asked and was ended"}"#
        ]
    );
    assert_eq!(stage.state.deadline_ms(), None);
}

#[test]
fn an_error_after_a_cancel_is_a_cancel() {
    let mut stage = Stage::running();
    stage.cancel();
    let rows = stage.fail(5, json!({"code":-32603,"message":"aborted"}));
    assert!(rows[0].contains(r#""outcome":"cancelled""#), "{rows:?}");
}

#[test]
fn the_agents_death_loses_the_decision_and_closes_what_is_open() {
    let mut stage = Stage::running();
    stage.permission(json!(0), "t1");
    assert_eq!(
        stage.step(ThreadInput::AgentGone {
            why: "the agent was killed by signal 9".into(),
            last_words: "panic: no memory".into()
        }),
        [
            r#"7 {"kind":"notice","text":"the agent's last words:\npanic: no memory"}"#,
            "8 close 7 lost (the agent was killed by signal 9)",
            r#"9 {"kind":"tool_update","call":"t1","status":"interrupted"}"#,
            r#"10 {"kind":"turn_ended","outcome":"failed","note":"the agent was killed by signal 9"}"#
        ]
    );
    assert_eq!(stage.answer(7, "ok"), Vec::<String>::new(), "late");
    assert_eq!(stage.gone("again"), Vec::<String>::new());
}

#[test]
fn after_a_death_the_next_prompt_takes_the_conversation_up_without_repeating_it() {
    let mut stage = Stage::ready();
    assert_eq!(
        stage.gone("the agent ended with code 0"),
        [
            r#"4 {"kind":"notice","text":"the agent ended with code 0; the next prompt starts it again"}"#
        ]
    );
    assert_eq!(
        stage.prompt("more"),
        [r#"5 {"kind":"prompt","text":"more"}"#, "start 2"]
    );
    assert_eq!(stage.step(ThreadInput::Started), ["send initialize 5"]);
    assert_eq!(
        stage.reply(
            5,
            json!({"protocolVersion":1,"agentCapabilities":{"loadSession":true}})
        ),
        [r#"send session/load 6 {"cwd":"/workspace","mcpServers":[],"sessionId":"s1"}"#]
    );
    assert_eq!(
        stage.text("hi from before"),
        Vec::<String>::new(),
        "the journal has it already"
    );
    assert_eq!(
        stage.reply(6, json!({"configOptions":modes("auto")})),
        [
            r#"send session/set_config_option 7 {"configId":"mode","sessionId":"s1","value":"default"}"#
        ]
    );
    assert_eq!(
        stage.reply(7, json!({"configOptions":modes("default")})),
        [
            r#"6 {"kind":"mode","mode":"default"}"#,
            r#"send session/prompt 8 "more""#
        ]
    );
}

#[test]
fn a_conversation_that_cannot_be_taken_up_begins_anew_and_says_so() {
    let mut stage = Stage::ready();
    stage.gone("x");
    stage.prompt("more");
    stage.step(ThreadInput::Started);
    stage.reply(
        5,
        json!({"protocolVersion":1,"agentCapabilities":{"loadSession":true}}),
    );
    assert_eq!(
        stage.fail(6, json!({"code":-32002,"message":"no such session"})),
        [
            r#"6 {"kind":"notice","text":"the agent could not take up its earlier conversation and begins a new one: no such session"}"#,
            r#"send session/new 7 {"cwd":"/workspace","mcpServers":[]}"#
        ]
    );
}

#[test]
fn a_forgotten_conversation_is_taken_up_once_and_the_prompt_sent_again() {
    let mut stage = Stage::running();
    let forgotten = json!({"code":-32002,"message":"no such session"});
    assert_eq!(
        stage.fail(5, forgotten.clone()),
        [r#"send session/load 6 {"cwd":"/workspace","mcpServers":[],"sessionId":"s1"}"#]
    );
    assert_eq!(
        stage.reply(6, Value::Null),
        [r#"send session/prompt 7 "go""#]
    );
    assert_eq!(
        stage.fail(7, forgotten),
        [
            r#"5 {"kind":"turn_ended","outcome":"failed","note":"the agent has lost the conversation"}"#
        ]
    );
}

#[test]
fn what_waits_is_held_after_a_turn_that_failed() {
    let mut stage = Stage::running();
    stage.prompt("and then");
    assert_eq!(
        stage.gone("the box stopped"),
        [
            r#"6 {"kind":"turn_ended","outcome":"failed","note":"the box stopped"}"#,
            r#"7 {"kind":"notice","text":"a prompt waits; it is sent after your next one"}"#
        ]
    );
}

#[test]
fn an_agent_that_dies_while_it_starts_says_so() {
    let mut stage = Stage::new(Asks::Person);
    stage.prompt("hi");
    stage.step(ThreadInput::Started);
    assert_eq!(
        stage.step(ThreadInput::AgentGone {
            why: "the agent ended with code 3".into(),
            last_words: "node: not found".into()
        }),
        [
            r#"2 {"kind":"notice","text":"the agent's last words:\nnode: not found"}"#,
            r#"3 {"kind":"turn_ended","outcome":"failed","note":"the agent ended with code 3 before it was ready"}"#
        ]
    );
    assert_eq!(stage.state.shown(), Shown::Failed);
}

#[test]
fn an_agent_that_could_not_be_started_is_not_killed() {
    let mut stage = Stage::new(Asks::Person);
    stage.prompt("hi");
    assert_eq!(
        stage.gone("the agent could not be started: no such program"),
        [
            r#"2 {"kind":"turn_ended","outcome":"failed","note":"the agent could not be started: no such program"}"#
        ]
    );
}

#[test]
fn an_agent_that_never_answers_is_ended_after_its_time() {
    let mut stage = Stage::new(Asks::Person);
    stage.prompt("hi");
    stage.step(ThreadInput::Started);
    assert_eq!(stage.state.deadline_ms(), Some(61_000));
    // The host was away for longer than that: the agent gets its time again.
    stage.now_ms = 90_000;
    stage.step(ThreadInput::Reattached);
    assert_eq!(stage.step(ThreadInput::Tick), Vec::<String>::new());
    stage.now_ms = 150_000;
    assert_eq!(
        stage.step(ThreadInput::Tick),
        [
            "kill 1",
            r#"2 {"kind":"turn_ended","outcome":"failed","note":"the agent did not answer the first message within 60 s"}"#
        ]
    );
}

#[test]
fn garbage_is_told_a_few_times_and_then_ends_the_agent() {
    let mut stage = Stage::new(Asks::Person);
    stage.prompt("hi");
    stage.step(ThreadInput::Started);
    let garbage = |text: &str| ThreadInput::Line(Incoming::Garbage { text: text.into() });
    for seq in 2..5 {
        assert_eq!(
            stage.step(garbage("blah")),
            [format!(
                r#"{seq} {{"kind":"notice","text":"the agent printed a line that is no message: blah"}}"#
            )]
        );
    }
    for _ in 3..19 {
        assert_eq!(stage.step(garbage("blah")), Vec::<String>::new());
    }
    assert_eq!(
        stage.step(garbage("blub")),
        [
            "kill 1",
            r#"5 {"kind":"turn_ended","outcome":"failed","note":"the agent does not speak the Agent Client Protocol; it printed: blub"}"#
        ]
    );
}

#[test]
fn a_stray_line_does_no_harm() {
    let mut stage = Stage::running();
    for _ in 0..100 {
        stage.step(ThreadInput::Line(Incoming::Garbage {
            text: "warning".into(),
        }));
        stage.text("x");
    }
    assert_eq!(stage.state.shown(), Shown::Running);
}

#[test]
fn a_line_too_long_ends_the_agent() {
    let mut stage = Stage::running();
    assert_eq!(
        stage.step(ThreadInput::LineTooLong),
        [
            "kill 1",
            r#"5 {"kind":"turn_ended","outcome":"failed","note":"the agent sent a line longer than 32 MiB"}"#
        ]
    );
}

#[test]
fn an_agent_that_talks_without_end_is_ended() {
    let mut stage = Stage::running();
    assert_eq!(
        stage.step(ThreadInput::TooMuchOutput),
        [
            "kill 1",
            r#"5 {"kind":"turn_ended","outcome":"failed","note":"the agent printed more than 1024 MiB since it was started"}"#
        ]
    );
}

#[test]
fn a_usage_limit_parks_the_thread_and_what_waits() {
    let mut stage = Stage::running();
    stage.prompt("later");
    let event = json!({"method":"_claude/sdkMessage","params":{"sessionId":"s1","message":{
        "type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1_795_962_995}}}});
    assert!(
        stage.line(event)[0].starts_with(r#"6 {"kind":"detail""#),
        "kept whole"
    );
    let error =
        json!({"code":-32603,"message":"You've hit your limit","data":{"errorKind":"rate_limit"}});
    assert_eq!(
        stage.fail(5, error),
        [
            r#"7 {"kind":"turn_ended","outcome":"parked","note":"usage limit until 2026-11-29T14:36:35Z: You've hit your limit; goes on by itself at 2026-11-29T14:36:35Z"}"#,
        ],
        "what waits goes on waiting"
    );
    assert_eq!(stage.state.shown(), Shown::Parked);
    assert_eq!(stage.prompt("now?").len(), 1, "it waits as well");
    let sent: Vec<String> = stage
        .step(ThreadInput::Resume {
            by: Some("me".into()),
        })
        .into_iter()
        .filter(|line| line.starts_with("send"))
        .collect();
    assert_eq!(sent.len(), 1, "{sent:?}");
}

#[test]
fn a_missing_login_says_what_to_do() {
    let mut stage = Stage::running();
    assert_eq!(
        stage.fail(
            5,
            json!({"code":-32000,"message":"Authentication required"})
        ),
        [
            r#"5 {"kind":"turn_ended","outcome":"failed","note":"the agent is not logged in: Authentication required; hint: log in first"}"#
        ]
    );
}

#[test]
fn an_agent_that_hides_its_failure_is_not_believed() {
    let mut stage = Stage::running();
    stage.line(json!({"method":"session/update","params":{"sessionId":"s1",
        "_meta":{"codex":{"threadStatus":{"type":"systemError"}}},
        "update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"oh"}}}}));
    assert_eq!(
        stage.reply(5, json!({"stopReason":"end_turn"})),
        [
            r#"6 {"kind":"turn_ended","outcome":"failed","note":"the agent reported an error of its own"}"#
        ]
    );
}

#[test]
fn unknown_updates_and_other_conversations_are_rows() {
    let mut stage = Stage::running();
    assert_eq!(
        stage.update(json!({"sessionUpdate":"hologram"})),
        [r#"5 {"kind":"unknown","raw":{"sessionUpdate":"hologram"}}"#]
    );
    let other = json!({"method":"session/update","params":{"sessionId":"s9","update":{"a":1}}});
    assert_eq!(
        stage.line(other),
        [r#"6 {"kind":"detail","raw":{"other_conversation":{"sessionId":"s9","update":{"a":1}}}}"#]
    );
}

#[test]
fn the_agents_own_title_is_taken() {
    let mut stage = Stage::running();
    stage.update(json!({"sessionUpdate":"session_info_update","title":"Fix the build"}));
    assert_eq!(stage.state.title, "Fix the build");
}

#[test]
fn finished_calls_are_forgotten_and_a_death_interrupts_only_open_ones() {
    let mut stage = Stage::running();
    for (call, status) in [("t1", "completed"), ("t2", "in_progress")] {
        stage.update(
            json!({"sessionUpdate":"tool_call","toolCallId":call,"title":call,"status":status}),
        );
    }
    stage.reply(5, json!({"stopReason":"end_turn"}));
    let rows = stage.gone("gone");
    assert_eq!(
        rows[0],
        r#"8 {"kind":"tool_update","call":"t2","status":"interrupted"}"#
    );
    assert_eq!(rows.len(), 2, "{rows:?}");
}

#[test]
fn background_tasks_are_counted_until_the_agent_is_gone() {
    let mut stage = Stage::ready();
    stage.line(
        json!({"method":"_claude/sdkMessage","params":{"message":{"type":"system",
        "subtype":"background_tasks_changed","tasks":[{"task_id":"b"}]}}}),
    );
    assert_eq!(stage.state.background.tasks.len(), 1);
    assert_eq!(stage.state.shown(), Shown::Background);
    stage.gone("gone");
    assert_eq!(stage.state.background.tasks.len(), 0);
}

#[test]
fn a_conversation_that_goes_back_ends_its_turn_and_its_agent_and_loads_what_was_known_then() {
    let mut stage = Stage::running();
    let gone = GoneBack {
        before: 4,
        known_as: Some("s0".into()),
        snapshot: "turn-2".into(),
    };
    let did = stage.step(ThreadInput::WentBack(gone));
    let ended =
        r#"{"kind":"turn_ended","outcome":"cancelled","note":"the box went back to `turn-2`"}"#;
    assert_eq!(did.first().map(String::as_str), Some("kill 1"));
    assert!(did.iter().any(|line| line.ends_with(ended)), "{did:?}");
    let last = did.last().unwrap();
    assert!(last.ends_with(r#"{"kind":"went_back","before":4,"snapshot":"turn-2"}"#));
    assert_eq!(stage.state.shown(), Shown::Idle);

    assert_eq!(stage.prompt("go on").last().unwrap(), "start 2");
    stage.step(ThreadInput::Started);
    let greeted = stage.reply(
        6,
        json!({"protocolVersion":1,"agentCapabilities":{"loadSession":true}}),
    );
    assert_eq!(
        greeted,
        [r#"send session/load 7 {"cwd":"/workspace","mcpServers":[],"sessionId":"s0"}"#]
    );
}

#[test]
fn a_conversation_that_goes_back_to_its_beginning_begins_anew() {
    let mut stage = Stage::ready();
    let gone = GoneBack {
        before: 1,
        known_as: None,
        snapshot: "pristine".into(),
    };
    stage.step(ThreadInput::WentBack(gone));
    stage.prompt("hi");
    stage.step(ThreadInput::Started);
    let greeted = stage.reply(
        5,
        json!({"protocolVersion":1,"agentCapabilities":{"loadSession":true}}),
    );
    assert!(greeted[0].starts_with("send session/new 6 "), "{greeted:?}");
}
