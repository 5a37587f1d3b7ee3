//! `box threads`: the threads of a box, or of every box.

use super::list::thread_state;
use super::{Ended, Print};
use crate::age;
use crate::client::unexpected;
use crate::host::{self, OtherBuild};
use crate::output::{Format, table, visible_line};
use box_api::BoxName;
use box_api::control::{Outcome, Request, ThreadsAsk};
use box_api::thread::ThreadInBox;

/// Longest title and longest last line of a row, characters.
const TITLE_CHARS_MAX: usize = 40;
const LAST_CHARS_MAX: usize = 60;

/// List the threads of a box, or of all of them
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box threads\n  \
    box threads demo --all\n  \
    box attach demo/2tq5\n\n\
    ⟳ it works, ⚠ it needs you, ? it asks you, ○ idle, ◍ idle with work in the background,\n\
    ⏸ parked, ✗ failed. The first characters of a thread's id are enough to name it.")]
pub(super) struct Args {
    #[arg(value_name = "NAME", value_parser = BoxName::parse)]
    name: Option<BoxName>,
    /// Those put away as well
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: &Args) -> Ended {
    let mut output = args.print.output();
    let client = host::reach(&mut output, OtherBuild::Bear)?;
    let request = Request::Threads(ThreadsAsk {
        name: args.name.clone(),
        archived: args.all,
    });
    let outcome = client.ask(&mut output, &request)?;
    let Outcome::Threads { threads } = outcome else {
        return Err(unexpected(&outcome));
    };
    if output.format() == Format::Json {
        output.object(&threads)?;
    } else if threads.is_empty() {
        output.note("no thread; `box run <agent> \"…\"` begins one");
    } else {
        output.data(shown(&threads, age::now_ms()).as_bytes())?;
    }
    Ok(0)
}

fn shown(threads: &[ThreadInBox], now_ms: i64) -> String {
    let heading = ["", "THREAD", "TITLE", "AGENT", "STATE", "AGE", "LAST"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    rows.extend(threads.iter().map(|ThreadInBox { name, info, .. }| {
        let mut state = thread_state(info.state).to_owned();
        if info.queued > 0 {
            state = format!("{state}, {} waiting", info.queued);
        }
        if info.background > 0 {
            state = format!("{state}, {} in the background", info.background);
        }
        if info.archived {
            state = format!("{state}, put away");
        }
        vec![
            info.state.symbol().to_string(),
            format!("{name}/{}", info.thread),
            cut(&info.title, TITLE_CHARS_MAX),
            visible_line(&info.agent),
            state,
            age::short(info.changed_at_ms, now_ms),
            cut(&info.last, LAST_CHARS_MAX),
        ]
    }));
    table::columns(&rows)
}

fn cut(text: &str, chars_max: usize) -> String {
    let text = visible_line(text);
    let mut cut: String = text.chars().take(chars_max).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;
    use box_api::thread::{ThreadInfo, ThreadState};
    use box_api::{BoxId, ThreadId};

    #[test]
    fn a_row_says_what_a_thread_does_and_writes_no_other() {
        let thread = ThreadInBox {
            box_id: BoxId::from_random([1; 10]),
            name: BoxName::parse("demo").unwrap(),
            info: ThreadInfo {
                thread: ThreadId::from_random([2; 10]),
                agent: "claude".into(),
                title: "fix\nthe \x1b[31mbuild".into(),
                state: ThreadState::Background,
                created_at_ms: 0,
                changed_at_ms: 0,
                last: "x".repeat(100),
                queued: 2,
                background: 1,
                decisions: 0,
                archived: false,
                forked_from: None,
                parked_until_ms: None,
            },
        };
        let shown = shown(&[thread], 180_000);
        assert_eq!(shown.lines().count(), 2, "{shown}");
        for part in [
            "◍",
            "demo/",
            "2 waiting, 1 in the background",
            "3m",
            "xxx",
            "…",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert!(!shown.contains('\x1b'), "{shown}");
    }
}
