//! The root file system: read-only, or the box's own.

use crate::{Finding, Place, Probe, Stage, StageError};
use box_api::control::Profile;

pub(super) const PROBE: Probe = Probe {
    name: "root-file-system",
    claim: "the root is read-only (`locked`), or what is written there stays in the box (`root`)",
    attempt,
};

const MARK: &str = "/usr/lib/drill-mark";

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    match stage.facts().profile {
        Profile::Locked => {
            let attacks = stage.attempts(
                Place::Target,
                &[
                    &["write", "/usr/bin/env"],
                    &["write", "/etc/passwd"],
                    &["write", "/opt/box/bin/box-guest"],
                    &["write", "/etc/ssl/certs/ca-certificates.crt"],
                    &["write", MARK],
                ],
            )?;
            let controls = stage.attempts(
                Place::Target,
                &[&["write", "/workspace/mark"], &["write", "/tmp/mark"]],
            )?;
            Ok(Finding::judge(&attacks, &controls))
        }
        Profile::Root => {
            let made = stage.shell_attempt(Place::Target, &format!("echo mine > {MARK}"))?;
            let attacks = [
                stage.attempt(Place::Sibling, &["open", MARK])?,
                stage.attempt(Place::Target, &["write", "/opt/box/bin/box-guest"])?,
            ];
            let controls = [made, stage.attempt(Place::Target, &["open", MARK])?];
            Ok(Finding::judge(&attacks, &controls))
        }
    }
}
