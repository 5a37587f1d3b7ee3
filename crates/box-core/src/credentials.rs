//! Accounts of agents: where a secret goes (into box-egress' memory and nowhere else), what a box
//! gets in its place, and whether it is there.
//!
//! A placeholder is made when a box first needs it: one per box and credential, shaped like the
//! secret, with 128 random bits at least. It means something in its own box alone (decision D1).

mod placeholder;
pub mod rows;
mod secret;

pub use secret::{Secret, SecretError};

use crate::agents::{self, AgentProfile};
use crate::boxes::BoxRecord;
use crate::caller::Caller;
use crate::egress::EgressError;
use crate::host::Host;
use crate::store::{Durability, StoreError};
use box_api::control::{Accounts, BoxState, CredentialInfo};
use box_api::egress::{Binding, Carriage, CredentialSpec, CredentialState, HostName};
use box_api::{BoxId, Owner};
use rows::CredentialRow;

/// The account of a kind a person gave no name (decision D34).
pub const DEFAULT_NAME: &str = "default";
const NAME_CHARS_MAX: usize = 63;
const CREDENTIALS_MAX: usize = 64;

/// Why a credential was not added, listed or removed.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    #[error("there is no credential of the kind `{kind}`")]
    UnknownKind {
        kind: String,
        known: Vec<&'static str>,
    },
    #[error("a credential's name has 1 to {NAME_CHARS_MAX} of a-z, 0-9, `-`, `_` and `.`")]
    Name,
    #[error("could not use the secret for `{kind}`")]
    Secret {
        kind: String,
        #[source]
        source: SecretError,
    },
    #[error("a user has at most {CREDENTIALS_MAX} credentials")]
    TooMany,
    #[error("there is no credential `{0}`")]
    Unknown(String),
    #[error("could not hand the credential to box-egress")]
    Egress(#[from] EgressError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Whether an agent's account is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    Present,
    /// Nobody added one.
    Absent,
    /// One was added, but box-egress has lost its memory since.
    Lost,
}

/// Adds a credential or replaces the one of this kind and name.
///
/// # Errors
/// [`CredentialError`]; an older secret of the name still holds then.
pub async fn add(
    host: &Host,
    caller: &Caller,
    kind: &str,
    name: &str,
    secret: Secret,
) -> Result<CredentialInfo, CredentialError> {
    let profile = profile_of(kind)?;
    check_name(name)?;
    let shape = secret
        .shape(profile)
        .map_err(|source| CredentialError::Secret {
            kind: kind.to_owned(),
            source,
        })?;
    let row = CredentialRow {
        owner: caller.owner,
        kind: kind.to_owned(),
        name: name.to_owned(),
        prefix: shape.prefix.clone(),
        chars: secret.chars(),
        added_at_ms: host.now_ms(),
    };
    let spec = spec_of(&row).ok_or_else(|| unknown_kind(kind))?;
    host.egress
        .add_credential(spec, secret.into_bytes())
        .await?;

    let written = row.clone();
    let stale = host
        .store
        .write(Durability::Full, move |transaction| {
            rows::put(transaction, &written)
        })
        .await?;
    let stale = match stale {
        rows::Put::Done { stale_placeholders } => stale_placeholders,
        rows::Put::TooMany => {
            host.egress.remove_credential(row.id()).await?;
            return Err(CredentialError::TooMany);
        }
    };
    forget(host, stale).await;
    Ok(row.info())
}

/// The caller's credentials, never a secret. Those whose secret box-egress does not have are
/// `lost`; while it is away nobody knows, and none is called so.
///
/// # Errors
/// What the store said.
pub async fn list(host: &Host, caller: &Caller) -> Result<Vec<CredentialInfo>, StoreError> {
    let owner = caller.owner;
    let rows = host
        .store
        .read(move |connection| rows::of_owner(connection, &owner))
        .await?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let held = host.egress.credentials().await;
    let lost = |row: &CredentialRow| held.as_ref().is_ok_and(|held| !holds(held, row));
    Ok(rows
        .iter()
        .map(|row| CredentialInfo {
            lost: lost(row),
            ..row.info()
        })
        .collect())
}

/// Whether box-egress has the secret of a credential.
fn holds(held: &[CredentialState], row: &CredentialRow) -> bool {
    held.iter()
        .any(|state| state.spec.id == row.id() && state.present)
}

/// Wipes a credential. `name` is `<kind>` or `<kind>:<name>`. Its placeholders mean nothing from
/// then on.
///
/// # Errors
/// [`CredentialError::Unknown`] when the caller has none of that name.
pub async fn remove(host: &Host, caller: &Caller, name: &str) -> Result<(), CredentialError> {
    let (kind, account) = name.split_once(':').unwrap_or((name, DEFAULT_NAME));
    let owner = caller.owner;
    let (kind, account) = (kind.to_owned(), account.to_owned());
    let id = rows::credential_id(&owner, &kind, &account);
    let removed = host.store.write(Durability::Full, move |transaction| {
        rows::remove(transaction, &owner, &kind, &account)
    });
    // The placeholders stay bound where boxes run: what still sends one is refused and told why,
    // where an unbound host would be tunnelled to with it.
    if removed.await?.is_none() {
        return Err(CredentialError::Unknown(name.to_owned()));
    }
    match host.egress.remove_credential(id).await {
        // A box-egress that is away has no secret any more.
        Ok(()) | Err(EgressError::Away { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Whether the owner of a box has the account an agent of it needs.
///
/// # Errors
/// What the store or box-egress said.
pub async fn presence(host: &Host, owner: Owner, kind: &str) -> Result<Presence, CredentialError> {
    let kind = kind.to_owned();
    let row = host
        .store
        .read(move |connection| rows::default_of(connection, &owner, &kind));
    let Some(row) = row.await? else {
        return Ok(Presence::Absent);
    };
    let id = row.id();
    let known = host.egress.credentials().await?;
    let there = known
        .iter()
        .any(|state| state.spec.id == id && state.present);
    Ok(if there {
        Presence::Present
    } else {
        Presence::Lost
    })
}

/// The variables that hold a box's placeholders: for every command and every agent of the box.
/// Makes the placeholders that are missing, and tells box-egress about them.
///
/// # Errors
/// What the store said.
pub async fn environment_for_process(
    host: &Host,
    record: &BoxRecord,
) -> Result<Vec<(String, String)>, StoreError> {
    let made = ensure_placeholders(host, record).await?;
    let mut variables = Vec::with_capacity(made.len());
    for (row, placeholder, fresh) in made {
        let Some(variable) = variable_of(&row) else {
            continue;
        };
        if let (Fresh::Yes, Some(binding)) = (fresh, binding_of(&row, &placeholder)) {
            bind(host, record, binding).await;
        }
        variables.push((variable, placeholder));
    }
    Ok(variables)
}

/// What box-egress is to know of a box's placeholders.
///
/// # Errors
/// What the database said.
pub fn bindings(connection: &rusqlite::Connection, id: &BoxId) -> rusqlite::Result<Vec<Binding>> {
    let rows = rows::placeholders_of(connection, id)?;
    Ok(rows
        .iter()
        .filter_map(|(row, placeholder)| binding_of(row, placeholder))
        .collect())
}

/// Whether a placeholder was made just now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fresh {
    Yes,
    No,
}

async fn ensure_placeholders(
    host: &Host,
    record: &BoxRecord,
) -> Result<Vec<(CredentialRow, String, Fresh)>, StoreError> {
    if record.settings.accounts == Accounts::None {
        return Ok(Vec::new());
    }
    let (id, owner) = (record.id, record.owner);
    let (wanted, have) = host
        .store
        .read(move |connection| {
            Ok((
                rows::defaults_of(connection, &owner)?,
                rows::placeholders_of(connection, &id)?,
            ))
        })
        .await?;
    let mut all = Vec::with_capacity(wanted.len());
    for row in wanted {
        let found = have.iter().find(|(had, _)| had.id() == row.id());
        if let Some((_, placeholder)) = found {
            all.push((row, placeholder.clone(), Fresh::No));
            continue;
        }
        let fresh = placeholder::make(&row.prefix, row.chars, &*host.random);
        let (written, at_ms) = (row.clone(), host.now_ms());
        // Two commands that start at once make one: the first row stays.
        let kept = host.store.write(Durability::Prompt, move |transaction| {
            rows::put_placeholder(transaction, &id, &written, &fresh, at_ms)
        });
        all.push((row, kept.await?, Fresh::Yes));
    }
    Ok(all)
}

/// Takes every placeholder from a box: none of them is worth anything from now on.
///
/// # Errors
/// What the store said.
pub async fn take_away(host: &Host, id: BoxId) -> Result<(), StoreError> {
    let gone = host.store.write(Durability::Full, move |transaction| {
        rows::take_from_box(transaction, &id)
    });
    let gone = gone.await?;
    forget(host, gone.into_iter().map(|one| (id, one)).collect()).await;
    Ok(())
}

/// Gives a clone placeholders of its own for every account its source has one of (D34). Accounts of
/// another owner are left out.
///
/// # Errors
/// What the store said.
pub async fn bind_like(
    host: &Host,
    source: &BoxRecord,
    clone: &BoxRecord,
) -> Result<(), StoreError> {
    let (from, id, owner) = (source.id, clone.id, clone.owner);
    let had = host
        .store
        .read(move |connection| rows::placeholders_of(connection, &from));
    for (row, _) in had.await? {
        if row.owner != owner {
            continue;
        }
        let fresh = placeholder::make(&row.prefix, row.chars, &*host.random);
        let at_ms = host.now_ms();
        let kept = host.store.write(Durability::Prompt, move |transaction| {
            rows::put_placeholder(transaction, &id, &row, &fresh, at_ms)
        });
        kept.await?;
    }
    Ok(())
}

async fn bind(host: &Host, record: &BoxRecord, binding: Binding) {
    if record.state != BoxState::Running && record.state != BoxState::Starting {
        return;
    }
    if let Err(error) = host.egress.bind(record.id, binding).await {
        // It is bound from the rows when box-egress is back; until then requests are refused.
        tracing::warn!(id = %record.id, %error, "a placeholder is not bound yet");
    }
}

async fn forget(host: &Host, placeholders: Vec<(BoxId, String)>) {
    for (box_id, placeholder) in placeholders {
        if let Err(error) = host.egress.unbind(box_id, placeholder).await {
            tracing::debug!(id = %box_id, %error, "a placeholder was not unbound");
        }
    }
}

/// The profile whose account has this kind.
fn profile_of(kind: &str) -> Result<&'static AgentProfile, CredentialError> {
    let mut profiles = agents::profiles().iter();
    profiles
        .find(|profile| kind_of(profile) == Some(kind))
        .ok_or_else(|| unknown_kind(kind))
}

fn kind_of(profile: &AgentProfile) -> Option<&str> {
    profile
        .credential
        .as_ref()
        .map(|credential| credential.kind.as_str())
}

fn unknown_kind(kind: &str) -> CredentialError {
    let known = agents::profiles().iter().filter_map(kind_of).collect();
    CredentialError::UnknownKind {
        kind: kind.to_owned(),
        known,
    }
}

fn check_name(name: &str) -> Result<(), CredentialError> {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
    if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(good) {
        return Err(CredentialError::Name);
    }
    Ok(())
}

/// What box-egress is told of a credential beside its secret.
fn spec_of(row: &CredentialRow) -> Option<CredentialSpec> {
    let credential = profile_of(&row.kind).ok()?.credential.as_ref()?;
    let shape = credential
        .shapes
        .iter()
        .find(|shape| shape.prefix == row.prefix)?;
    let carriage = match (shape.header.as_str(), shape.scheme.as_deref()) {
        ("authorization", Some("Bearer")) => Carriage::Bearer,
        ("authorization", Some("Basic")) => Carriage::Basic,
        (header, _) => Carriage::Header {
            name: header.to_owned(),
        },
    };
    Some(CredentialSpec {
        id: row.id(),
        kind: row.kind.clone(),
        hosts: host_names(&credential.hosts),
        carried: vec![carriage],
    })
}

fn binding_of(row: &CredentialRow, placeholder: &str) -> Option<Binding> {
    let credential = profile_of(&row.kind).ok()?.credential.as_ref()?;
    Some(Binding {
        placeholder: placeholder.to_owned(),
        credential: row.id(),
        hosts: host_names(&credential.hosts),
    })
}

fn variable_of(row: &CredentialRow) -> Option<String> {
    let credential = profile_of(&row.kind).ok()?.credential.as_ref()?;
    let shape = credential
        .shapes
        .iter()
        .find(|shape| shape.prefix == row.prefix)?;
    Some(shape.variable.clone())
}

/// Profiles are checked when they are read, so that none is left out here.
fn host_names(hosts: &[String]) -> Vec<HostName> {
    hosts
        .iter()
        .filter_map(|host| HostName::parse(host).ok())
        .collect()
}
