//! The stage of a real drill: a host of its own in a network of its own, two boxes, an internet.
//!
//! Boxes are driven through the `box` program itself, so what is attacked is what a person gets.

use crate::command::{self, Leash};
use crate::deployment::{Deployment, VERB_TIME_MAX};
use crate::internet::{self, Internet};
use crate::network;
use crate::stage::{Facts, Place, Ran, Stage, StageError};
use box_api::control::{BoxInfo, Limits, Profile, Status};
use rustix::process::{Pid, Signal, kill_process};
use serde::de::DeserializeOwned;
use std::fs;
use std::io::Read as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const TARGET: &str = "target";
const SIBLING: &str = "sibling";
const PROGRAM_INSIDE: &str = "/opt/box/bin/box-probe";
/// Names the internet's name server was asked for, a line each.
const ASKED: &str = "asked";
const ROOTS: &str = "roots.pem";
const SCRATCH: &str = "scratch";
const HOST_WORD_VARIABLE: &str = "DRILL_HOST_WORD";

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
    /// Whether the boxes may hold containers; of profile `root` only.
    pub nested: bool,
    /// Readable once the drill is to end.
    pub stop: OwnedFd,
}

/// A host with two boxes. Ends with all it started.
#[derive(Debug)]
pub struct Product {
    deployment: Deployment,
    stop: OwnedFd,
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
        // First: what an earlier drill left is ended from a network that leads nowhere.
        network::enter_machine_side()
            .map_err(|error| failed("make a network of its own (needs root)", error))?;
        let deployment =
            Deployment::make(&options).map_err(|error| failed("prepare a folder", error))?;
        let folder = deployment.path();
        fill(&deployment, &options).map_err(|error| failed("prepare a data folder", error))?;
        let internet = fs::File::create(folder.join(ASKED))
            .and_then(|asked| Internet::start(&credential, asked))
            .map_err(|error| failed("make an internet of its own (needs `ip`)", error))?;
        fs::write(folder.join(ROOTS), &internet.authority_pem)
            .map_err(|error| failed("write the internet's certificate", error))?;
        let facts = empty_facts(&options, folder);
        let mut product = Self {
            deployment,
            stop: options.stop,
            facts,
        };
        product.start_boxes(&credential)?;
        Ok(product)
    }

    fn start_boxes(&mut self, credential: &str) -> Result<(), StageError> {
        self.say(&["credential", "add", "claude"], credential.as_bytes())?;
        for name in [TARGET, SIBLING] {
            let mut words = vec!["new", name, "--net", "locked"];
            words.extend(self.facts.options());
            let allowed = internet::INWARD_NAMES
                .iter()
                .chain([&internet::ALLOWED_NAME]);
            words.extend(allowed.flat_map(|name| ["--allow", name]));
            self.say(&words, &[])?;
        }
        let status: Status = self.ask(&["status", "--json"])?;
        let target: BoxInfo = self.ask(&["info", TARGET, "--json"])?;
        let sibling: BoxInfo = self.ask(&["info", SIBLING, "--json"])?;
        credential.clone_into(&mut self.facts.credential);
        self.facts.host_pid = status.pid;
        self.facts.target_pid = pid_of(&target)?;
        self.facts.limits_held_by.clone_from(&target.limits_held_by);
        self.facts.sibling_pid = pid_of(&sibling)?;
        self.facts.guest_socket = self
            .deployment
            .run()
            .join("boxes")
            .join(target.id.as_str())
            .join("guest.sock")
            .to_string_lossy()
            .into_owned();
        self.facts.target_workspace = target.workspace.unwrap_or_default();
        self.facts.sibling_workspace = sibling.workspace.unwrap_or_default();
        self.facts.ca_key_line = line_of_key(&self.deployment.data().join("ca/ca.key"))?;
        self.facts.egress_pid =
            find_egress().ok_or_else(|| failed("find the way out's process", "it does not run"))?;
        self.facts.one_id = self.has_one_id()?;
        self.facts.target_placeholder = self.placeholder(Place::Target)?;
        self.facts.sibling_placeholder = self.placeholder(Place::Sibling)?;
        Ok(())
    }

    /// Whether nobody in a box can become somebody else (`user_namespaces(7)`, `uid_map`).
    fn has_one_id(&self) -> Result<bool, StageError> {
        let map = self.run(Place::Target, &["cat", "/proc/self/uid_map"], VERB_TIME_MAX)?;
        Ok(map.stdout.split_whitespace().nth(2) == Some("1"))
    }

    fn placeholder(&self, place: Place) -> Result<String, StageError> {
        let ran = self.run(
            place,
            &["printenv", "CLAUDE_CODE_OAUTH_TOKEN"],
            VERB_TIME_MAX,
        )?;
        let placeholder = ran.stdout.trim().to_owned();
        if placeholder.is_empty() {
            return Err(failed("read the box's placeholder", "there is none"));
        }
        Ok(placeholder)
    }

    /// A verb of the product, with the word in its environment that no box may see.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.deployment.command(words);
        command
            .env(HOST_WORD_VARIABLE, &self.facts.host_word)
            .current_dir(&self.facts.scratch);
        command
    }

    /// Runs it to its end, or until the drill is to end.
    fn finish(&self, command: Command, input: &[u8], time_max: Duration) -> std::io::Result<Ran> {
        let leash = Leash {
            time_max,
            stop: Some(self.stop.as_fd()),
        };
        command::finish(command, input, leash)
    }

    fn ask<T: DeserializeOwned>(&self, words: &[&str]) -> Result<T, StageError> {
        let printed = self.say(words, &[])?;
        serde_json::from_str(&printed).map_err(|error| failed(&words.join(" "), error))
    }

    fn say(&self, words: &[&str], input: &[u8]) -> Result<String, StageError> {
        let ran = self
            .finish(self.command(words), input, VERB_TIME_MAX)
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
            Place::Verb => self.command(command),
        };
        self.finish(command, &[], time_max)
            .map_err(|error| failed(&what, error))
    }

    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn was_asked_upstream(&self, part: &str) -> bool {
        let asked = fs::read_to_string(self.deployment.path().join(ASKED));
        asked.is_ok_and(|asked| asked.contains(part))
    }

    fn is_stopped(&self) -> bool {
        command::is_readable(self.stop.as_fd())
    }
}

impl Drop for Product {
    fn drop(&mut self) {
        // The rest ends with the deployment. A way out that does not listen to its host any more
        // would outlive it.
        let egress = self.facts.egress_pid;
        if self.deployment.end().is_err()
            && find_egress() == Some(egress)
            && let Some(pid) = Pid::from_raw(egress.cast_signed())
        {
            let _gone = kill_process(pid, Signal::KILL);
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

/// Images, the program of probes and settings for the drill's host.
fn fill(deployment: &Deployment, options: &Options) -> std::io::Result<()> {
    #[expect(clippy::disallowed_methods, reason = "`cp` links a tree in one line")]
    let linked = Command::new("cp")
        .args(["--archive", "--link"])
        .arg(options.data_dir.join("images"))
        .arg(deployment.data())
        .status()?;
    if !linked.success() {
        return Err(std::io::Error::other("the images could not be linked"));
    }
    let folder = deployment.path();
    fs::create_dir(folder.join(SCRATCH))?;
    let roots = folder.join(ROOTS);
    let program = folder.join("box-probe");
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
    fs::write(folder.join("config.toml"), config)
}

fn empty_facts(options: &Options, dir: &Path) -> Facts {
    let text = |name: &str| dir.join(name).to_string_lossy().into_owned();
    Facts {
        engine: options.engine.clone(),
        profile: options.profile,
        nested: options.nested,
        limits: LIMITS,
        of_root: rustix::process::geteuid().is_root(),
        one_id: false,
        limits_held_by: String::new(),
        program_inside: PROGRAM_INSIDE.to_owned(),
        program_outside: text("box-probe"),
        host_pid: 0,
        egress_pid: 0,
        target_pid: 0,
        sibling_pid: 0,
        control_socket: text("run/control.sock"),
        data_dir: text("data"),
        scratch: text(SCRATCH),
        target_workspace: String::new(),
        sibling_workspace: String::new(),
        guest_socket: String::new(),
        host_word: format!("word-{}", std::process::id()),
        ca_key_line: String::new(),
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
            machine_socket: format!("@{}", internet::ABSTRACT_NAME),
            inward_names: internet::INWARD_NAMES.map(str::to_owned).to_vec(),
        },
    }
}

/// The middle of a PEM file.
fn line_of_key(path: &Path) -> Result<String, StageError> {
    let text = fs::read_to_string(path).map_err(|error| failed("read the private key", error))?;
    let line = text.lines().nth(1).filter(|line| line.len() > 20);
    line.map(str::to_owned)
        .ok_or_else(|| failed("read the private key", "it is not PEM"))
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
