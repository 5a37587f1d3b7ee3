//! Kinds of credentials, as data: which hosts get the secret, how a request carries it, what it
//! looks like, and in which variables a box finds its placeholder.
//!
//! One `kinds/<name>.toml` each; the kind of an agent comes from the agent's profile. Nothing else
//! in the host knows a kind by name.

use crate::agents::{self, AgentProfile};
use box_api::egress::{Carriage, HostName};
use serde::Deserialize;
use std::sync::LazyLock;

/// A kind, as `kinds/<name>.toml` has it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a line of a file that a person reads"
)]
pub struct Kind {
    /// As in `box credential add <kind>`.
    pub name: String,
    /// Other words for it.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// What a person reads.
    pub title: String,
    /// The only hosts that are ever sent the secret; they are intercepted.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Hosts that belong to it, reachable with it, passed on unread and never sent the secret.
    #[serde(default)]
    pub helper_hosts: Vec<String>,
    #[serde(default)]
    pub hosts_from: HostsFrom,
    /// Whether its owner may name the hosts instead: a server of their own.
    #[serde(default)]
    pub takes_hosts: bool,
    /// Whether its owner says how it is carried and in which variable.
    #[serde(default)]
    pub takes_form: bool,
    /// Whether a box may have several of them at once, as each has a variable of its own.
    #[serde(default)]
    pub several: bool,
    /// What to do to get one, one line for a hint.
    #[serde(default)]
    pub login: Option<String>,
    /// What a secret can look like; the longest prefix that fits decides.
    pub shapes: Vec<Shape>,
}

/// Where the hosts of a kind come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostsFrom {
    /// [`Kind::hosts`].
    #[default]
    Kind,
    /// The registries this machine's npm uses.
    Npm,
    /// Whoever adds it says them.
    Asked,
}

/// One form of a kind's secrets, told from the others by how it begins.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    /// How every secret of this form begins, and so its placeholder.
    pub prefix: String,
    /// Variables of a box that hold the placeholder.
    pub variables: Vec<String>,
    /// Where requests carry it.
    pub carried: Vec<Carriage>,
}

const EMBEDDED: [&str; 6] = [
    include_str!("kinds/openai.toml"),
    include_str!("kinds/github.toml"),
    include_str!("kinds/gitlab.toml"),
    include_str!("kinds/gemini.toml"),
    include_str!("kinds/npm.toml"),
    include_str!("kinds/generic.toml"),
];

#[expect(
    clippy::expect_used,
    reason = "the files are part of the program; a test parses each"
)]
static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    let parsed = EMBEDDED.map(|text| toml::from_str::<Kind>(text).expect("kinds are valid"));
    let named = |name: &str| parsed.iter().any(|kind| kind.name == name);
    // An agent whose account has a file here refers to it.
    let of_agents = agents::profile::embedded().iter().filter_map(of_agent);
    let mut kinds: Vec<Kind> = of_agents.filter(|kind| !named(&kind.name)).collect();
    kinds.dedup_by(|later, first| later.name == first.name);
    kinds.extend(parsed.iter().cloned());
    kinds
});

/// Every kind there is, in the order they are shown: those of this program, then those that agents
/// brought which were added.
pub fn all() -> impl Iterator<Item = &'static Kind> {
    of_program().iter().chain(agents::added::kinds())
}

/// The kinds of this program.
pub fn of_program() -> &'static [Kind] {
    &KINDS
}

/// The kind of this name or alias.
pub fn find(name: &str) -> Option<&'static Kind> {
    let is = |kind: &&Kind| kind.name == name || kind.aliases.iter().any(|alias| alias == name);
    all().find(is)
}

impl Kind {
    pub fn shape(&self, prefix: &str) -> Option<&Shape> {
        self.shapes.iter().find(|shape| shape.prefix == prefix)
    }
}

/// Names that are host names; a test checks that every one of the tables is.
pub fn host_names(hosts: &[String]) -> Vec<HostName> {
    let parsed = hosts.iter().map(|host| HostName::parse(host));
    parsed.filter_map(Result::ok).collect()
}

/// The kind an agent's profile describes, if it does.
pub(crate) fn of_agent(profile: &AgentProfile) -> Option<Kind> {
    let credential = profile.credential.as_ref()?;
    let shapes = credential.shapes.iter().map(|shape| Shape {
        prefix: shape.prefix.clone(),
        variables: vec![shape.variable.clone()],
        carried: vec![carriage(&shape.header, shape.scheme.as_deref())],
    });
    Some(Kind {
        name: credential.kind.clone(),
        aliases: Vec::new(),
        title: profile.title.clone(),
        hosts: credential.hosts.clone(),
        helper_hosts: Vec::new(),
        hosts_from: HostsFrom::Kind,
        takes_hosts: false,
        takes_form: false,
        several: false,
        login: profile.login.clone(),
        shapes: shapes.collect(),
    })
}

fn carriage(header: &str, scheme: Option<&str>) -> Carriage {
    match (header, scheme) {
        ("authorization", Some("Bearer")) => Carriage::Bearer,
        ("authorization", Some("Basic")) => Carriage::Basic,
        (header, _) => Carriage::Header {
            name: header.to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_kind_is_whole() {
        let names: BTreeSet<&str> = all()
            .flat_map(|kind| kind.aliases.iter().chain([&kind.name]))
            .map(String::as_str)
            .collect();
        let wanted = "claude codex gemini generic github gitlab google npm openai";
        for name in wanted.split(' ') {
            assert!(names.contains(name), "{name}");
        }
        for kind in all() {
            let hosts = kind.hosts.iter().chain(&kind.helper_hosts);
            for host in hosts {
                assert!(HostName::parse(host).is_ok(), "{}: {host}", kind.name);
                let twice = kind.hosts.contains(host) && kind.helper_hosts.contains(host);
                assert!(
                    !twice,
                    "{}: {host} gets the secret or it does not",
                    kind.name
                );
            }
            assert_eq!(kind.hosts.is_empty(), kind.hosts_from != HostsFrom::Kind);
            let prefixes: BTreeSet<&str> = kind.shapes.iter().map(|shape| &*shape.prefix).collect();
            assert_eq!(prefixes.len(), kind.shapes.len(), "{}", kind.name);
            for shape in &kind.shapes {
                assert!(!shape.carried.is_empty(), "{}", kind.name);
                assert!(
                    kind.takes_form || !shape.variables.is_empty(),
                    "{}",
                    kind.name
                );
            }
        }
    }

    #[test]
    fn an_alias_is_its_kind() {
        assert_eq!(find("codex").unwrap().name, "openai");
        assert_eq!(find("claude").unwrap().hosts, ["api.anthropic.com"]);
        assert!(find("clod").is_none());
    }
}
