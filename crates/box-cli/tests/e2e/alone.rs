//! The binary alone: nothing at run time reads the source tree or a second file.

use super::host::{PATIENCE, TestHost};
use super::program::Program;
use box_fakes::rig::private_mounts;
use std::fs;
use std::path::Path;

/// Folders of the source tree a careless program could read from.
const SOURCES: [&str; 5] = ["agents", "crates", "docs", "images", "drill"];

#[test]
fn box_alone_in_an_empty_folder_runs_a_demo_turn() {
    let host = TestHost::new();
    let alone = tempfile::tempdir().unwrap();
    let binary = alone.path().join("box");
    fs::copy(env!("CARGO_BIN_EXE_box"), &binary).unwrap();
    private_mounts().unwrap();
    let top = fs::canonicalize(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
    for folder in SOURCES.map(|name| top.join(name)) {
        hide(&folder);
    }
    assert!(!top.join("agents/demo/profile.toml").exists());

    let home = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let mut program = host.program(arguments);
        let mut alone = Program::other(binary.to_str().unwrap(), arguments);
        alone.command.env_clear();
        alone.command.envs(
            program
                .command
                .get_envs()
                .filter_map(|(k, v)| Some((k, v?))),
        );
        alone
            .command
            .env("HOME", home.path())
            .current_dir(binary.parent().unwrap());
        for name in [
            "XDG_DATA_HOME",
            "XDG_CONFIG_HOME",
            "XDG_STATE_HOME",
            "XDG_RUNTIME_DIR",
        ] {
            alone.command.env(name, home.path());
        }
        program.command = alone.command;
        program.deadline(PATIENCE).run()
    };
    let said = run(&["run", "demo", "show me", "--name", "demo", "--allow-all"]);
    said.assert_code(0);
    let left: Vec<_> = fs::read_dir(alone.path())
        .unwrap()
        .flatten()
        .map(|e| e.file_name())
        .collect();
    assert_eq!(left, ["box"], "the program left files beside itself");
    assert_eq!(
        fs::read_dir(home.path()).unwrap().count(),
        0,
        "and in the home folder"
    );
}

/// Lays an empty file system over a folder, for this test alone.
fn hide(folder: &Path) {
    let flags = rustix::mount::MountFlags::empty();
    rustix::mount::mount("none", folder, "tmpfs", flags, None).unwrap();
}
