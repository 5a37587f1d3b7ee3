//! What a box leaves on disk, and what it is shown of the host's.

use crate::harness::Host;
use box_api::control::Profile;
use box_runtime::{Mount, PlacedFile, Placing, Runtime as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

crate::claims!(
    files_on_disk_never_carry_the_boxs_ids,
    changes_of_an_earlier_version_get_their_ids_on_disk,
    folders_of_the_image_can_be_renamed_in_a_root_box,
    mounts_and_placed_files_are_shown_read_only,
    a_link_in_a_root_box_does_not_move_a_mount,
    the_image_is_the_same_after_every_box,
    the_overlay_works_where_layers_must_be_attached,
);

fn owner(path: &Path) -> (u32, u32) {
    let of = std::fs::symlink_metadata(path).unwrap();
    (of.uid(), of.gid())
}

fn files_on_disk_never_carry_the_boxs_ids(host: &mut Host) {
    let (locked, _) = host.running(Profile::Locked);
    host.ask(&locked, "mkdir a && touch a/b ~/c && ln -s x d");
    let folder = host.folder(&locked);
    for name in [
        "workspace",
        "workspace/a",
        "workspace/a/b",
        "workspace/d",
        "home",
        "home/c",
    ] {
        assert_eq!(owner(&folder.join(name)), (1020, 1020), "{name}");
    }

    let (root, _) = host.running(Profile::Root);
    host.ask(
        &root,
        "touch a ~/b && touch c && chown 33:34 c && touch /etc/new",
    );
    let folder = host.folder(&root);
    assert_eq!(owner(&folder.join("workspace/a")), (0, 0));
    assert_eq!(owner(&folder.join("workspace/c")), (33, 34));
    assert_eq!(owner(&folder.join("home/b")), (0, 0));
    assert_eq!(owner(&folder.join("upper/etc/new")), (0, 0));
    assert_eq!(
        host.ask(&root, "stat -c %u:%g c /etc/new /usr/bin/ls"),
        "33:34\n0:0\n0:0\n"
    );

    // Another range shows the same files: what a clone relies on.
    let mut moved = locked.clone();
    moved.id_offset += 7 * 65_536;
    host.wait(host.engine().stop(&locked.id, crate::harness::GRACE))
        .unwrap();
    host.wait(host.engine().start(&moved)).unwrap();
    assert_eq!(
        host.ask(&moved, "stat -c %u a/b; rm a/b && echo gone"),
        "1020\ngone\n"
    );
}

fn changes_of_an_earlier_version_get_their_ids_on_disk(host: &mut Host) {
    let (spec, _) = host.running(Profile::Root);
    host.ask(
        &spec,
        "cp /usr/bin/true /usr/s && chown 7:8 /usr/s && chmod 4755 /usr/s && mkdir /usr/d && \
         ln -s x /usr/d/l && rm /usr/bin/wc && touch -d @1000000000 /usr/d/f && touch -d @9 /usr/d",
    );
    host.wait(host.engine().stop(&spec.id, crate::harness::GRACE))
        .unwrap();
    let upper = host.folder(&spec).join("upper");
    let right = crate::tree::described(&upper);
    // As the first version kept them: with the box's range.
    for (path, _) in right.iter().rev() {
        let path = upper.join(path);
        let about = std::fs::symlink_metadata(&path).unwrap();
        let real = |id: u32| if id < 65_536 { spec.id_offset + id } else { id };
        let (user, group) = (real(about.uid()), real(about.gid()));
        std::os::unix::fs::lchown(&path, Some(user), Some(group)).unwrap();
        if !about.is_symlink() {
            std::fs::set_permissions(&path, about.permissions()).unwrap();
        }
    }
    assert_ne!(crate::tree::described(&upper), right);
    host.wait(host.engine().start(&spec)).unwrap();
    host.wait(host.engine().stop(&spec.id, crate::harness::GRACE))
        .unwrap();
    crate::tree::assert_same(&crate::tree::described(&upper), &right, "after a start");
}

fn folders_of_the_image_can_be_renamed_in_a_root_box(host: &mut Host) {
    let (spec, _) = host.running(Profile::Root);
    host.ask(&spec, "mkdir /usr/x && mv /usr/x /usr/y");
    let rename =
        "rename('/usr/share', '/usr/moved') or die $!; rename('/lib64', '/lib65') or die $!;
        rename('/lib65', '/lib64') or die $!; print 'ok'";
    host.ask(&spec, "mkdir -p /usr/share");
    assert_eq!(host.perl(&spec, rename), "ok");
}

fn mounts_and_placed_files_are_shown_read_only(host: &mut Host) {
    let pack = host.path("pack");
    std::fs::create_dir(&pack).unwrap();
    std::fs::set_permissions(&pack, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::write(pack.join("file"), "of the pack\n").unwrap();
    let file = host.path("placed");
    std::fs::write(&file, "placed\n").unwrap();
    for profile in [Profile::Locked, Profile::Root] {
        let mut spec = host.spec(profile);
        let mount = |target: &str| Mount {
            source: pack.clone(),
            target: target.to_owned(),
        };
        let placed = |target: &str| PlacedFile {
            source: file.clone(),
            target: target.to_owned(),
            placing: Placing::Always,
        };
        spec.mounts = vec![mount("/opt/box/agents/demo")];
        spec.files = vec![
            placed("/etc/ssl/certs/ca-certificates.crt"),
            placed("/opt/box/ca.pem"),
            placed("/run/given/x"),
            placed("/etc/hosts"),
        ];
        if profile == Profile::Root {
            spec.files.push(placed("/srv/made/on/the/way"));
        }
        host.run(&spec);
        let cat = "cat /opt/box/agents/demo/file";
        assert_eq!(host.ask(&spec, cat), "of the pack\n");
        for file in &spec.files {
            let target = &file.target;
            assert_eq!(host.ask(&spec, &format!("cat {target}")), "placed\n");
            host.refused(&spec, &format!("echo x >>{target}"));
            host.refused(&spec, &format!("rm -f {target}"));
        }
        host.refused(&spec, "touch /opt/box/agents/demo/x");
        host.refused(&spec, "touch /opt/box/x");
        host.refused(&spec, "touch /opt/box/bin/x");
        assert_eq!(
            host.ask(&spec, "cat /etc/resolv.conf"),
            "nameserver 198.18.0.1\n"
        );
        assert_eq!(
            host.ask(&spec, "hostname; cat /etc/hostname"),
            "demo\ndemo\n"
        );
        assert_eq!(
            host.ask(&spec, "test -x /opt/box/bin/box-guest && echo yes"),
            "yes\n"
        );
    }
    assert_eq!(
        std::fs::read_to_string(pack.join("file")).unwrap(),
        "of the pack\n"
    );
}

fn a_link_in_a_root_box_does_not_move_a_mount(host: &mut Host) {
    let (spec, _) = host.running(Profile::Root);
    host.wait(host.engine().stop(&spec.id, crate::harness::GRACE))
        .unwrap();
    // What the box's root could have done to its own files, had the mount not been there.
    let upper = host.folder(&spec).join("upper");
    std::os::unix::fs::symlink("/etc", upper.join("workspace")).unwrap();
    let error = host.wait(host.engine().start(&spec)).unwrap_err();
    let told = crate::harness::told(&error);
    assert!(
        told.contains("could not mount on the folder `/workspace` of the image"),
        "{told}"
    );
}

/// Everything below a folder with what would change if anybody touched it.
fn listing(top: &Path) -> Vec<(PathBuf, [i64; 5])> {
    let mut seen = Vec::new();
    let mut open = vec![top.to_path_buf()];
    while let Some(folder) = open.pop() {
        let paths = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        for path in paths {
            let of = std::fs::symlink_metadata(&path).unwrap();
            open.extend(of.is_dir().then(|| path.clone()));
            let owner = i64::from(of.uid());
            seen.push((
                path,
                [
                    i64::from(of.mode()),
                    owner,
                    of.mtime(),
                    of.ctime(),
                    of.ctime_nsec(),
                ],
            ));
        }
    }
    seen.sort();
    seen
}

fn the_image_is_the_same_after_every_box(host: &mut Host) {
    let root = host.path("data/images").join(&host.image).join("root");
    let before = listing(&root);
    assert!(before.len() > 50);
    let (locked, _) = host.running(Profile::Locked);
    let (writable, _) = host.running(Profile::Root);
    for spec in [&locked, &writable] {
        host.shell(
            spec,
            "touch /usr/bin/ls /x; chmod 777 /usr/bin/ls; rm -rf /lib64 /usr/bin /etc",
        );
    }
    assert_eq!(listing(&root), before);
}

fn the_overlay_works_where_layers_must_be_attached(host: &mut Host) {
    let root = host.path("data/images").join(&host.image).join("root");
    let folder = host.path("changes");
    for name in ["upper", "work"] {
        std::fs::create_dir_all(folder.join(name)).unwrap();
    }
    let listed = box_runtime_native::overlay_by_helper(&root, &folder).unwrap();
    assert!(listed.contains(&"usr".to_owned()), "{listed:?}");
    // Written by root of the machine, who is nobody a box can have.
    assert_eq!(owner(&folder.join("upper/probe")), (65_536, 65_536));
}
