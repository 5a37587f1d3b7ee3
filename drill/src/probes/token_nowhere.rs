//! The credential itself is nowhere in the box.

use crate::{Attempt, Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "token-nowhere",
    claim: "no environment, command line or file of a box holds a credential's bytes",
    attempt,
};

/// Looks for a word in every environment, command line and file that can be read. The word comes in
/// two pieces and goes through a file, so that the search does not find itself.
fn search((head, tail): (&str, &str)) -> String {
    format!(
        "umask 077; printf '%s%s' '{head}' '{tail}' > /dev/shm/drill-word; \
         cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null \
         | grep --text --quiet -F -f /dev/shm/drill-word \
         || grep -R --text --quiet -F -f /dev/shm/drill-word \
         \"$HOME\" /workspace /tmp /run /etc /opt/box 2>/dev/null; \
         found=$?; rm -f /dev/shm/drill-word; exit $found"
    )
}

/// Whether a word is found in the target.
pub(super) fn find(stage: &dyn Stage, what: &str, word: &str) -> Result<Attempt, StageError> {
    let ran = stage.shell(Place::Target, &search(word.split_at(word.len() / 2)))?;
    Ok(Attempt {
        what: what.to_owned(),
        worked: ran.code == 0,
        saw: ran.code.to_string(),
    })
}

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let facts = stage.facts();
    let attacks = [find(stage, "find the credential", &facts.credential)?];
    let controls = [find(
        stage,
        "find the placeholder",
        &facts.target_placeholder,
    )?];
    Ok(Finding::judge(&attacks, &controls))
}
