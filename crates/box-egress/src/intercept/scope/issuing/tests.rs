//! Which paths make secrets: a table, in every spelling a server may take for the same path.

use super::*;

fn is_refused(kind: &str, host: &str, path: &str) -> bool {
    issues(&[kind], &HostName::parse(host).unwrap(), path)
}

const ISSUING: &[(&str, &str, &[&str])] = &[
    (
        "gitlab",
        "git.example.org",
        &[
            "/oauth/token",
            "/oauth/token.json",
            "/api/v4/personal_access_tokens/self/rotate",
            "/api/v4/user/personal_access_tokens",
            "/api/v4/users/3/personal_access_tokens",
            "/api/v4/users/3/impersonation_tokens",
            "/api/v4/projects/me%2Fapp/access_tokens",
            "/api/v4/groups/3/access_tokens/4/rotate",
            "/api/v4/projects/3/deploy_tokens",
            "/api/v4/user/runners",
            "/api/v4/runners/reset_registration_token",
            "/api/v4/projects/3/cluster_agents/4/tokens",
            "/sub/folder/api/v4/personal_access_tokens/3/rotate",
            // Spellings.
            "//api//v4/.//personal_access_tokens/self/rotate",
            "/API/v4/Personal_Access_Tokens/self/rotate",
            "/api/v4/x/../personal_access_tokens/self/rotate",
            "/api/v4/personal_access_tokens/x/../self/rotate",
            "/api/v4/personal_access_tokens/self/rotate/../../../projects",
            "/api/v4/%70ersonal_access_tokens/self/rotate",
            "/api/v4/%2570ersonal_access_tokens/self/rotate",
            "/api/v4/%252525252570ersonal_access_tokens/self/rotate",
            "/api%2fv4%2Fpersonal_access_tokens/self/rotate",
            "/api/v4/x/%2e%2e/personal_access_tokens/self/rotate",
            "/api/v4/x%2f..%2fpersonal_access_tokens/self/rotate",
            "/api\\v4\\personal_access_tokens\\self\\rotate",
            "/api/v4/personal_access_tokens;x=1/self/rotate",
            "/api/v4/personal_access_tokens%00/self/rotate",
            "/api/v4/personal_access_tokens%20/self/rotate",
            "/api/v4/personal_access_tokens.json",
            "/api/v4/personal_access_tokens%3Fx",
        ],
    ),
    (
        "openai",
        "api.openai.com",
        &[
            "/v1/realtime/client_secrets",
            "/v1/realtime/sessions",
            "/v1/realtime/transcription_sessions",
            "/v1/organization/admin_api_keys",
            "/v1/organization/projects/p/api_keys",
            "/v1/organization/projects/p/service_accounts",
        ],
    ),
    (
        "claude",
        "api.anthropic.com",
        &[
            "/v1/organizations/api_keys",
            "/v1/organizations/o/api_keys/k",
            "/api/oauth/claude_cli/create_api_key",
            "/api/oauth/claude_cli/Create_API_key/",
            "/v1/oauth/token",
        ],
    ),
    (
        "github",
        "api.github.com",
        &[
            "/applications/Iv1.1/token",
            "/applications/Iv1.1/token/scoped",
            "/app/installations/1/access_tokens",
            "/repos/me/app/actions/runners/registration-token",
            "/repos/me/app/actions/runners/remove-token",
            "/orgs/me/actions/runners/generate-jitconfig",
            "/authorizations",
            "/authorizations/clients/x",
        ],
    ),
    (
        "gemini",
        "generativelanguage.googleapis.com",
        &["/v1alpha/auth_tokens"],
    ),
    (
        "npm",
        "npm.example.org",
        &[
            "/-/npm/v1/tokens",
            "/-/npm/v1/tokens/token/x",
            "/private/-/npm/v1/tokens",
            "/-/user/org.couchdb.user:me",
        ],
    ),
];

const OTHER: &[(&str, &str, &[&str])] = &[
    (
        "gitlab",
        "gitlab.com",
        &[
            "/me/runners.git/git-receive-pack",
            "/me/access_tokens/info/lfs/objects/batch",
            "/api/v4/projects/3/merge_requests",
            "/api/v4/projects/3/issues/4/notes",
            "/api/graphql",
        ],
    ),
    (
        "openai",
        "api.openai.com",
        &[
            "/v1/responses",
            "/v1/realtime",
            "/v1/chat/completions",
            "/v1/files",
        ],
    ),
    (
        "claude",
        "api.anthropic.com",
        &["/v1/messages", "/v1/messages/count_tokens", "/v1/files"],
    ),
    (
        "github",
        "api.github.com",
        &[
            "/repos/me/app/pulls",
            "/repos/me/app/issues/7/comments",
            "/repos/me/app/contents/authorizations/a",
            "/graphql",
        ],
    ),
    (
        "gemini",
        "generativelanguage.googleapis.com",
        &["/v1beta/models/x:generateContent", "/v1beta/x:countTokens"],
    ),
    (
        "npm",
        "registry.npmjs.org",
        &["/@me%2fapp", "/-/npm/v1/security/audits/quick"],
    ),
    // Nothing is known of another kind at a host of its own.
    ("generic", "api.example.org", &["/oauth/token", "/%25%"]),
];

#[test]
fn path_that_makes_a_secret_is_known_in_every_spelling() {
    for (kind, host, paths) in ISSUING {
        for path in *paths {
            assert!(is_refused(kind, host, path), "{kind} {path}");
        }
    }
}

#[test]
fn other_paths_pass() {
    for (kind, host, paths) in OTHER {
        for path in *paths {
            assert!(!is_refused(kind, host, path), "{kind} {path}");
        }
    }
}

#[test]
fn host_counts_where_the_kind_says_nothing() {
    let path = "/v1/realtime/client_secrets";
    assert!(is_refused("generic", "api.openai.com", path));
    assert!(!is_refused("generic", "api.example.org", path));
    let deep = format!("/%{}41", "25".repeat(ROUNDS_MAX));
    assert!(is_refused("openai", "api.openai.com", &deep));
    let long = "/a".repeat(PATH_BYTES_MAX);
    assert!(is_refused("openai", "api.openai.com", &long));
}

#[test]
fn reading_passes_unless_a_header_says_otherwise() {
    let parts = |method: Method, header: Option<&'static str>| {
        let mut request = http::Request::builder().method(method);
        if let Some(name) = header {
            request = request.header(name, "POST");
        }
        request.body(()).unwrap().into_parts().0
    };
    assert!(is_reading(&parts(Method::GET, None)));
    assert!(!is_reading(&parts(Method::POST, None)));
    assert!(!is_reading(&parts(Method::CONNECT, None)));
    for name in METHOD_HEADERS {
        assert!(!is_reading(&parts(Method::GET, Some(name))), "{name}");
    }
}

#[test]
fn every_pattern_can_match() {
    for pattern in ISSUERS.iter().flat_map(|one| one.paths) {
        assert_eq!(*pattern, pattern.to_lowercase());
        let path = pattern.replace("**", "x").replace('*', "1");
        let path: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        assert!(leads(pattern, &path), "{pattern}");
    }
}
