//! The demo agent: speaks ACP v1 on stdin and stdout like a real coding agent, but follows a
//! script. Demo – no model.
//!
//! `box-demo-agent [--pause-ms <n>]` (50 unless told): how long it waits between chunks.
//! `box-demo-agent --reach <host>`: one plain HTTP request, what came of it on stdout; the script
//! runs it as a tool, so that a name look-up that hangs can be killed.
//!
//! On a prompt it does real work in the session's folder: writes a small project with a bug in it,
//! runs its tests (red), asks a question and a permission, fixes the bug, runs the tests again
//! (green), meets a host it may not reach, says what it did. In mode `bypassPermissions` it asks
//! nothing. A cancel is honoured wherever it waits.
//!
//! `client` is the other side, `session` what it may ask of us, `turn` the script; `project`,
//! `tool` and `reach` are what the script works with.

mod client;
mod project;
mod reach;
mod session;
mod tool;
mod turn;

use std::process::ExitCode;
use std::time::Duration;

/// Said wherever a person could take this for a real agent.
pub(crate) const LABEL: &str = "Demo – no model";
const PAUSE: Duration = Duration::from_millis(50);

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let pause = match words.as_slice() {
        [] => Some(PAUSE),
        ["--pause-ms", ms] => ms.parse().ok().map(Duration::from_millis),
        ["--reach", host] => return reach::run(host),
        _ => None,
    };
    let Some(pause) = pause else {
        client::complain("usage: box-demo-agent [--pause-ms <n> | --reach <host>]");
        return ExitCode::from(2);
    };
    session::Agent::new(client::Client::on_stdio(), pause).run();
    ExitCode::SUCCESS
}
