//! The product as a contestant: its launcher alone, its API, its command.

use super::Contestant;
use super::peers::{first_act_ns, peer};
use super::socket::{self, Connection};
use super::stage::{Stage, built, clock_ns};
use crate::run;
use anyhow::{Context as _, Result};
use box_api::BoxName;
use box_api::control::{
    BoxSettings, Exec, KeepWorkspace, Limits, Marks, NetPreset, NewBox, Profile, Removal, Remove,
    Request, Target, Unpushed,
};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const CLOCK_IN_A_BOX: &str = "/opt/box/bin/box-probe";

/// A host of its own for the bench, with the tests' image.
pub(crate) struct Host {
    dir: PathBuf,
    program: PathBuf,
}

impl Host {
    /// `config` is its settings file.
    pub(crate) fn start(stage: &Stage, name: &str, config: &str) -> Result<Self> {
        let dir = stage.folder(name);
        let seed = crate::test::seed_dir();
        std::fs::create_dir_all(&dir)?;
        let from = seed.join("images");
        run::run(
            "cp",
            &[
                "--archive",
                "--link",
                &from.to_string_lossy(),
                &dir.to_string_lossy(),
            ],
        )?;
        std::fs::write(dir.join("config.toml"), config)?;
        let host = Self {
            dir,
            program: built("box"),
        };
        run::finish(host.command(&["list"]))?;
        Ok(host)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(words)
            .env("BOX_DATA_DIR", &self.dir)
            .env("BOX_RUN_DIR", self.dir.join("run"))
            .env("BOX_CONFIG", self.dir.join("config.toml"));
        command
    }

    fn socket(&self) -> PathBuf {
        self.dir.join("run/control.sock")
    }

    pub(crate) fn start_box(&self, name: &str) -> Result<()> {
        run::finish(self.command(&["new", name]))
    }

    pub(crate) fn product_start(&self, name: &'static str, remark: &'static str) -> ProductStart {
        ProductStart {
            name,
            remark,
            socket: self.socket(),
            round: 0,
        }
    }

    /// Makes a box and runs a program in it, which stays: nanoseconds to the program's first act.
    pub(crate) fn one_more(&self, name: &str) -> Result<u64> {
        start_one(&self.socket(), &BoxName::parse(name)?)
    }

    /// A link that pairs a browser with its page.
    pub(crate) fn page_link(&self) -> Result<String> {
        let said = run::output(self.command(&["ui", "--json"]))?;
        let said: serde_json::Value = serde_json::from_str(&said)?;
        let link = said["link"].as_str().context("`box ui` gave no link")?;
        Ok(link.to_owned())
    }

    /// What this host says of itself.
    pub(crate) fn status(&self) -> Result<serde_json::Value> {
        let said = self.command(&["status", "--json"]).output();
        let said = said.context("could not start `box status`")?;
        serde_json::from_slice(&said.stdout).context("`box status --json` is no JSON")
    }

    pub(crate) fn exec_over_the_socket(&self, name: &'static str) -> Box<dyn Contestant> {
        Box::new(ProductExec {
            socket: self.socket(),
            name,
        })
    }

    pub(crate) fn exec_command(&self, name: &'static str) -> Box<dyn Contestant> {
        let program = self.program.clone();
        let dir = self.dir.clone();
        peer("box exec", "the whole command", move || {
            let mut command = Command::new(&program);
            command
                .args(["exec", name, "--", CLOCK_IN_A_BOX, "now"])
                .env("BOX_DATA_DIR", &dir)
                .env("BOX_RUN_DIR", dir.join("run"))
                .env("BOX_CONFIG", dir.join("config.toml"));
            command
        })
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        for words in [&["rm", "all", "--force"][..], &["serve", "--stop"][..]] {
            if let Err(error) = run::finish(self.command(words)) {
                eprintln!("bench host: {error:#}");
            }
        }
        // The way out outlives the host on purpose; it ends with the bench's process namespace.
    }
}

/// API call → row → sockets → running → first output of an exec.
pub(crate) struct ProductStart {
    name: &'static str,
    remark: &'static str,
    socket: PathBuf,
    round: u32,
}

impl Contestant for ProductStart {
    fn name(&self) -> &'static str {
        self.name
    }

    fn remark(&self) -> &'static str {
        self.remark
    }

    fn round(&mut self) -> Result<u64> {
        self.round += 1;
        let name = BoxName::parse(&format!("bench-{}", self.round))?;
        let took_ns = start_one(&self.socket, &name)?;
        socket::ask(
            &self.socket,
            &Request::Remove(Remove {
                target: Target::Box(name),
                how: Removal::Now,
                workspace: KeepWorkspace::No,
                unpushed: Unpushed::Ignore,
            }),
        )?;
        Ok(took_ns)
    }
}

fn start_one(socket: &Path, name: &BoxName) -> Result<u64> {
    let before_ns = clock_ns();
    socket::ask(socket, &Request::New(new_box(name.clone())))?;
    let printed = exec_clock(socket, name.clone())?;
    first_act_ns(&printed, before_ns)
}

fn new_box(name: BoxName) -> NewBox {
    NewBox {
        name,
        title: None,
        image: None,
        profile: Profile::Locked,
        net: NetPreset::Balanced,
        limits: Limits::default(),
        allow: Vec::new(),
        start: true,
        settings: BoxSettings::default(),
        setup: None,
        marks: Marks::default(),
    }
}

fn exec_clock(path: &Path, name: BoxName) -> Result<Vec<u8>> {
    let mut connection = Connection::open(path)?;
    connection.exec(Exec {
        name,
        command: vec![CLOCK_IN_A_BOX.to_owned(), "now".to_owned()],
        cwd: None,
        env: Vec::new(),
        terminal: None,
    })
}

struct ProductExec {
    socket: PathBuf,
    name: &'static str,
}

impl Contestant for ProductExec {
    fn name(&self) -> &'static str {
        "product socket"
    }

    fn remark(&self) -> &'static str {
        "connect, greet, exec over the control socket"
    }

    fn round(&mut self) -> Result<u64> {
        let before_ns = clock_ns();
        let printed = exec_clock(&self.socket, BoxName::parse(self.name)?)?;
        first_act_ns(&printed, before_ns)
    }
}

/// The launcher alone: a process that makes one box for each line it reads.
pub(crate) struct Launcher {
    name: &'static str,
    remark: &'static str,
    child: Child,
    ask: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Launcher {
    pub(crate) fn cold(stage: &Stage) -> Result<Self> {
        let remark = "with sockets, limits and filter; first exec";
        Self::start(stage, "serve", ("launcher", remark))
    }

    /// What no box differs in is done before the clock starts.
    pub(crate) fn ahead(stage: &Stage) -> Result<Self> {
        Self::start(
            stage,
            "ahead",
            ("launcher, begun ahead", "the same, from the pool"),
        )
    }

    fn start(
        stage: &Stage,
        word: &str,
        (name, remark): (&'static str, &'static str),
    ) -> Result<Self> {
        let mut child = Command::new(Stage::launch_bench())
            .arg(word)
            .arg(stage.root_dir())
            .arg(stage.folder(&format!("launcher-{word}")))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("could not start the launcher's bench")?;
        let ask = child.stdin.take().context("its standard input is piped")?;
        let answers = BufReader::new(
            child
                .stdout
                .take()
                .context("its standard output is piped")?,
        );
        Ok(Self {
            name,
            remark,
            child,
            ask,
            answers,
        })
    }
}

impl Contestant for Launcher {
    fn name(&self) -> &'static str {
        self.name
    }

    fn remark(&self) -> &'static str {
        self.remark
    }

    /// It answers each line with the nanoseconds from its start of the box to the first act.
    fn round(&mut self) -> Result<u64> {
        self.ask.write_all(b"\n")?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        line.trim()
            .parse()
            .with_context(|| format!("the launcher's bench answered `{line}`"))
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        if let Err(error) = self.child.kill().and_then(|()| self.child.wait()) {
            eprintln!("launcher bench: {error}");
        }
    }
}
