//! What the presets stand for on this machine, and the policy of a box.
//!
//! `balanced` (decision D32) is the package registries this machine's own clients are configured
//! for, the forges, and the hosts of every agent there is. No registry is named here.

mod registries;

pub use registries::Machine;

use crate::agents;
use crate::boxes::BoxRecord;
use crate::credentials::kinds;
use crate::github;
use crate::network::rules::{Rule, Ruling};
use crate::settings::Settings;
use box_api::control::NetPreset;
use box_api::egress::policy::{ENTRIES_MAX, Unlisted};
use box_api::egress::traffic::NetLimits;
use box_api::egress::{Entry, HostPattern, Network, Policy, PrivateEntry};

/// Where code lives, with the hosts their pages, archives and release files come from.
pub(crate) const FORGES: &[&str] = &[
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

/// Where agents log in, and where those logins are good that no credential of a kind here is for.
pub(crate) const LOGIN_HOSTS: &[&str] = &[
    "platform.claude.com",
    "console.anthropic.com",
    "auth.openai.com",
    "chatgpt.com",
];

/// An entry, what it says, and the level it stands at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Levelled {
    pub entry: Entry,
    pub ruling: Ruling,
    /// As [`box_api::network::PolicyEntry::from`] says it.
    pub from: String,
}

/// What an owner said about one box, and about all of theirs.
#[derive(Debug, Clone, Default)]
pub struct Own {
    pub rules: Vec<Rule>,
    pub private: Vec<PrivateEntry>,
    /// Hosts that belong to its accounts.
    pub helpers: Vec<HostPattern>,
}

/// The entries of the deployment.
pub fn of_deployment(settings: &Settings) -> Vec<Levelled> {
    let net = &settings.net;
    let at = |from: &str, ruling: Ruling, entries: &[Entry]| -> Vec<Levelled> {
        let levelled = entries.iter().map(|entry| Levelled {
            entry: entry.clone(),
            ruling,
            from: from.to_owned(),
        });
        levelled.collect()
    };
    let hosts = net.allowed_hosts.iter().flatten().cloned();
    let hosts: Vec<Entry> = hosts.map(Entry::Host).collect();
    [
        at("settings", Ruling::Allow, &net.allow.value),
        at("settings", Ruling::Deny, &net.deny.value),
        at("environment", Ruling::Allow, &hosts),
    ]
    .concat()
}

/// Why nobody can say what is denied to a box. It has no way out then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
    #[error("`{entry}` is a set the settings do not have: this box has no way out")]
    SetGone { entry: String },
    #[error("`{entry}` is denied and cannot be read any more: this box has no way out")]
    Denial { entry: String, from: &'static str },
}

/// Every entry that holds for a box, level by level.
///
/// # Errors
/// [`Unknown`], which names the entry.
pub fn levels(
    record: &BoxRecord,
    settings: &Settings,
    rules: &[Rule],
) -> Result<Vec<Levelled>, Unknown> {
    let mut all = of_deployment(settings);
    if let Some(name) = &record.settings.net_set {
        let set = settings.net.sets.value.get(name);
        let set = set.ok_or_else(|| Unknown::SetGone {
            entry: name.to_string(),
        })?;
        for (ruling, entries) in [(Ruling::Allow, &set.allow), (Ruling::Deny, &set.deny)] {
            all.extend(entries.iter().map(|entry| Levelled {
                entry: entry.clone(),
                ruling,
                from: format!("set {name}"),
            }));
        }
    }
    for rule in rules {
        let from = if rule.box_id.is_some() {
            "box"
        } else {
            "all boxes"
        };
        // Entries were parsed when they were written, perhaps by another build.
        match (Entry::parse(&rule.entry), rule.ruling) {
            (Ok(entry), ruling) => all.push(Levelled {
                entry,
                ruling,
                from: from.to_owned(),
            }),
            // Without it less is let through.
            (Err(_), Ruling::Allow) => {}
            (Err(_), Ruling::Deny) => {
                let entry = rule.entry.clone();
                return Err(Unknown::Denial { entry, from });
            }
        }
    }
    let own = record.allow.iter();
    let own = own.filter_map(|entry| Entry::parse(entry).ok());
    all.extend(own.map(|entry| Levelled {
        entry,
        ruling: Ruling::Allow,
        from: "box".to_owned(),
    }));
    Ok(all)
}

/// Every address there is: denied, they close even the hosts of credentials, which the policy does
/// not list. In halves, as a network of everything is no entry.
const EVERYWHERE: [&str; 4] = ["0.0.0.0/1", "128.0.0.0/1", "::/1", "8000::/1"];

/// The policy of a box that nobody knows what is denied to.
fn closed() -> Policy {
    let all = EVERYWHERE.iter().map(|text| Network::parse(text));
    Policy {
        // Each is one; a test looks.
        deny_networks: all.filter_map(Result::ok).collect(),
        ..Policy::nothing()
    }
}

/// The preset that holds for a box: with a list of hosts in the host's environment none lets
/// anything else through (spec C130).
pub fn preset(record: &BoxRecord, settings: &Settings) -> NetPreset {
    match &settings.net.allowed_hosts {
        Some(hosts) if !hosts.is_empty() => NetPreset::Locked,
        Some(_) | None => record.net,
    }
}

/// The policy a box is registered with. Reads the clients' settings, so it blocks for a moment.
pub fn of_box(
    record: &BoxRecord,
    settings: &Settings,
    machine: &Machine,
    own: Own,
    unlisted: Unlisted,
) -> Policy {
    let levels = match levels(record, settings, &own.rules) {
        Ok(levels) => levels,
        Err(unknown) => {
            tracing::warn!(id = %record.id, "{unknown}");
            return closed();
        }
    };
    let preset = preset(record, settings);
    let preset_hosts = match preset {
        NetPreset::Balanced => balanced(machine),
        NetPreset::Open | NetPreset::Locked => Vec::new(),
    };
    let mut policy = Policy {
        preset,
        preset_hosts,
        allow: own.helpers,
        private: own.private,
        unlisted,
        logins: record.settings.logins,
        login_scope: github::login_scope(record),
        limits: NetLimits {
            budget_bytes: record.settings.net_budget_bytes,
            connections: record.settings.net_connections,
        },
        ..Policy::nothing()
    };
    for levelled in levels {
        match (levelled.entry, levelled.ruling) {
            (Entry::Host(host), Ruling::Allow) => policy.allow.push(host),
            (Entry::Host(host), Ruling::Deny) => policy.deny.push(host),
            (Entry::Request(rule), Ruling::Allow) => policy.allow_requests.push(rule),
            (Entry::Request(rule), Ruling::Deny) => policy.deny_requests.push(rule),
            (Entry::Network(network), Ruling::Deny) => policy.deny_networks.push(network),
            // Refused wherever one is written.
            (Entry::Network(_), Ruling::Allow) => {}
        }
    }
    policy
}

/// What `balanced` stands for here.
pub fn balanced(machine: &Machine) -> Vec<HostPattern> {
    let agents = agents::profiles().flat_map(|profile| {
        let own = profile
            .credential
            .iter()
            .flat_map(|credential| &credential.hosts);
        profile.hosts.iter().chain(own)
    });
    let of_kinds = kinds::all().flat_map(|kind| kind.hosts.iter().chain(&kind.helper_hosts));
    let named = FORGES.iter().chain(LOGIN_HOSTS).copied();
    let named = named.chain(agents.chain(of_kinds).map(String::as_str));
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
