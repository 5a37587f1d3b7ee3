//! Turns that are undone: files and conversation go back together, and on from there.

use super::credential::Token;
use super::host::{PATIENCE, TestHost};
use box_api::BoxName;
use box_api::control::{Attach, BoxState, ClientMessage, Request};
use box_api::thread::{Item, ThreadUpdate};
use box_fakes::model::{Model, Script, Step};
use box_runtime_native::storage::loopback;
use serde_json::Value;

/// Room for a few small boxes that share what they have in common.
const STORE_BYTES: u64 = 2 << 30;

/// A host whose boxes lie where copies cost next to nothing.
pub(crate) fn host_with_store() -> TestHost {
    let host = TestHost::new();
    loopback::make(host.data(), Some(STORE_BYTES)).unwrap();
    host
}

/// Ends the host and takes its store away.
pub(crate) fn finish(host: TestHost) {
    host.ok(&["rm", "all", "--force", "--now"]);
    host.ok(&["serve", "--stop"]);
    loopback::unmount_store(host.data()).unwrap();
    drop(host);
}

#[track_caller]
fn json(host: &TestHost, words: &[&str]) -> Value {
    serde_json::from_str(&host.ok(words)).unwrap()
}

/// Labels of the restore points of a box, and whether each was undone.
#[track_caller]
fn points(host: &TestHost, name: &str) -> Vec<(String, bool)> {
    let all = json(host, &["undo", name, "--list", "--json"]);
    let all = all["points"].as_array().unwrap().iter();
    all.map(|one| {
        assert!(one["took_us"].as_u64().unwrap() > 0, "{one}");
        let label = one["label"].as_str().unwrap().to_owned();
        (label, one["undone"].as_bool().unwrap())
    })
    .collect()
}

fn as_seen(points: &[(&str, bool)]) -> Vec<(String, bool)> {
    points
        .iter()
        .map(|(label, undone)| ((*label).to_owned(), *undone))
        .collect()
}

/// Asks the thread of a box something more, and waits until that turn is over.
#[track_caller]
fn ask(host: &TestHost, name: &str, text: &str) {
    let mut control = host.control();
    control.send(&Request::Attach(Attach {
        name: BoxName::parse(name).unwrap(),
        thread: None,
        after: None,
        follow: true,
    }));
    let mut asked = false;
    loop {
        let update = match control.next() {
            box_api::control::Reply::Update(update) => update,
            box_api::control::Reply::Problem(problem) => panic!("{problem:?}"),
            box_api::control::Reply::Done(outcome) => panic!("it is over: {outcome:?}"),
            _ => continue,
        };
        match update {
            ThreadUpdate::CaughtUp { .. } => control.send(&ClientMessage::Prompt {
                text: text.to_owned(),
            }),
            ThreadUpdate::Row(row) => match row.item {
                Item::Prompt { text: prompt, .. } if prompt == text => asked = true,
                Item::TurnEnded { outcome, note } if asked => {
                    assert_eq!(outcome.exit_code(), 0, "{text}: {note:?}");
                    return;
                }
                _ => {}
            },
            ThreadUpdate::Grew { .. } => {}
        }
    }
}

#[track_caller]
fn files(host: &TestHost, name: &str) -> String {
    let said = host.shell(name, "ls");
    said.assert_code(0);
    said.out.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What the model was told of earlier in the conversation in which it was asked this.
#[track_caller]
fn told_before(model: &Model, prompt: &str) -> Vec<String> {
    let turns = model.turns();
    let turn = turns.iter().find(|turn| turn.prompt == prompt);
    turn.unwrap_or_else(|| panic!("nobody asked {prompt}"))
        .before
        .clone()
}

fn prompts(host: &TestHost, name: &str) -> Vec<String> {
    let journal = host.control().journal(name);
    let prompts = journal.rows.values().filter_map(|row| match &row.item {
        Item::Prompt { text, .. } => Some(text.clone()),
        _ => None,
    });
    prompts.collect()
}

#[test]
fn files_and_conversation_of_real_claude_go_back_together_and_forward_again() {
    let host = host_with_store();
    let token = Token::random();
    let model = host.rig.model(token.as_str());
    let writes = |prompt: &str, file: &str| {
        Script::on(prompt)
            .message([Step::write(&format!("/workspace/{file}"), "x\n")])
            .message([Step::text("It is written.")])
    };
    model.script(writes("write the first", "one"));
    model.script(writes("write the second", "two"));
    for prompt in ["what was before", "what is now", "what came along"] {
        model.script(Script::on(prompt).message([Step::text("I remember.")]));
    }
    token.add_to(&host);
    let first = [
        "run",
        "claude",
        "write the first",
        "--name",
        "one",
        "--allow-all",
    ];
    host.run(&first).assert_code(0);
    ask(&host, "one", "write the second");
    assert_eq!(files(&host, "one"), "one two");
    assert_eq!(
        points(&host, "one"),
        as_seen(&[("turn-1", false), ("turn-2", false)])
    );

    host.run(&["undo", "one"]).assert_code(2);
    assert_eq!(files(&host, "one"), "one two", "no yes, no undo");
    let said = host.run(&["undo", "one", "--force"]);
    said.assert_code(0);
    assert!(said.err.contains("write the second"), "{said}");
    assert_eq!(files(&host, "one"), "one");
    assert_eq!(host.info("one").state, BoxState::Running);
    assert_eq!(
        points(&host, "one"),
        as_seen(&[("turn-1", false), ("turn-2", true)])
    );
    assert_eq!(
        prompts(&host, "one"),
        ["write the first", "write the second"],
        "what was undone stays to be read"
    );
    ask(&host, "one", "what was before");
    assert_eq!(told_before(&model, "what was before"), ["write the first"]);

    // Back to before the undo.
    let forward = host.run(&["undo", "one", "--undo", "--force"]);
    forward.assert_code(0);
    assert_eq!(files(&host, "one"), "one two");
    ask(&host, "one", "what is now");
    assert_eq!(
        told_before(&model, "what is now"),
        ["write the first", "write the second"]
    );

    // Another box goes on from before the second turn.
    host.ok(&["new", "two", "--from", "one/turn-2"]);
    assert_eq!(files(&host, "two"), "one");
    assert_eq!(prompts(&host, "two"), ["write the first"]);
    ask(&host, "two", "what came along");
    assert_eq!(told_before(&model, "what came along"), ["write the first"]);
    assert_eq!(files(&host, "one"), "one two", "the first is as it was");
    token.assert_only_credential(&model);
    finish(host);
}

#[test]
fn every_turn_has_a_restore_point_unless_that_is_off_and_all_is_found() {
    let host = host_with_store();
    let turn = |prompt: &str| {
        let words = ["run", "demo", prompt, "--name", "one", "--allow-all"];
        host.run(&words).assert_code(0);
    };
    turn("begin with marmalade");
    host.ok(&["set", "one", "undo=off"]);
    turn("and no more");
    assert_eq!(points(&host, "one"), as_seen(&[("turn-1", false)]));
    let listed = host.run(&["undo", "one", "--list"]);
    assert!(listed.err.contains("`undo` is off"), "{listed}");
    host.ok(&["set", "one", "undo=auto"]);
    host.shell("one", "echo x > note").assert_code(0);
    turn("once more with marmalade");
    assert_eq!(
        points(&host, "one"),
        as_seen(&[("turn-1", false), ("turn-2", false)])
    );
    let snapshots = |words: &[&str]| host.run(&[&["snapshots", "one"], words].concat());
    let without = snapshots(&[]);
    assert!(
        !without.out.contains("turn-1") && without.err.contains("--all"),
        "{without}"
    );
    let with = snapshots(&["--all"]);
    assert!(with.out.contains("turn-1"), "{with}");
    let used = json(&host, &["du", "one", "--json"]);
    assert!(
        used[0]["restore_points_bytes"].as_u64().unwrap() > 0,
        "{used}"
    );

    host.ok(&["undo", "one", "--force"]);
    assert_eq!(host.shell("one", "cat note").out, "x\n");
    host.ok(&["undo", "one", "--to", "1", "--force"]);
    assert_eq!(files(&host, "one"), "");
    let none = host.run(&["undo", "one", "--force"]);
    none.assert_code(1);
    // What was undone is found all the same.
    let found = json(&host, &["search", "marmal", "--kind", "prompt", "--json"]);
    let hits = found["hits"].as_array().unwrap();
    assert_eq!(hits.len(), 2, "{found}");
    assert_eq!(hits[0]["name"], "one");
    assert!(
        host.ok(&["search", "--box", "one", "--newest", "marmalade"])
            .contains("once more")
    );
    host.run(&["search", "…"]).assert_code(2);
    finish(host);
}

#[test]
fn where_copies_are_full_no_turn_has_one_and_that_is_said() {
    let host = TestHost::new();
    host.run(&["run", "demo", "hello", "--name", "one", "--allow-all"])
        .assert_code(0);
    let methods = json(&host, &["status", "--json"]);
    let expected = usize::from(methods["copies"] != "full");
    assert_eq!(points(&host, "one").len(), expected);
    let said = host.run(&["undo", "one", "--list"]);
    if expected == 0 {
        assert!(said.err.contains("full copy"), "{said}");
        let said = host.run(&["undo", "one"]);
        said.assert_code(1);
        assert!(said.err.contains("box snapshot one"), "{said}");
    }
    let mut waiting = host.terminal(&["search", "hello"]);
    waiting.expect("hello", PATIENCE);
    assert_eq!(waiting.finish(PATIENCE), 0);
}
