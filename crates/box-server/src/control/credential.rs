//! `CredentialAdd`, `CredentialRotate`, `CredentialUnlock`, `CredentialList`, `CredentialRemove`.

use crate::problem;
use box_api::Problem;
use box_api::control::{
    CredentialAdd, CredentialInfo, CredentialSource, CredentialUnlock, Outcome,
};
use box_core::Host;
use box_core::caller::Caller;
use box_core::credentials::{self, Asked, CredentialError, New, Secret};
use zeroize::Zeroizing;

pub(super) async fn add(
    host: &Host,
    caller: &Caller,
    added: CredentialAdd,
) -> Result<Outcome, Problem> {
    let CredentialAdd {
        kind,
        name,
        secret,
        source,
        form,
    } = added;
    let secret = parse(&kind, &source, secret)?;
    let asked = Asked {
        kind,
        name,
        source,
        form,
    };
    let info = credentials::add(host, caller, asked, secret).await;
    info.map(one).map_err(problem::credential)
}

pub(super) async fn rotate(
    host: &Host,
    caller: &Caller,
    added: CredentialAdd,
) -> Result<Outcome, Problem> {
    let CredentialAdd {
        name,
        secret,
        source,
        ..
    } = added;
    // Nothing where its command is to be run again; whether it has one is found out there.
    let secret = if secret.is_empty() {
        None
    } else {
        parse(&name, &source, secret)?
    };
    let info = credentials::rotate(host, caller, &name, source, secret).await;
    info.map(one).map_err(problem::credential)
}

pub(super) async fn unlock(host: &Host, asked: CredentialUnlock) -> Result<Outcome, Problem> {
    let is_new = if asked.is_new { New::Yes } else { New::No };
    let info = match asked.passphrase {
        Some(passphrase) => credentials::unlock(host, Zeroizing::new(passphrase), is_new).await,
        None => credentials::seal_info(host).await,
    };
    info.map(Outcome::Seal).map_err(problem::credential)
}

fn parse(kind: &str, source: &CredentialSource, secret: String) -> Result<Option<Secret>, Problem> {
    if secret.is_empty() && matches!(source, CredentialSource::Command { .. }) {
        return Ok(None);
    }
    let secret = Secret::parse(secret).map_err(|source| {
        problem::credential(CredentialError::Secret {
            kind: kind.to_owned(),
            source,
        })
    })?;
    Ok(Some(secret))
}

fn one(info: CredentialInfo) -> Outcome {
    Outcome::Credentials {
        credentials: vec![info],
        logins: Vec::new(),
    }
}

pub(super) async fn list(host: &Host, caller: &Caller) -> Result<Outcome, Problem> {
    let credentials = credentials::list(host, caller)
        .await
        .map_err(problem::store)?;
    let logins = credentials::logins::list(host, caller).await;
    Ok(Outcome::Credentials {
        credentials,
        logins: logins.map_err(problem::store)?,
    })
}

pub(super) async fn remove(host: &Host, caller: &Caller, name: &str) -> Result<Outcome, Problem> {
    credentials::remove(host, caller, name)
        .await
        .map_err(problem::credential)?;
    Ok(Outcome::Nothing)
}
