//! `Policy`: what a box may reach, shown, changed, tried; and the settings read again.

use crate::problem;
use box_api::control::Outcome;
use box_api::network::PolicyAsk;
use box_api::{BoxName, Problem, ProblemKind};
use box_core::Host;
use box_core::boxes;
use box_core::boxes::BoxRecord;
use box_core::caller::{Caller, Tier};
use box_core::egress::Question;
use box_core::network::policy::{self, Wish};
use box_core::network::rules::Scope;

pub(super) async fn handle(
    host: &Host,
    caller: &Caller,
    asked: PolicyAsk,
) -> Result<Outcome, Problem> {
    match asked {
        PolicyAsk::Show { name } => show(host, &find(host, caller, &name).await?).await,
        PolicyAsk::Set {
            name,
            net,
            allow,
            deny,
            remove,
            everywhere,
            private,
        } => {
            let wish = Wish {
                net,
                allow,
                deny,
                remove,
                private,
                scope: if everywhere { Scope::Owner } else { Scope::Box },
                by: caller.owner,
            };
            let record = find(host, caller, &name).await?;
            let set = policy::set(host, &record, wish).await;
            set.map_err(problem::policy)?;
            show(host, &record).await
        }
        PolicyAsk::Check {
            name,
            host: target,
            port,
            asked,
            address,
        } => {
            let record = find(host, caller, &name).await?;
            let question = Question {
                host: target,
                port,
                asked,
                address,
            };
            let checked = host.egress.check(record.id, question).await;
            checked.map(Outcome::Checked).map_err(|error| {
                Problem::new(
                    ProblemKind::Engine,
                    "not-checked",
                    "could not ask what would happen",
                )
                .caused_by(error.to_string())
                .hinted(format!("`box start {name}` first, if it does not run"))
            })
        }
        PolicyAsk::Defaults => {
            let name = BoxName::parse("defaults").map_err(|error| {
                let title = "could not name the defaults";
                Problem::new(ProblemKind::Engine, "no-defaults", title).caused_by(error)
            })?;
            Ok(Outcome::Policy(policy::defaults(host, name).await))
        }
        PolicyAsk::Reload => reload(host, caller).await,
        PolicyAsk::NewCa => new_ca(host, caller).await,
    }
}

async fn new_ca(host: &Host, caller: &Caller) -> Result<Outcome, Problem> {
    check_admin(*caller, "the CA belongs to the user the host runs as")?;
    let restart = policy::new_ca(host).await;
    let restart = restart.map_err(problem::reload)?;
    Ok(Outcome::NewCa { restart })
}

fn check_admin(caller: Caller, why: &'static str) -> Result<(), Problem> {
    if caller.tier == Tier::Admin {
        return Ok(());
    }
    Err(Problem::new(ProblemKind::Refused, "not-yours", why))
}

async fn reload(host: &Host, caller: &Caller) -> Result<Outcome, Problem> {
    check_admin(*caller, "the settings belong to the user the host runs as")?;
    let findings = policy::reload(host).await;
    let findings = findings.map_err(problem::reload)?;
    Ok(Outcome::Reloaded { findings })
}

async fn find(host: &Host, caller: &Caller, name: &BoxName) -> Result<BoxRecord, Problem> {
    boxes::find(host, caller, name).await.map_err(problem::find)
}

async fn show(host: &Host, record: &BoxRecord) -> Result<Outcome, Problem> {
    let shown = policy::show(host, record).await.map_err(problem::store)?;
    Ok(Outcome::Policy(shown))
}
