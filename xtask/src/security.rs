//! `cargo xtask security`: runs the drill in both profiles and copies its table into SECURITY.md.
//!
//! The table is never written by hand: what stands there is what a drill printed.

use crate::run;
use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

const BEGIN: &str = "<!-- drill: begin (written by `cargo xtask security`) -->";
const END: &str = "<!-- drill: end -->";
const PROFILES: &[&str] = &["locked", "root"];

/// What `box drill --json` prints.
#[derive(Deserialize)]
struct Report {
    engine: String,
    profile: String,
    probes: Vec<Probe>,
}

#[derive(Deserialize)]
struct Probe {
    name: String,
    claim: String,
    outcome: String,
    control: String,
    #[serde(default)]
    reason: Option<String>,
}

pub(crate) fn write() -> Result<()> {
    let table = table(&drill()?)?;
    // Read only now: a drill takes a while, and somebody may write meanwhile.
    let path = run::top().join("SECURITY.md");
    let text = std::fs::read_to_string(&path).context("could not read SECURITY.md")?;
    std::fs::write(&path, with_table(&text, &table)?).context("could not write SECURITY.md")?;
    println!("SECURITY.md has the table of this run");
    Ok(())
}

pub(crate) fn check() -> Result<()> {
    let table = table(&drill()?)?;
    let text = std::fs::read_to_string(run::top().join("SECURITY.md"))?;
    if with_table(&text, &table)? != text {
        bail!("SECURITY.md does not have the drill's table; run `cargo xtask security`");
    }
    Ok(())
}

fn drill() -> Result<Vec<Report>> {
    crate::test::make_seed(crate::test::Build::Debug)?;
    let program = run::top().join("target/debug/box");
    let program = program.to_string_lossy();
    PROFILES
        .iter()
        .map(|profile| {
            let words = ["drill", "--profile", profile, "--json"];
            let mut command = run::command(&program, &words);
            command.env("BOX_DATA_DIR", crate::test::seed_dir());
            let printed = run::output(command)?;
            serde_json::from_str(&printed).context("the drill did not print its report")
        })
        .collect()
}

fn table(reports: &[Report]) -> Result<String> {
    let Some(first) = reports.first() else {
        bail!("no report")
    };
    let mut lines = vec![
        format!("Engine `{}`, {} probes.", first.engine, first.probes.len()),
        String::new(),
        "| Probe | Claim | Control | `locked` | `root` |".to_owned(),
        "| --- | --- | --- | --- | --- |".to_owned(),
    ];
    for probe in &first.probes {
        let outcomes: Vec<String> = reports
            .iter()
            .map(|report| outcome_in(report, &probe.name))
            .collect();
        lines.push(format!(
            "| `{}` | {} | {} | {} |",
            probe.name,
            probe.claim,
            probe.control,
            outcomes.join(" | ")
        ));
    }
    Ok(lines.join("\n"))
}

fn outcome_in(report: &Report, name: &str) -> String {
    let Some(probe) = report.probes.iter().find(|probe| probe.name == name) else {
        return format!("missing in `{}`", report.profile);
    };
    match &probe.reason {
        Some(reason) if probe.outcome == "not-applicable" => format!("n/a: {reason}"),
        _ => probe.outcome.clone(),
    }
}

fn with_table(text: &str, table: &str) -> Result<String> {
    let begin = text.find(BEGIN).context("SECURITY.md has no begin mark")? + BEGIN.len();
    let end = text.find(END).context("SECURITY.md has no end mark")?;
    Ok(format!("{}\n\n{table}\n\n{}", &text[..begin], &text[end..]))
}
