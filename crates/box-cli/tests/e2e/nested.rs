//! What a `root` box holds besides itself: packages, terminal sessions, and containers where that is
//! allowed.

use super::host::{PATIENCE, TestHost};
use super::program::{Program, Said};
use super::terminal::Terminal;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

const CONTAINERFILE: &str = r#"FROM scratch
COPY busybox /busybox
RUN ["/busybox", "mkdir", "-p", "/bin", "/etc", "/var/lib/made"]
RUN ["/busybox", "ln", "-s", "/busybox", "/bin/sh"]
RUN /busybox echo one >/made; /busybox chown 33:1234 /var/lib/made; /busybox chmod 6755 /made
RUN /busybox rm /made; /busybox echo two >/made
"#;

/// Gives a box of root's tools of this machine, with the libraries the box's image lacks.
fn bring_tools(host: &TestHost, name: &str, tools: &[&str]) {
    let workspace = host.info(name).workspace.unwrap();
    let place = Path::new(&workspace).join("tools");
    for folder in ["bin", "lib", "app"] {
        fs::create_dir_all(place.join(folder)).unwrap();
    }
    for tool in tools {
        let path = on_this_machine(tool);
        fs::copy(&path, place.join("bin").join(tool)).unwrap();
        let listed = Program::other("ldd", &[path.to_str().unwrap()]).run();
        for library in listed
            .out
            .split_whitespace()
            .filter(|word| word.starts_with('/'))
        {
            let library = Path::new(library);
            let to = place.join("lib").join(library.file_name().unwrap());
            fs::copy(library, to).unwrap();
        }
    }
    fs::copy(on_this_machine("busybox"), place.join("app/busybox")).unwrap();
    fs::write(place.join("app/Containerfile"), CONTAINERFILE).unwrap();
    let said = host.shell(
        name,
        "cd /workspace/tools && for lib in lib/*; do \
         ldconfig -p | grep -q \"^[[:space:]]*${lib##*/} \" || cp $lib /usr/local/lib/; done; \
         ldconfig && install bin/* /usr/local/bin/ && mkdir -p /etc/containers && \
         echo '{\"default\":[{\"type\":\"insecureAcceptAnything\"}]}' >/etc/containers/policy.json",
    );
    said.assert_code(0);
}

fn on_this_machine(program: &str) -> PathBuf {
    let places = ["/usr/bin", "/bin", "/usr/sbin"].map(Path::new);
    let found = places.iter().map(|place| place.join(program));
    found
        .into_iter()
        .find(|path| path.exists())
        .unwrap_or_else(|| panic!("`{program}` is needed: `cargo xtask test` installs it"))
}

fn build(host: &TestHost, name: &str) -> Said {
    host.shell(
        name,
        "cd /workspace/tools/app && buildah build --quiet --tag app . 2>&1",
    )
}

#[test]
fn containers_are_built_and_run_in_a_box_that_may_hold_them() {
    let host = TestHost::new();
    host.ok(&["new", "demo", "--profile", "root", "--nested"]);
    bring_tools(&host, "demo", &["buildah", "crun"]);
    build(&host, "demo").assert_code(0);
    let said = host.shell(
        "demo",
        "buildah from --name work --quiet localhost/app && buildah run --hostname inner work -- /bin/sh -c \
         '/busybox cat /made && /busybox stat -c %u:%g /var/lib/made && /busybox hostname && \
         /busybox grep -c . /proc/self/uid_map && ! /busybox test -e /workspace'",
    );
    said.assert_code(0);
    let lines: Vec<&str> = said.out.lines().map(str::trim).collect();
    assert_eq!(lines[1..], ["two", "33:1234", "inner", "1"], "{said}");
    assert_eq!(host.shell("demo", "hostname").out, "demo\n");

    // It goes on as it is when the box does.
    host.ok(&["restart", "demo"]);
    assert!(host.shell("demo", "buildah images -q").out.trim().len() >= 12);
    assert_eq!(host.shell("demo", "grep -c root /etc/subuid").out, "1\n");
}

#[test]
fn containers_need_a_box_that_may_hold_them() {
    let host = TestHost::new();
    let said = host.run(&["new", "demo", "--nested"]);
    said.assert_code(1);
    assert!(said.err.contains("only a box of profile `root`"), "{said}");
    assert_eq!(host.ok(&["list"]), "");
    host.ok(&["new", "demo", "--profile", "locked"]);
    let said = host.run(&["set", "demo", "nested=on"]);
    said.assert_code(2);
    assert!(said.err.contains("only a box of profile `root`"), "{said}");

    let make = "unshare --user --map-root-user --mount sh -c 'mount -t tmpfs none /mnt && id -u'";
    host.ok(&["new", "plain", "--profile", "root"]);
    let said = host.shell("plain", make);
    assert_ne!(said.code, 0, "{said}");
    assert!(said.err.contains("Operation not permitted"), "{said}");
    // The control: the same box, once it may.
    host.ok(&["set", "plain", "nested=on"]);
    host.ok(&["restart", "plain"]);
    assert_eq!(host.shell("plain", make).out, "0\n");
}

#[test]
fn a_terminal_session_outlives_the_terminal_it_was_opened_on() {
    let host = TestHost::new();
    host.ok(&["new", "demo", "--profile", "root"]);
    let open = || {
        let mut program = host.program(&["tmux", "demo", "work"]);
        program.command.env("TERM", "xterm-256color");
        Terminal::start(&program.command)
    };
    let mut without = open();
    without.expect("there is no tmux in this box", PATIENCE);
    assert_eq!(without.finish(PATIENCE), 127);

    bring_tools(&host, "demo", &["tmux"]);
    let mut first = open();
    // The line at the bottom: what is typed before tmux reads is lost.
    first.expect("[work]", PATIENCE);
    first.type_in("mark=kept-$((40 + 2)); echo $mark\r");
    first.expect("kept-42", PATIENCE);
    // As the keys do; tmux takes keys that come too fast for something pasted.
    host.ok(&["exec", "demo", "--", "tmux", "detach-client", "-s", "work"]);
    first.expect("[detached", PATIENCE);
    assert_eq!(first.finish(PATIENCE), 0);
    assert!(
        host.ok(&["exec", "demo", "--", "tmux", "ls"])
            .starts_with("work: 1 windows")
    );

    let mut again = open();
    again.expect("[work]", PATIENCE);
    again.type_in("echo again-$mark\r");
    again.expect("again-kept-42", PATIENCE);
    again.type_in("exit\r");
    assert_eq!(again.finish(PATIENCE), 0);
    let said = host.run(&["tmux", "demo", "a b"]);
    said.assert_code(2);
    assert!(said.err.contains("letters, digits"), "{said}");
}

/// Two packages, one of which wants the other, makes a user and a set-uid program and is configured.
const CONTROL: &str =
    "Maintainer: test <test@example.org>\nArchitecture: all\nVersion: 1\nDescription: made\n";
const POSTINST: &str = "#!/bin/sh -e
useradd --system --no-create-home made
chown made:made /var/lib/made
chmod 4755 /usr/bin/made
made >/var/lib/made/configured
";

#[test]
fn anything_can_be_installed_in_a_root_box() {
    let host = TestHost::new();
    host.ok(&["new", "demo", "--profile", "root"]);
    let repository = Path::new(&host.info("demo").workspace.unwrap()).join("repository");
    fs::create_dir(&repository).unwrap();
    let base = package(
        &repository,
        "made-base",
        "",
        &[("usr/share/made", "base\n")],
    );
    let made = package(
        &repository,
        "made",
        "Depends: made-base\n",
        &[
            ("usr/bin/made", "#!/bin/sh\ncat /usr/share/made\n"),
            ("DEBIAN/postinst", POSTINST),
            ("var/lib/made/empty", ""),
        ],
    );
    fs::write(repository.join("Packages"), format!("{base}\n{made}")).unwrap();
    let said = host.shell(
        "demo",
        "echo 'deb [trusted=yes] file:/workspace/repository ./' >/etc/apt/sources.list.d/here.list
         only='-o Dir::Etc::SourceList=/etc/apt/sources.list.d/here.list -o Dir::Etc::SourceParts=-'
         set -e; apt-get $only update -qq; apt-get $only install -y -qq made >/dev/null
         cat /var/lib/made/configured; stat -c '%U %a' /var/lib/made /usr/bin/made; dpkg -l made-base | tail -1",
    );
    said.assert_code(0);
    let lines: Vec<&str> = said.out.lines().collect();
    assert_eq!(lines[..3], ["base", "made 755", "root 4755"], "{said}");
    assert!(lines[3].starts_with("ii  made-base"), "{said}");
    host.ok(&["restart", "demo"]);
    assert_eq!(host.shell("demo", "made").out, "base\n", "it stays");
    host.shell(
        "demo",
        "apt-get purge -y -qq made made-base >/dev/null && ! which made",
    )
    .assert_code(0);
}

/// Packs a package into the repository and gives its paragraph of the index.
fn package(repository: &Path, name: &str, more: &str, files: &[(&str, &str)]) -> String {
    let tree = tempfile::tempdir().unwrap();
    let control = format!("Package: {name}\n{CONTROL}{more}");
    for (path, text) in files.iter().chain([&("DEBIAN/control", &*control)]) {
        let path = tree.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::set_permissions(tree.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let file = repository.join(format!("{name}.deb"));
    let words = [tree.path(), &file].map(|path| path.to_str().unwrap());
    Program::other(
        "dpkg-deb",
        &["--root-owner-group", "--build", words[0], words[1]],
    )
    .run()
    .assert_code(0);
    let sum = Program::other("sha256sum", &[words[1]]).run().out;
    let sum = sum.split_whitespace().next().unwrap();
    let size = fs::metadata(&file).unwrap().len();
    format!("{control}Filename: ./{name}.deb\nSize: {size}\nSHA256: {sum}\n")
}
