//! The profiles that were added to those of this program. One list for the process, as the settings
//! file they lie beside is one; filled when a deployment is opened, changed by `box agent add`.

use super::own::Fault;
use super::profile::AgentProfile;
use crate::credentials::kinds::{self, Kind};
use std::sync::{PoisonError, RwLock};

/// Agents that may be added.
pub const ADDED_MAX: usize = 32;

/// An agent that was added, and the kind of credential it brought.
#[derive(Debug)]
struct Added {
    profile: AgentProfile,
    kind: Option<Kind>,
}

#[derive(Debug)]
struct List {
    agents: Vec<&'static Added>,
    /// Files that could not be used.
    faults: Vec<Fault>,
}

static LIST: RwLock<List> = RwLock::new(List {
    agents: Vec::new(),
    faults: Vec::new(),
});

fn agents() -> Vec<&'static Added> {
    let list = LIST.read().unwrap_or_else(PoisonError::into_inner);
    list.agents.clone()
}

/// The agents that were added, by name.
pub fn profiles() -> impl Iterator<Item = &'static AgentProfile> {
    agents().into_iter().map(|added| &added.profile)
}

/// The kinds of credentials they brought.
pub fn kinds() -> impl Iterator<Item = &'static Kind> {
    agents().into_iter().filter_map(|added| added.kind.as_ref())
}

/// Every kind but the one that this agent brought itself.
pub fn kinds_but_of(agent: &str) -> impl Iterator<Item = &'static Kind> {
    let others = agents()
        .into_iter()
        .filter(move |added| added.profile.name != agent);
    let others = others.filter_map(|added| added.kind.as_ref());
    kinds::of_program().iter().chain(others)
}

/// Files beside the settings that could not be used, and why.
pub fn faults() -> Vec<Fault> {
    let list = LIST.read().unwrap_or_else(PoisonError::into_inner);
    list.faults.clone()
}

/// Whether one more of this name has room.
pub(super) fn has_room(agent: &str) -> bool {
    let agents = agents();
    agents.len() < ADDED_MAX || agents.iter().any(|added| added.profile.name == agent)
}

/// Puts a checked profile into the list, in the place of one of its name. It stays in memory for as
/// long as the process lives: threads hold on to profiles, and few are ever added.
pub(super) fn put(profile: AgentProfile) -> &'static AgentProfile {
    let brings = profile
        .credential
        .as_ref()
        .is_some_and(|credential| !credential.shapes.is_empty());
    let kind = if brings {
        kinds::of_agent(&profile)
    } else {
        None
    };
    let added: &'static Added = Box::leak(Box::new(Added { profile, kind }));
    let mut list = LIST.write().unwrap_or_else(PoisonError::into_inner);
    let name = &added.profile.name;
    list.agents.retain(|other| other.profile.name != *name);
    list.agents.push(added);
    list.agents
        .sort_by(|one, other| one.profile.name.cmp(&other.profile.name));
    list.faults
        .retain(|fault| fault.file.file_stem() != Some(name.as_ref()));
    &added.profile
}

pub(super) fn take(agent: &str) {
    let mut list = LIST.write().unwrap_or_else(PoisonError::into_inner);
    list.agents.retain(|added| added.profile.name != agent);
}

/// Forgets all, for a deployment that is opened.
pub(super) fn clear() {
    let mut list = LIST.write().unwrap_or_else(PoisonError::into_inner);
    list.agents.clear();
    list.faults.clear();
}

pub(super) fn note(fault: Fault) {
    let mut list = LIST.write().unwrap_or_else(PoisonError::into_inner);
    list.faults.push(fault);
}
