//! A connection of a box, from the moment it is accepted: what it wants, whether it may, where it
//! leads, and how it is passed on. The stages follow one another here and nowhere else.

use crate::account::Account;
use crate::connect::connect;
use crate::context::BoxContext;
use crate::http::head::{Head, HeadError, read_head};
use crate::intercept::intercept;
use crate::plain::plain;
use crate::policy::{Allowed, Way};
use crate::refuse::{Door, Refused, over_tls};
use crate::socket::{self, Rewound, reset, tune};
use crate::tally::Tally;
use crate::target::{Form, Target, origin_host};
use crate::tunnel::hello::{self, Hello, HelloError};
use crate::tunnel::tunnel;
use box_api::egress::{HostName, Reason};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;

const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";
/// Time for the page to be written.
const FAREWELL_WAIT: Duration = Duration::from_secs(5);
const HTTP: u16 = 80;
const HTTPS: u16 = 443;

/// What the address a connection was made to stands for.
#[derive(Debug, Clone)]
pub(crate) enum Stands {
    /// A name of the box's map.
    For(HostName),
    /// A refused name: the connection says which.
    ForRefusal,
    /// Nothing: an address never given out, or one of the box's own.
    ForNothing { addr: String },
}

/// Serves a connection to the proxy port.
pub(crate) async fn proxy(ctx: Arc<BoxContext>, mut stream: TcpStream) {
    tune(&stream);
    let head = match read_head(&mut stream, Bytes::new()).await {
        Ok(head) => head,
        Err(error) => return answer_head_error(&ctx, stream, error, Door::Proxy).await,
    };
    match proxied(&ctx, head, &mut stream).await {
        Ok(Step::PassOn(pass)) => carry(ctx, stream, *pass).await,
        Ok(Step::Over) => {}
        Err(refused) => {
            ctx.note(&refused);
            close_with(stream, &refused.wire(Door::Proxy)).await;
        }
    }
}

/// A connection that is allowed and ready to be passed on.
struct Pass {
    allowed: Allowed,
    /// A connection to the host, where one was made to find out whether it answers.
    seed: Option<TcpStream>,
    first: First,
}

/// What was read of a connection to know where it leads.
enum First {
    Head(Head),
    Hello(Hello),
    Bytes(Bytes),
}

enum Step {
    PassOn(Box<Pass>),
    /// The client went away, or was told all there is.
    Over,
}

async fn proxied(ctx: &BoxContext, head: Head, stream: &mut TcpStream) -> Result<Step, Refused> {
    let target = Target::of_proxy_request(&head)?;
    let allowed = ctx.admit_or_ask(&target.host, target.port).await?;
    let refuse = |reason| Refused::new(target.host.as_str(), target.port, reason);
    let is_absolute = target.form == Form::Absolute;
    if is_absolute && matches!(allowed.way(), Way::Tls | Way::Intercept) {
        return Err(refuse(Reason::PlainHttp));
    }
    let configured = ctx.configured().ok_or_else(|| refuse(Reason::NoPolicy))?;
    let seed = Some(connect(ctx, &configured, allowed.clone()).await?);
    if is_absolute {
        return Ok(pass_on(allowed, seed, First::Head(head)));
    }
    if stream.write_all(ESTABLISHED).await.is_err() {
        return Ok(Step::Over);
    }
    // From here on the client speaks to the host and not to a proxy: what is refused now is told
    // the host's way, or not at all.
    match inside_tunnel(&allowed, head.rest(), stream).await {
        Ok(first) => Ok(pass_on(allowed, seed, first)),
        Err(None) => Ok(Step::Over),
        Err(Some(reason)) => {
            let refused = refuse(reason);
            ctx.note(&refused);
            if allowed.way() == Way::Http {
                // Whether it listened is the client's affair.
                drop(stream.write_all(&refused.wire(Door::Host)).await);
            } else {
                hello::alert(stream).await;
            }
            Ok(Step::Over)
        }
    }
}

fn pass_on(allowed: Allowed, seed: Option<TcpStream>, first: First) -> Step {
    Step::PassOn(Box::new(Pass {
        allowed,
        seed,
        first,
    }))
}

/// Reads what the client says first. An error without a reason: it went away.
async fn inside_tunnel(
    allowed: &Allowed,
    early: Bytes,
    stream: &mut TcpStream,
) -> Result<First, Option<Reason>> {
    match allowed.way() {
        Way::Opaque => Ok(First::Bytes(early)),
        Way::Http => {
            let head = read_head(stream, early).await.map_err(head_reason)?;
            Target::check_origin_request(&head, allowed.host())
                .map_err(|refused| Some(refused.reason))?;
            Ok(First::Head(head))
        }
        Way::Tls | Way::Intercept => {
            let hello = hello::peek(stream, early).await.map_err(hello_reason)?;
            if hello.name == allowed.host().as_str() {
                Ok(First::Hello(hello))
            } else {
                Err(Some(Reason::SniMismatch))
            }
        }
    }
}

/// Serves a connection to a fake address.
pub(crate) async fn transparent(
    ctx: Arc<BoxContext>,
    stream: TcpStream,
    stands: Stands,
    port: u16,
) {
    tune(&stream);
    match (stands, port) {
        (Stands::ForNothing { addr }, _) => {
            ctx.note(&Refused::new(&addr, port, Reason::UnknownAddress));
            reset(stream);
        }
        (Stands::For(name), HTTPS) => transparent_tls(ctx, stream, Some(name)).await,
        (Stands::ForRefusal, HTTPS) => transparent_tls(ctx, stream, None).await,
        (Stands::For(name), HTTP) => transparent_http(ctx, stream, Some(name)).await,
        (Stands::ForRefusal, HTTP) => transparent_http(ctx, stream, None).await,
        (Stands::For(name), _) => match ctx.admit_or_ask(&name, port).await {
            Ok(allowed) => {
                let first = First::Bytes(Bytes::new());
                carry(
                    ctx,
                    stream,
                    Pass {
                        allowed,
                        seed: None,
                        first,
                    },
                )
                .await;
            }
            Err(refused) => {
                ctx.note(&refused);
                reset(stream);
            }
        },
        (Stands::ForRefusal, _) => {
            ctx.note(&Refused::new("", port, Reason::NotListed));
            reset(stream);
        }
    }
}

/// TLS to a fake address. `expected` is the name the address stands for; without one the name is
/// the one the client asks for, and decided as if it had been looked up now.
async fn transparent_tls(ctx: Arc<BoxContext>, mut stream: TcpStream, expected: Option<HostName>) {
    let spoken_of = expected.as_ref().map(HostName::as_str).unwrap_or_default();
    let refuse = |reason| Refused::new(spoken_of, HTTPS, reason);
    let hello = match hello::peek(&mut stream, Bytes::new()).await {
        Ok(hello) => hello,
        Err(error) => {
            if let Some(reason) = hello_reason(error) {
                ctx.note(&refuse(reason));
            }
            return match error {
                HelloError::NoName => hello::alert(stream).await,
                HelloError::Closed | HelloError::NotTls | HelloError::TooSlow => reset(stream),
            };
        }
    };
    let named = HostName::parse(&hello.name)
        .ok()
        .filter(|named| named.as_str() == hello.name);
    let host = named.filter(|named| expected.as_ref().is_none_or(|expected| expected == named));
    let Some(host) = host else {
        ctx.note(&refuse(Reason::SniMismatch));
        return hello::alert(stream).await;
    };
    match ctx.admit_or_ask(&host, HTTPS).await {
        Ok(allowed) => {
            carry(
                ctx,
                stream,
                Pass {
                    allowed,
                    seed: None,
                    first: First::Hello(hello),
                },
            )
            .await;
        }
        Err(refused) => {
            let client = Rewound::new(hello.bytes, stream);
            over_tls::refuse(&ctx, &host, refused, client).await;
        }
    }
}

/// Plain HTTP to a fake address.
async fn transparent_http(ctx: Arc<BoxContext>, mut stream: TcpStream, expected: Option<HostName>) {
    let head = match read_head(&mut stream, Bytes::new()).await {
        Ok(head) => head,
        Err(error) => return answer_head_error(&ctx, stream, error, Door::Host).await,
    };
    let host = match expected {
        Some(expected) => Target::check_origin_request(&head, &expected).map(|()| expected),
        None => origin_host(&head),
    };
    let admitted = match host {
        Ok(host) => ctx.admit_or_ask(&host, HTTP).await,
        Err(refused) => Err(refused),
    };
    match admitted {
        Ok(allowed) => {
            carry(
                ctx,
                stream,
                Pass {
                    allowed,
                    seed: None,
                    first: First::Head(head),
                },
            )
            .await;
        }
        Err(refused) => {
            ctx.note(&refused);
            close_with(stream, &refused.wire(Door::Host)).await;
        }
    }
}

/// Passes an allowed connection on, for as long as the policy allows it.
async fn carry(ctx: Arc<BoxContext>, stream: TcpStream, pass: Pass) {
    let (allowed, tally) = (pass.allowed.clone(), pass.allowed.tally().clone());
    let account = Account::new(&ctx, &allowed, &stream);
    let outcome = tokio::select! {
        outcome = carry_on(Arc::clone(&ctx), (stream, tally), pass) => outcome,
        refused = ctx.revoked(&allowed) => Err(refused),
        refused = account.watch() => Err(refused),
    };
    if let Err(refused) = outcome {
        ctx.note(&refused);
    }
    account.close();
}

async fn carry_on(
    ctx: Arc<BoxContext>,
    (stream, tally): (TcpStream, Tally),
    pass: Pass,
) -> Result<(), Refused> {
    let Pass {
        allowed,
        seed,
        first,
    } = pass;
    match (allowed.way(), first) {
        (Way::Intercept, First::Hello(hello)) => {
            let client = Rewound::counted(hello.bytes, stream, tally);
            intercept(Arc::clone(&ctx), allowed, client, seed).await
        }
        (Way::Http | Way::Opaque, First::Head(head)) => {
            let client = (stream, tally);
            plain(Arc::clone(&ctx), allowed, head, client, seed).await
        }
        (Way::Tls, First::Hello(hello)) => {
            tls_tunnel(&ctx, allowed, (stream, tally), hello, seed).await
        }
        (Way::Opaque, First::Bytes(early)) => {
            opaque_tunnel(&ctx, allowed, (stream, tally), early, seed).await
        }
        // No stage makes another pair; if one did, nothing would be passed on.
        (Way::Http | Way::Tls | Way::Intercept | Way::Opaque, _) => Err(Refused::new(
            allowed.host().as_str(),
            allowed.port(),
            Reason::Malformed,
        )),
    }
}

async fn tls_tunnel(
    ctx: &BoxContext,
    allowed: Allowed,
    (stream, tally): (TcpStream, Tally),
    hello: Hello,
    seed: Option<TcpStream>,
) -> Result<(), Refused> {
    let host = allowed.host().clone();
    match connected(ctx, allowed, seed).await {
        Ok(upstream) => {
            // How a tunnel ends is between its two ends.
            drop(tunnel((stream, upstream), hello.bytes, &tally).await);
        }
        Err(refused) => {
            over_tls::refuse(ctx, &host, refused, Rewound::new(hello.bytes, stream)).await;
        }
    }
    Ok(())
}

async fn opaque_tunnel(
    ctx: &BoxContext,
    allowed: Allowed,
    (stream, tally): (TcpStream, Tally),
    early: Bytes,
    seed: Option<TcpStream>,
) -> Result<(), Refused> {
    match connected(ctx, allowed, seed).await {
        Ok(upstream) => {
            drop(tunnel((stream, upstream), early, &tally).await);
            Ok(())
        }
        Err(refused) => {
            reset(stream);
            Err(refused)
        }
    }
}

async fn connected(
    ctx: &BoxContext,
    allowed: Allowed,
    seed: Option<TcpStream>,
) -> Result<TcpStream, Refused> {
    if let Some(seed) = seed {
        return Ok(seed);
    }
    let no_policy = || Refused::new(allowed.host().as_str(), allowed.port(), Reason::NoPolicy);
    let configured = ctx.configured().ok_or_else(no_policy)?;
    connect(ctx, &configured, allowed).await
}

async fn answer_head_error(ctx: &BoxContext, stream: TcpStream, error: HeadError, door: Door) {
    let Some(reason) = head_reason(error) else {
        return;
    };
    let refused = Refused::nameless(reason);
    ctx.note(&refused);
    close_with(stream, &refused.wire(door)).await;
}

/// Writes, says that nothing follows, and lets the client finish, so that a request body under
/// way does not turn the answer into a reset.
pub(crate) async fn close_with(mut stream: TcpStream, page: &[u8]) {
    let talk = async {
        stream.write_all(page).await?;
        stream.shutdown().await?;
        socket::drain(stream).await;
        Ok::<_, std::io::Error>(())
    };
    // Whether it listened is the client's affair.
    drop(timeout(FAREWELL_WAIT, talk).await);
}

/// A client that goes away is refused nothing.
fn head_reason(error: HeadError) -> Option<Reason> {
    match error {
        HeadError::Closed => None,
        HeadError::Malformed | HeadError::TooLong => Some(Reason::Malformed),
        HeadError::TooSlow => Some(Reason::Timeout),
    }
}

fn hello_reason(error: HelloError) -> Option<Reason> {
    match error {
        HelloError::Closed => None,
        HelloError::NotTls => Some(Reason::NotTls),
        HelloError::NoName => Some(Reason::NoSni),
        HelloError::TooSlow => Some(Reason::Timeout),
    }
}
