//! What models cost, added up from what box-egress tells, and limits that are reached: asked about
//! once, answered once, and never forgotten by a host that comes later.

use crate::fake_egress::FakeEgress;
use crate::rig::{PATIENCE, Rig, new_box, no_program, owner, quiet};
use box_api::DecisionId;
use box_api::budget::{Budget, ModelUsage, UsageAsk};
use box_api::control::{Change, EventKind};
use box_api::egress::usage::{ModelUse, Tokens};
use box_api::egress::{Event, HostName};
use box_api::thread::{Decision, DecisionKind, DecisionState};
use box_core::boxes::BoxRecord;
use box_core::decisions::{self, AnswerError};
use box_core::{Host, boxes, budget, events, lifecycle};
use std::sync::Arc;
use tokio::sync::broadcast;
use tokio::time::timeout;

struct Stage {
    _rig: Rig,
    fake: FakeEgress,
    host: Arc<Host>,
    made: BoxRecord,
    told: broadcast::Receiver<Decision>,
}

impl Stage {
    async fn with(settings: &str) -> Self {
        let rig = Rig::new();
        std::fs::create_dir_all(rig.paths().run).unwrap();
        let settings = format!("[credentials]\nseal = \"memory\"\n{settings}");
        std::fs::write(rig.paths().config, settings).unwrap();
        let fake = FakeEgress::listen(&rig.paths().egress_socket());
        let (host, _gone) = rig.open().unwrap().with_egress(no_program());
        let made = lifecycle::create(&host, &owner(), new_box("demo"), quiet())
            .await
            .unwrap();
        fake.until(|told| told.boxes.contains_key(&made.id)).await;
        tokio::spawn(budget::run(Arc::clone(&host)));
        Self {
            _rig: rig,
            fake,
            told: host.people.listen(),
            host,
            made,
        }
    }

    /// A model answered.
    async fn used(&self, model: &str, input: u64) {
        let used = ModelUse {
            box_id: self.made.id,
            host: HostName::parse("api.example").unwrap(),
            credential: "claude".to_owned(),
            model: model.to_owned(),
            conversation: Some("unheard of".to_owned()),
            tokens: Tokens {
                input,
                cache_read: 1_000_000,
                ..Tokens::default()
            },
            answers: 1,
            unread: 0,
            at_ms: 5,
        };
        self.fake.tell(Event::Used(used)).await;
    }

    async fn usage(&self) -> ModelUsage {
        let asked = UsageAsk {
            name: None,
            days: 7,
        };
        budget::usage(&self.host, &owner(), asked).await.unwrap()
    }

    /// Waits until so many tokens were added up.
    async fn added(&self, input: u64) {
        let sum = async || {
            let usage = self.usage().await;
            let inputs = usage.lines.iter().map(|line| line.tokens.input);
            inputs.sum::<u64>()
        };
        let look = async {
            while sum().await != input {
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, look).await.unwrap();
    }

    async fn next(&mut self) -> Decision {
        timeout(PATIENCE, self.told.recv()).await.unwrap().unwrap()
    }

    async fn answer(&self, id: DecisionId, option: &str) -> Result<(), AnswerError> {
        decisions::answer(&self.host, &owner(), id, option, "uid:0").await
    }

    async fn set(&self, text: &str) -> Result<(), lifecycle::SetError> {
        let change = Change::Budget(Some(Budget::parse(text).unwrap()));
        let set = lifecycle::set(&self.host, self.made.id, vec![change]).await;
        set.map(drop)
    }

    async fn limit(&self) -> String {
        let record = boxes::get(&self.host, self.made.id).await.unwrap().unwrap();
        record.settings.budget.map(String::from).unwrap_or_default()
    }
}

#[tokio::test]
async fn a_limit_that_is_reached_is_asked_about_once_and_every_answer_holds() {
    let mut stage = Stage::with("[budget]\nlimits = \"1k\"\n").await;
    stage.used("m", 999).await;
    stage.used("m", 1).await;
    let first = stage.next().await;
    assert_eq!(first.about, DecisionKind::Budget);
    assert_eq!(
        first.title,
        "the budget of box `demo` is used up: 1,000 tokens of 1,000 tokens"
    );
    let ids: Vec<&str> = first.options.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(ids, ["once", "raise", "stay"]);
    // More of the same asks nothing new: the next that is told is the answer.
    stage.used("m", 5).await;
    stage.added(1005).await;
    stage.answer(first.decision, "once").await.unwrap();
    let told = stage.next().await;
    assert_eq!(
        (told.decision, told.state),
        (
            first.decision,
            DecisionState::Answered {
                option: "once".to_owned()
            }
        )
    );
    let late = stage.answer(first.decision, "stay").await.unwrap_err();
    assert!(matches!(late, AnswerError::Over { .. }), "{late}");

    stage.used("m", 994).await;
    stage.added(1999).await;
    stage.used("m", 1).await;
    let second = stage.next().await;
    assert!(
        second.title.ends_with("2,000 tokens of 2,000 tokens"),
        "{}",
        second.title
    );
    stage.answer(second.decision, "raise").await.unwrap();
    stage.next().await;
    assert_eq!(stage.limit().await, "2k");
    let budgets = stage.usage().await.budgets;
    assert_eq!((budgets[0].used, budgets[0].of), (2000, 3000));

    stage.used("m", 1000).await;
    let third = stage.next().await;
    stage.answer(third.decision, "stay").await.unwrap();
    assert_eq!(stage.next().await.decision, third.decision);
    // It is asked again once something more is used, and not before.
    stage.used("m", 1).await;
    let fourth = stage.next().await;
    assert!(fourth.decision > third.decision);
    assert_eq!(fourth.state, DecisionState::Open);
    // A budget with room takes the question back.
    stage.set("1M").await.unwrap();
    let over = stage.next().await;
    assert_eq!(
        (over.decision, over.state),
        (fourth.decision, DecisionState::Cancelled)
    );
}

#[tokio::test]
async fn money_is_counted_by_the_prices_there_are_and_what_has_none_is_said() {
    let settings = "[budget.prices]\n\"big-*\" = { input = 10, output = 50, cache_read = 0 }\n";
    let mut stage = Stage::with(settings).await;
    stage.set("0.50usd/day").await.unwrap();
    stage.used("free-1", 1_000_000).await;
    stage.used("big-1", 49_999).await;
    stage.added(1_049_999).await;
    let usage = stage.usage().await;
    assert_eq!(usage.without_price, ["free-1"]);
    let costs: Vec<_> = usage
        .lines
        .iter()
        .map(|line| (line.model.as_str(), line.cost_micro))
        .collect();
    assert!(costs.contains(&("big-1", Some(499_990))), "{costs:?}");
    assert!(costs.contains(&("free-1", None)), "{costs:?}");
    assert!(usage.lines.iter().all(|line| line.thread.is_none()));
    stage.used("big-1", 1).await;
    let asked = stage.next().await;
    assert_eq!(
        asked.title,
        "the budget of box `demo` today is used up: 0.50 USD of 0.50 USD"
    );
    let befell = events::newest(&stage.host, stage.made.id, 100)
        .await
        .unwrap();
    let of_budget = befell
        .iter()
        .filter(|event| event.kind == EventKind::Budget);
    let texts: Vec<&str> = of_budget.map(|event| event.text.as_str()).collect();
    assert!(
        texts.iter().any(|text| text.contains("`free-1`")),
        "{texts:?}"
    );
}

#[tokio::test]
async fn a_budget_in_money_without_prices_is_refused_and_changes_nothing() {
    let stage = Stage::with("").await;
    let refused = stage.set("5usd").await.unwrap_err();
    assert!(refused.to_string().contains("needs prices"), "{refused}");
    assert_eq!(stage.limit().await, "");
    stage.set("5M").await.unwrap();
    assert_eq!(stage.limit().await, "5M");
}
