//! `cargo xtask soak --minutes N`: mixed traffic of many boxes through box-egress, with servers that
//! stall, reset and lie. Prints what was carried, what went wrong, and memory and descriptors of the
//! second and the last third; exit 1 if anything was lost or it grew.

use crate::run::{self, command, finish};
use crate::test::Package;
use anyhow::{Context as _, Result, bail};

const NEEDS: &[Package] = &[Package {
    program: "ip",
    package: "iproute2",
}];
const MINUTES: u64 = 30;

/// # Errors
/// Words that are not `--minutes N`.
pub(crate) fn parse(words: &[&str]) -> Result<u64> {
    match words {
        [] => Ok(MINUTES),
        ["--minutes", value] => {
            let minutes: u64 = value
                .parse()
                .with_context(|| format!("`{value}` is no number"))?;
            if minutes == 0 {
                bail!("a soak takes a minute at least");
            }
            Ok(minutes)
        }
        other => bail!("`{}` is not `--minutes N`", other.join(" ")),
    }
}

/// # Errors
/// When something was lost, or box-egress grew.
pub(crate) fn run(minutes: u64) -> Result<()> {
    crate::test::install(NEEDS)?;
    let bench = ["bench", "--package", "box-egress", "--bench", "soak"];
    run::run("cargo", &[&bench[..], &["--no-run"]].concat())?;
    let apart = ["--net", "--pid", "--fork", "--mount-proc", "--", "cargo"];
    let mut soak = command("unshare", &[&apart[..], &bench].concat());
    soak.args(["--offline", "--quiet", "--", &minutes.to_string()]);
    finish(soak)
}
