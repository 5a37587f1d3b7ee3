//! Whether a request may pass on a host that is opened up: by method and path.
//!
//! A host with no rule about requests takes all of them. One with rules that let something through
//! takes those requests alone. What is refused is refused in every way a server could read it, what
//! is let through must be meant in all of them, and the path that goes on is the one that was judged.

use super::Settings;
use box_api::egress::path::CanonicalPath;
use box_api::egress::policy::Rule;
use box_api::egress::{HostName, Policy, Reason, RequestPattern};
use http::request::Parts;
use http::{HeaderMap, Method, Uri};

/// Headers some servers take the method from.
const METHOD_HEADERS: [&str; 3] = [
    "x-http-method-override",
    "x-http-method",
    "x-method-override",
];

/// A request that a rule is about and that may pass.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Judged {
    /// What is forwarded.
    pub(crate) path: CanonicalPath,
    pub(crate) rule: Option<Rule>,
}

/// Why a request does not pass, and the entry that said so.
pub(crate) type Unfit = (Reason, Option<Rule>);

/// The first rule about requests to a host, if there is one.
pub(crate) fn first_rule(policy: &Policy, host: &HostName) -> Option<Rule> {
    let about = |pattern: &&RequestPattern| pattern.host() == host;
    let allow = policy.allow_requests.iter().find(about).cloned();
    let allow = allow.map(|entry| Rule::AllowRequest { entry });
    let deny = || policy.deny_requests.iter().find(about).cloned();
    allow.or_else(|| deny().map(|entry| Rule::DenyRequest { entry }))
}

/// Judges a request; `None` when no rule is about its host. `path` is without the query.
pub(crate) fn judge(
    settings: &Settings,
    host: &HostName,
    (method, path): (&str, &str),
) -> Result<Option<Judged>, Unfit> {
    let policy = &settings.policy;
    if first_rule(policy, host).is_none() {
        return Ok(None);
    }
    let path = CanonicalPath::parse(path).map_err(|_| (Reason::AmbiguousPath, None))?;
    let about = |pattern: &&RequestPattern| pattern.host() == host;
    let mut denying = policy.deny_requests.iter().filter(about);
    if let Some(entry) = denying.find(|entry| entry.matches_maybe(method, &path)) {
        let entry = entry.clone();
        return Err((Reason::DeniedRequest, Some(Rule::DenyRequest { entry })));
    }
    let mut allowing = policy.allow_requests.iter().filter(about).peekable();
    if allowing.peek().is_none() {
        return Ok(Some(Judged { path, rule: None }));
    }
    match allowing.find(|entry| entry.matches_surely(method, &path)) {
        Some(entry) => {
            let entry = entry.clone();
            let rule = Some(Rule::AllowRequest { entry });
            Ok(Some(Judged { path, rule }))
        }
        None => Err((Reason::DeniedRequest, None)),
    }
}

/// Judges a request as it came, and puts the path that was judged into it, so that what is
/// forwarded is what was judged.
pub(crate) fn judge_parts(
    settings: &Settings,
    parts: &mut Parts,
    host: &HostName,
) -> Result<(), Unfit> {
    // A WebSocket over HTTP/2 is a GET over HTTP/1.1 (RFC 8441 §5).
    let method = match parts.method {
        Method::CONNECT => "GET",
        _ => parts.method.as_str(),
    };
    let Some(judged) = judge(settings, host, (method, parts.uri.path()))? else {
        return Ok(());
    };
    if hides_method(&parts.headers) {
        return Err((Reason::DeniedRequest, None));
    }
    let path = match parts.uri.query() {
        Some(query) => format!("{}?{query}", judged.path.as_str()),
        None => judged.path.as_str().to_owned(),
    };
    let mut uri = std::mem::take(&mut parts.uri).into_parts();
    // What was taken apart goes together again; were it not to, the request would not go on.
    let ambiguous = (Reason::AmbiguousPath, None);
    uri.path_and_query = Some(path.parse().map_err(|_| ambiguous.clone())?);
    parts.uri = Uri::from_parts(uri).map_err(|_| ambiguous)?;
    Ok(())
}

/// Whether a header says that another method is meant than the one that is judged.
fn hides_method(headers: &HeaderMap) -> bool {
    METHOD_HEADERS
        .iter()
        .any(|name| headers.contains_key(*name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(allow: &[&str], deny: &[&str]) -> Settings {
        let parsed = |texts: &[&str]| {
            let patterns = texts
                .iter()
                .map(|text| RequestPattern::parse(text).unwrap());
            patterns.collect()
        };
        let policy = Policy {
            allow_requests: parsed(allow),
            deny_requests: parsed(deny),
            ..Policy::nothing()
        };
        Settings {
            policy,
            bindings: Vec::new(),
            logins: crate::intercept::login::book::BoxLogins::default(),
        }
    }

    fn outcome(settings: &Settings, method: &str, path: &str) -> Result<Option<String>, Reason> {
        let host = HostName::parse("api.test").unwrap();
        let judged = judge(settings, &host, (method, path)).map_err(|(reason, _)| reason)?;
        Ok(judged.map(|judged| judged.path.as_str().to_owned()))
    }

    #[test]
    fn host_without_rules_takes_every_request_as_it_is() {
        let settings = settings(&["GET https://other.test/*"], &[]);
        assert_eq!(outcome(&settings, "DELETE", "//a/../b"), Ok(None));
    }

    #[test]
    fn rule_that_lets_through_closes_the_rest_of_its_host() {
        let settings = settings(&["GET,HEAD https://api.test/repos/*"], &[]);
        assert_eq!(
            outcome(&settings, "GET", "/%72epos/a"),
            Ok(Some("/repos/a".into()))
        );
        let refused = Err(Reason::DeniedRequest);
        assert_eq!(outcome(&settings, "POST", "/repos/a"), refused);
        assert_eq!(outcome(&settings, "GET", "/user"), refused);
        assert_eq!(outcome(&settings, "get", "/repos/a"), refused);
        assert_eq!(
            outcome(&settings, "GET", "/repos/../user"),
            Err(Reason::AmbiguousPath)
        );
    }

    #[test]
    fn denied_request_is_refused_whatever_lets_it_through() {
        let settings = settings(
            &["* https://api.test/*"],
            &[
                "DELETE https://api.test/*",
                "* https://api.test/repos/secret/**",
            ],
        );
        assert_eq!(
            outcome(&settings, "GET", "/repos/a"),
            Ok(Some("/repos/a".into()))
        );
        for (method, path) in [
            ("DELETE", "/repos/a"),
            ("delete", "/repos/a"),
            ("GET", "/repos/secret/x"),
            ("GET", "/repos/SECRET/x"),
            ("GET", "/repos%2fsecret%2Fx"),
        ] {
            assert_eq!(
                outcome(&settings, method, path),
                Err(Reason::DeniedRequest),
                "{path}"
            );
        }
    }
}
