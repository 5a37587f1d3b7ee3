//! Whatever an agent prints and whatever people do: what always holds of a thread.

use super::Moment;
use crate::acp::Incoming;
use crate::agents::profile::Repeating;
use crate::thread::state::{Action, Asks, Settings, ThreadInput, ThreadState};
use box_api::thread::{DecisionState, Item, JournalRow};
use box_api::{BoxId, DecisionId, ThreadId};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const SEEDS: u64 = 120;
const STEPS: usize = 200;

/// `SplitMix64`.
struct Chance(u64);

impl Chance {
    fn below(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((z ^ (z >> 31)) % below as u64).unwrap()
    }

    fn of(&mut self, choices: &[Value]) -> Value {
        choices[self.below(choices.len())].clone()
    }
}

/// A line of an agent that knows some words and puts them anywhere.
fn line(chance: &mut Chance) -> Value {
    let ids = [
        json!(0),
        json!(1),
        json!(2),
        json!(3),
        json!(4),
        json!(5),
        json!("a"),
        Value::Null,
    ];
    let odd = [
        Value::Null,
        json!([]),
        json!({}),
        json!("s1"),
        json!(7),
        json!("default"),
    ];
    let modes = json!([{"id":"mode","category":"mode","type":"select","currentValue":chance.of(&odd),
        "options":[{"value":"default"},{"value":chance.of(&odd)}]}]);
    let result = [
        json!({"protocolVersion":1,"agentCapabilities":{"loadSession":chance.below(2) == 0}}),
        json!({"sessionId":"s1","configOptions":modes}),
        json!({"sessionId":"s1","modes":{"currentModeId":"x","availableModes":[{"id":"default"}]}}),
        json!({"stopReason":chance.of(&[json!("end_turn"), json!("cancelled"), json!("what")])}),
        chance.of(&odd),
    ];
    let call = json!({"toolCallId":chance.of(&[json!("t1"), json!("t2")]),"title":chance.of(&odd),
        "status":chance.of(&[json!("pending"), json!("completed"), json!("new")])});
    let kinds = [
        "agent_message_chunk",
        "agent_thought_chunk",
        "tool_call",
        "tool_call_update",
        "plan",
        "usage_update",
        "current_mode_update",
        "session_info_update",
        "hologram",
    ];
    let mut update = call.clone();
    update["sessionUpdate"] = json!(kinds[chance.below(kinds.len())]);
    update["content"] =
        json!({"type":"text","text":chance.of(&[json!("ä"), json!(""), json!("hello")])});
    update["messageId"] = chance.of(&[Value::Null, json!("m1")]);
    update["entries"] = chance.of(&odd);
    update["currentModeId"] = chance.of(&odd);
    let options = [
        json!([{"optionId":"ok","kind":"allow_once"}]),
        chance.of(&odd),
    ];
    let errors = [-32000, -32002, -32603, -32800];
    match chance.below(9) {
        0 | 1 => json!({"id":chance.of(&ids),"result":chance.of(&result)}),
        2 => json!({"id":chance.of(&ids),"error":{"code":errors[chance.below(4)],"message":"no",
            "data":{"errorKind":chance.of(&[json!("rate_limit"), Value::Null])}}}),
        3 => json!({"id":chance.of(&ids),"method":"session/request_permission",
            "params":{"sessionId":"s1","toolCall":call,"options":chance.of(&options)}}),
        4 => json!({"id":chance.of(&ids),"method":"elicitation/create","params":{"message":"m",
            "requestedSchema":{"properties":{"q":{"enum":["ok"]},"r":chance.of(&odd)}}}}),
        5 => json!({"method":"$/cancel_request","params":{"requestId":chance.of(&ids)}}),
        6 => json!({"id":chance.of(&ids),"method":"fs/read_text_file"}),
        _ => json!({"method":"session/update","params":{"sessionId":"s1","update":update}}),
    }
}

fn input(chance: &mut Chance, decisions: i64) -> ThreadInput {
    match chance.below(30) {
        0 | 1 => ThreadInput::Prompt {
            text: "do it".into(),
        },
        2 => ThreadInput::Cancel { by: "me".into() },
        3 | 4 => {
            let back = i64::try_from(chance.below(3)).unwrap();
            let decision = DecisionId(decisions - back);
            ThreadInput::Answer {
                decision,
                option: "ok".into(),
                by: "me".into(),
            }
        }
        5 | 6 => ThreadInput::Started,
        7 => ThreadInput::AgentGone {
            why: "gone".into(),
            last_words: String::new(),
        },
        8 => ThreadInput::Tick,
        9 => ThreadInput::Reattached,
        10 => ThreadInput::Line(Incoming::Garbage {
            text: "blah".into(),
        }),
        _ => match Incoming::parse(line(chance).to_string().as_bytes()) {
            Some(message) => ThreadInput::Line(message),
            None => ThreadInput::Tick,
        },
    }
}

/// The journal and the world as they follow from the actions.
#[derive(Default)]
struct World {
    last_seq: u64,
    /// Length of the last row's text, if it has one.
    text_bytes: Option<u64>,
    open: BTreeSet<DecisionId>,
    ever_open: BTreeSet<DecisionId>,
    turn: bool,
    agent: bool,
    turns_ended: usize,
}

impl World {
    fn take(&mut self, action: Action) {
        match action {
            Action::Append(row) => self.row(&row),
            Action::Grow {
                seq,
                from_byte,
                text,
            } => {
                assert_eq!(seq, self.last_seq, "only the last row grows");
                assert_eq!(Some(from_byte), self.text_bytes, "without a gap");
                self.text_bytes = Some(from_byte + text.len() as u64);
            }
            Action::OpenDecision { seq, decision, .. } => {
                self.next(seq);
                assert!(self.agent, "nobody asks");
                assert!(!decision.options.is_empty(), "nothing to choose");
                assert!(
                    self.ever_open.insert(decision.decision),
                    "a number used twice"
                );
                self.open.insert(decision.decision);
            }
            Action::CloseDecision(closed) => {
                self.next(closed.seq);
                assert!(self.open.remove(&closed.decision), "closed and not open");
                assert_ne!(closed.state, DecisionState::Open);
            }
            Action::Send(line) => {
                assert!(self.agent, "a line for no agent: {line}");
                assert!(line.ends_with('\n') && line.matches('\n').count() == 1);
            }
            Action::StartAgent { .. } => {
                assert!(!self.agent, "a second agent");
                self.agent = true;
            }
            Action::KillAgent { .. } => assert!(std::mem::take(&mut self.agent), "no agent"),
        }
    }

    fn next(&mut self, seq: u64) {
        assert_eq!(seq, self.last_seq + 1, "rows without a gap");
        self.last_seq = seq;
        self.text_bytes = None;
    }

    fn row(&mut self, row: &JournalRow) {
        self.next(row.seq);
        self.text_bytes = crate::journal::growing_text(&row.item).map(|text| text.len() as u64);
        if matches!(row.item, Item::Prompt { .. }) {
            assert!(!std::mem::replace(&mut self.turn, true), "a turn in a turn");
        }
        if matches!(row.item, Item::TurnEnded { .. }) {
            assert!(std::mem::take(&mut self.turn), "the end of no turn");
            self.turns_ended += 1;
        }
    }
}

fn live(seed: u64) -> World {
    let mut chance = Chance(seed);
    let settings = Settings {
        box_id: BoxId::from_random([1; 10]),
        thread: ThreadId::from_random([2; 10]),
        cwd: "/workspace".into(),
        mode_ask: "default".into(),
        mode_bypass: None,
        asks: Asks::Person,
        start_ms_max: 1000,
        login: None,
        meta: serde_json::Map::new(),
        authenticate: None,
        repeating: Repeating::default(),
    };
    let (mut state, mut world) = (ThreadState::new(settings), World::default());
    let (mut now_ms, mut decisions) = (0, 0);
    for _ in 0..STEPS {
        now_ms += i64::try_from(chance.below(400)).unwrap();
        let input = input(&mut chance, decisions);
        // The driver feeds lines of an agent that is there, and its end once.
        let of_agent = matches!(
            input,
            ThreadInput::Line(_) | ThreadInput::Started | ThreadInput::AgentGone { .. }
        );
        if of_agent && !world.agent {
            continue;
        }
        let gone = matches!(input, ThreadInput::AgentGone { .. });
        if gone {
            world.agent = false;
        }
        let mut number = || {
            decisions += 1;
            DecisionId(decisions)
        };
        for action in state.step(
            input,
            Moment {
                now_ms,
                number: &mut number,
            },
        ) {
            world.take(action);
        }
        assert_eq!(state.wants_agent(), world.agent);
        assert_eq!(state.last_seq(), world.last_seq);
        assert_eq!(state.open_decisions().collect::<BTreeSet<_>>(), world.open);
        assert!(
            world.agent || world.open.is_empty(),
            "nobody waits for the answer"
        );
        let saved = serde_json::to_string(&state).unwrap();
        assert_eq!(serde_json::from_str::<ThreadState>(&saved).unwrap(), state);
    }
    world
}

#[test]
fn nothing_an_agent_prints_breaks_a_thread() {
    let worlds: Vec<World> = (0..SEEDS).map(live).collect();
    // The lines are wild, and yet some of them get somewhere.
    let turns: usize = worlds.iter().map(|world| world.turns_ended).sum();
    let decisions: usize = worlds.iter().map(|world| world.ever_open.len()).sum();
    assert!(
        turns > 400 && decisions > 400,
        "{turns} turns, {decisions} decisions"
    );
}
