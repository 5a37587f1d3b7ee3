//! A box's policy as its owner sees and changes it.

use super::lint;
use super::rules::{self, Rule, Ruling, Scope};
use crate::boxes::{self, BoxRecord};
use crate::credentials;
use crate::events;
use crate::host::Host;
use crate::paths::Paths;
use crate::policy::{self, Levelled, Unknown};
use crate::random::Random;
use crate::settings::{Settings, SettingsError};
use crate::store::{Durability, StoreError};
use box_api::control::{BoxState, EventKind, NetPreset};
use box_api::egress::{Entry, EntryError, HostName, HostPattern, PrivateEntry};
use box_api::network::{Finding, PolicyEntry, PolicyShown, Weight};
use box_api::{BoxName, Owner};
use std::collections::BTreeSet;

/// Entries one wish can name.
const ENTRIES_MAX: usize = 256;

/// Entries of one box, or of an owner for all of theirs; box-egress takes many more in a list.
const RULES_MAX: usize = 1024;
/// Exceptions for private addresses one box can have.
const PRIVATE_MAX: usize = 16;

/// What is to be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    pub net: Option<NetPreset>,
    pub allow: Vec<String>,
    pub deny: Vec<String>,
    /// Entries to be taken away, whatever they say.
    pub remove: Vec<String>,
    /// `name:port` that may lead to a private address (decision D10).
    pub private: Vec<String>,
    pub scope: Scope,
    /// Who wishes it.
    pub by: Owner,
}

/// Why a policy was not changed. Nothing of the wish was carried out then.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    #[error("could not use the entry `{entry}`")]
    Entry {
        entry: String,
        #[source]
        source: EntryError,
    },
    #[error("the entry `{}` {}", .0.entry, .0.text)]
    Never(Finding),
    #[error("`{entry}` is about requests to a host that is not opened up for this box")]
    NotOpened { entry: String },
    #[error("`{entry}` cannot be allowed and denied at once")]
    Both { entry: String },
    #[error("there is no entry `{entry}` to take away")]
    NoSuchEntry { entry: String },
    #[error("a preset belongs to one box")]
    PresetEverywhere,
    #[error("an exception for a private address belongs to one box")]
    PrivateEverywhere,
    #[error("{count} entries are too many at once: {ENTRIES_MAX} at most")]
    TooMany { count: usize },
    #[error("{count} entries are too many: {RULES_MAX} at most")]
    Full { count: usize },
    #[error("{count} exceptions for private addresses are too many: {PRIVATE_MAX} at most")]
    FullOfPrivate { count: usize },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A wish that was read.
struct Parsed {
    allow: Vec<Entry>,
    deny: Vec<Entry>,
    remove: Vec<String>,
    private: Vec<PrivateEntry>,
}

impl Parsed {
    fn read(wish: &Wish) -> Result<Self, PolicyError> {
        let count = wish.allow.len() + wish.deny.len() + wish.remove.len() + wish.private.len();
        if count > ENTRIES_MAX {
            return Err(PolicyError::TooMany { count });
        }
        if wish.scope == Scope::Owner && wish.net.is_some() {
            return Err(PolicyError::PresetEverywhere);
        }
        if wish.scope == Scope::Owner && !wish.private.is_empty() {
            return Err(PolicyError::PrivateEverywhere);
        }
        let (allow, deny) = (parsed(&wish.allow)?, parsed(&wish.deny)?);
        if let Some(entry) = allow.iter().find(|entry| deny.contains(entry)) {
            let entry = entry.to_string();
            return Err(PolicyError::Both { entry });
        }
        let private = wish.private.iter().map(|entry| {
            PrivateEntry::parse(entry).map_err(|source| PolicyError::Entry {
                entry: entry.clone(),
                source,
            })
        });
        Ok(Self {
            remove: wish.remove.iter().map(|entry| spelled(entry)).collect(),
            private: private.collect::<Result<_, _>>()?,
            allow,
            deny,
        })
    }

    fn rules(&self) -> impl Iterator<Item = (&Entry, Ruling)> {
        let allow = self.allow.iter().map(|entry| (entry, Ruling::Allow));
        allow.chain(self.deny.iter().map(|entry| (entry, Ruling::Deny)))
    }

    /// # Errors
    /// An entry that is never meant.
    fn check(&self) -> Result<(), PolicyError> {
        let levelled: Vec<Levelled> = self
            .rules()
            .map(|(entry, ruling)| Levelled {
                entry: entry.clone(),
                ruling,
                from: String::new(),
            })
            .collect();
        let mut findings = lint::of_entries(&levelled).into_iter();
        match findings.find(|finding| finding.weight == Weight::Error) {
            Some(finding) => Err(PolicyError::Never(finding)),
            None => Ok(()),
        }
    }

    /// # Errors
    /// A rule about requests to a host whose requests cannot be read.
    fn check_opened(&self, opened: &[HostName]) -> Result<(), PolicyError> {
        let mut rules = self.rules().map(|(entry, _)| entry);
        let closed = rules.find(|entry| match entry {
            Entry::Request(request) => !opened.contains(request.host()),
            Entry::Host(_) | Entry::Network(_) => false,
        });
        closed.map_or(Ok(()), |entry| {
            let entry = entry.to_string();
            Err(PolicyError::NotOpened { entry })
        })
    }
}

/// An entry as it is written now. One that cannot be read, as another build wrote it, stays as it is:
/// it can be taken away all the same.
fn spelled(entry: &str) -> String {
    Entry::parse(entry).map_or_else(|_| entry.to_owned(), |entry| entry.to_string())
}

fn parsed(entries: &[String]) -> Result<Vec<Entry>, PolicyError> {
    let parse = |entry: &String| {
        Entry::parse(entry).map_err(|source| PolicyError::Entry {
            entry: entry.clone(),
            source,
        })
    };
    entries.iter().map(parse).collect()
}

/// Changes what holds for a box, at once.
///
/// # Errors
/// [`PolicyError`]
pub async fn set(host: &Host, record: &BoxRecord, wish: Wish) -> Result<(), PolicyError> {
    let parsed = Parsed::read(&wish)?;
    parsed.check()?;
    if wish.scope == Scope::Box {
        parsed.check_opened(&opened(host, record).await?)?;
    }
    let box_id = (wish.scope == Scope::Box).then_some(record.id);
    let (owner, net, by) = (record.owner, wish.net, wish.by);
    let row = Row {
        id: record.id,
        owner,
        box_id,
        at_ms: host.now_ms(),
    };
    let written = host.store.write(Durability::Full, move |tables| {
        write(tables, &row, net, &parsed)
    });
    let changed = written.await??;
    for (entry, is_given) in changed {
        let may = if is_given { "may" } else { "may no longer" };
        let text = format!("{may} reach `{entry}` on a private address, says {by}");
        events::try_note(host, record.id, EventKind::Private, text).await;
    }
    rules::hand_over(host, owner, box_id).await?;
    Ok(())
}

/// Which rows are changed.
struct Row {
    id: box_api::BoxId,
    owner: Owner,
    /// Absent: those of every box of the owner.
    box_id: Option<box_api::BoxId>,
    at_ms: i64,
}

/// Exceptions that were given or taken away.
type Exceptions = Vec<(PrivateEntry, bool)>;

/// Everything is looked at before anything is written.
fn write(
    tables: &rusqlite::Transaction<'_>,
    row: &Row,
    net: Option<NetPreset>,
    wish: &Parsed,
) -> rusqlite::Result<Result<Exceptions, PolicyError>> {
    let box_id = row.box_id.as_ref();
    let mut own = boxes::rows::get(tables, &row.id)?.map_or_else(Vec::new, |record| record.allow);
    let known = rules::of_scope(tables, &row.owner, box_id)?;
    let private = match box_id {
        Some(id) => rules::private(tables, id)?,
        None => Vec::new(),
    };
    let is_private = |entry: &str| private.iter().find(|own| own.to_string() == entry);
    let is_there = |entry: &String| {
        known.iter().any(|own| spelled(own) == *entry)
            || (box_id.is_some() && own.contains(entry))
            || is_private(entry).is_some()
    };
    if let Some(entry) = wish.remove.iter().find(|entry| !is_there(entry)) {
        let entry = entry.clone();
        return Ok(Err(PolicyError::NoSuchEntry { entry }));
    }
    let count = known.len() + wish.allow.len() + wish.deny.len();
    if count > RULES_MAX {
        return Ok(Err(PolicyError::Full { count }));
    }
    let count = private.len() + wish.private.len();
    if count > PRIVATE_MAX && !wish.private.is_empty() {
        return Ok(Err(PolicyError::FullOfPrivate { count }));
    }
    let mut exceptions = Vec::new();
    for entry in &wish.remove {
        for own in known.iter().filter(|own| spelled(own) == *entry) {
            rules::remove(tables, &row.owner, box_id, own)?;
        }
        if let Some(exception) = is_private(entry) {
            rules::set_private(tables, &row.id, exception, None)?;
            exceptions.push((exception.clone(), false));
        }
    }
    for exception in &wish.private {
        if rules::set_private(tables, &row.id, exception, Some(row.at_ms))? {
            exceptions.push((exception.clone(), true));
        }
    }
    for (entry, ruling) in wish.rules() {
        let rule = Rule {
            entry: entry.to_string(),
            ruling,
            box_id: row.box_id,
        };
        rules::put(tables, &row.owner, &rule, row.at_ms)?;
    }
    if box_id.is_some() {
        own.retain(|entry| !wish.remove.contains(entry));
    }
    boxes::rows::set_net(tables, &row.id, net, &own)?;
    Ok(Ok(exceptions))
}

/// Hosts that are opened up for a box, as it has a credential for them.
async fn opened(host: &Host, record: &BoxRecord) -> Result<Vec<HostName>, StoreError> {
    let id = record.id;
    let read = host
        .store
        .read(move |rows| credentials::bindings(rows, &id));
    let bindings = read.await?.into_iter();
    Ok(bindings.flat_map(|binding| binding.hosts).collect())
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
    let read = host.store.read(move |rows| {
        Ok((
            rules::of_box(rows, &owner, &id)?,
            rules::private(rows, &id)?,
        ))
    });
    let (own, private) = read.await?;
    let opened = opened(host, &record).await?;
    let settings = host.current.now();
    let preset = policy::preset(&record, &settings);
    let levels = policy::levels(&record, &settings, &own);
    let (levels, unknown) = match levels {
        Ok(levels) => (levels, None),
        Err(unknown) => (Vec::new(), Some(finding(&unknown))),
    };
    let mut findings: Vec<Finding> = unknown.into_iter().collect();
    findings.extend(lint::of_whole(&levels, preset, &opened));
    let mut entries: Vec<PolicyEntry> = levels.iter().map(line).collect();
    entries.extend(private.iter().map(|entry| PolicyEntry {
        entry: entry.to_string(),
        verdict: "private".to_owned(),
        from: "box".to_owned(),
    }));
    let hosts: BTreeSet<String> = opened.iter().map(ToString::to_string).collect();
    Ok(PolicyShown {
        net: preset,
        preset_hosts: preset_hosts(host, preset).await,
        entries,
        credential_hosts: hosts.into_iter().collect(),
        github: crate::github::scope_of(&record),
        net_set: record.settings.net_set,
        logins: record.settings.logins,
        findings,
        name: record.name,
    })
}

/// What a new box has here, shown as the policy of a box of that name.
pub async fn defaults(host: &Host, name: BoxName) -> PolicyShown {
    let settings = host.current.now();
    let preset = match &settings.net.allowed_hosts {
        Some(hosts) if !hosts.is_empty() => NetPreset::Locked,
        Some(_) | None => settings.preset.value,
    };
    let levels = policy::of_deployment(&settings);
    PolicyShown {
        name,
        net: preset,
        preset_hosts: preset_hosts(host, preset).await,
        entries: levels.iter().map(line).collect(),
        credential_hosts: Vec::new(),
        github: box_api::egress::GithubScope::default(),
        net_set: None,
        logins: box_api::egress::Logins::default(),
        findings: lint::of_settings(&settings),
    }
}

fn finding(unknown: &Unknown) -> Finding {
    let (entry, from, text) = match unknown {
        Unknown::SetGone { entry } => (
            entry,
            "box",
            "is a set the settings do not have: this box has no way out",
        ),
        Unknown::Denial { entry, from } => (
            entry,
            *from,
            "is denied and cannot be read any more: this box has no way out until it is taken away",
        ),
    };
    Finding {
        entry: entry.clone(),
        from: from.to_owned(),
        weight: Weight::Error,
        text: text.to_owned(),
    }
}

fn line(levelled: &Levelled) -> PolicyEntry {
    PolicyEntry {
        entry: levelled.entry.to_string(),
        verdict: match levelled.ruling {
            Ruling::Allow => "allow".to_owned(),
            Ruling::Deny => "deny".to_owned(),
        },
        from: levelled.from.clone(),
    }
}

async fn preset_hosts(host: &Host, preset: NetPreset) -> Vec<String> {
    let hosts = match preset {
        NetPreset::Balanced => {
            let machine = host.machine.clone();
            let read = tokio::task::spawn_blocking(move || policy::balanced(&machine));
            read.await.unwrap_or_default()
        }
        NetPreset::Open | NetPreset::Locked => Vec::new(),
    };
    hosts.iter().map(HostPattern::to_string).collect()
}

/// Why settings that were read again do not hold. What held before still does.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Files(#[from] crate::egress::PrepareError),
    #[error("the settings hold, but box-egress has not been told yet")]
    Egress(#[from] crate::egress::EgressError),
    #[error("the host is ending")]
    Ending,
}

/// Reads the settings again and has `[net]` and `[egress]` of them hold at once. Connections that
/// are still allowed go on.
///
/// # Errors
/// [`ReloadError`]
pub async fn reload(host: &Host) -> Result<Vec<Finding>, ReloadError> {
    let current = host.current.clone();
    let read = tokio::task::spawn_blocking(move || -> Result<Settings, ReloadError> {
        let read = current.read_again()?;
        crate::egress::check_settings(&read)?;
        Ok(read)
    });
    let read = read.await.map_err(|_| ReloadError::Ending)??;
    let findings = lint::of_settings(&read);
    host.current.replace(read);
    tracing::info!("the settings were read again");
    // Boxes that start from now on trust what the settings say now.
    remake(host, crate::egress::prepare).await?;
    host.egress.reload().await?;
    Ok(findings)
}

/// Makes another CA and hands it over (C139). Gives the boxes that run: they trust the old one until
/// they are started again.
///
/// # Errors
/// [`ReloadError`]
pub async fn new_ca(host: &Host) -> Result<Vec<BoxName>, ReloadError> {
    remake(host, crate::egress::replace_ca).await?;
    tracing::info!("the CA was replaced");
    host.egress.reload().await?;
    let all = host.store.read(boxes::rows::all).await;
    let all = all.map_err(|_| ReloadError::Ending)?;
    let running = all
        .into_iter()
        .filter(|record| matches!(record.state, BoxState::Running | BoxState::Starting));
    Ok(running.map(|record| record.name).collect())
}

/// What makes the files boxes are given.
type Remake = fn(&Paths, &Settings, &dyn Random) -> Result<(), crate::egress::PrepareError>;

/// One at a time: the files are born under the same names.
async fn remake(host: &Host, how: Remake) -> Result<(), ReloadError> {
    static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let _turn = TURN.lock().await;
    let (paths, settings) = (host.paths.clone(), host.current.now());
    let random = host.random.clone();
    let made = tokio::task::spawn_blocking(move || how(&paths, &settings, &*random));
    Ok(made.await.map_err(|_| ReloadError::Ending)??)
}
