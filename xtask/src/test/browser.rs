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
    Package {
        program: "python3",
        package: "python3-venv",
    },
];

/// What nextest calls the tests that drive a browser.
pub(super) const TESTS: &str = "binary(e2e) and test(/^e2e::(page|push)::/)";

/// What speaks to the host as its `OpenAPI` document says, in a version that was seen to work.
const SCHEMA_TESTER: &str = "schemathesis==4.32.5";

pub(super) fn run() -> Result<()> {
    let ui = run::top().join("ui");
    install(&ui)?;
    install_schema_tester(&run::top().join("target/tools/schemathesis"))?;
    for script in ["check", "test"] {
        let mut step = command("npm", &["run", "--silent", script]);
        step.current_dir(&ui);
        finish(step)?;
    }
    super::nextest(TESTS)
}

/// Into an environment of its own, unless it is there.
fn install_schema_tester(folder: &Path) -> Result<()> {
    let stamp = folder.join(".installed");
    if fs::read_to_string(&stamp).is_ok_and(|of| of == SCHEMA_TESTER) {
        return Ok(());
    }
    let pip = folder.join("bin/pip").display().to_string();
    let folder = folder.display().to_string();
    run::run("python3", &["-m", "venv", &folder])?;
    run::run(&pip, &["install", "--quiet", SCHEMA_TESTER])?;
    fs::write(&stamp, SCHEMA_TESTER)?;
    Ok(())
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
