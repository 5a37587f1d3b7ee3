//! `box serve`: the host itself.

use super::confirm::{self, Answer, Question};
use super::{Ended, egress};
use crate::client::unexpected;
use crate::complaint::Complaint;
use crate::host::launch::{self, Report};
use crate::host::{self, OtherBuild, replace, way_out};
use crate::identity;
use crate::output::{Format, Output};
use crate::{runtimes, terminal};
use box_api::Problem;
use box_api::control::{Haste, Outcome, Request, Target};
use box_runtime_native::rootless::outside_uid;
use box_server::Place;
use box_server::ServeOptions;
use box_server::paths::Paths;
use box_server::settings::page::Listen;
use std::fs::File;
use std::time::Duration;

/// Tasks that still run when the host has ended get this long.
const TASKS_DEADLINE: Duration = Duration::from_secs(5);

/// Be the host, or stop it
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  box serve\n  box serve --listen 127.0.0.1:8080\n  box serve --stop\n  box serve --stop --all\n\n\
    Every verb starts a host in the background when none runs; this one stays in the foreground\n\
    and takes the place of a host of another build. Boxes and their agents outlive the host, and\n\
    so does `box-egress`, their way out, which holds the credentials. --all ends these too."
)]
pub(super) struct Args {
    /// Stop the host; boxes and their agents go on
    #[arg(long)]
    stop: bool,
    /// Where the page listens, or `off`; else what `listen` under `[page]` in the settings says
    #[arg(long, value_name = "ADDRESS", value_parser = Listen::parse, conflicts_with = "stop")]
    listen: Option<Listen>,
    #[command(flatten)]
    whole: Whole,
    /// How far the way into the background is
    #[arg(long, hide = true, value_enum, conflicts_with = "stop")]
    step: Option<Step>,
}

/// How far a stop goes.
#[derive(Debug, clap::Args)]
struct Whole {
    /// Stop the boxes, the host and the way out: nothing of it runs any more
    #[arg(long, requires = "stop")]
    all: bool,
    /// Do not ask before credentials are forgotten, which the way out alone holds
    #[arg(long, requires = "all")]
    force: bool,
}

/// The two steps of a host into the background, see `host::launch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Step {
    Detach,
    Report,
}

/// Who is told that the host listens, or why it does not.
enum Audience {
    /// Whoever started it in the background and waits for a report.
    Starter,
    Person(Output),
}

pub(super) fn run(args: &Args) -> Ended {
    match args.step {
        _ if args.whole.all => stop_all(&args.whole),
        _ if args.stop => stop(),
        None => {
            make_room()?;
            serve(Audience::Person(Output::new(Format::Text)), args.listen)?;
            Ok(0)
        }
        Some(Step::Detach) => launch::detach().map(|()| 0),
        Some(Step::Report) => {
            launch::enter_background()?;
            let served = serve(Audience::Starter, args.listen);
            if let Err(problem) = served.as_ref().map_err(Complaint::problem)
                && let Some(problem) = problem
            {
                launch::report(&Report::Failed(problem.clone()));
            }
            served.map(|()| 0)
        }
    }
}

fn stop() -> Ended {
    let mut output = Output::new(Format::Text);
    match host::find()? {
        None => output.note("no host runs here"),
        Some(client) => {
            let pid = replace::stop(client)?;
            output.note(&format!(
                "the host (process {pid}) is stopped; boxes and agents go on"
            ));
        }
    }
    Ok(0)
}

fn stop_all(whole: &Whole) -> Ended {
    let output = &mut Output::new(Format::Text);
    let paths = host::paths()?;
    if paths.database().exists() && !whole.force {
        let credentials = credentials(output)?;
        if !credentials.is_empty() && !may_forget(output, &credentials)? {
            output.note("nothing was stopped");
            return Ok(1);
        }
    }
    stop_everything(output, &paths)?;
    output.note("boxes, host and way out are stopped");
    Ok(0)
}

/// Boxes first, then the host, then the way out. One that cannot be ended does not keep the others.
///
/// # Errors
/// The first that could not be ended.
pub(super) fn stop_everything(output: &mut Output, paths: &Paths) -> Result<(), Complaint> {
    let boxes = if paths.database().exists() {
        stop_boxes(output)
    } else {
        Ok(())
    };
    let host = host::find().and_then(|client| client.map(replace::stop).transpose());
    let way_out = way_out::end(&paths.egress_socket());
    boxes?;
    host?;
    way_out.map(drop)
}

fn stop_boxes(output: &mut Output) -> Result<(), Complaint> {
    let request = Request::Stop {
        target: Target::All,
        haste: Haste::Graceful,
    };
    let client = host::reach(output, OtherBuild::Bear)?;
    client.ask(output, &request).map(drop)
}

/// Credentials the way out has now, by name.
fn credentials(output: &mut Output) -> Result<Vec<String>, Complaint> {
    let client = host::reach(output, OtherBuild::Bear)?;
    let outcome = client.ask(output, &Request::CredentialList)?;
    let Outcome::Credentials { credentials, .. } = outcome else {
        return Err(unexpected(&outcome));
    };
    let held = credentials.into_iter().filter(|known| !known.lost);
    Ok(held.map(|known| known.name).collect())
}

fn may_forget(output: &mut Output, names: &[String]) -> Result<bool, Complaint> {
    let all = names.join("`, `");
    if !terminal::can_ask() {
        let title = format!("stopping the way out forgets the credentials `{all}`");
        return Err(Complaint::usage("needs-yes", title)
            .caused_by("there is no terminal to ask at")
            .hinted("`box serve --stop --all --force` does not ask"));
    }
    let question = Question {
        text: &format!("stop everything and forget the credentials `{all}`"),
        default: Answer::No,
    };
    Ok(confirm::ask(output, &question)? == Answer::Yes)
}

/// A host of this build stays, one of another makes room.
fn make_room() -> Result<(), Complaint> {
    let Some(client) = host::find()? else {
        return Ok(());
    };
    if client.welcome.build != identity::build() {
        return replace::stop(client).map(drop);
    }
    let title = format!("a host runs here already: process {}", client.welcome.pid);
    Err(Complaint::failed("host-runs", title).hinted("`box serve --stop` stops it"))
}

/// Is the host until it is told to end.
fn serve(audience: Audience, page: Option<Listen>) -> Result<(), Complaint> {
    let paths = host::paths()?;
    let uid = outside_uid(rustix::process::geteuid().as_raw());
    launch::leave_descriptors_behind()?;
    // Before the first thread: an engine forks here.
    let prepared = runtimes::prepare(&paths).map_err(|error| engine(&error))?;
    let privileges = prepared.privileges;
    let threads = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let threads = threads.map_err(|error| {
        Complaint::engine("no-threads", "could not start the host's threads").caused_by(error)
    })?;
    let runtimes = {
        let _claim = claim(&paths)?;
        prepared.open(&paths).map_err(|error| engine(&error))?
    };
    let options = ServeOptions {
        paths,
        runtimes,
        egress: egress::program(privileges),
        build: identity::build(),
        uid,
        outside: outside_uid,
        page,
    };
    let served: Result<(), Problem> =
        threads.block_on(box_server::run(options, |place| ready(audience, place)));
    threads.shutdown_timeout(TASKS_DEADLINE);
    Ok(served?)
}

/// The folders are there and no other host works in them while the engines open. The host takes
/// the same lock for good right after; whoever comes in between loses nothing.
fn claim(paths: &Paths) -> Result<File, Complaint> {
    launch::make_own_folder(&paths.data)?;
    launch::make_own_folder(&paths.run)?;
    launch::lock_now(&paths.data_lock())?.ok_or_else(|| {
        let title = format!(
            "another host uses the data folder `{}`",
            paths.data.display()
        );
        let holder = std::fs::read_to_string(paths.data_lock()).unwrap_or_default();
        let complaint = Complaint::failed("data-in-use", title)
            .hinted("`box serve --stop` with that host's `BOX_RUN_DIR` ends it");
        if holder.is_empty() {
            complaint
        } else {
            complaint.caused_by(holder)
        }
    })
}

fn ready(audience: Audience, place: &Place) {
    match audience {
        Audience::Starter => launch::report(&Report::Ready),
        Audience::Person(mut output) => {
            let pid = std::process::id();
            output.note(&format!(
                "the host runs, process {pid}; Ctrl-C ends it, boxes go on"
            ));
            output.note(&match place {
                Place::At(url) => {
                    format!("the page is at {url}; `box ui` makes a link that pairs a browser")
                }
                Place::Off(why) => format!("there is no page: {why}"),
                Place::Opening => "the page is not open yet".to_owned(),
            });
        }
    }
}

fn engine(error: &runtimes::EngineError) -> Complaint {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    let complaint =
        Complaint::engine("engine", error.to_string()).caused_by(cause.unwrap_or_default());
    match &error.hint {
        Some(hint) => complaint.hinted(hint),
        None => complaint,
    }
}
