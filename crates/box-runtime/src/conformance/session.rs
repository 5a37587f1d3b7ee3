//! The boxes of one claim: made with what claims expect in them, removed when it is over.

use super::Held;
use crate::{BoxSpec, ExecSpec, Execution, Observed, PlacedFile, Placing, Runtime, RuntimeError};
use box_api::BoxId;
use box_api::control::{Limits, Profile};
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::net::unix::pipe::Receiver;
use tokio::sync::Mutex;

/// First id of the range of the first box; each has 65,536.
const FIRST_ID: u32 = 2_000_000_000;
const IDS: u32 = 65_536;
/// Where every box has the file; every prepared image has this one.
const GIVEN_AT: &str = "/etc/ssl/certs/ca-certificates.crt";
/// More than any claim prints.
const OUTPUT_BYTES_MAX: u64 = 1 << 20;

/// Why a claim does not hold.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    #[error("{0}")]
    Claim(String),
    #[error("the engine failed: {}", chain(.0))]
    Engine(#[from] RuntimeError),
    #[error("could not talk with a command")]
    Streams(#[from] io::Error),
}

/// An error with all it came from, in one line.
fn chain(error: &RuntimeError) -> String {
    let first: &dyn std::error::Error = error;
    let causes = std::iter::successors(first.source(), |error| error.source());
    causes.fold(first.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// What a command gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Output {
    pub(super) code: i32,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Output {
    pub(super) fn of(code: i32, stdout: &str, stderr: &str) -> Self {
        Self {
            code,
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
        }
    }
}

/// A command that runs until it is dropped.
pub(super) struct Begun {
    /// Dropping it kills the command.
    _execution: Execution,
    stdout: Mutex<BufReader<Receiver>>,
}

impl Begun {
    pub(super) async fn first_line(&self) -> Result<String, Broken> {
        let mut line = String::new();
        self.stdout.lock().await.read_line(&mut line).await?;
        Ok(line.trim_end().to_owned())
    }
}

/// Counts the boxes of this process.
static MADE: AtomicU32 = AtomicU32::new(0);

pub(super) struct Bench<'a> {
    runtime: &'a dyn Runtime,
    image: &'a str,
    made: Vec<BoxId>,
    /// The file every box is given.
    given: PathBuf,
}

impl<'a> Bench<'a> {
    pub(super) fn new(runtime: &'a dyn Runtime, image: &'a str) -> Result<Self, Broken> {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("box-conformance-{}-{number}", std::process::id());
        let given = std::env::temp_dir().join(name);
        std::fs::write(&given, "given\n")?;
        Ok(Self {
            runtime,
            image,
            made: Vec::new(),
            given,
        })
    }

    /// A box that is not made yet.
    pub(super) fn spec(&mut self, profile: Profile) -> BoxSpec {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let mut random = [0; 10];
        random[..4].copy_from_slice(&std::process::id().to_be_bytes());
        random[6..].copy_from_slice(&number.to_be_bytes());
        let id = BoxId::from_random(random);
        self.made.push(id);
        BoxSpec {
            id,
            host_name: "conformance".to_owned(),
            image_digest: self.image.to_owned(),
            profile,
            limits: Limits::default(),
            id_offset: FIRST_ID + number * IDS,
            mounts: Vec::new(),
            files: vec![PlacedFile {
                source: self.given.clone(),
                target: GIVEN_AT.to_owned(),
                placing: Placing::Always,
            }],
            env: vec![("GIVEN".to_owned(), "with the box".to_owned())],
            nesting: crate::Nesting::Refused,
        }
    }

    pub(super) async fn start(&self, spec: &BoxSpec) -> Held {
        self.runtime.create(spec).await?;
        self.runtime.start(spec).await?;
        Ok(())
    }

    /// Starts a box that is there.
    pub(super) async fn start_again(&self, spec: &BoxSpec) -> Held {
        self.runtime.start(spec).await?;
        Ok(())
    }

    pub(super) async fn running(&mut self, profile: Profile) -> Result<BoxSpec, Broken> {
        let spec = self.spec(profile);
        self.start(&spec).await?;
        Ok(spec)
    }

    pub(super) async fn observe(&self, spec: &BoxSpec) -> Result<Option<Observed>, Broken> {
        let listed = self.runtime.list().await?;
        Ok(listed.into_iter().find(|seen| seen.id == spec.id))
    }

    /// Runs a command to its end.
    pub(super) async fn exec(&self, spec: &BoxSpec, command: &[&str]) -> Result<Output, Broken> {
        let execution = self.execute(spec, command).await?;
        let mut streams = execution.streams.into_iter();
        drop(streams.next());
        let (stdout, stderr) = tokio::try_join!(read(streams.next()), read(streams.next()))?;
        let code = execution.process.wait().await?;
        Ok(Output {
            code,
            stdout,
            stderr,
        })
    }

    /// Runs a shell line that must end well and print this.
    pub(super) async fn expect(&self, spec: &BoxSpec, line: &str, stdout: &str) -> Held {
        let output = self.exec(spec, &["sh", "-c", line]).await?;
        if output.code == 0 && output.stdout == stdout {
            return Ok(());
        }
        Err(Broken::Claim(format!(
            "`{line}` gave {output:?}, not {stdout:?}"
        )))
    }

    pub(super) async fn begin(&self, spec: &BoxSpec, command: &[&str]) -> Result<Begun, Broken> {
        let mut execution = self.execute(spec, command).await?;
        if execution.streams.len() != 3 {
            return Err(Broken::Claim(format!(
                "{} streams",
                execution.streams.len()
            )));
        }
        let stdout = BufReader::new(Receiver::from_owned_fd(execution.streams.remove(1))?);
        Ok(Begun {
            _execution: execution,
            stdout: Mutex::new(stdout),
        })
    }

    async fn execute(&self, spec: &BoxSpec, command: &[&str]) -> Result<Execution, Broken> {
        let command = command.iter().map(|word| (*word).to_owned()).collect();
        let exec = ExecSpec {
            command,
            cwd: None,
            env: Vec::new(),
            terminal: None,
        };
        Ok(self.runtime.exec(&spec.id, exec).await?)
    }

    /// Removes every box of the claim. What the claim found counts before what the removal did.
    pub(super) async fn clear(self, held: Held) -> Held {
        let mut cleared = Ok(());
        for id in &self.made {
            let removed = self.runtime.remove(id).await;
            cleared = cleared.and(removed.map_err(Broken::from));
        }
        let removed = std::fs::remove_file(&self.given);
        held.and(cleared).and(removed.map_err(Broken::from))
    }
}

async fn read(stream: Option<OwnedFd>) -> Result<String, Broken> {
    let stream = stream.ok_or_else(|| Broken::Claim("a stream is missing".to_owned()))?;
    let mut text = Vec::new();
    Receiver::from_owned_fd(stream)?
        .take(OUTPUT_BYTES_MAX)
        .read_to_end(&mut text)
        .await?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
