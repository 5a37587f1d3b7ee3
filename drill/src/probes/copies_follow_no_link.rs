//! Links in a box that lead to the machine, followed by `box cp`.

use crate::{Attempt, Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "copies-follow-no-link",
    claim: "a link in a box leads `box cp` to no file of the machine, neither to read nor to write it",
    attempt,
};

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let scratch = &stage.facts().scratch;
    let word = &stage.facts().host_word;
    let there = |what: &str, line: String| -> Result<Attempt, StageError> {
        let ran = stage.shell(Place::Outside, &line)?;
        Ok(Attempt {
            what: what.to_owned(),
            worked: ran.code == 0,
            saw: format!("{line}: {}", ran.code),
        })
    };
    let copy = |from: &str, to: &str| stage.verb(&["cp", from, to]);
    let prepared = there(
        "write a file of the machine",
        format!("mkdir -p {scratch}/out && echo {word} > {scratch}/out/secret"),
    )?;
    let linked = stage.shell_attempt(
        Place::Target,
        &format!(
            "cd /workspace && ln -sfn {scratch}/out drill-folder && \
             ln -sfn {scratch}/out/secret drill-file && echo theirs > drill-plain"
        ),
    )?;
    // Whether they fail or do something else with a link is not what counts here.
    copy("target:drill-file", &format!("{scratch}/got-file"))?;
    copy("target:drill-folder/secret", &format!("{scratch}/got-deep"))?;
    copy("target:drill-folder", &format!("{scratch}/got-folder"))?;
    let plain = format!("{scratch}/mine");
    let mine = there("write another", format!("echo mine > {plain}"))?;
    copy(&plain, "target:drill-folder/planted")?;
    copy(&plain, "target:drill-file")?;
    let holds = |name: &str| {
        format!(
            "test -f {scratch}/{name} -a ! -L {scratch}/{name} && grep -q {word} {scratch}/{name}"
        )
    };
    let attacks = [
        there("read through a link", holds("got-file"))?,
        there("read below a linked folder", holds("got-deep"))?,
        there(
            "read a linked folder",
            format!("test ! -L {scratch}/got-folder && grep -rq {word} {scratch}/got-folder"),
        )?,
        there(
            "write below a linked folder",
            format!("test -e {scratch}/out/planted"),
        )?,
        there(
            "write through a link",
            format!("! grep -q {word} {scratch}/out/secret"),
        )?,
    ];
    let controls = [
        prepared,
        linked,
        mine,
        copy("target:drill-plain", &format!("{scratch}/got-plain"))?,
        there("read a copy", format!("grep -q theirs {scratch}/got-plain"))?,
        copy(&plain, "target:drill-mine")?,
        stage.shell_attempt(Place::Target, "grep -q mine /workspace/drill-mine")?,
    ];
    Ok(Finding::judge(&attacks, &controls))
}
