//! `Page`: where the page is, links that pair a browser, and the browsers that were paired.

use crate::problem;
use box_api::Problem;
use box_api::control::Outcome;
use box_api::page::PageAsk;
use box_core::Host;
use box_core::caller::Caller;
use box_core::sign_ins::{self, Place};

pub(super) async fn handle(
    host: &Host,
    caller: &Caller,
    asked: PageAsk,
) -> Result<Outcome, Problem> {
    match asked {
        PageAsk::Link => {
            let link = sign_ins::link(host, caller).await;
            link.map(Outcome::PageLink).map_err(problem::link)
        }
        PageAsk::Where => match host.sign_ins.place().borrow().clone() {
            Place::At(url) => Ok(Outcome::PageAt { url }),
            Place::Off(why) => Err(problem::no_page(&why)),
            Place::Opening => Err(problem::no_page("it is not open yet")),
        },
        PageAsk::List => {
            let sign_ins = sign_ins::list(host, caller).await;
            let sign_ins = sign_ins.map_err(problem::store)?;
            Ok(Outcome::SignIns { sign_ins })
        }
        PageAsk::Revoke { id } => {
            let revoked = sign_ins::revoke(host, caller, &id).await;
            revoked.map_err(problem::revoke)?;
            Ok(Outcome::Nothing)
        }
    }
}
