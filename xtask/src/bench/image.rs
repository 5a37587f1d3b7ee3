//! `bench image`: from a registry on this machine to a root on disk, for the default image in two
//! layers. The registry is Debian's; so are skopeo and umoci, which together do what we do.

use super::Contestant;
use super::rows::Rows;
use super::stage::{built, clock_ns, size};
use crate::run;
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const ROUNDS: usize = 10;
const REGISTRY: &str = "127.0.0.1:5000";
pub(super) fn run() -> Result<Rows> {
    let stage = Stage::set_up()?;
    let mut contestants: Vec<Box<dyn Contestant>> = vec![
        Box::new(Ours(stage.top.clone())),
        Box::new(Theirs(stage.top.clone())),
    ];
    Rows::measure(size().of(ROUNDS, 1), &mut contestants)
}

/// A registry with the image in it; gone when dropped.
struct Stage {
    top: PathBuf,
    registry: Child,
}

impl Stage {
    fn set_up() -> Result<Self> {
        let top = std::env::temp_dir().join(format!("box-bench-image-{}", std::process::id()));
        fs::create_dir_all(&top)?;
        let registry = start_registry(&top)?;
        let stage = Self { top, registry };
        stage.push()?;
        Ok(stage)
    }

    /// The tests' default image: `/usr` in one layer, the rest in another.
    fn push(&self) -> Result<()> {
        let images = crate::test::seed_dir().join("images");
        let root = fs::read_dir(&images)
            .with_context(|| format!("no image in `{}`", images.display()))?
            .flatten()
            .map(|entry| entry.path().join("root"))
            .find(|root| root.is_dir())
            .context("the tests' image is not there")?;
        let place = |name: &str| self.top.join(name).display().to_string();
        let (layout, root) = (place("layout"), root.display().to_string());
        let image = format!("{layout}:bench");
        run::run("umoci", &["init", "--layout", &layout])?;
        run::run("umoci", &["new", "--image", &image])?;
        for (name, words) in [("rest", &["--exclude=./usr", "."][..]), ("usr", &["./usr"])] {
            let tar = place(&format!("{name}.tar"));
            let pack = ["--create", "--file", &tar, "--directory", &root];
            run::run("tar", &[&pack[..], words].concat())?;
            run::run("umoci", &["raw", "add-layer", "--image", &image, &tar])?;
        }
        let from = format!("oci:{image}");
        let to = format!("docker://{REGISTRY}/bench:latest");
        let insecure = "--insecure-policy";
        run::run(
            "skopeo",
            &[
                insecure,
                "copy",
                "--quiet",
                "--dest-tls-verify=false",
                &from,
                &to,
            ],
        )
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let ended = self.registry.kill().and_then(|()| self.registry.wait());
        if let Err(error) = ended.and_then(|_| fs::remove_dir_all(&self.top)) {
            eprintln!("bench: {error}");
        }
    }
}

fn start_registry(top: &Path) -> Result<Child> {
    let config = top.join("registry.yml");
    let text = format!(
        "version: 0.1\nlog: {{level: info}}\nstorage: {{filesystem: {{rootdirectory: {}}}}}\n\
         http: {{addr: '{REGISTRY}'}}\n",
        top.join("registry").display()
    );
    fs::write(&config, text)?;
    let mut registry = Command::new("docker-registry")
        .arg("serve")
        .arg(&config)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("could not start `docker-registry`")?;
    let stderr = registry.stderr.take().context("its output is piped")?;
    let mut lines = BufReader::new(stderr).lines();
    if !lines.any(|line| line.is_ok_and(|line| line.contains("listening on"))) {
        bail!("`docker-registry` ended");
    }
    std::thread::spawn(move || lines.for_each(drop));
    Ok(registry)
}

/// How long commands take, one after the other.
fn timed(commands: &mut [Command]) -> Result<u64> {
    let before_ns = clock_ns();
    for command in commands {
        let output = command.stdin(Stdio::null()).output()?;
        if !output.status.success() {
            bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
        }
    }
    Ok(clock_ns() - before_ns)
}

struct Ours(PathBuf);

impl Contestant for Ours {
    fn name(&self) -> &'static str {
        "box, pull and unpack"
    }

    fn remark(&self) -> &'static str {
        "digests of layers and of their content checked, synced to disk"
    }

    fn round(&mut self) -> Result<u64> {
        let data = self.0.join("data");
        let mut command = Command::new(built("examples/pull_bench"));
        command.arg(&data).arg(format!("oci:{REGISTRY}/bench"));
        let ns = timed(&mut [command])?;
        fs::remove_dir_all(&data)?;
        Ok(ns)
    }
}

struct Theirs(PathBuf);

impl Contestant for Theirs {
    fn name(&self) -> &'static str {
        "skopeo copy, umoci unpack"
    }

    fn remark(&self) -> &'static str {
        "the same, not synced"
    }

    fn round(&mut self) -> Result<u64> {
        let (layout, bundle) = (self.0.join("copied"), self.0.join("bundle"));
        let mut copy = Command::new("skopeo");
        copy.args([
            "--insecure-policy",
            "copy",
            "--quiet",
            "--src-tls-verify=false",
        ])
        .arg(format!("docker://{REGISTRY}/bench:latest"))
        .arg(format!("oci:{}:bench", layout.display()));
        let mut unpack = Command::new("umoci");
        unpack
            .args(["unpack", "--image"])
            .arg(format!("{}:bench", layout.display()))
            .arg(&bundle);
        let ns = timed(&mut [copy, unpack])?;
        fs::remove_dir_all(&layout)?;
        fs::remove_dir_all(&bundle)?;
        Ok(ns)
    }
}
