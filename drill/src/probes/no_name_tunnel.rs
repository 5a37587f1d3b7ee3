//! Names as a way to carry data out.

use crate::{Attempt, Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "no-name-tunnel",
    claim: "a name nobody allowed is never asked upstream, however it is asked",
    attempt,
};

/// What a refused name leads to, so that a program can be told why; see docs of `box-egress`.
const REFUSAL_ADDRESS: &str = "198.19.255.254";

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let internet = &stage.facts().internet;
    let carried = format!("c2VjcmV0.{}", internet.refused_name);
    let mut attacks = Vec::new();
    for name in [&carried, &internet.refused_name] {
        let answer = stage.act(Place::Target, &["resolve", name])?;
        let elsewhere = answer.is_ok() && answer.detail() != Some(REFUSAL_ADDRESS);
        attacks.push(Attempt {
            what: format!("resolve {name}"),
            worked: elsewhere,
            saw: answer.detail().unwrap_or("no answer").to_owned(),
        });
    }
    attacks.push(Attempt {
        what: "carry a word to the name server".to_owned(),
        worked: stage.was_asked_upstream("c2vjcmv0"),
        saw: "the name server was asked".to_owned(),
    });
    let fetched = stage.shell_attempt(
        Place::Target,
        &format!(
            "curl --silent --fail --max-time 5 http://{}/",
            internet.allowed_name
        ),
    )?;
    let controls = [
        stage.attempt(Place::Target, &["resolve", &internet.allowed_name])?,
        fetched,
        Attempt {
            what: "see a question at the name server".to_owned(),
            worked: stage.was_asked_upstream(&internet.allowed_name),
            saw: "it was not asked".to_owned(),
        },
    ];
    Ok(Finding::judge(&attacks, &controls))
}
