//! `cargo xtask bench <name>`: measures beside the named peers, in one run, interleaved.
//!
//! Every round runs each contestant once, in turn, so that whatever else the machine does falls on
//! all of them alike. What is printed is the median and the spread over the rounds; ratios hold
//! inside one run only.

mod cockpit;
mod copies;
mod density;
mod egress;
mod exec;
mod host;
mod image;
mod peers;
mod rows;
pub(crate) mod socket;
mod stage;
mod start;
mod thread;

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

#[derive(Clone, Copy)]
enum Bench {
    /// Gives times, which are printed here.
    Times(fn() -> Result<rows::Rows>),
    /// Has other figures and prints them itself.
    Figures(fn(Form) -> Result<()>),
}

const BENCHES: &[(&str, Bench)] = &[
    ("start", Bench::Times(start::run)),
    ("exec", Bench::Times(exec::run)),
    ("density", Bench::Figures(density::run)),
    ("clone", Bench::Times(copies::clones)),
    ("snapshot", Bench::Times(copies::snapshots)),
    ("image", Bench::Times(image::run)),
    ("egress", Bench::Figures(egress::run)),
    ("thread", Bench::Figures(thread::run)),
    ("cockpit", Bench::Figures(cockpit::run)),
];

pub(crate) fn run(name: &str, form: Form) -> Result<()> {
    let Some((_, bench)) = BENCHES.iter().find(|(known, _)| *known == name) else {
        let known: Vec<&str> = BENCHES.iter().map(|(name, _)| *name).collect();
        bail!("no bench `{name}`; there are {}", known.join(", "));
    };
    let times = match *bench {
        Bench::Figures(print) => return print(form),
        Bench::Times(times) => times,
    };
    let Some(rows) = stage::in_own_network(times)? else {
        return Ok(());
    };
    match form {
        Form::Table => rows.print_table(),
        Form::Json => rows.print_json(),
    }
    Ok(())
}
