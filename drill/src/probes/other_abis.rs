//! The doors of other programs' system calls.

use crate::{Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "other-abis",
    claim: "the filter holds whichever way a system call is numbered: native, 32-bit, x32",
    attempt,
};

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let acts: &[&[&str]] = &[
        &["unshare-by", "native"],
        &["unshare-by", "i386"],
        &["unshare-by", "x32"],
    ];
    // The native one works where containers are allowed.
    let refused = &acts[usize::from(stage.facts().nested)..];
    let attacks = stage.attempts(Place::Target, refused)?;
    let mut controls = stage.attempts(Place::Outside, acts)?;
    // A kernel may be built without the other two.
    if let Some(native) = controls.first().filter(|native| native.worked).cloned() {
        controls.retain(|control| control.worked);
        controls.push(native);
    }
    Ok(Finding::judge(&attacks, &controls))
}
