//! `bench start`: from asking for an isolated machine to the first act of a program in it.

use super::host::{Host, Launcher};
use super::peers;
use super::rows::Rows;
use super::stage::{Stage, size};
use anyhow::Result;

const ROUNDS: usize = 30;

pub(super) fn run() -> Result<Rows> {
    let stage = Stage::set_up()?;
    let cold = Host::start(&stage, "cold", "[pool]\nmax = \"off\"\n")?;
    let warm = Host::start(&stage, "warm", "")?;
    let mut contestants = peers::starting(&stage)?;
    contestants.push(Box::new(Launcher::cold(&stage)?));
    contestants.push(Box::new(Launcher::ahead(&stage)?));
    contestants.push(Box::new(cold.product_start(
        "product",
        "API call, row, sockets, running, exec; no pool",
    )));
    contestants.push(Box::new(warm.product_start(
        "product, from the pool",
        "the same with a box begun ahead",
    )));
    Rows::measure(size().of(ROUNDS, 2), &mut contestants)
}
