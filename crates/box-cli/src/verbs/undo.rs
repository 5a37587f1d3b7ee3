//! `box undo`: brings files and conversation of a box back to before a turn, after a yes.

use super::confirm::{self, Answer, Question};
use super::{Ended, Print, list, restore};
use crate::age;
use crate::client::unexpected;
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::output::{Format, Output, table, visible};
use crate::terminal;
use box_api::control::{Outcome, Request, Restored, Snapshots};
use box_api::restore_point::{RestorePoint, RestorePoints};
use box_api::{BoxName, Label};

/// Bring a box and its conversations back to before a turn
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box undo demo\n  \
    box undo demo --list\n  \
    box undo demo --to turn-3 --force\n  \
    box undo demo --undo\n\n\
    Asks first. Without a terminal it needs --force (else exit code 2).\n\
    What was said stays to be read, marked as undone; the agent goes on from what it knew then. \
    What left the box (a pushed commit, a message) is not undone.\n\
    `box new other --from demo/turn-3` goes on from there in another box instead.")]
#[expect(clippy::struct_excessive_bools, reason = "a flag is a bool to clap")]
pub(super) struct Args {
    #[arg(value_name = "NAME", value_parser = BoxName::parse)]
    name: BoxName,
    /// Before which turn, as `--list` names it; the last one if not said
    #[arg(long, value_name = "TURN", value_parser = turn, conflicts_with_all = ["list", "undo"])]
    to: Option<Label>,
    /// List what the box can be brought back to
    #[arg(long, conflicts_with = "undo")]
    list: bool,
    /// Take the last undo or restore back
    #[arg(long)]
    undo: bool,
    /// Do not ask
    #[arg(long, short)]
    force: bool,
    #[command(flatten)]
    pub(super) print: Print,
}

/// `turn-3`, or `3`
fn turn(text: &str) -> Result<Label, String> {
    let number = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    let label = if number {
        format!("turn-{text}")
    } else {
        text.to_owned()
    };
    Label::parse(&label).map_err(|error| error.to_string())
}

/// Where a box goes.
struct Target {
    label: Label,
    /// What is asked and told.
    words: String,
}

pub(super) fn run(args: &Args) -> Ended {
    let mut output = args.print.output();
    let name = args.name.clone();
    let points = restore_points(&mut output, &name)?;
    if args.list {
        return show(&mut output, &name, &points);
    }
    let target = if args.undo {
        forward(&name, &points)?
    } else {
        back(&name, &points, args.to.as_ref())?
    };
    if !args.force && !agreed(&mut output, args, &target)? {
        output.note("nothing was undone");
        return Ok(1);
    }
    let asked = Snapshots::Restore {
        name,
        label: target.label.clone(),
    };
    let client = host::reach(&mut output, OtherBuild::Bear)?;
    let outcome = client.ask(&mut output, &Request::Snapshots(asked))?;
    let Outcome::Restored(restored) = outcome else {
        return Err(unexpected(&outcome));
    };
    match output.format() {
        Format::Json => output.object(&restored)?,
        Format::Text => tell(&mut output, &restored, &target),
    }
    Ok(0)
}

fn restore_points(output: &mut Output, name: &BoxName) -> Result<RestorePoints, Complaint> {
    let request = Request::RestorePoints { name: name.clone() };
    let outcome = host::reach(output, OtherBuild::Bear)?.ask(output, &request)?;
    let Outcome::RestorePoints(points) = outcome else {
        return Err(unexpected(&outcome));
    };
    Ok(points)
}

/// The turn that is meant; the last one that still counts, if none was named.
fn back(name: &BoxName, points: &RestorePoints, to: Option<&Label>) -> Result<Target, Complaint> {
    let all = &points.points;
    let found = match to {
        Some(label) => all.iter().find(|point| point.label == *label),
        None => all.iter().rfind(|point| !point.undone),
    };
    let Some(point) = found else {
        return Err(none(name, points, to));
    };
    let (label, words) = (&point.label, visible(&point.words));
    Ok(Target {
        label: label.clone(),
        words: format!("before `{label}` ({words})"),
    })
}

fn none(name: &BoxName, points: &RestorePoints, to: Option<&Label>) -> Complaint {
    let title = match to {
        Some(label) => format!("box `{name}` cannot be brought back to before `{label}`"),
        None => format!("box `{name}` has no turn that can be undone"),
    };
    let complaint = Complaint::failed("nothing-to-undo", title);
    match (&points.none_because, points.points.is_empty()) {
        (Some(why), true) => complaint
            .caused_by(format!("it has no restore points: {why}"))
            .hinted(format!(
                "`box snapshot {name}` keeps it by hand, `box restore {name} <label>` comes back"
            )),
        (_, true) => complaint.caused_by("it has no restore points yet"),
        (_, false) => complaint.hinted(format!("`box undo {name} --list` shows what there is")),
    }
}

fn forward(name: &BoxName, points: &RestorePoints) -> Result<Target, Complaint> {
    let Some(label) = &points.way_forward else {
        let title = format!("nothing was undone in box `{name}`");
        return Err(Complaint::failed("nothing-to-undo", title));
    };
    Ok(Target {
        label: label.clone(),
        words: format!("what it was before it went back (`{label}`)"),
    })
}

fn agreed(output: &mut Output, args: &Args, target: &Target) -> Result<bool, Complaint> {
    let name = &args.name;
    if !terminal::can_ask() || output.format() == Format::Json {
        let title = format!("undoing in box `{name}` needs a yes");
        return Err(Complaint::usage("needs-yes", title)
            .caused_by("there is no terminal to ask at")
            .hinted(format!("`box undo {name} --force` does not ask")));
    }
    let text = if restore::is_running(output, name)? {
        format!("stop box `{name}` and bring it back to {}", target.words)
    } else {
        format!("bring box `{name}` back to {}", target.words)
    };
    let question = Question {
        text: &text,
        default: Answer::No,
    };
    Ok(confirm::ask(output, &question)? == Answer::Yes)
}

fn tell(output: &mut Output, restored: &Restored, target: &Target) {
    let info = &restored.info;
    let name = &info.name;
    output.note(&format!(
        "box `{name}` is {}, its conversations too, and is {}",
        target.words,
        list::state(info.state)
    ));
    output.note(&format!(
        "hint: `box undo {name} --undo` takes this back, as `box restore {name} {}` does",
        restored.undo
    ));
}

fn show(output: &mut Output, name: &BoxName, points: &RestorePoints) -> Ended {
    if output.format() == Format::Json {
        output.object(points)?;
        return Ok(0);
    }
    if points.points.is_empty() {
        output.note(&format!("box `{name}` has no restore points"));
    } else {
        output.data(shown(&points.points, age::now_ms()).as_bytes())?;
    }
    if let Some(why) = &points.none_because {
        output.note(&format!("its next turn will have none: {why}"));
    }
    Ok(0)
}

fn shown(points: &[RestorePoint], now_ms: i64) -> String {
    let heading = ["TURN", "AGE", "SIZE", "TOOK", "PROMPT"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    rows.extend(points.iter().map(|one| {
        let undone = if one.undone { "(undone) " } else { "" };
        vec![
            one.label.to_string(),
            age::short(one.at_ms, now_ms),
            table::bytes(one.bytes),
            format!("{} ms", one.took_us / 1000),
            format!("{undone}{}", visible(&one.words)),
        ]
    }));
    table::columns(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use box_api::ThreadId;

    fn point(number: u32) -> RestorePoint {
        RestorePoint {
            label: Label::parse(&format!("turn-{number}")).unwrap(),
            thread: ThreadId::from_random([1; 10]),
            seq: u64::from(number),
            at_ms: 0,
            words: format!("prompt {number}"),
            bytes: 1_500_000,
            took_us: 3_200,
            undone: false,
        }
    }

    fn undone(number: u32) -> RestorePoint {
        RestorePoint {
            undone: true,
            ..point(number)
        }
    }

    fn demo() -> BoxName {
        BoxName::parse("demo").unwrap()
    }

    #[test]
    fn the_last_turn_that_still_counts_is_meant() {
        let points = RestorePoints {
            points: vec![point(1), point(2), undone(3)],
            ..RestorePoints::default()
        };
        let label = |to: Option<&str>| {
            let to = to.map(|text| turn(text).unwrap());
            back(&demo(), &points, to.as_ref()).map(|target| target.label.to_string())
        };
        assert_eq!(label(None).ok().as_deref(), Some("turn-2"));
        assert_eq!(label(Some("3")).ok().as_deref(), Some("turn-3"));
        assert_eq!(label(Some("turn-1")).ok().as_deref(), Some("turn-1"));
        assert!(label(Some("9")).is_err());
        assert!(turn("../x").is_err());
        assert!(turn("").is_err());
    }

    #[test]
    fn a_table_says_what_each_turn_was_and_what_it_cost() {
        let text = shown(&[point(1), undone(2)], 60_000);
        assert_eq!(
            text,
            "TURN    AGE  SIZE    TOOK  PROMPT\n\
             turn-1  1m   1.5 MB  3 ms  prompt 1\n\
             turn-2  1m   1.5 MB  3 ms  (undone) prompt 2\n"
        );
    }
}
