//! `box policy new-ca`: another CA in the place of the deployment's.

use super::super::confirm::{self, Answer, Question};
use super::super::{Ended, Print};
use crate::client::unexpected;
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::output::Format;
use crate::terminal;
use box_api::control::{Outcome, Request};
use box_api::network::PolicyAsk;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  box policy new-ca --force\n\n\
    Boxes that run trust the old CA until they are started again: their requests to hosts they have\n\
    a credential for fail meanwhile. Asks first; without a terminal it needs --force (exit code 2).")]
pub(super) struct NewCa {
    /// Do not ask
    #[arg(long, short)]
    force: bool,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: &NewCa) -> Ended {
    let mut output = args.print.output();
    if !args.force {
        if !terminal::can_ask() || output.format() == Format::Json {
            return Err(Complaint::usage(
                "needs-yes",
                "the CA is replaced only after a yes, and nobody can be asked here",
            )
            .hinted("`box policy new-ca --force` does not ask"));
        }
        let question = Question {
            text: "Replace the CA, so that boxes that run have to be started again",
            default: Answer::No,
        };
        if confirm::ask(&mut output, &question)? == Answer::No {
            output.note("the CA stays");
            return Ok(1);
        }
    }
    let client = host::reach(&mut output, OtherBuild::Bear)?;
    let outcome = client.ask(&mut output, &Request::Policy(PolicyAsk::NewCa))?;
    let Outcome::NewCa { restart } = &outcome else {
        return Err(unexpected(&outcome));
    };
    if output.format() == Format::Json {
        output.object(&outcome)?;
        return Ok(0);
    }
    output.note("there is another CA");
    for name in restart {
        output.note(&format!(
            "box `{name}` trusts the old one: `box restart {name}`"
        ));
    }
    Ok(0)
}
