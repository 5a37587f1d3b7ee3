//! A repository whose settings name programs, brought home.

use super::spare::Spare;
use crate::{Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "pull-runs-nothing",
    claim: "`box pull` and `box diff` run no program a repository in the box names: no hook, filter, pager or monitor",
    attempt,
};

const BOX: &str = "repository";

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let scratch = &stage.facts().scratch;
    let git = "git -c user.name=drill -c user.email=drill@drill.invalid";
    let outside = |line: String| stage.shell_attempt(Place::Outside, &line);
    // Verbs are spoken in this very folder.
    let prepared = outside(format!(
        "cd {scratch} && git init --quiet . && echo one > file && git add file && \
         {git} commit --quiet --message one"
    ))?;
    let (repository, made) = Spare::new(stage, BOX, &["--here", "--force"])?;
    // Inside, the same line does nothing and harms nobody.
    let run = format!("touch {scratch}/ran 2>/dev/null; cat");
    let armed = repository.attempt(&format!(
        "cd /workspace && cd $(dirname $(find . -name .git -print -quit)) && \
         git config core.fsmonitor '{run}' && git config core.hooksPath hooks && \
         git config filter.f.clean '{run}' && git config filter.f.smudge '{run}' && \
         git config diff.d.textconv '{run}' && git config core.pager '{run}' && \
         git config core.sshCommand '{run}' && \
         mkdir -p hooks && for hook in pre-commit post-commit post-checkout reference-transaction \
         post-merge pre-push post-receive update; do \
         printf '#!/bin/sh\n{run}\n' > hooks/$hook; chmod +x hooks/$hook; done; \
         echo '* filter=f diff=d' > .gitattributes; echo two > file; true"
    ))?;
    let commit = repository.attempt(&format!(
        "cd /workspace && cd $(dirname $(find . -name .git -print -quit)) && \
         {git} -c core.fsmonitor= -c core.hooksPath=/nowhere -c filter.f.clean=cat \
         commit --quiet --all --message two"
    ))?;
    let pulled = stage.verb(&["pull", BOX])?;
    stage.verb(&["diff", BOX])?;
    let attacks = [outside(format!("test -e {scratch}/ran"))?];
    let controls = [
        prepared,
        made,
        armed,
        commit,
        pulled,
        outside(format!(
            "cd {scratch} && git log --format=%s box/{BOX} | grep -q two"
        ))?,
        outside(format!(
            "{run} && test -e {scratch}/ran && rm {scratch}/ran"
        ))?,
    ];
    Ok(Finding::judge(&attacks, &controls))
}
