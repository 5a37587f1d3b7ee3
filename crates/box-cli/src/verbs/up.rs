//! `box up`: from nothing to an agent at work. Safe to run again.

mod checks;
mod packages;
mod store;

use super::{Ended, image, run, ui};
use crate::age;
use crate::client::{Client, unexpected};
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::identity::{self, OWN_EXECUTABLE};
use crate::output::{Format, Ink, Output, is_dumb};
use crate::transcript::{Prompts, Thoughts};
use crate::turn::{Shown, View};
use box_api::control::{Outcome, Request, Run, Welcome};
use box_api::{BoxName, Problem, ProblemKind};
use std::io::{IsTerminal as _, stderr};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Instant;
use store::Store;

/// The scripted agent, and the box it works in.
const DEMO: &str = "demo";

/// Check this machine, start the host, show a first turn
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  box up\n  box up --yes\n  \
    box up --store btrfs=50G\n\n\
    Safe to run again: it does what is missing, and replaces a host of another build. Asks before \
    it\ninstalls a system package; without a terminal or with --yes it installs and says so.")]
pub(super) struct Args {
    /// Install what is missing without asking
    #[arg(long, short)]
    yes: bool,
    /// Where boxes lie: `btrfs` makes a file system of its own for them, of at most SIZE, in which
    /// snapshots and clones cost nothing. Before the first box, by root
    #[arg(long, value_name = "plain|btrfs[=SIZE]")]
    store: Option<Store>,
}

pub(super) fn run(args: &Args) -> Ended {
    let output = &mut Output::new(Format::Text);
    heading(
        output,
        &format!(
            "box {} – a machine of its own for a coding agent",
            identity::VERSION
        ),
    );
    heading(output, "This machine");
    check(output, args)?;
    heading(output, "The host");
    let welcome = step(output, "looking for the host", |output| {
        let client = host::reach(output, OtherBuild::Replace)?;
        Ok((
            format!("host runs, process {}", client.welcome.pid),
            client.welcome,
        ))
    })?;
    step(output, "preparing the default image", |output| {
        let image = image::DEFAULT.to_owned();
        let outcome = reach(output)?.ask(output, &Request::ImagePrepare { image })?;
        let Outcome::Image(ready) = outcome else {
            return Err(unexpected(&outcome));
        };
        Ok((format!("image `{}` is ready", ready.image), ()))
    })?;
    step(output, "preparing the demo agent", |output| {
        reach(output)?.ask(
            output,
            &Request::AgentPrepare {
                agent: DEMO.to_owned(),
            },
        )?;
        Ok((
            "the demo agent is ready (scripted, no model)".to_owned(),
            (),
        ))
    })?;
    heading(
        output,
        &format!("A first turn: agent `{DEMO}` in box `{DEMO}`"),
    );
    let began = Instant::now();
    let view = View {
        transcript: run::transcript(output, Thoughts::Folded, Prompts::Shown),
        shown: Shown::Everything,
    };
    let request = demo_run(&welcome)?;
    let client = reach(output)?;
    let code = run::follow(output, client, (request, Vec::new()), view)?;
    if code != 0 {
        output.note(&format!(
            "the host runs, but the first turn ended with code {code}"
        ));
        output.note(&format!(
            "hint: `box attach {DEMO}` shows it, `box up` tries again"
        ));
        return Ok(code);
    }
    done(output, "the turn is over", began);
    show_page(output);
    say_what_is_next(output);
    Ok(0)
}

/// What the demo agent is asked to do, in a box as any other.
fn demo_run(welcome: &Welcome) -> Result<Run, Complaint> {
    Ok(Run {
        agent: DEMO.to_owned(),
        prompt: run::DEMO_PROMPT.to_owned(),
        name: Some(BoxName::parse(DEMO).map_err(|error| bad_name(&error))?),
        repo: None,
        allow_all: true,
        image: None,
        profile: welcome.defaults.profile,
        net: welcome.defaults.net,
        limits: welcome.defaults.limits,
        settings: box_api::control::BoxSettings::default(),
        attachments: Vec::new(),
        chosen: Vec::new(),
    })
}

fn reach(output: &mut Output) -> Result<Client, Complaint> {
    host::reach(output, OtherBuild::Bear)
}

fn bad_name(error: &box_api::id::NameError) -> Complaint {
    Problem::new(ProblemKind::Usage, "bad-name", error.to_string()).into()
}

fn check(output: &mut Output, args: &Args) -> Result<(), Complaint> {
    let missing = checks::look(output, &host::paths()?)?;
    packages::install(output, &missing, args.yes.then_some(packages::Said::Yes))?;
    if let Some(made) = args.store.map(store::make).transpose()?.flatten() {
        mark(output, Ink::Green, "✓", &made);
    }
    Ok(())
}

/// Does one step and says how long it took.
fn step<T>(
    output: &mut Output,
    name: &str,
    act: impl FnOnce(&mut Output) -> Result<(String, T), Complaint>,
) -> Result<T, Complaint> {
    let began = Instant::now();
    output.progress(name);
    let (text, value) = act(output)?;
    done(output, &text, began);
    Ok(value)
}

fn done(output: &mut Output, text: &str, began: Instant) {
    let took = output
        .err_paint()
        .with(Ink::Dim, &format!("({})", age::took(began.elapsed())));
    mark(output, Ink::Green, "✓", &format!("{text} {took}"));
}

fn mark(output: &mut Output, ink: Ink, mark: &str, text: &str) {
    let mark = output.err_paint().with(ink, mark);
    output.note(&format!("  {mark} {text}"));
}

fn heading(output: &mut Output, text: &str) {
    let text = output.err_paint().with(Ink::Bold, text);
    output.note(&text);
}

/// A link to the page, for a person: it lets one browser in, so no log gets it.
fn show_page(output: &mut Output) {
    if !stderr().is_terminal() {
        return;
    }
    output.note("");
    heading(output, "The page");
    match reach(output).and_then(|client| ui::link(output, client)) {
        Ok(link) => {
            if !is_dumb() {
                output.note(&ui::qr(&link.link()));
            }
            output
                .note("  Open this in a browser on this machine; it works once, for ten minutes:");
            output.note(&format!("  {}", link.link()));
        }
        // The host was asked to have none, or its port is taken: all else works.
        Err(complaint) => {
            let title = complaint.problem().map(|problem| problem.title.as_str());
            output.note(&format!("  none: {}", title.unwrap_or("the host is gone")));
        }
    }
}

fn say_what_is_next(output: &mut Output) {
    let me = typed_name();
    output.note("");
    heading(output, "Next");
    let lines = [
        (
            "credential add claude",
            "lets boxes use your Claude account, and never shows it to them",
        ),
        (
            "run claude \"fix the failing test\" --repo <URL>",
            "gives it real work",
        ),
        ("shell demo", "looks around in the box"),
        ("ui", "opens the page: a link that pairs one browser"),
    ];
    let width = lines
        .iter()
        .map(|(line, _)| line.chars().count())
        .max()
        .unwrap_or(0);
    for (line, why) in lines {
        let why = output.err_paint().with(Ink::Dim, why);
        output.note(&format!("  {me} {line:<width$}  {why}"));
    }
    output.note(&format!(
        "The host stays up; `{me} serve --stop` stops it, `{me} stop all` stops the boxes."
    ));
}

/// How this executable is called from here: `box` when the PATH leads to it, else its path.
fn typed_name() -> String {
    let identity = |path: &Path| {
        std::fs::metadata(path)
            .ok()
            .map(|about| (about.dev(), about.ino()))
    };
    let own = identity(Path::new(OWN_EXECUTABLE));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .map(|folder| folder.join("box"))
        .find_map(|file| identity(&file));
    if own.is_some() && found == own {
        return "box".to_owned();
    }
    let Ok(whole) = std::env::current_exe() else {
        return "box".to_owned();
    };
    let here = std::env::current_dir().unwrap_or_default();
    match whole.strip_prefix(&here) {
        Ok(below) => format!("./{}", below.display()),
        Err(_) => whole.display().to_string(),
    }
}
