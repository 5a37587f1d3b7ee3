//! Paths at which a host makes a new secret out of the one it is sent. The box would be handed a
//! real one in clear, so no request with the owner's credential goes there.
//!
//! A table by kind of credential, and by host for credentials that say no kind of their own. A path
//! is refused when any reading of it leads to one of these places; nothing is forwarded differently.

use crate::http::request::Site;
use crate::intercept::grant::Grant;
use crate::refuse::Refused;
use box_api::egress::{HostName, Reason};
use http::Method;
use http::request::Parts;

/// Readings of a path, each of which decodes what the one before gave. A path that needs more is
/// refused.
const ROUNDS_MAX: usize = 8;
/// More than any of these hosts takes.
const PATH_BYTES_MAX: usize = 16 * 1024;

/// Headers some servers take the method from.
const METHOD_HEADERS: [&str; 3] = [
    "x-http-method-override",
    "x-http-method",
    "x-method-override",
];

struct Issuer {
    kind: &'static str,
    hosts: &'static [&'static str],
    /// Segments in lower case. `*` is any text within one, `**` any segments; whatever follows is
    /// the place as well. Without a `/` in front it may stand anywhere in a path.
    paths: &'static [&'static str],
}

const ISSUERS: &[Issuer] = &[
    // docs.gitlab.com/api/personal_access_tokens, …/runners, …/oauth2
    Issuer {
        kind: "gitlab",
        hosts: &["gitlab.com"],
        paths: &[
            "oauth/token*",
            "api/v*/**/personal_access_tokens*",
            "api/v*/**/impersonation_tokens*",
            "api/v*/**/access_tokens*",
            "api/v*/**/deploy_tokens*",
            "api/v*/**/runners*",
            "api/v*/**/*runners_token*",
            "api/v*/**/reset_registration_token*",
            "api/v*/**/cluster_agents/*/tokens*",
            "api/v*/**/triggers*",
            "api/v*/applications*",
        ],
    },
    // platform.openai.com/docs/api-reference: realtime sessions, administration
    Issuer {
        kind: "openai",
        hosts: &["api.openai.com"],
        paths: &[
            "v1/realtime/client_secrets*",
            "v1/realtime/sessions*",
            "v1/realtime/transcription_sessions*",
            "v1/chatkit/sessions*",
            "v1/organization/**/*api_keys*",
            "v1/organization/**/service_accounts*",
        ],
    },
    // What somebody who logged in makes is read and kept back (see `login`); this is all other.
    Issuer {
        kind: "claude",
        hosts: &["api.anthropic.com"],
        paths: &[
            "v1/organizations/**/*api_keys*",
            "api/oauth/**/create_api_key*",
            "oauth/token*",
        ],
    },
    // docs.github.com/rest: apps, self-hosted runners
    Issuer {
        kind: "github",
        hosts: &["github.com", "api.github.com"],
        paths: &[
            "applications/**/token*",
            "app/installations/**/access_tokens*",
            "app-manifests/**/conversions*",
            "**/actions/runners/registration-token*",
            "**/actions/runners/remove-token*",
            "**/actions/runners/generate-jitconfig*",
            "/authorizations*",
            "/api/v3/authorizations*",
        ],
    },
    // ai.google.dev/gemini-api/docs/ephemeral-tokens
    Issuer {
        kind: "gemini",
        hosts: &["generativelanguage.googleapis.com"],
        paths: &["v1*/auth_tokens*", "v1*/authtokens*"],
    },
    // npm-token(1), npm-login(1)
    Issuer {
        kind: "npm",
        hosts: &["registry.npmjs.org"],
        paths: &["-/npm/v1/tokens*", "-/user/*"],
    },
];

/// Refuses a request that could have a new secret made with one of the `grants`.
pub(crate) fn judge(grants: &[Grant], site: &Site, parts: &Parts) -> Result<(), Refused> {
    if grants.is_empty() || is_reading(parts) {
        return Ok(());
    }
    let credentials = grants.iter().filter_map(|grant| grant.credential.as_ref());
    let kinds: Vec<&str> = credentials.map(|one| one.spec.kind.as_str()).collect();
    if !issues(&kinds, &site.host, parts.uri.path()) {
        return Ok(());
    }
    let mut refused = site.refuse(Reason::DeniedRequest);
    refused.rule = Some("a new secret would be made with the owner's credential".into());
    Err(refused)
}

/// Whether it only looks: what is listed of secrets, none of these hosts shows in clear.
fn is_reading(parts: &Parts) -> bool {
    let reads = [Method::GET, Method::HEAD, Method::OPTIONS].contains(&parts.method);
    let mut overrides = METHOD_HEADERS.iter();
    reads && !overrides.any(|name| parts.headers.contains_key(*name))
}

/// Whether a path leads to a place where `host` makes a secret out of one of these kinds.
fn issues(kinds: &[&str], host: &HostName, path: &str) -> bool {
    let concerns = |one: &&Issuer| kinds.contains(&one.kind) || one.hosts.contains(&host.as_str());
    let mut patterns = ISSUERS.iter().filter(concerns).flat_map(|one| one.paths);
    let Some(mut patterns) = patterns.next().map(|first| patterns.chain([first])) else {
        return false;
    };
    let Some(plain) = plain(path) else {
        return true;
    };
    let readings = [
        segments(&plain, Dots::Lead),
        segments(&plain, Dots::Nothing),
    ];
    patterns.any(|pattern| readings.iter().any(|reading| leads(pattern, reading)))
}

/// Decoded until nothing is left to decode, in lower case, without what no server keeps.
fn plain(path: &str) -> Option<String> {
    let mut bytes = path.as_bytes().to_vec();
    if bytes.len() > PATH_BYTES_MAX {
        return None;
    }
    for _ in 0..ROUNDS_MAX {
        let next = decoded(&bytes);
        if next == bytes {
            let text = String::from_utf8_lossy(&bytes).to_lowercase();
            let odd = |c: char| c.is_control() || c.is_whitespace();
            return Some(text.replace('\\', "/").replace(odd, ""));
        }
        bytes = next;
    }
    None
}

/// Once (RFC 3986 §2.1); a `%` before no two digits stands for itself.
fn decoded(bytes: &[u8]) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [first, tail @ ..] = rest {
        rest = tail;
        let mut byte = *first;
        if let (b'%', [high, low, behind @ ..]) = (byte, tail)
            && let (Some(high), Some(low)) = (digit(*high), digit(*low))
            && let Ok(meant) = u8::try_from(high << 4 | low)
        {
            (byte, rest) = (meant, behind);
        }
        out.push(byte);
    }
    out
}

/// What `..` is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Dots {
    /// The way up (RFC 3986 §5.2.4).
    Lead,
    Nothing,
}

fn segments(plain: &str, dots: Dots) -> Vec<&str> {
    let mut all = Vec::new();
    for part in plain.split('/') {
        // Some servers take what follows for a parameter of the segment (RFC 3986 §3.3).
        match part.split(';').next().unwrap_or_default() {
            ".." if dots == Dots::Lead => drop(all.pop()),
            "" | "." | ".." => {}
            part => all.push(part),
        }
    }
    all
}

fn leads(pattern: &str, path: &[&str]) -> bool {
    let anchored = pattern.strip_prefix('/');
    let wanted: Vec<&str> = anchored.unwrap_or(pattern).split('/').collect();
    if anchored.is_some() {
        return begins(&wanted, path);
    }
    (0..path.len()).any(|from| begins(&wanted, &path[from..]))
}

fn begins(wanted: &[&str], path: &[&str]) -> bool {
    match (wanted, path) {
        ([], _) => true,
        (["**", rest @ ..], _) => (0..=path.len()).any(|from| begins(rest, &path[from..])),
        ([first, rest @ ..], [segment, behind @ ..]) => {
            fits(first, segment) && begins(rest, behind)
        }
        ([_, ..], []) => false,
    }
}

/// Whether a segment is `pattern`, in which `*` is any text.
fn fits(pattern: &str, segment: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == segment,
        Some((before, behind)) => segment.strip_prefix(before).is_some_and(|rest| {
            let mut ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
            ends.any(|at| fits(behind, &rest[at..]))
        }),
    }
}

#[cfg(test)]
mod tests;
