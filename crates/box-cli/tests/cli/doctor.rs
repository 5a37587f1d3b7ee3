//! `box doctor` and `box config`: what a person and a program are told, and what a report holds.

use super::fake_host::FakeHost;
use super::program::{Program, Said};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// In a folder where no host runs.
fn alone(folder: &Path, arguments: &[&str]) -> Program {
    let mut program = Program::new(arguments);
    program
        .command
        .env("BOX_DATA_DIR", folder.join("data"))
        .env("BOX_RUN_DIR", folder.join("run"))
        .env("BOX_CONFIG", folder.join("config.toml"));
    program
}

fn findings(said: &Said) -> Vec<Value> {
    let report: Value = serde_json::from_str(&said.out).unwrap();
    report["findings"].as_array().unwrap().clone()
}

fn level<'a>(findings: &'a [Value], name: &str) -> &'a str {
    let found = findings.iter().find(|finding| finding["name"] == name);
    let found = found.unwrap_or_else(|| panic!("no `{name}` in {findings:?}"));
    found["level"].as_str().unwrap()
}

#[test]
fn a_machine_that_runs_boxes_is_told_as_one_that_does() {
    let folder = tempfile::tempdir().unwrap();
    let said = alone(folder.path(), &["doctor", "--json"]).run();
    let findings = findings(&said);
    for tried in ["namespaces", "proc", "filter", "mounts", "overlay", "ports"] {
        assert_eq!(level(&findings, tried), "good", "{findings:?}");
    }
    assert_eq!(level(&findings, "host"), "note");
    for finding in &findings {
        let is_good = finding["level"] == "good" || finding["level"] == "note";
        assert!(is_good || finding["fix"].is_string(), "{finding}");
    }
    let report: Value = serde_json::from_str(&said.out).unwrap();
    said.assert_code(i32::from(report["can_run"] == false));
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert!(left.is_empty(), "a doctor changes nothing: {left:?}");
}

#[test]
fn a_folder_that_is_no_place_for_boxes_ends_with_1_and_its_fix() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o777)).unwrap();
    let said = alone(folder.path(), &["doctor", "--json"]).run();
    said.assert_code(1);
    assert_eq!(level(&findings(&said), "folder"), "bad");
    let said = alone(folder.path(), &["doctor"]).run();
    said.assert_code(1);
    assert!(said.out.contains("fix: `chmod go-w "), "{said:?}");
    assert!(said.err.contains("a box could not run here"), "{said:?}");
    // `up` looks first, and shows nothing but what is wrong.
    let said = alone(folder.path(), &["up"]).run();
    said.assert_code(125);
    assert!(said.err.contains("others may write to"), "{said:?}");
    assert!(!said.err.contains('✓'), "{said:?}");
    assert!(!folder.path().join("run").exists(), "nothing was started");
}

#[test]
fn a_machine_that_forbids_namespaces_is_found_by_trying() {
    let folder = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_box");
    // A user namespace in which no other may be made (user_namespaces(7)).
    let line =
        format!("echo 0 > /proc/sys/user/max_user_namespaces && exec {program} doctor --json");
    let words = [
        "--user",
        "--map-root-user",
        "--mount-proc",
        "--pid",
        "--fork",
        "sh",
        "-c",
        &line,
    ];
    let mut doctor = Program::other("unshare", &words);
    doctor
        .command
        .env("BOX_DATA_DIR", folder.path().join("data"))
        .env("BOX_RUN_DIR", folder.path().join("run"))
        .env("BOX_CONFIG", folder.path().join("config.toml"));
    let said = doctor.run();
    said.assert_code(1);
    let findings = findings(&said);
    assert_eq!(level(&findings, "namespaces"), "bad", "{findings:?}");
    let found = findings
        .iter()
        .find(|one| one["name"] == "namespaces")
        .unwrap();
    let fix = found["fix"].as_str().unwrap();
    assert!(fix.contains("user.max_user_namespaces"), "{found}");
}

#[test]
fn a_host_that_runs_is_asked() {
    let host = FakeHost::new();
    let status = json!({
        "result": "status", "pid": 1, "build": "b", "data_dir": "/d", "boxes_running": 0,
        "boxes_stopped": 0, "egress": false, "limits_held_by": "best effort", "copies": "full",
    });
    host.done(json!({"verb": "status"}), status);
    let said = host.program(&["doctor", "--json"]).run();
    let findings = findings(&said);
    assert_eq!(level(&findings, "host"), "good");
    for less in ["way-out", "host-limits", "host-copies"] {
        assert_eq!(level(&findings, less), "less", "{findings:?}");
    }
}

#[test]
fn a_bundle_holds_findings_and_log_and_no_word_of_what_was_done() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("data/log");
    std::fs::create_dir_all(&log).unwrap();
    let line = r#"{"level":"WARN","message":"an agent is gone","box":"my-diary","token":"sk-ant-oat01-Zz9"}"#;
    std::fs::write(log.join("host.log"), format!("{line}\nmy-diary crashed\n")).unwrap();
    let file = folder.path().join("report.tar");
    let file = file.to_str().unwrap();
    let said = alone(folder.path(), &["doctor", "--bundle", file]).run();
    assert!(said.err.contains("report.tar` is written"), "{said:?}");
    let bytes = std::fs::read(file).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.contains("an agent is gone") && text.contains("namespaces"));
    assert!(!text.contains("diary") && !text.contains("Zz9"), "{text}");
    let again = alone(folder.path(), &["doctor", "--bundle", file]).run();
    again.assert_code(1);
    assert!(again.err.contains("could not write"), "{again:?}");
}

#[test]
fn every_setting_is_told_with_where_it_came_from() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.toml");
    std::fs::write(&config, "[limits]\ncpus = 0.5\n").unwrap();
    let said = alone(folder.path(), &["config", "--json"]).run();
    said.assert_code(0);
    let lines: Vec<Value> = serde_json::from_str(&said.out).unwrap();
    let line = |key: &str| lines.iter().find(|line| line["key"] == key).unwrap();
    assert_eq!(
        line("limits.cpus"),
        &json!({"key": "limits.cpus", "value": "0.5", "origin": config})
    );
    assert_eq!(line("limits.memory")["origin"], "default");
    assert_eq!(line("BOX_DATA_DIR")["origin"], "environment");
    std::fs::write(&config, "[limits]\ncpu = 1\n").unwrap();
    let said = alone(folder.path(), &["config"]).run();
    said.assert_code(2);
    assert!(said.err.contains("did you mean `limits.cpus`"), "{said:?}");
}
