//! Who may open a deployment, and which.

use crate::rig::Rig;
use box_core::egress::Egress;
use box_core::open::OpenError;
use std::os::unix::fs::PermissionsExt as _;

#[tokio::test]
async fn a_second_host_on_the_same_data_is_told_who_the_first_is() {
    let rig = Rig::new();
    let first = rig.host();
    let refused = rig.open().unwrap_err();
    let run = rig.paths().run;
    assert_eq!(
        refused.to_string(),
        format!(
            "another host uses the data folder `{}`: process {}, since 2026-09-21T14:13:20.000Z, at {}",
            rig.paths().data.display(),
            std::process::id(),
            run.display()
        )
    );
    assert!(refused.hint().unwrap().contains("box serve --stop"));
    drop(first);
    assert!(rig.open().is_ok());
}

#[tokio::test]
async fn a_newer_layout_is_refused_and_nothing_is_touched() {
    let rig = Rig::new();
    drop(rig.host());
    std::fs::write(rig.paths().version_file(), "2\n").unwrap();
    std::fs::write(rig.paths().tmp().join("kept"), "").unwrap();
    match rig.open() {
        Err(OpenError::Newer { found, .. }) => assert_eq!(found, 2),
        other => panic!("{other:?}"),
    }
    assert!(rig.paths().tmp().join("kept").exists());
    std::fs::write(rig.paths().version_file(), "one\n").unwrap();
    assert!(matches!(rig.open(), Err(OpenError::Layout { .. })));
}

#[tokio::test]
async fn left_overs_go_and_everything_else_stays() {
    let rig = Rig::new();
    drop(rig.host());
    std::fs::create_dir_all(rig.paths().tmp().join("half/an/image")).unwrap();
    std::os::unix::fs::symlink("/etc", rig.paths().tmp().join("link")).unwrap();
    let bundle = std::fs::read(rig.paths().bundle()).unwrap();
    drop(rig.open().unwrap().with(Egress::absent()));
    assert_eq!(std::fs::read_dir(rig.paths().tmp()).unwrap().count(), 0);
    assert_eq!(std::fs::read(rig.paths().bundle()).unwrap(), bundle);
}

#[tokio::test]
async fn a_folder_others_may_write_to_is_refused() {
    let rig = Rig::new();
    std::fs::create_dir(rig.paths().run).unwrap();
    let open_to_all = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(rig.paths().run, open_to_all).unwrap();
    assert!(matches!(rig.open(), Err(OpenError::Writable { .. })));
}

#[tokio::test]
async fn what_was_said_is_the_hosts_users_alone() {
    let rig = Rig::new();
    let _host = rig.host();
    for entry in std::fs::read_dir(rig.paths().data).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let mode = entry.metadata().unwrap().permissions().mode();
        if name.starts_with("box.db") || name == "ca" || name == "tmp" || name == "lock" {
            assert_eq!(mode & 0o077, 0, "{name} {mode:o}");
        }
    }
    assert!(
        rig.paths().data.join("box.db-wal").exists(),
        "it was looked at"
    );
}
