//! Asks a credential helper: `docker-credential-<name> get`, the registry on its standard input,
//! the login as JSON on its output (docker-credential-helpers, *Development*).

use super::{Login, secret};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Deserialize;
use std::ffi::OsStr;
use std::io::{self, Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// A helper may ask a person to unlock their keys.
const ANSWER_TIME_MAX: Duration = Duration::from_mins(1);
const ANSWER_BYTES_MAX: usize = 64 << 10;
const NAME_CHARS_MAX: usize = 64;
/// What helpers call a user whose secret is a token.
const TOKEN_USER: &str = "<token>";
/// What every helper says when it has nothing.
const NOTHING: &str = "credentials not found";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    username: String,
    #[serde(deserialize_with = "secret")]
    secret: Zeroizing<String>,
}

/// # Errors
/// Why it gave no answer, for a person. Having no login is an answer.
pub(super) fn ask(name: &str, registry: &str, path: Option<&OsStr>) -> Result<Login, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(plain) {
        return Err("that is no name of a helper".to_owned());
    }
    let program = format!("docker-credential-{name}");
    let program = std::env::split_paths(path.unwrap_or_default())
        .map(|folder| folder.join(&program))
        .find(|program| program.is_absolute() && program.is_file())
        .ok_or("it is not installed")?;
    let mut child = Ended(start(&program).map_err(|error| error.to_string())?);
    let (answer, late) = converse(&mut child.0, registry).map_err(|error| error.to_string())?;
    if late {
        return Err(format!("it took over {} s", ANSWER_TIME_MAX.as_secs()));
    }
    let status = child.0.wait().map_err(|error| error.to_string())?;
    if !status.success() {
        let said = String::from_utf8_lossy(&answer);
        let said = said.lines().next().unwrap_or_default();
        return if said.contains(NOTHING) {
            Ok(Login::Nobody)
        } else {
            Err(format!("{status}: {said}"))
        };
    }
    let answer: Answer =
        serde_json::from_slice(&answer).map_err(|_| "its answer cannot be read".to_owned())?;
    Ok(if answer.username == TOKEN_USER {
        Login::Token(answer.secret)
    } else {
        Login::Password {
            user: answer.username,
            secret: answer.secret,
        }
    })
}

#[expect(
    clippy::disallowed_methods,
    reason = "the user's own helper, by its path, without a shell"
)]
fn start(program: &std::path::Path) -> io::Result<Child> {
    Command::new(program)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
}

/// A process that ends with its handle.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // Ended already is as good; reaped it must be.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// What it answers, and whether it was too late to be heard to the end.
fn converse(child: &mut Child, registry: &str) -> io::Result<(Zeroizing<Vec<u8>>, bool)> {
    let deadline = Instant::now() + ANSWER_TIME_MAX;
    if let Some(mut stdin) = child.stdin.take() {
        // One that does not read may have ended for a reason it tells.
        drop(stdin.write_all(format!("{registry}\n").as_bytes()));
    }
    let mut answer = Zeroizing::new(vec![0; ANSWER_BYTES_MAX]);
    let mut end = 0;
    let Some(mut stdout) = child.stdout.take() else {
        return Err(io::ErrorKind::BrokenPipe.into());
    };
    let late = loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        if poll(&mut [PollFd::new(&stdout, PollFlags::IN)], Some(&left))? == 0 {
            break true;
        }
        match stdout.read(&mut answer[end..])? {
            0 => break false,
            count => end += count,
        }
    };
    answer.truncate(end);
    Ok((answer, late))
}
