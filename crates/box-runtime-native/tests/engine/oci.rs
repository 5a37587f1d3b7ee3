//! Images made of layers: one that holds a single program, and what its variables are to a box.

use crate::harness::{Host, Quiet, told};
use box_api::control::Profile;
use box_runtime::{BoxSpec, Runtime as _};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::fs::File;
use std::io::Cursor;
use tar::{Builder, Header};

crate::claims!(
    an_image_of_one_static_program_and_nothing_else_starts_and_runs_it,
    variables_of_an_image_are_defaults_of_its_boxes,
);

fn append(tar: &mut Builder<impl std::io::Write>, name: &str, content: &[u8]) {
    let mut header = Header::new_gnu();
    header.set_mode(0o755);
    header.set_size(content.len() as u64);
    tar.append_data(&mut header, name, Cursor::new(content))
        .unwrap();
}

/// An image as `docker save` writes it, of one layer with one file: no shell, no folder, no user.
fn scratch(host: &Host) -> String {
    let busybox = ["/bin/busybox", "/usr/bin/busybox"];
    let program = busybox.iter().find_map(|path| std::fs::read(path).ok());
    let program = program.unwrap_or_else(|| panic!("`busybox` of busybox-static is needed"));
    let mut layer = Builder::new(Vec::new());
    append(&mut layer, "busybox", &program);
    let layer = layer.into_inner().unwrap();
    let mut id = String::new();
    for byte in Sha256::digest(&layer) {
        write!(id, "{byte:02x}").unwrap();
    }
    let config = format!(
        r#"{{"os": "linux", "config": {{"User": "nobody", "WorkingDir": "/nowhere",
            "Env": ["PATH=/made:/usr/bin", "HOME=/made", "MADE=yes"]}},
            "rootfs": {{"type": "layers", "diff_ids": ["sha256:{id}"]}}}}"#
    );
    let path = host.path("scratch.tar");
    let mut archive = Builder::new(File::create(&path).unwrap());
    append(&mut archive, "layer.tar", &layer);
    append(&mut archive, "config.json", config.as_bytes());
    let manifest = br#"[{"Config": "config.json", "Layers": ["layer.tar"]}]"#;
    append(&mut archive, "manifest.json", manifest);
    archive.finish().unwrap();
    format!("file:{}", path.display())
}

fn prepared(host: &Host) -> String {
    let reference = scratch(host);
    let made = host.wait(host.engine().images().prepare(&reference, &Quiet));
    made.unwrap_or_else(|error| panic!("{}", told(&error)))
        .digest
}

fn spec_of(host: &mut Host, profile: Profile, image: &str) -> BoxSpec {
    let mut spec = host.spec(profile);
    image.clone_into(&mut spec.image_digest);
    spec
}

fn an_image_of_one_static_program_and_nothing_else_starts_and_runs_it(host: &mut Host) {
    let image = prepared(host);
    for profile in [Profile::Locked, Profile::Root] {
        let spec = spec_of(host, profile, &image);
        let _sockets = host.run(&spec);
        let output = host.exec(&spec, &["/busybox", "id", "-u"]);
        let uid = match profile {
            Profile::Locked => "1020\n",
            Profile::Root => "0\n",
        };
        assert_eq!(
            (output.code, output.stdout.as_str()),
            (0, uid),
            "{output:?}"
        );
        // What is not in it is not found, and said so.
        assert_eq!(host.exec(&spec, &["sh"]).code, 127);
        let written = host.exec(&spec, &["/busybox", "touch", "/workspace/here"]);
        assert_eq!(written.code, 0, "{written:?}");
    }
}

fn variables_of_an_image_are_defaults_of_its_boxes(host: &mut Host) {
    let image = prepared(host);
    let mut spec = spec_of(host, Profile::Locked, &image);
    spec.env = [("HOME", "/home/agent"), ("PATH", "/opt/box/bin:/bin")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec();
    let _sockets = host.run(&spec);
    let output = host.exec(&spec, &["/busybox", "env"]);
    let has = |line: &str| output.stdout.lines().any(|known| known == line);
    assert!(has("MADE=yes"), "{output:?}");
    assert!(has("PATH=/opt/box/bin:/made:/usr/bin:/bin"), "{output:?}");
    assert!(has("HOME=/home/agent"), "{output:?}");
    assert!(has("USER=agent"), "{output:?}");
    let folder = host.exec(&spec, &["/busybox", "pwd"]);
    assert_eq!(folder.stdout, "/workspace\n");
}
