//! Wrong input, each with its exact message and exit code.

use super::fake_host::FakeHost;
use super::program::Program;
use serde_json::{Value, json};

/// What is said without asking any host.
#[track_caller]
fn alone(arguments: &[&str]) -> String {
    let said = Program::new(arguments).run();
    assert_eq!(said.out, "", "nothing of it is data");
    format!("exit {}\n{}", said.code, said.err)
}

/// What is said when the host answers with this problem.
#[track_caller]
fn refused(arguments: &[&str], request: Value, problem: Value) -> String {
    let host = FakeHost::new();
    host.problem(request, problem);
    let said = host.run(arguments);
    format!("exit {}\n{}", said.code, said.err)
}

fn unknown_box() -> Value {
    json!({
        "type": "box-not-found", "kind": "usage", "title": "there is no box `dmeo`",
        "hint": "did you mean `demo`?",
    })
}

#[test]
fn an_unknown_verb_is_told_with_the_nearest() {
    insta::assert_snapshot!(alone(&["lsit"]), @r"
    exit 2
    error: there is no verb `lsit`
    hint: did you mean `list`?
    ");
    insta::assert_snapshot!(alone(&["frobnicate"]), @r"
    exit 2
    error: there is no verb `frobnicate`
    hint: `box --help` lists the verbs
    ");
    insta::assert_snapshot!(alone(&[]));
    insta::assert_snapshot!(alone(&["image"]), @r"
    exit 2
    error: `box image` needs a verb
    hint: `box image --help` shows examples
    ");
}

#[test]
fn an_option_before_the_verb_is_told_where_it_goes() {
    insta::assert_snapshot!(alone(&["--json", "list"]), @r"
    exit 2
    error: there is no option `--json`
    hint: options come after the verb: `box list --json`
    ");
    insta::assert_snapshot!(alone(&["-x"]), @r"
    exit 2
    error: there is no option `-x`
    hint: `box --help` lists the verbs
    ");
}

#[test]
fn an_unknown_option_is_named_without_its_value() {
    let said = alone(&["credential", "add", "claude", "--token=sk-secret"]);
    assert!(!said.contains("sk-secret"), "{said}");
    insta::assert_snapshot!(alone(&["list", "--jsno"]), @r"
    exit 2
    error: there is no option `--jsno`
    hint: did you mean `--json`?
    ");
    insta::assert_snapshot!(alone(&["new", "demo", "--bogus=1"]), @r"
    exit 2
    error: there is no option `--bogus`
    hint: `box new --help` shows examples
    ");
}

#[test]
fn names_are_checked_before_anybody_is_asked() {
    insta::assert_snapshot!(alone(&["info", "Demo"]), @r"
    exit 2
    error: `Demo` does not work for `NAME`
    cause: a box name starts with a letter a-z, then letters, digits and `-`, 63 at most
    hint: `box info --help` shows examples
    ");
    insta::assert_snapshot!(alone(&["new", "all"]), @r"
    exit 2
    error: `all` does not work for `NAME`
    cause: `all` stands for every box and cannot name one
    hint: `box new --help` shows examples
    ");
    insta::assert_snapshot!(alone(&["stop", "a_b"]), @r"
    exit 2
    error: `a_b` does not work for `NAME`
    cause: a box name starts with a letter a-z, then letters, digits and `-`, 63 at most
    hint: `box stop --help` shows examples
    ");
    insta::assert_snapshot!(alone(&["new"]), @r"
    exit 2
    error: `NAME` is missing
    hint: `box new <NAME>`
    ");
    insta::assert_snapshot!(alone(&["new", "one", "--name", "two"]), @r"
    exit 2
    error: `NAME` and `--name` exclude each other
    hint: `box new --help` shows examples
    ");
}

#[test]
fn wrong_values_are_told_with_the_right_ones() {
    insta::assert_snapshot!(alone(&["new", "demo", "--net", "opne"]), @r"
    exit 2
    error: `opne` does not work for `--net`
    cause: it can be: balanced, open, locked
    hint: did you mean `open`?
    ");
    insta::assert_snapshot!(alone(&["new", "demo", "--memory", "lots"]), @r"
    exit 2
    error: `lots` does not work for `--memory`
    cause: a size such as `512M` or `4G`
    hint: `box new --help` shows examples
    ");
    insta::assert_snapshot!(alone(&["new", "demo", "--cpus", "0"]), @r"
    exit 2
    error: `0` does not work for `--cpus`
    cause: a number of CPUs such as `2` or `0.5`
    hint: `box new --help` shows examples
    ");
    insta::assert_snapshot!(alone(&["exec", "demo", "--env", "X", "ls"]), @r"
    exit 125
    error: `X` does not work for `--env`
    cause: a variable is given as `NAME=VALUE`
    hint: `box exec --help` shows examples
    ");
    insta::assert_snapshot!(alone(&["attach", "demo", "--thread", "x"]), @r"
    exit 2
    error: `x` does not work for `--thread`
    cause: an id has 16 characters of a-z and 2-7
    hint: `box attach --help` shows examples
    ");
}

#[test]
fn the_hosts_problems_are_shown_as_they_are() {
    let info = json!({"verb": "info", "name": "dmeo"});
    insta::assert_snapshot!(refused(&["info", "dmeo"], info, unknown_box()), @r"
    exit 2
    error: there is no box `dmeo`
    hint: did you mean `demo`?
    ");
    let start = json!({"verb": "start", "name": "demo"});
    let failed = json!({
        "type": "start-failed", "kind": "engine", "title": "could not start box `demo`",
        "cause": "the cgroup is full", "hint": "`box stop` another one",
    });
    insta::assert_snapshot!(refused(&["start", "demo"], start, failed), @r"
    exit 125
    error: could not start box `demo`
    cause: the cgroup is full
    hint: `box stop` another one
    ");
}

#[test]
fn a_name_that_is_taken_is_told() {
    let limits = json!({
        "cpu_milli": 2000, "memory_bytes": 4_294_967_296u64, "pids": 512, "tmp_bytes": 536_870_912,
        "disk_bytes": 21_474_836_480u64, "open_files": 65536,
    });
    let request = json!({
        "verb": "new", "name": "demo", "title": null, "image": null, "profile": "locked",
        "net": "balanced", "limits": limits, "allow": [], "start": true,
        "settings": {"deadline_ms": null, "freeze_after_ms": null, "nested": false},
        "setup": null, "marks": {"bootstrapped": true, "pristine": true},
    });
    let taken = json!({
        "type": "name-taken", "kind": "usage", "title": "there is a box `demo` already",
        "hint": "`box rm demo` removes it",
    });
    insta::assert_snapshot!(refused(&["new", "demo"], request, taken), @r"
    exit 2
    error: there is a box `demo` already
    hint: `box rm demo` removes it
    ");
}

#[test]
fn an_image_that_is_not_there_is_told() {
    let host = FakeHost::new();
    insta::assert_snapshot!(host.run(&["image", "prepare", "file:nowhere.tar"]).whole(), @r"
    exit 2
    --- err
    error: there is no image file `nowhere.tar`
    cause: No such file or directory (os error 2)
    hint: `file:` takes a tar of a root file system, or what `docker save` writes
    ");
    let request = json!({"verb": "image_prepare", "image": "debian:nope"});
    let unknown = json!({
        "type": "image-unknown", "kind": "usage", "title": "there is no image `debian:nope`",
        "hint": "`debian:trixie` is one",
    });
    insta::assert_snapshot!(refused(&["image", "prepare", "debian:nope"], request, unknown), @r"
    exit 2
    error: there is no image `debian:nope`
    hint: `debian:trixie` is one
    ");
}

#[test]
fn a_run_needs_something_to_do() {
    insta::assert_snapshot!(alone(&["run", "claude"]), @r#"
    exit 2
    error: `claude` was not told what to do
    hint: `box run claude "<what to do>"`, or `-` for standard input
    "#);
    insta::assert_snapshot!(alone(&["run", "claude", "  "]), @r#"
    exit 2
    error: `claude` was not told what to do
    hint: `box run claude "<what to do>"`, or `-` for standard input
    "#);
    insta::assert_snapshot!(alone(&["run", "claude", "--file", "/nowhere/task.md"]), @r"
    exit 2
    error: could not read the prompt from `/nowhere/task.md`
    cause: No such file or directory (os error 2)
    ");
    insta::assert_snapshot!(alone(&["run", "claude", "x", "--file", "task.md"]), @r"
    exit 2
    error: `PROMPT` and `--file` exclude each other
    hint: `box run --help` shows examples
    ");
}

#[test]
fn removing_without_a_terminal_needs_force() {
    let host = FakeHost::new();
    let info = json!({"verb": "info", "name": "demo"});
    host.done(info, super::print::demo_box());
    insta::assert_snapshot!(host.run(&["rm", "demo"]).whole(), @r"
    exit 2
    --- err
    error: removing box `demo` and everything in it needs a yes
    cause: there is no terminal to ask at
    hint: `box rm demo --force` does not ask
    ");
    host.done(
        json!({"verb": "list"}),
        json!({"result": "boxes", "boxes": []}),
    );
    insta::assert_snapshot!(host.run(&["rm", "all"]).whole(), @r"
    exit 0
    --- err
    there is no box to remove
    ");
    // A box that is not there is told before anything else.
    host.problem(json!({"verb": "info", "name": "dmeo"}), unknown_box());
    insta::assert_snapshot!(host.run(&["rm", "dmeo"]).whole(), @r"
    exit 2
    --- err
    error: there is no box `dmeo`
    hint: did you mean `demo`?
    ");
    host.done(
        json!({"verb": "remove", "target": {"box": "demo"}, "how": "trash", "workspace": "no", "unpushed": "ignore"}),
        json!({"result": "nothing"}),
    );
    insta::assert_snapshot!(host.run(&["rm", "demo", "--force"]).whole(), @r"
    exit 0
    --- err
    box `demo` is removed
    hint: `box undelete demo` brings it back
    ");
}

#[test]
fn exec_answers_125_when_it_was_us() {
    let host = FakeHost::new();
    let request = json!({
        "verb": "exec", "name": "dmeo", "command": ["ls"], "cwd": null, "env": [], "terminal": null,
    });
    host.problem(request, unknown_box());
    insta::assert_snapshot!(host.run(&["exec", "dmeo", "--", "ls"]).whole(), @r"
    exit 125
    --- err
    error: there is no box `dmeo`
    hint: did you mean `demo`?
    ");
    insta::assert_snapshot!(alone(&["exec", "demo"]), @r"
    exit 125
    error: `COMMAND` is missing
    hint: `box exec <NAME> <COMMAND>...`
    ");
    insta::assert_snapshot!(alone(&["shell"]), @r"
    exit 125
    error: `NAME` is missing
    hint: `box shell <NAME>`
    ");
}

#[test]
fn problems_for_programs_are_json() {
    let host = FakeHost::new();
    host.problem(json!({"verb": "info", "name": "dmeo"}), unknown_box());
    let said = host.run(&["info", "dmeo", "--json"]);
    said.assert_code(2);
    let problem: Value = serde_json::from_str(&said.err).unwrap();
    assert_eq!(problem, unknown_box());
}
