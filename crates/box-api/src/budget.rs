//! What models cost: sums by box, thread, day and model, and the budgets that end it.

use crate::egress::usage::Tokens;
use crate::{BoxId, BoxName, ThreadId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Limits of one budget: every measure and span once.
const LIMITS_MAX: usize = 6;
/// A millionth of a dollar is the smallest part that is counted.
pub const MICRO: u64 = 1_000_000;
/// More is a slip of the finger, and could not be added up.
const AMOUNT_MAX: u64 = 1 << 53;

/// Over what a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Span {
    /// Everything the box ever used.
    Box,
    /// The box on one day, UTC.
    Day,
    /// Each thread of the box.
    Thread,
}

impl Span {
    /// The word that is stored.
    pub fn word(self) -> &'static str {
        match self {
            Self::Box => "box",
            Self::Day => "day",
            Self::Thread => "thread",
        }
    }
}

/// In what a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Input, output and what is written to a cache; what is read from one is not counted.
    Tokens,
    /// Millionths of a dollar, by the prices of the settings.
    Money,
}

impl Measure {
    /// The word that is stored.
    pub fn word(self) -> &'static str {
        match self {
            Self::Tokens => "tokens",
            Self::Money => "money",
        }
    }

    /// An amount for a person: `2,000,000 tokens`, `1.50 USD`.
    pub fn shown(self, amount: u64) -> String {
        match self {
            Self::Tokens => format!("{} tokens", grouped(amount)),
            Self::Money => format!("{} USD", dollars(amount)),
        }
    }
}

/// One limit of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Limit {
    pub span: Span,
    pub measure: Measure,
    pub amount: u64,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.measure {
            Measure::Tokens => f.write_str(&short(self.amount))?,
            Measure::Money => write!(f, "{}usd", dollars(self.amount))?,
        }
        match self.span {
            Span::Box => Ok(()),
            Span::Day => f.write_str("/day"),
            Span::Thread => f.write_str("/thread"),
        }
    }
}

/// What models may cost: `5M`, `2M/day`, `300k/thread`, `20usd`, `5usd/day`, with commas between;
/// `off` is none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema), ts(type = "string"))]
#[serde(try_from = "String", into = "String")]
pub struct Budget {
    limits: Vec<Limit>,
}

impl Budget {
    /// # Errors
    /// What a budget is.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self::default());
        }
        let limits: Vec<Limit> = text
            .split(',')
            .take(LIMITS_MAX + 1)
            .map(|one| limit(one.trim()))
            .collect::<Option<_>>()
            .ok_or_else(should_be)?;
        let key = |limit: &Limit| (limit.span, limit.measure);
        for (at, limit) in limits.iter().enumerate() {
            if limits[..at].iter().any(|before| key(before) == key(limit)) {
                return Err(format!(
                    "a list with each kind of limit once; `{limit}` is a second one"
                ));
            }
        }
        Ok(Self { limits })
    }

    pub fn limits(&self) -> &[Limit] {
        &self.limits
    }

    pub fn is_off(&self) -> bool {
        self.limits.is_empty()
    }

    /// Whether any of it is in money.
    pub fn has_money(&self) -> bool {
        self.limits
            .iter()
            .any(|limit| limit.measure == Measure::Money)
    }

    /// The same with one limit changed, where it has it.
    #[must_use]
    pub fn with(mut self, changed: Limit) -> Self {
        for limit in &mut self.limits {
            if (limit.span, limit.measure) == (changed.span, changed.measure) {
                limit.amount = changed.amount.min(AMOUNT_MAX);
            }
        }
        self
    }
}

fn should_be() -> String {
    "a budget such as `2M/day`, `300k/thread`, `20usd` or `5usd/day`, or several with commas between"
        .to_owned()
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.limits.is_empty() {
            return f.write_str("off");
        }
        for (at, limit) in self.limits.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{limit}")?;
        }
        Ok(())
    }
}

impl From<Budget> for String {
    fn from(budget: Budget) -> Self {
        budget.to_string()
    }
}

impl TryFrom<String> for Budget {
    type Error = String;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

fn limit(text: &str) -> Option<Limit> {
    let (amount, span) = match text.split_once('/') {
        None => (text, Span::Box),
        Some((amount, "day")) => (amount, Span::Day),
        Some((amount, "thread")) => (amount, Span::Thread),
        Some(_) => return None,
    };
    let lower = amount.to_ascii_lowercase();
    let (measure, amount) = match lower.strip_suffix("usd") {
        Some(money) => (Measure::Money, decimal(money, MICRO)?),
        None => (Measure::Tokens, tokens(&lower)?),
    };
    let is_sound = (1..=AMOUNT_MAX).contains(&amount);
    is_sound.then_some(Limit {
        span,
        measure,
        amount,
    })
}

fn tokens(text: &str) -> Option<u64> {
    if let Some(thousands) = text.strip_suffix('k') {
        return decimal(thousands, 1_000);
    }
    match text.strip_suffix('m') {
        Some(millions) => decimal(millions, 1_000_000),
        None => decimal(text, 1),
    }
}

/// `12.5` in parts of one `whole`th, exactly.
pub fn decimal(text: &str, whole: u64) -> Option<u64> {
    let (before, after) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.len() <= 15 && text.bytes().all(|byte| byte.is_ascii_digit());
    if before.is_empty() || !digits(before) || !digits(after) || text.ends_with('.') {
        return None;
    }
    let mut sum = before.parse::<u64>().ok()?.checked_mul(whole)?;
    let mut part = whole;
    for digit in after.bytes() {
        if !part.is_multiple_of(10) {
            // Finer than what is counted.
            return (digit == b'0').then_some(sum);
        }
        part /= 10;
        sum = sum.checked_add(u64::from(digit - b'0') * part)?;
    }
    Some(sum)
}

fn short(tokens: u64) -> String {
    match tokens {
        0 => "0".to_owned(),
        _ if tokens.is_multiple_of(1_000_000) => format!("{}M", tokens / 1_000_000),
        _ if tokens.is_multiple_of(1_000) => format!("{}k", tokens / 1_000),
        _ => tokens.to_string(),
    }
}

/// Millionths as dollars, at least two places.
pub fn dollars(micro: u64) -> String {
    let places = format!("{:06}", micro % MICRO);
    let kept = places.trim_end_matches('0').len().max(2);
    format!("{}.{}", micro / MICRO, &places[..kept])
}

/// `1234567` as `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// What is asked about usage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageAsk {
    /// Absent: every box of the caller.
    pub name: Option<BoxName>,
    /// Days back from today, UTC; 1 is today alone.
    pub days: u32,
}

/// Longest time back that usage is asked for.
pub const USAGE_DAYS_MAX: u32 = 366;
/// Lines of one answer.
pub const USAGE_LINES_MAX: u32 = 2000;

/// What one thread used of one model on one day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct UsageLine {
    pub box_id: BoxId,
    pub name: BoxName,
    /// Absent where it is not known whose it was: not all requests say.
    pub thread: Option<ThreadId>,
    /// `2026-11-30`, UTC.
    pub day: String,
    /// Empty where the answers named none.
    pub model: String,
    /// The kind of the account, such as `claude`.
    pub credential: String,
    pub tokens: Tokens,
    pub answers: u64,
    /// Answers among them without figures: what they cost is not in `tokens`.
    pub unread: u64,
    /// Millionths of a dollar; absent where the settings have no price of the model.
    pub cost_micro: Option<u64>,
}

/// How far a limit of a box is used up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct BudgetState {
    pub box_id: BoxId,
    pub name: BoxName,
    /// As `box set <box> budget=` takes it.
    pub limit: String,
    /// Whose, of a limit for each thread.
    pub thread: Option<ThreadId>,
    pub measure: Measure,
    pub used: u64,
    /// With what a person granted on top.
    pub of: u64,
}

/// Usage and budgets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct ModelUsage {
    /// Newest day first.
    pub lines: Vec<UsageLine>,
    pub budgets: Vec<BudgetState>,
    /// Models that were used and have no price.
    pub without_price: Vec<String>,
    /// Whether there are more lines than [`USAGE_LINES_MAX`].
    pub more: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_reads_as_it_is_written() {
        for text in [
            "off",
            "5M",
            "2M/day",
            "300k/thread",
            "20.00usd",
            "0.50usd/day",
            "1M,200k/thread,5.00usd/day",
            "1234567/day",
        ] {
            assert_eq!(Budget::parse(text).unwrap().to_string(), text);
        }
        let one = Budget::parse("1.5m , 5USD").unwrap();
        assert_eq!(one.to_string(), "1500k,5.00usd");
        assert!(one.has_money());
        assert!(Budget::parse("off").unwrap().is_off());
    }

    #[test]
    fn what_is_no_budget_says_what_one_is() {
        for text in [
            "",
            "5X",
            "-1",
            "0",
            "5M/week",
            "1e6",
            "5M,5k",
            "usd",
            "1.",
            ".5usd",
            "99999999999999M",
        ] {
            assert!(Budget::parse(text).is_err(), "{text}");
        }
        assert!(Budget::parse("5M,5k").unwrap_err().contains("`5k`"));
        assert!(Budget::parse("0.0000001usd").is_err(), "finer than counted");
    }

    #[test]
    fn a_limit_is_changed_where_it_is() {
        let raised = Budget::parse("1M,5usd/day").unwrap().with(Limit {
            span: Span::Day,
            measure: Measure::Money,
            amount: 10 * MICRO,
        });
        assert_eq!(raised.to_string(), "1M,10.00usd/day");
    }

    #[test]
    fn amounts_read_well() {
        assert_eq!(Measure::Tokens.shown(1_234_567), "1,234,567 tokens");
        assert_eq!(Measure::Money.shown(1_234_567), "1.234567 USD");
        assert_eq!(Measure::Money.shown(20 * MICRO), "20.00 USD");
        assert_eq!(grouped(999), "999");
    }
}
