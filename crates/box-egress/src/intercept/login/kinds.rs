//! The vendors whose agents log in inside a box: which answers hold tokens, and where those are
//! worth something. Data; a vendor that moves an endpoint is a line here.
//!
//! Claude: read out of Claude Code 2.1.318 (`TOKEN_URL`, `API_KEY_URL`); `console.anthropic.com` is
//! what earlier ones ask. Codex: its login server and its refresh (`codex-rs/login`), RFC 8693 for
//! the exchange of an id token for an API key. GitHub: "Authorizing OAuth apps", device flow
//! (RFC 8628), tokens that expire and are refreshed.

use box_api::egress::{Carriage, HostName};
use std::sync::LazyLock;

/// What a token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Sent with requests, in a header.
    Access,
    /// Sent to the token endpoint alone.
    Refresh,
    /// Says who logged in.
    Id,
    /// A key made with an access token.
    Key,
    /// Something that looks like a token where none is expected.
    Other,
}

impl Role {
    pub(crate) const ALL: [Self; 5] = [
        Self::Access,
        Self::Refresh,
        Self::Id,
        Self::Key,
        Self::Other,
    ];

    /// As a sealed login has it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Access => "access",
            Self::Refresh => "refresh",
            Self::Id => "id",
            Self::Key => "key",
            Self::Other => "other",
        }
    }
}

/// A path whose answers hold tokens.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) host: &'static str,
    /// In lower case, without a slash at its end.
    pub(crate) path: &'static str,
    /// Fields of a request that hold a token the box was given before.
    pub(crate) sends: &'static [&'static str],
    /// Fields of an answer that hold tokens.
    pub(crate) gives: &'static [(&'static str, Role)],
    pub(crate) opens: Opens,
}

/// Whether a host is opened up because of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opens {
    /// Always: somebody may log in there.
    Always,
    /// Only for a box that has something to lose there already.
    WithToken,
}

/// A vendor.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) endpoints: &'static [Endpoint],
    /// Where its access tokens are sent.
    pub(crate) hosts: &'static [&'static str],
    /// How its tokens begin.
    pub(crate) prefixes: &'static [&'static str],
    /// Claims of a JWT that agents read.
    pub(crate) claims: &'static [&'static str],
}

const SENDS: &[&str] = &["refresh_token", "subject_token", "token", "access_token"];
const GIVES: &[(&str, Role)] = &[
    ("access_token", Role::Access),
    ("refresh_token", Role::Refresh),
    ("id_token", Role::Id),
];

const fn token(host: &'static str, path: &'static str) -> Endpoint {
    Endpoint {
        host,
        path,
        sends: SENDS,
        gives: GIVES,
        opens: Opens::Always,
    }
}

pub(crate) const KINDS: &[Kind] = &[
    Kind {
        name: "claude",
        endpoints: &[
            token("platform.claude.com", "/v1/oauth/token"),
            token("console.anthropic.com", "/v1/oauth/token"),
            Endpoint {
                opens: Opens::WithToken,
                ..token("api.anthropic.com", "/v1/oauth/token")
            },
            Endpoint {
                gives: &[("raw_key", Role::Key)],
                opens: Opens::WithToken,
                ..token("api.anthropic.com", "/api/oauth/claude_cli/create_api_key")
            },
        ],
        hosts: &["api.anthropic.com", "platform.claude.com"],
        prefixes: &["sk-ant-oat01-", "sk-ant-ort01-", "sk-ant-api03-", "sk-ant-"],
        claims: &[],
    },
    Kind {
        name: "codex",
        endpoints: &[
            token("auth.openai.com", "/oauth/token"),
            token("auth.openai.com", "/oauth/revoke"),
        ],
        hosts: &["chatgpt.com", "api.openai.com", "auth.openai.com"],
        prefixes: &["sk-proj-", "sk-svcacct-", "rt.1.", "rt_", "sk-"],
        claims: &[
            "aud",
            "email",
            "email_verified",
            "exp",
            "https://api.openai.com/auth",
            "https://api.openai.com/profile",
            "iat",
            "iss",
            "name",
            "nbf",
            "scp",
        ],
    },
    Kind {
        name: "github",
        endpoints: &[token("github.com", "/login/oauth/access_token")],
        hosts: &[
            "github.com",
            "api.github.com",
            "uploads.github.com",
            "gist.github.com",
            "raw.githubusercontent.com",
            "codeload.github.com",
        ],
        prefixes: &["gho_", "ghu_", "ghr_", "ghp_", "ghs_", "github_pat_"],
        claims: &[],
    },
];

/// How long a path is looked at, encoded in itself again and again.
const DECODINGS_MAX: usize = 4;

/// The endpoint a request is for. Whatever a server could take for the path counts as it.
pub(crate) fn endpoint(host: &HostName, path: &str) -> Option<(&'static Kind, &'static Endpoint)> {
    let path = plainest(path);
    let all = KINDS
        .iter()
        .flat_map(|kind| kind.endpoints.iter().map(move |endpoint| (kind, endpoint)));
    let mut here = all.filter(|(_, endpoint)| endpoint.host == host.as_str());
    here.find(|(_, endpoint)| path.contains(endpoint.path))
}

/// Whether somebody may log in at this host.
pub(crate) fn is_login_host(host: &HostName) -> bool {
    let mut endpoints = KINDS.iter().flat_map(|kind| kind.endpoints);
    endpoints.any(|endpoint| endpoint.opens == Opens::Always && endpoint.host == host.as_str())
}

pub(crate) fn named(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name)
}

impl Kind {
    /// Whether it gives tokens out or takes them at this host.
    pub(crate) fn is_at(&self, host: &HostName) -> bool {
        let mut endpoints = self.endpoints.iter().map(|endpoint| endpoint.host);
        self.takes_tokens_at(host) || endpoints.any(|own| own == host.as_str())
    }

    pub(crate) fn takes_tokens_at(&self, host: &HostName) -> bool {
        self.hosts.contains(&host.as_str())
    }

    /// Every host of it.
    pub(crate) fn all_hosts(&self) -> Vec<HostName> {
        let endpoints = self.endpoints.iter().map(|endpoint| endpoint.host);
        let mut all: Vec<HostName> = Vec::new();
        for host in self.hosts.iter().copied().chain(endpoints) {
            // Every name of the table is one; a test looks.
            if let Ok(host) = HostName::parse(host)
                && !all.contains(&host)
            {
                all.push(host);
            }
        }
        all
    }

    /// How a request carries a token of this role; nothing carries one that only goes into bodies.
    pub(crate) fn carried(role: Role) -> Vec<Carriage> {
        match role {
            Role::Access | Role::Other => vec![Carriage::Bearer, Carriage::Basic],
            Role::Key => vec![
                Carriage::Bearer,
                Carriage::Header {
                    name: "x-api-key".to_owned(),
                },
            ],
            Role::Refresh | Role::Id => Vec::new(),
        }
    }
}

/// Begins of tokens of whatever vendor.
pub(crate) fn every_prefix() -> &'static [&'static str] {
    static ALL: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
        KINDS
            .iter()
            .flat_map(|kind| kind.prefixes)
            .copied()
            .collect()
    });
    &ALL
}

/// In lower case, decoded, one slash between two parts and without `.` and `..`.
fn plainest(path: &str) -> String {
    let mut text = path.to_owned();
    for _ in 0..DECODINGS_MAX {
        let decoded = super::form::decoded(&text, super::form::Plus::Itself);
        if decoded == text {
            break;
        }
        text = decoded;
    }
    let text = text.to_ascii_lowercase().replace('\\', "/");
    let mut parts: Vec<&str> = Vec::new();
    for part in text.split('/') {
        // What follows `;` are parameters of a part (RFC 3986 §3.3), which servers ignore.
        match part.split(';').next().unwrap_or_default() {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> HostName {
        HostName::parse(text).unwrap()
    }

    #[test]
    fn every_host_of_the_table_is_a_host() {
        for kind in KINDS {
            for name in kind.hosts {
                assert!(kind.is_at(&host(name)), "{name}");
            }
            for endpoint in kind.endpoints {
                assert_eq!(plainest(endpoint.path), endpoint.path);
                assert!(kind.is_at(&host(endpoint.host)));
                assert_eq!(named(kind.name).unwrap().name, kind.name);
            }
        }
    }

    #[test]
    fn an_endpoint_is_known_in_every_spelling() {
        let github = host("github.com");
        for path in [
            "/login/oauth/access_token",
            "/login/oauth/access_token/",
            "/login/oauth/access_token.json",
            "//login//oauth/access_token",
            "/login/./oauth/x/../access_token",
            "/LOGIN/oauth/Access_Token",
            "/login/oauth/%61ccess_token",
            "/login/oauth/%2561ccess_token",
            "/login%2Foauth%5caccess_token",
            "/login;a=b/oauth/access_token;c",
        ] {
            let found = endpoint(&github, path);
            assert_eq!(found.map(|(kind, _)| kind.name), Some("github"), "{path}");
        }
        for path in [
            "/login/device/code",
            "/login/oauth/authorize",
            "/",
            "/login",
        ] {
            assert!(endpoint(&github, path).is_none(), "{path}");
        }
        assert!(endpoint(&host("evil.test"), "/login/oauth/access_token").is_none());
    }

    #[test]
    fn hosts_of_tokens_alone_are_not_opened_up_for_logins() {
        for name in ["github.com", "auth.openai.com", "platform.claude.com"] {
            assert!(is_login_host(&host(name)), "{name}");
        }
        for name in [
            "api.github.com",
            "api.anthropic.com",
            "chatgpt.com",
            "a.github.com",
        ] {
            assert!(!is_login_host(&host(name)), "{name}");
        }
    }
}
