//! A guest of its own for every test: pid 1 of a fresh pid namespace, so that nothing it starts
//! outlives it.

use box_api::control::TerminalSize;
use box_runtime::guest::{
    Attachment, Command as GuestCommand, Event, GuestError, Offsets, ProcessName, Stream,
};
use box_runtime::{ExecSpec, Execution};
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Longest any single step of a test may take.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// Ends when nothing that sleeps is left: who was killed may be seen dying for a moment.
pub(crate) const NO_SLEEPER: &str =
    "while pgrep -r S,R,D -x sleep >/dev/null; do :; done; echo gone";

/// Puts the listening socket where the guest expects it, then becomes the guest.
const START: &str = r#"exec 3<&0 </dev/null; exec "$0" "$@""#;

pub(crate) struct House {
    outer: Child,
    socket: PathBuf,
    _folder: tempfile::TempDir,
}

impl House {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_as(&[], arguments)
    }

    /// With these words before the guest's own command line.
    pub(crate) fn start_as(before: &[&str], arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("guest.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let mut words = vec!["--pid", "--fork", "--kill-child", "--mount-proc", "--"];
        words.extend(before);
        words.extend(["sh", "-c", START, env!("CARGO_BIN_EXE_box-guest")]);
        words.extend(arguments);
        let outer = command("unshare")
            .args(words)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("FROM_THE_BOX", "yes")
            .stdin(Stdio::from(OwnedFd::from(listener)))
            .spawn()
            .unwrap();
        Self {
            outer,
            socket,
            _folder: folder,
        }
    }

    pub(crate) fn connect(&self) -> OwnedFd {
        UnixStream::connect(&self.socket).unwrap().into()
    }

    /// The guest's pid as seen from here.
    pub(crate) fn guest_pid(&self) -> Option<i32> {
        let outer = self.outer.id();
        let path = format!("/proc/{outer}/task/{outer}/children");
        std::fs::read_to_string(path).ok()?.trim().parse().ok()
    }

    /// How the guest ended, as `unshare` passes it on.
    pub(crate) async fn wait_for_end(&mut self) -> i32 {
        let pid = self.outer.id();
        let ended = tokio::task::spawn_blocking(move || {
            let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap());
            rustix::process::waitid(
                rustix::process::WaitId::Pid(pid.unwrap()),
                rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT,
            )
        });
        tokio::time::timeout(DEADLINE, ended)
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        self.outer.wait().unwrap().code().unwrap()
    }

    pub(crate) async fn exec(&self, spec: ExecSpec) -> Result<Execution, GuestError> {
        box_runtime::guest::exec(self.connect(), spec).await
    }

    /// Runs a shell script to its end: code, stdout, stderr.
    pub(crate) async fn sh(&self, script: &str) -> (i32, String, String) {
        finish(self.exec(spec(&["sh", "-c", script])).await.unwrap()).await
    }

    pub(crate) async fn spawn(&self, name: &str, script: &str) -> u32 {
        let command = GuestCommand {
            arguments: ["sh", "-c", script].map(str::to_owned).to_vec(),
            folder: "/".to_owned(),
            variables: Vec::new(),
        };
        box_runtime::guest::spawn(self.connect(), &named(name), command)
            .await
            .unwrap()
    }

    pub(crate) async fn attach(&self, name: &str, stdout: u64, stderr: u64) -> Attachment {
        let from = Offsets { stdout, stderr };
        box_runtime::guest::attach(self.connect(), &named(name), from)
            .await
            .unwrap()
    }
}

impl Drop for House {
    fn drop(&mut self) {
        // With pid 1 goes everything else. `--kill-child` alone is undone by a change of uid.
        if let Some(pid) = self.guest_pid().and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        drop(self.outer.kill());
        drop(self.outer.wait());
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one home of processes in these tests"
)]
pub(crate) fn command(program: &str) -> Command {
    Command::new(program)
}

pub(crate) fn named(name: &str) -> ProcessName {
    ProcessName::parse(name).unwrap()
}

pub(crate) fn spec(words: &[&str]) -> ExecSpec {
    ExecSpec {
        command: words.iter().map(|word| (*word).to_owned()).collect(),
        cwd: Some("/".to_owned()),
        env: Vec::new(),
        terminal: None,
    }
}

pub(crate) fn terminal(words: &[&str]) -> ExecSpec {
    ExecSpec {
        terminal: Some(TerminalSize {
            rows: 33,
            columns: 77,
        }),
        ..spec(words)
    }
}

/// Closes stdin and reads the rest.
pub(crate) async fn finish(execution: Execution) -> (i32, String, String) {
    let [stdin, stdout, stderr]: [OwnedFd; 3] = execution.streams.try_into().unwrap();
    drop(stdin);
    let (stdout, stderr) = (read_all(stdout), read_all(stderr));
    let code = in_time(execution.process.wait()).await.unwrap();
    (
        code,
        in_time(stdout).await.unwrap(),
        in_time(stderr).await.unwrap(),
    )
}

pub(crate) fn read_all(fd: OwnedFd) -> tokio::task::JoinHandle<String> {
    tokio::task::spawn_blocking(move || {
        let mut bytes = Vec::new();
        // A terminal ends with EIO (tty_ioctl(4)), which is its end of file.
        drop(std::fs::File::from(fd).read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

pub(crate) async fn in_time<F: IntoFuture>(future: F) -> F::Output {
    tokio::time::timeout(DEADLINE, future)
        .await
        .expect("a step of the test took too long")
}

/// Collects output until `stdout` has so many bytes or the process ends.
pub(crate) async fn read_output(
    attachment: &mut Attachment,
    bytes: usize,
) -> (Vec<u8>, Option<i32>) {
    let mut stdout = Vec::new();
    while stdout.len() < bytes {
        match in_time(attachment.events.next()).await.unwrap() {
            Event::Output {
                stream: Stream::Stdout,
                bytes,
                ..
            } => stdout.extend(bytes),
            Event::Ended { code } => return (stdout, Some(code)),
            Event::Output { .. } | Event::Input(_) => {}
            Event::Displaced => panic!("displaced"),
        }
    }
    (stdout, None)
}
