//! `box list`: the caller's boxes.

use super::{Ended, Print};
use crate::age;
use crate::client::unexpected;
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::output::{Format, Output, table, visible};
use box_api::control::{BoxInfo, BoxState, EventKind, NetPreset, Outcome, Profile, Request, Trash};
use box_api::thread::{ThreadInfo, ThreadState};

/// Threads named in the column.
const THREADS_SHOWN: usize = 3;

/// List your boxes
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  box list\n  box list --json\n  box list --trash")]
pub(super) struct Args {
    /// Those that were removed and can be taken back
    #[arg(long)]
    trash: bool,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: &Args) -> Ended {
    let mut output = args.print.output();
    let client = host::reach(&mut output, OtherBuild::Bear)?;
    let request = if args.trash {
        Request::Trash(Trash::List)
    } else {
        Request::List
    };
    let outcome = client.ask(&mut output, &request)?;
    let Outcome::Boxes { boxes } = outcome else {
        return Err(unexpected(&outcome));
    };
    if output.format() == Format::Json {
        output.object(&boxes)?;
    } else if args.trash {
        tell_trash(&mut output, &boxes)?;
    } else if boxes.is_empty() {
        output.note("no boxes yet; `box new demo` makes one");
    } else {
        output.data(shown(&boxes, age::now_ms()).as_bytes())?;
        for (one, why) in boxes.iter().filter_map(|one| Some((one, frozen_for(one)?))) {
            let name = &one.name;
            output.note(&format!(
                "box `{name}` is frozen: {}; `box thaw {name}` lets it go on",
                visible(why)
            ));
        }
    }
    Ok(0)
}

fn tell_trash(output: &mut Output, boxes: &[BoxInfo]) -> Result<(), Complaint> {
    if boxes.is_empty() {
        output.note("the trash is empty");
        return Ok(());
    }
    let now_ms = age::now_ms();
    let heading = ["NAME", "ID", "REMOVED", "IMAGE", "PROFILE"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    rows.extend(boxes.iter().map(|one| {
        let removed = one.trashed_at_ms.unwrap_or(now_ms);
        vec![
            one.name.to_string(),
            one.id.to_string(),
            format!("{} ago", age::short(removed, now_ms)),
            visible(&one.image).into_owned(),
            profile(one.profile).to_owned(),
        ]
    }));
    output.data(table::columns(&rows).as_bytes())
}

fn shown(boxes: &[BoxInfo], now_ms: i64) -> String {
    let heading = ["NAME", "STATE", "IMAGE", "PROFILE", "NET", "AGE", "THREADS"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    rows.extend(boxes.iter().map(|one| {
        vec![
            one.name.to_string(),
            match frozen_for(one) {
                Some(_) => "frozen: signal",
                None if one.frozen => FROZEN,
                None => state(one.state),
            }
            .to_owned(),
            visible(&one.image).into_owned(),
            profile(one.profile).to_owned(),
            net(one.net).to_owned(),
            age::short(one.created_at_ms, now_ms),
            threads(&one.threads),
        ]
    }));
    table::columns(&rows)
}

fn threads(threads: &[ThreadInfo]) -> String {
    let shown = threads.iter().take(THREADS_SHOWN);
    let mut words: Vec<String> = shown
        .map(|thread| format!("{} {}", visible(&thread.agent), thread_state(thread.state)))
        .collect();
    let over = threads.len().saturating_sub(THREADS_SHOWN);
    if over > 0 {
        words.push(format!("{over} more"));
    }
    if words.is_empty() {
        "-".to_owned()
    } else {
        words.join(", ")
    }
}

/// What a box did that it was frozen for.
pub(super) fn frozen_for(one: &BoxInfo) -> Option<&str> {
    let why = one.frozen_why.as_deref()?;
    let mut signals = one.events.iter();
    signals
        .any(|event| event.kind == EventKind::Signal && event.text == why)
        .then_some(why)
}

/// What a running box is called that stands still.
pub(super) const FROZEN: &str = "frozen";

pub(super) fn state(state: BoxState) -> &'static str {
    match state {
        BoxState::Creating => "being made",
        BoxState::Stopped => "stopped",
        BoxState::Starting => "starting",
        BoxState::Running => "running",
        BoxState::Stopping => "stopping",
        BoxState::Removing => "being removed",
        BoxState::Failed => "failed",
        BoxState::Restoring => "being restored",
        BoxState::Trashed => "in the trash",
    }
}

pub(super) fn profile(profile: Profile) -> &'static str {
    match profile {
        Profile::Locked => "locked",
        Profile::Root => "root",
    }
}

pub(super) fn net(net: NetPreset) -> &'static str {
    match net {
        NetPreset::Balanced => "balanced",
        NetPreset::Open => "open",
        NetPreset::Locked => "locked",
    }
}

pub(super) fn thread_state(state: ThreadState) -> &'static str {
    match state {
        ThreadState::Starting => "starting",
        ThreadState::Running => "running",
        ThreadState::NeedsYou => "needs you",
        ThreadState::Asks => "asks",
        ThreadState::Idle => "idle",
        ThreadState::Background => "in the background",
        ThreadState::Parked => "parked",
        ThreadState::Failed => "failed",
    }
}
