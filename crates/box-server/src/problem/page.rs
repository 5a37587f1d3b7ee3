//! What can go wrong about the page and who may use it.

use super::{Failed, Refused, Usage, find, store, told};
use box_api::{BoxId, Problem};
use box_core::sign_ins::tokens::{RevokeTokenError, TokenError};
use box_core::sign_ins::{LinkError, PairError, RevokeError};
use std::net::SocketAddr;

pub(crate) fn link(error: LinkError) -> Problem {
    match error {
        LinkError::NoPage(why) => no_page(&why),
        LinkError::Store(error) => store(error),
    }
}

pub(crate) fn no_page(why: &str) -> Problem {
    Problem::new(Failed, "no-page", "this host has no page")
        .caused_by(why)
        .hinted("`listen` under `[page]` in the settings says where it listens")
}

pub(crate) fn page_address(address: SocketAddr, error: &std::io::Error) -> Problem {
    Problem::new(
        Failed,
        "page-address",
        format!("the page could not listen at `{address}`"),
    )
    .caused_by(error)
    .hinted("another address with `--listen`, or `--listen off` for no page")
}

pub(crate) fn pair(error: PairError) -> Problem {
    match error {
        PairError::Unknown => told(Refused, "link-used-up", &error)
            .hinted("`box ui` on the machine of the host makes a new one"),
        PairError::Store(error) => store(error),
    }
}

pub(crate) fn revoke(error: RevokeError) -> Problem {
    match error {
        RevokeError::Unknown(_) => {
            told(Failed, "sign-in-not-found", &error).hinted("`box ui --list` shows them")
        }
        RevokeError::Store(error) => store(error),
    }
}

pub(crate) fn token(error: TokenError) -> Problem {
    match error {
        TokenError::Find(error) => find(error),
        TokenError::Store(error) => store(error),
        TokenError::TooMany => told(Refused, "too-many-tokens", &error)
            .hinted("`box ui token list` shows them, `box ui token revoke` ends one"),
        TokenError::NoBox => {
            told(Usage, "bad-token", &error).hinted("`box ui token add <label> --acp <box>`")
        }
        TokenError::Label | TokenError::Days(_) | TokenError::OneBox(_) => {
            told(Usage, "bad-token", &error)
        }
    }
}

pub(crate) fn revoke_token(error: RevokeTokenError) -> Problem {
    match error {
        RevokeTokenError::Unknown(_) => {
            told(Failed, "token-not-found", &error).hinted("`box ui token list` shows them")
        }
        RevokeTokenError::Store(error) => store(error),
    }
}

pub(crate) fn wrong_token(why: &str) -> Problem {
    Problem::new(Refused, "signed-out", why.to_owned())
        .hinted("`box ui token add` on the machine of the host makes one")
}

pub(crate) fn token_not_for(what: &str) -> Problem {
    Problem::new(
        Refused,
        "token-not-for-this",
        format!("this token is not good for {what}"),
    )
    .hinted("`box ui token list` says what it is good for")
}

pub(crate) fn no_terminal(id: &str) -> Problem {
    Problem::new(
        Failed,
        "terminal-not-found",
        format!("there is no terminal `{id}` (any more)"),
    )
}

pub(crate) fn too_many_terminals(most: usize) -> Problem {
    Problem::new(
        Refused,
        "too-many-terminals",
        format!("there are {most} terminals already"),
    )
    .hinted("close one; those nobody looks at end by themselves")
}

pub(crate) fn signed_out() -> Problem {
    Problem::new(Refused, "signed-out", "this browser is not signed in")
        .hinted("`box ui` on the machine of the host makes a link that pairs it")
}

pub(crate) fn misdirected(host: &str) -> Problem {
    Problem::new(
        Refused,
        "other-host",
        format!("this host does not go by the name `{host}`"),
    )
    .hinted("`hosts` under `[page]` in the settings names those it is reached by from outside")
}

pub(crate) fn foreign_origin() -> Problem {
    Problem::new(
        Refused,
        "foreign-origin",
        "this request comes from another page, or does not say from where",
    )
}

pub(crate) fn too_many_tries() -> Problem {
    Problem::new(Refused, "too-many-tries", "there were too many tries").hinted("wait a minute")
}

pub(crate) fn no_endpoint(path: &str) -> Problem {
    Problem::new(
        Failed,
        "endpoint-not-found",
        format!("there is no `{path}` here"),
    )
}

pub(crate) fn other_method(method: &str, path: &str) -> Problem {
    Problem::new(
        Usage,
        "other-method",
        format!("`{path}` does not take `{method}`"),
    )
}

pub(crate) fn body(why: &str) -> Problem {
    Problem::new(Usage, "bad-body", "the request is not what it should be").caused_by(why)
}

/// No box of the caller's has this id.
pub(crate) fn no_box(id: BoxId) -> Problem {
    Problem::new(Failed, "box-not-found", format!("there is no box `{id}`"))
        .hinted("`box list` shows your boxes")
}

pub(crate) fn ambiguous(name: &str) -> Problem {
    Problem::new(
        Failed,
        "box-ambiguous",
        format!("another user has a box `{name}` too"),
    )
    .hinted("rename yours first")
}

pub(crate) fn row(seq: u64) -> Problem {
    Problem::new(
        Failed,
        "row-not-found",
        format!("there is no row {seq} in this thread"),
    )
}

/// The host answered what does not belong to the request: its own mistake.
pub(crate) fn unlike(outcome: &box_api::control::Outcome) -> Problem {
    tracing::error!(?outcome, "an answer does not belong to its request");
    Problem::new(
        super::Engine,
        "other-answer",
        "the host answered something else",
    )
}
