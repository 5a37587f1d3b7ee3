//! `bench start`: from asking for an isolated machine to the first act of a program in it.

use super::host::{Host, Launcher};
use super::peers;
use super::rows::Rows;
use super::stage::Stage;
use anyhow::Result;

const ROUNDS: usize = 30;

pub(super) fn run() -> Result<Rows> {
    let stage = Stage::set_up()?;
    let host = Host::start(&stage)?;
    let mut contestants = peers::starting(&stage)?;
    contestants.push(Box::new(Launcher::start(&stage)?));
    contestants.push(Box::new(host.product_start()));
    Rows::measure(ROUNDS, &mut contestants)
}
