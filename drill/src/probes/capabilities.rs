//! Capabilities, as the kernel tells them.

use crate::{Attempt, Finding, Place, Probe, Stage, StageError};
use box_api::control::Profile;

pub(super) const PROBE: Probe = Probe {
    name: "capabilities",
    claim: "no capability (`locked`), the seven of A14 (`root`) or one more where containers are allowed; no_new_privs and a filter in both",
    attempt,
};

/// `CHOWN`, `DAC_OVERRIDE`, `FOWNER`, `KILL`, `SETGID`, `SETUID`, `NET_BIND_SERVICE`
/// (capabilities(7)).
const SEVEN: u64 = 0x4eb;
/// `SETFCAP`, which maps uid 0 into a container.
const FOR_CONTAINERS: u64 = 1 << 31;

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let may = match stage.facts().profile {
        Profile::Locked => 0,
        Profile::Root if stage.facts().nested => SEVEN | FOR_CONTAINERS,
        Profile::Root => SEVEN,
    };
    let inside = stage.act(Place::Target, &["capabilities"])?;
    let outside = stage.act(Place::Outside, &["capabilities"])?;
    let hex = |answer: &crate::Answer, set: &str| {
        answer
            .word(set)
            .and_then(|word| u64::from_str_radix(word, 16).ok())
    };
    let attacks: Vec<Attempt> = ["eff", "prm", "inh", "bnd", "amb"]
        .iter()
        .map(|set| Attempt {
            what: format!("more than {may:x} in {set}"),
            worked: hex(&inside, set).is_none_or(|has| has & !may != 0),
            saw: inside.to_string(),
        })
        .chain(
            [("nnp", "1"), ("seccomp", "2")]
                .iter()
                .map(|(key, wanted)| Attempt {
                    what: format!("{key} is not {wanted}"),
                    worked: inside.word(key) != Some(wanted),
                    saw: inside.to_string(),
                }),
        )
        .collect();
    let controls = [Attempt {
        what: "see capabilities outside".to_owned(),
        worked: hex(&outside, "eff").is_some_and(|has| has & !SEVEN != 0),
        saw: outside.to_string(),
    }];
    Ok(Finding::judge(&attacks, &controls))
}
