//! `ps`: every process the box's user can see, from `/proc`.

use crate::Ended;
use serde::Serialize;
use std::fs;
use std::io::Write as _;

/// A box's limit is far below.
const PROCESSES_MAX: usize = 65_536;
const COMMAND_CHARS_MAX: usize = 400;

#[derive(Serialize)]
struct Line {
    pid: u32,
    parent: u32,
    /// As `proc_pid_stat(5)` has it: `R`, `S`, `Z`, ….
    state: String,
    command: String,
}

pub(crate) fn list() -> Ended {
    let entries =
        fs::read_dir("/proc").map_err(|error| format!("could not read /proc: {error}"))?;
    let own = std::process::id();
    let mut pids: Vec<u32> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != own)
        .take(PROCESSES_MAX)
        .collect();
    pids.sort_unstable();
    let mut out = std::io::stdout().lock();
    for line in pids.into_iter().filter_map(look) {
        let text = serde_json::to_string(&line).map_err(|error| error.to_string())?;
        writeln!(out, "{text}").map_err(|error| format!("could not print: {error}"))?;
    }
    Ok(())
}

/// One that ends meanwhile is not there.
fn look(pid: u32) -> Option<Line> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name, in brackets, may hold anything.
    let open = stat.iter().position(|byte| *byte == b'(')?;
    let close = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(stat.get(close + 2..)?).ok()?;
    let mut fields = rest.split(' ');
    let state = fields.next()?.to_owned();
    let parent = fields.next()?.parse().ok()?;
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<_> = line
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty())
        .map(String::from_utf8_lossy)
        .collect();
    let command = if words.is_empty() {
        // Kernel threads, the dead, and process 1, which nobody may look into.
        format!("[{}]", String::from_utf8_lossy(stat.get(open + 1..close)?))
    } else {
        words.join(" ")
    };
    Some(Line {
        pid,
        parent,
        state,
        command: command.chars().take(COMMAND_CHARS_MAX).collect(),
    })
}
