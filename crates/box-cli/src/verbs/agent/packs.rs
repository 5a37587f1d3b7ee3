//! `box agent update` and `box agent remove`.

use crate::client::unexpected;
use crate::host::{self, OtherBuild};
use crate::output::{Format, Output};
use crate::verbs::Ended;
use box_api::control::{AgentAsk, AgentPacks, Outcome, Request};

/// Whether what boxes use goes too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InUse {
    Stays,
    Goes,
}

pub(super) fn update(output: &mut Output, agent: Option<String>) -> Ended {
    let packs = ask(output, AgentAsk::Update { agent })?;
    if output.format() == Format::Json {
        output.object(&packs)?;
        return Ok(0);
    }
    for pack in &packs.removed {
        output.note(&format!("removed the old pack `{pack}`"));
    }
    for pack in &packs.kept {
        let boxes = packs.boxes.join("`, `");
        output.note(&format!("kept the old pack `{pack}`: `{boxes}` may use it"));
    }
    if !packs.kept.is_empty() {
        output.note("hint: stop those boxes, then `box agent update` again, or `box prune`");
    }
    let installed = packs.agents.iter();
    let installed: Vec<_> = installed
        .filter(|agent| agent.state.starts_with("installed"))
        .collect();
    if installed.is_empty() {
        output.note("no agent is installed");
    }
    for agent in installed {
        output.note(&format!("agent `{}`: {}", agent.agent, agent.state));
    }
    Ok(0)
}

pub(super) fn remove(output: &mut Output, agent: &str, in_use: InUse) -> Ended {
    let asked = AgentAsk::Remove {
        agent: agent.to_owned(),
        even_in_use: in_use == InUse::Goes,
    };
    let packs = ask(output, asked)?;
    match output.format() {
        Format::Json => output.object(&packs)?,
        Format::Text => {
            for pack in &packs.removed {
                output.note(&format!("removed `{pack}`"));
            }
        }
    }
    Ok(0)
}

fn ask(output: &mut Output, asked: AgentAsk) -> Result<AgentPacks, crate::complaint::Complaint> {
    let client = host::reach(output, OtherBuild::Bear)?;
    let outcome = client.ask(output, &Request::Agent(asked))?;
    let Outcome::AgentPacks(packs) = outcome else {
        return Err(unexpected(&outcome));
    };
    Ok(packs)
}
