//! `bench cockpit`: the page in Chromium at a host of its own: a long thread, a connection that was
//! lost, many clients. The figures are made by `ui/e2e/bench.mjs`; `cargo xtask test browser` sets up what
//! it needs.

use super::Form;
use super::host::Host;
use super::stage::{self, Size, Stage};
use crate::run::{self, command};
use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

/// One figure of the page.
#[derive(Debug, Serialize, Deserialize)]
struct Figure {
    what: String,
    value: f64,
    unit: String,
}

pub(super) fn run(form: Form) -> Result<()> {
    let Some(figures) = stage::in_own_network(measure)? else {
        return Ok(());
    };
    match form {
        Form::Json => println!("{}", serde_json::to_string(&figures)?),
        Form::Table => {
            for Figure { what, value, unit } in figures {
                println!("{what:<36} {value:>10.1} {unit}");
            }
        }
    }
    Ok(())
}

fn measure() -> Result<Vec<Figure>> {
    let stage = Stage::set_up()?;
    let host = Host::start(&stage, "cockpit", "")?;
    let script = run::top().join("ui/e2e/bench.mjs").display().to_string();
    let scale = match stage::size() {
        Size::Full => "full",
        Size::Small => "small",
    };
    let printed = run::output(command("node", &[&script, &host.page_link()?, scale]))?;
    printed
        .lines()
        .map(|line| serde_json::from_str(line).with_context(|| format!("no figure: {line}")))
        .collect()
}
