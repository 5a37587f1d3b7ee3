//! A host of the test's own, on an internet of its own.

use super::control::Control;
use super::leaks;
use super::program::{Program, Said};
use super::seed;
use super::terminal::Terminal;
use box_api::control::{BoxInfo, Outcome, Request};
use box_fakes::{Account, Ids, Rig};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Enough for a box with a real agent to come up on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// Dropping it ends the host, its boxes and box-egress, and fails if anything is left.
#[derive(Debug)]
pub(crate) struct TestHost {
    pub(crate) rig: Rig,
    /// Short, because sockets lie below it: `run/`, `config.toml`, `ca.pem`, `home/`.
    short: tempfile::TempDir,
    /// Beside the seed, so that hard links are possible.
    data: tempfile::TempDir,
    /// Who runs everything, if not root.
    user: Option<User>,
}

/// An ordinary user, and the program where it can be run by one.
#[derive(Debug)]
pub(crate) struct User {
    pub(crate) account: Account,
    program: String,
}

/// What the data folder has from the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// The default image and the pack of Claude Code.
    Seeded,
    /// The default image and the pack of this agent.
    Agent(&'static str),
    /// Nothing.
    Bare,
    /// The image of clients of this name.
    Clients(&'static str),
}

impl TestHost {
    /// With the default image and the agent's pack; the host itself starts with the first verb.
    pub(crate) fn new() -> Self {
        Self::with(Start::Seeded)
    }

    pub(crate) fn with(start: Start) -> Self {
        let seed = match start {
            Start::Seeded => seed::ready(),
            Start::Agent(name) => seed::ready_with(name),
            Start::Bare => fs::canonicalize(env!("CARGO_TARGET_TMPDIR")).unwrap(),
            Start::Clients(name) => seed::of_clients(name).join("seed"),
        };
        let rig = Rig::start().unwrap();
        let short = tempfile::Builder::new()
            .prefix("b-")
            .tempdir_in("/tmp")
            .unwrap();
        let data = tempfile::Builder::new()
            .prefix("data-")
            .tempdir_in(seed.parent().unwrap())
            .unwrap();
        match start {
            Start::Seeded => seed::copy(&seed, data.path(), "claude"),
            Start::Agent(name) => seed::copy(&seed, data.path(), name),
            Start::Clients(_) => seed::copy_images(&seed, data.path()),
            Start::Bare => {}
        }
        configure(short.path(), &rig);
        fs::create_dir(short.path().join("home")).unwrap();
        Self {
            rig,
            short,
            data,
            user: None,
        }
    }

    /// Of an ordinary user: host, boxes and every command. Image and pack are as their host would
    /// have made them.
    pub(crate) fn of_user(ids: Ids) -> Self {
        let seed = seed::ready();
        let short = tempfile::Builder::new()
            .prefix("b-")
            .tempdir_in("/tmp")
            .unwrap();
        fs::set_permissions(short.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let account = Account::make(short.path(), ids).unwrap();
        let rig = Rig::start().unwrap();
        let own = |name: &str| {
            let folder = short.path().join(name);
            fs::create_dir(&folder).unwrap();
            account.give(&folder).unwrap();
            folder
        };
        let data = tempfile::tempdir_in(own("data")).unwrap();
        account.give(data.path()).unwrap();
        seed::give(&seed, data.path(), account);
        own("run");
        own("home");
        configure(short.path(), &rig);
        let program = short.path().join("box");
        fs::copy(env!("CARGO_BIN_EXE_box"), &program).unwrap();
        let program = program.display().to_string();
        Self {
            rig,
            short,
            data,
            user: Some(User { account, program }),
        }
    }

    /// Who runs everything.
    pub(crate) fn user(&self) -> &User {
        self.user.as_ref().expect("a host of a user")
    }

    /// A pack of this host, which no other host shares by name (its files are hard links).
    pub(crate) fn pack(&self, agent: &str) -> PathBuf {
        let folder = self.data().join("agents").join(agent);
        let entries = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let versions: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
        let [version] = versions.try_into().expect("one version of the pack");
        version
    }

    pub(crate) fn data(&self) -> &Path {
        self.data.path()
    }

    /// Where programs of its user look for their settings.
    pub(crate) fn home(&self) -> PathBuf {
        self.short.path().join("home")
    }

    pub(crate) fn run_dir(&self) -> PathBuf {
        self.short.path().join("run")
    }

    /// `box` with this host's places.
    pub(crate) fn program(&self, arguments: &[&str]) -> Program {
        let Some(User { account, program }) = &self.user else {
            return self.placed(Program::new(arguments));
        };
        let [setpriv, before @ ..] = account.words();
        let before = before.iter().map(String::as_str).chain([program.as_str()]);
        let words: Vec<&str> = before.chain(arguments.iter().copied()).collect();
        self.placed(Program::other(&setpriv, &words))
    }

    fn placed(&self, mut program: Program) -> Program {
        program
            .command
            .env("BOX_DATA_DIR", self.data())
            .env("BOX_RUN_DIR", self.run_dir())
            .env("BOX_CONFIG", self.short.path().join("config.toml"))
            .env("HOME", self.short.path().join("home"));
        program
    }

    /// Replaces the settings: those that lead to this internet, some of `[egress]`, and more.
    pub(crate) fn settings(&self, egress: &str, more: &str) {
        configure(self.short.path(), &self.rig);
        let path = self.short.path().join("config.toml");
        let text = fs::read_to_string(&path).unwrap();
        let text = text.replacen("[egress]\n", &format!("[egress]\n{egress}\n"), 1);
        fs::write(&path, format!("{text}{more}")).unwrap();
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Said {
        self.program(arguments).run()
    }

    /// Runs it, wants code 0 and gives what it printed.
    #[track_caller]
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let said = self.run(arguments);
        assert_eq!(said.code, 0, "{said}\n{}", self.whereabouts());
        said.out
    }

    pub(crate) fn terminal(&self, arguments: &[&str]) -> Terminal {
        Terminal::start(&self.program(arguments).command)
    }

    /// A shell command in a box.
    pub(crate) fn shell(&self, name: &str, script: &str) -> Said {
        self.run(&["exec", name, "--", "sh", "-c", script])
    }

    pub(crate) fn control(&self) -> Control {
        Control::connect(&self.run_dir().join("control.sock"))
    }

    #[track_caller]
    pub(crate) fn info(&self, name: &str) -> BoxInfo {
        if self.user.is_some() {
            // A user's host listens to that user alone.
            return serde_json::from_str(&self.ok(&["info", name, "--json"])).unwrap();
        }
        let name = box_api::BoxName::parse(name).unwrap();
        match self.control().ask(&Request::Info { name }).unwrap() {
            Outcome::Info(info) => *info,
            other => panic!("no box: {other:?}"),
        }
    }

    /// The host's process id, from what a person reads.
    #[track_caller]
    pub(crate) fn pid(&self) -> u32 {
        let status: serde_json::Value =
            serde_json::from_str(&self.ok(&["status", "--json"])).unwrap();
        u32::try_from(status["pid"].as_u64().unwrap()).unwrap()
    }

    /// `kill -9` of the host, and only of it.
    #[track_caller]
    pub(crate) fn kill(&self) {
        leaks::kill(self.pid());
    }

    /// What helps to understand a failure: the host's log and last words, and the internet's diary.
    pub(crate) fn whereabouts(&self) -> String {
        let mut parts = Vec::new();
        let log = self.data().join("log");
        for entry in fs::read_dir(&log).into_iter().flatten().flatten() {
            let content = fs::read_to_string(entry.path()).unwrap_or_default();
            let tail: Vec<&str> = content.lines().rev().take(40).collect();
            let tail: Vec<&str> = tail.into_iter().rev().collect();
            parts.push(format!(
                "--- {}\n{}",
                entry.path().display(),
                tail.join("\n")
            ));
        }
        let diary = self.rig.diary();
        let tail = diary
            .get(diary.len().saturating_sub(60)..)
            .unwrap_or_default();
        parts.push(format!("--- the internet\n{}", tail.join("\n")));
        parts.join("\n")
    }
}

/// Settings that lead to this internet.
fn configure(folder: &Path, rig: &Rig) {
    let ca = folder.join("ca.pem");
    fs::write(&ca, rig.ca_pem()).unwrap();
    let config = format!(
        "[egress]\nresolvers = [\"{}\"]\nextra_roots = \"{}\"\n[credentials]\nseal = \"memory\"\n",
        rig.resolver_addr(),
        ca.display()
    );
    fs::write(folder.join("config.toml"), config).unwrap();
}

impl Drop for TestHost {
    fn drop(&mut self) {
        let failed = std::thread::panicking();
        if failed {
            eprintln!("{}", self.whereabouts());
        }
        let ids = leaks::box_ids(self.data());
        let boxes = self.run_dir().join("control.sock").exists();
        let said = boxes.then(|| {
            let removed = self.run(&["rm", "all", "--force", "--now"]);
            let stopped = self.run(&["serve", "--stop"]);
            [removed, stopped]
        });
        let left = leaks::clean_up(self.data(), &self.run_dir(), &ids);
        if self.user.is_some() {
            // The copy of /etc lies in a folder that goes now.
            let flags = rustix::mount::UnmountFlags::DETACH;
            let _gone = rustix::mount::unmount("/etc", flags);
        }
        if !failed {
            for said in said.into_iter().flatten() {
                said.assert_code(0);
            }
            assert!(left.is_empty(), "left behind: {left:#?}");
        }
    }
}
