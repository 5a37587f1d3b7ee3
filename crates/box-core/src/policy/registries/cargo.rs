//! cargo: its configuration, else the index it has fetched before.

use super::{Machine, entries, read};
use toml::{Table, Value};

const HOME: &[&str] = &[".cargo/config.toml", ".cargo/config"];
/// One folder an index, `<host>-<hash>`, with its `config.json` (cargo book, *Registry index*).
const INDEXES: &str = ".cargo/registry/index";

pub(super) fn urls(machine: &Machine) -> Vec<String> {
    let configured: Vec<Table> = machine
        .texts(&[], HOME)
        .iter()
        .filter_map(|text| text.parse().ok())
        .collect();
    let mut urls: Vec<String> = configured.iter().flat_map(settings).collect();
    if !configured.iter().any(replaces_the_default) {
        urls.extend(fetched(machine));
    }
    urls
}

/// `registries.*.index`, `source.*.registry`.
fn settings(table: &Table) -> Vec<String> {
    let below = |section: &str, key: &str| -> Vec<String> {
        let named = table.get(section).and_then(Value::as_table);
        let entries = named.into_iter().flat_map(|named| named.values());
        let urls = entries.filter_map(|entry| entry.get(key)?.as_str());
        urls.map(|url| url.trim_start_matches("sparse+").to_owned())
            .collect()
    };
    [below("registries", "index"), below("source", "registry")].concat()
}

/// `source.crates-io.replace-with`
fn replaces_the_default(table: &Table) -> bool {
    let source = table
        .get("source")
        .and_then(|source| source.get("crates-io"));
    source.is_some_and(|source| source.get("replace-with").is_some())
}

/// Hosts of the indexes that were used, and of the files they lead to.
fn fetched(machine: &Machine) -> Vec<String> {
    let Some(home) = &machine.home else {
        return Vec::new();
    };
    let mut urls = Vec::new();
    for index in entries(&home.join(INDEXES)) {
        let name = index.file_name().and_then(|name| name.to_str());
        let host = name
            .and_then(|name| name.rsplit_once('-'))
            .map(|(host, _)| host);
        urls.extend(host.map(|host| format!("https://{host}/")));
        let config = read(&index.join("config.json"));
        let config: Option<serde_json::Value> =
            config.and_then(|text| serde_json::from_str(&text).ok());
        let leads = config
            .as_ref()
            .and_then(|config| config.get("dl")?.as_str());
        urls.extend(leads.map(str::to_owned));
    }
    urls
}
