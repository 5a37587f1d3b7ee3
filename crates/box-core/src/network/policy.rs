//! A box's policy as its owner sees and changes it.

use super::rules::{self, Rule, Ruling, Scope};
use crate::boxes::{self, BoxRecord};
use crate::credentials;
use crate::host::Host;
use crate::policy;
use crate::store::{Durability, StoreError};
use box_api::control::NetPreset;
use box_api::egress::{HostPattern, HostPatternError};
use box_api::network::{PolicyEntry, PolicyShown};
use std::collections::BTreeSet;

/// Entries one wish can name.
const ENTRIES_MAX: usize = 256;

/// Entries of one box, or of an owner for all of theirs; box-egress takes many more in a list.
const RULES_MAX: usize = 1024;

/// What is to be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    pub net: Option<NetPreset>,
    pub allow: Vec<String>,
    pub deny: Vec<String>,
    /// Entries to be taken away, whatever they say.
    pub remove: Vec<String>,
    pub scope: Scope,
}

/// Why a policy was not changed. Nothing of the wish was carried out then.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    #[error("could not use the entry `{entry}`")]
    Entry {
        entry: String,
        #[source]
        source: HostPatternError,
    },
    #[error("`{entry}` cannot be allowed and denied at once")]
    Both { entry: String },
    #[error("there is no entry `{entry}` to take away")]
    NoSuchEntry { entry: String },
    #[error("a preset belongs to one box")]
    PresetEverywhere,
    #[error("{count} entries are too many at once: {ENTRIES_MAX} at most")]
    TooMany { count: usize },
    #[error("{count} entries are too many: {RULES_MAX} at most")]
    Full { count: usize },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Changes what holds for a box, at once.
///
/// # Errors
/// [`PolicyError`]
pub async fn set(host: &Host, record: &BoxRecord, wish: Wish) -> Result<(), PolicyError> {
    let count = wish.allow.len() + wish.deny.len() + wish.remove.len();
    if count > ENTRIES_MAX {
        return Err(PolicyError::TooMany { count });
    }
    if wish.net.is_some() && wish.scope == Scope::Owner {
        return Err(PolicyError::PresetEverywhere);
    }
    let (allow, deny) = (parsed(&wish.allow)?, parsed(&wish.deny)?);
    if let Some(entry) = allow.iter().find(|entry| deny.contains(entry)) {
        return Err(PolicyError::Both {
            entry: entry.clone(),
        });
    }
    let remove = parsed(&wish.remove)?;
    let box_id = (wish.scope == Scope::Box).then_some(record.id);
    let (id, owner, net, at_ms) = (record.id, record.owner, wish.net, host.now_ms());
    let written = host.store.write(Durability::Full, move |rows| {
        let mut own = boxes::rows::get(rows, &id)?.map_or_else(Vec::new, |record| record.allow);
        let known = rules::of_scope(rows, &owner, box_id.as_ref())?;
        let is_there =
            |entry: &String| known.contains(entry) || (box_id.is_some() && own.contains(entry));
        // Everything is looked at before anything is written.
        if let Some(entry) = remove.iter().find(|entry| !is_there(entry)) {
            let entry = entry.clone();
            return Ok(Err(PolicyError::NoSuchEntry { entry }));
        }
        let count = known.len() + allow.len() + deny.len();
        if count > RULES_MAX {
            return Ok(Err(PolicyError::Full { count }));
        }
        if box_id.is_some() {
            own.retain(|entry| !remove.contains(entry));
        }
        for entry in &remove {
            rules::remove(rows, &owner, box_id.as_ref(), entry)?;
        }
        for (entries, ruling) in [(&allow, Ruling::Allow), (&deny, Ruling::Deny)] {
            for entry in entries {
                let rule = Rule {
                    entry: entry.clone(),
                    ruling,
                    box_id,
                };
                rules::put(rows, &owner, &rule, at_ms)?;
            }
        }
        boxes::rows::set_net(rows, &id, net, &own)?;
        Ok(Ok(()))
    });
    written.await??;
    rules::hand_over(host, owner, box_id).await?;
    Ok(())
}

fn parsed(entries: &[String]) -> Result<Vec<String>, PolicyError> {
    let parse = |entry: &String| {
        super::parse_entry(entry).map_err(|source| PolicyError::Entry {
            entry: entry.clone(),
            source,
        })
    };
    entries.iter().map(parse).collect()
}

/// The policy as it holds.
///
/// # Errors
/// What the store said.
pub async fn show(host: &Host, record: &BoxRecord) -> Result<PolicyShown, StoreError> {
    let (id, owner) = (record.id, record.owner);
    let record = boxes::get(host, id)
        .await?
        .unwrap_or_else(|| record.clone());
    let (own, bindings) = host
        .store
        .read(move |rows| {
            Ok((
                rules::of_box(rows, &owner, &id)?,
                credentials::bindings(rows, &id)?,
            ))
        })
        .await?;
    let line = |entry: &dyn ToString, verdict: &str, from: &str| PolicyEntry {
        entry: entry.to_string(),
        verdict: verdict.to_owned(),
        from: from.to_owned(),
    };
    let settings = host.settings.allow.value.iter();
    let mut entries: Vec<PolicyEntry> = settings
        .map(|entry| line(entry, "allow", "settings"))
        .collect();
    entries.extend(own.iter().map(|rule| {
        let verdict = match rule.ruling {
            Ruling::Allow => "allow",
            Ruling::Deny => "deny",
        };
        let from = if rule.box_id.is_some() {
            "box"
        } else {
            "all boxes"
        };
        line(&rule.entry, verdict, from)
    }));
    entries.extend(record.allow.iter().map(|entry| line(entry, "allow", "box")));
    let preset_hosts = match record.net {
        NetPreset::Balanced => {
            let machine = host.machine.clone();
            let read = tokio::task::spawn_blocking(move || policy::balanced(&machine));
            read.await.unwrap_or_default()
        }
        NetPreset::Open | NetPreset::Locked => Vec::new(),
    };
    let hosts: BTreeSet<String> = bindings
        .iter()
        .flat_map(|binding| binding.hosts.iter().map(ToString::to_string))
        .collect();
    Ok(PolicyShown {
        name: record.name,
        net: record.net,
        preset_hosts: preset_hosts.iter().map(HostPattern::to_string).collect(),
        entries,
        credential_hosts: hosts.into_iter().collect(),
    })
}
