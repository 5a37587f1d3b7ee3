//! `box run --agents a,b`: the same prompt to several agents, each in a box of its own. What they
//! say comes line by line behind their names; a table at the end compares.

mod lane;

use super::enclosed::{self, Enclosed};
use super::prompt::{self, Source};
use super::{Args, make};
use crate::complaint::Complaint;
use crate::here::Here;
use crate::host::{self, OtherBuild};
use crate::output::table::columns;
use crate::output::{Format, Ink, Output};
use crate::signals::Signals;
use crate::turn::moves::Answers;
use crate::verbs::{Ended, diff, furnish, pull};
use box_api::control::{Request, Run};
use lane::Lane;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::Signal;
use serde_json::{Value, json};

/// More side by side can neither be read nor run.
const AGENTS_MAX: usize = 8;

pub(super) fn run(output: &mut Output, args: Args) -> Ended {
    let prompt = the_prompt(&args)?;
    let mut files = Vec::new();
    for _ in &args.agents {
        // Each reads them by itself.
        files.push(args.way.enclosed()?);
    }
    let here = args.furnish.prepare(output)?;
    let signals = Signals::catch(&[Signal::INT, Signal::TERM].map(Signal::as_raw));
    let signals = signals.map_err(|error| {
        Complaint::engine("no-signals", "could not catch signals").caused_by(error)
    })?;
    let defaults = host::reach(output, OtherBuild::Bear)?.welcome.defaults;
    let chosen = args.way.chosen();
    let machine = args.machine.with(defaults)?;
    let mut lanes = Vec::new();
    for (agent, files) in labelled(&args.agents).into_iter().zip(files) {
        let name = match &here {
            Some(here) => Some(make(
                output,
                Some(furnish::made_up_name(here)),
                &machine,
                here,
            )?),
            None => None,
        };
        let request = Run {
            agent: agent.0.clone(),
            prompt: prompt.clone(),
            name,
            repo: args.repo.clone(),
            allow_all: args.way.allow_all,
            image: machine.image.clone(),
            profile: machine.profile,
            net: machine.net,
            limits: machine.limits,
            settings: machine.settings.clone(),
            attachments: enclosed::announced(&files),
            chosen: chosen.clone(),
        };
        lanes.push(begin(output, agent.1, (request, files))?);
    }
    lane::line_up(&mut lanes, output);
    drive(output, &mut lanes, &signals)?;
    compare(output, &lanes, here.as_ref())
}

/// With `--agents` the first word is the prompt.
fn the_prompt(args: &Args) -> Result<String, Complaint> {
    if args.agents.len() > AGENTS_MAX || args.agents.iter().any(String::is_empty) {
        let title = format!("`--agents` takes 1 to {AGENTS_MAX} agents, with commas between them");
        return Err(Complaint::usage("bad-agents", title));
    }
    if args.prompt.is_some() {
        let title = "with `--agents` no other agent is named";
        return Err(Complaint::usage("bad-agents", title)
            .hinted("`box run --agents claude,codex \"<what to do>\"`"));
    }
    let source = Source::of(args.agent.as_deref(), args.file.as_deref());
    prompt::read("--agents", source)
}

/// Agents, and what tells them apart on the screen.
fn labelled(agents: &[String]) -> Vec<(String, String)> {
    let label = |(at, agent): (usize, &String)| {
        let before = agents[..at].iter().filter(|other| *other == agent).count();
        let label = match before {
            0 => agent.clone(),
            count => format!("{agent}-{}", count + 1),
        };
        (agent.clone(), label)
    };
    agents.iter().enumerate().map(label).collect()
}

fn begin(
    output: &mut Output,
    label: String,
    (request, files): (Run, Vec<Enclosed>),
) -> Result<Lane, Complaint> {
    let mut client = host::reach(output, OtherBuild::Bear)?;
    let allow_all = request.allow_all;
    client.request(&Request::Run(request))?;
    for file in files {
        file.send(&mut client)?;
    }
    let answers = if allow_all {
        Answers::AllowAll
    } else {
        lane::answers(output.format())
    };
    Ok(Lane::new(label, client, answers))
}

/// Until each has ended.
fn drive(output: &mut Output, lanes: &mut [Lane], signals: &Signals) -> Result<(), Complaint> {
    while lanes.iter().any(Lane::runs) {
        let came = wait(lanes, signals)?;
        for number in signals.take() {
            for lane in lanes.iter_mut().filter(|lane| lane.runs()) {
                lane.signalled(output, number)?;
            }
        }
        for (lane, came) in lanes.iter_mut().zip(came) {
            if came && lane.runs() {
                lane.read(output)?;
            }
        }
    }
    Ok(())
}

/// Which of them have something to say.
fn wait(lanes: &[Lane], signals: &Signals) -> Result<Vec<bool>, Complaint> {
    let mut waited = vec![PollFd::new(signals, PollFlags::IN)];
    let running = lanes.iter().filter(|lane| lane.runs());
    waited.extend(running.map(|lane| PollFd::new(lane.client(), PollFlags::IN)));
    match rustix::event::poll(&mut waited, None) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(errno) => {
            return Err(Complaint::engine("poll", "could not wait for the host").caused_by(errno));
        }
    }
    let mut came = waited.iter().skip(1).map(|one| !one.revents().is_empty());
    Ok(lanes
        .iter()
        .map(|lane| lane.runs() && came.next().unwrap_or(false))
        .collect())
}

/// One row of the table.
struct Row {
    label: String,
    name: String,
    outcome: &'static str,
    exit: u8,
    files: Option<usize>,
    branch: Option<String>,
}

/// The code of the first that is not 0.
fn compare(output: &mut Output, lanes: &[Lane], here: Option<&Here>) -> Ended {
    let rows: Vec<Row> = lanes.iter().map(|lane| row(output, lane, here)).collect();
    let exit = rows
        .iter()
        .map(|row| row.exit)
        .find(|exit| *exit != 0)
        .unwrap_or(0);
    match output.format() {
        Format::Json => {
            let runs: Vec<Value> = rows.iter().map(as_json).collect();
            let outcome = if exit == 0 { "done" } else { "mixed" };
            output.object(
                &json!({"event": "result", "outcome": outcome, "exit": exit, "runs": runs}),
            )?;
        }
        Format::Text => {
            let table = columns(&as_cells(&rows));
            let (heading, rest) = table.split_once('\n').unwrap_or_default();
            let heading = output.paint().with(Ink::Bold, heading);
            output.data(format!("\n{heading}\n{rest}").as_bytes())?;
        }
    }
    Ok(exit)
}

fn row(output: &mut Output, lane: &Lane, here: Option<&Here>) -> Row {
    let exit = lane.exit();
    let mut row = Row {
        label: lane.label().to_owned(),
        name: String::new(),
        outcome: lane.outcome(),
        exit,
        files: None,
        branch: None,
    };
    let Some(name) = lane.name() else { return row };
    row.name = name.to_string();
    row.files = diff::files_changed(output, name);
    // Its work comes home where it came from; elsewhere `box pull` fetches it.
    if here.is_some_and(Here::is_repository) {
        let branch = pull::fetch(output, name);
        row.branch = fetched(output, lane, branch);
    }
    row
}

/// A branch that could not be fetched is no reason to lose the table.
fn fetched(output: &mut Output, lane: &Lane, branch: Result<String, Complaint>) -> Option<String> {
    match branch {
        Ok(branch) => Some(branch),
        Err(complaint) => {
            let title = complaint.problem().map_or("", |problem| &problem.title);
            output.note(&format!("{}: {title}", lane.label()));
            None
        }
    }
}

fn as_json(row: &Row) -> Value {
    json!({
        "agent": row.label, "name": row.name, "outcome": row.outcome, "exit": row.exit,
        "files_changed": row.files, "branch": row.branch,
    })
}

fn as_cells(rows: &[Row]) -> Vec<Vec<String>> {
    let head = ["AGENT", "BOX", "OUTCOME", "FILES", "BRANCH"];
    let mut cells = vec![head.map(str::to_owned).to_vec()];
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    cells.extend(rows.iter().map(|row| {
        vec![
            row.label.clone(),
            row.name.clone(),
            row.outcome.replace('_', " "),
            or_dash(row.files.map(|count| count.to_string())),
            or_dash(row.branch.clone()),
        ]
    }));
    cells
}

#[cfg(test)]
mod tests {
    use super::labelled;

    #[test]
    fn one_agent_twice_has_two_labels() {
        let agents = ["claude", "codex", "claude"].map(str::to_owned);
        let labels: Vec<String> = labelled(&agents).into_iter().map(|one| one.1).collect();
        assert_eq!(labels, ["claude", "codex", "claude-2"]);
    }
}
