//! Links, hard and soft, over a snapshot and back.

use super::spare::Spare;
use crate::{Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "undo-follows-no-link",
    claim: "a link that leads to the machine leads neither a snapshot nor a restore there, and is a link afterwards",
    attempt,
};

const BOX: &str = "undo";

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let scratch = &stage.facts().scratch;
    let word = &stage.facts().host_word;
    let outside = |line: String| stage.shell_attempt(Place::Outside, &line);
    let prepared = outside(format!(
        "mkdir -p {scratch}/undo && echo {word} > {scratch}/undo/secret"
    ))?;
    let (undo, made) = Spare::new(stage, BOX, &[])?;
    let linked = undo.attempt(&format!(
        "cd /workspace && mkdir d && echo a > a && ln a b && ln -s {scratch}/undo/secret s && \
         ln -s {scratch}/undo t && echo in > d/in"
    ))?;
    let taken = stage.verb(&["snapshot", BOX, "one"])?;
    // Where the restore has to put a folder and a file, links wait.
    let turned = undo.attempt(&format!(
        "cd /workspace && rm -r d a && ln -s {scratch}/undo d && ln -s {scratch}/undo/secret a"
    ))?;
    let restored = stage.verb(&["restore", BOX, "one", "--force"])?;
    let attacks = [
        outside(format!("! grep -q {word} {scratch}/undo/secret"))?,
        outside(format!("test $(ls {scratch}/undo | wc -l) -ne 1"))?,
        undo.attempt("test -f /workspace/s -a ! -L /workspace/s")?,
        undo.attempt("cat /workspace/s /workspace/t/secret")?,
    ];
    let controls = [
        prepared,
        made,
        linked,
        taken,
        turned,
        restored,
        undo.attempt("test -L /workspace/s -a -L /workspace/t -a ! -L /workspace/d")?,
        undo.attempt("cd /workspace && grep -q in d/in && grep -q a a")?,
        undo.attempt("cd /workspace && test $(stat -c %i a) = $(stat -c %i b)")?,
    ];
    Ok(Finding::judge(&attacks, &controls))
}
