//! Images of others: built by buildah, kept in Debian's `docker-registry`, run as boxes.

use super::host::{Start, TestHost};
use super::program::{Program, Said};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use tempfile::TempDir;

const REGISTRY: &str = "127.0.0.1:5000";
/// `user:secret`, as htpasswd(1) writes it with `-B`.
const HTPASSWD: &str = "user:$2y$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a\n";
const CONTAINERFILE: &str = r#"FROM scratch
COPY busybox /busybox
ENV MADE=yes PATH=/made:/bin
RUN ["/busybox", "mkdir", "/bin"]
RUN ["/busybox", "ln", "-s", "/busybox", "/bin/sh"]
RUN /busybox echo one >/gone; /busybox echo one >/changed
RUN /busybox rm /gone; /busybox echo two >/changed
USER 4711
"#;

/// A context to build from and a place for what buildah keeps.
struct Builder(TempDir);

impl Builder {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path();
        let busybox = ["/bin/busybox", "/usr/bin/busybox"];
        let busybox = busybox.iter().find(|path| Path::new(path).exists());
        fs::create_dir(place.join("app")).unwrap();
        fs::copy(
            busybox.expect("`busybox` of busybox-static is needed"),
            place.join("app/busybox"),
        )
        .unwrap();
        fs::write(place.join("app/Containerfile"), CONTAINERFILE).unwrap();
        let below = |name: &str| place.join(name).display().to_string();
        let storage = format!(
            "[storage]\ndriver = \"vfs\"\ngraphroot = \"{}\"\nrunroot = \"{}\"\n",
            below("graph"),
            below("run")
        );
        fs::write(place.join("storage.conf"), storage).unwrap();
        Self(folder)
    }

    fn context(&self) -> String {
        self.0.path().join("app").display().to_string()
    }

    fn placed(&self, mut program: Program) -> Program {
        program
            .command
            .env(
                "CONTAINERS_STORAGE_CONF",
                self.0.path().join("storage.conf"),
            )
            // Containers of its own it could not make in every place where tests run.
            .env("BUILDAH_ISOLATION", "chroot");
        program
    }

    fn buildah(&self, arguments: &[&str]) {
        let said = self.placed(Program::other("buildah", arguments)).run();
        said.assert_code(0);
    }
}

/// Ends with the test.
struct Registry(
    Child,
    #[expect(dead_code, reason = "its files are there as long as it lives")] TempDir,
);

impl Registry {
    /// Wants a login.
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().display().to_string();
        let config = format!(
            "version: 0.1\nlog: {{level: info}}\nstorage: {{filesystem: {{rootdirectory: \
             {place}/store}}}}\nhttp: {{addr: '{REGISTRY}'}}\nauth: {{htpasswd: {{realm: r, path: \
             {place}/htpasswd}}}}\n"
        );
        fs::write(folder.path().join("config.yml"), config).unwrap();
        fs::write(folder.path().join("htpasswd"), HTPASSWD).unwrap();
        let config = format!("{place}/config.yml");
        let words = ["--pdeathsig", "KILL", "docker-registry", "serve", &config];
        let mut command = Program::other("setpriv", &words).command;
        let mut process = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let listens = lines.any(|line| line.unwrap().contains("listening on"));
        assert!(
            listens,
            "`docker-registry` is needed: `cargo xtask test` installs it"
        );
        std::thread::spawn(move || lines.for_each(drop));
        Self(process, folder)
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn in_box(host: &TestHost, name: &str, script: &str) -> Said {
    host.run(&["exec", name, "--", "sh", "-c", script])
}

#[test]
fn an_image_is_built_here_and_a_box_of_it_has_what_was_built() {
    let host = TestHost::with(Start::Bare);
    let builder = Builder::new();
    let context = builder.context();
    let words = ["image", "build", &context, "--with", "buildah"];
    let said = builder.placed(host.program(&words)).run();
    said.assert_code(0);
    assert!(said.err.contains("image `built:app` is ready"), "{said}");
    host.ok(&["new", "one", "--image", "built:app"]);
    let said = in_box(
        &host,
        "one",
        "echo $MADE $PATH; /busybox cat /changed; test ! -e /gone && /busybox id -u",
    );
    said.assert_code(0);
    let path = "/opt/box/bin:/made:/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin";
    assert_eq!(said.out, format!("yes {path}\ntwo\n1020\n"));

    // A step that fails is told, and makes nothing.
    fs::write(
        Path::new(&context).join("Containerfile"),
        "FROM scratch\nCOPY none /\n",
    )
    .unwrap();
    let said = builder.placed(host.program(&words)).run();
    said.assert_code(1);
    assert!(said.err.contains("`buildah build` failed"), "{said}");
    host.ok(&["exec", "one", "--", "/busybox", "true"]);
}

#[test]
fn without_a_builder_building_is_refused_with_a_hint() {
    let host = TestHost::with(Start::Bare);
    let builder = Builder::new();
    let mut program = host.program(&["image", "build", &builder.context()]);
    program.command.env("PATH", "/nonexistent");
    let said = program.run();
    said.assert_code(3);
    assert!(
        said.err
            .contains("hint: install one, `apt-get install buildah`"),
        "{said}"
    );
}

#[test]
fn a_private_image_is_pulled_with_the_users_login_and_stays_as_long_as_a_box_may_need_it() {
    let host = TestHost::with(Start::Bare);
    let (builder, _registry) = (Builder::new(), Registry::start());
    builder.buildah(&["build", "--quiet", "--tag", "app", &builder.context()]);
    for tag in ["1", "2"] {
        let to = format!("docker://{REGISTRY}/team/app:{tag}");
        let push = [
            "push",
            "--quiet",
            "--creds",
            "user:secret",
            "--tls-verify=false",
            "app",
            &to,
        ];
        builder.buildah(&push);
    }
    let image = format!("oci:{REGISTRY}/team/app:1");
    let said = host.run(&["new", "one", "--image", &image]);
    said.assert_code(1);
    assert!(
        said.err.contains(&format!("`docker login {REGISTRY}`")),
        "{said}"
    );

    let docker = host.home().join(".docker");
    fs::create_dir(&docker).unwrap();
    // `user:secret`
    let login = format!(r#"{{"auths": {{"{REGISTRY}": {{"auth": "dXNlcjpzZWNyZXQ="}}}}}}"#);
    fs::write(docker.join("config.json"), login).unwrap();
    let said = host.run(&["new", "one", "--image", &image]);
    said.assert_code(0);
    assert!(
        said.err.contains(&format!("looking up `{image}`")),
        "{said}"
    );
    let said = in_box(&host, "one", "/busybox cat /changed; test ! -e /gone");
    assert_eq!((said.code, said.out.as_str()), (0, "two\n"), "{said}");

    // The other tag is the same image, so only a name; and the layers are here.
    host.ok(&["image", "prepare", &format!("oci:{REGISTRY}/team/app:2")]);
    let listed = host.ok(&["image", "list"]);
    assert!(
        listed.contains("team/app:1") && listed.contains("team/app:2"),
        "{listed}"
    );
    let told = host.ok(&["image", "prune", "--force", "--json"]);
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!(
        told["images"].as_array().unwrap().len(),
        0,
        "a box uses it: {told}"
    );

    host.ok(&["rm", "one", "--force"]);
    let kept = host.ok(&["image", "prune", "--force", "--json"]);
    assert!(
        kept.contains(r#""images":[]"#) || kept.contains(r#""images": []"#),
        "{kept}"
    );
    host.ok(&["undelete", "one"]);
    host.ok(&["rm", "one", "--force", "--now"]);
    let said = host.run(&["image", "prune"]);
    said.assert_code(2);
    assert!(said.err.contains("hint: add `--force`"), "{said}");
    let said = host.run(&["image", "prune", "--force"]);
    said.assert_code(0);
    assert!(said.err.contains("removed 2 images"), "{said}");
    assert_eq!(host.run(&["image", "list"]).out, "");
    assert_eq!(
        fs::read_dir(host.data().join("blobs/sha256"))
            .unwrap()
            .count(),
        0
    );
}
