//! The stage of a real drill: a host of its own in a network of its own, two boxes, an internet.
//!
//! Boxes are driven through the `box` program itself, so what is attacked is what a person gets.

use crate::internet::{self, Internet};
use crate::network;
use crate::stage::{Facts, Place, Ran, Stage, StageError};
use box_api::control::{BoxInfo, Limits, Profile, Status};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::de::DeserializeOwned;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const TARGET: &str = "target";
const SIBLING: &str = "sibling";
const PROGRAM_INSIDE: &str = "/opt/box/bin/box-probe";
/// Names the internet's name server was asked for, a line each.
const ASKED: &str = "asked";
const ROOTS: &str = "roots.pem";
const SET_UP_TIME_MAX: Duration = Duration::from_mins(2);
const OUTPUT_BYTES_MAX: u64 = 1 << 20;

/// Small, so that a probe runs into each in a moment.
const LIMITS: Limits = Limits {
    cpu_milli: 500,
    memory_bytes: 192 << 20,
    pids: 96,
    tmp_bytes: 24 << 20,
    disk_bytes: 1 << 30,
    open_files: 256,
};

/// What a drill needs.
#[derive(Debug)]
pub struct Options {
    /// The `box` program.
    pub program: PathBuf,
    /// A data folder with the default image in it; only read and hard-linked.
    pub data_dir: PathBuf,
    /// Host path of the static program of probes.
    pub program_of_probes: Vec<u8>,
    pub engine: String,
    pub profile: Profile,
}

/// A host with two boxes. Ends with all it started.
#[derive(Debug)]
pub struct Product {
    program: PathBuf,
    dir: TempDir,
    facts: Facts,
}

impl Product {
    /// Puts the calling thread into a network of its own and makes everything there.
    ///
    /// # Errors
    /// [`StageError`] with the step that failed. What was started by then is stopped.
    pub fn set_up(options: Options) -> Result<Self, StageError> {
        let credential =
            made_up_credential().map_err(|error| failed("make a credential", error))?;
        let dir = make_folders(&options).map_err(|error| failed("prepare a data folder", error))?;
        let internet = fs::File::create(dir.path().join(ASKED))
            .and_then(|asked| Internet::start(&credential, asked))
            .map_err(|error| failed("make a network of its own (root and `ip` needed)", error))?;
        fs::write(dir.path().join(ROOTS), &internet.authority_pem)
            .map_err(|error| failed("write the internet's certificate", error))?;
        let facts = empty_facts(&options, dir.path());
        let mut product = Self {
            program: options.program,
            dir,
            facts,
        };
        product.start_boxes(&credential)?;
        Ok(product)
    }

    fn start_boxes(&mut self, credential: &str) -> Result<(), StageError> {
        self.say(&["credential", "add", "claude"], credential.as_bytes())?;
        let profile = match self.facts.profile {
            Profile::Locked => "locked",
            Profile::Root => "root",
        };
        for name in [TARGET, SIBLING] {
            let mut words = vec!["new", name, "--profile", profile, "--net", "locked"];
            words.extend(["--allow", internet::ALLOWED_NAME]);
            self.say(&words, &[])?;
        }
        let status: Status = self.ask(&["status", "--json"])?;
        let target: BoxInfo = self.ask(&["info", TARGET, "--json"])?;
        let sibling: BoxInfo = self.ask(&["info", SIBLING, "--json"])?;
        credential.clone_into(&mut self.facts.credential);
        self.facts.host_pid = status.pid;
        self.facts.target_pid = pid_of(&target)?;
        self.facts.sibling_pid = pid_of(&sibling)?;
        self.facts.sibling_workspace = sibling.workspace.unwrap_or_default();
        self.facts.egress_pid =
            find_egress().ok_or_else(|| failed("find the way out's process", "it does not run"))?;
        self.facts.target_placeholder = self.placeholder(Place::Target)?;
        self.facts.sibling_placeholder = self.placeholder(Place::Sibling)?;
        Ok(())
    }

    fn placeholder(&self, place: Place) -> Result<String, StageError> {
        let ran = self.run(
            place,
            &["printenv", "CLAUDE_CODE_OAUTH_TOKEN"],
            SET_UP_TIME_MAX,
        )?;
        let placeholder = ran.stdout.trim().to_owned();
        if placeholder.is_empty() {
            return Err(failed("read the box's placeholder", "there is none"));
        }
        Ok(placeholder)
    }

    fn run_dir(&self) -> PathBuf {
        self.dir.path().join("run")
    }

    fn command(&self, words: &[&str]) -> Command {
        #[expect(
            clippy::disallowed_methods,
            reason = "the one home for the product's processes"
        )]
        let mut command = Command::new(&self.program);
        command
            .args(words)
            .env("BOX_DATA_DIR", self.dir.path().join("data"))
            .env("BOX_RUN_DIR", self.run_dir())
            .env("BOX_CONFIG", self.dir.path().join("config.toml"));
        command
    }

    fn ask<T: DeserializeOwned>(&self, words: &[&str]) -> Result<T, StageError> {
        let printed = self.say(words, &[])?;
        serde_json::from_str(&printed).map_err(|error| failed(&words.join(" "), error))
    }

    fn say(&self, words: &[&str], input: &[u8]) -> Result<String, StageError> {
        let ran = finish(self.command(words), input, SET_UP_TIME_MAX)
            .map_err(|error| failed(&format!("box {}", words.join(" ")), error))?;
        if ran.code == 0 {
            Ok(ran.stdout)
        } else {
            Err(failed(
                &format!("box {}", words.join(" ")),
                ran.stderr.trim(),
            ))
        }
    }
}

impl Stage for Product {
    fn run(&self, place: Place, command: &[&str], time_max: Duration) -> Result<Ran, StageError> {
        let what = command.join(" ");
        let command = match place {
            Place::Target => self.command(&[&["exec", TARGET, "--"], command].concat()),
            Place::Sibling => self.command(&[&["exec", SIBLING, "--"], command].concat()),
            Place::Outside => {
                let [program, words @ ..] = command else {
                    return Err(failed("run nothing", "a command has a program"));
                };
                #[expect(clippy::disallowed_methods, reason = "controls run outside a box")]
                let mut outside = Command::new(program);
                outside.args(words);
                outside
            }
        };
        finish(command, &[], time_max).map_err(|error| failed(&what, error))
    }

    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn was_asked_upstream(&self, part: &str) -> bool {
        fs::read_to_string(self.dir.path().join(ASKED)).is_ok_and(|asked| asked.contains(part))
    }
}

impl Drop for Product {
    fn drop(&mut self) {
        for words in [&["rm", "all", "--force"][..], &["serve", "--stop"][..]] {
            // Best effort: what cannot be stopped politely is ended below.
            drop(finish(self.command(words), &[], SET_UP_TIME_MAX));
        }
        // The way out outlives its host on purpose; here nothing may stay.
        while let Some(pid) = find_egress() {
            let killed = Pid::from_raw(pid.cast_signed())
                .map(|pid| rustix::process::kill_process(pid, rustix::process::Signal::KILL));
            if !matches!(killed, Some(Ok(()))) {
                break;
            }
        }
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "call sites hand over an error they are done with"
)]
fn failed(what: &str, why: impl ToString) -> StageError {
    StageError {
        what: what.to_owned(),
        why: why.to_string(),
    }
}

/// As long as a real one, so that placeholders have the real shape.
fn made_up_credential() -> std::io::Result<String> {
    let mut bytes = [0; 80];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef";
    let tail: String = bytes
        .iter()
        .map(|byte| char::from(alphabet[usize::from(byte % 32)]))
        .collect();
    Ok(format!("sk-ant-oat01-{tail}AA"))
}

fn make_folders(options: &Options) -> std::io::Result<TempDir> {
    // Beside the images, since hard links do not cross file systems.
    let dir = tempfile::Builder::new()
        .prefix("drill-")
        .rand_bytes(4)
        .tempdir_in(&options.data_dir)?;
    let data = dir.path().join("data");
    fs::create_dir_all(&data)?;
    let images = options.data_dir.join("images");
    #[expect(clippy::disallowed_methods, reason = "`cp` links a tree in one line")]
    let linked = Command::new("cp")
        .args(["--archive", "--link"])
        .arg(images)
        .arg(&data)
        .status()?;
    if !linked.success() {
        return Err(std::io::Error::other("the images could not be linked"));
    }
    let roots = dir.path().join(ROOTS);
    let program = dir.path().join("box-probe");
    fs::write(&program, &options.program_of_probes)?;
    fs::set_permissions(
        &program,
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )?;
    let config = format!(
        "[egress]\nresolvers = [\"{}:53\"]\nextra_roots = \"{}\"\n\n[limits]\ncpus = 0.5\n\
         memory = {}\npids = {}\ntmp = {}\nopen_files = {}\n",
        network::RESOLVER_V4,
        roots.display(),
        LIMITS.memory_bytes,
        LIMITS.pids,
        LIMITS.tmp_bytes,
        LIMITS.open_files,
    );
    fs::write(dir.path().join("config.toml"), config)?;
    Ok(dir)
}

fn empty_facts(options: &Options, dir: &Path) -> Facts {
    let text = |name: &str| dir.join(name).to_string_lossy().into_owned();
    Facts {
        engine: options.engine.clone(),
        profile: options.profile,
        limits: LIMITS,
        program_inside: PROGRAM_INSIDE.to_owned(),
        program_outside: text("box-probe"),
        host_pid: 0,
        egress_pid: 0,
        target_pid: 0,
        sibling_pid: 0,
        control_socket: text("run/control.sock"),
        data_dir: text("data"),
        sibling_workspace: String::new(),
        credential: String::new(),
        target_placeholder: String::new(),
        sibling_placeholder: String::new(),
        internet: crate::stage::Internet {
            allowed_name: internet::ALLOWED_NAME.to_owned(),
            refused_name: internet::REFUSED_NAME.to_owned(),
            credential_name: internet::CREDENTIAL_NAME.to_owned(),
            v4: network::INTERNET_V4.to_owned(),
            v6: network::INTERNET_V6.to_owned(),
            host_v4: network::HOST_V4.to_owned(),
        },
    }
}

fn pid_of(info: &BoxInfo) -> Result<u32, StageError> {
    info.pid
        .ok_or_else(|| failed(&format!("find box `{}`", info.name), "it does not run"))
}

/// The way out's process: in the drill's own network there is one at most.
fn find_egress() -> Option<u32> {
    let here = fs::read_link("/proc/self/ns/net").ok()?;
    fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let named = line.split(|byte| *byte == 0).any(|word| word == b"egress");
        let in_here = fs::read_link(entry.path().join("ns/net")).is_ok_and(|net| net == here);
        (named && in_here).then_some(pid)
    })
}

/// Runs it to its end, or kills it.
fn finish(mut command: Command, input: &[u8], time_max: Duration) -> std::io::Result<Ran> {
    let start = Instant::now();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A command that does not read its input has ended or will be judged by its output.
        drop(stdin.write_all(input));
    }
    let stdout = child
        .stdout
        .take()
        .map(|stream| std::thread::spawn(|| read_all(stream)));
    let stderr = child
        .stderr
        .take()
        .map(|stream| std::thread::spawn(|| read_all(stream)));
    let status = wait(&mut child, start + time_max)?;
    let took = start.elapsed();
    let text = |reader: Option<std::thread::JoinHandle<String>>| {
        reader
            .and_then(|reader| reader.join().ok())
            .unwrap_or_default()
    };
    let signal = std::os::unix::process::ExitStatusExt::signal(&status).unwrap_or_default();
    Ok(Ran {
        code: status.code().unwrap_or(128 + signal),
        stdout: text(stdout),
        stderr: text(stderr),
        took,
    })
}

/// Waits for its end; one that has not ended by then is killed.
fn wait(child: &mut Child, deadline: Instant) -> std::io::Result<ExitStatus> {
    let pidfd = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        match poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&left)) {
            Ok(0) => {
                child.kill()?;
                return child.wait();
            }
            Ok(_) => return child.wait(),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

fn read_all(stream: impl std::io::Read) -> String {
    let mut bytes = Vec::new();
    // What could be read before an error is what there is to judge by.
    drop(stream.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}
