//! Failures of packs and profiles of agents.

use super::{Failed, Refused, Usage, agent, hinted, pack, store, told};
use box_api::Problem;
use box_core::agents::{AddError, RemoveError, UpdateError};

pub(crate) fn pack_update(error: UpdateError) -> Problem {
    match error {
        UpdateError::Unknown(unknown) => agent(unknown),
        UpdateError::Install(error) => pack(error),
        UpdateError::Store(error) => store(error),
        UpdateError::NoPack(..) => {
            told(Usage, "no-pack", &error).hinted("there is nothing to bring up to date")
        }
        UpdateError::Erase { .. } => told(Failed, "pack-not-removed", &error),
    }
}

pub(crate) fn agent_remove(error: RemoveError, name: &str) -> Problem {
    match error {
        RemoveError::Unknown(unknown) => agent(unknown),
        RemoveError::Store(error) => store(error),
        RemoveError::BuiltIn(_) => told(Usage, "built-in", &error),
        RemoveError::NotInstalled(_) => told(Usage, "agent-not-installed", &error),
        RemoveError::InUse { .. } => told(Refused, "agent-in-use", &error).hinted(format!(
            "`box agent remove {name} --force` removes it all the same; its threads go on once it \
             is back and their box was restarted"
        )),
        RemoveError::Erase { .. } => told(Failed, "pack-not-removed", &error),
    }
}

pub(crate) fn agent_add(error: AddError) -> Problem {
    match error {
        AddError::Store(error) => store(error),
        AddError::Fault(_) => hinted(
            told(Usage, "bad-profile", &error),
            Some("a profile is described in docs/concepts/agents.md; nothing was added"),
        ),
        AddError::TooMany => {
            told(Refused, "too-many-agents", &error).hinted("`box agent remove` makes room")
        }
        AddError::Write { .. } => told(Failed, "agent-not-added", &error),
    }
}
