//! `box doctor`: what this machine can and cannot do, each finding with its fix.
//!
//! Nothing is believed that can be tried: what a box needs of the kernel is done in a process of its
//! own, see `attempt`. Nothing is changed.

mod attempt;
mod bundle;
mod finding;
mod host;
mod kernel;
mod limits;
mod programs;
mod storage;

pub(super) use finding::{Finding, Level, Package};
pub(super) use programs::on_path;

use super::{Ended, Print};
use crate::complaint::Complaint;
use crate::host as own;
use crate::output::{Format, Ink, Output};
use box_server::paths::Paths;
use std::path::PathBuf;

/// Tell what this machine can and cannot do, and how to mend it
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  box doctor\n  box doctor --json\n  box doctor --bundle report.tar\n\n\
    Changes nothing. Exit code 1: a box could not run here.\n\
    --bundle writes the findings and the host's log for a report: no prompts, no names of boxes,\n\
    no secrets."
)]
pub(super) struct Args {
    /// Write everything a report needs to this tar
    #[arg(long, value_name = "FILE")]
    bundle: Option<PathBuf>,
    /// One thing, tried in this very process
    #[arg(long = "try", hide = true, value_name = "WHAT")]
    attempt: Option<String>,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: Args) -> Ended {
    let mut output = args.print.output();
    if let Some(name) = args.attempt {
        return attempt::answer(&mut output, &name);
    }
    let paths = own::paths()?;
    output.progress("trying what a box needs");
    let mut findings = of_machine(&paths);
    findings.extend(host::look(&mut output, &paths));
    if let Some(file) = &args.bundle {
        bundle::write(file, &findings, &paths)?;
        output.note(&format!("`{}` is written", file.display()));
    }
    let stands = findings.iter().all(Finding::lets_boxes_run);
    match output.format() {
        Format::Json => output.object(&Report {
            can_run: stands,
            findings: &findings,
        })?,
        Format::Text => show(&mut output, &findings)?,
    }
    Ok(u8::from(!stands))
}

/// What `--json` prints.
#[derive(Debug, serde::Serialize)]
struct Report<'a> {
    can_run: bool,
    findings: &'a [Finding],
}

/// Everything that can be told without a host, in the order a person is told.
pub(super) fn of_machine(paths: &Paths) -> Vec<Finding> {
    let mut findings = kernel::look(paths);
    findings.push(limits::look());
    findings.extend(storage::look(paths));
    findings.extend(programs::look(paths));
    findings
}

fn show(output: &mut Output, findings: &[Finding]) -> Result<(), Complaint> {
    let paint = output.paint();
    let mut lines = Vec::new();
    for finding in findings {
        let (ink, mark) = finding.level.mark();
        lines.push(format!("{} {}\n", paint.with(ink, mark), finding.what));
        let below = [
            ("cause:", Ink::Bold, &finding.cause),
            ("fix:", Ink::Cyan, &finding.fix),
        ];
        let below = below.iter().filter_map(|(word, ink, said)| {
            let said = said.as_ref()?;
            Some(format!("    {} {said}\n", paint.with(*ink, word)))
        });
        lines.extend(below);
    }
    output.data(lines.concat().as_bytes())?;
    let count = |wanted: Level| {
        let those = findings.iter().filter(|finding| finding.level == wanted);
        those.count()
    };
    let bad = count(Level::Bad) + count(Level::Missing);
    output.note(&match (bad, count(Level::Less)) {
        (0, 0) => "boxes run here".to_owned(),
        (0, 1) => "boxes run here, with less in one way".to_owned(),
        (0, less) => format!("boxes run here, with less in {less} ways"),
        (bad, _) => format!("a box could not run here: {bad} to mend"),
    });
    Ok(())
}
