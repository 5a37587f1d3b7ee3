//! Becoming somebody else.

use crate::{Finding, Place, Probe, Stage, StageError};
use box_api::control::Profile;

pub(super) const PROBE: Probe = Probe {
    name: "user-ids",
    claim: "no process becomes another user (`locked`), or one from outside the box's range (`root`); setuid bits do nothing",
    attempt,
};

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let outside_range: &[&[&str]] = &[&["setuid", "70000"], &["setgid", "70000"]];
    let mut attacks = stage.attempts(Place::Target, outside_range)?;
    let mut controls = stage.attempts(Place::Outside, outside_range)?;
    // Whoever a process is already it may become, so the act itself works.
    let own = match stage.facts().profile {
        Profile::Locked => "1020",
        Profile::Root => "0",
    };
    controls.push(stage.attempt(Place::Target, &["setuid", own])?);
    match stage.facts().profile {
        Profile::Locked => {
            attacks.extend(stage.attempts(
                Place::Target,
                &[&["setuid", "0"], &["setgid", "0"], &["setgroups", "0"]],
            )?);
            // Whatever setuid program the image has, nobody gains by it.
            attacks.push(stage.shell_attempt(
                Place::Target,
                "for program in /bin/su /usr/bin/passwd /usr/bin/newgrp; do \
                 test -u $program && exit 0; done; exit 1",
            )?);
        }
        Profile::Root if !stage.facts().one_id => {
            controls.push(stage.attempt(Place::Target, &["setuid", "1020"])?);
        }
        Profile::Root => {}
    }
    Ok(Finding::judge(&attacks, &controls))
}
