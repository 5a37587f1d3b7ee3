//! A turn of the real Claude Code in a real box, and one of the demo agent.

use super::credential::{Token, assert_nowhere_in_box};
use super::host::{PATIENCE, TestHost};
use super::terminal::Terminal;
use box_fakes::model::{Model, Script, Step};
use std::fs;
use std::path::PathBuf;

const PROXY_VARIABLES: [&str; 6] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
];
/// The adapter's main file inside the pack.
pub(crate) const ADAPTER: &str = "node_modules/@agentclientprotocol/claude-agent-acp/dist/index.js";

/// Labels of the real adapter's options.
pub(crate) const ALLOW: &str = "Yes";
const REJECT: &str = "No";

/// Writes two files, asking for each, and says so.
fn greeting_script(model: &Model) {
    let made = "python3 -c \"open('made.txt', 'w').write('by the box')\"";
    model.script(
        Script::on("make the greeting")
            .message([
                Step::thinking("First a shell command, then a file."),
                Step::text("I will write the greeting."),
                Step::bash(made),
            ])
            .message([Step::write("/workspace/two.txt", "second\n")])
            .message([Step::text("Both files are there.")]),
    );
}

/// Answers the next permission with the option of this label.
#[track_caller]
pub(crate) fn choose(terminal: &mut Terminal, label: &str) {
    let menu = terminal.expect("your choice [", PATIENCE);
    // `  1  Yes`
    let rows = menu
        .lines()
        .rev()
        .filter_map(|line| line.trim().split_once(' '));
    let number = rows
        .filter(|(_, row)| row.trim() == label)
        .map(|(number, _)| number)
        .next();
    let number = number.unwrap_or_else(|| panic!("no option {label:?} in:\n{menu}"));
    terminal.type_in(&format!("{number}\n"));
}

fn workspace(host: &TestHost, name: &str) -> PathBuf {
    PathBuf::from(
        host.info(name)
            .workspace
            .expect("a native box has a workspace"),
    )
}

#[test]
fn real_claude_does_a_turn() {
    claude_turn(&TestHost::new());
}

/// A turn with two permissions, on whichever host.
pub(crate) fn claude_turn(host: &TestHost) {
    let token = Token::random();
    let model = host.rig.model(token.as_str());
    greeting_script(&model);
    token.add_to(host);

    let prompt = "please make the greeting";
    let mut terminal = host.terminal(&["run", "claude", prompt, "--name", "one"]);
    // The adapter is free to ask before it has told the last of what the model said.
    terminal.expect("made.txt", PATIENCE);
    choose(&mut terminal, ALLOW);
    terminal.expect("two.txt", PATIENCE);
    choose(&mut terminal, ALLOW);
    terminal.expect("Both files are there.", PATIENCE);
    assert_eq!(terminal.finish(PATIENCE), 0, "{}", terminal.seen);
    let said = terminal.seen.contains("I will write the greeting.");
    assert!(said, "{}", terminal.seen);

    let workspace = workspace(host, "one");
    assert_eq!(
        fs::read_to_string(workspace.join("made.txt")).unwrap(),
        "by the box"
    );
    assert_eq!(
        fs::read_to_string(workspace.join("two.txt")).unwrap(),
        "second\n"
    );
    assert_eq!(
        host.shell("one", "cat made.txt two.txt").out,
        "by the boxsecond\n"
    );
    token.assert_only_credential(&model);
    let results: Vec<String> = model
        .turns()
        .into_iter()
        .flat_map(|turn| turn.tool_results)
        .collect();
    assert_eq!(results.len(), 2, "{results:?}");
    assert_nowhere_in_box(host, "one", token.as_str());
}

#[test]
fn real_claude_needs_no_proxy_variable() {
    let host = TestHost::new();
    // The adapter's first line takes the variables away; all that follows is the real one.
    let adapter = host.pack("claude").join(ADAPTER);
    let real = adapter.with_file_name("real.js");
    fs::rename(&adapter, &real).unwrap();
    let unset = PROXY_VARIABLES
        .map(|name| format!("delete process.env.{name};\n"))
        .concat();
    fs::write(&adapter, unset + "await import(\"./real.js\");\n").unwrap();

    let token = Token::random();
    let model = host.rig.model(token.as_str());
    model.script(
        Script::on("show the variables")
            .message([Step::bash(
                "env > /workspace/env.txt; python3 -c 'print(1)'",
            )])
            .message([Step::text("Shown.")]),
    );
    token.add_to(&host);
    let said = host.run(&[
        "run",
        "claude",
        "show the variables",
        "--name",
        "one",
        "--allow-all",
    ]);
    said.assert_code(0);
    assert!(said.out.contains("Shown."), "{said}");
    let env = fs::read_to_string(workspace(&host, "one").join("env.txt")).unwrap();
    for name in PROXY_VARIABLES {
        assert!(
            !env.lines()
                .any(|line| line.starts_with(&format!("{name}="))),
            "{env}"
        );
    }
    token.assert_only_credential(&model);
}

#[test]
fn a_refused_permission_is_told_and_nothing_is_written() {
    let host = TestHost::new();
    let token = Token::random();
    let model = host.rig.model(token.as_str());
    greeting_script(&model);
    token.add_to(&host);
    let prompt = "please make the greeting";
    let mut terminal = host.terminal(&["run", "claude", prompt, "--name", "one"]);
    choose(&mut terminal, REJECT);
    terminal.expect("two.txt", PATIENCE);
    choose(&mut terminal, ALLOW);
    terminal.finish(PATIENCE);
    let workspace = workspace(&host, "one");
    assert!(!workspace.join("made.txt").exists(), "{}", terminal.seen);
    assert!(workspace.join("two.txt").exists(), "{}", terminal.seen);
}

#[test]
fn a_usage_limit_parks_the_turn_and_says_until_when() {
    let host = TestHost::new();
    let token = Token::random();
    let model = host.rig.model(token.as_str());
    let fault = box_fakes::model::Fault::UsageLimit {
        resets_at_s: 1_893_456_000,
    };
    model.script(Script::on("hit the wall").message([Step::Fail {
        fault,
        times: u32::MAX,
    }]));
    token.add_to(&host);
    let said = host.run(&["run", "claude", "hit the wall", "--name", "one"]);
    said.assert_code(5);
    assert!(
        said.err.contains("limit") || said.out.contains("limit"),
        "{said}"
    );
}

#[test]
fn demo_turn_without_any_credential() {
    let host = TestHost::new();
    let said = host.run(&["run", "demo", "show me", "--name", "demo", "--allow-all"]);
    said.assert_code(0);
    assert!(
        said.out.contains("Demo") || said.err.contains("Demo"),
        "not labelled: {said}"
    );
    let files = fs::read_dir(workspace(&host, "demo")).unwrap().count();
    assert!(files > 0, "the demo agent left nothing: {said}");
    assert_eq!(host.rig.all_requests(), [], "the demo needs no model");
}
