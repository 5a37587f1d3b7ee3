//! Agents somebody adds, updates and removes: what is asked before, what goes and what stays.

use super::host::TestHost;
use std::fs;

const PROFILE: &str = r#"name = "mine"
title = "My agent"
command = ["/opt/box/bin/box-demo-agent"]
hosts = ["models.example.org"]

[credential]
kind = "mine"
hosts = ["api.example.org"]

[[credential.shapes]]
prefix = "mine-"
variable = "MINE_TOKEN"
header = "authorization"
scheme = "Bearer"
"#;

#[test]
fn an_agent_of_your_own_works_once_somebody_said_yes_to_what_it_opens() {
    let host = TestHost::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    let path = file.to_str().unwrap();

    // Nobody can be asked; and what belongs to another account is not given, asked or not.
    fs::write(&file, PROFILE).unwrap();
    let unasked = host.run(&["agent", "add", path]);
    unasked.assert_code(2);
    assert!(unasked.err.contains("--force"), "{unasked}");
    fs::write(
        &file,
        PROFILE.replace("api.example.org", "api.anthropic.com"),
    )
    .unwrap();
    let claims = host.run(&["agent", "add", path, "--force"]);
    claims.assert_code(2);
    let line =
        "mine.toml`, line 8: the host `api.anthropic.com` belongs to the credential `claude`";
    assert!(claims.err.contains(line), "{claims}");
    assert!(!host.ok(&["agent", "list"]).contains("mine"));

    fs::write(&file, PROFILE).unwrap();
    let added = host.run(&["agent", "add", path, "--force"]);
    added.assert_code(0);
    for told in [
        "`/opt/box/bin/box-demo-agent`",
        "models.example.org",
        "credential `mine`, sent to: api.example.org",
        "MINE_TOKEN",
    ] {
        assert!(added.err.contains(told), "{told}: {added}");
    }
    // It needs the account it said.
    let none = host.run(&["run", "mine", "show me", "--name", "one", "--allow-all"]);
    assert!(none.err.contains("box credential add mine"), "{none}");
    host.program(&["agent", "login", "mine"])
        .input(b"mine-0123456789abcdef0123456789abcdef\n")
        .run()
        .assert_code(0);
    // A profile outlives its host.
    host.ok(&["serve", "--stop"]);
    host.program(&["credential", "add", "mine"])
        .input(b"mine-0123456789abcdef0123456789abcdef\n")
        .run()
        .assert_code(0);
    let turn = host.run(&["run", "mine", "show me", "--name", "one", "--allow-all"]);
    turn.assert_code(0);
    let placeholder = host.shell("one", "echo $MINE_TOKEN").out;
    assert!(placeholder.starts_with("mine-"), "{placeholder}");
    assert!(!placeholder.contains("0123456789abcdef"), "{placeholder}");
    let policy = host.ok(&["policy", "show", "one"]);
    assert!(policy.contains("models.example.org"), "{policy}");

    // A box has a thread of it.
    let used = host.run(&["agent", "remove", "mine"]);
    used.assert_code(3);
    assert!(used.err.contains("used by box `one`"), "{used}");
    let reaches = |wanted: &str| {
        let check = host.run(&["policy", "check", "one", "https://models.example.org/"]);
        assert!(check.out.contains(wanted), "{wanted}: {check}");
    };
    reaches("would go through");
    host.ok(&["agent", "remove", "mine", "--force"]);
    reaches("would be refused");
    host.ok(&["agent", "add", path, "--force"]);
    reaches("would go through");
    host.ok(&["agent", "remove", "mine", "--force"]);
    assert!(!host.ok(&["agent", "list"]).contains("mine"));
    let gone = host.run(&["run", "mine", "show me", "--name", "one"]);
    gone.assert_code(2);
    assert!(gone.err.contains("there is no agent `mine`"), "{gone}");
}

#[test]
fn an_old_pack_stays_while_a_box_runs_and_a_pack_goes_when_it_is_told_to() {
    let host = TestHost::new();
    let pack = host.pack("claude");
    let old = pack.with_file_name("0.0.1-00000000");
    fs::create_dir(&old).unwrap();
    fs::write(old.join("pack.json"), "{}").unwrap();
    host.ok(&["new", "one"]);
    let kept = host.run(&["agent", "update"]);
    kept.assert_code(0);
    let told = "kept the old pack `claude/0.0.1-00000000`: `one` may use it";
    assert!(kept.err.contains(told) && old.exists(), "{kept}");
    host.ok(&["stop", "one"]);
    let removed = host.run(&["agent", "update", "claude"]);
    removed.assert_code(0);
    assert!(removed.err.contains("removed the old pack"), "{removed}");
    assert!(!old.exists() && pack.exists(), "{removed}");

    for (agent, code, told) in [
        ("demo", 2, "part of this program"),
        ("gemini", 2, "not installed"),
        ("claud", 2, "did you mean `claude`?"),
        ("claude", 0, "removed `claude/"),
    ] {
        let said = host.run(&["agent", "remove", agent]);
        said.assert_code(code);
        assert!(said.err.contains(told), "{said}");
    }
    assert!(!pack.exists());
    let list = host.ok(&["agent", "list"]);
    let claude = list.lines().find(|line| line.starts_with("claude"));
    assert!(claude.unwrap().contains("not installed"), "{list}");
    let login = host.run(&["agent", "login", "demo"]);
    login.assert_code(0);
    assert!(login.err.contains("needs no account"), "{login}");
}
