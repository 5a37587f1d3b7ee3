//! `cargo xtask bench <name>`: measures beside the named peers, in one run, interleaved.
//!
//! Every round runs each contestant once, in turn, so that whatever else the machine does falls on
//! all of them alike. What is printed is the median and the spread over the rounds; ratios hold
//! inside one run only.

mod copies;
mod exec;
mod host;
mod image;
mod peers;
mod rows;
pub(crate) mod socket;
mod stage;
mod start;

use anyhow::{Result, bail};

/// How the rows are printed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Form {
    Table,
    Json,
}

/// A thing that can be measured: one round, in nanoseconds.
pub(crate) trait Contestant {
    /// What ran, as the row names it.
    fn name(&self) -> &'static str;
    /// What a reader must know to compare it fairly.
    fn remark(&self) -> &'static str;
    fn round(&mut self) -> Result<u64>;
}

type Bench = fn() -> Result<rows::Rows>;

const BENCHES: &[(&str, Bench)] = &[
    ("start", start::run),
    ("exec", exec::run),
    ("clone", copies::clones),
    ("snapshot", copies::snapshots),
    ("image", image::run),
];

pub(crate) fn run(name: &str, form: Form) -> Result<()> {
    let Some((_, bench)) = BENCHES.iter().find(|(known, _)| *known == name) else {
        let known: Vec<&str> = BENCHES.iter().map(|(name, _)| *name).collect();
        bail!("no bench `{name}`; there are {}", known.join(", "));
    };
    let Some(rows) = stage::in_own_network(*bench)? else {
        return Ok(());
    };
    match form {
        Form::Table => rows.print_table(),
        Form::Json => rows.print_json(),
    }
    Ok(())
}
