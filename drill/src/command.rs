//! Runs one command to its end: with a deadline, and only as long as the drill is not told to stop.

use crate::stage::Ran;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use std::io::{self, Write as _};
use std::os::fd::BorrowedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// More of what a command says is not kept.
const OUTPUT_BYTES_MAX: u64 = 1 << 20;

/// What a command is held to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Leash<'a> {
    pub(crate) time_max: Duration,
    /// Readable: the drill is to end, and the command with it. Absent: it runs on.
    pub(crate) stop: Option<BorrowedFd<'a>>,
}

/// Runs it to its end, or kills it with all it started. In a process group of its own, so that a
/// Ctrl-C reaches the drill alone, which then ends its commands one by one.
///
/// # Errors
/// When it cannot be started; [`io::ErrorKind::Interrupted`] when the drill is to end.
pub(crate) fn finish(mut command: Command, input: &[u8], leash: Leash<'_>) -> io::Result<Ran> {
    let start = Instant::now();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A command that does not read its input has ended or will be judged by its output.
        drop(stdin.write_all(input));
    }
    let stdout = child.stdout.take().map(reader);
    let stderr = child.stderr.take().map(reader);
    let status = wait(&mut child, start + leash.time_max, leash.stop)?;
    let took = start.elapsed();
    let text = |reader: Option<JoinHandle<String>>| {
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

/// Whether there is something to read.
pub(crate) fn is_readable(descriptor: BorrowedFd<'_>) -> bool {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let mut polled = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
    poll(&mut polled, Some(&now)).is_ok_and(|ready| ready > 0)
}

/// Waits for its end; one that has not ended by then is killed.
fn wait(
    child: &mut Child,
    deadline: Instant,
    stop: Option<BorrowedFd<'_>>,
) -> io::Result<ExitStatus> {
    let pidfd = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        let mut polled = vec![PollFd::new(&pidfd, PollFlags::IN)];
        polled.extend(stop.map(|stop| PollFd::from_borrowed_fd(stop, PollFlags::IN)));
        match poll(&mut polled, Some(&left)) {
            Ok(0) => return kill(child),
            Ok(_) if polled.first().is_some_and(|end| !end.revents().is_empty()) => {
                return child.wait();
            }
            Ok(_) => {
                kill(child)?;
                return Err(io::ErrorKind::Interrupted.into());
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

fn kill(child: &mut Child) -> io::Result<ExitStatus> {
    // Not collected yet, so the number is still its group's.
    match kill_process_group(Pid::from_child(child), Signal::KILL) {
        Ok(()) | Err(Errno::SRCH) => child.wait(),
        Err(errno) => Err(errno.into()),
    }
}

fn reader(stream: impl io::Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(|| {
        let mut stream = stream.take(OUTPUT_BYTES_MAX);
        let mut bytes = Vec::new();
        // What could be read before an error is what there is to judge by.
        drop(io::Read::read_to_end(&mut stream, &mut bytes));
        // So that a command that says more does not wait for ever.
        drop(io::copy(&mut stream.into_inner(), &mut io::sink()));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd as _;

    #[expect(clippy::disallowed_methods, reason = "a process of this test")]
    fn shell(line: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", line]);
        shell
    }

    fn within(time_max: Duration) -> Leash<'static> {
        Leash {
            time_max,
            stop: None,
        }
    }

    #[test]
    fn a_command_past_its_time_is_killed_with_what_it_started() {
        let begun = Instant::now();
        // The shell's child holds the output open for a minute.
        let ran = finish(
            shell("sleep 60 & wait"),
            &[],
            within(Duration::from_millis(100)),
        )
        .unwrap();
        assert_eq!(ran.code, 128 + 9);
        assert!(begun.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn a_drill_that_is_to_end_waits_for_no_command() {
        let (told, mut tell) = io::pipe().unwrap();
        assert!(!is_readable(told.as_fd()));
        tell.write_all(b"x").unwrap();
        assert!(is_readable(told.as_fd()));
        let leash = Leash {
            time_max: Duration::from_mins(1),
            stop: Some(told.as_fd()),
        };
        let error = finish(shell("sleep 60"), &[], leash).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
    }

    #[test]
    fn a_command_that_says_too_much_still_ends() {
        let ran = finish(
            shell("head -c 3000000 /dev/zero; echo said >&2"),
            &[],
            within(Duration::from_mins(1)),
        )
        .unwrap();
        assert_eq!((ran.code, ran.stdout.len()), (0, 1 << 20));
        assert_eq!(ran.stderr, "said\n");
    }
}
