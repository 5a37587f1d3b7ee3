//! The rows of a bench: medians and spread over interleaved rounds.

use super::Contestant;
use anyhow::{Context as _, Result};

/// One contestant's times.
struct Row {
    name: &'static str,
    remark: &'static str,
    sorted_ns: Vec<u64>,
}

/// What a bench found.
pub(crate) struct Rows {
    rows: Vec<Row>,
}

impl Rows {
    /// Runs every contestant once a round; the first round warms caches and is not counted.
    pub(crate) fn measure(rounds: usize, contestants: &mut [Box<dyn Contestant>]) -> Result<Self> {
        let mut rows: Vec<Row> = contestants
            .iter()
            .map(|who| Row {
                name: who.name(),
                remark: who.remark(),
                sorted_ns: Vec::with_capacity(rounds),
            })
            .collect();
        for round in 0..=rounds {
            for (who, row) in contestants.iter_mut().zip(&mut rows) {
                let ns = who
                    .round()
                    .with_context(|| format!("bench row `{}`", row.name))?;
                row.sorted_ns.extend((round > 0).then_some(ns));
            }
        }
        for row in &mut rows {
            row.sorted_ns.sort_unstable();
        }
        Ok(Self { rows })
    }

    pub(crate) fn print_table(&self) {
        println!(
            "{:<28} {:>10} {:>10} {:>10} {:>5}  remark",
            "row", "median ms", "p10", "p90", "n"
        );
        for row in &self.rows {
            println!(
                "{:<28} {:>10.3} {:>10.3} {:>10.3} {:>5}  {}",
                row.name,
                row.percentile_ms(50),
                row.percentile_ms(10),
                row.percentile_ms(90),
                row.sorted_ns.len(),
                row.remark
            );
        }
        println!("load: {}", load());
    }

    pub(crate) fn print_json(&self) {
        let rows: Vec<serde_json::Value> = self
            .rows
            .iter()
            .map(|row| {
                serde_json::json!({
                    "name": row.name,
                    "median_ms": row.percentile_ms(50),
                    "p10_ms": row.percentile_ms(10),
                    "p90_ms": row.percentile_ms(90),
                    "n": row.sorted_ns.len(),
                    "remark": row.remark,
                })
            })
            .collect();
        println!(
            "{}",
            serde_json::json!({ "machine": machine(), "rows": rows })
        );
    }
}

impl Row {
    #[expect(
        clippy::cast_precision_loss,
        reason = "milliseconds for a person; 52 bits are plenty"
    )]
    fn percentile_ms(&self, percent: usize) -> f64 {
        let last = self.sorted_ns.len().saturating_sub(1);
        let ns = self
            .sorted_ns
            .get(last * percent / 100)
            .copied()
            .unwrap_or_default();
        ns as f64 / 1e6
    }
}

fn first_line(path: &str) -> String {
    std::fs::read_to_string(path)
        .ok()
        .and_then(|text| text.lines().next().map(str::to_owned))
        .unwrap_or_default()
}

fn load() -> String {
    first_line("/proc/loadavg")
}

pub(super) fn machine() -> serde_json::Value {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .unwrap_or_default();
    serde_json::json!({
        "kernel": first_line("/proc/sys/kernel/osrelease"),
        "cpu": model.trim_matches([' ', '\t', ':']),
        "cpus": std::thread::available_parallelism().map_or(0, std::num::NonZero::get),
        "load": load(),
    })
}
