//! A registry with one image of two layers, on the loopback of the run's own network.

use crate::run;
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const ADDRESS: &str = "127.0.0.1:5000";
/// What it is called there.
pub(super) const IMAGE: &str = "127.0.0.1:5000/app:1";
/// Larger than a pull can take in one step.
const LAYER_BYTES: usize = 4 << 20;

#[derive(Debug)]
pub(super) struct Registry(Child);

impl Registry {
    /// Starts it and fills it.
    pub(super) fn start(top: &Path) -> Result<Self> {
        let place = top.join("registry");
        fs::create_dir_all(&place)?;
        let shown = place.display();
        let config = format!(
            "version: 0.1\nlog: {{level: info}}\nstorage: {{filesystem: {{rootdirectory: {shown}/store}}}}\n\
             http: {{addr: '{ADDRESS}'}}\n"
        );
        fs::write(place.join("config.yml"), config)?;
        let mut process = Command::new("docker-registry")
            .arg("serve")
            .arg(place.join("config.yml"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("could not start `docker-registry`")?;
        let said = process
            .stderr
            .take()
            .context("its standard error is a pipe")?;
        let mut lines = BufReader::new(said).lines().map_while(Result::ok);
        if !lines.any(|line| line.contains("listening on")) {
            bail!("`docker-registry` ended before it listened");
        }
        std::thread::spawn(move || lines.for_each(drop));
        let registry = Self(process);
        fill(&place)?;
        Ok(registry)
    }

    pub(super) fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// The bytes are chance enough not to shrink when they are packed.
fn fill(place: &Path) -> Result<()> {
    let mut bytes = Vec::with_capacity(LAYER_BYTES);
    let mut state = 1u32;
    while bytes.len() < LAYER_BYTES {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        bytes.push((state >> 24) as u8);
    }
    fs::write(place.join("one"), &bytes)?;
    fs::write(place.join("two"), "two\n")?;
    fs::write(
        place.join("Containerfile"),
        "FROM scratch\nCOPY one /one\nCOPY two /two\n",
    )?;
    let storage = format!(
        "[storage]\ndriver = \"vfs\"\ngraphroot = \"{0}/graph\"\nrunroot = \"{0}/graph-run\"\n",
        place.display()
    );
    fs::write(place.join("storage.conf"), storage)?;
    let context = place.display().to_string();
    for words in [
        &["build", "--layers", "--tag", IMAGE, &context][..],
        &["push", "--tls-verify=false", IMAGE],
    ] {
        let mut buildah = run::command("buildah", words);
        buildah
            .env("CONTAINERS_STORAGE_CONF", place.join("storage.conf"))
            .env("BUILDAH_ISOLATION", "chroot");
        run::finish(buildah)?;
    }
    Ok(())
}
