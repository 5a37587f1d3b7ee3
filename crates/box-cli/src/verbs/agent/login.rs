//! `box agent login`: an account for an agent, given here or made inside a box.

use crate::client::unexpected;
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::output::Output;
use crate::pump::Feed;
use crate::terminal;
use crate::verbs::credential::{From, add_account};
use crate::verbs::{Ended, exec};
use box_api::BoxName;
use box_api::control::{AgentAsk, AgentLogin, Exec, Outcome, Request};

/// Asks for the secret, as `box credential add` does.
pub(super) fn here(output: &mut Output, agent: &str, name: String, from: From) -> Ended {
    let login = how(output, agent)?;
    let Some(kind) = login.kind else {
        output.note(&format!("agent `{agent}` needs no account"));
        return Ok(0);
    };
    if let Some(hint) = login.hint {
        output.note(&format!("hint: {hint}"));
    }
    if login.inside.is_some() {
        output.note(&format!(
            "hint: or log in inside a box: `box agent login {agent} --inside <box>`"
        ));
    }
    add_account(output, &kind, name, from)
}

/// Runs the agent's own login in a box; its tokens stay with the way out.
pub(super) fn inside(output: &mut Output, agent: &str, name: BoxName) -> Ended {
    let login = how(output, agent)?;
    let Some(command) = login.inside else {
        return Err(Complaint::usage(
            "no-login-inside",
            format!("agent `{agent}` has no login of its own whose tokens stay out of the box"),
        )
        .hinted(format!("`box agent login {agent}` gives its account here")));
    };
    if !terminal::can_ask() {
        return Err(
            Complaint::usage("needs-terminal", "a login inside a box needs a terminal")
                .caused_by("standard input or output is none"),
        );
    }
    let exec = Exec {
        name,
        command,
        cwd: None,
        env: exec::terminal_env(),
        terminal: Some(terminal::size()),
    };
    exec::carry_out(exec, Feed::Stdin)
}

fn how(output: &mut Output, agent: &str) -> Result<AgentLogin, Complaint> {
    let asked = AgentAsk::Login {
        agent: agent.to_owned(),
    };
    let client = host::reach(output, OtherBuild::Bear)?;
    let outcome = client.ask(output, &Request::Agent(asked))?;
    let Outcome::AgentLogin(login) = outcome else {
        return Err(unexpected(&outcome));
    };
    Ok(login)
}
