//! Set-uid files and owners, carried into a clone whose ids are others.

use super::setuid_files::AS_NOBODY;
use super::spare::Spare;
use crate::{Attempt, Finding, Place, Probe, Stage, StageError};
use box_api::control::{BoxInfo, Profile};

pub(super) const PROBE: Probe = Probe {
    name: "setuid-across-clones",
    claim: "a set-uid file gives nothing in a clone either, belongs to the same user inside, and is out of reach outside",
    attempt,
};

const SOURCE: &str = "suid-source";
const CLONE: &str = "suid-clone";
const MADE: &str = "/workspace/suid";

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let facts = stage.facts();
    let program = &facts.program_inside;
    let (source, made) = Spare::new(stage, SOURCE, &[])?;
    let set = source.attempt(&format!("cp {program} {MADE} && chmod 6755 {MADE}"))?;
    let (clone, cloned) = Spare::made_by(stage, CLONE, &["new", CLONE, "--from", SOURCE])?;
    let outside = format!("{}/suid", workspace(stage, CLONE)?);
    let reached = |who: &str| {
        let open = format!("{} open {outside}", facts.program_outside);
        stage.shell_attempt(Place::Outside, &format!("{who} {open} | grep -q '\"ok\"'"))
    };
    let owner = match facts.profile {
        Profile::Locked => "1020",
        Profile::Root => "0",
    };
    let is = |id: &str| {
        clone.attempt(&format!(
            "{AS_NOBODY} {MADE} capabilities | grep -q '\"uid={id} '"
        ))
    };
    let mut attacks = vec![
        reached(AS_NOBODY)?,
        clone.attempt(&format!("test $(stat -c %u {MADE}) != {owner}"))?,
    ];
    let mut controls = vec![
        made,
        set,
        cloned,
        reached("")?,
        clone.attempt(&format!("test -u {MADE}"))?,
    ];
    // With one id there is nobody else to call it.
    if facts.profile == Profile::Root && !facts.one_id {
        attacks.push(is("0")?);
        controls.push(is("65534")?);
    }
    let ids = [SOURCE, CLONE].map(|name| range(stage, name));
    let [source_ids, clone_ids] = ids;
    let (source_ids, clone_ids) = (source_ids?, clone_ids?);
    // An ordinary user has one range, which all boxes of that user share.
    attacks.extend(facts.of_root.then(|| Attempt {
        what: "have the source's ids on the machine".to_owned(),
        worked: source_ids == clone_ids,
        saw: clone_ids,
    }));
    Ok(Finding::judge(&attacks, &controls))
}

fn info(stage: &dyn Stage, name: &str) -> Result<BoxInfo, StageError> {
    let words = ["info", name, "--json"];
    let ran = stage.run(Place::Verb, &words, std::time::Duration::from_secs(10))?;
    serde_json::from_str(&ran.stdout).map_err(|error| StageError {
        what: words.join(" "),
        why: format!("{error}: {}", ran.stderr),
    })
}

fn workspace(stage: &dyn Stage, name: &str) -> Result<String, StageError> {
    Ok(info(stage, name)?.workspace.unwrap_or_default())
}

/// Who the box's ids are on the machine.
fn range(stage: &dyn Stage, name: &str) -> Result<String, StageError> {
    let pid = info(stage, name)?.pid.unwrap_or_default();
    let line = format!("cat /proc/{pid}/uid_map");
    Ok(stage.shell(Place::Outside, &line)?.stdout)
}
