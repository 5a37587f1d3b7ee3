//! REST, large files and the doors of git: a table, read by the same judge the driver asks.

use super::*;
use box_api::egress::HostName;
use box_api::egress::github::RefPattern;

fn scope() -> GithubScope {
    GithubScope {
        repositories: vec![Repository::parse("me/app").unwrap()],
        refs: vec![RefPattern::parse("box/web/*").unwrap()],
        ..GithubScope::default()
    }
}

fn outcome(scope: &GithubScope, request: &str, body: &str) -> Result<(), Why> {
    let (method, url) = request.split_once(' ').unwrap();
    let (host, path) = url.split_once('/').unwrap();
    let (path, query) = match path.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (path, None),
    };
    let asked = Asked {
        place: Place::of(&HostName::parse(host).unwrap()).unwrap(),
        method: &Method::from_bytes(method.as_bytes()).unwrap(),
        path: &format!("/{path}"),
        query,
        headers: &HeaderMap::new(),
    };
    match judge(scope, &asked)? {
        Needs::Nothing | Needs::Push(_) => Ok(()),
        Needs::Body(ask) => judge_body(scope, &ask, body.as_bytes()),
    }
}

const PASS: &[(&str, &str)] = &[
    ("GET api.github.com/repos/other/secret", ""),
    (
        "HEAD api.github.com/repos/other/secret/contents/x?ref=main",
        "",
    ),
    ("GET api.github.com/search/code?q=x", ""),
    (
        "GET github.com/other/x/info/refs?service=git-upload-pack",
        "",
    ),
    ("POST github.com/other/x.git/git-upload-pack", ""),
    (
        "GET github.com/me/app.git/info/refs?service=git-receive-pack",
        "",
    ),
    (
        "GET github.com/Me/App/info/refs?service=git-receive-pack",
        "",
    ),
    ("POST github.com/me/app.git/git-receive-pack", ""),
    ("POST gist.github.com/abc.git/git-upload-pack", ""),
    ("POST github.com/login/oauth/access_token", ""),
    (
        "POST github.com/other/x.git/info/lfs/objects/batch",
        r#"{"operation":"download"}"#,
    ),
    (
        "POST github.com/me/app.git/info/lfs/objects/batch",
        r#"{"operation":"upload"}"#,
    ),
    ("POST github.com/other/x.git/info/lfs/locks/verify", ""),
    ("POST github.com/me/app.git/info/lfs/locks", ""),
    ("GET raw.githubusercontent.com/other/x/main/a", ""),
    (
        "POST api.github.com/graphql",
        r#"{"query":"{viewer{login}}"}"#,
    ),
    ("POST api.github.com/repos/me/app/pulls", ""),
    ("PATCH api.github.com/repos/me/app/pulls/7", ""),
    ("POST api.github.com/repos/me/app/issues", ""),
    ("POST api.github.com/repos/Me/APP/issues/7/comments", ""),
    ("DELETE api.github.com/repos/me/app/issues/comments/9", ""),
    ("POST api.github.com/repos/me/app/pulls/7/reviews", ""),
    (
        "POST api.github.com/repos/me/app/pulls/7/reviews",
        r#"{"event":"COMMENT","body":"x"}"#,
    ),
    (
        "POST api.github.com/repos/me/app/pulls/7/reviews/9/events",
        r#"{"event":"REQUEST_CHANGES","body":"x"}"#,
    ),
    ("PUT api.github.com/repos/me/app/pulls/7/reviews/9", ""),
    (
        "POST api.github.com/repos/me/app/pulls/7/comments/9/replies",
        "",
    ),
    (
        "POST api.github.com/repos/me/app/issues/7/assignees",
        r#"{"assignees":["me"]}"#,
    ),
    ("POST api.github.com/repos/me/app/git/blobs", ""),
    (
        "POST api.github.com/repos/me/app/git/refs",
        r#"{"ref":"refs/heads/box/web/x","sha":"1"}"#,
    ),
    (
        "PATCH api.github.com/repos/me/app/git/refs/heads/box/web/x",
        r#"{"sha":"1"}"#,
    ),
    (
        "PATCH api.github.com/repos/me/app/git/refs/heads/box%2Fweb%2Fx",
        r#"{"sha":"1","force":false}"#,
    ),
    (
        "PUT api.github.com/repos/me/app/contents/a/b.txt",
        r#"{"branch":"box/web/x"}"#,
    ),
    (
        "POST api.github.com/repos/me/app/merges",
        r#"{"base":"box/web/x","head":"main"}"#,
    ),
];

const REFUSED: &[(&str, &str)] = &[
    (
        "POST api.github.com/repos/me/app/issues/7/sub_issues",
        r#"{"sub_issue_id":1}"#,
    ),
    (
        "DELETE api.github.com/repos/me/app/issues/7/sub_issue",
        r#"{"sub_issue_id":1}"#,
    ),
    (
        "PATCH api.github.com/repos/me/app/issues/7/sub_issues/priority",
        r#"{"sub_issue_id":1}"#,
    ),
    (
        "POST api.github.com/repos/me/app/pulls/7/reviews",
        r#"{"event":"APPROVE"}"#,
    ),
    (
        "POST api.github.com/repos/me/app/pulls/7/reviews",
        r#"{"event":"approve"}"#,
    ),
    (
        "POST api.github.com/repos/me/app/pulls/7/reviews",
        r#"{"event":["APPROVE"]}"#,
    ),
    (
        "POST api.github.com/repos/me/app/pulls/7/reviews",
        r#"{"event":"COMMENT","event":"APPROVE"}"#,
    ),
    (
        "POST api.github.com/repos/me/app/pulls/7/reviews",
        r#"["APPROVE"]"#,
    ),
    (
        "POST api.github.com/repos/me/app/pulls/7/reviews",
        "event=APPROVE",
    ),
    (
        "POST api.github.com/repos/me/app/pulls/7/reviews/9/events",
        r#"{"event":"APPROVE"}"#,
    ),
    (
        "PUT api.github.com/repos/me/app/pulls/7/reviews/9/dismissals",
        r#"{"message":"x","event":"DISMISS"}"#,
    ),
    (
        "POST api.github.com/repos/me/app/issues",
        r#"{"title":"x","agent_assignment":{"target_repo":"other/x"}}"#,
    ),
    (
        "POST api.github.com/repos/me/app/issues",
        r#"{"title":"x","assignees":["Copilot-swe-agent[bot]"]}"#,
    ),
    (
        "PATCH api.github.com/repos/me/app/issues/7",
        r#"{"assignee":"copilot-swe-agent[bot]"}"#,
    ),
    (
        "POST api.github.com/repos/me/app/issues/7/assignees",
        r#"{"assignees":["copilot-swe-agent[bot]"]}"#,
    ),
    (
        "GET github.com/other/x/info/refs?service=git-receive-pack",
        "",
    ),
    (
        "GET github.com/other/x/info/refs?service=git%2Dreceive%2dpack",
        "",
    ),
    (
        "GET github.com/me/app/info/refs?service=git-receive-pack&x=1",
        "",
    ),
    (
        "GET github.com/me/app/../../other/x/info/refs?service=git-receive-pack",
        "",
    ),
    (
        "GET gist.github.com/abc.git/info/refs?service=git-receive-pack",
        "",
    ),
    ("POST github.com/other/x.git/git-receive-pack", ""),
    ("POST github.com/me/app.wiki.git/git-receive-pack", ""),
    ("POST github.com/me//app/git-receive-pack", ""),
    ("POST github.com/me/app/git-receive-pack/", ""),
    ("POST github.com/me/app%2Fx/git-receive-pack", ""),
    ("POST github.com/me/app.git.git/git-receive-pack", ""),
    ("POST github.com/me/app/git-upload-archive", ""),
    ("PUT github.com/me/app.git/info/refs", ""),
    ("PROPFIND github.com/me/app.git/", ""),
    ("POST gist.github.com/abc.git/git-receive-pack", ""),
    (
        "POST github.com/other/x.git/info/lfs/objects/batch",
        r#"{"operation":"upload"}"#,
    ),
    (
        "POST github.com/me/app.git/info/lfs/objects/batch",
        r#"{"operation":"UPLOAD"}"#,
    ),
    (
        "POST github.com/me/app.git/info/lfs/objects/batch",
        r#"{"operation":"download","operation":"upload"}"#,
    ),
    ("POST github.com/other/x.git/info/lfs/locks", ""),
    ("PUT raw.githubusercontent.com/x", ""),
    ("POST ghcr.io/v2/me/app/blobs/uploads/", ""),
    ("POST github.com/session", ""),
    ("POST api.github.com/repos/other/x/issues", ""),
    ("POST api.github.com/repositories/1/issues", ""),
    ("POST api.github.com//repos/me/app/issues", ""),
    ("POST api.github.com/repos/me/app/../../other/x/issues", ""),
    ("POST api.github.com/repos/me/%2e%2e/other/x/issues", ""),
    ("POST api.github.com/Repos/me/app/issues", ""),
    ("POST api.github.com/repos/me/app/issues?_method=put", ""),
    ("GET api.github.com/repos/me/app/issues?_method=delete", ""),
    (
        "GET api.github.com/repos/me/app/issues?%5Fmethod=delete",
        "",
    ),
    ("GET api.github.com/graphql?query=mutation%7Bx%7D", ""),
    ("GET api.github.com//graphql?query=mutation%7Bx%7D", ""),
    (
        "POST api.github.com/graphql",
        r#"{"query":"mutation{addStar(input:{}){x}}"}"#,
    ),
    ("POST api.github.com/graphql?query=x", r#"{"query":"{a}"}"#),
    ("POST api.github.com/api/graphql", r#"{"query":"{a}"}"#),
    ("POST api.github.com/gists", ""),
    ("POST api.github.com/user/repos", ""),
    ("POST api.github.com/user/keys", ""),
    ("DELETE api.github.com/repos/me/app", ""),
    ("PATCH api.github.com/repos/me/app", ""),
    ("POST api.github.com/repos/me/app/releases", ""),
    ("POST uploads.github.com/repos/me/app/releases/1/assets", ""),
    ("PUT api.github.com/repos/me/app/actions/secrets/X", ""),
    (
        "POST api.github.com/repos/me/app/actions/workflows/1/dispatches",
        "",
    ),
    ("POST api.github.com/repos/me/app/dispatches", ""),
    ("POST api.github.com/repos/me/app/hooks", ""),
    ("POST api.github.com/repos/me/app/keys", ""),
    ("PUT api.github.com/repos/me/app/collaborators/x", ""),
    ("POST api.github.com/repos/me/app/transfer", ""),
    ("POST api.github.com/repos/me/app/forks", ""),
    (
        "PUT api.github.com/repos/me/app/branches/main/protection",
        "",
    ),
    ("POST api.github.com/repos/me/app/branches/x/rename", ""),
    ("PUT api.github.com/repos/me/app/pulls/7/merge", ""),
    ("PUT api.github.com/repos/me/app/pulls/7/update-branch", ""),
    ("POST api.github.com/repos/me/app/statuses/abc", ""),
    ("POST api.github.com/repos/me/app/git/tags", ""),
    (
        "POST api.github.com/repos/me/app/git/refs",
        r#"{"ref":"refs/heads/main","sha":"1"}"#,
    ),
    (
        "POST api.github.com/repos/me/app/git/refs",
        r#"{"ref":"heads/box/web/x","sha":"1"}"#,
    ),
    (
        "POST api.github.com/repos/me/app/git/refs",
        r#"{"ref":"refs/tags/v1","sha":"1"}"#,
    ),
    (
        "POST api.github.com/repos/me/app/git/refs",
        r#"{"ref":"refs/heads/box/web/x","ref":"refs/heads/main"}"#,
    ),
    (
        "PATCH api.github.com/repos/me/app/git/refs/heads/main",
        r#"{"sha":"1"}"#,
    ),
    (
        "PATCH api.github.com/repos/me/app/git/refs/heads/box/web/x",
        r#"{"sha":"1","force":true}"#,
    ),
    (
        "PATCH api.github.com/repos/me/app/git/refs/heads/box/web/x",
        r#"{"sha":"1","force":"true"}"#,
    ),
    (
        "PATCH api.github.com/repos/me/app/git/refs/heads/box/web/%2e%2e/%2e%2e/main",
        r#"{"sha":"1"}"#,
    ),
    (
        "DELETE api.github.com/repos/me/app/git/refs/heads/box/web/x",
        "",
    ),
    (
        "PUT api.github.com/repos/me/app/contents/a",
        r#"{"branch":"main"}"#,
    ),
    (
        "PUT api.github.com/repos/me/app/contents/a",
        r#"{"message":"to the default branch"}"#,
    ),
    (
        "PUT api.github.com/repos/me/app/contents/a?branch=main",
        r#"{"branch":"box/web/x"}"#,
    ),
    (
        "DELETE api.github.com/repos/me/app/contents/a?branch=box/web/x",
        "",
    ),
    (
        "POST api.github.com/repos/me/app/merges",
        r#"{"base":"main","head":"box/web/x"}"#,
    ),
];

#[test]
fn reading_and_bound_writes_pass() {
    for (request, body) in PASS {
        assert_eq!(outcome(&scope(), request, body), Ok(()), "{request} {body}");
    }
}

#[test]
fn every_other_write_is_refused() {
    for (request, body) in REFUSED {
        assert!(
            outcome(&scope(), request, body).is_err(),
            "{request} {body}"
        );
    }
}

#[test]
fn without_repositories_all_writes_are_refused_with_the_setting() {
    let nothing = GithubScope::default();
    for (request, body) in REFUSED {
        assert!(outcome(&nothing, request, body).is_err(), "{request}");
    }
    let why = outcome(&nothing, "POST api.github.com/repos/me/app/issues", "").unwrap_err();
    assert!(
        why.line().ends_with("box set <box> github=me/app"),
        "{}",
        why.line()
    );
}

#[test]
fn wider_settings_open_what_they_name_and_no_more() {
    let force = GithubScope {
        force: true,
        ..scope()
    };
    let all = GithubScope {
        writes: GithubWrites::All,
        ..scope()
    };
    let tags = GithubScope {
        tags: true,
        ..scope()
    };
    let delete = "DELETE api.github.com/repos/me/app/git/refs/heads/box/web/x";
    assert_eq!(outcome(&force, delete, ""), Ok(()));
    assert!(outcome(&all, delete, "").is_err());
    let release = "POST api.github.com/repos/me/app/releases";
    assert_eq!(outcome(&all, release, ""), Ok(()));
    assert!(outcome(&force, release, "").is_err());
    let (review, approves) = (
        "POST api.github.com/repos/me/app/pulls/7/reviews",
        r#"{"event":"APPROVE"}"#,
    );
    assert_eq!(outcome(&all, review, approves), Ok(()));
    assert!(outcome(&force, review, approves).is_err());
    let tag = r#"{"ref":"refs/tags/v1","sha":"1"}"#;
    let new_ref = "POST api.github.com/repos/me/app/git/refs";
    assert_eq!(outcome(&tags, new_ref, tag), Ok(()));
    assert!(outcome(&all, new_ref, tag).is_err());
    for scope in [force, all, tags] {
        for request in [
            "POST api.github.com/gists",
            "POST api.github.com/user/keys",
            "POST api.github.com/repos/other/x/issues",
            "DELETE api.github.com/repos/me/app/git/refs/heads/main",
        ] {
            assert!(outcome(&scope, request, "").is_err(), "{request}");
        }
    }
}

#[test]
fn header_that_changes_the_method_is_refused() {
    for name in OVERRIDES {
        let mut headers = HeaderMap::new();
        headers.insert(name, http::HeaderValue::from_static("DELETE"));
        let asked = Asked {
            place: Place::Api,
            method: &Method::GET,
            path: "/repos/me/app",
            query: None,
            headers: &headers,
        };
        assert!(judge(&scope(), &asked).is_err(), "{name}");
    }
}

#[test]
fn body_that_is_a_form_is_no_json() {
    let kind = |kind: &'static str| {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, http::HeaderValue::from_static(kind));
        is_json(&headers)
    };
    assert!(is_json(&HeaderMap::new()));
    assert!(kind("application/json; charset=utf-8"));
    assert!(kind("application/vnd.git-lfs+json"));
    for form in [
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "text/plain",
    ] {
        assert!(!kind(form), "{form}");
    }
}
