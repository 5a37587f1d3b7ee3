//! What a box holds instead of secrets: a placeholder for each account it may use.

use super::kinds::{self, Kind};
use super::rows::{self, CredentialRow};
use super::{forget, kind_of, placeholder};
use crate::boxes::BoxRecord;
use crate::host::Host;
use crate::network;
use crate::store::{Durability, StoreError};
use box_api::control::{Accounts, AccountsOfKind, BoxState};
use box_api::egress::{Binding, Carriage, CredentialSpec, HostName};
use box_api::{BoxId, Owner};
use rusqlite::Connection;

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
    let mut variables: Vec<(String, String)> = Vec::with_capacity(made.len());
    let mut reaches_more = false;
    for (row, placeholder, fresh) in made {
        let helps = kind_of(&row).is_some_and(|kind| !kind.helper_hosts.is_empty());
        reaches_more |= fresh == Fresh::Yes && helps;
        if let (Fresh::Yes, Some(binding)) = (fresh, binding_of(&row, &placeholder)) {
            bind(host, record, binding).await;
        }
        for variable in variables_of(&row) {
            if !variables.iter().any(|(name, _)| *name == variable) {
                variables.push((variable, placeholder.clone()));
            }
        }
    }
    if reaches_more && record.state == BoxState::Running {
        network::rules::tell(host, vec![record.id]).await;
    }
    Ok(variables)
}

/// What box-egress is to know of a box's placeholders.
///
/// # Errors
/// What the database said.
pub fn bindings(connection: &Connection, id: &BoxId) -> rusqlite::Result<Vec<Binding>> {
    let rows = rows::placeholders_of(connection, id)?;
    Ok(rows
        .iter()
        .filter_map(|(row, placeholder)| binding_of(row, placeholder))
        .collect())
}

/// Hosts that belong to the accounts of a box without getting their secrets.
///
/// # Errors
/// What the database said.
pub fn helper_hosts(connection: &Connection, id: &BoxId) -> rusqlite::Result<Vec<HostName>> {
    let rows = rows::placeholders_of(connection, id)?;
    let kinds = rows.iter().filter_map(|(row, _)| kind_of(row));
    Ok(kinds
        .flat_map(|kind| kinds::host_names(&kind.helper_hosts))
        .collect())
}

/// The accounts a box may use, as `<kind>:<name>`.
///
/// # Errors
/// What the store said.
pub async fn accounts_of(host: &Host, record: &BoxRecord) -> Result<Vec<String>, StoreError> {
    let rows = wanted(host, record.owner, record.settings.accounts.clone()).await?;
    let names = rows.iter().map(|row| format!("{}:{}", row.kind, row.name));
    Ok(names.collect())
}

/// The first account of a choice that its owner does not have.
///
/// # Errors
/// What the store said.
pub async fn missing(
    host: &Host,
    owner: Owner,
    accounts: &Accounts,
) -> Result<Option<String>, StoreError> {
    let Accounts::Chosen(choice) = accounts else {
        return Ok(None);
    };
    let rows = host
        .store
        .read(move |connection| rows::of_owner(connection, &owner))
        .await?;
    for (kind, names) in &choice.of_kind {
        let canonical = kinds::find(kind);
        let several = canonical.is_some_and(|kind| kind.several);
        let is_there = |name: &String| {
            let of_kind = canonical.is_some_and(|known| known.name == *kind);
            of_kind
                && rows
                    .iter()
                    .any(|row| row.kind == *kind && row.name == *name)
        };
        if let Some(name) = names.iter().find(|name| !is_there(name)) {
            return Ok(Some(format!("{kind}:{name}")));
        }
        if names.is_empty() && canonical.is_none_or(|known| known.name != *kind) {
            return Ok(Some(kind.clone()));
        }
        if let ([_, second, ..], false) = (names.as_slice(), several) {
            return Ok(Some(format!("{kind}:{second} beside another of its kind")));
        }
    }
    Ok(None)
}

/// Whether a placeholder was made just now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fresh {
    Yes,
    No,
}

async fn wanted(
    host: &Host,
    owner: Owner,
    accounts: Accounts,
) -> Result<Vec<CredentialRow>, StoreError> {
    if accounts == Accounts::None {
        return Ok(Vec::new());
    }
    let rows = host.store.read(move |rows| rows::of_owner(rows, &owner));
    Ok(chosen(&rows.await?, &accounts))
}

/// Of an owner's credentials, those a box uses.
pub(super) fn chosen(rows: &[CredentialRow], accounts: &Accounts) -> Vec<CredentialRow> {
    let of_one_kind = rows.chunk_by(|one, other| one.kind == other.kind);
    let picked = of_one_kind.flat_map(|rows| {
        let several = rows
            .first()
            .and_then(kind_of)
            .is_some_and(|kind| kind.several);
        let kind = rows.first().map_or("", |row| &row.kind);
        match accounts.of_kind(kind) {
            AccountsOfKind::Default if several => rows.iter().collect(),
            AccountsOfKind::Default => rows::default_among(rows).into_iter().collect(),
            AccountsOfKind::Named(names) => {
                let asked_for = rows.iter().filter(|row| names.contains(&row.name));
                asked_for.collect::<Vec<_>>()
            }
        }
    });
    picked.cloned().collect()
}

async fn ensure_placeholders(
    host: &Host,
    record: &BoxRecord,
) -> Result<Vec<(CredentialRow, String, Fresh)>, StoreError> {
    let id = record.id;
    let wanted = wanted(host, record.owner, record.settings.accounts.clone()).await?;
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let have = host
        .store
        .read(move |connection| rows::placeholders_of(connection, &id))
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

/// After the accounts of a box were changed: placeholders of those it may no longer use are worth
/// nothing from now on, and where it runs it has the others at once.
///
/// # Errors
/// What the store said.
pub async fn adjust(host: &Host, record: &BoxRecord) -> Result<(), StoreError> {
    let id = record.id;
    let kept = wanted(host, record.owner, record.settings.accounts.clone()).await?;
    let gone = host.store.write(Durability::Full, move |transaction| {
        rows::take_others(transaction, &id, &kept)
    });
    let gone = gone.await?;
    forget(host, gone.into_iter().map(|one| (id, one)).collect()).await;
    if record.state == BoxState::Running {
        environment_for_process(host, record).await?;
    }
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
    let binding = crate::github::scoped(binding, record);
    if let Err(error) = host.egress.bind(record.id, binding).await {
        // It is bound from the rows when box-egress is back; until then requests are refused.
        tracing::warn!(id = %record.id, %error, "a placeholder is not bound yet");
    }
}

/// What box-egress is told of a credential beside its secret.
pub(crate) fn spec_of(row: &CredentialRow) -> Option<CredentialSpec> {
    let carried = carried(row);
    if carried.is_empty() {
        return None;
    }
    Some(CredentialSpec {
        id: row.id(),
        kind: row.kind.clone(),
        hosts: kinds::host_names(&hosts_of(row)),
        carried,
    })
}

/// The hosts that get the secret of a credential.
pub(crate) fn hosts_of(row: &CredentialRow) -> Vec<String> {
    let of_kind = |kind: &Kind| kind.hosts.clone();
    if row.form.hosts.is_empty() {
        kind_of(row).map(of_kind).unwrap_or_default()
    } else {
        row.form.hosts.clone()
    }
}

pub(super) fn carried(row: &CredentialRow) -> Vec<Carriage> {
    if !row.form.carried.is_empty() {
        return row.form.carried.clone();
    }
    let shape = kind_of(row).and_then(|kind| kind.shape(&row.prefix));
    shape.map(|shape| shape.carried.clone()).unwrap_or_default()
}

pub(super) fn variables_of(row: &CredentialRow) -> Vec<String> {
    if let Some(variable) = &row.form.variable {
        return vec![variable.clone()];
    }
    let shape = kind_of(row).and_then(|kind| kind.shape(&row.prefix));
    let variables = shape.map(|shape| shape.variables.clone());
    variables.unwrap_or_default()
}

fn binding_of(row: &CredentialRow, placeholder: &str) -> Option<Binding> {
    let hosts = kinds::host_names(&hosts_of(row));
    if hosts.is_empty() {
        return None;
    }
    Some(Binding {
        placeholder: placeholder.to_owned(),
        credential: row.id(),
        hosts,
        github: None,
    })
}
