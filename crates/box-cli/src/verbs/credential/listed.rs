//! `box credential list`.

use super::{Ended, shown_source};
use crate::age;
use crate::client::unexpected;
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::output::{Format, Output, table, visible};
use box_api::control::{CredentialInfo, CredentialSource, LoginInfo, Outcome, Request, SealMethod};

pub(super) fn list(output: &mut Output) -> Ended {
    let (credentials, logins) = listed(output)?;
    if output.format() == Format::Json {
        let credentials = credentials.iter().map(Either::Credential);
        let all: Vec<Either<'_>> = credentials
            .chain(logins.iter().map(Either::Login))
            .collect();
        output.object(&all)?;
        return Ok(0);
    }
    if credentials.is_empty() && logins.is_empty() {
        output.note("no credentials; `box credential add claude` adds one");
        return Ok(0);
    }
    let now_ms = age::now_ms();
    let heads = [
        "NAME", "FOR", "SOURCE", "AGE", "EXPIRES", "KEPT", "BOXES", "STATE",
    ];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    rows.extend(credentials.into_iter().map(|known| row(known, now_ms)));
    if rows.len() > 1 {
        output.data(table::columns(&rows).as_bytes())?;
    }
    if !logins.is_empty() {
        let heads = ["LOGIN", "MADE IN", "AGE", "KEPT", "STATE"];
        let mut rows = vec![heads.map(str::to_owned).to_vec()];
        rows.extend(logins.iter().map(|login| login_row(login, now_ms)));
        output.data(table::columns(&rows).as_bytes())?;
    }
    Ok(0)
}

/// As JSON has them in one list: a login is what has a `box`.
#[derive(serde::Serialize)]
#[serde(untagged)]
enum Either<'a> {
    Credential(&'a CredentialInfo),
    Login(&'a LoginInfo),
}

fn login_row(login: &LoginInfo, now_ms: i64) -> Vec<String> {
    let kept = if login.is_sealed {
        "sealed"
    } else {
        "memory only"
    };
    let state = if login.lost {
        "lost, log in again"
    } else {
        "ready"
    };
    vec![
        login.kind.clone(),
        login.name.to_string(),
        age::short(login.since_ms, now_ms),
        kept.to_owned(),
        state.to_owned(),
    ]
}

fn row(known: CredentialInfo, now_ms: i64) -> Vec<String> {
    let expires = match known.expires_at_ms {
        None => "-".to_owned(),
        Some(at_ms) if at_ms <= now_ms => "over".to_owned(),
        Some(at_ms) => format!("in {}", age::short(now_ms, at_ms)),
    };
    let kept = match known.sealed {
        SealMethod::Memory => "memory only",
        SealMethod::Keyring | SealMethod::SystemdCreds | SealMethod::Passphrase => {
            known.sealed.word()
        }
    };
    let boxes: Vec<String> = known.boxes.iter().map(ToString::to_string).collect();
    let boxes = if boxes.is_empty() {
        "-".to_owned()
    } else {
        boxes.join(",")
    };
    let source = visible(&shown_source(&known.source)).into_owned();
    let state = state(&known, now_ms);
    let age = age::short(known.added_at_ms, now_ms);
    vec![
        known.name,
        known.kind,
        source,
        age,
        expires,
        kept.to_owned(),
        boxes,
        state,
    ]
}

fn state(known: &CredentialInfo, now_ms: i64) -> String {
    let is_over = known.expires_at_ms.is_some_and(|at_ms| at_ms <= now_ms);
    let is_command = matches!(known.source, CredentialSource::Command { .. });
    match (&known.problem, known.sealed) {
        (Some(problem), _) if known.lost => format!("lost: {}", visible(problem)),
        (Some(problem), _) => format!("ready, not renewed: {}", visible(problem)),
        (None, _) if is_over => "expired, rotate it".to_owned(),
        (None, _) if !known.lost => "ready".to_owned(),
        (None, _) if is_command => "not there yet".to_owned(),
        (None, SealMethod::Passphrase) => "locked, `box credential unlock`".to_owned(),
        (None, SealMethod::Memory | SealMethod::Keyring | SealMethod::SystemdCreds) => {
            "lost, add it again".to_owned()
        }
    }
}

/// Whether the credential of this name comes from a command.
pub(super) fn comes_from_a_command(output: &mut Output, name: &str) -> Result<bool, Complaint> {
    let all = all(output)?;
    let mut meant = all.iter().filter(|known| {
        let whole = format!("{}:{}", known.kind, known.name);
        name == whole || name == known.kind || name == known.name
    });
    Ok(meant.any(|known| matches!(known.source, CredentialSource::Command { .. })))
}

fn all(output: &mut Output) -> Result<Vec<CredentialInfo>, Complaint> {
    listed(output).map(|(credentials, _)| credentials)
}

fn listed(output: &mut Output) -> Result<(Vec<CredentialInfo>, Vec<LoginInfo>), Complaint> {
    let client = host::reach(output, OtherBuild::Bear)?;
    let outcome = client.ask(output, &Request::CredentialList)?;
    let Outcome::Credentials {
        credentials,
        logins,
    } = outcome
    else {
        return Err(unexpected(&outcome));
    };
    Ok((credentials, logins))
}
