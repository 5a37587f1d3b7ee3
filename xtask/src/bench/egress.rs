//! `bench egress`: the way out beside squid, tinyproxy and mitmproxy. The measuring is a bench of
//! box-egress itself, which has the stage of its tests; this sets the peers up and runs it in a
//! network of its own.

use super::Form;
use crate::run::{self, command, finish};
use crate::test::Package;
use anyhow::{Context as _, Result};
use std::path::PathBuf;

/// Squid as Debian builds it with TLS, which is what opens connections.
const PEERS: &[Package] = &[
    Package {
        program: "ip",
        package: "iproute2",
    },
    Package {
        program: "squid",
        package: "squid-openssl",
    },
    Package {
        program: "tinyproxy",
        package: "tinyproxy-bin",
    },
];
/// The newest that Debian 12's Python takes.
const MITMPROXY: &str = "mitmproxy==11.0.2";

pub(super) fn run(form: Form) -> Result<()> {
    crate::test::install(PEERS)?;
    let mitmdump = mitmproxy()?;
    let bench = ["bench", "--package", "box-egress", "--bench", "egress"];
    run::run("cargo", &[&bench[..], &["--no-run"]].concat())?;
    let apart = ["--net", "--pid", "--fork", "--mount-proc", "--", "cargo"];
    let mut measured = command("unshare", &[&apart[..], &bench].concat());
    match form {
        Form::Table => measured.args(["--offline", "--quiet"]),
        Form::Json => measured.args(["--offline", "--quiet", "--", "--json"]),
    };
    measured.env("BOX_BENCH_MITMDUMP", mitmdump);
    finish(measured)
}

/// Its program, from the machine's own `pip`, kept below the target folder.
fn mitmproxy() -> Result<PathBuf> {
    let folder = run::top().join("target/bench-mitmproxy");
    let program = folder.join("bin/mitmdump");
    if program.is_file() {
        return Ok(program);
    }
    let text = folder
        .to_str()
        .context("the target folder's name is no text")?;
    run::run("python3", &["-m", "venv", text])?;
    let pip = folder.join("bin/pip");
    let pip = pip
        .to_str()
        .context("the target folder's name is no text")?;
    run::run(pip, &["install", "--quiet", MITMPROXY])?;
    Ok(program)
}
