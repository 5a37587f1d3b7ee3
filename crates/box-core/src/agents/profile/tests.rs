//! Tests of agent profiles.

use super::*;

#[test]
fn every_embedded_profile_is_valid_and_named_once() {
    for text in EMBEDDED {
        AgentProfile::parse(text).unwrap();
    }
    let mut names: Vec<_> = profiles().map(|profile| &profile.name).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), EMBEDDED.len());
}

#[test]
fn a_locked_packs_command_lies_in_its_own_mount() {
    for profile in profiles().filter(|profile| profile.pack == PackKind::Locked) {
        for path in profile.command.iter().filter(|word| word.starts_with('/')) {
            assert!(
                path.starts_with(&format!("{}/", profile.mount_point())),
                "{path}"
            );
        }
    }
}

#[test]
fn a_secret_is_told_by_how_it_begins() {
    let credential = find("claude").unwrap().credential.as_ref().unwrap();
    let shape = |secret| {
        credential
            .shape_of(secret)
            .map(|shape| shape.variable.as_str())
    };
    assert_eq!(shape("sk-ant-oat01-abc"), Some("CLAUDE_CODE_OAUTH_TOKEN"));
    assert_eq!(shape("sk-ant-api03-abc"), Some("ANTHROPIC_API_KEY"));
    assert_eq!(shape("sk-proj-abc"), None);
    assert_eq!(shape(""), None);
}

#[test]
fn an_unknown_agent_names_the_one_that_was_meant() {
    let error = find("cluade").unwrap_err();
    assert_eq!(error.to_string(), "there is no agent `cluade`");
    let known = "agents here: `claude`, `codex`, `opencode`, `gemini`, `grok`, `kimi`, `copilot`, `qwen`, `demo`";
    assert_eq!(error.hint(), format!("did you mean `claude`? {known}"));
    assert_eq!(find("hal").unwrap_err().hint(), known);
}

#[test]
fn unknown_keys_are_refused() {
    let text = EMBEDDED[EMBEDDED.len() - 1].replace("[modes]", "colour = \"red\"\n[modes]");
    assert!(matches!(
        AgentProfile::parse(&text),
        Err(ProfileError::Toml(_))
    ));
    let text = EMBEDDED[EMBEDDED.len() - 1].replace("[modes]", "[modes]\nfly = \"up\"");
    assert!(matches!(
        AgentProfile::parse(&text),
        Err(ProfileError::Toml(_))
    ));
}

#[test]
fn fields_that_become_paths_variables_or_headers_are_checked() {
    let changes = [
        ("name", "name = \"claude\"", "name = \"../claude\""),
        (
            "command",
            "/opt/box/agents/claude/node_modules/node",
            "/opt/box/../claude/node",
        ),
        (
            "hosts",
            "hosts = [\"api.anthropic.com\"]\nlogin",
            "hosts = [\"evil/..\"]\nlogin",
        ),
        ("variable", "IS_SANDBOX", "\"A=B\""),
        ("prefix", "prefix = \"sk-ant-oat\"", "prefix = \"\""),
        (
            "header",
            "header = \"x-api-key\"",
            "header = \"x-api: key\"",
        ),
        (
            "files",
            "path = \".claude/settings.json\"",
            "path = \"../.bashrc\"",
        ),
    ];
    for (wanted, from, to) in changes {
        let text = EMBEDDED[0].replacen(from, to, 1);
        assert_ne!(text, EMBEDDED[0], "{wanted}: nothing was changed");
        match AgentProfile::parse(&text) {
            Err(ProfileError::Field { field, .. }) => assert_eq!(field, wanted),
            other => panic!("{wanted}: {other:?}"),
        }
    }
}
