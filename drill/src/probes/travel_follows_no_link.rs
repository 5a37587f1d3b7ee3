//! Links in a box that travels, and archives that are not what they say.

use super::spare::Spare;
use crate::{Attempt, Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "travel-follows-no-link",
    claim: "an export takes no file of the machine along, and an archive that is cut, changed or made up becomes no box",
    attempt,
};

const BOX: &str = "traveller";
const LANDED: &str = "landed";
const BAD: &str = "stowaway";

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let scratch = &stage.facts().scratch;
    let word = &stage.facts().host_word;
    let outside = |line: String| stage.shell_attempt(Place::Outside, &line);
    let prepared = outside(format!(
        "mkdir -p {scratch}/far && echo {word} > {scratch}/far/secret"
    ))?;
    let (traveller, made) = Spare::new(stage, BOX, &[])?;
    let linked = traveller.attempt(&format!(
        "cd /workspace && ln -s {scratch}/far/secret s && ln -s {scratch}/far t && \
         echo plain > plain && ln plain twin"
    ))?;
    let archive = format!("{scratch}/box.tar.zst");
    let exported = stage.verb(&["export", BOX, &archive, "--no-image"])?;
    let (landed, imported) =
        Spare::made_by(stage, LANDED, &["import", &archive, "--name", LANDED])?;
    let mut attacks = vec![
        landed.attempt("cat /workspace/s /workspace/t/secret")?,
        landed.attempt("test -e /workspace/s -a ! -L /workspace/s")?,
        landed.attempt("test -d /workspace/t -a ! -L /workspace/t")?,
    ];
    let broken = [
        format!("head -c $(($(stat -c %s {archive}) / 2)) {archive}"),
        format!("head -c 300 {archive}; printf turned; tail -c +308 {archive}"),
        "printf 'no archive at all'".to_owned(),
        format!("tar --create --absolute-names {scratch}/far/secret"),
    ];
    for line in broken {
        let bad = format!("{scratch}/bad.tar.zst");
        stage.shell(Place::Outside, &format!("({line}) > {bad}"))?;
        let (_stowaway, taken) = Spare::made_by(stage, BAD, &["import", &bad, "--name", BAD])?;
        let there = stage.verb(&["info", BAD])?;
        attacks.push(Attempt {
            what: format!("import what `{line}` made"),
            worked: taken.worked || there.worked,
            saw: taken.saw,
        });
    }
    let controls = [
        prepared,
        made,
        linked,
        exported,
        imported,
        landed.attempt("cd /workspace && test -L s -a -L t && grep -q plain plain")?,
        landed.attempt("cd /workspace && test $(stat -c %i plain) = $(stat -c %i twin)")?,
    ];
    Ok(Finding::judge(&attacks, &controls))
}
