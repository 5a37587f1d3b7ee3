//! pip and uv: pip.conf files, else the default in pip's program.

use super::{Client, Machine, entries, quoted, read};
use std::path::PathBuf;

const SYSTEM: &[&str] = &["etc/pip.conf"];
const HOME: &[&str] = &[".config/pip/pip.conf", ".pip/pip.conf"];
/// Where pip says which index it uses, below a folder of packages.
const INDEX: &str = "pip/_internal/models/index.py";

pub(super) fn urls(machine: &Machine) -> Vec<String> {
    let mut urls = machine.named(Client::Pip);
    let configured = machine.texts(SYSTEM, HOME);
    urls.extend(configured.iter().flat_map(|text| settings(text)));
    if urls.is_empty() {
        urls.extend(default(machine));
    }
    urls
}

/// `index-url`, `extra-index-url`, `find-links`, with their continuation lines.
fn settings(text: &str) -> Vec<String> {
    let mut urls = Vec::new();
    let mut listed = false;
    for line in text.lines() {
        let continued = line.starts_with([' ', '\t']);
        let value = match line.split_once('=') {
            Some((key, value)) if !continued => {
                let key = key.trim().replace('_', "-");
                listed = matches!(key.as_str(), "index-url" | "extra-index-url" | "find-links");
                value
            }
            _ if continued => line,
            _ => {
                listed = false;
                continue;
            }
        };
        if listed {
            urls.extend(value.split_whitespace().map(str::to_owned));
        }
    }
    urls
}

/// `PyPI = PackageIndex("URL", file_storage_domain="HOST")`
fn default(machine: &Machine) -> Vec<String> {
    let texts = packages(machine)
        .into_iter()
        .filter_map(|folder| read(&folder.join(INDEX)));
    let found = texts.into_iter().find_map(|text| {
        let (_, made) = text.split_once("\nPyPI = PackageIndex(")?;
        let (index, rest) = made.split_once("file_storage_domain=")?;
        Some(vec![
            quoted(index)?.to_owned(),
            format!("https://{}/", quoted(rest)?),
        ])
    });
    found.unwrap_or_default()
}

/// Folders Python packages lie in.
fn packages(machine: &Machine) -> Vec<PathBuf> {
    let mut libraries = vec![
        machine.root.join("usr/lib"),
        machine.root.join("usr/local/lib"),
    ];
    if let Some(home) = &machine.home {
        libraries.push(home.join(".local/lib"));
        let versions = entries(&home.join(".pyenv/versions"));
        libraries.extend(
            versions
                .into_iter()
                .rev()
                .map(|version| version.join("lib")),
        );
    }
    let pythons = libraries
        .iter()
        .flat_map(|library| entries(library))
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| name.as_encoded_bytes().starts_with(b"python3"))
        });
    pythons
        .flat_map(|python| [python.join("dist-packages"), python.join("site-packages")])
        .collect()
}
