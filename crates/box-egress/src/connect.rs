//! From an allowed connection to a stream: resolved, every address judged, dialled, and judged
//! again by the policy as it is by then.

use crate::context::{BoxContext, Configured};
use crate::dial::dial;
use crate::policy::{Allowed, Basis};
use crate::refuse::Refused;
use box_api::egress::Reason;
use box_api::egress::policy::Rule;
use box_api::egress::upstream::Told;
use tokio::net::TcpStream;

/// Connects to where the connection may lead, directly or through the proxy of this network.
pub(crate) async fn connect(
    ctx: &BoxContext,
    configured: &Configured,
    allowed: Allowed,
) -> Result<TcpStream, Refused> {
    let proxy = configured.proxy.as_ref();
    let by_name = proxy.filter(|proxy| {
        let named = proxy.told() == Told::Name && !has_own_address_rules(ctx, &allowed);
        named && !proxy.is_direct(allowed.host(), allowed.port())
    });
    if let Some(proxy) = by_name {
        return proxy.connect_by_name(&configured.resolver, &allowed).await;
    }
    let judge = |addr| ctx.may_lead_to(&allowed, addr);
    let pinned = configured.resolver.resolve(allowed.clone(), judge).await?;
    let (stream, addr) = match proxy {
        Some(proxy) if !proxy.is_direct(allowed.host(), allowed.port()) => {
            proxy.dial(&configured.resolver, &pinned).await?
        }
        Some(_) | None => dial(&pinned).await?,
    };
    // Noted before it is judged: a policy that changes later finds it.
    if !allowed.reached().add(addr) {
        return Err(allowed.refuse(Reason::TooManyConnections));
    }
    ctx.may_lead_to(&allowed, addr)?;
    Ok(stream)
}

/// Whether the owner said something about addresses that only an address can be held against. The
/// name is resolved and judged here then, whatever the proxy would be told otherwise.
fn has_own_address_rules(ctx: &BoxContext, allowed: &Allowed) -> bool {
    let is_private = matches!(allowed.basis(), Basis::Policy(Rule::Private { .. }));
    is_private || ctx.with_settings(|settings| !settings.policy.deny_networks.is_empty())
}
