//! Hosts that die and connections that break, at every point: the journal is the same as without,
//! the agent has read the same bytes, no prompt is sent twice, no answer given twice.

use super::guest::{Does, Guest};
use super::{Disk, Life, agent, asks, ended, opened, reply, says, soon, update};
use crate::journal::Subscription;
use box_api::DecisionId;
use box_api::thread::{Cursor, Item, ThreadUpdate, TurnOutcome};
use serde_json::json;
use tokio::time::timeout;

/// Seeds, each a run of its own.
const RUNS: u64 = 500;
const NAME: &str = super::NAME;

/// Thinks, writes, plans, asks for permission, asks a question, goes on talking after the turn.
fn working_agent() -> Guest {
    let chunk = |kind: &str, text: &str| {
        update(json!({"sessionUpdate":kind,"content":{"type":"text","text":text}}))
    };
    let form = Does::Print(json!({"id":"form","method":"elicitation/create","params":{
        "sessionId":"s1","mode":"form","message":"Which?","requestedSchema":{"type":"object",
        "properties":{"q":{"type":"string","enum":["red","blue"]}}}}}));
    Guest::new(agent(move |line, open| match line["method"].as_str() {
        Some("session/prompt") => {
            *open = Some(line.clone());
            let mut does: Vec<Does> = (0..6)
                .map(|n| chunk("agent_thought_chunk", &format!("thought {n} ")))
                .collect();
            does.extend((0..12).map(|n| says(&format!("wörd {n} "))));
            does.push(Does::Complain("debug: working\n"));
            does.push(update(json!({"sessionUpdate":"plan","entries":[
                {"content":"write","status":"pending","priority":"high"}]})));
            does.push(update(
                json!({"sessionUpdate":"tool_call","toolCallId":"t1","title":"touch a",
                "kind":"execute","status":"pending"}),
            ));
            does.push(asks(0));
            does
        }
        None if line["id"] == 0 => vec![
            update(
                json!({"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed",
                "content":[{"type":"diff","path":"/workspace/a","oldText":null,"newText":"x"}]}),
            ),
            says("done; "),
            form.clone(),
        ],
        None if line["id"] == "form" => {
            let Some(prompt) = open.take() else {
                return Vec::new();
            };
            vec![
                says("one more word"),
                update(json!({"sessionUpdate":"usage_update","used":1,"size":9})),
                reply(&prompt, json!({"stopReason":"end_turn"})),
                says("and a late one"),
            ]
        }
        _ => Vec::new(),
    }))
}

/// What a run left behind.
#[derive(Debug, PartialEq)]
struct Trace {
    items: Vec<Item>,
    input: String,
}

/// What the person in front does: asks once, answers what is open, and looks again after a cut.
struct Person {
    seen: Cursor,
    /// The journal as it was shown, put together from pieces.
    shown: Vec<Item>,
}

impl Person {
    /// Goes on until the turn and what comes after it is seen.
    async fn work(&mut self, life: &Life) {
        if !life
            .items()
            .await
            .iter()
            .any(|item| matches!(item, Item::Prompt { .. }))
        {
            // A prompt whose answer got lost with the host may be there all the same.
            drop(life.handle.prompt("go".into()).await);
        }
        for id in [DecisionId(1), DecisionId(2)] {
            if let Some(record) = life.decision(id).await {
                self.answer(
                    life,
                    record.decision.decision,
                    record.decision.options[0].id.clone(),
                )
                .await;
            }
        }
        let mut follower = life.handle.subscribe(self.seen);
        while !self.is_over() {
            self.see(life, &mut follower).await;
        }
    }

    async fn see(&mut self, life: &Life, follower: &mut Subscription) {
        let update = follower.next().await.unwrap().expect("the thread goes on");
        match &update {
            ThreadUpdate::Row(row) => self.shown.push(row.item.clone()),
            ThreadUpdate::Grew { text, .. } => match self.shown.last_mut() {
                Some(Item::Text { text: whole } | Item::Thought { text: whole }) => {
                    whole.push_str(text);
                }
                other => panic!("{other:?} grows"),
            },
            ThreadUpdate::CaughtUp { .. } => {}
        }
        self.seen = follower.cursor();
        if let Some(decision) = opened(&update) {
            self.answer(life, decision.decision, decision.options[0].id.clone())
                .await;
        }
    }

    async fn answer(&self, life: &Life, decision: DecisionId, option: String) {
        drop(life.handle.answer(decision, option, "me".into()).await);
    }

    fn is_over(&self) -> bool {
        matches!(self.shown.last(), Some(Item::Text { text }) if text == "and a late one")
    }
}

async fn run(seed: u64) -> Trace {
    let mut chance = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut chance = move |below: u64| {
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        chance % below
    };
    let (disk, guest) = (Disk::new().await, working_agent());
    let mut person = Person {
        seen: Cursor::default(),
        shown: Vec::new(),
    };
    // Seed 0 is the run without a cut.
    let cuts = if seed == 0 { 0 } else { 1 + chance(3) };
    for _ in 0..cuts {
        let life = Life::begin(&disk, &guest).await;
        guest.traffic.set(1 + chance(45));
        if chance(3) == 0 {
            guest.breaks.set(1 + chance(20));
        }
        tokio::select! {
            biased;
            () = guest.traffic.wait() => {}
            () = person.work(&life) => break,
        }
        for _ in 0..chance(4) {
            tokio::task::yield_now().await;
        }
        life.kill().await;
    }
    let life = Life::begin(&disk, &guest).await;
    if timeout(super::PATIENCE, person.work(&life)).await.is_err() {
        let (items, input) = (life.items().await, guest.input(NAME).await);
        panic!(
            "seed {seed} hangs: {items:#?}\nshown {:#?}\ninput: {input}",
            person.shown
        );
    }
    let items = life.items().await;
    assert_eq!(
        items, person.shown,
        "seed {seed}: what was shown is what is kept"
    );
    Trace {
        items,
        input: guest.input(NAME).await,
    }
}

/// Five hundred seeds in four shares, so that two cores halve the time.
async fn cut_runs_end_like_an_uncut_one(share: u64) {
    let whole = run(0).await;
    let outcome = |item: &Item| {
        let Item::TurnEnded { outcome, .. } = item else {
            return None;
        };
        Some(*outcome)
    };
    assert_eq!(
        whole.items.iter().filter_map(outcome).collect::<Vec<_>>(),
        [TurnOutcome::Done]
    );
    assert_eq!(whole.input.matches("session/prompt").count(), 1);
    for seed in (1..=RUNS).filter(|seed| seed % 4 == share) {
        let cut = run(seed).await;
        assert!(
            cut == whole,
            "seed {seed}:\n{cut:#?}\nwithout a cut:\n{whole:#?}"
        );
    }
}

#[tokio::test]
async fn cut_runs_end_like_an_uncut_one_first_quarter() {
    cut_runs_end_like_an_uncut_one(0).await;
}

#[tokio::test]
async fn cut_runs_end_like_an_uncut_one_second_quarter() {
    cut_runs_end_like_an_uncut_one(1).await;
}

#[tokio::test]
async fn cut_runs_end_like_an_uncut_one_third_quarter() {
    cut_runs_end_like_an_uncut_one(2).await;
}

#[tokio::test]
async fn cut_runs_end_like_an_uncut_one_last_quarter() {
    cut_runs_end_like_an_uncut_one(3).await;
}

/// A host that died between its last commit and ending an agent ends it when it is back.
#[tokio::test]
async fn an_agent_given_up_is_ended_by_whoever_comes_next() {
    for events in 1..40 {
        let guest = Guest::new(|| {
            Box::new(|line| match line {
                Some(_) => vec![Does::PrintRaw(b"no\n".repeat(30))],
                None => Vec::new(),
            })
        });
        let disk = Disk::new().await;
        guest.traffic.set(events);
        let life = Life::begin(&disk, &guest).await;
        let work = async {
            life.handle.prompt("go".into()).await.unwrap();
            guest_is_empty(&guest).await;
        };
        tokio::select! {
            biased;
            () = guest.traffic.wait() => {}
            () = work => {}
        }
        life.kill().await;

        let life = Life::begin(&disk, &guest).await;
        if life.items().await.is_empty() {
            soon(life.handle.prompt("go".into())).await.unwrap();
        }
        let mut follower = life.follow();
        let (outcome, note) = super::until(&mut follower, ended).await;
        assert_eq!(outcome, TurnOutcome::Failed);
        assert!(note.unwrap().ends_with("it printed: no"), "after {events}");
        soon(guest_is_empty(&guest)).await;
        assert_eq!(guest.forgotten().await, [NAME]);
    }
}

async fn guest_is_empty(guest: &Guest) {
    while guest.forgotten().await.is_empty() || !guest.processes().await.is_empty() {
        tokio::task::yield_now().await;
    }
}
