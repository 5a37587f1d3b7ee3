//! What would become of a write at GitHub, said without one: by the same judges, as far as a request
//! can be judged before its body is there. Pure.

use super::place::Place;
use super::refs::{self, Change, Leave};
use super::rest::{self, Asked, Needs};
use super::why::Why;
use super::{is_scoped, of_host};
use crate::policy::Settings;
use box_api::egress::github::{GithubScope, Repository};
use box_api::egress::{AskedPush, AskedRequest, HostName, PushHow};
use http::{HeaderMap, Method};

/// What an allowed request still depends on, in one line or none.
///
/// # Errors
/// Why it would be refused, with what its owner would say to allow it.
pub(crate) fn foretell(
    settings: &Settings,
    host: &HostName,
    asked: &AskedRequest,
) -> Result<String, String> {
    let Some(place) = Place::of(host).filter(|_| is_scoped(settings, host)) else {
        return Ok(String::new());
    };
    let told = told(&of_host(settings, host), place, asked);
    told.map(str::to_owned).map_err(|why| why.line())
}

fn told(scope: &GithubScope, place: Place, asked: &AskedRequest) -> Result<&'static str, Why> {
    let method = Method::from_bytes(asked.method.as_bytes());
    let method = method.map_err(|_| Why::Unclear("this is no method"))?;
    let headers = HeaderMap::new();
    let request = Asked {
        place,
        method: &method,
        path: &asked.path,
        query: None,
        headers: &headers,
    };
    match (rest::judge(scope, &request)?, &asked.push) {
        (Needs::Push(repository), Some(push)) => pushed(scope, &repository, push),
        (Needs::Push(_), None) => Ok("each ref it changes is judged by itself"),
        (_, Some(_)) => Err(Why::Unclear("this is no push")),
        (Needs::Body(_), None) => Ok("what its body says is judged as well"),
        (Needs::Nothing, None) => Ok(""),
    }
}

fn pushed(
    scope: &GithubScope,
    repository: &Repository,
    push: &AskedPush,
) -> Result<&'static str, Why> {
    let is_tag = push.name.starts_with("refs/tags/");
    let change = match push.how {
        PushHow::Update if is_tag => Change::Create,
        PushHow::Update | PushHow::Force => Change::Move,
        PushHow::Delete => Change::Delete,
    };
    match (
        refs::judge(scope, repository, &push.name, change)?,
        push.how,
    ) {
        (Leave::IfForward, PushHow::Force) => Err(Why::Force(push.name.clone())),
        (Leave::IfForward, PushHow::Update | PushHow::Delete) => {
            Ok("as long as it loses no commit")
        }
        (Leave::Given, _) => Ok(""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use box_api::egress::github::RefPattern;

    fn ask(method: &str, path: &str, push: Option<(&str, PushHow)>) -> Result<String, String> {
        let scope = GithubScope {
            repositories: vec![Repository::parse("me/app").unwrap()],
            refs: vec![RefPattern::parse("box/demo/*").unwrap()],
            ..GithubScope::default()
        };
        let asked = AskedRequest {
            method: method.to_owned(),
            path: path.to_owned(),
            push: push.map(|(name, how)| AskedPush {
                name: name.to_owned(),
                how,
            }),
        };
        let told = told(&scope, Place::Git, &asked);
        told.map(str::to_owned).map_err(|why| why.line())
    }

    #[test]
    fn a_push_is_foretold_ref_by_ref() {
        let push = |name, how| ask("POST", "/me/app.git/git-receive-pack", Some((name, how)));
        let own = "refs/heads/box/demo/x";
        assert_eq!(
            push(own, PushHow::Update).as_deref(),
            Ok("as long as it loses no commit")
        );
        for (name, how, setting) in [
            (own, PushHow::Force, "github-force=yes"),
            (own, PushHow::Delete, "github-force=yes"),
            (
                "refs/heads/main",
                PushHow::Update,
                "github-refs=refs/heads/main",
            ),
            ("refs/tags/v1", PushHow::Update, "github-tags=yes"),
        ] {
            let why = push(name, how).unwrap_err();
            assert!(why.contains(setting), "{why}");
        }
        let foreign = ask(
            "POST",
            "/you/app.git/git-receive-pack",
            Some((own, PushHow::Update)),
        );
        assert!(foreign.unwrap_err().contains("github=you/app"));
    }

    #[test]
    fn what_cannot_be_told_yet_is_said() {
        let all = ask("POST", "/me/app.git/git-receive-pack", None);
        assert_eq!(
            all.as_deref(),
            Ok("each ref it changes is judged by itself")
        );
        assert_eq!(ask("GET", "/you/app", None).as_deref(), Ok(""));
        assert!(ask("GET", "/you/app", Some(("refs/heads/x", PushHow::Update))).is_err());
        assert!(ask("POST", "/you/app/issues", None).is_err());
    }
}
