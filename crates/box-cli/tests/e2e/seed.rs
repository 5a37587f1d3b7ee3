//! The default image and the agents' packs, made once a machine and shared by hard links.
//!
//! The product makes them itself, in the machine's own network, because it downloads packages.

use super::leaks;
use super::program::Program;
use box_fakes::Account;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A first image takes a bootstrap and some hundred megabytes of downloads.
const MAKING_DEADLINE: Duration = Duration::from_mins(20);
/// Agents with a pack; `cargo xtask test` makes the same.
const AGENTS: [&str; 4] = ["claude", "codex", "opencode", "gemini"];

/// Where the seed is: set by `cargo xtask test`, else below the target folder.
pub(crate) fn folder() -> PathBuf {
    let named = std::env::var_os("BOX_TEST_SEED").map(PathBuf::from);
    named.unwrap_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).join("../test-seed"))
}

/// Makes the seed if it is not there. Call it before the thread enters a rig.
pub(crate) fn ready() -> PathBuf {
    let seed = folder();
    fs::create_dir_all(&seed).unwrap();
    let seed = seed.canonicalize().unwrap();
    let lock = File::create(seed.join("test.lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    // One look a test run is enough; a run that is not nextest's looks every time.
    let run = std::env::var("NEXTEST_RUN_ID").unwrap_or_default();
    let mark = seed.join("test.run");
    if run.is_empty() || fs::read_to_string(&mark).unwrap_or_default() != run {
        let packs = AGENTS.map(|agent| ["agent", "install", agent]);
        let packs = packs.iter().map(|words| &words[..]);
        let steps: Vec<&[&str]> = [&["image", "prepare"][..]]
            .into_iter()
            .chain(packs)
            .collect();
        make(&seed, &steps);
        fs::write(&mark, run).unwrap();
    }
    seed
}

/// As [`ready`], with the pack of an agent that is not one of those every run has.
pub(crate) fn ready_with(agent: &str) -> PathBuf {
    let seed = ready();
    if !AGENTS.contains(&agent) {
        let lock = File::create(seed.join("test.lock")).unwrap();
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
        make(&seed, &[&["agent", "install", agent]]);
    }
    seed
}

fn make(seed: &Path, steps: &[&[&str]]) {
    let config = seed.join("config.toml");
    if !config.exists() {
        fs::write(&config, "").unwrap();
    }
    let product = |arguments: &[&str]| {
        let mut program = Program::new(arguments);
        program
            .command
            .env("BOX_DATA_DIR", seed)
            .env("BOX_RUN_DIR", seed.join("run"))
            .env("BOX_CONFIG", &config);
        program.deadline(MAKING_DEADLINE).run()
    };
    let mut said: Vec<_> = steps.iter().map(|words| product(words)).collect();
    said.push(product(&["serve", "--stop"]));
    leaks::end_egress(&seed.join("run"));
    for said in said {
        said.assert_code(0);
    }
}

/// Where an image of clients and what was found with it is, made by `cargo xtask test clients`.
pub(crate) fn of_clients(name: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("..");
    let folder = target.canonicalize().unwrap().join("clients").join(name);
    assert!(
        folder.join("seed/images").exists(),
        "no clients in `{}`: `cargo xtask test clients` and `clients-heavy` put them there",
        folder.display()
    );
    folder
}

/// Puts the seed's image and the pack of one agent into a new data folder on the same file system.
pub(crate) fn copy(seed: &Path, data: &Path, agent: &str) {
    fs::create_dir(data.join("agents")).unwrap();
    copy_of(&["images", &format!("agents/{agent}")], seed, data);
}

/// As [`copy`], without packs.
pub(crate) fn copy_images(seed: &Path, data: &Path) {
    copy_of(&["images"], seed, data);
}

fn copy_of(names: &[&str], seed: &Path, data: &Path) {
    for name in names {
        let mut copy = Command::new("cp");
        copy.arg("-al").arg(seed.join(name)).arg(data.join(name));
        assert!(copy.status().unwrap().success(), "could not copy `{name}`");
    }
    forget_locks(data);
}

/// Puts copies of the seed's image and packs into a user's data folder, as the user's host would have
/// made them.
pub(crate) fn give(seed: &Path, data: &Path, account: Account) {
    fs::create_dir(data.join("agents")).unwrap();
    for name in ["images", "agents/claude"] {
        let mut copy = Command::new("cp");
        copy.arg("--archive")
            .arg(seed.join(name))
            .arg(data.join(name));
        assert!(copy.status().unwrap().success(), "could not copy `{name}`");
    }
    forget_locks(data);
    // What the host keeps for itself is its own; the trees below are the boxes'.
    for folder in ["images", "images/refs", "agents"].map(|name| data.join(name)) {
        account.give(&folder).unwrap();
        let entries = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        entries.for_each(|entry| account.give(&entry).unwrap());
    }
    let images = fs::read_dir(data.join("images")).unwrap().flatten();
    for image in images
        .map(|image| image.path())
        .filter(|image| image.join("root").exists())
    {
        account.give(&image.join("image.json")).unwrap();
        account.give_tree(&image.join("root")).unwrap();
    }
}

/// A lock is held by its inode: two hosts must not share one.
fn forget_locks(data: &Path) {
    for folder in ["images", "images/refs", "agents"].map(|name| data.join(name)) {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let locks = entries.filter(|entry| entry.file_name().to_string_lossy().ends_with("lock"));
        locks.for_each(|lock| fs::remove_file(lock.path()).unwrap());
    }
}
