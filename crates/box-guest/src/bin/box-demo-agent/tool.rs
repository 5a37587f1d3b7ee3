//! Runs a command as a tool call does: bounded output, a deadline, and a cancel kills it.

use crate::session::{Agent, Stop};
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const OUTPUT_BYTES_MAX: u64 = 64 << 10;
const DEADLINE: Duration = Duration::from_secs(30);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// What a command left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ran {
    /// stdout, then stderr.
    pub(crate) output: String,
    pub(crate) success: bool,
}

/// Whether a program of this name runs.
pub(crate) fn is_there(words: &[&str]) -> bool {
    let mut command = command(words);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

pub(crate) fn run(agent: &mut Agent, folder: &Path, words: &[&str]) -> Result<Ran, Stop> {
    let started = command(words)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(error) => {
            let output = format!("could not run `{}`: {error}\n", words[0]);
            return Ok(Ran {
                output,
                success: false,
            });
        }
    };
    let streams = [
        child.stdout.take().map(read_all),
        child.stderr.take().map(read_all),
    ];
    let ended = wait(agent, &mut child);
    if ended != Ok(true) {
        // A process that is gone already cannot be killed, and need not be.
        drop(child.kill());
    }
    let status = child.wait();
    let mut output: String = streams.into_iter().flatten().map(text_of).collect();
    if !ended? {
        output.push_str("killed: it took too long\n");
    }
    let success = status.as_ref().is_ok_and(ExitStatus::success);
    Ok(Ran { output, success })
}

/// Whether it ended by itself within the deadline.
fn wait(agent: &mut Agent, child: &mut Child) -> Result<bool, Stop> {
    let until = Instant::now() + DEADLINE;
    while Instant::now() < until {
        if !matches!(child.try_wait(), Ok(None)) {
            return Ok(true);
        }
        agent.listen_for(LOOK_AGAIN)?;
    }
    Ok(false)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the demo agent's one home of processes"
)]
fn command(words: &[&str]) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    command
}

fn read_all<R: Read + Send + 'static>(stream: R) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // Whatever could be read is shown.
        drop(stream.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes));
        bytes
    })
}

fn text_of(reader: JoinHandle<Vec<u8>>) -> String {
    String::from_utf8_lossy(&reader.join().unwrap_or_default()).into_owned()
}
