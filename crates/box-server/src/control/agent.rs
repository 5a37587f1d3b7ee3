//! `AgentPrepare`, `AgentList`.

use super::client::Client;
use crate::problem;
use box_api::Problem;
use box_api::control::{AgentInfo, Outcome};
use box_core::Host;
use box_core::agents::profile::PackKind;
use box_core::agents::{self, AgentProfile};

pub(super) async fn prepare(host: &Host, client: &Client, agent: &str) -> Result<Outcome, Problem> {
    let profile = agents::find(agent).map_err(problem::agent)?;
    let installed = client
        .with_progress(|progress| async move {
            agents::ensure(profile, &host.paths.data, &*progress).await
        })
        .await;
    installed.map_err(problem::pack)?;
    Ok(Outcome::Agents {
        agents: vec![info(host, profile)],
    })
}

pub(super) fn list(host: &Host) -> Outcome {
    let agents = agents::profiles().iter().map(|profile| info(host, profile));
    Outcome::Agents {
        agents: agents.collect(),
    }
}

fn info(host: &Host, profile: &AgentProfile) -> AgentInfo {
    let state = match (profile.pack, agents::installed(profile, &host.paths.data)) {
        (PackKind::BuiltIn, _) => "built in".to_owned(),
        (PackKind::Locked, Some(place)) => format!("installed {}", version(&place)),
        (PackKind::Locked, None) => "not installed".to_owned(),
    };
    AgentInfo {
        agent: profile.name.clone(),
        title: profile.title.clone(),
        state,
    }
}

/// A pack's folder is named for its version and its lock file: `<version>-<lock>`.
fn version(place: &std::path::Path) -> String {
    let folder = place.file_name().unwrap_or_default().to_string_lossy();
    folder
        .rsplit_once('-')
        .map_or_else(|| folder.to_string(), |(version, _)| version.to_owned())
}
