//! What a box may write at GitHub: reading is limited by the token alone, writing by what its owner
//! bound it to. Stands between the swap of the credential and the host; what cannot be told to be
//! reading, or a write that is allowed, goes nowhere.
//!
//! Judging is pure ([`rest`], [`graphql`], [`push`], [`refs`]); this file carries it out.

mod answer;
mod foretell;
mod graphql;
mod held;
pub(crate) mod issuing;
mod json;
mod pack;
mod place;
mod push;
mod refs;
mod rest;
#[cfg(test)]
mod testing;
mod why;

pub(crate) use foretell::foretell;
pub(crate) use place::Place;

use crate::context::BoxContext;
use crate::http::body::Flow;
use crate::http::request::Site;
use crate::intercept::login::desk::is_bound;
use crate::policy::Settings;
use crate::refuse::Refused;
use answer::Reasons;
use box_api::egress::github::{GithubScope, Repository};
use box_api::egress::{HostName, Reason};
use held::{Held, JSON_BYTES_MAX, PUSH_BYTES_MAX};
use http::Response;
use http::request::Parts;
use hyper::body::Incoming;
use pack::PackReader;
use push::{Oid, Push};
use refs::{Change, Leave};
use rest::{Ask, Asked, Needs};
use std::sync::Arc;
use tokio::sync::Semaphore;
use why::Why;

/// Bodies of one box that are kept back at once.
pub(crate) const HELD_PER_BOX_MAX: usize = 2;
/// The same of all boxes: what they hold is memory.
static HELD: Semaphore = Semaphore::const_new(32);

/// Whether what is written at `host` is judged: where a credential of the owner is used, and where a
/// login is whose owner said what it may write.
pub(crate) fn is_scoped(settings: &Settings, host: &HostName) -> bool {
    let is_login = settings.logins.take_tokens_at(host);
    is_bound(settings, host) || (is_login && settings.policy.login_scope.is_some())
}

/// What a box may write at `host`, which is GitHub's: nothing, unless all its placeholders for it
/// say the same.
pub(crate) fn of_host(settings: &Settings, host: &HostName) -> GithubScope {
    let here = settings
        .bindings
        .iter()
        .filter(|one| one.hosts.contains(host));
    let mut scopes = here.map(|one| one.github.clone().unwrap_or_default());
    let Some(first) = scopes.next() else {
        return settings.policy.login_scope.clone().unwrap_or_default();
    };
    if scopes.all(|scope| scope == first) {
        first
    } else {
        GithubScope::default()
    }
}

/// What becomes of a request.
pub(crate) enum Outcome {
    Passes(Flow),
    /// Nothing of it went out; the host was told.
    Refused(Response<Flow>),
}

/// Judges a request to `site`, a host of GitHub's.
pub(crate) async fn judge(
    ctx: &BoxContext,
    site: &Site,
    place: Place,
    parts: &mut Parts,
    body: Incoming,
) -> Outcome {
    let scope = ctx.github_scope(&site.host);
    let asked = Asked {
        place,
        method: &parts.method,
        path: parts.uri.path(),
        query: parts.uri.query(),
        headers: &parts.headers,
    };
    let judged = rest::judge(&scope, &asked);
    let refused = match judged {
        Ok(Needs::Nothing) => return Outcome::Passes(Flow::relay(body)),
        Ok(Needs::Push(repository)) => {
            return pushed(ctx, site, (&scope, &repository), parts, body).await;
        }
        Ok(Needs::Body(ask)) => match stated(ctx, &scope, &ask, parts, body).await {
            Ok(flow) => return Outcome::Passes(flow),
            Err(why) => why,
        },
        Err(why) => {
            Held::new(body, 0).drain().await;
            why
        }
    };
    note(ctx, site, &refused);
    let is_git = parts.uri.path().ends_with("/info/refs") || parts.uri.path().contains("git-");
    Outcome::Refused(if is_git && place != Place::Api {
        answer::text(&refused)
    } else {
        answer::page(&refused)
    })
}

/// An upgrade at GitHub: nothing there that is known to read needs one.
pub(crate) fn upgrade(site: &Site) -> Refused {
    refused(site, &Why::Unclear("no WebSocket is passed on to github"))
}

fn refused(site: &Site, why: &Why) -> Refused {
    let mut refused = site.refuse(Reason::GithubScope);
    refused.rule = Some(why.line());
    refused
}

fn note(ctx: &BoxContext, site: &Site, why: &Why) {
    ctx.note(&refused(site, why));
}

/// A request whose body says what it does.
async fn stated(
    ctx: &BoxContext,
    scope: &GithubScope,
    ask: &Ask,
    parts: &Parts,
    body: Incoming,
) -> Result<Flow, Why> {
    let mut held = Held::new(body, JSON_BYTES_MAX);
    let judged = async {
        let room = room(ctx)?;
        if !rest::is_json(&parts.headers) {
            return Err(Why::Unclear("the body is sent as `application/json`"));
        }
        held.all().await?;
        rest::judge_body(scope, ask, held.bytes())?;
        Ok(room)
    };
    match judged.await {
        Ok(room) => Ok(held.release(room)),
        Err(why) => {
            held.drain().await;
            Err(why)
        }
    }
}

type Room = (
    tokio::sync::OwnedSemaphorePermit,
    tokio::sync::SemaphorePermit<'static>,
);

fn room(ctx: &BoxContext) -> Result<Room, Why> {
    let own = Arc::clone(&ctx.judged).try_acquire_owned();
    let own = own.map_err(|_| Why::Busy)?;
    Ok((own, HELD.try_acquire().map_err(|_| Why::Busy)?))
}

/// Why a push does not go through.
enum Stopped {
    /// Before its list of commands was whole.
    Early(Why),
    Refs(Push, Reasons),
}

impl From<Why> for Stopped {
    fn from(why: Why) -> Self {
        Self::Early(why)
    }
}

async fn pushed(
    ctx: &BoxContext,
    site: &Site,
    (scope, repository): (&GithubScope, &Repository),
    parts: &mut Parts,
    body: Incoming,
) -> Outcome {
    let mut held = Held::new(body, PUSH_BYTES_MAX);
    let judged = async {
        let room = room(ctx)?;
        held.unzip(parts).await?;
        judge_push(scope, repository, &mut held).await?;
        Ok(room)
    };
    let stopped = match judged.await {
        Ok(room) => return Outcome::Passes(held.release(room)),
        Err(stopped) => stopped,
    };
    held.drain().await;
    match stopped {
        Stopped::Early(why) => {
            note(ctx, site, &why);
            Outcome::Refused(answer::text(&why))
        }
        Stopped::Refs(push, reasons) => {
            let first = reasons.iter().find_map(|(_, why)| why.as_ref());
            note(ctx, site, first.unwrap_or(&Why::Broken));
            Outcome::Refused(if push.report.is_wanted {
                answer::report(&push, &reasons)
            } else {
                answer::text(first.unwrap_or(&Why::Broken))
            })
        }
    }
}

/// Reads as much of a push as tells whether it may pass.
async fn judge_push(
    scope: &GithubScope,
    repository: &Repository,
    held: &mut Held,
) -> Result<(), Stopped> {
    let push = loop {
        match push::read(held.bytes())? {
            Some(push) => break push,
            None if held.more().await? => {}
            None => return Err(Why::Unclear("this is no push").into()),
        }
    };
    let (mut reasons, mut to_show) = judge_commands(scope, repository, &push);
    if reasons.iter().any(|(_, why)| why.is_some()) {
        return Err(Stopped::Refs(push, reasons));
    }
    if show(held, push.pack_at, &mut to_show).await? {
        return Ok(());
    }
    for (name, why) in &mut reasons {
        if to_show.iter().any(|(open, ..)| open == name) {
            *why = Some(Why::Unproven(name.clone()));
        }
    }
    Err(Stopped::Refs(push, reasons))
}

/// Refs whose change loses no commit, if that can be shown: what they are, and are to be.
type ToShow = Vec<(String, Oid, Oid)>;

/// Judges every ref by itself.
fn judge_commands(scope: &GithubScope, repository: &Repository, push: &Push) -> (Reasons, ToShow) {
    let mut reasons: Reasons = Vec::new();
    let mut to_show = Vec::new();
    for command in &push.commands {
        let change = match (command.old, command.new) {
            (Oid::ZERO, _) => Change::Create,
            (_, Oid::ZERO) => Change::Delete,
            (_, _) => Change::Move,
        };
        let why = match refs::judge(scope, repository, &command.name, change) {
            Ok(Leave::Given) => None,
            Ok(Leave::IfForward) => {
                to_show.push((command.name.clone(), command.old, command.new));
                None
            }
            Err(why) => Some(why),
        };
        reasons.push((command.name.clone(), why));
    }
    (reasons, to_show)
}

/// Reads the pack until it shows that no ref loses a commit. What it does not show stays in
/// `to_show`.
async fn show(held: &mut Held, pack_at: usize, to_show: &mut ToShow) -> Result<bool, Why> {
    let mut reader = PackReader::new();
    let (mut fed, mut look_at, mut goes_on) = (pack_at, 1, true);
    to_show.retain(|(_, old, new)| old != new);
    while !to_show.is_empty() && goes_on {
        let is_read = reader.feed(held.bytes().get(fed..).unwrap_or_default());
        fed = held.bytes().len();
        goes_on = is_read.is_ok()
            && match held.more().await {
                Ok(more) => more,
                // What was read may be enough.
                Err(Why::TooLong { .. }) => false,
                Err(why) => return Err(why),
            };
        // Looked for seldom: when all commits are likely there, at the end, and at each doubling.
        if reader.commits() >= look_at || !goes_on {
            to_show.retain(|(_, old, new)| !reader.leads(*old, *new));
            look_at = reader.commits().saturating_mul(2).max(1);
        } else if reader.saw_other() && look_at > 1 {
            to_show.retain(|(_, old, new)| !reader.leads(*old, *new));
            look_at = reader.commits().saturating_mul(2).max(1);
        }
    }
    Ok(to_show.is_empty())
}

#[cfg(test)]
mod tests;
