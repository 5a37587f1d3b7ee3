//! `GET /api/status` and `GET /api/doctor`: what runs here, and what this machine offers and lacks.

use super::answer;
use super::call::{Call, Called};
use crate::problem;
use box_api::Problem;
use box_api::control::{Outcome, Request, SealMethod, Status};
use box_api::page::{Doctor, DoctorFinding, Tint};
use box_api::snapshot::CopyMethod;
use box_core::settings::page::Listen;

pub(super) async fn status(call: Call) -> Called {
    Ok(answer::json(&look(&call).await?))
}

async fn look(call: &Call) -> Result<Status, Problem> {
    let outcome = call.ask(Request::Status).await?;
    let Outcome::Status(status) = outcome else {
        return Err(problem::unlike(&outcome));
    };
    Ok(status)
}

pub(super) async fn handle(call: Call) -> Called {
    let findings = findings(&call).await?;
    Ok(answer::json(&Doctor { findings }))
}

/// What this machine offers and lacks.
pub(super) async fn findings(call: &Call) -> Result<Vec<DoctorFinding>, Problem> {
    let status = look(call).await?;
    let engine = call.host().runtimes.default().name();
    let listen = call.host().settings.page.listen.value;
    Ok(vec![
        found(
            "engine",
            Tint::Good,
            format!("boxes are made by `{engine}`"),
            None,
        ),
        limits(&status),
        copies(&status),
        network(&status),
        secrets(&status),
        page(listen),
    ])
}

fn found(what: &str, tint: Tint, text: String, hint: Option<&str>) -> DoctorFinding {
    DoctorFinding {
        what: what.to_owned(),
        tint,
        text,
        hint: hint.map(str::to_owned),
    }
}

fn limits(status: &Status) -> DoctorFinding {
    let hint = "`box doctor` on the machine says what is missing";
    match status.limits_held_by.as_deref() {
        Some("best effort") | None => {
            let text = "limits of boxes are held as well as can be".to_owned();
            found("limits", Tint::Bad, text, Some(hint))
        }
        Some(by) => found(
            "limits",
            Tint::Good,
            format!("limits are held by {by}"),
            None,
        ),
    }
}

fn copies(status: &Status) -> DoctorFinding {
    let text = |method: CopyMethod| format!("copies of boxes: {}", method.words());
    match status.copies {
        Some(method @ (CopyMethod::Subvolume | CopyMethod::Reflink)) => {
            found("copies", Tint::Good, text(method), None)
        }
        Some(method @ CopyMethod::Full) => {
            let hint = "`box up --store btrfs` makes a place where copies cost next to nothing";
            found("copies", Tint::Off, text(method), Some(hint))
        }
        None => found(
            "copies",
            Tint::Off,
            "this engine makes no copies".to_owned(),
            None,
        ),
    }
}

fn network(status: &Status) -> DoctorFinding {
    if status.egress {
        let text = "the way out of boxes answers".to_owned();
        return found("network", Tint::Good, text, None);
    }
    let text = "the way out of boxes does not answer: boxes reach nothing".to_owned();
    let hint = "it is started again by itself; what it says is in `egress.log`";
    found("network", Tint::Bad, text, Some(hint))
}

fn secrets(status: &Status) -> DoctorFinding {
    let sealed = status.seal.as_ref();
    let sealed = sealed.filter(|seal| seal.method != SealMethod::Memory);
    match sealed {
        Some(seal) if seal.is_open => {
            let text = format!("secrets are sealed: {}", seal.method.word());
            found("secrets", Tint::Good, text, None)
        }
        Some(seal) => {
            let why = seal.why.as_deref().unwrap_or("they are locked");
            let text = format!("sealed secrets cannot be opened: {why}");
            let hint = "`box credential unlock` on the machine";
            found("secrets", Tint::Bad, text, Some(hint))
        }
        None => {
            let text = "secrets end with the way out: nothing seals them".to_owned();
            let hint = "`seal` under `[credentials]` in the settings chooses a way";
            found("secrets", Tint::Off, text, Some(hint))
        }
    }
}

fn page(listen: Listen) -> DoctorFinding {
    match listen {
        Listen::At(address) if !address.ip().is_loopback() => {
            let text = format!("the page listens at `{address}`, beyond this machine, without TLS");
            let hint = "put a reverse proxy before it and let it listen on loopback";
            found("page", Tint::Bad, text, Some(hint))
        }
        Listen::At(_) | Listen::Usual | Listen::Off => found(
            "page",
            Tint::Good,
            "the page is on this machine only".to_owned(),
            None,
        ),
    }
}
