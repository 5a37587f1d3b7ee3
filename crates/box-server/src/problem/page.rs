//! What can go wrong about the page and who may use it.

use super::{Failed, Refused, Usage, store, told};
use box_api::Problem;
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
