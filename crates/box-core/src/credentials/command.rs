//! Runs the command a secret comes from, as the user whose it is. What it prints is the secret and
//! goes nowhere else.

use super::secret::{Secret, SecretError};
use box_api::Owner;
use serde::Deserialize;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::time::timeout;
use zeroize::{Zeroize as _, Zeroizing};

/// Longest a command may take.
const DEADLINE: Duration = Duration::from_mins(1);
const OUTPUT_BYTES_MAX: usize = 64 << 10;
/// Longest line a person may give.
pub(super) const LINE_BYTES_MAX: usize = 4096;
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const SHELL: &str = "/bin/sh";
/// A number below this is in seconds, from there on in milliseconds (in seconds: the year 5138).
const SECONDS_MAX: i64 = 100_000_000_000;

/// Why a command gave no secret. Never holds what it printed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CommandError {
    #[error("could not run it: {0}")]
    Start(String),
    #[error("only root's host runs a command of another user")]
    NotYours,
    #[error("user {0} has no entry in `/etc/passwd`")]
    NoUser(u32),
    #[error("it did not end within a minute")]
    TooSlow,
    #[error("it ended with {0}")]
    Failed(String),
    #[error("it printed more than {OUTPUT_BYTES_MAX} bytes")]
    TooMuch,
    #[error("it printed JSON without a text `secret`")]
    Json,
    #[error("it gave an `expires_at` that is no time: RFC 3339 in UTC, or seconds since 1970")]
    Expiry,
    #[error("what it printed is already over")]
    Expired,
    #[error("it printed no secret: {0}")]
    Secret(#[from] SecretError),
}

/// A program to run.
pub(super) struct Line<'a> {
    pub(super) program: &'a str,
    pub(super) arguments: &'a [&'a str],
    pub(super) input: &'a [u8],
    /// Absent: as the host.
    pub(super) person: Option<Person>,
}

/// A user of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Person {
    uid: u32,
    gid: u32,
    name: String,
    home: PathBuf,
}

/// A secret and when it ends.
pub(super) struct Fetched {
    pub(super) secret: Secret,
    pub(super) expires_at_ms: Option<i64>,
}

/// Runs a person's line and takes what it prints. `host_uid` is the user the host runs as.
pub(super) async fn fetch(
    line: &str,
    owner: Owner,
    host_uid: u32,
    now_ms: i64,
) -> Result<Fetched, CommandError> {
    let Owner::Uid(uid) = owner;
    let person = person(uid)?;
    if uid != host_uid && host_uid != 0 {
        return Err(CommandError::NotYours);
    }
    let line = Line {
        program: SHELL,
        arguments: &["-c", line],
        input: &[],
        person: Some(person),
    };
    let fetched = parse(&run(line).await?)?;
    if fetched.expires_at_ms.is_some_and(|at_ms| at_ms <= now_ms) {
        return Err(CommandError::Expired);
    }
    Ok(fetched)
}

/// Runs a program to its end; gives what it printed.
pub(super) async fn run(line: Line<'_>) -> Result<Zeroizing<Vec<u8>>, CommandError> {
    let failed = |error: io::Error| CommandError::Start(error.to_string());
    let mut child = started(&line).map_err(failed)?;
    let group = child.id();
    let exchange = exchange(&mut child, line.input);
    let outcome = timeout(DEADLINE, exchange).await;
    if !matches!(outcome, Ok(Ok(_))) {
        end(group);
        // Killed just now; the runtime reaps what does not go at once.
        drop(timeout(DEADLINE, child.wait()).await);
    }
    outcome.map_err(|_| CommandError::TooSlow)?
}

fn started(line: &Line<'_>) -> io::Result<Child> {
    let mut command = Command::new(line.program);
    command
        .args(line.arguments)
        .env_clear()
        .env("PATH", PATH)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true);
    if let Some(person) = &line.person {
        command
            .env("HOME", &person.home)
            .env("USER", &person.name)
            .env("LOGNAME", &person.name);
        if person.uid != rustix::process::geteuid().as_raw() && is_root() {
            // Supplementary groups are dropped with it (std::os::unix::process, CommandExt::uid).
            command.gid(person.gid).uid(person.uid);
        }
    }
    command.spawn()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

async fn exchange(child: &mut Child, input: &[u8]) -> Result<Zeroizing<Vec<u8>>, CommandError> {
    let failed = |error: io::Error| CommandError::Start(error.to_string());
    if let Some(mut stdin) = child.stdin.take() {
        match stdin.write_all(input).await {
            // It need not read.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            written => written.map_err(failed)?,
        }
    }
    let mut output = Zeroizing::new(vec![0; OUTPUT_BYTES_MAX + 1]);
    let mut length = 0;
    if let Some(mut stdout) = child.stdout.take() {
        while length < output.len() {
            let space = output.get_mut(length..).unwrap_or_default();
            match stdout.read(space).await.map_err(failed)? {
                0 => break,
                read => length += read,
            }
        }
    }
    if length > OUTPUT_BYTES_MAX {
        return Err(CommandError::TooMuch);
    }
    let status = child.wait().await.map_err(failed)?;
    if !status.success() {
        return Err(CommandError::Failed(status.to_string()));
    }
    output.truncate(length);
    Ok(output)
}

/// Ends the command and all it started.
fn end(group: Option<u32>) {
    let group = group.and_then(|id| i32::try_from(id).ok());
    if let Some(group) = group.and_then(rustix::process::Pid::from_raw) {
        // Fails when all of them are gone.
        let signal = rustix::process::Signal::KILL;
        rustix::process::kill_process_group(group, signal).unwrap_or_default();
    }
}

/// As `{"secret": …, "expires_at": …}` has it.
#[derive(Deserialize)]
struct Structured {
    secret: String,
    #[serde(default)]
    expires_at: Option<Moment>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Moment {
    Text(String),
    Number(i64),
}

fn parse(output: &[u8]) -> Result<Fetched, CommandError> {
    let text = std::str::from_utf8(output).map_err(|_| SecretError::Characters)?;
    let text = text.trim();
    if !text.starts_with('{') {
        return Ok(Fetched {
            secret: Secret::parse(text.to_owned())?,
            expires_at_ms: None,
        });
    }
    // The error of the parser could hold what it read.
    let mut said: Structured = serde_json::from_str(text).map_err(|_| CommandError::Json)?;
    let expires_at_ms = said.expires_at.as_ref().map(moment_ms).transpose();
    if expires_at_ms.is_err() {
        said.secret.zeroize();
    }
    Ok(Fetched {
        expires_at_ms: expires_at_ms?,
        secret: Secret::parse(said.secret)?,
    })
}

fn moment_ms(moment: &Moment) -> Result<i64, CommandError> {
    match moment {
        Moment::Number(seconds @ 0..SECONDS_MAX) => Ok(seconds * 1000),
        Moment::Number(ms @ SECONDS_MAX..) => Ok(*ms),
        Moment::Number(_) => Err(CommandError::Expiry),
        Moment::Text(text) => {
            let at: SystemTime =
                humantime::parse_rfc3339_weak(text).map_err(|_| CommandError::Expiry)?;
            let since = at.duration_since(UNIX_EPOCH);
            let ms = since
                .ok()
                .and_then(|since| i64::try_from(since.as_millis()).ok());
            ms.ok_or(CommandError::Expiry)
        }
    }
}

fn person(uid: u32) -> Result<Person, CommandError> {
    let failed = |error: io::Error| CommandError::Start(format!("`/etc/passwd`: {error}"));
    let text = std::fs::read_to_string("/etc/passwd").map_err(failed)?;
    find_person(&text, uid).ok_or(CommandError::NoUser(uid))
}

/// `name:password:uid:gid:gecos:home:shell` (passwd(5)).
fn find_person(passwd: &str, uid: u32) -> Option<Person> {
    passwd.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, its_uid, gid, _, home, ..] = fields.as_slice() else {
            return None;
        };
        if its_uid.parse() != Ok(uid) {
            return None;
        }
        Some(Person {
            uid,
            gid: gid.parse().ok()?,
            name: (*name).to_owned(),
            home: PathBuf::from(home),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: i64 = 1_790_000_000_000;

    fn me() -> Owner {
        Owner::Uid(rustix::process::getuid().as_raw())
    }

    async fn fetched(line: &str) -> Result<(u32, Option<i64>), CommandError> {
        let uid = rustix::process::getuid().as_raw();
        let fetched = fetch(line, me(), uid, NOW_MS).await?;
        Ok((fetched.secret.chars(), fetched.expires_at_ms))
    }

    #[tokio::test]
    async fn what_a_command_prints_is_the_secret() {
        assert_eq!(fetched("echo abcdef").await.unwrap(), (6, None));
        let json = |expiry: &str| format!(r#"echo '{{"secret":"abc","expires_at":{expiry}}}'"#);
        for (expiry, at_ms) in [
            ("1800000000", 1_800_000_000_000),
            ("1800000000000", 1_800_000_000_000),
            (r#""2027-01-15T08:00:00Z""#, 1_800_000_000_000),
        ] {
            let got = fetched(&json(expiry)).await.unwrap();
            assert_eq!(got, (3, Some(at_ms)), "{expiry}");
        }
        assert_eq!(
            fetched(&json("null")).await.unwrap(),
            (3, None),
            "no expiry is one that is not said"
        );
    }

    #[tokio::test]
    async fn what_is_no_secret_is_refused_and_not_shown() {
        for line in [
            "exit 3",
            "true",
            "echo TELLTALE TELLTALE",
            r#"echo '{"token":"TELLTALE"}'"#,
            r#"echo '{"secret":"TELLTALE","expires_at":"soon"}'"#,
            r#"echo '{"secret":"TELLTALE","expires_at":1}'"#,
            "head -c 70000 /dev/zero",
        ] {
            let error = fetched(line).await.unwrap_err();
            assert!(!format!("{error} {error:?}").contains("TELLTALE"), "{line}");
        }
        let error = fetched("exit 3").await.unwrap_err();
        assert_eq!(error.to_string(), "it ended with exit status: 3");
    }

    #[tokio::test]
    async fn nothing_of_the_hosts_environment_reaches_a_command() {
        let line = "test -z \"$CARGO_MANIFEST_DIR\" && test \"$HOME\" && echo abc";
        assert_eq!(fetched(line).await.unwrap(), (3, None));
    }

    #[tokio::test]
    async fn a_users_host_runs_nothing_for_others() {
        let refused = fetch("echo abc", Owner::Uid(0), 1000, NOW_MS).await;
        assert!(matches!(refused.err(), Some(CommandError::NotYours)));
    }

    #[test]
    fn a_user_is_found_by_number() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nme:x:1000:1001:,,,:/home/me:/bin/sh\n";
        let found = find_person(passwd, 1000).unwrap();
        assert_eq!((found.gid, &*found.name), (1001, "me"));
        assert_eq!(found.home, PathBuf::from("/home/me"));
        assert_eq!(find_person(passwd, 1001), None);
    }
}
