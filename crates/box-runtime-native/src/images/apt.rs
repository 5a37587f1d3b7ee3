//! Where this machine gets Debian from: its own apt configuration (sources.list(5)).
//!
//! The archive a recipe is made from is the machine's, with its mirror and keyring; only the suite
//! is the recipe's. Third-party repositories are left out.

use std::io;
use std::path::Path;

/// Largest configuration file read, bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Suites that have neither updates nor a security archive.
const ROLLING: [&str; 4] = ["sid", "unstable", "testing", "experimental"];

/// One repository the machine is set up for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Source {
    pub(super) uris: Vec<String>,
    pub(super) suites: Vec<String>,
    pub(super) components: Vec<String>,
    /// A keyring's path. (A key written into the file belongs to some other packager.)
    pub(super) signed_by: Option<String>,
}

/// Reads `sources.list` and `sources.list.d` below `/etc/apt`. What cannot be read is left out.
pub(super) fn sources(etc_apt: &Path) -> Vec<Source> {
    let mut found = one_line(&read(&etc_apt.join("sources.list")));
    let Ok(folder) = std::fs::read_dir(etc_apt.join("sources.list.d")) else {
        return found;
    };
    let mut files: Vec<_> = folder
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    files.sort();
    for file in files {
        match file.extension().and_then(|ext| ext.to_str()) {
            Some("list") => found.extend(one_line(&read(&file))),
            Some("sources") => found.extend(deb822(&read(&file))),
            _ => {}
        }
    }
    found
}

/// The sources an image of `suite` is made from and keeps, as a deb822 file. `None` when the
/// machine is set up for no Debian archive.
pub(super) fn for_suite(sources: &[Source], suite: &str) -> Option<String> {
    let debian = || sources.iter().filter(|source| source.is_debian());
    let (archive, base) =
        debian().find_map(|source| Some((source, source.suites.iter().find(|s| is_base(s))?)))?;
    let mut text = String::new();
    let mut suites = vec![suite.to_owned()];
    if !ROLLING.contains(&suite) {
        let updates = archive.suites.contains(&format!("{base}-updates"));
        suites.extend(updates.then(|| format!("{suite}-updates")));
    }
    archive.write(&mut text, &suites);
    if !ROLLING.contains(&suite) {
        let security = debian().find(|source| source.suites.contains(&format!("{base}-security")));
        if let Some(security) = security {
            text.push('\n');
            security.write(&mut text, &[format!("{suite}-security")]);
        }
    }
    Some(text)
}

impl Source {
    /// Debian's own: section `main`, signed by Debian's keyring or by whatever apt trusts.
    fn is_debian(&self) -> bool {
        self.components.iter().any(|component| component == "main")
            && self
                .signed_by
                .as_ref()
                .is_none_or(|key| key.contains("/debian-archive"))
    }

    fn write(&self, text: &mut String, suites: &[String]) {
        let mut field = |name: &str, value: &str| {
            text.push_str(name);
            text.push_str(": ");
            text.push_str(value);
            text.push('\n');
        };
        field("Types", "deb");
        field("URIs", &self.uris.join(" "));
        field("Suites", &suites.join(" "));
        field("Components", "main");
        if let Some(key) = &self.signed_by {
            field("Signed-By", key);
        }
    }
}

/// A release itself, not its updates, and not the name some other packager gave a repository.
fn is_base(suite: &str) -> bool {
    suite.chars().all(|c| c.is_ascii_lowercase())
}

/// `deb [option=value …] uri suite component…`
fn one_line(text: &str) -> Vec<Source> {
    let line = |line: &str| {
        let line = line.split('#').next()?.trim().strip_prefix("deb ")?.trim();
        let (options, rest) = match line.strip_prefix('[') {
            Some(inside) => inside.split_once(']')?,
            None => ("", line),
        };
        let mut words = rest.split_whitespace().map(str::to_owned);
        let signed_by = options
            .split_whitespace()
            .find_map(|option| option.strip_prefix("signed-by="));
        Some(Source {
            uris: vec![words.next()?],
            suites: vec![words.next()?],
            components: words.collect(),
            signed_by: signed_by.map(str::to_owned),
        })
    };
    // Lines of one archive are one source, as deb822 has them.
    let mut found: Vec<Source> = Vec::new();
    for source in text.lines().filter_map(line) {
        let same = |known: &&mut Source| {
            (&known.uris, &known.signed_by, &known.components)
                == (&source.uris, &source.signed_by, &source.components)
        };
        match found.iter_mut().find(same) {
            Some(known) => known.suites.extend(source.suites),
            None => found.push(source),
        }
    }
    found
}

/// Stanzas of `Field: value`, values going on in lines that begin with a blank.
fn deb822(text: &str) -> Vec<Source> {
    let mut found = Vec::new();
    let mut stanza: Vec<(String, String)> = Vec::new();
    for line in text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .chain([""])
    {
        if line.trim().is_empty() {
            found.extend(from_stanza(&stanza));
            stanza.clear();
        } else if line.starts_with([' ', '\t']) {
            if let Some((_, value)) = stanza.last_mut() {
                value.push('\n');
                value.push_str(line);
            }
        } else if let Some((name, value)) = line.split_once(':') {
            stanza.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
    found
}

fn from_stanza(stanza: &[(String, String)]) -> Option<Source> {
    let field = |name: &str| {
        stanza
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value)
    };
    let words = |name: &str| {
        let value = field(name).map(String::as_str).unwrap_or_default();
        value
            .split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let off = field("enabled").is_some_and(|value| value.eq_ignore_ascii_case("no"));
    if off || !words("types").iter().any(|kind| kind == "deb") {
        return None;
    }
    Some(Source {
        uris: words("uris"),
        suites: words("suites"),
        components: words("components"),
        signed_by: field("signed-by").cloned(),
    })
}

fn read(path: &Path) -> String {
    let bounded = || -> io::Result<String> {
        if std::fs::metadata(path)?.len() > FILE_BYTES_MAX {
            return Ok(String::new());
        }
        std::fs::read_to_string(path)
    };
    bounded().unwrap_or_default()
}

#[cfg(test)]
mod tests;
