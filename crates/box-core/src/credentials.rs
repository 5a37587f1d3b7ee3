//! Accounts: where a secret comes from, where it goes (into box-egress' memory, and sealed into the
//! database), what a box gets in its place, and whether it is there.
//!
//! A placeholder is made when a box first needs it: one per box and credential, shaped like the
//! secret, with 128 random bits at least. It means something in its own box alone (decision D1).

mod add;
mod aside;
mod command;
mod give;
pub mod kinds;
pub mod logins;
mod placeholder;
mod renew;
mod restore;
pub mod rows;
mod seal;
mod secret;
pub mod vault;

pub use add::{Asked, add, add_in_memory, rotate};
pub(crate) use add::{bad_carriage, bad_variable};
pub(crate) use aside::{open_aside, seal_aside};
pub use command::CommandError;
pub(crate) use give::spec_of;
pub use give::{
    accounts_of, adjust, bind_like, bindings, environment_for_process, helper_hosts, missing,
};
pub use renew::run;
pub use restore::{New, seal_info, unlock};
pub(crate) use restore::{Restored, lost_with_it, restored};
pub use secret::{Secret, SecretError};
pub use vault::{Vault, VaultError};

use crate::caller::Caller;
use crate::egress::EgressError;
use crate::host::Host;
use crate::store::{Durability, StoreError};
use box_api::control::{CredentialInfo, SealMethod};
use box_api::egress::CredentialState;
use box_api::{BoxId, Owner};
pub(crate) use give::hosts_of;
use give::{carried, variables_of};
use kinds::Kind;
use rows::CredentialRow;

/// The account of a kind a person gave no name (decision D34).
pub const DEFAULT_NAME: &str = "default";
/// Stands for no account where accounts are named.
const NO_NAME: &str = "none";
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
    #[error(
        "a credential's name has 1 to {NAME_CHARS_MAX} of a-z, 0-9, `-`, `_` and `.`, and is not `{NO_NAME}`"
    )]
    Name,
    #[error("could not use the secret for `{kind}`")]
    Secret {
        kind: String,
        #[source]
        source: SecretError,
    },
    /// What it was told of hosts, headers or variables.
    #[error("a credential for `{kind}` cannot be like that: {why}")]
    Form { kind: String, why: String },
    #[error("the new secret for `{name}` goes elsewhere in a request than the one before")]
    OtherForm { name: String },
    #[error("the command for `{name}` gave no secret")]
    Command {
        name: String,
        #[source]
        source: CommandError,
    },
    #[error("could not seal the secret")]
    Vault(#[from] VaultError),
    #[error("a user has at most {CREDENTIALS_MAX} credentials")]
    TooMany,
    #[error("there is no credential `{0}`")]
    Unknown(String),
    #[error("`{name}` could be any of {}", .all.join(", "))]
    Ambiguous { name: String, all: Vec<String> },
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
    /// One was added, but its secret is not there: lost with box-egress, or locked.
    Lost,
}

/// The caller's credentials, never a secret. Those whose secret box-egress does not have are
/// `lost`; while it is away nobody knows, and none is called so.
///
/// # Errors
/// What the store said.
pub async fn list(host: &Host, caller: &Caller) -> Result<Vec<CredentialInfo>, StoreError> {
    let owner = caller.owner;
    let (rows, users) = host
        .store
        .read(move |connection| {
            Ok((
                rows::of_owner(connection, &owner)?,
                rows::users(connection, &owner)?,
            ))
        })
        .await?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let held = host.egress.credentials().await;
    let lost = |row: &CredentialRow| held.as_ref().is_ok_and(|held| !holds(held, row));
    let boxes = |row: &CredentialRow| {
        let having = users
            .iter()
            .filter(|(_, _, kind, name)| (kind, name) == (&row.kind, &row.name));
        having.map(|(_, name, ..)| name.clone()).collect()
    };
    Ok(rows
        .iter()
        .map(|row| CredentialInfo {
            lost: lost(row),
            boxes: boxes(row),
            ..row.info()
        })
        .collect())
}

/// Whether box-egress has the secret of a credential.
fn holds(held: &[CredentialState], row: &CredentialRow) -> bool {
    held.iter()
        .any(|state| state.spec.id == row.id() && state.present)
}

/// Wipes a credential, named as [`resolve`] says. Its placeholders mean nothing from then on.
///
/// # Errors
/// [`CredentialError::Unknown`] when the caller has none of that name.
pub async fn remove(host: &Host, caller: &Caller, name: &str) -> Result<(), CredentialError> {
    let row = resolve(host, caller, name).await?;
    let (owner, kind, account, id) = (row.owner, row.kind.clone(), row.name.clone(), row.id());
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

/// The caller's credential called `<kind>:<name>`, `<kind>` (the default of its kind), or `<name>`
/// where there is one of that name only.
async fn resolve(
    host: &Host,
    caller: &Caller,
    text: &str,
) -> Result<CredentialRow, CredentialError> {
    let owner = caller.owner;
    let rows = host
        .store
        .read(move |connection| rows::of_owner(connection, &owner))
        .await?;
    let unknown = || CredentialError::Unknown(text.to_owned());
    let kind_of =
        |word: &str| kinds::find(word).map_or_else(|| word.to_owned(), |kind| kind.name.clone());
    if let Some((kind, name)) = text.split_once(':') {
        let kind = kind_of(kind);
        let mut found = rows.into_iter();
        let found = found.find(|row| row.kind == kind && row.name == name);
        return found.ok_or_else(unknown);
    }
    let kind = kind_of(text);
    let mut of_kind: Vec<CredentialRow> = rows
        .iter()
        .filter(|row| row.kind == kind)
        .cloned()
        .collect();
    if let Some(at) = of_kind.iter().position(|row| row.name == DEFAULT_NAME) {
        return Ok(of_kind.swap_remove(at));
    }
    let mut candidates = if of_kind.is_empty() {
        rows.into_iter().filter(|row| row.name == text).collect()
    } else {
        of_kind
    };
    if candidates.len() > 1 {
        let all = candidates
            .iter()
            .map(|row| format!("`{}:{}`", row.kind, row.name));
        return Err(CredentialError::Ambiguous {
            name: text.to_owned(),
            all: all.collect(),
        });
    }
    candidates.pop().ok_or_else(unknown)
}

/// Whether the owner of a box has the account an agent of it needs.
///
/// # Errors
/// What the store or box-egress said.
pub async fn presence(
    host: &Host,
    owner: Owner,
    kind: &str,
    accounts: &box_api::control::Accounts,
) -> Result<Presence, CredentialError> {
    let kind = kinds::find(kind).map_or(kind, |kind| &kind.name).to_owned();
    let rows = host
        .store
        .read(move |connection| rows::of_owner(connection, &owner));
    let chosen = give::chosen(&rows.await?, accounts);
    let Some(row) = chosen.into_iter().find(|row| row.kind == kind) else {
        return Ok(Presence::Absent);
    };
    let known = host.egress.credentials().await?;
    Ok(if holds(&known, &row) {
        Presence::Present
    } else {
        Presence::Lost
    })
}

async fn forget(host: &Host, placeholders: Vec<(BoxId, String)>) {
    for (box_id, placeholder) in placeholders {
        if let Err(error) = host.egress.unbind(box_id, placeholder).await {
            tracing::debug!(id = %box_id, %error, "a placeholder was not unbound");
        }
    }
}

/// The kind of a credential there is; a newer build may have left one of its own.
fn kind_of(row: &CredentialRow) -> Option<&'static Kind> {
    kinds::find(&row.kind)
}

fn unknown_kind(kind: &str) -> CredentialError {
    let known = kinds::all().map(|kind| &*kind.name).collect();
    CredentialError::UnknownKind {
        kind: kind.to_owned(),
        known,
    }
}

fn check_name(name: &str) -> Result<(), CredentialError> {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
    let is_long = name.is_empty() || name.len() > NAME_CHARS_MAX;
    if is_long || name == NO_NAME || !name.chars().all(good) {
        return Err(CredentialError::Name);
    }
    Ok(())
}

/// Whether what runs in a box can go on with the placeholder it has: same variables, same places in
/// a request, same hosts.
fn looks_alike(one: &CredentialRow, other: &CredentialRow) -> bool {
    goes_alike(one, other) && one.prefix == other.prefix
}

/// As [`looks_alike`], whatever the secrets begin with.
fn goes_alike(one: &CredentialRow, other: &CredentialRow) -> bool {
    variables_of(one) == variables_of(other)
        && carried(one) == carried(other)
        && hosts_of(one) == hosts_of(other)
}

/// The method of this word.
fn method_of(word: &str) -> Option<SealMethod> {
    let all = [
        SealMethod::Keyring,
        SealMethod::SystemdCreds,
        SealMethod::Passphrase,
        SealMethod::Memory,
    ];
    all.into_iter().find(|method| method.word() == word)
}
