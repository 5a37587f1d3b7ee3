//! `GET /api/checklist` and `POST /api/logins`: what is on here, what is off and why, and an
//! agent's account by a token that is pasted.

use super::answer;
use super::call::{Call, Called};
use super::doctor;
use crate::problem;
use box_api::Problem;
use box_api::control::CredentialInfo;
use box_api::page::{Check, Checklist, DoctorFinding, LoginAsk, Tint};
use box_core::agents::{AgentProfile, profiles};
use box_core::credentials::{self, CredentialError, Secret};
use box_core::push;
use hyper::StatusCode;
use std::collections::BTreeMap;

pub(super) async fn handle(call: Call) -> Called {
    let found = doctor::findings(&call).await?;
    let mut checks: Vec<Check> = found.into_iter().map(of_machine).collect();
    checks.extend(logins(&call).await?);
    checks.push(phone(&call.host().settings.page.hosts.value));
    checks.push(notifications(&call).await?);
    Ok(answer::json(&Checklist { checks }))
}

/// Takes a token. It goes into the memory of box-egress, which alone ever has it, and is gone with
/// it; `box credential add` on the machine keeps one sealed.
pub(super) async fn login(mut call: Call) -> Called {
    let LoginAsk { kind, token } = call.json().await?;
    let secret = Secret::parse(token).map_err(|source| {
        let kind = kind.clone();
        problem::credential(CredentialError::Secret { kind, source })
    })?;
    let added = credentials::add_in_memory(call.host(), &call.caller, &kind, secret).await;
    added.map_err(problem::credential)?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

fn of_machine(found: DoctorFinding) -> Check {
    Check {
        what: found.what,
        tint: found.tint,
        text: found.text,
        hint: found.hint,
        login: None,
    }
}

/// One line for each kind of account, with the agents that work with it.
async fn logins(call: &Call) -> Result<Vec<Check>, Problem> {
    let there = credentials::list(call.host(), &call.caller).await;
    let there = there.map_err(problem::store)?;
    let mut kinds: BTreeMap<&str, Vec<&AgentProfile>> = BTreeMap::new();
    for profile in profiles() {
        if let Some(credential) = &profile.credential {
            kinds.entry(&credential.kind).or_default().push(profile);
        }
    }
    let lines = kinds.into_iter();
    Ok(lines
        .map(|(kind, agents)| account(kind, &agents, &there))
        .collect())
}

fn account(kind: &str, agents: &[&AgentProfile], there: &[CredentialInfo]) -> Check {
    let titles: Vec<&str> = agents.iter().map(|agent| agent.title.as_str()).collect();
    let titles = titles.join(", ");
    let found: Vec<&CredentialInfo> = there.iter().filter(|one| one.kind == kind).collect();
    let (tint, text, hint) = match found.as_slice() {
        [] => (
            Tint::Off,
            format!("no account for {titles}"),
            Some("paste a token; it stays in the memory of this machine's way out".to_owned()),
        ),
        all if all.iter().any(|one| !one.lost) => (
            Tint::Good,
            format!("{titles} can work; no box has the token"),
            None,
        ),
        _ => (
            Tint::Bad,
            format!("the account for {titles} is known, its token is not there"),
            Some("paste it again, or `box credential unlock` on the machine".to_owned()),
        ),
    };
    Check {
        what: format!("account {kind}"),
        login: (tint != Tint::Good).then(|| kind.to_owned()),
        tint,
        text,
        hint,
    }
}

fn phone(hosts: &[String]) -> Check {
    let (tint, text, hint) = match hosts.first() {
        Some(name) => (
            Tint::Good,
            format!("the page is reached from elsewhere as `{name}`"),
            None,
        ),
        None => (
            Tint::Off,
            "the page is on this machine only; a phone does not reach it".to_owned(),
            Some("put a reverse proxy with TLS before it and name it: `[page] hosts`".to_owned()),
        ),
    };
    Check {
        what: "phone".to_owned(),
        tint,
        text,
        hint,
        login: None,
    }
}

async fn notifications(call: &Call) -> Result<Check, Problem> {
    let state = push::state(call.host(), &call.caller, &call.sign_in).await;
    let devices = state.map_err(problem::store)?.devices;
    let troubled = devices.iter().filter(|one| one.problem.is_some()).count();
    let (tint, text, hint) = match (devices.len(), troubled) {
        (0, _) => (
            Tint::Off,
            "no browser is told while you are away".to_owned(),
            Some("Settings, Notifications: one tap".to_owned()),
        ),
        (1, 0) => (Tint::Good, "one browser is told".to_owned(), None),
        (count, 0) => (Tint::Good, format!("{count} browsers are told"), None),
        (count, _) => (
            Tint::Bad,
            format!("{troubled} of {count} browsers could not be told"),
            Some("Settings, Notifications says why".to_owned()),
        ),
    };
    Ok(Check {
        what: "notifications".to_owned(),
        tint,
        text,
        hint,
        login: None,
    })
}
