//! `[budget]`: what models may cost where a box says nothing of its own, and what they cost at all.

use super::{Origin, Setting, read};
use box_api::budget::{Budget, MICRO, dollars};
use box_api::egress::usage::Tokens;
use std::collections::BTreeMap;
use toml::Value;

/// Prices that are kept.
const PRICES_MAX: usize = 256;
/// Longest name of a model, with its `*`.
const NAME_BYTES_MAX: usize = 100;
/// Dollars for a million tokens; more is a slip of the finger.
const PRICE_MAX: f64 = 1_000_000.0;

/// `[budget]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetSettings {
    /// `limits`: of a box that says nothing else.
    pub limits: Setting<Budget>,
    pub prices: Setting<Prices>,
}

impl Default for BudgetSettings {
    fn default() -> Self {
        Self {
            limits: Setting::default_of(Budget::default()),
            prices: Setting::default_of(Prices::default()),
        }
    }
}

/// `[budget.prices]`: what models cost. There are none but those a person wrote down: vendors
/// change theirs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prices(BTreeMap<String, Price>);

/// Millionths of a dollar for a million tokens of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
}

impl Prices {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What so much of a model costs, in millionths of a dollar; nothing where it has no price. Of
    /// two that fit the longer name holds.
    pub fn cost_micro(&self, model: &str, tokens: &Tokens) -> Option<u64> {
        let fits = |name: &str| match name.strip_suffix('*') {
            Some(beginning) => model.starts_with(beginning),
            None => model == name,
        };
        let fitting = self.0.iter().filter(|(name, _)| fits(name));
        let (_, price) = fitting.max_by_key(|(name, _)| (name.len(), !name.ends_with('*')))?;
        let parts = [
            (tokens.input, price.input),
            (tokens.output, price.output),
            (tokens.cache_read, price.cache_read),
            (tokens.cache_write, price.cache_write),
        ];
        let sum: u128 = parts
            .iter()
            .map(|(count, price)| u128::from(*count) * u128::from(*price))
            .sum();
        Some(u64::try_from(sum / u128::from(MICRO)).unwrap_or(u64::MAX))
    }
}

impl BudgetSettings {
    pub(super) fn put_limits(&mut self, value: &Value, origin: Origin) -> Result<(), String> {
        let text = read::text(value)?;
        let limits = Budget::parse(text).map_err(|should| format!("it is not {should}"))?;
        self.limits = Setting {
            value: limits,
            origin,
        };
        Ok(())
    }

    pub(super) fn put_prices(&mut self, value: &Value, origin: Origin) -> Result<(), String> {
        let table = value
            .as_table()
            .ok_or_else(|| format!("it is {}, not a table", value.type_str()))?;
        if table.len() > PRICES_MAX {
            return Err(format!("it has more than {PRICES_MAX} prices"));
        }
        let mut prices = BTreeMap::new();
        for (name, value) in table {
            let stars = name.matches('*').count();
            let is_sound = !name.is_empty()
                && name.len() <= NAME_BYTES_MAX
                && name.bytes().all(|byte| byte.is_ascii_graphic())
                && (stars == 0 || (stars == 1 && name.ends_with('*')));
            if !is_sound {
                return Err(format!(
                    "`{name}` is no name of a model, which may end with `*`"
                ));
            }
            let price = price(value).map_err(|why| format!("`{name}`: {why}"))?;
            prices.insert(name.clone(), price);
        }
        self.prices = Setting {
            value: Prices(prices),
            origin,
        };
        Ok(())
    }
}

/// What is not said of the cache costs as much as input.
fn price(value: &Value) -> Result<Price, String> {
    let table = value
        .as_table()
        .ok_or_else(|| format!("it is {}, not a table", value.type_str()))?;
    let known = ["input", "output", "cache_read", "cache_write"];
    if let Some(other) = table.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(format!("`{other}` is none of `{}`", known.join("`, `")));
    }
    let one = |key: &str| table.get(key).map(money).transpose();
    let (Some(input), Some(output)) = (one("input")?, one("output")?) else {
        return Err("it needs `input` and `output`, in dollars for a million tokens".to_owned());
    };
    Ok(Price {
        input,
        output,
        cache_read: one("cache_read")?.unwrap_or(input),
        cache_write: one("cache_write")?.unwrap_or(input),
    })
}

fn money(value: &Value) -> Result<u64, String> {
    let whole = value
        .as_integer()
        .map(|whole| f64::from(i32::try_from(whole).unwrap_or(-1)));
    let Some(dollars) = whole.or(value.as_float()) else {
        return Err(format!("a price is {}, not a number", value.type_str()));
    };
    if !(0.0..=PRICE_MAX).contains(&dollars) {
        return Err("a price is not between 0 and 1,000,000 dollars".to_owned());
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked above: between 0 and 10^12"
    )]
    Ok((dollars * 1_000_000.0).round() as u64)
}

/// As it stands in the file.
pub(super) fn shown_prices(prices: &Prices) -> String {
    if prices.0.is_empty() {
        return String::new();
    }
    let one = |(name, price): (&String, &Price)| {
        format!(
            "{name:?} = {{ input = {}, output = {}, cache_read = {}, cache_write = {} }}",
            dollars(price.input),
            dollars(price.output),
            dollars(price.cache_read),
            dollars(price.cache_write)
        )
    };
    let all: Vec<String> = prices.0.iter().map(one).collect();
    format!("{{ {} }}", all.join(", "))
}

#[cfg(test)]
mod tests {
    use crate::settings::Settings;
    use box_api::egress::usage::Tokens;
    use std::path::Path;

    fn read(text: &str) -> Result<Settings, String> {
        let path = Path::new("/etc/box/config.toml");
        Settings::parse(path, text).map_err(|error| error.to_string())
    }

    const SOME: &str = "[budget]\nlimits = \"2M/day,5usd\"\n[budget.prices]\n\
        \"claude-*\" = { input = 3, output = 15.0, cache_read = 0.3, cache_write = 3.75 }\n\
        \"claude-big\" = { input = 10, output = 50 }\n";

    #[test]
    fn the_longest_name_that_fits_says_the_price() {
        let prices = read(SOME).unwrap().budget.prices.value;
        let tokens = Tokens {
            input: 1000,
            output: 100,
            cache_read: 10_000,
            cache_write: 0,
        };
        // 1000 × 3 + 100 × 15 + 10,000 × 0.3 millionths.
        assert_eq!(prices.cost_micro("claude-small", &tokens), Some(7_500));
        assert_eq!(prices.cost_micro("claude-big", &tokens), Some(115_000));
        assert_eq!(prices.cost_micro("gpt-x", &tokens), None);
        assert_eq!(prices.cost_micro("", &tokens), None);
    }

    #[test]
    fn prices_and_limits_are_shown_as_they_can_be_read_again() {
        let settings = read(SOME).unwrap();
        let shown = settings.shown().into_iter();
        let shown = shown.filter(|one| one.key.starts_with("budget."));
        let text: Vec<String> = shown
            .map(|one| format!("{} = {}", one.key, one.value))
            .collect();
        assert_eq!(read(&text.join("\n")).unwrap().budget, settings.budget);
    }

    #[test]
    fn what_is_no_price_is_named() {
        for (text, told) in [
            ("limits = \"2M/week\"", "`2M/day`"),
            ("prices = 3", "table"),
            ("prices = { a = { input = 1 } }", "`a`: it needs"),
            ("prices = { a = { input = 1, output = -1 } }", "between 0"),
            (
                "prices = { a = { input = 1, output = 1, tax = 2 } }",
                "`tax`",
            ),
            ("prices = { \"a*b\" = { input = 1, output = 1 } }", "`a*b`"),
        ] {
            let refused = read(&format!("[budget]\n{text}\n")).unwrap_err();
            assert!(refused.contains(told), "{refused}");
        }
    }
}
