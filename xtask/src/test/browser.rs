//! Part `browser`: the page's own checks, then the page in Chromium at a real host.

use super::Package;
use crate::run::{self, command, finish};
use anyhow::{Result, bail};
use std::fs;
use std::path::Path;

pub(super) const NEEDS: &[Package] = &[
    Package {
        program: "ip",
        package: "iproute2",
    },
    Package {
        program: "mmdebstrap",
        package: "mmdebstrap",
    },
    Package {
        program: "npm",
        package: "npm",
    },
    Package {
        program: "chromium",
        package: "chromium",
    },
];

/// What nextest calls the tests that drive a browser.
pub(super) const TESTS: &str = "binary(e2e) and test(/^e2e::page::/)";

pub(super) fn run() -> Result<()> {
    let ui = run::top().join("ui");
    install(&ui)?;
    for script in ["check", "test"] {
        let mut step = command("npm", &["run", "--silent", script]);
        step.current_dir(&ui);
        finish(step)?;
    }
    super::nextest(TESTS)
}

/// The packages of the lock beside the page's sources, unless they are there.
fn install(ui: &Path) -> Result<()> {
    let lock = fs::read(ui.join("package-lock.json"))?;
    let stamp = ui.join("node_modules/.installed");
    if fs::read(&stamp).is_ok_and(|of| of == lock) {
        return Ok(());
    }
    let words = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
    let mut step = command("npm", &words);
    step.current_dir(ui);
    finish(step)?;
    if !ui.join("node_modules").is_dir() {
        bail!("`npm ci` made no folder `node_modules`");
    }
    fs::write(&stamp, lock)?;
    Ok(())
}
