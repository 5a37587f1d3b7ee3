//! Set-uid files, which would be root's on the machine.

use crate::{Finding, Place, Probe, Stage, StageError};
use box_api::control::Profile;

pub(super) const PROBE: Probe = Probe {
    name: "setuid-files",
    claim: "a set-uid file made in a box gives nothing in it, and no user of the machine can reach it",
    attempt,
};

const MADE: &str = "/workspace/drill-suid";
/// Somebody without rights, whatever the drill lends to the programs it starts.
pub(super) const AS_NOBODY: &str = "setpriv --reuid=65534 --regid=65534 --clear-groups \
    --inh-caps=-all --ambient-caps=-all";

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let facts = stage.facts();
    let program = &facts.program_inside;
    let made = stage.shell_attempt(
        Place::Target,
        &format!("cp {program} {MADE} && chmod 6755 {MADE} && test -u {MADE}"),
    )?;
    let outside = format!("{}/drill-suid", facts.target_workspace);
    let reached = |who: &str| {
        let open = format!("{} open {outside}", facts.program_outside);
        stage.shell_attempt(Place::Outside, &format!("{who} {open} | grep -q '\"ok\"'"))
    };
    let becomes = |wanted: &str| {
        stage.shell_attempt(
            Place::Target,
            &format!("{AS_NOBODY} {MADE} capabilities 2>/dev/null | grep -q '\"uid={wanted} '"),
        )
    };
    let mut attacks = vec![
        reached(AS_NOBODY)?,
        stage.attempt(
            Place::Target,
            &["setxattr", MADE, "security.capability", "x"],
        )?,
    ];
    let mut controls = vec![made, reached("")?];
    // With one id there is nobody else to call it.
    if facts.profile == Profile::Root && !facts.one_id {
        attacks.push(becomes("0")?);
        controls.push(becomes("65534")?);
    }
    Ok(Finding::judge(&attacks, &controls))
}
