//! Packs, profiles and logins of agents, as a person types and reads them.

use super::fake_host::FakeHost;
use super::person::Person;
use serde_json::{Value, json};
use std::path::PathBuf;

const PROFILE: &str = "name = \"mine\"\n";

fn profile(host: &FakeHost) -> PathBuf {
    let file = host.folder().join("mine.toml");
    std::fs::write(&file, PROFILE).unwrap();
    file
}

/// What `box agent add` asks first.
fn add(file: &str) -> Value {
    json!({"verb": "agent", "ask": "add", "file": file, "text": PROFILE, "agreed": false})
}

/// And once it is agreed to.
fn agreed(file: &str) -> Value {
    let mut ask = add(file);
    ask["agreed"] = true.into();
    ask
}

fn opens() -> Value {
    json!({
        "result": "agent_opens", "agent": "mine", "title": "My agent",
        "command": ["my-agent", "--acp"], "hosts": ["models.example.org"],
        "credential": {
            "kind": "mine", "hosts": ["api.example.org"], "variables": ["MINE_TOKEN"],
        },
        "variables": ["MINE"], "files": [".mine/config"], "replaces": false,
    })
}

#[test]
fn what_a_profile_opens_is_shown_and_nothing_is_added_without_a_yes() {
    let host = FakeHost::new();
    let file = profile(&host);
    let path = file.to_str().unwrap();
    // Nobody can be asked.
    host.done(add(path), opens());
    insta::assert_snapshot!(host.run(&["agent", "add", path]).whole(), @r"
    exit 2
    --- err
    error: adding an agent needs a yes
    cause: there is no terminal to ask at
    hint: `box agent add <file> --force` shows what it opens and does not ask
    ");
    host.done(add(path), opens());
    host.done(agreed(path), opens());
    insta::assert_snapshot!(host.run(&["agent", "add", path, "--force"]).whole(), @r#"
    exit 0
    --- err
    agent `mine`: My agent
      runs in a box: `my-agent` `--acp`
      hosts that boxes with the preset `balanced` may reach: models.example.org
      variables of its process: MINE
      files in the home of its boxes: .mine/config
      credential `mine`, sent to: api.example.org
      placeholder of it in the box: MINE_TOKEN
    agent `mine` is added
    hint: `box run mine "hello"`
    "#);
    // A person says no: the second question is never asked.
    host.done(add(path), opens());
    let mut person = Person::at(&host.program(&["agent", "add", path]));
    person
        .sees("api.example.org")
        .sees("add agent `mine`? [y/N] ")
        .types("n\n")
        .sees("nothing was added");
    assert_eq!(person.finish(), 1);
}

#[test]
fn a_file_that_is_not_there_is_told_before_anybody_is_asked() {
    let host = FakeHost::new();
    let said = host.run(&["agent", "add", "/nonexistent/mine.toml"]);
    insta::assert_snapshot!(said.whole(), @r"
    exit 2
    --- err
    error: could not read `/nonexistent/mine.toml`
    cause: No such file or directory (os error 2)
    ");
}

#[test]
fn what_became_of_packs_is_told() {
    let host = FakeHost::new();
    let installed = json!([{"agent": "claude", "title": "Claude Code", "state": "installed 2"}]);
    host.done(
        json!({"verb": "agent", "ask": "update", "agent": null}),
        json!({"result": "agent_packs", "agents": installed, "removed": ["codex/1-aa"],
            "kept": ["claude/1-bb"], "boxes": ["one", "two"]}),
    );
    insta::assert_snapshot!(host.run(&["agent", "update"]).whole(), @r"
    exit 0
    --- err
    removed the old pack `codex/1-aa`
    kept the old pack `claude/1-bb`: `one`, `two` may use it
    hint: stop those boxes, then `box agent update` again, or `box prune`
    agent `claude`: installed 2
    ");
    host.done(
        json!({"verb": "agent", "ask": "remove", "agent": "claude", "even_in_use": true}),
        json!({"result": "agent_packs", "agents": [], "removed": ["claude/1-bb"], "kept": [],
            "boxes": []}),
    );
    insta::assert_snapshot!(host.run(&["agent", "rm", "claude", "--force"]).whole(), @r"
    exit 0
    --- err
    removed `claude/1-bb`
    ");
}

#[test]
fn a_login_is_an_account_given_here_or_one_made_inside_a_box() {
    let host = FakeHost::new();
    let login = |kind: Value, inside: Value| {
        json!({"result": "agent_login", "agent": "claude", "kind": kind, "hint": "get a token",
            "inside": inside})
    };
    let asked = json!({"verb": "agent", "ask": "login", "agent": "claude"});
    host.done(
        asked.clone(),
        login(json!("claude"), json!(["claude", "auth", "login"])),
    );
    let added = json!({"verb": "credential_add", "kind": "claude", "name": "work"});
    host.on_part(added, |talk| talk.done(json!({"result": "nothing"})));
    let mut given = host.program(&["agent", "login", "claude", "--name", "work"]);
    given = given.input(b"sk-ant-oat01-x\n");
    insta::assert_snapshot!(given.run().whole(), @r"
    exit 0
    --- err
    hint: get a token
    hint: or log in inside a box: `box agent login claude --inside <box>`
    credential `work` for `claude` is added; boxes only ever see a placeholder
    ");
    host.done(asked.clone(), login(json!("claude"), Value::Null));
    let inside = &["agent", "login", "claude", "--inside", "demo"];
    insta::assert_snapshot!(host.run(inside).whole(), @r"
    exit 2
    --- err
    error: agent `claude` has no login of its own whose tokens stay out of the box
    hint: `box agent login claude` gives its account here
    ");
    host.done(asked, login(json!("claude"), json!(["claude"])));
    insta::assert_snapshot!(host.run(inside).whole(), @r"
    exit 2
    --- err
    error: a login inside a box needs a terminal
    cause: standard input or output is none
    ");
}
