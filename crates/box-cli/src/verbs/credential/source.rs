//! Where a secret is read from, and the reading.

use crate::complaint::Complaint;
use crate::output::Output;
use crate::terminal;
use crate::verbs::amount;
use box_api::control::CredentialSource;
use rustix::io::Errno;
use std::io::{IsTerminal as _, Read as _, stdin};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// The longest token known has about 200 bytes, a file of them a few thousand.
const SECRET_BYTES_MAX: usize = 64 << 10;

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Where the secret comes from, if not standard input")]
#[group(multiple = true)]
pub(in crate::verbs) struct From {
    /// Read it from a variable of this command
    #[arg(long, value_name = "NAME", conflicts_with_all = ["file", "command"])]
    env: Option<String>,
    /// Read it from a file that is yours alone
    #[arg(long, value_name = "PATH", conflicts_with = "command")]
    file: Option<PathBuf>,
    /// Let the host run this line, as you, and take what it prints; it must hold no secret itself
    #[arg(long, value_name = "LINE")]
    command: Option<String>,
    /// Run the command again this often, such as 50m; else before the secret expires, if it says
    #[arg(long, value_name = "TIME", value_parser = amount::span_ms, requires = "command")]
    every: Option<u64>,
}

impl From {
    /// Whether nothing was said.
    pub(super) fn is_open(&self) -> bool {
        self.env.is_none() && self.file.is_none() && self.command.is_none()
    }

    /// The secret and where it came from; none of a command, which the host runs.
    pub(super) fn read(
        self,
        output: &mut Output,
        what: &str,
        asked: &str,
    ) -> Result<(CredentialSource, String), Complaint> {
        let (source, bytes) = match self {
            Self {
                command: Some(command),
                every,
                ..
            } => {
                let source = CredentialSource::Command {
                    command,
                    every_ms: every,
                };
                return Ok((source, String::new()));
            }
            Self {
                env: Some(name), ..
            } => {
                let bytes = from_env(&name)?;
                (CredentialSource::Env { name }, bytes)
            }
            Self {
                file: Some(path), ..
            } => {
                let bytes = from_file(output, &path)?;
                let path = std::path::absolute(&path).unwrap_or(path);
                let path = path.display().to_string();
                (CredentialSource::File { path }, bytes)
            }
            Self { .. } => {
                if what == "claude" && stdin().is_terminal() {
                    output.note("`claude setup-token` prints a token for this");
                }
                let bytes = read_secret(output, &format!("credential for `{what}` (not shown): "))?;
                (CredentialSource::Typed, bytes)
            }
        };
        let secret = std::str::from_utf8(&bytes).map(str::trim);
        let secret = secret.unwrap_or_default().to_owned();
        if secret.is_empty() {
            return Err(Complaint::usage("no-secret", "no credential was given")
                .hinted(format!("paste it when asked, or `{asked} < <file>`")));
        }
        Ok((source, secret))
    }
}

fn from_env(name: &str) -> Result<Zeroizing<Vec<u8>>, Complaint> {
    let value = std::env::var_os(name).ok_or_else(|| {
        Complaint::usage("no-secret", format!("there is no variable `{name}`"))
            .hinted("it has to be exported: `export` shows those that are")
    })?;
    let bytes = Zeroizing::new(std::os::unix::ffi::OsStringExt::into_vec(value));
    fitting(bytes)
}

fn from_file(output: &mut Output, path: &Path) -> Result<Zeroizing<Vec<u8>>, Complaint> {
    let could_not = |error: std::io::Error| {
        let title = format!("could not read `{}`", path.display());
        Complaint::usage("no-secret", title).caused_by(error)
    };
    let file = std::fs::File::open(path).map_err(could_not)?;
    let about = file.metadata().map_err(could_not)?;
    if about.is_dir() {
        return Err(could_not(std::io::ErrorKind::IsADirectory.into()));
    }
    // A pipe has no mode of its own.
    if about.is_file() && about.mode() & 0o077 != 0 {
        output.note(&format!(
            "others may read `{0}`; `chmod 600 {0}` keeps it yours",
            path.display()
        ));
    }
    // No buffer that grows: it would leave copies behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(SECRET_BYTES_MAX + 2));
    let limit = u64::try_from(SECRET_BYTES_MAX + 1).unwrap_or(u64::MAX);
    file.take(limit)
        .read_to_end(&mut bytes)
        .map_err(could_not)?;
    fitting(bytes)
}

/// Reads without a buffer of the standard library, which would keep a copy.
pub(super) fn read_secret(
    output: &mut Output,
    question: &str,
) -> Result<Zeroizing<Vec<u8>>, Complaint> {
    let input = stdin();
    let typed = input.is_terminal();
    let could_not = |cause: String| {
        Complaint::failed("no-secret", "could not read the credential").caused_by(cause)
    };
    // Before the question: an answer can be there as soon as it is seen.
    let silent = typed.then(terminal::Mode::silent).transpose();
    let _silent = silent.map_err(|error| could_not(error.to_string()))?;
    if typed {
        output.ask(question);
    }
    let end = if typed { Some(b'\n') } else { None };
    let secret = read_until(&input, end).map_err(|errno| could_not(errno.to_string()))?;
    fitting(secret)
}

fn read_until(input: &impl AsFd, end: Option<u8>) -> Result<Zeroizing<Vec<u8>>, Errno> {
    let mut secret = Zeroizing::new(vec![0; SECRET_BYTES_MAX + 1]);
    let mut length = 0;
    let ended = |so_far: &[u8]| end.is_some_and(|end| so_far.contains(&end));
    while length < secret.len() && !ended(secret.get(..length).unwrap_or_default()) {
        match rustix::io::read(input, secret.get_mut(length..).unwrap_or_default()) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    secret.truncate(length);
    Ok(secret)
}

fn fitting(secret: Zeroizing<Vec<u8>>) -> Result<Zeroizing<Vec<u8>>, Complaint> {
    if secret.len() > SECRET_BYTES_MAX {
        let title = format!("a credential has at most {SECRET_BYTES_MAX} bytes");
        return Err(Complaint::usage("secret-too-long", title));
    }
    Ok(secret)
}
