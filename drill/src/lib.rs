//! Attacks a box from inside and reports what was claimed against what was seen.
//!
//! A [`Probe`] is one attack and the same act against something allowed, its control. An attack that
//! fails proves nothing while its control fails too, so a probe holds only with both. Probes know
//! boxes through [`Stage`] alone; who builds one decides which engine is attacked.

mod answer;
mod command;
mod deployment;
mod internet;
mod mounts;
mod network;
mod probes;
mod product;
mod report;
mod stage;
mod within;

pub use answer::Answer;
pub use mounts::mounts_below;
pub use product::{Options, Product};
pub use report::{Attempt, Control, Finding, Outcome, ProbeReport, Report};
pub use stage::{Facts, Internet, Place, Ran, Stage, StageError};

use box_api::control::Profile;
use within::Within;

/// One attack with its control.
#[derive(Debug, Clone, Copy)]
pub struct Probe {
    /// How the report and SECURITY.md name it.
    pub name: &'static str,
    /// What is claimed, in one line.
    pub claim: &'static str,
    attempt: fn(&dyn Stage) -> Result<Finding, StageError>,
}

/// From where a probe attacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum From {
    Box,
    /// A container in the box.
    Container,
}

/// All probes of such boxes, in the order of the report.
fn probes_for(facts: &Facts) -> Vec<(From, &'static Probe)> {
    let from_box = probes::ALL.iter().map(|probe| (From::Box, probe));
    if !facts.nested {
        return from_box.collect();
    }
    let of_nested = probes::nested::ALL.iter().map(|probe| (From::Box, probe));
    let again = probes::FROM_WITHIN
        .iter()
        .map(|probe| (From::Container, probe));
    from_box.chain(again).chain(of_nested).collect()
}

/// The drill was told to end before it was through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the drill was stopped before it was through")]
pub struct Stopped;

/// Runs every probe, telling `watch` before each.
///
/// # Errors
/// [`Stopped`] once the stage says so.
pub fn run(stage: &dyn Stage, watch: &mut dyn FnMut(&Probe)) -> Result<Report, Stopped> {
    let facts = stage.facts();
    let mut reports = Vec::new();
    for (from, probe) in probes_for(facts) {
        watch(probe);
        let tried = match from {
            From::Box => (probe.attempt)(stage),
            From::Container => (probe.attempt)(&Within(stage)),
        };
        // A probe that could not be carried out has shown nothing: that is a failed control.
        let finding = tried.unwrap_or_else(|error| Finding::inconclusive(error.to_string()));
        if stage.is_stopped() {
            return Err(Stopped);
        }
        let report = ProbeReport::new(probe, finding);
        reports.push(match from {
            From::Box => report,
            From::Container => report.made_in_a_container(),
        });
    }
    let profile = match facts.profile {
        Profile::Locked => "locked",
        Profile::Root => "root",
    };
    Ok(Report {
        engine: facts.engine.clone(),
        profile: profile.to_owned(),
        nested: facts.nested,
        probes: reports,
    })
}
