//! What a clone takes along, and what it must not.

use super::spare::Spare;
use crate::{Attempt, Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "clone-identity",
    claim: "a clone is another machine: other machine-id, other placeholder, and the source's placeholder is worth nothing in it",
    attempt,
};

const BOX: &str = "twin";
const TOKEN: &str = "printenv CLAUDE_CODE_OAUTH_TOKEN";

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let facts = stage.facts();
    let mark = stage.shell_attempt(Place::Target, "echo mine > /workspace/drill-cloned")?;
    let (twin, made) = Spare::made_by(stage, BOX, &["new", BOX, "--from", "target"])?;
    let source_id = stage.shell(Place::Target, "cat /etc/machine-id")?.stdout;
    let own_id = twin.shell("cat /etc/machine-id")?.stdout;
    let own = twin.shell(TOKEN)?.stdout.trim().to_owned();
    let ask = |placeholder: &str| {
        twin.attempt(&format!(
            "curl --silent --fail --max-time 5 --header 'authorization: Bearer {placeholder}' \
             https://{}/v1/models",
            facts.internet.credential_name
        ))
    };
    let attacks = [
        Attempt {
            what: "have the same machine-id".to_owned(),
            worked: own_id.trim() == source_id.trim() && !own_id.trim().is_empty(),
            saw: own_id,
        },
        Attempt {
            what: "have the same placeholder".to_owned(),
            worked: own == facts.target_placeholder,
            saw: "the same".to_owned(),
        },
        ask(&facts.target_placeholder)?,
        twin.attempt(&format!(
            "grep -R --text --quiet '{}' $HOME /workspace /etc /run /tmp 2>/dev/null",
            facts.target_placeholder
        ))?,
    ];
    let controls = [
        mark,
        made,
        ask(&own)?,
        twin.attempt("grep -q mine /workspace/drill-cloned")?,
    ];
    Ok(Finding::judge(&attacks, &controls))
}
