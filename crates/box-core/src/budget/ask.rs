//! The decision that is asked when a limit is reached, and what follows from its answer.

use super::reached::{Key, State};
use super::{BudgetError, rows};
use crate::boxes::{self, BoxRecord};
use crate::decisions::{self, AnswerError, Asker};
use crate::events;
use crate::host::Host;
use crate::lifecycle;
use crate::store::{Durability, StoreError};
use crate::thread::state::Closed;
use box_api::budget::{Limit, Measure, Span};
use box_api::control::{Change, EventKind};
use box_api::thread::{Decision, DecisionKind, DecisionOption, DecisionState, OptionKind};
use box_api::{BoxId, DecisionId};
use rusqlite::{Connection, OptionalExtension as _, Transaction};
use std::sync::Arc;

const ONCE: &str = "once";
const RAISE: &str = "raise";
const STAY: &str = "stay";

/// Whether a question came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asking {
    Open,
    Settled,
}

/// Asks about a limit that is reached, unless that is asked already.
pub(super) async fn open(
    host: &Host,
    record: &BoxRecord,
    state: &State,
) -> Result<(), BudgetError> {
    let (id, key) = (record.id, state.key.clone());
    let asked = host.store.read(move |tables| open_ask(tables, &id, &key));
    if asked.await?.is_some() {
        return Ok(());
    }
    let number = host.threads.next_decision(&host.store).await?;
    let decision = decision(record, number, state);
    let (asking, told) = (
        Asker {
            owner: record.owner,
            generation: 0,
            at_ms: host.now_ms(),
        },
        decision.clone(),
    );
    let (key, amount, used) = (state.key.clone(), state.limit.amount, state.used);
    let write = move |tables: &Transaction<'_>| {
        // An answer may have come since this was looked at.
        let granted = rows::granted(tables, &id, key.words())?;
        let is_reached = used >= amount.saturating_add(granted);
        if !is_reached || open_ask(tables, &id, &key)?.is_some() {
            return Ok(Asking::Settled);
        }
        decisions::insert(tables, &decision, asking)?;
        let (span, measure, whose) = key.words();
        tables.execute(
            "INSERT INTO budget_asks (decision, box_id, span, measure, whose, amount) \
             VALUES (?, ?, ?, ?, ?, ?)",
            (
                number.0,
                id.as_str(),
                span,
                measure,
                whose,
                i64::try_from(amount).unwrap_or(i64::MAX),
            ),
        )?;
        Ok(Asking::Open)
    };
    if host.store.write(Durability::Full, write).await? == Asking::Settled {
        return Ok(());
    }
    host.people.tell(&told);
    let text = state.told(&record.name);
    events::note(host, id, EventKind::Budget, text).await?;
    Ok(())
}

/// The decision that is open about a limit, or was answered and nothing was used since.
fn open_ask(tables: &Connection, id: &BoxId, key: &Key) -> rusqlite::Result<Option<DecisionId>> {
    let (span, measure, whose) = key.words();
    let used = rows::counted(tables, id)?;
    tables
        .prepare_cached(
            "SELECT decision FROM budget_asks JOIN decisions ON decisions.id = decision \
             WHERE budget_asks.box_id = ? AND span = ? AND measure = ? AND whose = ? \
             AND (decisions.state = 'open' OR stays_at >= ?) LIMIT 1",
        )?
        .query_row((id.as_str(), span, measure, whose, used), |row| row.get(0))
        .optional()
        .map(|found| found.map(DecisionId))
}

fn decision(record: &BoxRecord, number: DecisionId, state: &State) -> Decision {
    let amount = state.key.measure.shown(state.limit.amount);
    let doubled = state.limit.amount.saturating_mul(2);
    let doubled = state.key.measure.shown(doubled);
    let until = match state.key.span {
        Span::Day => "stay parked until tomorrow (UTC)",
        Span::Box | Span::Thread => "stay parked",
    };
    let option = |id: &str, label: String, kind: OptionKind| DecisionOption {
        id: id.to_owned(),
        label,
        kind,
    };
    Decision {
        decision: number,
        box_id: record.id,
        thread: None,
        about: DecisionKind::Budget,
        title: state.told(&record.name),
        call: None,
        options: vec![
            option(
                ONCE,
                format!("go on with {amount} more"),
                OptionKind::AllowOnce,
            ),
            option(
                RAISE,
                format!("raise the limit to {doubled} for good"),
                OptionKind::AllowAlways,
            ),
            option(STAY, until.to_owned(), OptionKind::RejectOnce),
        ],
        form: None,
        text: None,
        state: DecisionState::Open,
    }
}

/// Takes back what is asked about limits that are not reached any more: the day is over, somebody
/// raised them.
pub(super) async fn close_others(
    host: &Host,
    id: BoxId,
    reached: Vec<Key>,
) -> Result<(), BudgetError> {
    let at_ms = host.now_ms();
    let write = move |tables: &Transaction<'_>| {
        let mut over = Vec::new();
        for ask in asks(tables, &id)? {
            if reached.iter().any(|key| key.words() == ask.words()) {
                continue;
            }
            let closed = closed(ask.decision, DecisionState::Cancelled, at_ms);
            decisions::close(
                tables,
                &Closed {
                    note: Some("the budget has room again".to_owned()),
                    ..closed
                },
            )?;
            over.extend(decisions::get(tables, ask.decision)?);
        }
        Ok(over)
    };
    let open = host.store.read(move |tables| asks(tables, &id)).await?;
    if open.is_empty() {
        return Ok(());
    }
    for record in host.store.write(Durability::Full, write).await? {
        host.people.tell(&record.decision);
    }
    Ok(())
}

/// A limit that is asked about.
struct Ask {
    decision: DecisionId,
    span: String,
    measure: String,
    whose: String,
    amount: i64,
}

impl Ask {
    fn words(&self) -> (&str, &str, &str) {
        (&self.span, &self.measure, &self.whose)
    }

    fn limit(&self) -> Limit {
        let spans = [Span::Box, Span::Day, Span::Thread];
        let span = spans.into_iter().find(|span| span.word() == self.span);
        let measures = [Measure::Tokens, Measure::Money];
        let measure = measures.into_iter().find(|one| one.word() == self.measure);
        Limit {
            span: span.unwrap_or(Span::Box),
            measure: measure.unwrap_or(Measure::Tokens),
            amount: u64::try_from(self.amount).unwrap_or_default(),
        }
    }
}

fn asks(tables: &Connection, id: &BoxId) -> rusqlite::Result<Vec<Ask>> {
    let mut statement = tables.prepare_cached(
        "SELECT decision, span, measure, whose, amount FROM budget_asks \
         JOIN decisions ON decisions.id = decision \
         WHERE budget_asks.box_id = ? AND decisions.state = 'open'",
    )?;
    let asks = statement.query_map([id.as_str()], |row| {
        Ok(Ask {
            decision: DecisionId(row.get(0)?),
            span: row.get(1)?,
            measure: row.get(2)?,
            whose: row.get(3)?,
            amount: row.get(4)?,
        })
    })?;
    asks.collect()
}

fn closed(decision: DecisionId, state: DecisionState, at_ms: i64) -> Closed {
    Closed {
        content: None,
        seq: 0,
        at_ms,
        decision,
        state,
        by: None,
        note: None,
    }
}

/// Carries out an answer that was checked to be one of the options.
pub(crate) async fn answer(
    host: &Arc<Host>,
    record: decisions::Record,
    option: String,
    by: String,
) -> Result<(), AnswerError> {
    let mut decision = record.decision;
    let (id, box_id) = (decision.decision, decision.box_id);
    let chosen = option.clone();
    let answered = Closed {
        by: Some(by),
        ..closed(id, DecisionState::Answered { option }, host.now_ms())
    };
    decision.state = answered.state.clone();
    let write = move |tables: &Transaction<'_>| {
        // Somebody may have been faster.
        let mut open = asks(tables, &box_id)?.into_iter();
        let Some(ask) = open.find(|ask| ask.decision == id) else {
            return Ok(None);
        };
        decisions::close(tables, &answered)?;
        match chosen.as_str() {
            ONCE => grant(tables, &box_id, &ask)?,
            STAY => stay(tables, &box_id, id)?,
            _ => {}
        }
        Ok(Some((ask.limit(), chosen)))
    };
    let Some((limit, chosen)) = host.store.write(Durability::Full, write).await? else {
        let now = host
            .store
            .read(move |tables| decisions::get(tables, id))
            .await?;
        let now = now.ok_or(AnswerError::Unknown(id))?;
        return Err(AnswerError::Over {
            decision: id,
            state: now.decision.state,
            who: now.who,
            note: now.note,
        });
    };
    host.people.tell(&decision);
    if chosen == RAISE {
        raise(host, box_id, limit).await?;
    }
    if chosen != STAY {
        host.live.spend(box_id);
    }
    Ok(())
}

fn grant(tables: &Transaction<'_>, id: &BoxId, ask: &Ask) -> rusqlite::Result<()> {
    tables
        .execute(
            "INSERT INTO budget_grants (box_id, span, measure, whose, amount) \
             VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO UPDATE SET amount = amount + ?5",
            (id.as_str(), &ask.span, &ask.measure, &ask.whose, ask.amount),
        )
        .map(drop)
}

/// It is not asked again before something more is used.
fn stay(tables: &Transaction<'_>, id: &BoxId, decision: DecisionId) -> rusqlite::Result<()> {
    let used = rows::counted(tables, id)?;
    tables
        .execute(
            "UPDATE budget_asks SET stays_at = ?2 WHERE decision = ?1",
            (decision.0, used),
        )
        .map(drop)
}

/// Doubles a limit of the box, for good.
async fn raise(host: &Arc<Host>, id: BoxId, limit: Limit) -> Result<(), StoreError> {
    let Some(record) = boxes::get(host, id).await? else {
        return Ok(());
    };
    let budget = super::of_box(&host.current.now(), &record.settings).with(Limit {
        amount: limit.amount.saturating_mul(2),
        ..limit
    });
    let change = vec![Change::Budget(Some(budget))];
    if let Err(error) = lifecycle::set(host, id, change).await {
        // It is asked again when the next answer of a model comes.
        let text = format!("its budget was not raised: {}", boxes::reason(&error));
        events::note(host, id, EventKind::Budget, text).await?;
    }
    Ok(())
}
