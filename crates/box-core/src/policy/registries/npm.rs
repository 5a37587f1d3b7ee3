//! npm: npmrc files, else the default in its program.

use super::{Client, Machine, quoted, read};

const SYSTEM: &[&str] = &["etc/npmrc", "usr/etc/npmrc", "usr/local/etc/npmrc"];
const HOME: &[&str] = &[".npmrc"];

/// Where npm defines its settings, below the system's root.
const DEFINITIONS: &[&str] = &[
    "usr/lib/node_modules/npm/node_modules/@npmcli/config/lib/definitions/definitions.js",
    "usr/local/lib/node_modules/npm/node_modules/@npmcli/config/lib/definitions/definitions.js",
    "usr/share/nodejs/npm/node_modules/@npmcli/config/lib/definitions/definitions.js",
    "usr/share/nodejs/@npmcli/config/lib/definitions/definitions.js",
];

pub(super) fn urls(machine: &Machine) -> Vec<String> {
    let mut urls = machine.named(Client::Npm);
    let configured = machine.texts(SYSTEM, HOME);
    let settings = || configured.iter().flat_map(|text| settings(text));
    let has_default = !urls.is_empty() || settings().any(|(key, _)| key == "registry");
    urls.extend(settings().map(|(_, url)| url.to_owned()));
    if !has_default {
        urls.extend(default(machine));
    }
    urls
}

/// `registry=URL`, `@scope:registry=URL` (npmrc(5)).
fn settings(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    let pairs = pairs.map(|(key, value)| (key.trim(), value.trim().trim_matches('"')));
    pairs.filter(|(key, _)| {
        *key == "registry" || (key.starts_with('@') && key.ends_with(":registry"))
    })
}

/// `registry: new Definition('registry', { default: 'URL', …`
fn default(machine: &Machine) -> Option<String> {
    let texts = DEFINITIONS
        .iter()
        .filter_map(|path| read(&machine.root.join(path)));
    texts.into_iter().find_map(|text| {
        let (_, definition) = text.split_once("new Definition('registry',")?;
        let (_, default) = definition.split_once("default:")?;
        quoted(default).map(str::to_owned)
    })
}
