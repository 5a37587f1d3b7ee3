//! Which package registries this machine's own clients use: npm, pip, cargo, apt.
//!
//! Only files are read, no client is run, and no registry is named here: what a client is
//! configured for comes from its settings, and what it uses without any from its own program files
//! or what it has fetched before. `[net] allow` adds what is missing.

mod apt;
mod cargo;
mod npm;
mod pip;

use crate::paths::Variable;
use box_api::egress::{HostName, HostPattern};
use std::path::{Path, PathBuf};

/// Longest file of a client that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Entries of a folder that are looked at.
const FILES_IN_FOLDER_MAX: usize = 256;

/// Variables that name a registry by its URL, and whose they are.
const URL_VARIABLES: &[(Client, &str)] = &[
    (Client::Npm, "npm_config_registry"),
    (Client::Npm, "NPM_CONFIG_REGISTRY"),
    (Client::Pip, "PIP_INDEX_URL"),
    (Client::Pip, "PIP_EXTRA_INDEX_URL"),
    (Client::Pip, "UV_INDEX_URL"),
    (Client::Pip, "UV_DEFAULT_INDEX"),
    (Client::Pip, "UV_EXTRA_INDEX_URL"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Client {
    Npm,
    Pip,
}

/// Where this machine's clients keep their settings and programs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Machine {
    /// `/`, but for tests.
    root: PathBuf,
    home: Option<PathBuf>,
    /// URLs the environment named when the host started.
    urls: Vec<(Client, String)>,
}

impl Machine {
    /// This machine, as the user of the host sees it.
    pub fn here(variable: Variable<'_>) -> Self {
        Self::at(Path::new("/"), variable)
    }

    /// A machine whose files lie below `root`.
    pub fn at(root: &Path, variable: Variable<'_>) -> Self {
        let text = |name: &str| variable(name).and_then(|value| value.into_string().ok());
        let set = URL_VARIABLES
            .iter()
            .filter_map(|(client, name)| Some((*client, text(name)?)));
        Self {
            root: root.to_owned(),
            home: variable("HOME")
                .map(PathBuf::from)
                .filter(|home| home.is_absolute()),
            urls: set.collect(),
        }
    }

    /// The hosts of the registries, client by client.
    pub(super) fn registries(&self) -> Vec<HostPattern> {
        let urls = [
            npm::urls(self),
            pip::urls(self),
            cargo::urls(self),
            apt::urls(self),
        ]
        .concat();
        urls.iter().filter_map(|url| host_of(url)).collect()
    }

    /// Hosts of the registries this machine's npm uses, on the usual port of https.
    pub fn npm_hosts(&self) -> Vec<String> {
        let mut hosts: Vec<String> = Vec::new();
        for url in npm::urls(self) {
            let host = host_of(&url).map(String::from).unwrap_or_default();
            let is_name = url.starts_with("https://") && HostName::parse(&host).is_ok();
            if is_name && !hosts.contains(&host) {
                hosts.push(host);
            }
        }
        hosts
    }

    /// What the environment named for a client.
    fn named(&self, client: Client) -> Vec<String> {
        let of_client = self.urls.iter().filter(|(whose, _)| *whose == client);
        of_client
            .flat_map(|(_, value)| value.split_whitespace())
            .map(str::to_owned)
            .collect()
    }

    /// The files that are there: first the system's, then those of the home.
    fn texts(&self, of_system: &[&str], of_home: &[&str]) -> Vec<String> {
        let system = of_system.iter().map(|path| self.root.join(path));
        let home = of_home
            .iter()
            .filter_map(|path| Some(self.home.as_ref()?.join(path)));
        system.chain(home).filter_map(|path| read(&path)).collect()
    }
}

/// What a folder holds, in order of name; nothing if it is not there.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let paths = entries
        .take(FILES_IN_FOLDER_MAX)
        .filter_map(|entry| Some(entry.ok()?.path()));
    let mut paths: Vec<PathBuf> = paths.collect();
    paths.sort();
    paths
}

fn read(path: &Path) -> Option<String> {
    let short = std::fs::metadata(path).is_ok_and(|found| found.len() <= FILE_BYTES_MAX);
    if short {
        std::fs::read_to_string(path).ok()
    } else {
        None
    }
}

/// The host of an http or https URL, with its port where that is not the usual one.
fn host_of(url: &str) -> Option<HostPattern> {
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"))?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    let host = host
        .strip_suffix(":443")
        .or_else(|| host.strip_suffix(":80"))
        .unwrap_or(host);
    HostPattern::parse(host).ok()
}

/// The text between the next two quotes of either kind.
fn quoted(text: &str) -> Option<&str> {
    let start = text.find(['\'', '"'])?;
    let quote = text[start..].chars().next()?;
    text[start + 1..].split(quote).next()
}
