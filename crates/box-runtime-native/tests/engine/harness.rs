//! Runs claims one to a process, and gives each an engine with an image.

use crate::user;
use box_api::BoxId;
use box_api::control::{Limits, Profile};
use box_runtime::{BoxSockets, BoxSpec, ExecSpec, Progress, RunningProcess, Runtime as _};
use box_runtime_native::{NativeRuntime, Spawner, rootless};
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// A claim: its name, what shows it, and what is done to the machine as this process sees it.
#[derive(Clone, Copy)]
pub(crate) struct Claim(
    pub(crate) &'static str,
    pub(crate) fn(&mut Host),
    pub(crate) fn(),
);

/// Makes the list of a module's claims; the names are the functions'.
#[macro_export]
macro_rules! claims {
    ($($name:ident),+ $(,)?) => { $crate::claims!(on || (); $($name),+); };
    (on $machine:expr; $($name:ident),+ $(,)?) => {
        pub(crate) const CLAIMS: &[$crate::harness::Claim] =
            &[$($crate::harness::Claim(stringify!($name), $name, $machine)),+];
    };
}

pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// `of_users` are shown once by each kind of ordinary user, under names of theirs.
pub(crate) fn run(of_root: &[Claim], of_users: &[Claim]) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let claims = if rustix::process::geteuid().is_root() {
        of_root
    } else {
        of_users
    };
    if has("--exact")
        && let Some(name) = arguments.iter().find(|argument| argument.contains("::"))
    {
        return user::shows(name);
    }
    if has("--list") {
        // Nothing is ever ignored.
        let listed = if has("--ignored") { &[][..] } else { claims };
        for Claim(name, ..) in listed {
            println!("{name}: test");
        }
        for (kind, _) in user::KINDS.iter().filter(|_| !listed.is_empty()) {
            for Claim(name, ..) in of_users {
                println!("{kind}::{name}: test");
            }
        }
        return ExitCode::SUCCESS;
    }
    let wanted: Vec<&String> = arguments
        .iter()
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    let chosen: Vec<&Claim> = claims
        .iter()
        .filter(|Claim(name, ..)| match wanted.as_slice() {
            [] => true,
            names if has("--exact") => names.iter().any(|wanted| wanted.as_str() == *name),
            names => names.iter().any(|wanted| name.contains(wanted.as_str())),
        })
        .collect();
    match chosen.as_slice() {
        [Claim(name, claim, machine)] if has("--exact") => {
            machine();
            let mut host = Host::start();
            let held = std::panic::catch_unwind(AssertUnwindSafe(|| claim(&mut host)));
            host.remove_all();
            if let Err(broken) = held {
                std::panic::resume_unwind(broken);
            }
            host.leave_nothing();
            println!("{name} holds");
            ExitCode::SUCCESS
        }
        chosen => each_in_a_process(chosen),
    }
}

fn each_in_a_process(claims: &[&Claim]) -> ExitCode {
    let mut broken = 0;
    for Claim(name, ..) in claims {
        #[expect(clippy::disallowed_methods, reason = "a test program starts itself")]
        let status = Command::new(std::env::current_exe().unwrap())
            .args([name, "--exact"])
            .status()
            .unwrap();
        println!("{name}: {}", if status.success() { "ok" } else { "FAILED" });
        broken += u8::from(!status.success());
    }
    ExitCode::from(broken)
}

/// A host process as `box serve` is one, on data of its own.
pub(crate) struct Host {
    place: TempDir,
    pub(crate) image: String,
    boxes: u32,
    /// Absent only while one host follows another.
    running: Option<Running>,
}

pub(crate) struct Running {
    pub(crate) engine: NativeRuntime,
    pub(crate) tokio: Runtime,
}

/// What a command gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Output {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A command that runs until this is dropped.
pub(crate) struct Begun {
    _process: Box<dyn RunningProcess>,
    _streams: Vec<OwnedFd>,
}

pub(crate) struct Quiet;

impl Progress for Quiet {
    fn say(&self, _text: &str) {}
}

impl Running {
    pub(crate) fn start(place: &Path) -> Self {
        // The threads of the host before have ended, but the kernel says so a moment later.
        let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        while threads() > 1 && std::time::Instant::now() < deadline {
            std::thread::yield_now();
        }
        let spawner = Spawner::fork().unwrap();
        let tokio = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let engine = {
            let _inside = tokio.enter();
            NativeRuntime::open(&place.join("data"), &place.join("run"), spawner).unwrap()
        };
        Self { engine, tokio }
    }
}

impl Host {
    fn start() -> Self {
        let place = tempfile::tempdir().unwrap();
        for folder in ["data", "run"] {
            std::fs::create_dir(place.path().join(folder)).unwrap();
        }
        rootless::enter(&place.path().join("run"))
            .unwrap_or_else(|error| panic!("{}", told(&error)));
        // SAFETY: this process has one thread, and the flag shares no descriptor table.
        unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNET) }.unwrap();
        let tar = place.path().join("image.tar");
        crate::image::bring(&tar);
        let running = Running::start(place.path());
        let mut host = Self {
            place,
            image: String::new(),
            boxes: 0,
            running: Some(running),
        };
        let reference = format!("file:{}", tar.display());
        let engine = host.engine().clone();
        host.image = host
            .wait(engine.images().prepare(&reference, &Quiet))
            .unwrap()
            .digest;
        host
    }

    pub(crate) fn engine(&self) -> &NativeRuntime {
        &self.running.as_ref().unwrap().engine
    }

    pub(crate) fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        // A machine in software is slow.
        let seconds = std::env::var("BOX_TEST_SECONDS").ok();
        let seconds = seconds.and_then(|seconds| seconds.parse().ok());
        let limit = Duration::from_secs(seconds.unwrap_or(50));
        let limited = async { tokio::time::timeout(limit, future).await.unwrap() };
        self.running.as_ref().unwrap().tokio.block_on(limited)
    }

    /// The host dies and another takes over. Its spawner ends with it.
    pub(crate) fn replace(&mut self) {
        drop(self.running.take());
        self.running = Some(Running::start(self.place.path()));
    }

    /// As [`Host::replace`]; something is done to the data folder while no host works in it.
    pub(crate) fn replace_after<T>(&mut self, act: impl FnOnce(&Path) -> T) -> T {
        drop(self.running.take());
        let done = act(&self.place.path().join("data"));
        self.running = Some(Running::start(self.place.path()));
        done
    }

    /// Makes a box and does not start it.
    pub(crate) fn made(&mut self, profile: Profile) -> BoxSpec {
        let spec = self.spec(profile);
        self.wait(self.engine().create(&spec)).unwrap();
        spec
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.place.path().join(below)
    }

    pub(crate) fn folder(&self, spec: &BoxSpec) -> PathBuf {
        self.path("data/boxes").join(spec.id.as_str())
    }

    /// A box that is not made yet.
    pub(crate) fn spec(&mut self, profile: Profile) -> BoxSpec {
        self.boxes += 1;
        let mut random = random_part();
        random[6..].copy_from_slice(&self.boxes.to_be_bytes());
        BoxSpec {
            id: BoxId::from_random(random),
            host_name: "demo".to_owned(),
            image_digest: self.image.clone(),
            profile,
            limits: Limits::default(),
            id_offset: 2_000_000_000 + self.boxes * 65_536,
            mounts: Vec::new(),
            files: Vec::new(),
            env: Vec::new(),
            nesting: box_runtime::Nesting::Refused,
        }
    }

    pub(crate) fn run(&self, spec: &BoxSpec) -> BoxSockets {
        let engine = self.engine();
        let started = self.wait(async {
            engine.create(spec).await.unwrap();
            engine.start(spec).await
        });
        started
            .unwrap_or_else(|error| panic!("{}", told(&error)))
            .sockets
            .unwrap()
    }

    pub(crate) fn running(&mut self, profile: Profile) -> (BoxSpec, BoxSockets) {
        let spec = self.spec(profile);
        let sockets = self.run(&spec);
        (spec, sockets)
    }

    pub(crate) fn exec(&self, spec: &BoxSpec, command: &[&str]) -> Output {
        let command = command.iter().map(|word| (*word).to_owned()).collect();
        let exec = ExecSpec {
            command,
            cwd: None,
            env: Vec::new(),
            terminal: None,
        };
        let execution = self.wait(self.engine().exec(&spec.id, exec)).unwrap();
        let [stdin, stdout, stderr] = <[OwnedFd; 3]>::try_from(execution.streams).unwrap();
        drop(stdin);
        let (stdout, stderr) = self.wait(async { tokio::join!(read(stdout), read(stderr)) });
        let code = self.wait(execution.process.wait()).unwrap();
        Output {
            code,
            stdout,
            stderr,
        }
    }

    /// Starts a command, and waits for the first it prints.
    pub(crate) fn begin(&self, spec: &BoxSpec, command: &[&str]) -> Begun {
        let command = command.iter().map(|word| (*word).to_owned()).collect();
        let exec = ExecSpec {
            command,
            cwd: None,
            env: Vec::new(),
            terminal: None,
        };
        let mut execution = self.wait(self.engine().exec(&spec.id, exec)).unwrap();
        let stdout = execution.streams.remove(1);
        self.wait(async {
            use tokio::io::AsyncReadExt as _;
            let stdout = stdout.try_clone().unwrap();
            let mut stdout = tokio::net::unix::pipe::Receiver::from_owned_fd(stdout).unwrap();
            stdout.read_u8().await.unwrap();
        });
        execution.streams.push(stdout);
        Begun {
            _process: execution.process,
            _streams: execution.streams,
        }
    }

    pub(crate) fn shell(&self, spec: &BoxSpec, line: &str) -> Output {
        self.exec(spec, &["sh", "-c", line])
    }

    /// A shell line that must end well; what it printed.
    pub(crate) fn ask(&self, spec: &BoxSpec, line: &str) -> String {
        let output = self.shell(spec, line);
        assert_eq!(output.code, 0, "`{line}`: {output:?}");
        output.stdout
    }

    /// A shell line that must not.
    pub(crate) fn refused(&self, spec: &BoxSpec, line: &str) {
        let output = self.shell(spec, line);
        assert_ne!(output.code, 0, "`{line}`: {output:?}");
    }

    /// A program in perl; what it printed.
    pub(crate) fn perl(&self, spec: &BoxSpec, program: &str) -> String {
        let output = self.exec(spec, &["perl", "-MSocket", "-e", program]);
        assert_eq!(output.code, 0, "`{program}`: {output:?}");
        output.stdout
    }

    fn remove_all(&mut self) {
        // Whatever became of the last one.
        self.replace();
        let engine = self.engine().clone();
        self.wait(async {
            for seen in engine.list().await.unwrap() {
                engine.remove(&seen.id).await.unwrap();
            }
        });
    }

    /// Nothing of any box is left on the machine.
    fn leave_nothing(&self) {
        let engine = self.engine().clone();
        assert_eq!(self.wait(engine.list()).unwrap(), []);
        assert_eq!(names(&self.path("run/boxes")), Vec::<String>::new());
        assert_eq!(names(&self.path("data/tmp")), Vec::<String>::new());
        assert_eq!(Self::cgroups(), Vec::<PathBuf>::new());
        let children = children_of(engine.spawner_pid());
        assert_eq!(children, "", "children of the spawner");
    }

    /// The cgroups of this test's boxes.
    pub(crate) fn cgroups() -> Vec<PathBuf> {
        let prefix = BoxId::from_random(random_part()).to_string()[..6].to_owned();
        let mut found = Vec::new();
        let mut open = vec![PathBuf::from("/sys/fs/cgroup")];
        while let Some(folder) = open.pop() {
            // Whatever ends meanwhile is not ours.
            let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
            let is_folder =
                |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
            let is_ours = |path: &PathBuf| {
                let name = path.file_name().unwrap_or_default();
                name.to_string_lossy().starts_with(&prefix)
            };
            let folders = entries.filter(is_folder).map(|entry| entry.path());
            let (ours, others): (Vec<_>, Vec<_>) = folders.partition(is_ours);
            found.extend(ours);
            open.extend(others);
        }
        found
    }
}

/// The part of an id that says which test process made it.
fn random_part() -> [u8; 10] {
    let mut random = [0; 10];
    // Six characters of an id hold the upper 30 bits; a pid has 22.
    random[..4].copy_from_slice(&(std::process::id() << 2).to_be_bytes());
    random
}

async fn read(stream: OwnedFd) -> String {
    use tokio::io::AsyncReadExt as _;
    let mut text = Vec::new();
    let mut stream = tokio::net::unix::pipe::Receiver::from_owned_fd(stream).unwrap();
    stream.read_to_end(&mut text).await.unwrap();
    String::from_utf8_lossy(&text).into_owned()
}

/// An error with all it came from.
pub(crate) fn told(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.retain(|name| {
        std::fs::symlink_metadata(folder.join(name))
            .unwrap()
            .is_dir()
    });
    names.sort();
    names
}

pub(crate) fn children_of(pid: u32) -> String {
    let mut text = String::new();
    let path = format!("/proc/{pid}/task/{pid}/children");
    std::fs::File::open(path)
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    text
}
