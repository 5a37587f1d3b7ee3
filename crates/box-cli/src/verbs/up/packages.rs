//! Installs packages of the distribution, after a yes (decision D35).

use crate::child;
use crate::complaint::Complaint;
use crate::output::Output;
use crate::terminal;
use crate::verbs::confirm::{self, Answer, Question};
use crate::verbs::doctor::{Package, on_path};
use std::os::fd::AsFd as _;
use std::process::Stdio;

/// What was said on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    Yes,
}

/// Installs what is missing. Asks at a terminal unless yes was said.
///
/// # Errors
/// A no, a distribution without apt, or apt's own failure.
pub(super) fn install(
    output: &mut Output,
    missing: &[Package],
    said: Option<Said>,
) -> Result<(), Complaint> {
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = missing.iter().map(|package| package.name).collect();
    let list = names.join(" ");
    let by_hand = format!("apt-get install {list}");
    let lacking = || {
        Complaint::engine(
            "package-missing",
            format!("the package `{list}` is missing"),
        )
    };
    if !on_path("apt-get") {
        return Err(
            lacking().hinted("install it with this system's package manager, then `box up` again")
        );
    }
    if said.is_none() && terminal::can_ask() {
        let question = Question {
            text: &format!("install it now (`{by_hand}`)"),
            default: Answer::Yes,
        };
        if confirm::ask(output, &question)? == Answer::No {
            return Err(lacking().hinted(format!("`{by_hand}`, then `box up` again")));
        }
    }
    output.note(&format!("  installing {list}"));
    // Lists of packages may be old or absent: fetched once when the first try fails.
    let installed = apt_get(&install_arguments(&names))?
        || (apt_get(&["update", "-qq"])? && apt_get(&install_arguments(&names))?);
    if !installed {
        return Err(Complaint::engine(
            "package-missing",
            format!("could not install the package `{list}`"),
        )
        .caused_by("apt-get failed; what it said stands above")
        .hinted(format!("`{by_hand}`, then `box up` again")));
    }
    Ok(())
}

fn install_arguments<'a>(names: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["install", "-y", "-qq", "--no-install-recommends", "--"];
    arguments.extend(names);
    arguments
}

/// Runs apt-get; what it says goes where everything but data goes.
fn apt_get(arguments: &[&str]) -> Result<bool, Complaint> {
    let could_not = |error: std::io::Error| {
        Complaint::engine("package-missing", "could not run apt-get").caused_by(error)
    };
    let errors = std::io::stderr()
        .as_fd()
        .try_clone_to_owned()
        .map_err(could_not)?;
    let mut apt = child::command("apt-get");
    apt.args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .stdout(errors);
    apt.status()
        .map(|status| status.success())
        .map_err(could_not)
}
