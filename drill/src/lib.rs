//! Attacks a box from inside and reports what was claimed against what was seen.
//!
//! A [`Probe`] is one attack and the same act against something allowed, its control. An attack that
//! fails proves nothing while its control fails too, so a probe holds only with both. Probes know
//! boxes through [`Stage`] alone; who builds one decides which engine is attacked.

mod answer;
mod internet;
mod network;
mod probes;
mod product;
mod report;
mod stage;

pub use answer::Answer;
pub use product::{Options, Product};
pub use report::{Attempt, Control, Finding, Outcome, ProbeReport, Report};
pub use stage::{Facts, Internet, Place, Ran, Stage, StageError};

use box_api::control::Profile;

/// One attack with its control.
#[derive(Debug, Clone, Copy)]
pub struct Probe {
    /// How the report and SECURITY.md name it.
    pub name: &'static str,
    /// What is claimed, in one line.
    pub claim: &'static str,
    attempt: fn(&dyn Stage) -> Result<Finding, StageError>,
}

/// All probes, in the order of the report.
pub fn probes() -> &'static [Probe] {
    probes::ALL
}

/// Runs every probe, telling `watch` before each.
pub fn run(stage: &dyn Stage, watch: &mut dyn FnMut(&Probe)) -> Report {
    let probes = probes()
        .iter()
        .map(|probe| {
            watch(probe);
            // A probe that could not be carried out has shown nothing: that is a failed control.
            let finding = (probe.attempt)(stage)
                .unwrap_or_else(|error| Finding::inconclusive(error.to_string()));
            ProbeReport::new(probe, finding)
        })
        .collect();
    let facts = stage.facts();
    let profile = match facts.profile {
        Profile::Locked => "locked",
        Profile::Root => "root",
    };
    Report {
        engine: facts.engine.clone(),
        profile: profile.to_owned(),
        probes,
    }
}
