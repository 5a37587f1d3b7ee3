//! What the presets stand for on this machine, and the policy of a box.
//!
//! `balanced` (decision D32) is the package registries this machine's own clients are configured
//! for, the forges, and the hosts of every agent there is. No registry is named here.

mod registries;

pub use registries::Machine;

use crate::agents;
use crate::boxes::BoxRecord;
use crate::network::rules::Lists;
use crate::settings::Settings;
use box_api::control::NetPreset;
use box_api::egress::policy::{ENTRIES_MAX, Unlisted};
use box_api::egress::{HostPattern, Policy};

/// Where code lives, with the hosts their pages, archives and release files come from.
const FORGES: &[&str] = &[
    "github.com",
    "*.github.com",
    "*.githubusercontent.com",
    "github.githubassets.com",
    "gitlab.com",
    "*.gitlab.com",
    "*.gitlab-static.net",
    "codeberg.org",
    "bitbucket.org",
    "*.bitbucket.org",
    "git.sr.ht",
];

/// The policy a box is registered with. Reads the clients' settings, so it blocks for a moment.
pub fn of_box(
    record: &BoxRecord,
    settings: &Settings,
    machine: &Machine,
    rules: Lists,
    unlisted: Unlisted,
) -> Policy {
    let preset_hosts = match record.net {
        NetPreset::Balanced => balanced(machine),
        NetPreset::Open | NetPreset::Locked => Vec::new(),
    };
    // Entries were parsed when the box was made; one a newer build wrote is left out.
    let own = record
        .allow
        .iter()
        .filter_map(|entry| HostPattern::parse(entry).ok());
    let mut allow = settings.allow.value.clone();
    allow.extend(own);
    allow.extend(rules.allow);
    Policy {
        preset: record.net,
        preset_hosts,
        allow,
        deny: rules.deny,
        unlisted,
    }
}

/// What `balanced` stands for here.
pub fn balanced(machine: &Machine) -> Vec<HostPattern> {
    let agents = agents::profiles().iter().flat_map(|profile| {
        let own = profile
            .credential
            .iter()
            .flat_map(|credential| &credential.hosts);
        profile.hosts.iter().chain(own)
    });
    let named = FORGES.iter().copied().chain(agents.map(String::as_str));
    let mut hosts: Vec<HostPattern> = named
        .filter_map(|host| HostPattern::parse(host).ok())
        .collect();
    hosts.extend(machine.registries());
    let mut kept: Vec<HostPattern> = Vec::with_capacity(hosts.len());
    for host in hosts {
        if !kept.contains(&host) {
            kept.push(host);
        }
    }
    kept.truncate(ENTRIES_MAX);
    kept
}

#[cfg(test)]
mod tests;
