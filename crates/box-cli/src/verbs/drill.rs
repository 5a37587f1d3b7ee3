//! `box drill`: attacks a box from inside and prints what held.

use super::machine::ProfileName;
use super::{Ended, Print};
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::identity::OWN_EXECUTABLE;
use crate::output::{Format, Ink, Output, table};
use crate::signals::Signals;
use box_api::control::Profile;
use box_api::control::Request;
use box_drill::{Control, Options, Outcome, Product, Report};
use box_runtime_native::{Privileges, rootless};
use rustix::process::Signal;
use std::os::fd::AsFd as _;
use std::path::PathBuf;

/// The engine that is attacked when nothing is said.
const ENGINE: &str = "native";
/// The static program that carries an attack out inside a box.
const PROBE: &str = "box-probe";
/// A run folder nobody has: the drill's namespace is its own, not that of boxes that run.
const NO_BOXES: &str = "no-boxes";
/// Signals that end a program; the drill ends what it started first.
const ENDING: [i32; 3] = [
    Signal::INT.as_raw(),
    Signal::TERM.as_raw(),
    Signal::HUP.as_raw(),
];

/// Attack a box from inside and print what held
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  box drill\n  box drill --profile root --json\n  box drill --nested\n\n\
    Runs in a network and a data folder of its own; your boxes are not touched.\n\
    Exit code 1: a claim is broken, or a control failed."
)]
pub(super) struct Args {
    /// Which engine's boxes
    #[arg(long, default_value = ENGINE, value_parser = [ENGINE])]
    engine: String,
    /// Which profile
    #[arg(long, value_enum, default_value = "locked")]
    profile: ProfileName,
    /// Boxes that may hold containers (profile `root`): the attacks are made from a container as well
    #[arg(long)]
    nested: bool,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: Args) -> Ended {
    let mut output = args.print.output();
    let data_dir = data_with_image(&mut output)?;
    let failed = |error: std::io::Error| {
        Complaint::engine("drill", "could not set up the drill").caused_by(error)
    };
    // An ordinary user has a network and mounts to make only in a namespace of its own; what the
    // drill starts shares it.
    if rootless::enter(&data_dir.join(NO_BOXES)).map_err(|error| refused(&error))?
        != Privileges::Root
    {
        rootless::lend_to_children().map_err(failed)?;
    }
    // From here on there is something to be ended first.
    let signals = Signals::catch(&ENDING).map_err(failed)?;
    let options = Options {
        program: PathBuf::from(OWN_EXECUTABLE),
        data_dir,
        program_of_probes: box_runtime_native::program(PROBE)
            .unwrap_or_default()
            .to_vec(),
        engine: args.engine,
        profile: if args.nested {
            Profile::Root
        } else {
            args.profile.into()
        },
        nested: args.nested,
        stop: signals.as_fd().try_clone_to_owned().map_err(failed)?,
    };
    output.progress("making a network, a host and two boxes");
    let reported = attack(&mut output, options);
    if let Some(number) = signals.take().first() {
        output.note("the drill was stopped; nothing of it runs any more");
        return Ok(u8::try_from(128 + number).unwrap_or(1));
    }
    let report = reported?;
    match output.format() {
        Format::Json => output.object(&report)?,
        Format::Text => show(&mut output, &report)?,
    }
    Ok(u8::from(!report.all_held()))
}

fn refused(error: &rootless::EnterError) -> Complaint {
    let hint = error.hint();
    let cause = std::error::Error::source(error).map(ToString::to_string);
    let complaint =
        Complaint::engine("drill", error.to_string()).caused_by(cause.unwrap_or_default());
    match hint {
        Some(hint) => complaint.hinted(hint),
        None => complaint,
    }
}

/// Everything it starts has ended when this returns.
fn attack(output: &mut Output, options: Options) -> Result<Report, Complaint> {
    let product = Product::set_up(options).map_err(|error| {
        Complaint::engine("drill", "could not set up the drill").caused_by(error)
    })?;
    box_drill::run(&product, &mut |probe| output.progress(probe.name))
        .map_err(|stopped| Complaint::failed("drill", stopped.to_string()))
}

/// The data folder, with the default image in it.
fn data_with_image(output: &mut Output) -> Result<PathBuf, Complaint> {
    let data = host::paths()?.data;
    let ready =
        std::fs::read_dir(data.join("images")).is_ok_and(|mut images| images.next().is_some());
    if ready {
        return Ok(data);
    }
    let client = host::reach(output, OtherBuild::Bear)?;
    let data = PathBuf::from(&client.welcome.data_dir);
    client.ask(
        output,
        &Request::ImagePrepare {
            image: super::image::DEFAULT.to_owned(),
        },
    )?;
    Ok(data)
}

fn show(output: &mut Output, report: &Report) -> Result<(), Complaint> {
    let mut rows = vec![
        ["PROBE", "OUTCOME", "CONTROL", "CLAIM"]
            .map(str::to_owned)
            .to_vec(),
    ];
    rows.extend(report.probes.iter().map(|probe| {
        let cells = [
            probe.name.as_str(),
            outcome(probe.outcome),
            control(probe.control),
            probe.claim.as_str(),
        ];
        cells.map(str::to_owned).to_vec()
    }));
    output.data(table::columns(&rows).as_bytes())?;
    for probe in &report.probes {
        let Some(reason) = &probe.reason else {
            continue;
        };
        let text = format!("{}: {}", probe.name, crate::output::visible(reason));
        let text = output.err_paint().with(Ink::Yellow, &text);
        output.note(&text);
    }
    let held = report
        .probes
        .iter()
        .filter(|probe| probe.outcome == Outcome::Held && probe.control == Control::Passed)
        .count();
    output.note(&format!(
        "{held} of {} held, engine `{}`, profile `{}`{}",
        report.probes.len(),
        report.engine,
        report.profile,
        if report.nested { ", nested" } else { "" }
    ));
    Ok(())
}

fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Held => "held",
        Outcome::Broken => "BROKEN",
        Outcome::NotApplicable => "not applicable",
    }
}

fn control(control: Control) -> &'static str {
    match control {
        Control::Passed => "passed",
        Control::Failed => "FAILED",
        Control::None => "-",
    }
}
