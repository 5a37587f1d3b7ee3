//! What models cost, and what is done when that reaches a limit.
//!
//! box-egress reads the figures in the answers of models and tells them; here they are added up by
//! box, thread, day and model. A limit that is reached parks the threads it is about, whose turns
//! are interrupted, and asks: go on once, raise the limit, or stay parked. What is asked, granted
//! and used is in the rows: a host that dies in between looks at them when it is back.

mod ask;
mod reached;
mod rows;
mod shown;

pub use shown::usage;

use crate::boxes::{self, BoxRecord};
use crate::egress::Surroundings;
use crate::events;
use crate::host::Host;
use crate::lifecycle::SettingError;
use crate::settings::Settings;
use crate::store::{Durability, StoreError};
use crate::thread::ThreadError;
pub(crate) use ask::answer;
use box_api::BoxId;
use box_api::budget::Budget;
use box_api::control::{BoxSettings, EventKind};
use box_api::egress::usage::ModelUse;
use reached::{Key, Standing};
use std::collections::BTreeSet;
use std::sync::Arc;

const DAY_MS: i64 = 24 * 3_600_000;
/// Models without a price that are remembered as told.
const TOLD_MAX: usize = 1024;

/// Why a box's budget was not looked at to the end; the next answer of a model has it looked at
/// again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BudgetError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Thread(#[from] ThreadError),
}

/// The day a moment is on, UTC, since 1970.
pub(crate) fn day_of(at_ms: i64) -> i64 {
    at_ms.div_euclid(DAY_MS)
}

/// What holds for a box: its own budget, else that of the settings.
pub(crate) fn of_box(settings: &Settings, own: &BoxSettings) -> Budget {
    let own = own.budget.as_ref();
    own.unwrap_or(&settings.budget.limits.value).clone()
}

/// Whether a box can have this budget.
///
/// # Errors
/// One in money where nothing has a price.
pub(crate) fn check(host: &Host, settings: &BoxSettings) -> Result<(), SettingError> {
    let has_money = settings.budget.as_ref().is_some_and(Budget::has_money);
    if has_money && host.current.now().budget.prices.value.is_empty() {
        return Err(SettingError::NoPrices);
    }
    Ok(())
}

/// Adds up what box-egress tells of.
pub(crate) async fn take(around: &Surroundings, used: ModelUse) -> Result<(), StoreError> {
    let (id, today) = (used.box_id, day_of(around.clock.now_ms()));
    let add = move |tables: &rusqlite::Transaction<'_>| rows::add(tables, &used, today);
    around.store.write(Durability::Grouped, add).await?;
    around.live.spend(id);
    Ok(())
}

/// Looks at budgets until the host ends.
pub async fn run(host: Arc<Host>) {
    // What an earlier host added up and did not come to look at.
    match host.store.read(rows::running).await {
        Ok(boxes) => boxes.into_iter().for_each(|id| host.live.spend(id)),
        Err(error) => tracing::error!(why = boxes::reason(&error), "budgets were not looked at"),
    }
    let mut told = BTreeSet::new();
    loop {
        for id in host.live.spent().await {
            if let Err(error) = look(&host, id, &mut told).await {
                let why = boxes::reason(&error);
                tracing::error!(%id, why, "the budget of a box was not looked at");
            }
        }
    }
}

type Told = BTreeSet<(BoxId, String)>;

async fn look(host: &Arc<Host>, id: BoxId, told: &mut Told) -> Result<(), BudgetError> {
    let Some(record) = boxes::get(host, id).await?.filter(BoxRecord::is_live) else {
        return Ok(());
    };
    let settings = host.current.now();
    let budget = of_box(&settings, &record.settings);
    let today = day_of(host.now_ms());
    let limits = budget.clone();
    let read = move |tables: &rusqlite::Connection| {
        reached::standing(tables, id, (&limits, &settings.budget.prices.value), today)
    };
    let standing = host.store.read(read).await?;
    if budget.has_money() {
        tell_unpriced(host, id, &standing, told).await?;
    }
    let reached: Vec<Key> = standing.reached().map(|state| state.key.clone()).collect();
    for state in standing.reached() {
        ask::open(host, &record, state).await?;
    }
    ask::close_others(host, id, reached.clone()).await?;
    settle(host, &record, &standing).await
}

/// Parks what a reached limit is about, and lets go on what no longer is.
async fn settle(
    host: &Arc<Host>,
    record: &BoxRecord,
    standing: &Standing,
) -> Result<(), BudgetError> {
    let id = record.id;
    for thread in host
        .store
        .read(move |tables| rows::threads(tables, id))
        .await?
    {
        let mut over = standing.reached();
        match over.find(|state| state.key.is_about(&thread.thread)) {
            Some(state) => {
                let handle = host.threads.handle(host, thread.thread).await?;
                let until_ms = state.key.until_ms(host.now_ms());
                handle.pause(until_ms, state.told(&record.name)).await?;
            }
            None if thread.is_paused => {
                let handle = host.threads.handle(host, thread.thread).await?;
                handle
                    .unpause("the budget, which has room again".to_owned())
                    .await?;
            }
            None => {}
        }
    }
    Ok(())
}

/// A budget in money does not see what has no price: said once for each model.
async fn tell_unpriced(
    host: &Host,
    id: BoxId,
    standing: &Standing,
    told: &mut Told,
) -> Result<(), BudgetError> {
    for model in &standing.without_price {
        let key = (id, model.clone());
        if told.len() < TOLD_MAX && told.insert(key) {
            let text = format!(
                "its budget in money does not count the model `{model}`, which has no price in \
                 `[budget.prices]`"
            );
            events::note(host, id, EventKind::Budget, text).await?;
        }
    }
    Ok(())
}
