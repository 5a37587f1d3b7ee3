//! `cargo xtask faults decisions --runs N [--seed S]`: a user, a phone, a host and an agent under
//! kills and cuts, N times over.
//!
//! The runs are a test of box-core (`thread::driver::tests::faults`); here there are more of them,
//! or others. Each says what was lost, doubled, decided by nobody or missing in a journal, and with
//! which seed.

use crate::run::{command, finish};
use anyhow::{Context as _, Result, bail};

/// How many, and from where.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    runs: u64,
    seed: u64,
}

impl Plan {
    /// # Errors
    /// Words that are no model, or none of `--runs N` and `--seed S`.
    pub(crate) fn parse(words: &[&str]) -> Result<Self> {
        let mut plan = Self {
            runs: 10_000,
            seed: 1,
        };
        let Some((&"decisions", rest)) = words.split_first() else {
            bail!("there is one model: `decisions`");
        };
        for pair in rest.chunks(2) {
            let [name, value] = pair else {
                bail!("`{}` wants a number", pair.join(" "));
            };
            let number = value
                .parse()
                .with_context(|| format!("`{value}` is no number"))?;
            match *name {
                "--runs" => plan.runs = number,
                "--seed" => plan.seed = number,
                other => bail!("`{other}` is none of `--runs` and `--seed`"),
            }
        }
        Ok(plan)
    }
}

/// # Errors
/// When anything was lost, doubled, decided by nobody, or is missing in a journal.
pub(crate) fn run(plan: Plan) -> Result<()> {
    let arguments = [
        "test",
        "-p",
        "box-core",
        "--lib",
        "thread::driver::tests::faults::seeded",
        "--",
        "--nocapture",
    ];
    let mut faults = command("cargo", &arguments);
    faults.env("BOX_FAULT_RUNS", plan.runs.to_string());
    faults.env("BOX_FAULT_SEED", plan.seed.to_string());
    finish(faults)
}
