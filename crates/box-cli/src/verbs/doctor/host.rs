//! The host, if one runs: its build, its way out, what it says of its engine.

use super::finding::{Finding, Level};
use super::storage;
use crate::client::{Client, unexpected};
use crate::complaint::Complaint;
use crate::host;
use crate::identity;
use crate::output::Output;
use box_api::PROTOCOL;
use box_api::control::{Outcome, Request, SealInfo, SealMethod, Status};
use box_server::paths::Paths;

/// Starts none.
pub(super) fn look(output: &mut Output, paths: &Paths) -> Vec<Finding> {
    let client = match host::find() {
        Ok(Some(client)) => client,
        Ok(None) => {
            return vec![
                Finding::new("host", Level::Note, "no host runs here")
                    .mended_by("any verb starts one; `box up` shows how"),
            ];
        }
        Err(complaint) => return vec![unreachable(&complaint, paths)],
    };
    let mut findings = vec![build(&client)];
    if client.welcome.protocol == PROTOCOL {
        match status(output, client) {
            Ok(status) => findings.extend(of_status(&status)),
            Err(complaint) => findings.push(unreachable(&complaint, paths)),
        }
    }
    findings
}

fn status(output: &mut Output, client: Client) -> Result<Status, Complaint> {
    let outcome = client.ask(output, &Request::Status)?;
    let Outcome::Status(status) = outcome else {
        return Err(unexpected(&outcome));
    };
    Ok(status)
}

fn unreachable(complaint: &Complaint, paths: &Paths) -> Finding {
    let problem = complaint.problem();
    let finding = Finding::new(
        "host",
        Level::Bad,
        problem.map_or("the host does not answer", |problem| &problem.title),
    );
    let cause = problem.and_then(|problem| problem.cause.clone());
    let hint = problem.and_then(|problem| problem.hint.clone());
    finding
        .because(cause.unwrap_or_else(|| "it said no more".to_owned()))
        .mended_by(hint.unwrap_or_else(|| {
            format!(
                "its log is in `{}`; `box serve --stop` ends it",
                paths.log.display()
            )
        }))
}

fn build(client: &Client) -> Finding {
    const NAME: &str = "host";
    let welcome = &client.welcome;
    let what = format!(
        "the host runs, process {}, build {}",
        welcome.pid, welcome.build
    );
    if welcome.protocol != PROTOCOL {
        return Finding::new(NAME, Level::Bad, what)
            .because(format!(
                "it speaks protocol {}, this `box` {PROTOCOL}",
                welcome.protocol
            ))
            .mended_by("`box up` replaces it; boxes and turns go on");
    }
    if welcome.build != identity::build() {
        return Finding::new(NAME, Level::Less, what)
            .because(format!("this `box` is build {}", identity::build()))
            .mended_by("`box up` replaces it; boxes and turns go on");
    }
    Finding::good(NAME, what)
}

/// Whether secrets outlive what holds them in memory.
fn sealed(seal: &SealInfo) -> Finding {
    const NAME: &str = "secrets";
    let word = seal.method.word();
    let why = seal.why.clone().unwrap_or_default();
    match (seal.method, seal.is_open) {
        (SealMethod::Memory, _) => {
            Finding::new(NAME, Level::Less, "credentials are kept in memory only")
                .because(why)
                .mended_by(
                    "setting `credentials.seal`, such as `passphrase`, keeps them sealed on disk",
                )
        }
        (SealMethod::Passphrase, false) => Finding::new(
            NAME,
            Level::Less,
            "credentials are locked with a passphrase",
        )
        .because(why)
        .mended_by("`box credential unlock`; `--new` sets the first passphrase"),
        (SealMethod::Keyring | SealMethod::SystemdCreds, false) => Finding::new(
            NAME,
            Level::Less,
            format!("what is sealed with `{word}` does not open"),
        )
        .because(why)
        .mended_by("`box credential list` shows what is lost; add it again"),
        (SealMethod::Keyring, true) => Finding::good(
            NAME,
            "credentials are sealed with a key in the kernel's keyring, until the machine restarts",
        ),
        (SealMethod::SystemdCreds | SealMethod::Passphrase, true) => {
            Finding::good(NAME, format!("credentials are sealed: {word}"))
        }
    }
}

fn of_status(status: &Status) -> Vec<Finding> {
    let way_out = if status.egress {
        Finding::good("way-out", "the way out is open")
    } else {
        Finding::new(
            "way-out",
            Level::Less,
            "the way out is down: boxes reach nothing",
        )
        .because("box-egress does not answer; the host starts it again and again")
        .mended_by("`egress.log` beside the host's log says why")
    };
    let mut findings = vec![way_out];
    findings.extend(status.seal.as_ref().map(sealed));
    if status.boxes_ahead > 0 {
        let count = status.boxes_ahead;
        let what = format!("boxes begun ahead for the next `box new`: {count}");
        findings.push(Finding::good("pool", what));
    }
    if let Some(held_by) = &status.limits_held_by {
        let level = if held_by == "best effort" {
            Level::Less
        } else {
            Level::Good
        };
        let finding = Finding::new(
            "host-limits",
            level,
            format!("the host holds limits by {held_by}"),
        );
        findings.push(if level == Level::Good {
            finding
        } else {
            finding
                .mended_by("`box install` makes a unit that may use cgroups; start the host by it")
        });
    }
    findings.extend(status.copies.map(|method| Finding {
        name: "host-copies",
        ..storage::of_method(method)
    }));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use box_api::snapshot::CopyMethod;

    #[test]
    fn a_host_that_lacks_something_says_what_mends_it() {
        let mut status = Status {
            pid: 1,
            build: "b".to_owned(),
            data_dir: "/d".to_owned(),
            boxes_running: 0,
            boxes_ahead: 0,
            boxes_stopped: 0,
            egress: false,
            limits_held_by: Some("best effort".to_owned()),
            copies: Some(CopyMethod::Full),
            seal: Some(SealInfo {
                method: SealMethod::Memory,
                is_open: true,
                why: None,
            }),
        };
        let findings = of_status(&status);
        assert_eq!(findings.len(), 4);
        for finding in &findings {
            assert_eq!(finding.level, Level::Less, "{finding:?}");
            assert!(finding.fix.is_some(), "{finding:?}");
        }
        status.egress = true;
        status.limits_held_by = Some("cgroup v2".to_owned());
        status.copies = Some(CopyMethod::Subvolume);
        status.seal = Some(SealInfo {
            method: SealMethod::Keyring,
            is_open: true,
            why: None,
        });
        let good = |finding: &Finding| finding.level == Level::Good;
        assert!(of_status(&status).iter().all(good));
    }
}
