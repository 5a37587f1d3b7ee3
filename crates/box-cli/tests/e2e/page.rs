//! The page in a real browser, at a real host, with a real box.
//!
//! Chromium runs in the network namespace of the test, driven by the scenarios of `ui/e2e`, which
//! `cargo xtask test browser` sets up. The host is the product itself; what a phone does not do (start a
//! host again, begin a thread) its command does.

mod flows;

mod bugs;
mod door;
mod wire;

use super::host::{Start, TestHost};
use super::program::{Program, Said};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A scenario waits for what it sees with deadlines of its own; this one ends a browser that hangs.
const DEADLINE: Duration = Duration::from_mins(4);

fn scenarios() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ui/e2e")
}

/// A link that pairs one browser, as a person gets it.
#[track_caller]
fn link(host: &TestHost) -> String {
    let said = host.ok(&["ui", "--json"]);
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    said["link"]
        .as_str()
        .unwrap_or_else(|| panic!("no link in {said}"))
        .to_owned()
}

/// Plays a scenario to its end; what it noted is in what it said.
#[track_caller]
fn play(host: &TestHost, scenario: &str, words: &[&str]) -> Said {
    let script = scenarios().join(scenario).display().to_string();
    let all: Vec<&str> = [script.as_str()]
        .into_iter()
        .chain(words.iter().copied())
        .collect();
    let mut program = Program::other("node", &all).deadline(DEADLINE);
    program
        .command
        .env("HOME", host.home())
        .env("BOX_PROGRAM", env!("CARGO_BIN_EXE_box"))
        .env("BOX_DATA_DIR", host.data())
        .env("BOX_RUN_DIR", host.run_dir())
        .env("BOX_CONFIG", host.run_dir().with_file_name("config.toml"));
    if let Some(folder) = std::env::var_os("BOX_TEST_SHOTS") {
        program.command.env("BOX_TEST_SHOTS", folder);
    }
    let said = program.run();
    assert_eq!(said.code, 0, "{said}\n{}", host.whereabouts());
    said
}

/// A thread of the demo agent that asks its first question, and nobody answers.
#[track_caller]
fn asking(host: &TestHost) -> String {
    // Without a terminal it ends once it would have to ask, with the code for that.
    let said = host.run(&["run", "demo", "show me", "--name", "demo"]);
    assert_eq!(said.code, 6, "{said}");
    host.info("demo").threads[0].thread.to_string()
}

#[test]
fn a_phone_plays_the_demo_through_all_its_cards() {
    let host = TestHost::new();
    play(&host, "demo-turn.mjs", &[&link(&host)]);
}

#[test]
fn two_devices_look_at_one_card_and_the_first_answer_counts() {
    let host = TestHost::new();
    let thread = asking(&host);
    play(
        &host,
        "two-tabs.mjs",
        &[&link(&host), &link(&host), &thread],
    );
}

#[test]
fn bug_01_a_card_outlives_reload_and_restart_and_so_does_the_draft() {
    let host = TestHost::new();
    let thread = asking(&host);
    play(&host, "restart.mjs", &[&link(&host), &thread]);
}

#[test]
fn bug_08_a_long_thread_opens_at_once_and_leaves_its_reader_alone() {
    let host = TestHost::with(Start::Bare);
    play(&host, "long.mjs", &[&link(&host)]);
}
