//! What a request to GitHub's hosts does, by method and path, and what its body must say before it
//! may pass. Pure.

use super::json::Json;
use super::place::{Place, decoded, segments};
use super::refs::{self, Change, Leave};
use super::why::Why;
use box_api::egress::github::{GithubScope, GithubWrites, Repository};
use http::{HeaderMap, Method, header};

/// Headers that make another method of the one a request has.
const OVERRIDES: [&str; 3] = [
    "x-http-method-override",
    "x-http-method",
    "x-method-override",
];

/// What of an issue or pull request a box may change. Not `sub_issues`: those can be of another
/// repository.
const OF_AN_ISSUE: [&str; 5] = ["comments", "labels", "assignees", "reactions", "lock"];

/// What a review may say: approving is its owner's.
const REVIEWS: [&str; 2] = ["COMMENT", "REQUEST_CHANGES"];
/// What gives an issue to GitHub's own agent, which may write to a repository named there
/// (docs.github.com, *REST API endpoints for issue assignees*).
const TO_AN_AGENT: &str = "agent_assignment";
/// How the names of that agent begin.
const AGENT: &str = "copilot";

/// What is still to be read before a request can pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Needs {
    Nothing,
    /// The commands of a push.
    Push(Repository),
    Body(Ask),
}

/// What a body of JSON is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ask {
    Graphql,
    /// `operation`: whether large files come or go.
    LargeFiles(Repository),
    /// `ref`: a new one.
    NewRef(Repository),
    /// `force`, for this ref.
    MoveRef(Repository, String),
    /// The branch that the field of this name names.
    Branch(Repository, &'static str),
    /// That it approves nothing and sets no agent of GitHub's to work.
    Said(Repository),
}

/// The parts of a request that say what it does.
pub(crate) struct Asked<'a> {
    pub(crate) place: Place,
    pub(crate) method: &'a Method,
    pub(crate) path: &'a str,
    pub(crate) query: Option<&'a str>,
    pub(crate) headers: &'a HeaderMap,
}

/// What a request needs to pass.
pub(crate) fn judge(scope: &GithubScope, asked: &Asked<'_>) -> Result<Needs, Why> {
    if OVERRIDES
        .iter()
        .any(|name| asked.headers.contains_key(*name))
    {
        return Err(Why::Unclear("a request has one method"));
    }
    let query = asked.query.unwrap_or_default();
    let plain = decoded(query).map(|query| query.to_ascii_lowercase());
    let plain = plain.ok_or(Why::Unclear("the query cannot be read"))?;
    if plain.contains("_method") {
        return Err(Why::Unclear("a request has one method"));
    }
    let reads = [Method::GET, Method::HEAD, Method::OPTIONS].contains(asked.method);
    let parts = segments(asked.path);
    if reads {
        return read(scope, asked, parts.as_deref(), &plain);
    }
    let parts = parts.ok_or(Why::Unclear("the path can be read in more than one way"))?;
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    if asked.query.is_some() {
        return Err(Why::Unclear("a write has no query"));
    }
    if asked.headers.contains_key(header::CONTENT_ENCODING)
        && !matches!(
            parts.as_slice(),
            [_, _, "git-upload-pack" | "git-receive-pack"]
        )
    {
        return Err(Why::Unclear("the body is sent without a content encoding"));
    }
    match asked.place {
        Place::Git | Place::Gist => git(scope, asked, &parts),
        Place::Api | Place::Uploads => api(scope, asked, &parts),
        Place::Other => Err(Why::Outside(shown(asked.path))),
    }
}

/// What only reads passes, but for what opens a push, and GraphQL in a query.
fn read(
    scope: &GithubScope,
    asked: &Asked<'_>,
    parts: Option<&[String]>,
    plain_query: &str,
) -> Result<Needs, Why> {
    if asked.place == Place::Api {
        let is_graphql = asked.path.to_ascii_lowercase().contains("graphql");
        return if is_graphql && !plain_query.is_empty() {
            Err(Why::Unclear("GraphQL is sent by POST"))
        } else {
            Ok(Needs::Nothing)
        };
    }
    if !plain_query.contains("receive-pack") && !asked.path.contains("receive-pack") {
        return Ok(Needs::Nothing);
    }
    let parts: Vec<&str> = parts
        .unwrap_or_default()
        .iter()
        .map(String::as_str)
        .collect();
    match (asked.place, parts.as_slice(), asked.query) {
        (Place::Git, [owner, name, "info", "refs"], Some("service=git-receive-pack")) => {
            bound(scope, owner, name).map(|_| Needs::Nothing)
        }
        _ => Err(Why::Outside(shown(asked.path))),
    }
}

/// `github.com` and `gist.github.com`.
fn git(scope: &GithubScope, asked: &Asked<'_>, parts: &[&str]) -> Result<Needs, Why> {
    let outside = || Why::Outside(shown(asked.path));
    if asked.method != Method::POST {
        return Err(outside());
    }
    match (asked.place, parts) {
        (_, [_, _, "git-upload-pack"])
        | (Place::Gist, [_, "git-upload-pack"])
        // Nothing is written by logging in.
        | (
            Place::Git,
            [_, _, "info", "lfs", "locks", "verify"]
            | ["login", "device", "code"]
            | ["login", "oauth", "access_token"],
        ) => {
            Ok(Needs::Nothing)
        }
        (Place::Git, [owner, name, "git-receive-pack"]) => {
            bound(scope, owner, name).map(Needs::Push)
        }
        (Place::Git, [owner, name, "info", "lfs", "objects", "batch"]) => {
            let repository = named(owner, name).ok_or_else(outside)?;
            Ok(Needs::Body(Ask::LargeFiles(repository)))
        }
        (Place::Git, [owner, name, "info", "lfs", ..]) => {
            bound(scope, owner, name).map(|_| Needs::Nothing)
        }
        _ => Err(outside()),
    }
}

/// `o` and `r` or `r.git`.
fn named(owner: &str, name: &str) -> Option<Repository> {
    Repository::of(owner, name.strip_suffix(".git").unwrap_or(name)).ok()
}

fn bound(scope: &GithubScope, owner: &str, name: &str) -> Result<Repository, Why> {
    let repository = named(owner, name).ok_or(Why::Unclear("this is no repository's name"))?;
    if scope.has(&repository) {
        Ok(repository)
    } else {
        Err(Why::Repository(repository))
    }
}

fn api(scope: &GithubScope, asked: &Asked<'_>, parts: &[&str]) -> Result<Needs, Why> {
    let is_post = asked.method == Method::POST;
    match parts {
        ["graphql"] if is_post && asked.place == Place::Api => Ok(Needs::Body(Ask::Graphql)),
        ["markdown"] if is_post => Ok(Needs::Nothing),
        ["repos", owner, name, tail @ ..] => {
            let repository = Repository::of(owner, name)
                .map_err(|_| Why::Unclear("this is no repository's name"))?;
            if !scope.has(&repository) {
                return Err(Why::Repository(repository));
            }
            in_repository(scope, repository, asked, tail)
        }
        _ => Err(Why::Outside(shown(asked.path))),
    }
}

/// Writes in a repository the box is bound to.
fn in_repository(
    scope: &GithubScope,
    repository: Repository,
    asked: &Asked<'_>,
    tail: &[&str],
) -> Result<Needs, Why> {
    match (asked.method.as_str(), tail) {
        ("POST", ["git", "refs"]) => Ok(Needs::Body(Ask::NewRef(repository))),
        ("PATCH", ["git", "refs", rest @ ..]) => {
            let name = format!("refs/{}", rest.join("/"));
            refs::judge(scope, &repository, &name, Change::Forward)?;
            Ok(Needs::Body(Ask::MoveRef(repository, name)))
        }
        ("DELETE", ["git", "refs", rest @ ..]) => {
            let name = format!("refs/{}", rest.join("/"));
            refs::judge(scope, &repository, &name, Change::Delete).map(|_| Needs::Nothing)
        }
        ("PUT" | "DELETE", ["contents", _, ..]) => {
            Ok(Needs::Body(Ask::Branch(repository, "branch")))
        }
        ("POST", ["merges"]) => Ok(Needs::Body(Ask::Branch(repository, "base"))),
        ("POST", ["merge-upstream"]) => Ok(Needs::Body(Ask::Branch(repository, "branch"))),
        (method, tail) if scope.writes == GithubWrites::Listed && says_more(method, tail) => {
            Ok(Needs::Body(Ask::Said(repository)))
        }
        (method, tail) if is_listed(scope, method, tail) => Ok(Needs::Nothing),
        _ if scope.writes == GithubWrites::All => Ok(Needs::Nothing),
        _ => Err(Why::Kind {
            repository,
            what: kind(tail),
        }),
    }
}

fn number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Writes that concern no ref, and whose body decides whether everybody may do them who may push.
fn says_more(method: &str, tail: &[&str]) -> bool {
    match (method, tail) {
        ("POST", ["issues"]) => true,
        ("PATCH", ["issues", id])
        | (_, ["issues", id, "assignees", ..])
        | ("POST", ["pulls", id, "reviews"] | ["pulls", id, "reviews", _, "events"]) => number(id),
        _ => false,
    }
}

/// Writes that concern no ref, as everybody may do them who may push.
fn is_listed(scope: &GithubScope, method: &str, tail: &[&str]) -> bool {
    match (method, tail) {
        // An object no ref leads to changes nothing; making a tag's is part of making one.
        ("POST", ["git", what]) => {
            ["blobs", "trees", "commits"].contains(what) || (*what == "tags" && scope.tags)
        }
        ("POST", ["pulls"] | ["commits", _, "comments"]) => true,
        ("PATCH", ["pulls", id])
        | (
            _,
            ["pulls" | "issues", "comments", id, ..]
            | ["comments", id, ..]
            | ["pulls", id, "comments" | "requested_reviewers", ..],
        )
        // What a review says, not what becomes of it.
        | ("PUT" | "DELETE", ["pulls", id, "reviews", _]) => number(id),
        (_, ["issues", id, what, ..]) => number(id) && OF_AN_ISSUE.contains(what),
        _ => false,
    }
}

/// What is said to be changed: as far as that is the same for every repository.
fn kind(tail: &[&str]) -> String {
    match tail {
        [] => "the settings".into(),
        ["pulls", _, what, ..] => format!("pulls/{what}"),
        [what, ..] => shown(what),
    }
}

/// Judges a body of JSON.
pub(crate) fn judge_body(scope: &GithubScope, ask: &Ask, body: &[u8]) -> Result<(), Why> {
    if *ask == Ask::Graphql {
        return super::graphql::judge(scope, body);
    }
    if matches!(ask, Ask::Said(_)) && body.is_empty() {
        return Ok(());
    }
    let json = Json::read(body);
    let json = json.ok_or(Why::Unclear(
        "the body is no JSON, or names something twice",
    ))?;
    let text = |name: &'static str| json.get(name).and_then(Json::text);
    match ask {
        Ask::Graphql => Ok(()),
        Ask::LargeFiles(repository) => match text("operation") {
            Some("download") => Ok(()),
            Some("upload") if scope.has(repository) => Ok(()),
            Some("upload") => Err(Why::Repository(repository.clone())),
            _ => Err(Why::Unclear("large files are for `upload` or `download`")),
        },
        Ask::NewRef(repository) => {
            let name = text("ref").ok_or(Why::Unclear("`ref` names the new ref"))?;
            refs::judge(scope, repository, name, Change::Create).map(drop)
        }
        Ask::MoveRef(repository, name) => {
            let change = match json.get("force") {
                None | Some(Json::No) => Change::Forward,
                Some(Json::Yes) => Change::Move,
                Some(_) => return Err(Why::Unclear("`force` is true or false")),
            };
            match refs::judge(scope, repository, name, change)? {
                Leave::Given => Ok(()),
                Leave::IfForward => Err(Why::Force(name.clone())),
            }
        }
        Ask::Branch(repository, field) => {
            let branch = text(field).ok_or(Why::Unclear(
                "the branch must be named: `branch`, or `base` of a merge",
            ))?;
            let name = refs::branch(branch)?;
            refs::judge(scope, repository, &name, Change::Forward).map(drop)
        }
        Ask::Said(repository) => judge_said(repository, &json),
    }
}

fn judge_said(repository: &Repository, json: &Json) -> Result<(), Why> {
    if json.fields().is_none() {
        return Err(Why::Unclear("the body is an object of JSON"));
    }
    let kind = |what: &str| Why::Kind {
        repository: repository.clone(),
        what: what.into(),
    };
    match json.get("event") {
        None => {}
        Some(event) if event.text().is_some_and(|text| REVIEWS.contains(&text)) => {}
        Some(_) => return Err(kind("pulls/approvals")),
    }
    let assigned = ["assignee", "assignees"].map(|name| json.get(name));
    if json.get(TO_AN_AGENT).is_some() || assigned.into_iter().flatten().any(names_agent) {
        return Err(kind("issues/agents"));
    }
    Ok(())
}

fn names_agent(value: &Json) -> bool {
    match value {
        Json::Text(name) => name.trim().to_ascii_lowercase().starts_with(AGENT),
        Json::List(values) => values.iter().any(names_agent),
        Json::Object(fields) => fields.iter().any(|(_, value)| names_agent(value)),
        Json::Null | Json::Yes | Json::No | Json::Number => false,
    }
}

/// Whether a body says it is JSON, or nothing: as a form it would mean something else.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(header::CONTENT_TYPE).iter();
    match (values.next(), values.next()) {
        (None, _) => true,
        (Some(value), None) => value.to_str().is_ok_and(|value| {
            let kind = value.split(';').next().unwrap_or_default().trim();
            let kind = kind.to_ascii_lowercase();
            kind == "application/json"
                || (kind.starts_with("application/") && kind.ends_with("+json"))
        }),
        (Some(_), Some(_)) => false,
    }
}

/// A path as it is repeated: the box chose it.
fn shown(path: &str) -> String {
    path.chars()
        .filter(char::is_ascii_graphic)
        .take(120)
        .collect()
}

#[cfg(test)]
mod tests;
