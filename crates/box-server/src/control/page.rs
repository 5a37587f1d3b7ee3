//! `Page`: where the page is, links that pair a browser, and the browsers that were paired.

use crate::problem;
use box_api::Problem;
use box_api::control::Outcome;
use box_api::page::{NewToken, PageAsk, TokenAsk, TokenScope};
use box_core::Host;
use box_core::caller::Caller;
use box_core::sign_ins::{self, Place, tokens};

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
        PageAsk::TokenAdd(asked) => Ok(Outcome::Token(token(host, caller, asked).await?)),
        PageAsk::TokenList => {
            let tokens = tokens::list(host, caller).await.map_err(problem::store)?;
            Ok(Outcome::Tokens { tokens })
        }
        PageAsk::TokenRevoke { id } => {
            let revoked = tokens::revoke(host, caller, &id).await;
            revoked.map_err(problem::revoke_token)?;
            Ok(Outcome::Nothing)
        }
    }
}

/// Makes a token and says where it is shown. The only place it is ever told.
async fn token(host: &Host, caller: &Caller, asked: TokenAsk) -> Result<NewToken, Problem> {
    let at = match host.sign_ins.place().borrow().clone() {
        Place::At(url) => url,
        Place::Off(why) => return Err(problem::no_page(&why)),
        Place::Opening => return Err(problem::no_page("it is not open yet")),
    };
    let made = tokens::add(host, caller, asked)
        .await
        .map_err(problem::token)?;
    let url = match (made.info.scope, &made.info.name) {
        (TokenScope::Acp, Some(name)) => {
            let at = at.replacen("http", "ws", 1);
            format!("{at}/api/boxes/{name}/acp")
        }
        (TokenScope::Metrics, _) => format!("{at}/metrics"),
        (TokenScope::Acp | TokenScope::Read | TokenScope::Full, _) => format!("{at}/api"),
    };
    Ok(NewToken {
        token: made.token.to_string(),
        info: made.info,
        url,
    })
}
