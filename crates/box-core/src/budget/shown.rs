//! What models cost, as a person is shown it.

use super::reached::{self, State};
use super::{DAY_MS, day_of, of_box, rows};
use crate::boxes::{self, FindError};
use crate::caller::Caller;
use crate::clock::shown_ms;
use crate::host::Host;
use crate::settings::budget::Prices;
use box_api::budget::{
    BudgetState, ModelUsage, USAGE_DAYS_MAX, USAGE_LINES_MAX, UsageAsk, UsageLine,
};
use box_api::{BoxId, BoxName};
use rusqlite::Connection;

/// Usage and budgets of a box of the caller, or of all of them.
///
/// # Errors
/// [`FindError`]
pub async fn usage(host: &Host, caller: &Caller, asked: UsageAsk) -> Result<ModelUsage, FindError> {
    let records = match &asked.name {
        Some(name) => vec![boxes::find(host, caller, name).await?],
        None => boxes::list(host, caller).await?,
    };
    let settings = host.current.now();
    let today = day_of(host.now_ms());
    let first = today - i64::from(asked.days.clamp(1, USAGE_DAYS_MAX)) + 1;
    let read = move |tables: &Connection| {
        let prices = &settings.budget.prices.value;
        let mut usage = ModelUsage::default();
        for record in &records {
            let name = &record.name;
            let room = (USAGE_LINES_MAX as usize).saturating_sub(usage.lines.len());
            let mut found = lines(tables, (&record.id, name), (first, room + 1), prices)?;
            usage.more |= found.len() > room;
            found.truncate(room);
            usage.lines.append(&mut found);
            let budget = of_box(&settings, &record.settings);
            let standing = reached::standing(tables, record.id, (&budget, prices), today)?;
            let state = |state: &State| shown(record.id, name, state);
            usage.budgets.extend(standing.limits.iter().map(state));
        }
        let lacking = usage.lines.iter().filter(|line| line.cost_micro.is_none());
        usage.without_price = lacking.map(|line| line.model.clone()).collect();
        usage.without_price.sort_unstable();
        usage.without_price.dedup();
        usage.lines.sort_by(|a, b| b.day.cmp(&a.day));
        Ok(usage)
    };
    Ok(host.store.read(read).await?)
}

fn lines(
    tables: &Connection,
    (id, name): (&BoxId, &BoxName),
    (first, room): (i64, usize),
    prices: &Prices,
) -> rusqlite::Result<Vec<UsageLine>> {
    let mut statement = tables.prepare_cached(
        "SELECT day, thread, model, credential, answers, unread, input, output, cache_read, \
         cache_write FROM model_usage WHERE box_id = ? AND day >= ? ORDER BY day DESC LIMIT ?",
    )?;
    let key = (id.as_str(), first, i64::try_from(room).unwrap_or(i64::MAX));
    let lines = statement.query_map(key, |row| {
        let (model, tokens): (String, _) = (row.get(2)?, rows::tokens(row, 6)?);
        let count = |column: usize| -> rusqlite::Result<u64> {
            Ok(u64::try_from(row.get::<_, i64>(column)?).unwrap_or_default())
        };
        Ok(UsageLine {
            box_id: *id,
            name: name.clone(),
            thread: rows::thread(row, 1)?,
            day: day(row.get(0)?),
            cost_micro: prices.cost_micro(&model, &tokens),
            model,
            credential: row.get(3)?,
            tokens,
            answers: count(4)?,
            unread: count(5)?,
        })
    })?;
    lines.collect()
}

/// `2026-11-30`
fn day(number: i64) -> String {
    let shown = shown_ms(number.saturating_mul(DAY_MS));
    shown.split('T').next().unwrap_or_default().to_owned()
}

fn shown(box_id: BoxId, name: &BoxName, state: &State) -> BudgetState {
    BudgetState {
        box_id,
        name: name.clone(),
        limit: state.limit.to_string(),
        thread: state.key.thread(),
        measure: state.key.measure,
        used: state.used,
        of: state.of,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_written_as_a_date() {
        assert_eq!(day(0), "1970-01-01");
        assert_eq!(day(day_of(1_795_962_995_000)), "2026-11-29");
    }
}
