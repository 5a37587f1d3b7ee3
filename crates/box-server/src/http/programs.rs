//! What a program's token lets it do. A token never lets anybody else in.

use super::Web;
use super::guard::Passed;
use crate::problem;
use box_api::Problem;
use box_api::page::TokenScope;
use box_core::sign_ins::tokens::{self, Shown};
use hyper::Method;

/// Below these only a person changes anything.
const OF_PEOPLE: [&str; 3] = ["/api/sign-ins", "/api/sign-out", "/api/tokens"];

/// Whom a token stands for. Tokens that stand for nobody are counted by where they come from, and
/// those that do by themselves.
///
/// # Errors
/// What whoever shows it is told.
pub(super) async fn known(web: &Web, passed: &Passed, token: &str) -> Result<Shown, Problem> {
    let (guesses, rates) = &web.tokens;
    let now_ms = web.door.host.now_ms();
    let shown = match tokens::known(&web.door.host, token).await {
        Ok(Some(shown)) => shown,
        Ok(None) => {
            if !guesses.may(passed.peer, now_ms).await {
                return Err(problem::too_many_tries());
            }
            guesses.failed(passed.peer, now_ms).await;
            return Err(problem::wrong_token(
                "this token stands for nobody (any more)",
            ));
        }
        Err(error) => {
            tracing::error!(%error, "a token could not be looked up");
            return Err(problem::store(error));
        }
    };
    if rates.may(&shown.known.sign_in, now_ms).await {
        Ok(shown)
    } else {
        Err(problem::too_many_tries())
    }
}

/// Whether a token of this scope is good for a request that is no WebSocket of its own.
///
/// # Errors
/// That it is not.
pub(super) fn may(scope: TokenScope, method: &Method, path: &str) -> Result<(), Problem> {
    let reads = *method == Method::GET || *method == Method::HEAD;
    let below = |of: &str| {
        path.strip_prefix(of)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    // Files are read inside the box, which is started for that.
    let stirs = ["/terminal", "/files", "/workspace"];
    let moves = path == "/ws" || stirs.iter().any(|end| path.ends_with(end));
    let good = match scope {
        TokenScope::Full => reads || !OF_PEOPLE.iter().any(|of| below(of)),
        TokenScope::Read => reads && !moves,
        TokenScope::Metrics => reads && path == "/metrics",
        TokenScope::Acp => false,
    };
    if good {
        Ok(())
    } else {
        Err(problem::token_not_for(&format!("`{method} {path}`")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_for_what_it_was_made_for() {
        let may = |scope, method: &str, path| {
            let method: Method = method.parse().unwrap();
            may(scope, &method, path).is_ok()
        };
        for (scope, good, bad) in [
            (
                TokenScope::Full,
                vec![
                    ("POST", "/api/boxes"),
                    ("GET", "/ws"),
                    ("GET", "/api/tokens"),
                ],
                vec![
                    ("POST", "/api/tokens"),
                    ("POST", "/api/sign-ins"),
                    ("DELETE", "/api/sign-ins/x"),
                    ("POST", "/api/sign-out"),
                ],
            ),
            (
                TokenScope::Read,
                vec![("GET", "/api/boxes"), ("HEAD", "/metrics")],
                vec![
                    ("POST", "/api/boxes"),
                    ("GET", "/ws"),
                    ("GET", "/api/boxes/web/terminal"),
                    ("GET", "/api/boxes/web/files"),
                    ("GET", "/api/boxes/web/workspace"),
                ],
            ),
            (
                TokenScope::Metrics,
                vec![("GET", "/metrics")],
                vec![("GET", "/api/me"), ("GET", "/metrics/x")],
            ),
            (
                TokenScope::Acp,
                vec![],
                vec![("GET", "/api/me"), ("GET", "/ws")],
            ),
        ] {
            for (method, path) in good {
                assert!(may(scope, method, path), "{scope:?} {method} {path}");
            }
            for (method, path) in bad {
                assert!(!may(scope, method, path), "{scope:?} {method} {path}");
            }
        }
    }
}
