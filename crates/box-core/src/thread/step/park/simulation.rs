//! Fifty boxes on three accounts whose limits run out again and again, by the clock alone: hosts
//! come and go, the clock jumps, and everybody's work is done in the end.

use crate::acp::Incoming;
use crate::parking::{Entry, Lot, RETRY_MS, STAGGER_MS};
use crate::thread::state::{Action, Asks, Settings, ThreadInput, ThreadState};
use crate::thread::step::Moment;
use box_api::thread::{Item, ThreadState as Shown, TurnOutcome};
use box_api::{BoxId, DecisionId, ThreadId};
use serde_json::{Value, json};

const BOXES: u8 = 50;
const ACCOUNTS: usize = 3;
const START_MS: i64 = 1_795_953_600_000;
const HOUR_MS: i64 = 3_600_000;
/// Prompts an account takes before its limit.
const QUOTA: u32 = 12;

/// How an agent tells of its limit.
#[derive(Clone, Copy)]
enum Tells {
    Data,
    Text,
    Nothing,
}

struct Account {
    left: u32,
    resets_at_ms: i64,
    /// When the host let a prompt through to it.
    asked_ms: Vec<i64>,
    refused: u32,
}

struct Thread {
    state: ThreadState,
    account: usize,
    rank: u8,
    tells: Tells,
    prompts: Vec<String>,
    done: u32,
}

struct World {
    now_ms: i64,
    decisions: i64,
    accounts: Vec<Account>,
    threads: Vec<Thread>,
}

impl World {
    fn new() -> Self {
        let thread = |number: u8| Thread {
            state: ThreadState::new(settings(number)),
            account: usize::from(number) % ACCOUNTS,
            rank: number % 3,
            tells: [Tells::Data, Tells::Text, Tells::Nothing][usize::from(number / 3) % 3],
            prompts: Vec::new(),
            done: 0,
        };
        let account = |_| Account {
            left: QUOTA,
            resets_at_ms: START_MS + 5 * HOUR_MS,
            asked_ms: Vec::new(),
            refused: 0,
        };
        Self {
            now_ms: START_MS,
            decisions: 0,
            accounts: (0..ACCOUNTS).map(account).collect(),
            threads: (0..BOXES).map(thread).collect(),
        }
    }

    /// Gives a thread something and plays its agent until it has nothing more to say.
    fn give(&mut self, at: usize, input: ThreadInput) {
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            let decisions = &mut self.decisions;
            let mut number = || {
                *decisions += 1;
                DecisionId(*decisions)
            };
            let moment = Moment {
                now_ms: self.now_ms,
                number: &mut number,
            };
            let actions = self.threads[at].state.step(input, moment);
            let answers = actions
                .into_iter()
                .filter_map(|action| self.act(at, action));
            inputs.extend(answers);
        }
    }

    /// Does what a thread wants; what comes back.
    fn act(&mut self, at: usize, action: Action) -> Option<ThreadInput> {
        match action {
            Action::StartAgent { .. } => Some(ThreadInput::Started),
            Action::Send(line) => {
                let line: Value = serde_json::from_str(&line).unwrap();
                let answer = self.agent(at, &line).to_string();
                let answer = Incoming::parse(answer.as_bytes()).unwrap();
                Some(ThreadInput::Line(answer))
            }
            Action::Append(row) => {
                if let Item::TurnEnded { outcome, .. } = row.item {
                    self.threads[at].done += u32::from(outcome == TurnOutcome::Done);
                }
                None
            }
            Action::Grow { .. }
            | Action::OpenDecision { .. }
            | Action::CloseDecision(_)
            | Action::KillAgent { .. } => None,
        }
    }

    fn agent(&mut self, at: usize, line: &Value) -> Value {
        let id = &line["id"];
        match line["method"].as_str() {
            Some("initialize") => json!({"id":id,"result":{"protocolVersion":1}}),
            Some("session/new") => json!({"id":id,"result":{"sessionId":"s"}}),
            Some("session/prompt") => {
                let text = line["params"]["prompt"][0]["text"].as_str().unwrap();
                self.threads[at].prompts.push(text.to_owned());
                self.ask_account(at, id)
            }
            other => panic!("{other:?}"),
        }
    }

    fn ask_account(&mut self, at: usize, id: &Value) -> Value {
        let (now_ms, thread) = (self.now_ms, &self.threads[at]);
        let account = &mut self.accounts[thread.account];
        while account.resets_at_ms <= now_ms {
            account.resets_at_ms += 5 * HOUR_MS;
            account.left = QUOTA;
        }
        account.asked_ms.push(now_ms);
        if account.left > 0 {
            account.left -= 1;
            return json!({"id":id,"result":{"stopReason":"end_turn"}});
        }
        account.refused += 1;
        let in_minutes = (account.resets_at_ms - now_ms) / 60_000 + 1;
        let (message, data) = match thread.tells {
            Tells::Data => (
                "You've hit your limit".to_owned(),
                json!({"errorKind":"rate_limit","resetsAt":account.resets_at_ms / 1000 + 1}),
            ),
            Tells::Text => (
                format!("usage limit. Try again in {in_minutes} minutes."),
                json!({"codexErrorInfo":"usageLimitExceeded"}),
            ),
            Tells::Nothing => ("slow down".to_owned(), json!({"errorKind":"rate_limit"})),
        };
        json!({"id":id,"error":{"code":-32603,"message":message,"data":data}})
    }

    fn entries(&self) -> Vec<Entry> {
        let entry = |thread: &Thread| {
            let parked = thread.state.parked.as_ref()?;
            Some(Entry {
                thread: thread.state.settings.thread,
                why: parked.why,
                until_ms: parked.until_ms,
                since_ms: parked.since_ms,
                account: thread.account.to_string(),
                rank: thread.rank,
            })
        };
        self.threads.iter().filter_map(entry).collect()
    }

    /// What a host that dies leaves: what was saved.
    fn come_back(&mut self) {
        for thread in &mut self.threads {
            let saved = serde_json::to_string(&thread.state).unwrap();
            thread.state = serde_json::from_str(&saved).unwrap();
        }
    }

    fn waits(&self) -> bool {
        self.threads
            .iter()
            .any(|thread| thread.state.shown() == Shown::Parked)
    }
}

fn settings(number: u8) -> Settings {
    let thread = ThreadId::from_random([number; 10]);
    let box_id = BoxId::from_random([number; 10]);
    let profile = crate::agents::find("demo").unwrap();
    Settings::new(profile, (box_id, thread), Asks::Person)
}

#[test]
fn fifty_parked_boxes_on_three_accounts_are_neither_forgotten_nor_do_they_stampede() {
    for seed in 1..=20_u64 {
        simulate(seed);
    }
}

fn simulate(seed: u64) {
    let mut chance = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut chance = move |below: u64| {
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        chance % below
    };
    let mut world = World::new();
    for at in 0..world.threads.len() {
        let text = format!("work {at}");
        world.give(at, ThreadInput::Prompt { text });
    }
    assert!(world.waits(), "the limit is met");
    let begun: Vec<usize> = world
        .accounts
        .iter()
        .map(|account| account.asked_ms.len())
        .collect();
    let (mut lot, mut hosts, mut looks) = (Lot::default(), 1_u32, 0_u32);
    // One account at a time and host, in the order of rank.
    let mut last: Vec<Option<i64>> = vec![None; ACCOUNTS];
    while world.waits() {
        looks += 1;
        assert!(looks < 100_000, "seed {seed}: somebody is forgotten");
        match chance(200) {
            0 => {
                world.come_back();
                lot = Lot::default();
                hosts += 1;
                last = vec![None; ACCOUNTS];
            }
            1 => world.now_ms += i64::try_from(chance(7_200_000)).unwrap(),
            2 => {
                world.now_ms -= i64::try_from(chance(7_200_000)).unwrap();
                last = vec![None; ACCOUNTS];
            }
            _ => {}
        }
        let entries = world.entries();
        let look = lot.look(&entries, world.now_ms);
        for thread in look.go_on {
            let at = world
                .threads
                .iter()
                .position(|one| one.state.settings.thread == thread);
            let at = at.unwrap();
            let (account, rank) = (world.threads[at].account, world.threads[at].rank);
            let due = entries.iter().filter(|entry| {
                entry.account == account.to_string()
                    && entry
                        .until_ms
                        .is_some_and(|until_ms| until_ms <= world.now_ms)
            });
            assert!(
                due.map(|entry| entry.rank).min() >= Some(rank),
                "seed {seed}: order"
            );
            let before = last[account].replace(world.now_ms);
            assert!(
                before.is_none_or(|before| world.now_ms - before >= STAGGER_MS),
                "seed {seed}: a stampede"
            );
            world.give(at, ThreadInput::Resume { by: None });
        }
        world.now_ms += look.wait_ms;
    }
    judge(seed, &world, (&begun, hosts));
}

/// Everybody did their work once, and no limit was asked about by everybody.
fn judge(seed: u64, world: &World, (begun, hosts): (&[usize], u32)) {
    for (at, thread) in world.threads.iter().enumerate() {
        assert_eq!(thread.done, 1, "seed {seed}: box {at} did its work once");
        assert_eq!(thread.prompts[0], format!("work {at}"));
        assert_eq!(thread.state.shown(), Shown::Idle);
    }
    // Beyond the first rush, a limit that holds is asked about now and then, not by everybody.
    for (account, begun) in world.accounts.iter().zip(begun) {
        let hours = (world.now_ms - START_MS).max(0) / HOUR_MS + 1;
        let tries = u32::try_from(hours * HOUR_MS / RETRY_MS).unwrap();
        let asked = account.asked_ms.len() - begun;
        assert!(
            account.refused <= u32::try_from(*begun).unwrap() + tries + hosts * 2,
            "seed {seed}: refused {} times in {hours} h, {asked} asked",
            account.refused
        );
    }
}
