//! `box usage`: what models cost, by box, thread, day and model, and what is left of budgets.

use super::{Ended, Print};
use crate::client::unexpected;
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::output::{Format, Output, table, visible};
use box_api::BoxName;
use box_api::budget::{
    BudgetState, Measure, ModelUsage, USAGE_DAYS_MAX, UsageAsk, UsageLine, grouped,
};
use box_api::control::{Outcome, Request};
use box_api::egress::usage::Tokens;

/// Show what models cost: tokens and money by box, thread, day and model
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box usage\n  \
    box usage demo --days 30\n  \
    box usage --json\n\n\
    Read by the way out in the answers of models, so of every agent that uses an account of the box.\n\
    What a box may cost: `box set demo budget=2M/day,300k/thread`; in money too, once the settings\n\
    have prices (`[budget.prices]`).")]
pub(super) struct Args {
    /// Only this box
    #[arg(value_name = "NAME", value_parser = BoxName::parse)]
    name: Option<BoxName>,
    /// Days back, today among them (UTC)
    #[arg(long, value_name = "COUNT", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=i64::from(USAGE_DAYS_MAX)))]
    days: u32,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: Args) -> Ended {
    let mut output = args.print.output();
    let client = host::reach(&mut output, OtherBuild::Bear)?;
    let request = Request::ModelUsage(UsageAsk {
        name: args.name,
        days: args.days,
    });
    let outcome = client.ask(&mut output, &request)?;
    let Outcome::ModelUsage(usage) = outcome else {
        return Err(unexpected(&outcome));
    };
    match output.format() {
        Format::Json => output.object(&usage)?,
        Format::Text => show(&mut output, &usage, args.days)?,
    }
    Ok(0)
}

fn show(output: &mut Output, usage: &ModelUsage, days: u32) -> Result<(), Complaint> {
    if usage.lines.is_empty() {
        let days = if days == 1 { "today" } else { "in these days" };
        output.note(&format!("no model was asked anything {days}"));
    } else {
        output.data(lines(usage).as_bytes())?;
    }
    for budget in &usage.budgets {
        output.note(&left(budget));
    }
    let unread: u64 = usage.lines.iter().map(|line| line.unread).sum();
    if unread > 0 {
        output.note(&format!(
            "{} answers had no figures that could be read: what they cost is not in here",
            grouped(unread)
        ));
    }
    // Without any price nobody counts in money.
    if usage.lines.iter().any(|line| line.cost_micro.is_some()) {
        for model in &usage.without_price {
            output.note(&format!(
                "`{}` has no price in the settings: what it cost is not known",
                visible(model)
            ));
        }
    }
    if usage.more {
        output.note("there is more; `--days` and a box's name say how much of what");
    }
    Ok(())
}

fn lines(usage: &ModelUsage) -> String {
    let heading = [
        "DAY",
        "BOX",
        "THREAD",
        "MODEL",
        "ANSWERS",
        "INPUT",
        "OUTPUT",
        "CACHE READ",
        "CACHE WRITTEN",
        "USD",
    ];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    rows.extend(usage.lines.iter().map(row));
    if usage.lines.len() > 1 {
        rows.push(sum(&usage.lines));
    }
    table::columns(&rows)
}

fn row(line: &UsageLine) -> Vec<String> {
    let mut row = vec![
        line.day.clone(),
        line.name.to_string(),
        line.thread
            .map_or_else(|| "-".to_owned(), |thread| thread.to_string()),
        if line.model.is_empty() {
            "-".to_owned()
        } else {
            visible(&line.model).into_owned()
        },
        grouped(line.answers),
    ];
    row.extend(counts(&line.tokens));
    row.push(money(line.cost_micro));
    row
}

fn sum(lines: &[UsageLine]) -> Vec<String> {
    let (mut tokens, mut answers, mut cost) = (Tokens::default(), 0, None);
    for line in lines {
        tokens.add(&line.tokens);
        answers += line.answers;
        if let Some(more) = line.cost_micro {
            *cost.get_or_insert(0) += more;
        }
    }
    let mut row = vec!["together".to_owned()];
    row.extend(["", "", ""].map(str::to_owned));
    row.push(grouped(answers));
    row.extend(counts(&tokens));
    row.push(money(cost));
    row
}

fn counts(tokens: &Tokens) -> [String; 4] {
    [
        grouped(tokens.input),
        grouped(tokens.output),
        grouped(tokens.cache_read),
        grouped(tokens.cache_write),
    ]
}

fn money(cost_micro: Option<u64>) -> String {
    cost_micro.map_or_else(|| "-".to_owned(), box_api::budget::dollars)
}

fn left(budget: &BudgetState) -> String {
    let whose = match budget.thread {
        Some(thread) => format!("thread {thread} of box `{}`", budget.name),
        None => format!("box `{}`", budget.name),
    };
    let used = match budget.measure {
        Measure::Tokens => grouped(budget.used),
        Measure::Money => box_api::budget::dollars(budget.used),
    };
    let of = budget.measure.shown(budget.of);
    format!("{whose}, budget {}: {used} of {of} used", budget.limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use box_api::BoxId;

    #[test]
    fn a_price_that_is_not_known_is_no_zero() {
        let line = |model: &str, cost_micro| UsageLine {
            box_id: BoxId::from_random([1; 10]),
            name: BoxName::parse("demo").unwrap(),
            thread: None,
            day: "2026-11-30".to_owned(),
            model: model.to_owned(),
            credential: "claude".to_owned(),
            tokens: Tokens {
                input: 1_234_567,
                output: 8,
                ..Tokens::default()
            },
            answers: 2,
            unread: 0,
            cost_micro,
        };
        let usage = ModelUsage {
            lines: vec![line("a\u{1b}[2J", Some(1_500_000)), line("", None)],
            ..ModelUsage::default()
        };
        let shown = lines(&usage);
        assert!(!shown.contains('\u{1b}'), "{shown}");
        let rows: Vec<&str> = shown.lines().collect();
        assert!(
            rows[1].contains("1,234,567") && rows[1].ends_with("1.50"),
            "{shown}"
        );
        assert!(rows[2].ends_with('-'), "{shown}");
        assert!(
            rows[3].starts_with("together") && rows[3].contains("2,469,134"),
            "{shown}"
        );
    }
}
