//! The deployment under test: its folders, its host, and commands as a person types them.

use super::known::{Known, Life};
use super::leftovers::{self, Grounds};
use super::registry::Registry;
use crate::bench::socket;
use crate::run;
use crate::test;
use anyhow::{Context as _, Result, bail};
use box_api::control::{BoxInfo, BoxState, ImageInfo};
use box_api::snapshot::SnapshotInfo;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A host is there within this time, also one that has much to put right.
const READY_MAX: Duration = Duration::from_mins(1);
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// Longest a command may take, in seconds; one that takes longer hangs.
const COMMAND_SECONDS: &str = "60";
/// What a killed host leaves ends by itself within this time.
const GONE_WITHIN: Duration = Duration::from_secs(3);
const GRACE_STEP: Duration = Duration::from_millis(20);
const TAIL_LINES: usize = 40;

#[derive(Debug)]
pub(super) struct World {
    program: PathBuf,
    /// Below the checkout's target folder, so that hard links into the seed are possible.
    pub(super) top: PathBuf,
    /// Short, because sockets lie below it.
    run_dir: PathBuf,
    host: Option<Child>,
    pub(super) registry: Registry,
    /// Ids of every box that was ever seen.
    ids: BTreeSet<String>,
}

/// What a command came to.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) code: i32,
    pub(super) out: String,
    pub(super) err: String,
}

impl World {
    pub(super) fn set_up(program: PathBuf) -> Result<Self> {
        let unique = format!("{}-{}", std::process::id(), super::random::from_clock());
        let top = run::top().join("target").join(format!("chaos-{unique}"));
        let run_dir = std::env::temp_dir().join(format!("bc-{unique}"));
        let data = top.join("data");
        fs::create_dir_all(&data)?;
        fs::create_dir_all(&run_dir)?;
        let images = test::seed_dir().join("images");
        run::run(
            "cp",
            &[
                "-al",
                &images.display().to_string(),
                &data.display().to_string(),
            ],
        )?;
        // Boxes begun ahead are nobody's, and here whatever is nobody's is an orphan; they have tests of
        // their own.
        fs::write(top.join("config.toml"), "[pool]\nmax = \"off\"\n")?;
        let registry = Registry::start(&top)?;
        Ok(Self {
            program,
            top,
            run_dir,
            host: None,
            registry,
            ids: BTreeSet::new(),
        })
    }

    fn data(&self) -> PathBuf {
        self.top.join("data")
    }

    pub(super) fn place(&self, name: &str) -> String {
        self.top.join(name).display().to_string()
    }

    fn socket(&self) -> PathBuf {
        self.run_dir.join("run/control.sock")
    }

    fn command(&self, program: &Path, words: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(words)
            .env("BOX_DATA_DIR", self.data())
            .env("BOX_RUN_DIR", self.run_dir.join("run"))
            .env("BOX_CONFIG", self.top.join("config.toml"))
            .env("HOME", &self.top)
            .current_dir("/")
            .stdin(Stdio::null());
        command
    }

    /// Starts a host, which is to die at `fault` if one is named, and waits until it answers.
    pub(super) fn start(&mut self, fault: Option<&str>) -> Result<()> {
        self.end_other()?;
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.top.join("serve.log"))?;
        let mut serve = self.command(&self.program.clone(), &["serve"]);
        serve.stdout(log.try_clone()?).stderr(log);
        if let Some(fault) = fault {
            serve.env("BOX_FAULT", fault);
        }
        let mut host = serve.spawn().context("could not start the host")?;
        let deadline = Instant::now() + READY_MAX;
        while UnixStream::connect(self.socket()).is_err() {
            if let Some(status) = host.try_wait()? {
                bail!("the host ended as it started: {status}");
            }
            if Instant::now() > deadline {
                drop(host.kill());
                bail!("the host does not listen after {READY_MAX:?}");
            }
            std::thread::sleep(LOOK_EVERY);
        }
        self.host = Some(host);
        Ok(())
    }

    /// A command that lost its host in the middle may have started one of its own.
    fn end_other(&self) -> Result<()> {
        while let Ok(stream) = UnixStream::connect(self.socket()) {
            let who = rustix::net::sockopt::socket_peercred(&stream)?;
            // It may have ended meanwhile.
            let _gone = rustix::process::kill_process(who.pid, rustix::process::Signal::KILL);
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Kills the host. Whether it had died by itself before.
    pub(super) fn kill(&mut self) -> Result<bool> {
        let Some(mut host) = self.host.take() else {
            return Ok(true);
        };
        let died = host.try_wait()?.is_some();
        if !died {
            host.kill()?;
            host.wait()?;
        }
        Ok(died)
    }

    /// Whether the host has died.
    pub(super) fn is_dead(&mut self) -> Result<bool> {
        match &mut self.host {
            Some(host) => Ok(host.try_wait()?.is_some()),
            None => Ok(true),
        }
    }

    /// A command, as a person types it, beside whatever else happens.
    pub(super) fn begin(&self, words: &[String]) -> Result<Child> {
        let program = self.program.display().to_string();
        let mut all = vec!["--kill-after=5", COMMAND_SECONDS, &program];
        all.extend(words.iter().map(String::as_str));
        let mut command = self.command(Path::new("timeout"), &all);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().context("could not start `box`")
    }

    pub(super) fn finish(child: Child) -> Result<Said> {
        let output = child.wait_with_output()?;
        Ok(Said {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    pub(super) fn say(&self, words: &[&str]) -> Result<Said> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Self::finish(self.begin(&words)?)
    }

    /// What a person must be able to do now.
    pub(super) fn must(&self, words: &[&str]) -> Result<Said> {
        let said = self.say(words)?;
        if said.code != 0 {
            bail!(
                "`box {}` ended with {}: {}",
                words.join(" "),
                said.code,
                said.err.trim()
            );
        }
        Ok(said)
    }

    fn listed<T: DeserializeOwned>(&self, words: &[&str]) -> Result<T> {
        Ok(serde_json::from_str(&self.must(words)?.out)?)
    }

    /// Asks over the socket; whether it was done.
    pub(super) fn ask(&self, request: &box_api::control::Request) -> bool {
        socket::ask(&self.socket(), request).is_ok()
    }

    /// What a person sees now. `texts` of snapshots are as `told` has them: only that they are there
    /// can be seen.
    pub(super) fn look(&mut self, told: &Known) -> Result<(Known, Vec<BoxInfo>)> {
        let mut seen = Known {
            archives: told.archives.clone(),
            ..Known::default()
        };
        let live: Vec<BoxInfo> = self.listed(&["list", "--json"])?;
        let trash: Vec<BoxInfo> = self.listed(&["list", "--trash", "--json"])?;
        for info in &live {
            let name = info.name.to_string();
            let snapshots: Vec<SnapshotInfo> = self.listed(&["snapshots", &name, "--json"])?;
            let before = told.live.get(&name);
            let text = |label: &str| {
                let known = before.and_then(|life| life.snapshots.get(label));
                known.cloned().unwrap_or_default()
            };
            let labels = snapshots.iter().map(|one| one.label.to_string());
            let found = Life {
                running: info.state == BoxState::Running,
                text: text_of(info)?,
                snapshots: labels.map(|label| (label.clone(), text(&label))).collect(),
            };
            seen.live.insert(name, found);
        }
        for info in &trash {
            let name = info.name.to_string();
            let kept = told.trash.get(&name).or_else(|| told.live.get(&name));
            let found = Life {
                running: false,
                text: text_of(info)?,
                snapshots: kept.map(|life| life.snapshots.clone()).unwrap_or_default(),
            };
            seen.trash.insert(name, found);
        }
        let images: Vec<ImageInfo> = self.listed(&["image", "list", "--json"])?;
        let images = images.into_iter().map(|image| image.image);
        seen.images = images
            .filter(|image| !image.starts_with("debian:"))
            .collect();
        let all: Vec<BoxInfo> = live.into_iter().chain(trash).collect();
        self.ids.extend(all.iter().map(|info| info.id.to_string()));
        Ok((seen, all))
    }

    /// What is there and belongs to nobody, and does not go by itself: the spawner of a killed host
    /// finishes what it does first.
    pub(super) fn orphans(&self, boxes: &[BoxInfo]) -> Result<Vec<String>> {
        let grounds = Grounds {
            data: &self.data(),
            run: &self.run_dir.join("run"),
            ids: &self.ids,
            registry: self.registry.pid(),
            host: self.host.as_ref().map_or(0, Child::id),
        };
        let deadline = Instant::now() + GONE_WITHIN;
        loop {
            let found = leftovers::find(&grounds, boxes)?;
            if found.is_empty() || Instant::now() > deadline {
                return Ok(found);
            }
            std::thread::sleep(GRACE_STEP);
        }
    }

    /// Writes into a box's workspace, as something in it would.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<()> {
        let info: BoxInfo = self.listed(&["info", name, "--json"])?;
        let workspace = info.workspace.context("a box has a workspace")?;
        Ok(fs::write(Path::new(&workspace).join("text"), text)?)
    }

    /// What helps to understand a failure.
    pub(super) fn whereabouts(&self) -> String {
        let files = [self.top.join("serve.log"), self.data().join("log/host.log")];
        let tails = files.iter().map(|file| {
            let text = fs::read_to_string(file).unwrap_or_default();
            let lines: Vec<&str> = text.lines().rev().take(TAIL_LINES).collect();
            let lines: Vec<&str> = lines.into_iter().rev().collect();
            format!("--- {}\n{}", file.display(), lines.join("\n"))
        });
        tails.collect::<Vec<_>>().join("\n")
    }

    /// Removes every box, as a person would.
    pub(super) fn take_down(&mut self) -> Result<()> {
        self.start(None)?;
        self.must(&["rm", "all", "--force", "--now"])?;
        self.kill().map(drop)
    }
}

impl Drop for World {
    /// What still runs ends with the process namespace.
    fn drop(&mut self) {
        drop(self.kill());
        for folder in [&self.run_dir, &self.top] {
            if let Err(error) = fs::remove_dir_all(folder) {
                println!("could not remove `{}`: {error}", folder.display());
            }
        }
    }
}

fn text_of(info: &BoxInfo) -> Result<String> {
    let Some(workspace) = &info.workspace else {
        bail!("box {} has no workspace", info.name);
    };
    let file = Path::new(workspace).join("text");
    match fs::read_to_string(&file) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(error).with_context(|| format!("could not read `{}`", file.display())),
    }
}
