//! `bench thread`: what a long journal costs, at a thousand, forty thousand and four hundred
//! thousand rows: appending, many followers, opening at the end, reading whole, memory.
//!
//! The measuring is a test of box-core (`journal::tests::long`), which without this is short.

use super::Form;
use crate::run::{command, finish};
use anyhow::{Result, bail};

const ROWS: [u64; 3] = [1_000, 40_000, 400_000];

pub(super) fn run(form: Form) -> Result<()> {
    match form {
        Form::Table => {}
        Form::Json => bail!("`bench thread` prints lines, not JSON"),
    }
    for rows in ROWS {
        let arguments = [
            "test",
            "-p",
            "box-core",
            "--lib",
            "--release",
            "journal::tests::long",
            "--",
            "--nocapture",
        ];
        let mut bench = command("cargo", &arguments);
        bench.env("BOX_BENCH_ROWS", rows.to_string());
        finish(bench)?;
    }
    Ok(())
}
