//! Tests of the last step, on trees that would lead it astray.

use super::*;
use std::fs;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

fn finished(prepare: impl FnOnce(&Path)) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    prepare(root.path());
    let folder = File::open(root.path()).unwrap();
    finish("test", folder.as_fd(), Privileges::Root).unwrap();
    root
}

#[test]
fn an_empty_tree_gets_every_mount_point_and_the_agent() {
    let root = finished(|_| {});
    let at = |name: &str| root.path().join(name);
    for (folder, mode) in FOLDERS {
        let found = fs::metadata(at(folder)).unwrap();
        assert_eq!(found.permissions().mode() & 0o7777, mode, "{folder}");
    }
    let top = fs::metadata(root.path()).unwrap().permissions().mode();
    assert_eq!(top & 0o777, 0o755, "it was 0700");
    for (folder, name) in EMPTY.into_iter().chain([CA_BUNDLE]) {
        assert_eq!(fs::read(at(folder).join(name)).unwrap(), b"", "{name}");
    }
    assert_eq!(fs::read_link(at("work")).unwrap(), Path::new("/workspace"));
    let passwd = fs::read_to_string(at("etc/passwd")).unwrap();
    assert!(
        passwd.ends_with("\nagent:x:1020:1020:agent:/home/agent:/bin/sh\n"),
        "{passwd}"
    );
    assert_eq!(
        fs::read_to_string(at("etc/group")).unwrap(),
        "root:x:0:\nagent:x:1020:\n"
    );
}

#[test]
fn links_in_the_tree_lead_where_they_lead_in_the_box() {
    let outside = tempfile::tempdir().unwrap();
    let target = outside.path().to_owned();
    fs::write(target.join("passwd"), "kept").unwrap();
    let root = finished(|root| {
        fs::create_dir_all(root.join(target.strip_prefix("/").unwrap())).unwrap();
        symlink(&target, root.join("etc")).unwrap();
        symlink("../../../../../../etc", root.join("home")).unwrap();
        symlink("/proc/self/root/etc", root.join("opt")).unwrap_or_default();
        fs::remove_file(root.join("opt")).unwrap();
    });
    assert_eq!(fs::read(target.join("passwd")).unwrap(), b"kept");
    assert_eq!(fs::read_dir(&target).unwrap().count(), 1);
    let inside = root.path().join(target.strip_prefix("/").unwrap());
    assert!(
        fs::read_to_string(inside.join("passwd"))
            .unwrap()
            .contains("agent:x:1020")
    );
    assert!(
        inside.join("agent").is_dir(),
        "/home is /etc, which is that folder"
    );
}

#[test]
fn a_tree_that_leaves_no_room_is_refused_by_name() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("proc"), "").unwrap();
    let error = finish(
        "file:/x.tar",
        File::open(root.path()).unwrap().as_fd(),
        Privileges::Root,
    )
    .unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("could not prepare image `file:/x.tar`: `/proc` cannot be made: "),
        "{error}"
    );
}

#[test]
fn a_list_of_certificates_has_the_same_name_in_every_box() {
    let list = "etc/ssl/certs/ca-certificates.crt";
    let fedora = "etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem";
    let root = finished(|root| {
        let folder = root.join(fedora);
        fs::create_dir_all(folder.parent().unwrap()).unwrap();
        fs::write(folder, "CERTS").unwrap();
    });
    assert_eq!(
        fs::read_link(root.path().join(list)).unwrap(),
        Path::new("/").join(fedora)
    );
    let root = finished(|root| {
        fs::create_dir_all(root.join("etc/ssl")).unwrap();
        symlink("certs/ca-certificates.crt", root.join("etc/ssl/cert.pem")).unwrap();
    });
    let made = fs::symlink_metadata(root.path().join(list)).unwrap();
    assert!(made.is_file() && made.len() == 0);
}

#[test]
fn links_and_old_content_give_way_to_empty_files() {
    let root = finished(|root| {
        fs::create_dir_all(root.join("etc/ssl/certs")).unwrap();
        symlink(
            "../run/systemd/resolve/stub-resolv.conf",
            root.join("etc/resolv.conf"),
        )
        .unwrap();
        fs::write(root.join("etc/hostname"), "builder").unwrap();
        fs::write(root.join("etc/ssl/certs/ca-certificates.crt"), "CERTS").unwrap();
        fs::create_dir(root.join("work")).unwrap();
    });
    let at = |name: &str| root.path().join(name);
    assert!(
        fs::symlink_metadata(at("etc/resolv.conf"))
            .unwrap()
            .is_file()
    );
    assert_eq!(fs::read(at("etc/hostname")).unwrap(), b"");
    assert_eq!(
        fs::read(at("etc/ssl/certs/ca-certificates.crt")).unwrap(),
        b"CERTS"
    );
    assert_eq!(fs::read_link(at("work")).unwrap(), Path::new("/workspace"));

    let used = finished(|root| {
        fs::create_dir(root.join("work")).unwrap();
        fs::write(root.join("work/kept"), "").unwrap();
    });
    assert!(used.path().join("work/kept").exists());
}

#[test]
fn the_agent_is_found_by_its_number_and_by_its_name() {
    let entry = "agent:x:1020:1020:agent:/home/agent:/bin/sh";
    let list = "root:x:0:0::/root:/bin/sh\nother:x:1020:1020::/:/bin/sh\nagent:x:7:7::/:/bin/no\n";
    assert_eq!(
        with_entry(list, entry),
        format!("root:x:0:0::/root:/bin/sh\n{entry}\nother:x:1020:1020::/:/bin/sh\n")
    );
    assert_eq!(
        with_entry("root:x:0:0::/root:/bin/sh", entry)
            .lines()
            .last(),
        Some(entry)
    );
}
