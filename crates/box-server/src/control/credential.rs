//! `CredentialAdd`, `CredentialList`, `CredentialRemove`.

use crate::problem;
use box_api::Problem;
use box_api::control::{CredentialAdd, Outcome};
use box_core::Host;
use box_core::caller::Caller;
use box_core::credentials::{self, CredentialError, Secret};

pub(super) async fn add(
    host: &Host,
    caller: &Caller,
    added: CredentialAdd,
) -> Result<Outcome, Problem> {
    let CredentialAdd { kind, name, secret } = added;
    let secret = Secret::parse(secret).map_err(|source| {
        problem::credential(CredentialError::Secret {
            kind: kind.clone(),
            source,
        })
    })?;
    let info = credentials::add(host, caller, &kind, &name, secret).await;
    info.map(|info| Outcome::Credentials {
        credentials: vec![info],
    })
    .map_err(problem::credential)
}

pub(super) async fn list(host: &Host, caller: &Caller) -> Result<Outcome, Problem> {
    let credentials = credentials::list(host, caller)
        .await
        .map_err(problem::store)?;
    Ok(Outcome::Credentials { credentials })
}

pub(super) async fn remove(host: &Host, caller: &Caller, name: &str) -> Result<Outcome, Problem> {
    credentials::remove(host, caller, name)
        .await
        .map_err(problem::credential)?;
    Ok(Outcome::Nothing)
}
