//! `Policy`: what a box may reach, shown, changed, or tried on one host.

use crate::problem;
use box_api::control::Outcome;
use box_api::network::PolicyAsk;
use box_api::{Problem, ProblemKind};
use box_core::Host;
use box_core::boxes;
use box_core::caller::Caller;
use box_core::network::policy::{self, Wish};

pub(super) async fn handle(
    host: &Host,
    caller: &Caller,
    asked: PolicyAsk,
) -> Result<Outcome, Problem> {
    let (name, wish) = match asked {
        PolicyAsk::Show { name } => (name, None),
        PolicyAsk::Set {
            name,
            net,
            allow,
            deny,
            remove,
            everywhere,
        } => {
            let scope = if everywhere {
                box_core::network::rules::Scope::Owner
            } else {
                box_core::network::rules::Scope::Box
            };
            let wish = Wish {
                net,
                allow,
                deny,
                remove,
                scope,
            };
            (name, Some(wish))
        }
        PolicyAsk::Check {
            name,
            host: target,
            port,
        } => {
            let record = boxes::find(host, caller, &name)
                .await
                .map_err(problem::find)?;
            let checked = host.egress.check(record.id, target, port).await;
            return checked.map(Outcome::Checked).map_err(|error| {
                Problem::new(
                    ProblemKind::Engine,
                    "not-checked",
                    "could not ask what would happen",
                )
                .caused_by(error.to_string())
                .hinted(format!("`box start {name}` first, if it does not run"))
            });
        }
    };
    let record = boxes::find(host, caller, &name)
        .await
        .map_err(problem::find)?;
    if let Some(wish) = wish {
        policy::set(host, &record, wish)
            .await
            .map_err(problem::policy)?;
    }
    let shown = policy::show(host, &record).await.map_err(problem::store)?;
    Ok(Outcome::Policy(shown))
}
