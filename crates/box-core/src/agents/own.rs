//! Profiles a person writes: read → checked against what others have → told → kept beside the
//! settings, as `agents.d/<name>.toml`.

use super::acp_registry;
use super::added::{self, ADDED_MAX};
use super::profile::{AgentProfile, PackKind, ProfileError, embedded};
use crate::credentials::{self, bad_carriage, bad_variable, rows};
use crate::host::Host;
use crate::policy::LOGIN_HOSTS;
use crate::store::StoreError;
use box_api::control::{AgentAdd, AgentCredential, AgentOpens};
use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Longest profile that is read.
pub const PROFILE_BYTES_MAX: usize = 64 << 10;
/// A name begins the names of its boxes, 63 characters at most.
const NAME_CHARS_MAX: usize = 40;
/// Hosts, variables and files, of each.
const ENTRIES_MAX: usize = 64;

/// Why a file is no profile of an agent, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub file: PathBuf,
    /// From 1.
    pub line: Option<usize>,
    pub what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        write!(f, ": {}", self.what)
    }
}

impl std::error::Error for Fault {}

/// Why a profile was not added.
#[derive(Debug, thiserror::Error)]
pub enum AddError {
    #[error("could not take the profile of an agent")]
    Fault(#[source] Fault),
    #[error("{ADDED_MAX} agents are added already")]
    TooMany,
    #[error("could not write `{path}`")]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Hosts that belong to somebody, and to whom.
type Claims = Vec<(String, String)>;

/// A text, what it is called, and where in it something stands.
struct Text<'a> {
    file: &'a Path,
    text: &'a str,
}

impl Text<'_> {
    fn fault(&self, line: Option<usize>, what: impl Into<String>) -> Fault {
        Fault {
            file: self.file.to_owned(),
            line,
            what: what.into(),
        }
    }

    /// At the first line that has this in it.
    fn fault_at(&self, needle: &str, what: impl Into<String>) -> Fault {
        let line = self.text.lines().position(|line| line.contains(needle));
        self.fault(line.map(|before| before + 1), what)
    }
}

/// Reads a profile and checks it against the program's own agents and every kind of credential.
///
/// # Errors
/// [`Fault`], with the line.
pub fn read_own(file: &Path, text: &str) -> Result<AgentProfile, Fault> {
    read(&Text { file, text }, &Claims::new())
}

fn read(text: &Text<'_>, claims: &Claims) -> Result<AgentProfile, Fault> {
    if text.text.len() > PROFILE_BYTES_MAX {
        let what = format!("it is longer than {PROFILE_BYTES_MAX} bytes");
        return Err(text.fault(None, what));
    }
    let profile = AgentProfile::parse(text.text).map_err(|error| match error {
        ProfileError::Toml(error) => {
            let before = error.span().and_then(|span| text.text.get(..span.start));
            let line = before.map(|before| before.matches('\n').count() + 1);
            text.fault(line, error.message().trim().replace('\n', "; "))
        }
        ProfileError::Field { field, value, .. } => {
            text.fault_at(&value, format!("`{value}` is no good `{field}`"))
        }
    })?;
    check(text, &profile, claims)?;
    Ok(profile)
}

fn check(text: &Text<'_>, profile: &AgentProfile, claims: &Claims) -> Result<(), Fault> {
    let name = &profile.name;
    if embedded().iter().any(|known| known.name == *name) {
        let what = format!("`{name}` is an agent of this program; give yours another name");
        return Err(text.fault_at("name", what));
    }
    if name.len() > NAME_CHARS_MAX {
        let what = format!("a name has at most {NAME_CHARS_MAX} characters");
        return Err(text.fault_at(name, what));
    }
    if profile.pack != PackKind::InBox {
        let what = "only `in-box` is there for a profile of your own: the program is in the box";
        return Err(text.fault_at("pack", what));
    }
    let many = [profile.hosts.len(), profile.env.len(), profile.files.len()];
    if many.into_iter().any(|count| count > ENTRIES_MAX) {
        let what = format!("hosts, variables and files are {ENTRIES_MAX} at most, of each");
        return Err(text.fault(None, what));
    }
    if profile.modes.bypass.as_ref() == Some(&profile.modes.ask) {
        let what = "`ask` is the mode that never asks; threads would begin in it";
        return Err(text.fault_at("ask", what));
    }
    let words = profile.command.iter().chain([&profile.title]);
    let mut all = words.chain(profile.files.iter().map(|file| &file.path));
    if all.any(|word| word.chars().any(char::is_control)) {
        let what = "titles, commands and files are of characters that can be seen";
        return Err(text.fault(None, what));
    }
    check_credential(text, profile, claims)
}

/// A credential is one there is, or it is new in all it claims: no host, no variable and no name
/// of another one.
fn check_credential(text: &Text<'_>, profile: &AgentProfile, claims: &Claims) -> Result<(), Fault> {
    let Some(credential) = &profile.credential else {
        return Ok(());
    };
    let kind = &credential.kind;
    let mut others = added::kinds_but_of(&profile.name);
    let known = others.find(|other| other.name == *kind || other.aliases.contains(kind));
    let brings = !(credential.hosts.is_empty() && credential.shapes.is_empty());
    match (known, brings) {
        (Some(known), _) if known.takes_form => {
            let what = format!("`{kind}` is no account of an agent; name a kind of your own");
            return Err(text.fault_at("kind", what));
        }
        (Some(_), false) => return Ok(()),
        (Some(_), true) => {
            let what = format!(
                "there is a credential `{kind}` already; leave out hosts and shapes, or name \
                 another kind"
            );
            return Err(text.fault_at("kind", what));
        }
        (None, _) if credential.hosts.is_empty() || credential.shapes.is_empty() => {
            let what = format!("`{kind}` is a new credential: it needs `hosts` and `shapes`");
            return Err(text.fault_at("kind", what));
        }
        (None, _) => {}
    }
    for host in &credential.hosts {
        if let Some(owner) = owner_of(host, &profile.name, claims) {
            let what = format!("the host `{host}` belongs to {owner}");
            return Err(text.fault_at(host, what));
        }
    }
    for shape in &credential.shapes {
        let variable = &shape.variable;
        let taken = added::kinds_but_of(&profile.name)
            .find(|kind| kind.shapes.iter().any(|s| s.variables.contains(variable)));
        if let Some(taken) = taken {
            let what = format!("the variable `{variable}` is the one of `{}`", taken.name);
            return Err(text.fault_at(variable, what));
        }
        if let Some(why) = bad_variable(variable) {
            return Err(text.fault_at(variable, why));
        }
    }
    let kind = credentials::kinds::of_agent(profile);
    let carried = kind.iter().flat_map(|kind| &kind.shapes);
    let bad = carried
        .flat_map(|shape| &shape.carried)
        .find_map(bad_carriage);
    bad.map_or(Ok(()), |why| Err(text.fault_at("header", why)))
}

/// Whose a host is that gets a secret or gives one.
fn owner_of(host: &str, agent: &str, claims: &Claims) -> Option<String> {
    let of_kind = added::kinds_but_of(agent)
        .find(|kind| {
            kind.hosts
                .iter()
                .chain(&kind.helper_hosts)
                .any(|its| its == host)
        })
        .map(|kind| kind.name.clone());
    let of_row = || {
        let claim = claims.iter().find(|(claimed, _)| claimed == host);
        claim.map(|(_, kind)| kind.clone())
    };
    let owner = of_kind.or_else(of_row);
    match owner {
        Some(kind) => Some(format!("the credential `{kind}`")),
        None => LOGIN_HOSTS.contains(&host).then(|| "a login".to_owned()),
    }
}

/// What a profile opens, for whoever is to say yes.
pub fn opens(profile: &AgentProfile) -> AgentOpens {
    let kind_of = |name: &str| {
        let mut kinds = added::kinds_but_of(&profile.name);
        kinds.find(|kind| kind.name == name || kind.aliases.iter().any(|alias| alias == name))
    };
    let credential = profile.credential.as_ref().map(|credential| {
        let known = kind_of(&credential.kind);
        let own = || credentials::kinds::of_agent(profile);
        let kind = known.cloned().or_else(own);
        let shapes = kind.iter().flat_map(|kind| &kind.shapes);
        let mut variables: Vec<String> = shapes.flat_map(|s| s.variables.clone()).collect();
        variables.sort();
        variables.dedup();
        AgentCredential {
            kind: credential.kind.clone(),
            hosts: kind.map(|kind| kind.hosts).unwrap_or_default(),
            variables,
        }
    });
    let context = profile.context.iter();
    let files = profile.files.iter().map(|file| &file.path).chain(context);
    let there = added::profiles().find(|there| there.name == profile.name);
    AgentOpens {
        agent: profile.name.clone(),
        title: profile.title.clone(),
        command: profile.command.clone(),
        hosts: profile.hosts.clone(),
        credential,
        variables: profile.env.keys().cloned().collect(),
        files: files.cloned().collect(),
        mode: profile.modes.ask.clone(),
        replaces: there.is_some_and(|there| there != profile),
    }
}

/// Reads what was asked to be added, and tells what it opens.
///
/// # Errors
/// [`AddError`]: nothing was changed.
pub async fn add(host: &Host, asked: AgentAdd) -> Result<AgentOpens, AddError> {
    let rows = host.store.read(rows::every).await?;
    let hosts = rows.iter().flat_map(|(row, _)| {
        let hosts = credentials::hosts_of(row).into_iter();
        hosts.map(|host| (host, row.kind.clone()))
    });
    let asked_file = PathBuf::from(&asked.file);
    let text = acp_registry::profile_of(&asked_file, asked.text).map_err(AddError::Fault)?;
    let named = Text {
        file: &asked_file,
        text: &text,
    };
    // Rows of a kind that this agent brought itself claim nothing against it.
    let own = added::profiles().filter_map(|profile| profile.credential.as_ref());
    let own: Vec<&str> = own.map(|credential| credential.kind.as_str()).collect();
    let claims = hosts.filter(|(_, kind)| !own.contains(&kind.as_str()));
    let profile = read(&named, &claims.collect()).map_err(AddError::Fault)?;
    let opens = opens(&profile);
    if !asked.agreed {
        return Ok(opens);
    }
    if !added::has_room(&profile.name) {
        return Err(AddError::TooMany);
    }
    let path = folder(&host.paths.config).join(format!("{}.toml", profile.name));
    write(&path, &text).map_err(|source| AddError::Write { path, source })?;
    added::put(profile);
    retell(host).await;
    Ok(opens)
}

/// What a preset lets through follows from the profiles there are. A box-egress that is away catches up
/// when it is back.
pub(super) async fn retell(host: &Host) {
    if let Err(error) = host.egress.reload().await {
        tracing::warn!(%error, "box-egress was not told of the agents there are");
    }
}

/// Where profiles lie: beside the settings.
pub(super) fn folder(settings: &Path) -> PathBuf {
    settings.with_file_name("agents.d")
}

/// All of it or nothing.
fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let beside = path.with_extension("new");
    let mut file = std::fs::File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o644)
        .open(&beside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&beside, path)
}

/// Takes up the profiles beside the settings. One that cannot be used stops nothing: it is logged,
/// and shown by `box agent list`.
pub fn load(settings: &Path) {
    added::clear();
    let entries = std::fs::read_dir(folder(settings)).into_iter().flatten();
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    files.sort();
    for file in files {
        if let Err(fault) = load_one(&file) {
            tracing::warn!(%fault, "the profile of an agent is not used");
            added::note(fault);
        }
    }
}

fn load_one(file: &Path) -> Result<(), Fault> {
    let fault = |what: String| Fault {
        file: file.to_owned(),
        line: None,
        what,
    };
    let mut text = String::new();
    let opened = std::fs::File::open(file);
    let bytes_max = PROFILE_BYTES_MAX as u64 + 1;
    opened
        .and_then(|file| file.take(bytes_max).read_to_string(&mut text))
        .map_err(|error| fault(error.to_string()))?;
    let profile = read_own(file, &text)?;
    if file.file_stem() != Some(profile.name.as_ref()) {
        let what = format!(
            "it is the profile of `{0}` and belongs into `{0}.toml`",
            profile.name
        );
        return Err(fault(what));
    }
    if !added::has_room(&profile.name) {
        return Err(fault(AddError::TooMany.to_string()));
    }
    added::put(profile);
    Ok(())
}

#[cfg(test)]
mod tests;
