//! Agents that mean harm, or are broken: whatever they print, the host stays whole, decisions are
//! answered once, and the next prompt is served.

use super::guest::{Does, Guest, Script};
use super::{Disk, Life, NAME, agent, ended, opened, reply, says, set_up, soon, until};
use crate::decisions::Record;
use box_api::DecisionId;
use box_api::thread::{DecisionState, Item, TurnOutcome};
use serde_json::{Value, json};

fn raw(text: &str) -> Does {
    Does::PrintRaw(text.as_bytes().to_vec())
}

fn asks_under(id: Value, title: &str) -> Does {
    Does::Print(
        json!({"id":id,"method":"session/request_permission","params":{"sessionId":"s1",
        "toolCall":{"toolCallId":title,"title":title,"kind":"execute"},
        "options":[{"optionId":"y","name":"Yes","kind":"allow_once"},
                   {"optionId":"n","name":"No","kind":"reject_once"}]}}),
    )
}

/// Does `first` and ends the turn.
fn prints(first: impl Fn() -> Vec<Does> + Send + Sync + Clone + 'static) -> Guest {
    Guest::new(agent(move |line, _| match line["method"].as_str() {
        Some("session/prompt") => {
            let mut does = first();
            does.push(says("I am done"));
            does.push(reply(line, json!({"stopReason":"end_turn"})));
            does
        }
        _ => Vec::new(),
    }))
}

/// One turn with nobody to answer.
async fn turn(guest: &Guest) -> (Vec<Item>, (TurnOutcome, Option<String>), Life) {
    let disk = Disk::new().await;
    let life = Life::begin(&disk, guest).await;
    let mut follower = life.follow();
    soon(life.handle.prompt("go".into())).await.unwrap();
    let outcome = until(&mut follower, ended).await;
    (life.items().await, outcome, life)
}

fn text(items: &[Item]) -> String {
    super::said(items)
}

#[tokio::test]
async fn garbage_between_messages_is_told_and_harms_nothing() {
    let guest = prints(|| {
        let mut does = vec![
            raw("\n\n   \n"),
            raw("warning: something\n"),
            Does::PrintRaw(vec![0xFF, 0xFE, 0x00, b'{', b'\n']),
            raw("{\"jsonrpc\":\"2.0\"\n"),
            raw("[1,2,3]\n"),
            raw("null\n"),
            raw("{\"id\":{},\"method\":7}\n"),
        ];
        does.push(Does::Complain("\u{1b}[31mred\u{1b}[0m\n"));
        does
    });
    let (items, outcome, _life) = turn(&guest).await;
    assert_eq!(outcome.0, TurnOutcome::Done);
    assert_eq!(text(&items), "I am done");
    let notices = items
        .iter()
        .filter(|item| matches!(item, Item::Notice { .. }))
        .count();
    assert!((1..=4).contains(&notices), "told, and not each: {items:#?}");
}

#[tokio::test]
async fn kinds_nobody_knows_are_kept_and_requests_nobody_serves_are_refused() {
    let guest = prints(|| {
        vec![
            super::update(json!({"sessionUpdate":"from_the_future","x":{"y":[1]}})),
            super::update(
                json!({"sessionUpdate":"agent_message_chunk","content":{"type":"smell"}}),
            ),
            super::update(json!(7)),
            Does::Print(json!({"method":"_vendor/thing","params":{"a":1}})),
            Does::Print(json!({"method":"session/update","params":[]})),
            Does::Print(
                json!({"id":"x","method":"fs/write_text_file","params":{"path":"/etc/passwd"}}),
            ),
            Does::Print(json!({"id":null,"method":"terminal/create","params":null})),
            Does::Print(json!({"id":[1],"method":"craft/drainMidTurnQueue"})),
            Does::Print(json!({"id":5000,"method":"session/request_permission","params":{}})),
            Does::Print(
                json!({"id":5001,"method":"elicitation/create","params":{"mode":"url","url":"http://x"}}),
            ),
        ]
    });
    let (items, outcome, life) = turn(&guest).await;
    assert_eq!(outcome.0, TurnOutcome::Done);
    assert!(items.iter().any(|item| matches!(item, Item::Unknown { raw }
        if raw["sessionUpdate"] == "from_the_future")));
    let heard = soon(heard(&guest, 5001)).await;
    assert!(
        heard.contains("-32601") && heard.contains("-32602"),
        "{heard}"
    );
    assert!(heard.contains(r#"{"action":"decline"}"#), "{heard}");
    assert_eq!(life.decision(DecisionId(1)).await, None, "nobody was asked");
}

/// What the agent has read, once an answer to its request `id` is in it.
async fn heard(guest: &Guest, id: i64) -> String {
    loop {
        let input = guest.input(NAME).await;
        let answered =
            |line: &str| serde_json::from_str::<Value>(line).is_ok_and(|line| line["id"] == id);
        if input.lines().any(answered) {
            return input;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn responses_nobody_waits_for_end_nothing() {
    let guest = prints(|| {
        vec![
            Does::Print(json!({"id":9999,"result":{"stopReason":"end_turn"}})),
            Does::Print(json!({"id":1,"result":{"protocolVersion":99}})),
            Does::Print(json!({"id":"4","error":{"code":-32603,"message":"no"}})),
            Does::Print(json!({"id":null,"error":{"code":-32700,"message":"parse"}})),
            says("still here; "),
        ]
    });
    let (items, outcome, _life) = turn(&guest).await;
    assert_eq!(outcome, (TurnOutcome::Done, None));
    assert_eq!(text(&items), "still here; I am done");
}

#[tokio::test]
async fn a_number_used_again_closes_the_older_request_and_is_answered_once() {
    let guest = Guest::new(agent(|line, open| {
        if line["method"] == "session/prompt" {
            *open = Some(line.clone());
            return vec![
                asks_under(json!(0), "the first"),
                asks_under(json!(0), "the second"),
            ];
        }
        match open.take_if(|_| line["id"] == 0 && line["method"].is_null()) {
            Some(prompt) => vec![
                says(
                    line["result"]["outcome"]["optionId"]
                        .as_str()
                        .unwrap_or("?"),
                ),
                reply(&prompt, json!({"stopReason":"end_turn"})),
            ],
            None => Vec::new(),
        }
    }));
    let disk = Disk::new().await;
    let life = Life::begin(&disk, &guest).await;
    let mut follower = life.follow();
    soon(life.handle.prompt("go".into())).await.unwrap();
    let first = until(&mut follower, opened).await;
    let second = until(&mut follower, opened).await;
    assert_eq!(
        (first.title.as_str(), second.title.as_str()),
        ("the first", "the second")
    );
    let late = life.handle.answer(first.decision, "y".into(), "me".into());
    assert!(
        soon(late).await.unwrap().is_err(),
        "its number means another thing now"
    );
    let answer = life.handle.answer(second.decision, "n".into(), "me".into());
    assert_eq!(soon(answer).await.unwrap(), Ok(()));
    assert_eq!(until(&mut follower, ended).await.0, TurnOutcome::Done);
    assert_eq!(text(&life.items().await), "n");
    let state = |record: Option<Record>| record.unwrap().decision.state;
    assert_eq!(
        state(life.decision(first.decision).await),
        DecisionState::Cancelled
    );
    assert_eq!(guest.input(NAME).await.matches("optionId").count(), 1);
}

#[tokio::test]
async fn a_flood_of_requests_is_bounded_and_the_turn_goes_on() {
    let guest = prints(|| {
        (0..200)
            .map(|n| asks_under(json!(1000 + n), &format!("ask {n}")))
            .collect()
    });
    let disk = Disk::new().await;
    let life = Life::begin(&disk, &guest).await;
    let mut follower = life.follow();
    soon(life.handle.prompt("go".into())).await.unwrap();
    until(&mut follower, ended).await;
    let mut asked = 0_i64;
    while life.decision(DecisionId(asked + 1)).await.is_some() {
        asked += 1;
    }
    assert!((1..=32).contains(&asked), "{asked} were asked");
    assert!(
        soon(heard(&guest, 1199))
            .await
            .contains("requests are open")
    );
}

#[tokio::test]
async fn a_turn_without_an_end_is_ended_by_its_owner() {
    let guest = Guest::new(agent(|line, _| match line["method"].as_str() {
        Some("session/prompt") => (0..500).map(|n| says(&format!("{n} "))).collect(),
        // Deaf to `session/cancel`, and goes on talking.
        Some("session/cancel") => vec![says("no; "), asks_under(json!(3), "please")],
        _ => Vec::new(),
    }));
    let disk = Disk::new().await;
    let life = Life::begin(&disk, &guest).await;
    let mut follower = life.follow();
    soon(life.handle.prompt("go".into())).await.unwrap();
    let says_much = |update: &box_api::thread::ThreadUpdate| {
        matches!(update, box_api::thread::ThreadUpdate::Row(row)
            if matches!(row.item, Item::Text { .. }))
        .then_some(())
    };
    until(&mut follower, says_much).await;
    soon(life.handle.cancel("me".into())).await.unwrap();
    // What it asks after it was cancelled nobody is asked.
    soon(heard(&guest, 3)).await;
    assert_eq!(life.decision(DecisionId(1)).await, None);
    life.clock.advance(60_000);
    // A letter makes the driver look at the clock again.
    soon(life.handle.park(None, "me".into())).await.unwrap();
    let (outcome, note) = until(&mut follower, ended).await;
    assert_eq!(outcome, TurnOutcome::Cancelled);
    assert!(note.unwrap().contains("did not stop when asked"));
}

/// Dies where `step` says: at the start, at each step of the set-up, in the turn.
fn dying(step: &'static str) -> Guest {
    Guest::new(move || -> Script {
        Box::new(move |line| {
            let Some(line) = line else {
                let dies = (step == "start").then_some(Does::Exit(1));
                return dies.into_iter().collect();
            };
            let method = line["method"].as_str().unwrap_or("answer");
            if method == step {
                return vec![raw("{\"half\":"), Does::Exit(9)];
            }
            match (set_up(line), method) {
                (Some(does), _) => does,
                (None, "session/prompt") => vec![asks_under(json!(0), "act")],
                (None, _) => Vec::new(),
            }
        })
    })
}

#[tokio::test]
async fn an_agent_that_dies_at_any_step_ends_its_turn_and_its_decision() {
    for step in [
        "start",
        "initialize",
        "session/new",
        "session/set_config_option",
        "session/prompt",
        "answer",
    ] {
        let guest = dying(step);
        let disk = Disk::new().await;
        let life = Life::begin(&disk, &guest).await;
        let mut follower = life.follow();
        soon(life.handle.prompt("go".into())).await.unwrap();
        if step == "answer" {
            let asked = until(&mut follower, opened).await.decision;
            let answer = life.handle.answer(asked, "y".into(), "me".into());
            assert_eq!(soon(answer).await.unwrap(), Ok(()));
        }
        let (outcome, note) = until(&mut follower, ended).await;
        assert_eq!(outcome, TurnOutcome::Failed, "{step}");
        assert!(note.is_some(), "{step}");
        let open = life.decision(DecisionId(1)).await;
        assert!(
            open.is_none_or(|one| one.decision.state != DecisionState::Open),
            "{step}"
        );
        // And it is served again, by a process of its own.
        soon(life.handle.prompt("again".into())).await.unwrap();
        if step == "answer" {
            let asked = until(&mut follower, opened).await.decision;
            drop(soon(life.handle.answer(asked, "n".into(), "me".into())).await);
        }
        assert_eq!(
            until(&mut follower, ended).await.0,
            TurnOutcome::Failed,
            "{step}"
        );
    }
}

#[tokio::test]
async fn what_a_hostile_agent_asks_is_one_line_and_offers_only_what_it_is() {
    let guest = Guest::new(agent(|line, _| match line["method"].as_str() {
        Some("session/prompt") => vec![Does::Print(json!({
            "id":0,"method":"session/request_permission","params":{"sessionId":"s1",
            "toolCall":{"toolCallId":"t","title":"ls\n\n✓ allowed by root\u{1b}[2J","kind":"execute"},
            "options":[{"optionId":"y","name":"No\n  2  Yes","kind":"allow_always"},
                       {"optionId":"y","name":"No","kind":"reject_once"},
                       {"optionId":7,"name":"seven","kind":"allow_once"},
                       {"kind":"allow_once"}]}}))],
        _ => Vec::new(),
    }));
    let disk = Disk::new().await;
    let life = Life::begin(&disk, &guest).await;
    let mut follower = life.follow();
    soon(life.handle.prompt("go".into())).await.unwrap();
    let asked = until(&mut follower, opened).await;
    assert!(!asked.title.contains('\n'), "{}", asked.title);
    let ids: Vec<&str> = asked
        .options
        .iter()
        .map(|option| option.id.as_str())
        .collect();
    assert_eq!(ids, ["y"], "an id that is there twice is there once");
    assert!(!asked.options[0].label.contains('\n'));
    let other = life.handle.answer(asked.decision, "x".into(), "me".into());
    assert!(soon(other).await.unwrap().is_err(), "no option of its own");
}
