//! `[net]`: what boxes may reach, for all of them and for those of a named set; and how it is read.

use super::read::{list, pattern};
use super::{Origin, Setting};
use box_api::egress::{Entry, HostPattern};
use box_api::network::NetSetName;
use std::collections::BTreeMap;
use toml::Value;

/// Entries of one list.
pub(super) const ENTRIES_MAX: usize = 1024;
const SETS_MAX: usize = 64;

/// `[net]`, but for the preset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetSettings {
    /// `allow`: what every box may reach beside its preset.
    pub allow: Setting<Vec<Entry>>,
    /// `deny`: what no box may reach.
    pub deny: Setting<Vec<Entry>>,
    /// `sets`: rules a box takes on by name (`box set <box> net-set=<name>`).
    pub sets: Setting<BTreeMap<NetSetName, NetSet>>,
    /// The variable [`super::environment::ALLOWED_HOSTS`] of the host: with it no preset lets
    /// anything through but its hosts; an empty one lets any public host through (spec C130, D32).
    pub allowed_hosts: Option<Vec<HostPattern>>,
}

impl Default for NetSettings {
    fn default() -> Self {
        Self {
            allow: Setting::default_of(Vec::new()),
            deny: Setting::default_of(Vec::new()),
            sets: Setting::default_of(BTreeMap::new()),
            allowed_hosts: None,
        }
    }
}

/// `[net.sets.<name>]`
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NetSet {
    pub allow: Vec<Entry>,
    pub deny: Vec<Entry>,
}

impl NetSettings {
    pub(super) fn put_allow(&mut self, value: &Value, origin: Origin) -> Result<(), String> {
        self.allow = Setting {
            value: list(value, ENTRIES_MAX, allowed)?,
            origin,
        };
        Ok(())
    }

    pub(super) fn put_deny(&mut self, value: &Value, origin: Origin) -> Result<(), String> {
        self.deny = Setting {
            value: list(value, ENTRIES_MAX, entry)?,
            origin,
        };
        Ok(())
    }

    pub(super) fn put_sets(&mut self, value: &Value, origin: Origin) -> Result<(), String> {
        let table = value
            .as_table()
            .ok_or_else(|| format!("it is {}, not a table", value.type_str()))?;
        if table.len() > SETS_MAX {
            return Err(format!("it has more than {SETS_MAX} sets"));
        }
        let mut sets = BTreeMap::new();
        for (name, value) in table {
            let known = NetSetName::parse(name).map_err(|is| format!("`{name}` is not {is}"))?;
            let set = set(value).map_err(|why| format!("`{name}`: {why}"))?;
            sets.insert(known, set);
        }
        self.sets = Setting {
            value: sets,
            origin,
        };
        Ok(())
    }

    /// The list of the variable: commas or white space between names and one-label wildcards.
    pub(super) fn put_allowed_hosts(&mut self, value: &str) -> Result<(), String> {
        let words = value.split([',', ' ', '\t', '\n', '\r']);
        let words = words.filter(|word| !word.is_empty());
        let hosts: Vec<HostPattern> = words.map(pattern).collect::<Result<_, _>>()?;
        if hosts.len() > ENTRIES_MAX {
            return Err(format!("it has more than {ENTRIES_MAX} entries"));
        }
        self.allowed_hosts = Some(hosts);
        Ok(())
    }
}

fn set(value: &Value) -> Result<NetSet, String> {
    let table = value
        .as_table()
        .ok_or_else(|| format!("it is {}, not a table", value.type_str()))?;
    let mut set = NetSet::default();
    for (key, value) in table {
        match key.as_str() {
            "allow" => set.allow = list(value, ENTRIES_MAX, allowed)?,
            "deny" => set.deny = list(value, ENTRIES_MAX, entry)?,
            other => return Err(format!("`{other}` is neither `allow` nor `deny`")),
        }
    }
    Ok(set)
}

fn entry(text: &str) -> Result<Entry, String> {
    Entry::parse(text).map_err(|error| error.to_string())
}

fn allowed(text: &str) -> Result<Entry, String> {
    match entry(text)? {
        Entry::Network(_) => Err(format!(
            "`{text}` is an address; names are allowed, addresses only denied"
        )),
        entry @ (Entry::Host(_) | Entry::Request(_)) => Ok(entry),
    }
}

/// As it stands in the file.
pub(super) fn shown_sets(sets: &BTreeMap<NetSetName, NetSet>) -> String {
    let list = |entries: &[Entry]| {
        let quoted = entries
            .iter()
            .map(|entry| format!("{:?}", entry.to_string()));
        quoted.collect::<Vec<_>>().join(", ")
    };
    let one = |(name, set): (&NetSetName, &NetSet)| {
        let (allow, deny) = (list(&set.allow), list(&set.deny));
        format!("{name} = {{ allow = [{allow}], deny = [{deny}] }}")
    };
    if sets.is_empty() {
        return String::new();
    }
    let all: Vec<String> = sets.iter().map(one).collect();
    format!("{{ {} }}", all.join(", "))
}
