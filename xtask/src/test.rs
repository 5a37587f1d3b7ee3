//! `cargo xtask test [part]`: sets up what the tests need, then runs them.
//!
//! One list names every part; `all` runs them in order.

use crate::run::{self, command, finish};
use anyhow::{Context as _, Result, bail};

/// One part of the test run.
struct Part {
    name: &'static str,
    run: fn() -> Result<()>,
}

const PARTS: &[Part] = &[
    Part {
        name: "house",
        run: house,
    },
    Part {
        name: "unit",
        run: unit,
    },
];

pub(crate) fn all() -> Result<()> {
    for part in PARTS {
        run_part(part)?;
    }
    Ok(())
}

pub(crate) fn part(name: &str) -> Result<()> {
    let Some(part) = PARTS.iter().find(|part| part.name == name) else {
        let names: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
        bail!("no part `{name}`; there are {}", names.join(", "));
    };
    run_part(part)
}

fn run_part(part: &Part) -> Result<()> {
    println!("== {}", part.name);
    (part.run)().with_context(|| format!("part `{}`", part.name))
}

fn house() -> Result<()> {
    run::run("cargo", &["fmt", "--all", "--check"])?;
    run::run(
        "cargo",
        &[
            "clippy",
            "--quiet",
            "--workspace",
            "--all-targets",
            "--",
            "--deny",
            "warnings",
        ],
    )?;
    nextest(&["--package", "xtask"])
}

fn unit() -> Result<()> {
    nextest(&["--workspace", "--exclude", "xtask"])
}

fn nextest(arguments: &[&str]) -> Result<()> {
    if !run::has("cargo-nextest") {
        println!("cargo-nextest is missing: installing");
        run::run("cargo", &["install", "--locked", "cargo-nextest"])?;
    }
    let mut words = vec!["nextest", "run", "--no-tests", "fail"];
    words.extend(arguments);
    let tests = command("cargo", &words);
    finish(tests)
}
