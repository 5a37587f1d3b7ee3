//! `cargo xtask bench <name>`: measures beside the named peers, in one run, interleaved.

use anyhow::{Result, bail};

/// How the rows are printed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Form {
    Table,
    Json,
}

pub(crate) fn run(name: &str, _form: Form) -> Result<()> {
    bail!("no bench `{name}`")
}
