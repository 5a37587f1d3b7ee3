//! `AgentPrepare`, `AgentList`, `Agent`.

use super::client::Client;
use crate::problem;
use box_api::Problem;
use box_api::control::{AgentAsk, AgentInfo, AgentLogin, AgentPacks, Outcome};
use box_core::Host;
use box_core::agents::profile::PackKind;
use box_core::agents::{self, AgentProfile, InUse, added};

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
    let agents = agents::profiles().map(|profile| info(host, profile));
    let faults = added::faults().into_iter().map(|fault| AgentInfo {
        agent: fault
            .file
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        title: String::new(),
        state: format!("not used: {fault}"),
    });
    Outcome::Agents {
        agents: agents.chain(faults).collect(),
    }
}

pub(super) async fn handle(
    host: &Host,
    client: &Client,
    asked: AgentAsk,
) -> Result<Outcome, Problem> {
    match asked {
        AgentAsk::Update { agent } => {
            let updated = client
                .with_progress(|progress| async move {
                    agents::update(host, agent.as_deref(), &*progress).await
                })
                .await;
            updated
                .map(|packs| done(host, packs))
                .map_err(problem::pack_update)
        }
        AgentAsk::Remove { agent, even_in_use } => {
            let in_use = if even_in_use {
                InUse::Goes
            } else {
                InUse::Stays
            };
            let removed = agents::remove(host, &agent, in_use).await;
            removed
                .map(|packs| done(host, packs))
                .map_err(|error| problem::agent_remove(error, &agent))
        }
        AgentAsk::Add(added) => {
            let opens = agents::add(host, added).await;
            opens.map(Outcome::AgentOpens).map_err(problem::agent_add)
        }
        AgentAsk::Login { agent } => {
            let profile = agents::find(&agent).map_err(problem::agent)?;
            Ok(Outcome::AgentLogin(AgentLogin {
                agent,
                kind: profile.credential.as_ref().map(|its| its.kind.clone()),
                hint: profile.login.clone(),
                inside: profile.login_inside.clone(),
            }))
        }
    }
}

fn done(host: &Host, packs: AgentPacks) -> Outcome {
    let agents = agents::profiles().map(|profile| info(host, profile));
    Outcome::AgentPacks(AgentPacks {
        agents: agents.collect(),
        ..packs
    })
}

fn info(host: &Host, profile: &AgentProfile) -> AgentInfo {
    let state = match (profile.pack, agents::installed(profile, &host.paths.data)) {
        (PackKind::BuiltIn, _) => "built in".to_owned(),
        (PackKind::InBox, _) => "added, in the box".to_owned(),
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
