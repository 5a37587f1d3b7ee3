//! Whole threads: a real store, a guest that speaks the real protocol, agents that are functions.

#![expect(
    clippy::needless_pass_by_value,
    reason = "JSON literals read better as they are"
)]

mod cuts;
mod faults;
mod guest;
mod hostile;
mod queued;

use self::guest::{Does, Guest, Script};
use super::World;
use crate::agents::profile::Repeating;
use crate::clock::ManualClock;
use crate::decisions::{self, Hold};
use crate::journal::{Feed, Place, Subscription, page};
use crate::store::{Durability, Store};
use crate::thread::listed::{self, Archived};
use crate::thread::mail::{AnswerFailure, LETTERS_MAX, PromptError, ThreadHandle};
use crate::thread::saved::{self, NewThread, ThreadRecord};
use crate::thread::state::{Asks, Settings, ThreadState};
use box_api::thread::{
    Cursor, Decision, DecisionState, Item, ThreadState as Shown, ThreadUpdate, TurnOutcome,
};
use box_api::{BoxId, DecisionId, Owner, ThreadId};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

const NOW_MS: i64 = 1_795_960_000_000;
/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

fn ids() -> (BoxId, ThreadId) {
    (BoxId::from_random([1; 10]), ThreadId::from_random([2; 10]))
}

/// A data folder that outlives the hosts on it.
struct Disk {
    /// What becomes of permissions nobody answers.
    hold: Hold,
    _folder: tempfile::TempDir,
    database: PathBuf,
}

impl Disk {
    /// With one box and one thread in it.
    async fn new() -> Self {
        let memory = std::path::Path::new("/dev/shm");
        let folder = tempfile::tempdir_in(memory)
            .or_else(|_| tempfile::tempdir())
            .expect("a folder");
        let disk = Self {
            hold: Hold::Forever,
            database: folder.path().join("box.db"),
            _folder: folder,
        };
        let store = Store::open(&disk.database).unwrap();
        let (box_id, thread) = ids();
        let settings = Settings {
            box_id,
            thread,
            cwd: "/workspace".into(),
            mode_ask: "default".into(),
            mode_bypass: None,
            asks: Asks::Person,
            start_ms_max: 60_000,
            login: None,
            meta: serde_json::Map::new(),
            authenticate: None,
            repeating: Repeating::default(),
        };
        let new = NewThread {
            owner: Owner::Uid(1000),
            agent: "scripted".into(),
            state: ThreadState::new(settings),
            at_ms: NOW_MS,
        };
        store
            .write(Durability::Prompt, move |tables| {
                tables.execute(
                    "INSERT INTO boxes (id, owner, name, state, runtime, image, image_digest, \
                     profile, net, limits, allow, id_offset, created_at_ms, changed_at_ms) VALUES \
                     (?, 'uid:1000', 'demo', 'running', 'native', 'i', 'd', 'locked', 'balanced', \
                     '{}', '[]', 2000000000, 0, 0)",
                    [box_id.as_str()],
                )?;
                saved::insert(tables, &new)
            })
            .await
            .unwrap();
        disk
    }
}

/// A host as far as one thread needs it.
struct Life {
    store: Store,
    clock: ManualClock,
    handle: ThreadHandle,
    driver: JoinHandle<()>,
}

impl Drop for Life {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Life {
    async fn begin(disk: &Disk, guest: &Guest) -> Self {
        let store = Store::open(&disk.database).unwrap();
        let (box_id, thread) = ids();
        let highest = store.read(decisions::highest).await.unwrap();
        let clock = ManualClock::at(NOW_MS);
        let world = World {
            store: store.clone(),
            clock: Arc::new(clock.clone()),
            changes: crate::thread::registry::Changes::default(),
            decisions: Arc::new(AtomicI64::new(highest)),
            machine: Arc::new(guest.clone()),
            hold: disk.hold,
        };
        let (mail, letters) = mpsc::channel(LETTERS_MAX);
        let feed = Feed::default();
        let record = ThreadRecord {
            thread,
            box_id,
            owner: Owner::Uid(1000),
            agent: "scripted".into(),
            epoch: 1,
        };
        let handle = ThreadHandle::new(record, 1 << 20, (mail, feed.clone()), store.clone());
        let driver = tokio::spawn(super::run(world, thread, feed, letters));
        Self {
            store,
            clock,
            handle,
            driver,
        }
    }

    /// `kill -9`. What was on its way to the disk gets there before anybody looks.
    async fn kill(self) {
        self.driver.abort();
        self.store
            .write(Durability::Prompt, |_| Ok(()))
            .await
            .unwrap();
    }

    fn follow(&self) -> Subscription {
        self.handle.subscribe(Cursor::default())
    }

    async fn items(&self) -> Vec<Item> {
        let place = Place {
            thread: ids().1,
            epoch: 1,
        };
        let mut items = Vec::new();
        loop {
            let after = Cursor {
                epoch: 1,
                seq: items.len() as u64,
                bytes: u64::MAX,
            };
            let rows = self
                .store
                .read(move |tables| page(tables, place, after))
                .await
                .unwrap();
            if rows.is_empty() {
                return items;
            }
            items.extend(rows.into_iter().map(item_of));
        }
    }

    async fn decision(&self, id: DecisionId) -> Option<decisions::Record> {
        self.store
            .read(move |tables| decisions::get(tables, id))
            .await
            .unwrap()
    }

    async fn shown(&self) -> Shown {
        let threads = self
            .store
            .read(|tables| listed::of_box(tables, &ids().0, Archived::Too))
            .await
            .unwrap();
        threads[0].state
    }
}

async fn soon<T>(what: impl Future<Output = T>) -> T {
    timeout(PATIENCE, what).await.expect("in time")
}

/// The first update that `wanted` makes something of.
async fn until<T>(
    follower: &mut Subscription,
    mut wanted: impl FnMut(&ThreadUpdate) -> Option<T>,
) -> T {
    soon(async {
        loop {
            let update = follower.next().await.unwrap().expect("the thread goes on");
            if let Some(found) = wanted(&update) {
                return found;
            }
        }
    })
    .await
}

fn opened(update: &ThreadUpdate) -> Option<Decision> {
    if let ThreadUpdate::Row(row) = update
        && let Item::DecisionOpened(decision) = &row.item
    {
        return Some(decision.clone());
    }
    None
}

fn ended(update: &ThreadUpdate) -> Option<(TurnOutcome, Option<String>)> {
    if let ThreadUpdate::Row(row) = update
        && let Item::TurnEnded { outcome, note } = &row.item
    {
        return Some((*outcome, note.clone()));
    }
    None
}

fn item_of(update: ThreadUpdate) -> Item {
    let ThreadUpdate::Row(row) = update else {
        panic!("{update:?}")
    };
    row.item
}

/// Everything the agent said, in one.
fn said(items: &[Item]) -> String {
    let text = |item: &Item| {
        let Item::Text { text } = item else {
            return None;
        };
        Some(text.clone())
    };
    items.iter().filter_map(text).collect()
}

fn reply(line: &Value, result: Value) -> Does {
    Does::Print(json!({"jsonrpc":"2.0","id":line["id"],"result":result}))
}

fn update(update: Value) -> Does {
    Does::Print(json!({"jsonrpc":"2.0","method":"session/update",
        "params":{"sessionId":"s1","update":update}}))
}

fn says(text: &str) -> Does {
    update(json!({"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":text}}))
}

fn asks(id: i64) -> Does {
    Does::Print(
        json!({"jsonrpc":"2.0","id":id,"method":"session/request_permission","params":{
        "sessionId":"s1","toolCall":{"toolCallId":"t1","title":"touch a","kind":"execute"},
        "options":[{"optionId":"ok","name":"Allow","kind":"allow_once"},
                   {"optionId":"no","name":"Reject","kind":"reject_once"}]}}),
    )
}

/// The set-up every agent goes through; `None` when the line is none of it.
fn set_up(line: &Value) -> Option<Vec<Does>> {
    let modes = |current: &str| {
        json!([{"id":"mode","category":"mode","type":"select","currentValue":current,
            "options":[{"value":"auto","name":"A"},{"value":"default","name":"D"}]}])
    };
    let result = match line["method"].as_str()? {
        "initialize" => json!({"protocolVersion":1,"agentCapabilities":{"loadSession":true},
            "_meta":{"steering":{"supported":true}}}),
        "session/new" => json!({"sessionId":"s1","configOptions":modes("auto")}),
        "session/load" => json!({"configOptions":modes("auto")}),
        "session/set_config_option" => json!({"configOptions":modes("default")}),
        _ => return None,
    };
    Some(vec![reply(line, result)])
}

/// An agent that works on a prompt with `turn`.
fn agent(
    turn: impl Fn(&Value, &mut Option<Value>) -> Vec<Does> + Send + Sync + Clone + 'static,
) -> impl Fn() -> Script + Send + Sync + 'static {
    move || {
        let turn = turn.clone();
        let mut open = None;
        Box::new(move |line| {
            let Some(line) = line else { return Vec::new() };
            set_up(line).unwrap_or_else(|| turn(line, &mut open))
        })
    }
}

/// Asks once, does as it is told, ends the turn.
fn asking_agent() -> Guest {
    Guest::new(agent(|line, open| match line["method"].as_str() {
        Some("session/prompt") => {
            *open = Some(line.clone());
            vec![says("let me "), says("see"), asks(0)]
        }
        Some("session/cancel") => match open.take() {
            Some(prompt) => vec![reply(&prompt, json!({"stopReason":"cancelled"}))],
            None => Vec::new(),
        },
        None if line["id"] == 0 => {
            let Some(prompt) = open.take() else {
                return Vec::new();
            };
            let chosen = line["result"]["outcome"]["optionId"]
                .as_str()
                .unwrap_or("none");
            vec![
                says(&format!("you said {chosen}")),
                reply(&prompt, json!({"stopReason":"end_turn"})),
            ]
        }
        _ => Vec::new(),
    }))
}

const NAME: &str = "scripted-aibaeaqcaibaeaqc-1";

#[tokio::test]
async fn a_turn_is_told_as_it_happens_and_the_agent_stays() {
    let (disk, guest) = (Disk::new().await, asking_agent());
    let life = Life::begin(&disk, &guest).await;
    let mut follower = life.follow();
    soon(life.handle.prompt("go".into())).await.unwrap();
    let decision = until(&mut follower, opened).await;
    assert_eq!(decision.decision, DecisionId(1));
    assert_eq!(life.shown().await, Shown::NeedsYou);
    let answer = life.handle.answer(DecisionId(1), "ok".into(), "me".into());
    assert_eq!(soon(answer).await.unwrap(), Ok(()));
    assert_eq!(until(&mut follower, ended).await, (TurnOutcome::Done, None));
    assert_eq!(life.shown().await, Shown::Idle);
    assert_eq!(guest.processes().await, [NAME]);
    let texts: Vec<Item> = life.items().await;
    assert!(
        texts.contains(&Item::Text {
            text: "let me see".into()
        }),
        "{texts:?}"
    );
    assert!(
        texts.contains(&Item::Text {
            text: "you said ok".into()
        }),
        "{texts:?}"
    );

    // The agent's own lines are kept whole.
    let place = Place {
        thread: ids().1,
        epoch: 1,
    };
    let lines = life
        .store
        .read(move |tables| crate::journal::lines(tables, place, 3))
        .await
        .unwrap();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[1].contains(r#""text":"see""#), "{lines:?}");
}

#[tokio::test]
async fn the_second_answer_learns_that_it_is_late() {
    let (disk, guest) = (Disk::new().await, asking_agent());
    let life = Life::begin(&disk, &guest).await;
    let mut follower = life.follow();
    soon(life.handle.prompt("go".into())).await.unwrap();
    until(&mut follower, opened).await;
    let answer = |option: &str, by: &str| {
        let handle = life.handle.clone();
        let (option, by) = (option.to_owned(), by.to_owned());
        async move { handle.answer(DecisionId(1), option, by).await.unwrap() }
    };
    let (first, second) =
        soon(async { tokio::join!(answer("no", "anna"), answer("ok", "ben")) }).await;
    assert_eq!((first, second), (Ok(()), Err(AnswerFailure::Over)));
    let record = life.decision(DecisionId(1)).await.unwrap();
    assert_eq!(
        record.decision.state,
        DecisionState::Answered {
            option: "no".into()
        }
    );
    assert_eq!(record.who.as_deref(), Some("anna"));
    until(&mut follower, ended).await;
    let answers = guest
        .input(NAME)
        .await
        .matches(r#""outcome":"selected""#)
        .count();
    assert_eq!(answers, 1);
}

#[tokio::test]
async fn cancel_ends_the_turn_and_the_decision() {
    let (disk, guest) = (Disk::new().await, asking_agent());
    let life = Life::begin(&disk, &guest).await;
    let mut follower = life.follow();
    soon(life.handle.prompt("go".into())).await.unwrap();
    until(&mut follower, opened).await;
    soon(life.handle.cancel("me".into())).await.unwrap();
    assert_eq!(
        until(&mut follower, ended).await,
        (TurnOutcome::Cancelled, None)
    );
    let record = life.decision(DecisionId(1)).await.unwrap();
    assert_eq!(record.decision.state, DecisionState::Cancelled);
    assert_eq!(record.who.as_deref(), Some("me"));
}

#[tokio::test]
async fn an_agent_that_dies_at_the_start_says_why() {
    let guest = Guest::new(|| {
        Box::new(|_| vec![Does::Complain("node: cannot open library\n"), Does::Exit(3)])
    });
    let disk = Disk::new().await;
    let life = Life::begin(&disk, &guest).await;
    let mut follower = life.follow();
    soon(life.handle.prompt("go".into())).await.unwrap();
    let note = "the agent ended with code 3 before it was ready".to_owned();
    assert_eq!(
        until(&mut follower, ended).await,
        (TurnOutcome::Failed, Some(note))
    );
    let words = "the agent's last words:\nnode: cannot open library".to_owned();
    assert!(life.items().await.contains(&Item::Notice { text: words }));
    assert_eq!(guest.log_text().await, "node: cannot open library\n");
    assert_eq!(life.shown().await, Shown::Failed);
    soon(async {
        while guest.forgotten().await != [NAME] {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn an_agent_that_prints_garbage_says_what_it_printed() {
    let guest = Guest::new(|| {
        Box::new(|line| match line {
            None => vec![Does::PrintRaw(b"Usage: agent [options]\n".repeat(30))],
            Some(_) => Vec::new(),
        })
    });
    let disk = Disk::new().await;
    let life = Life::begin(&disk, &guest).await;
    let mut follower = life.follow();
    soon(life.handle.prompt("go".into())).await.unwrap();
    let note = "the agent does not speak the Agent Client Protocol; it printed: Usage: agent \
                [options]"
        .to_owned();
    assert_eq!(
        until(&mut follower, ended).await,
        (TurnOutcome::Failed, Some(note))
    );
}

#[tokio::test]
async fn an_agent_that_prints_a_line_of_100_megabytes_is_ended() {
    let guest = Guest::new(agent(|line, _| match line["method"].as_str() {
        Some("session/prompt") => vec![Does::PrintRaw(vec![b'x'; 100_000_000])],
        _ => Vec::new(),
    }));
    let disk = Disk::new().await;
    let life = Life::begin(&disk, &guest).await;
    let mut follower = life.follow();
    soon(life.handle.prompt("go".into())).await.unwrap();
    let note = "the agent sent a line longer than 32 MiB".to_owned();
    assert_eq!(
        until(&mut follower, ended).await,
        (TurnOutcome::Failed, Some(note))
    );
    // What was put aside of the line goes with the process.
    let left = || async {
        let count =
            "SELECT (SELECT count(*) FROM partial_lines) + (SELECT count(*) FROM processes)";
        life.store
            .read(move |tables| tables.query_row(count, [], |row| row.get::<_, i64>(0)))
            .await
    };
    soon(async {
        while left().await.unwrap() != 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_long_line_survives_the_host() {
    let text = "x".repeat(5 << 20);
    let long = text.clone();
    let guest = Guest::new(agent(move |line, open| match line["method"].as_str() {
        Some("session/prompt") => {
            *open = Some(line.clone());
            let line = json!({"method":"session/update","params":{"sessionId":"s1","update":{
                "sessionUpdate":"agent_message_chunk","content":{"type":"text","text":long}}}});
            let line = line.to_string();
            vec![Does::PrintRaw(line.as_bytes()[..4 << 20].to_vec())]
        }
        _ => Vec::new(),
    }));
    let disk = Disk::new().await;
    let life = Life::begin(&disk, &guest).await;
    soon(life.handle.prompt("go".into())).await.unwrap();
    // Three of the four megabytes are in the tables, and let go by the guest, before it is whole.
    let aside = || async {
        let sum = "SELECT coalesce(sum(length(bytes)), 0) FROM partial_lines";
        life.store
            .read(move |tables| tables.query_row(sum, [], |row| row.get::<_, i64>(0)))
            .await
    };
    soon(async {
        while aside().await.unwrap() < 3 << 20 || guest.unacked(NAME).await > 2 << 20 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    life.kill().await;

    let life = Life::begin(&disk, &guest).await;
    let mut follower = life.follow();
    let whole = json!({"method":"session/update","params":{"sessionId":"s1","update":{
        "sessionUpdate":"agent_message_chunk","content":{"type":"text","text":text}}}});
    let mut rest = whole.to_string().into_bytes().split_off(4 << 20);
    rest.push(b'\n');
    let end = json!({"id":4,"result":{"stopReason":"end_turn"}});
    guest
        .make_do(NAME, vec![Does::PrintRaw(rest), Does::Print(end)])
        .await;
    assert_eq!(until(&mut follower, ended).await, (TurnOutcome::Done, None));
    let said = said(&life.items().await);
    assert!(said == text, "{} bytes of {}", said.len(), text.len());
}

#[tokio::test]
async fn a_stopped_box_loses_the_decision_and_the_next_prompt_says_so() {
    let (disk, guest) = (Disk::new().await, asking_agent());
    let life = Life::begin(&disk, &guest).await;
    let mut follower = life.follow();
    soon(life.handle.prompt("go".into())).await.unwrap();
    until(&mut follower, opened).await;
    guest.stop().await;
    let stopped = Some("the box stopped".to_owned());
    assert_eq!(
        until(&mut follower, ended).await,
        (TurnOutcome::Failed, stopped)
    );
    let record = life.decision(DecisionId(1)).await.unwrap();
    let reason = "the box stopped".to_owned();
    assert_eq!(record.decision.state, DecisionState::Lost { reason });
    let answer = life.handle.answer(DecisionId(1), "ok".into(), "me".into());
    assert_eq!(soon(answer).await.unwrap(), Err(AnswerFailure::Over));

    soon(life.handle.prompt("again".into())).await.unwrap();
    let (outcome, note) = until(&mut follower, ended).await;
    assert_eq!(outcome, TurnOutcome::Failed);
    assert!(
        note.unwrap()
            .starts_with("the agent could not be started: box ")
    );
}

#[tokio::test]
async fn a_host_that_comes_back_to_a_stopped_box_closes_what_was_open() {
    let (disk, guest) = (Disk::new().await, asking_agent());
    let life = Life::begin(&disk, &guest).await;
    let mut follower = life.follow();
    soon(life.handle.prompt("go".into())).await.unwrap();
    until(&mut follower, opened).await;
    life.kill().await;
    guest.stop().await;

    let life = Life::begin(&disk, &guest).await;
    let unfinished = life.store.read(saved::unfinished).await.unwrap();
    assert_eq!(unfinished, [ids().1]);
    let mut follower = life.follow();
    let stopped = Some("the box stopped".to_owned());
    assert_eq!(
        until(&mut follower, ended).await,
        (TurnOutcome::Failed, stopped)
    );
    let record = life.decision(DecisionId(1)).await.unwrap();
    assert!(matches!(record.decision.state, DecisionState::Lost { .. }));
    assert_eq!(life.shown().await, Shown::Failed);
}

#[tokio::test]
async fn prompts_beyond_the_queue_are_refused_and_empty_or_huge_ones_too() {
    let (disk, guest) = (Disk::new().await, asking_agent());
    let life = Life::begin(&disk, &guest).await;
    for _ in 0..=crate::thread::state::QUEUE_PROMPTS_MAX {
        soon(life.handle.prompt("go".into())).await.unwrap();
    }
    let refused = soon(life.handle.prompt("go".into())).await;
    assert!(
        matches!(refused, Err(PromptError::QueueFull(_))),
        "{refused:?}"
    );
    let empty = soon(life.handle.prompt(" \n".into())).await;
    assert!(matches!(empty, Err(PromptError::Empty)), "{empty:?}");
    let huge = soon(life.handle.prompt("x".repeat(2 << 20)))
        .await
        .unwrap_err();
    assert_eq!(
        huge.to_string(),
        "a prompt of 2097152 bytes is longer than the agent `scripted` takes"
    );
}

#[tokio::test]
async fn a_removed_box_ends_its_thread_and_whoever_follows_it() {
    let (disk, guest) = (Disk::new().await, asking_agent());
    let life = Life::begin(&disk, &guest).await;
    let mut follower = life.follow();
    soon(life.handle.prompt("go".into())).await.unwrap();
    until(&mut follower, opened).await;
    life.store
        .write(Durability::Prompt, |tables| {
            tables.execute("DELETE FROM boxes", [])
        })
        .await
        .unwrap();
    guest.stop().await;
    soon(async { while follower.next().await.unwrap().is_some() {} }).await;
}

#[tokio::test]
async fn another_host_takes_over_and_the_first_writes_no_more() {
    let (disk, guest) = (Disk::new().await, asking_agent());
    let first = Life::begin(&disk, &guest).await;
    let mut follower = first.follow();
    soon(first.handle.prompt("go".into())).await.unwrap();
    until(&mut follower, opened).await;
    let second = Life::begin(&disk, &guest).await;
    let mut follower = second.follow();
    until(&mut follower, opened).await;
    let answer = second
        .handle
        .answer(DecisionId(1), "ok".into(), "me".into());
    assert_eq!(soon(answer).await.unwrap(), Ok(()));
    assert_eq!(until(&mut follower, ended).await, (TurnOutcome::Done, None));
    assert!(soon(first.handle.prompt("more".into())).await.is_err());
    assert_eq!(
        second
            .items()
            .await
            .iter()
            .filter(|i| matches!(i, Item::Prompt { .. }))
            .count(),
        1
    );
}
