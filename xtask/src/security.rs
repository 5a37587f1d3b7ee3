//! `cargo xtask security`: runs the drill in every kind of box and copies its table into SECURITY.md.
//!
//! The table is never written by hand: what stands there is what a drill printed.

use crate::run;
use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

const BEGIN: &str = "<!-- drill: begin (written by `cargo xtask security`) -->";
const END: &str = "<!-- drill: end -->";
/// A column each: its title, and the options of `box drill`.
const KINDS: [(&str, &[&str]); 3] = [
    ("`locked`", &["--profile", "locked"]),
    ("`root`", &["--profile", "root"]),
    ("`root --nested`", &["--nested"]),
];
/// What a kind of box has no such probe says.
const NO_SUCH: &str = "–";

/// What `box drill --json` prints.
#[derive(Deserialize)]
struct Report {
    engine: String,
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
    KINDS
        .iter()
        .map(|(_, options)| {
            let words = [&["drill", "--json"][..], *options].concat();
            let mut command = run::command(&program, &words);
            command.env("BOX_DATA_DIR", crate::test::seed_dir());
            let printed = run::output(command)?;
            serde_json::from_str(&printed).context("the drill did not print its report")
        })
        .collect()
}

fn table(reports: &[Report]) -> Result<String> {
    // Boxes that hold containers meet every probe there is.
    let Some(all) = reports.iter().max_by_key(|report| report.probes.len()) else {
        bail!("no report")
    };
    let titles = KINDS.map(|(title, _)| title).join(" | ");
    let mut lines = vec![
        format!("Engine `{}`, {} probes.", all.engine, all.probes.len()),
        String::new(),
        format!("| Probe | Claim | Control | {titles} |"),
        format!("| --- | --- | ---{} |", " | ---".repeat(KINDS.len())),
    ];
    for probe in &all.probes {
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
        return NO_SUCH.to_owned();
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
