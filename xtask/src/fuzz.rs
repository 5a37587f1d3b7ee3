//! `cargo xtask fuzz --minutes N [--seed S]`: each fuzz target of box-egress for so long.
//!
//! The targets are tests; here they only go on for longer, from another seed each time. A failure
//! prints its input and its seed: put the input into `crates/box-egress/tests/corpus`.

use crate::run::{command, finish};
use anyhow::{Context as _, Result, bail};

/// How long, and from where.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    minutes: u64,
    /// Absent: from this process's number, so that two runs differ.
    seed: Option<u64>,
}

impl Plan {
    /// # Errors
    /// Words that are none of `--minutes N` and `--seed S`.
    pub(crate) fn parse(words: &[&str]) -> Result<Self> {
        let mut plan = Self {
            minutes: 10,
            seed: None,
        };
        for pair in words.chunks(2) {
            let [name, value] = pair else {
                bail!("`{}` wants a number", pair.join(" "));
            };
            let number = value
                .parse()
                .with_context(|| format!("`{value}` is no number"))?;
            match *name {
                "--minutes" => plan.minutes = number,
                "--seed" => plan.seed = Some(number),
                other => bail!("`{other}` is none of `--minutes` and `--seed`"),
            }
        }
        Ok(plan)
    }
}

/// # Errors
/// When a target fails.
pub(crate) fn run(plan: Plan) -> Result<()> {
    let seed = plan.seed.unwrap_or_else(|| u64::from(std::process::id()));
    let seconds = plan.minutes.saturating_mul(60);
    let arguments = [
        "test",
        "-p",
        "box-egress",
        "--lib",
        "fuzz::",
        "--",
        "--nocapture",
    ];
    let mut fuzz = command("cargo", &arguments);
    fuzz.env("BOX_FUZZ_SECONDS", seconds.to_string());
    fuzz.env("BOX_FUZZ_SEED", seed.to_string());
    finish(fuzz)
}
