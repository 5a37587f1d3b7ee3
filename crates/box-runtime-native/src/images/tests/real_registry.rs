//! Pulls from Debian's `docker-registry`, in a network namespace of the test's own.

use super::made::{Image, Layer, Packed, described, name};
use super::*;
use crate::images::oci::{Logins, Patience};
use base64::Engine as _;
use serde_json::json;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use ureq::Agent;

const ADDRESS: &str = "127.0.0.1:5000";
/// `user:secret`, as htpasswd(1) writes it with `-B`.
const HTPASSWD: &str = "user:$2y$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a\n";
const WAIT_MAX: Duration = Duration::from_secs(20);

/// The calling thread moves into an empty network namespace; what it starts is in it as well.
#[expect(
    deprecated,
    reason = "safe for CLONE_NEWNET; only CLONE_FILES makes it unsafe"
)]
pub(super) fn in_own_network() {
    rustix::thread::unshare(rustix::thread::UnshareFlags::NEWNET).unwrap();
    let up = command("ip").args(["link", "set", "lo", "up"]).status();
    assert!(up.unwrap().success(), "`ip` of iproute2 is needed");
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test starts what it tests with"
)]
fn command(program: &str) -> Command {
    Command::new(program)
}

/// Whether it wants a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wants {
    Nothing,
    Login,
}

/// A registry that ends with the test.
struct Registry {
    process: Child,
    lines: Receiver<String>,
    agent: Agent,
    login: Option<String>,
    _folder: TempDir,
}

impl Registry {
    fn start(wants: Wants) -> Self {
        in_own_network();
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().display().to_string();
        let auth = match wants {
            Wants::Nothing => String::new(),
            Wants::Login => format!("auth: {{htpasswd: {{realm: r, path: {place}/htpasswd}}}}\n"),
        };
        let config = format!(
            "version: 0.1\nlog: {{level: info}}\nstorage: {{filesystem: {{rootdirectory: \
             {place}/store}}}}\nhttp: {{addr: '{ADDRESS}'}}\n{auth}"
        );
        fs::write(folder.path().join("config.yml"), config).unwrap();
        fs::write(folder.path().join("htpasswd"), HTPASSWD).unwrap();
        // Killed with the thread that started it, whatever becomes of the test.
        let mut process = command("setpriv")
            .args(["--pdeathsig", "KILL", "docker-registry", "serve"])
            .arg(folder.path().join("config.yml"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("`docker-registry` is needed: `cargo xtask test` installs it");
        let (say, lines) = channel();
        let (out, err) = (
            process.stdout.take().unwrap(),
            process.stderr.take().unwrap(),
        );
        let readers: [Box<dyn io::Read + Send>; 2] = [Box::new(out), Box::new(err)];
        for reader in readers {
            let say = say.clone();
            std::thread::spawn(move || {
                let lines = BufReader::new(reader).lines().map_while(Result::ok);
                lines.for_each(|line| drop(say.send(line)));
            });
        }
        let registry = Self {
            process,
            lines,
            agent: Agent::config_builder()
                .proxy(None)
                .http_status_as_error(false)
                .timeout_global(Some(WAIT_MAX))
                .build()
                .new_agent(),
            login: (wants == Wants::Login).then(|| {
                let login = base64::engine::general_purpose::STANDARD.encode("user:secret");
                format!("Basic {login}")
            }),
            _folder: folder,
        };
        registry.line_with("listening on");
        registry
    }

    /// The next line with such a word in it.
    fn line_with(&self, word: &str) -> String {
        let deadline = Instant::now() + WAIT_MAX;
        let mut before = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) if line.contains(word) => return line,
                Ok(line) => before.push(line),
                Err(error) => panic!("no line with {word:?} ({error}):\n{}", before.join("\n")),
            }
        }
    }

    fn call(
        &self,
        method: &str,
        url: &str,
        kind: &str,
        body: &[u8],
    ) -> ureq::http::Response<ureq::Body> {
        let mut request = ureq::http::Request::builder()
            .method(method)
            .uri(url)
            .header("content-type", kind);
        if let Some(login) = &self.login {
            request = request.header("authorization", login);
        }
        let answer = self.agent.run(request.body(body).unwrap()).unwrap();
        assert!(
            answer.status().is_success(),
            "{method} {url}: {}",
            answer.status()
        );
        answer
    }

    fn push_blob(&self, repository: &str, content: &[u8]) {
        let uploads = format!("http://{ADDRESS}/v2/{repository}/blobs/uploads/");
        let begun = self.call("POST", &uploads, "application/octet-stream", b"");
        let place = begun.headers()["location"].to_str().unwrap().to_owned();
        let joint = if place.contains('?') { '&' } else { '?' };
        let put = format!("{place}{joint}digest={}", name(content));
        self.call("PUT", &put, "application/octet-stream", content);
    }

    fn push_manifest(&self, repository: &str, wanted: &str, kind: &str, manifest: &[u8]) {
        let put = format!("http://{ADDRESS}/v2/{repository}/manifests/{wanted}");
        self.call("PUT", &put, kind, manifest);
    }

    fn push(&self, repository: &str, tag: &str, image: &Image) {
        for layer in &image.layers {
            self.push_blob(repository, layer);
        }
        self.push_blob(repository, &image.config);
        let kind = "application/vnd.oci.image.manifest.v1+json";
        self.push_manifest(repository, tag, kind, &image.manifest);
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

fn content(rig: &Rig, info: &ImageInfo, path: &str) -> Option<String> {
    let root = rig.store.root_of(&info.digest).unwrap();
    fs::read_to_string(root.join(path)).ok()
}

#[test]
fn an_image_is_pulled_from_a_real_registry_and_found_again_without_it() {
    let registry = Registry::start(Wants::Nothing);
    registry.push("team/app", "1.2", &Image::small());
    let mut rig = Rig::new();
    let image = format!("oci:{ADDRESS}/team/app:1.2");
    let info = rig.prepare(&image).unwrap();
    assert_eq!(info.image, image);
    assert_eq!(content(&rig, &info, "bin/sh").as_deref(), Some("#!"));
    assert_eq!(content(&rig, &info, "etc/changed").as_deref(), Some("2"));
    assert_eq!(content(&rig, &info, "etc/gone"), None);
    let root = rig.store.root_of(&info.digest).unwrap();
    assert!(root.join("workspace").is_dir() && !root.join("dev/console").exists());
    let env = rig.store.env_of(&info.digest).unwrap();
    assert!(
        env.contains(&("MADE".to_owned(), "yes".to_owned())),
        "{env:?}"
    );
    assert_eq!(rig.left_over(), 0);
    // By its digest as well, which is checked; it is the same image.
    let pinned = format!("oci:{ADDRESS}/team/app@{}", name(&Image::small().manifest));
    assert_eq!(rig.prepare(&pinned).unwrap().digest, info.digest);

    drop(registry);
    rig.patience(Patience {
        pauses: Vec::new(),
        ..Patience::default()
    });
    assert_eq!(rig.prepare(&image).unwrap(), info);
    // The control: what is not here needs the registry.
    let other = rig
        .prepare(&format!("oci:{ADDRESS}/team/app:2"))
        .unwrap_err();
    assert!(matches!(other, RuntimeError::Engine { .. }), "{other:?}");
}

#[test]
fn every_compression_and_a_list_of_machines_give_the_same_image() {
    let registry = Registry::start(Wants::Nothing);
    let layers = || vec![Layer::default().file("bin/sh", &[7; 70_000])];
    let rig = Rig::new();
    let mut digests = Vec::new();
    for (tag, packed) in [
        ("plain", Packed::Plain),
        ("gzip", Packed::Gzip),
        ("zstd", Packed::Zstd),
    ] {
        registry.push("app", tag, &Image::of(layers(), packed));
        let info = rig.prepare(&format!("oci:{ADDRESS}/app:{tag}")).unwrap();
        assert_eq!(info.bytes, 70_000);
        digests.push(info.digest);
    }
    let image = Image::of(layers(), Packed::Gzip);
    let kind = "application/vnd.oci.image.manifest.v1+json";
    let mut entry = described(kind, &image.manifest);
    entry["platform"] = json!({"os": "linux", "architecture": oci::manifest::architecture()});
    let list = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [entry],
    });
    let kind = "application/vnd.oci.image.index.v1+json";
    registry.push_manifest("app", "list", kind, list.to_string().as_bytes());
    digests.push(
        rig.prepare(&format!("oci:{ADDRESS}/app:list"))
            .unwrap()
            .digest,
    );
    digests.dedup();
    assert_eq!(digests.len(), 1);
}

#[test]
fn a_private_registry_is_read_with_the_login_the_user_has_and_not_without() {
    let registry = Registry::start(Wants::Login);
    registry.push("app", "latest", &Image::small());
    let mut rig = Rig::new();
    let image = format!("oci:{ADDRESS}/app");
    let file = rig.tars.path().join("config.json");
    let mut with_file = |text: &str| {
        fs::write(&file, text).unwrap();
        rig.logins(Logins::in_file(&file, Some(rig.tars.path().into())));
        rig.prepare(&image)
    };
    let refused = |made: Result<ImageInfo, RuntimeError>| match made {
        Err(RuntimeError::Refused { why, hint }) => (why, hint.unwrap()),
        other => panic!("{other:?}"),
    };
    let (why, hint) = refused(with_file("{}"));
    let denied = format!(
        "could not prepare image `{image}:latest`: the registry `{ADDRESS}` does not give it"
    );
    assert_eq!(why, denied);
    assert!(
        hint.contains(&format!("`docker login {ADDRESS}`")),
        "{hint}"
    );
    let login = |secret: &str| {
        let coded = base64::engine::general_purpose::STANDARD.encode(format!("user:{secret}"));
        format!(r#"{{"auths": {{"{ADDRESS}": {{"auth": "{coded}"}}}}}}"#)
    };
    let (why, hint) = refused(with_file(&login("wrong")));
    assert_eq!(why, denied);
    assert!(hint.contains("is wrong or too old"), "{hint}");
    with_file(&login("secret")).unwrap();
}

#[test]
fn a_private_registry_is_read_with_a_login_a_helper_keeps() {
    let registry = Registry::start(Wants::Login);
    registry.push("app", "latest", &Image::small());
    let mut rig = Rig::new();
    let helper = rig.tars.path().join("docker-credential-keys");
    let script = r#"#!/bin/sh
read registry
test "$registry" = 127.0.0.1:5000 || exit 1
echo '{"ServerURL": "", "Username": "user", "Secret": "secret"}'
"#;
    fs::write(&helper, script).unwrap();
    fs::set_permissions(&helper, fs::Permissions::from_mode(0o755)).unwrap();
    let file = rig.tars.path().join("config.json");
    fs::write(&file, r#"{"credsStore": "keys"}"#).unwrap();
    rig.logins(Logins::in_file(&file, Some(rig.tars.path().into())));
    rig.prepare(&format!("oci:{ADDRESS}/app")).unwrap();
}

#[test]
fn a_layer_an_earlier_pull_left_is_gone_on_with_where_it_stopped() {
    let registry = Registry::start(Wants::Nothing);
    let layer = vec![Layer::default().file("bin/sh", &noise(300_000))];
    let image = Image::of(layer, Packed::Plain);
    registry.push("app", "latest", &image);
    let rig = Rig::new();
    let digits = name(&image.layers[0]).replace("sha256:", "");
    let partial = rig.data.path().join("blobs/partial").join(&digits);
    fs::write(&partial, &image.layers[0][..100_000]).unwrap();
    rig.prepare(&format!("oci:{ADDRESS}/app")).unwrap();
    // The registry's own log: 206 is Partial Content.
    let line = registry.line_with(&format!("GET /v2/app/blobs/sha256:{digits}"));
    let rest = image.layers[0].len() - 100_000;
    assert!(line.contains(&format!("\" 206 {rest} ")), "{line}");
    assert!(!partial.exists());

    // What was damaged meanwhile is downloaded from its start.
    fs::remove_file(rig.data.path().join("blobs/sha256").join(&digits)).unwrap();
    fs::write(&partial, noise(90_000)).unwrap();
    rig.runtime
        .block_on(rig.store.remove(&format!("oci:{ADDRESS}/app")))
        .unwrap();
    rig.prepare(&format!("oci:{ADDRESS}/app")).unwrap();
}

#[test]
fn a_tag_that_moved_is_followed_only_when_asked_and_layers_are_not_sent_twice() {
    let registry = Registry::start(Wants::Nothing);
    let below = || Layer::default().file("bin/sh", &noise(200_000));
    let version = |text: &[u8]| {
        let above = Layer::default().file("etc/version", text);
        Image::of(vec![below(), above], Packed::Gzip)
    };
    registry.push("app", "latest", &version(b"one"));
    let rig = Rig::new();
    let image = format!("oci:{ADDRESS}/app");
    let refresh = || rig.runtime.block_on(rig.store.refresh(&image, &Silent));
    let first = rig.prepare(&image).unwrap();
    assert_eq!(refresh().unwrap(), first);
    registry.push("app", "latest", &version(b"two"));
    assert_eq!(rig.prepare(&image).unwrap(), first);

    let sent = name(&version(b"one").layers[0]);
    registry.line_with(&format!("GET /v2/app/blobs/{sent}"));
    let second = refresh().unwrap();
    assert_eq!(
        content(&rig, &second, "etc/version").as_deref(),
        Some("two")
    );
    assert_ne!(second.digest, first.digest);
    assert!(
        rig.store.root_of(&first.digest).is_some(),
        "boxes may still use it"
    );
    registry.push("end", "latest", &version(b"one"));
    let mut lines = Vec::new();
    loop {
        match registry.line_with("/v2/") {
            line if line.contains("/v2/end/manifests") => break,
            line => lines.push(line),
        }
    }
    let again = lines
        .iter()
        .any(|line| line.contains(&format!("GET /v2/app/blobs/{sent}")));
    assert!(!again, "{lines:#?}");
}

#[test]
fn what_no_box_uses_goes_and_what_one_uses_stays() {
    let registry = Registry::start(Wants::Nothing);
    let app = |text: &[u8]| {
        let layer = Layer::default().file("bin/sh", text);
        Image::of(vec![layer], Packed::Gzip)
    };
    registry.push("used", "latest", &app(b"used"));
    registry.push("unused", "latest", &app(b"unused"));
    let rig = Rig::new();
    let used = rig.prepare(&format!("oci:{ADDRESS}/used")).unwrap();
    let unused = rig.prepare(&format!("oci:{ADDRESS}/unused")).unwrap();
    let blobs = || {
        fs::read_dir(rig.data.path().join("blobs/sha256"))
            .unwrap()
            .count()
    };
    fs::write(
        rig.data.path().join("blobs/partial").join("a".repeat(64)),
        "half",
    )
    .unwrap();
    let prune = |how| {
        let digests = vec![used.digest.clone()];
        rig.runtime.block_on(rig.store.prune(digests, how)).unwrap()
    };
    let told = prune(Prune::Tell);
    assert_eq!(told.images, std::slice::from_ref(&unused));
    let layer = app(b"unused").layers[0].len() as u64;
    assert_eq!(told.downloads_bytes, layer + 4);
    assert_eq!(blobs(), 2);

    assert_eq!(prune(Prune::Remove), told);
    assert_eq!(blobs(), 1);
    assert_eq!(rig.store.root_of(&unused.digest), None);
    assert_eq!(rig.prepare(&format!("oci:{ADDRESS}/used")).unwrap(), used);
    assert_eq!(prune(Prune::Remove), Unused::default());
    assert_eq!(rig.left_over(), 0);
}

#[test]
fn what_a_registry_does_not_have_is_told() {
    let _registry = Registry::start(Wants::Nothing);
    let rig = Rig::new();
    let (why, hint) = rig.refusal(&format!("oci:{ADDRESS}/none"));
    assert_eq!(
        why,
        format!("there is no image `oci:{ADDRESS}/none:latest`")
    );
    assert_eq!(
        hint.unwrap(),
        format!("the registry `{ADDRESS}` does not have it")
    );
    assert_eq!(rig.left_over(), 0);
}

/// Bytes no compression makes smaller.
pub(super) fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[0]
    };
    std::iter::repeat_with(next).take(bytes).collect()
}
