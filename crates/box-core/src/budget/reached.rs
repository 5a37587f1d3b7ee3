//! How far each limit of a box is used up.

use super::rows::{self, Sum};
use super::{DAY_MS, day_of};
use crate::settings::budget::Prices;
use box_api::budget::{Budget, Limit, Measure, Span};
use box_api::{BoxId, BoxName, ThreadId};
use rusqlite::Connection;
use std::collections::{BTreeMap, BTreeSet};

/// What a limit is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) span: Span,
    pub(super) measure: Measure,
    /// The number of the day, the thread, or nothing.
    pub(super) whose: String,
}

impl Key {
    pub(super) fn is_about(&self, thread: &ThreadId) -> bool {
        match self.span {
            Span::Box | Span::Day => true,
            Span::Thread => self.whose == thread.as_str(),
        }
    }

    pub(super) fn thread(&self) -> Option<ThreadId> {
        match self.span {
            Span::Thread => ThreadId::parse(&self.whose).ok(),
            Span::Box | Span::Day => None,
        }
    }

    /// When it is over by itself: with the day.
    pub(super) fn until_ms(&self, now_ms: i64) -> Option<i64> {
        match self.span {
            Span::Day => Some((day_of(now_ms) + 1) * DAY_MS),
            Span::Box | Span::Thread => None,
        }
    }

    pub(super) fn words(&self) -> (&'static str, &'static str, &str) {
        (self.span.word(), self.measure.word(), &self.whose)
    }
}

/// One limit, and what was used of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct State {
    pub(super) key: Key,
    pub(super) limit: Limit,
    pub(super) used: u64,
    /// The limit with what a person granted.
    pub(super) of: u64,
}

impl State {
    fn is_reached(&self) -> bool {
        self.used >= self.of
    }

    /// In one line, for a person.
    pub(super) fn told(&self, name: &BoxName) -> String {
        let (used, of) = (
            self.key.measure.shown(self.used),
            self.key.measure.shown(self.of),
        );
        let whose = match self.key.span {
            Span::Box => format!("box `{name}`"),
            Span::Day => format!("box `{name}` today"),
            Span::Thread => format!("thread {} of box `{name}`", self.key.whose),
        };
        format!("the budget of {whose} is used up: {used} of {of}")
    }
}

/// Every limit of a box.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Standing {
    pub(super) limits: Vec<State>,
    /// Models that were used and have no price.
    pub(super) without_price: BTreeSet<String>,
}

impl Standing {
    pub(super) fn reached(&self) -> impl Iterator<Item = &State> {
        self.limits.iter().filter(|state| state.is_reached())
    }
}

pub(super) fn standing(
    tables: &Connection,
    id: BoxId,
    (budget, prices): (&Budget, &Prices),
    today: i64,
) -> rusqlite::Result<Standing> {
    let sums = rows::sums(tables, &id, today)?;
    let mut standing = Standing {
        limits: Vec::new(),
        without_price: without_price(&sums, prices),
    };
    for limit in budget.limits() {
        for (whose, used) in used_of(limit, &sums, prices, today) {
            let key = Key {
                span: limit.span,
                measure: limit.measure,
                whose,
            };
            let granted = rows::granted(tables, &id, key.words())?;
            standing.limits.push(State {
                of: limit.amount.saturating_add(granted),
                limit: *limit,
                used,
                key,
            });
        }
    }
    Ok(standing)
}

fn without_price(sums: &[Sum], prices: &Prices) -> BTreeSet<String> {
    let all = sums.iter();
    let lacking = all.filter(|sum| prices.cost_micro(&sum.model, &sum.tokens).is_none());
    lacking.map(|sum| sum.model.clone()).collect()
}

/// What was used of a limit, by whose it is.
fn used_of(limit: &Limit, sums: &[Sum], prices: &Prices, today: i64) -> BTreeMap<String, u64> {
    let mut used = BTreeMap::new();
    match limit.span {
        Span::Box => drop(used.insert(String::new(), 0)),
        Span::Day => drop(used.insert(today.to_string(), 0)),
        Span::Thread => {}
    }
    for sum in sums {
        let whose = match limit.span {
            Span::Box => Some(String::new()),
            Span::Day => sum.is_today.then(|| today.to_string()),
            Span::Thread => sum.thread.map(|thread| thread.as_str().to_owned()),
        };
        let Some(whose) = whose else { continue };
        let more = match limit.measure {
            Measure::Tokens => sum.tokens.counted(),
            Measure::Money => prices
                .cost_micro(&sum.model, &sum.tokens)
                .unwrap_or_default(),
        };
        let one: &mut u64 = used.entry(whose).or_default();
        *one = one.saturating_add(more);
    }
    used
}

#[cfg(test)]
mod tests {
    use super::*;
    use box_api::egress::usage::Tokens;

    fn sum(thread: u8, model: &str, input: u64) -> Sum {
        Sum {
            thread: (thread > 0).then(|| ThreadId::from_random([thread; 10])),
            model: model.to_owned(),
            is_today: true,
            tokens: Tokens {
                input,
                cache_read: 1_000_000,
                ..Tokens::default()
            },
        }
    }

    fn used(limit: &str, sums: &[Sum]) -> Vec<u64> {
        let budget = Budget::parse(limit).unwrap();
        let used = used_of(&budget.limits()[0], sums, &Prices::default(), 20_000);
        used.into_values().collect()
    }

    #[test]
    fn each_span_counts_its_own() {
        let sums = [
            sum(1, "a", 10),
            Sum {
                is_today: false,
                ..sum(1, "b", 200)
            },
            sum(2, "a", 3000),
            sum(0, "a", 40_000),
        ];
        assert_eq!(used("1M", &sums), [43_210]);
        assert_eq!(used("1M/day", &sums), [43_010]);
        let mut threads = used("1M/thread", &sums);
        threads.sort_unstable();
        assert_eq!(threads, [210, 3000], "what is nobody's is no thread's");
        assert_eq!(used("5usd", &sums), [0], "without prices nothing is known");
        assert_eq!(used("1M/day", &[]), [0]);
    }

    #[test]
    fn a_day_is_over_by_itself_and_nothing_else_is() {
        let key = |span| Key {
            span,
            measure: Measure::Tokens,
            whose: String::new(),
        };
        assert_eq!(key(Span::Day).until_ms(DAY_MS * 3 + 5), Some(DAY_MS * 4));
        assert_eq!(key(Span::Box).until_ms(5), None);
    }
}
