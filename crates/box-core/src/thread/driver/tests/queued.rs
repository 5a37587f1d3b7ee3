//! Prompts that wait, through hosts that die at every point: each is sent once, in order.

use super::guest::{Does, Guest};
use super::{Disk, Life, agent, asks, opened, reply, says, soon};
use box_api::thread::{Item, TurnOutcome};
use serde_json::{Value, json};
use tokio::time::timeout;

/// Seeds, each a run of its own.
const RUNS: u64 = 50;
const NAME: &str = super::NAME;
const QUEUED: [&str; 3] = ["two", "three", "four"];

/// Whether an agent takes prompts into a turn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Steering {
    Taken,
    Refused,
}

/// Asks in the turn `one`, does everything else at once.
fn obeying_agent(steering: Steering) -> Guest {
    Guest::new(agent(move |line, open| {
        let text = line["params"]["prompt"][0]["text"].as_str();
        match (line["method"].as_str(), text) {
            (Some("session/prompt"), Some("one")) => {
                *open = Some(line.clone());
                vec![says("one? "), asks(0)]
            }
            (Some("session/prompt"), Some(text)) => vec![
                says(&format!("did {text}; ")),
                reply(line, json!({"stopReason":"end_turn"})),
            ],
            (Some("_session/steering"), Some(text)) if steering == Steering::Taken => vec![
                reply(line, json!({"outcome":"injected"})),
                says(&format!("did {text}; ")),
            ],
            (Some("_session/steering"), _) => {
                vec![reply(line, json!({"outcome":"promptRequired"}))]
            }
            (Some("session/cancel"), _) => end(open, "cancelled"),
            (None, _) if line["id"] == 0 => end(open, "end_turn"),
            (_, _) => Vec::new(),
        }
    }))
}

fn end(open: &mut Option<Value>, reason: &str) -> Vec<Does> {
    let prompt = open.take();
    prompt
        .map(|prompt| reply(&prompt, json!({ "stopReason": reason })))
        .into_iter()
        .collect()
}

/// Whether the journal has this text, waiting or sent.
fn is_known(items: &[Item], wanted: &str) -> bool {
    items.iter().any(|item| {
        if let Item::Queue { waiting } = item {
            return waiting.iter().any(|one| one.text == wanted);
        }
        matches!(item, Item::Prompt { text } | Item::Steered { text } if text == wanted)
    })
}

/// What a person does who knows from the journal what has arrived. Ends when all is done.
async fn work(life: &Life) {
    let mut follower = life.follow();
    if !is_known(&life.items().await, "one") {
        drop(life.handle.prompt("one".into()).await);
    }
    // The question keeps the turn open while the others come.
    let decision = super::until(&mut follower, opened).await;
    for text in QUEUED {
        if !is_known(&life.items().await, text) {
            drop(life.handle.prompt(text.into()).await);
        }
    }
    if !is_known(&life.items().await, "now") {
        drop(life.handle.steer("now".into()).await);
    }
    let option = decision.options[0].id.clone();
    drop(
        life.handle
            .answer(decision.decision, option, "me".into())
            .await,
    );
    let done = |items: &[Item]| {
        let mut texts = QUEUED.iter().copied().chain(["now"]);
        let said = super::said(items);
        texts.all(|text| said.contains(&format!("did {text}; ")))
    };
    while !done(&life.items().await) {
        soon(follower.next())
            .await
            .unwrap()
            .expect("the thread goes on");
    }
}

async fn run(seed: u64, steering: Steering) {
    let mut chance = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut chance = move |below: u64| {
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        chance % below
    };
    let (disk, guest) = (Disk::new().await, obeying_agent(steering));
    for _ in 0..=chance(3) {
        let life = Life::begin(&disk, &guest).await;
        guest.traffic.set(1 + chance(40));
        if chance(3) == 0 {
            guest.breaks.set(1 + chance(20));
        }
        tokio::select! {
            biased;
            () = guest.traffic.wait() => {}
            () = work(&life) => break,
        }
        for _ in 0..chance(4) {
            tokio::task::yield_now().await;
        }
        life.kill().await;
    }
    let life = Life::begin(&disk, &guest).await;
    let worked = timeout(super::PATIENCE, work(&life)).await;
    let items = life.items().await;
    assert!(worked.is_ok(), "seed {seed} hangs: {items:#?}");
    let input = guest.input(NAME).await;
    for text in QUEUED.iter().chain(&["one", "now"]) {
        let sent = input.matches(&format!("\"text\":\"{text}\"")).count();
        // What the agent would not take into its turn it is sent as a prompt.
        let wanted = if *text == "now" && steering == Steering::Refused {
            2
        } else {
            1
        };
        assert!(
            sent <= wanted && sent > 0,
            "seed {seed}: `{text}` {sent} times\n{input}"
        );
        let asked = |item: &&Item| matches!(item, Item::Prompt { text: asked } | Item::Steered { text: asked } if asked == text);
        assert_eq!(
            items.iter().filter(asked).count(),
            1,
            "seed {seed}: {text}\n{items:#?}"
        );
    }
    let said = super::said(&items);
    let at = |text: &str| said.find(&format!("did {text}; "));
    assert!(
        at("two") < at("three") && at("three") < at("four"),
        "seed {seed}: {said}"
    );
    let failed = |item: &Item| {
        matches!(
            item,
            Item::TurnEnded {
                outcome: TurnOutcome::Failed,
                ..
            }
        )
    };
    assert!(!items.iter().any(failed), "seed {seed}: {items:#?}");
}

#[tokio::test]
async fn prompts_that_wait_are_sent_once_and_in_order_through_every_cut() {
    for seed in 0..RUNS {
        run(seed, Steering::Refused).await;
    }
}

#[tokio::test]
async fn a_steered_prompt_is_taken_once_through_every_cut() {
    for seed in 0..RUNS {
        run(seed, Steering::Taken).await;
    }
}
