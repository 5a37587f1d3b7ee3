//! What box-egress is told before anything else: resolvers, roots, the proxy, the CA.

use super::link::{Link, LinkError};
use super::supervise::End;
use super::{Surroundings, ca, roots};
use box_api::egress::{Answer, Configuration, Request};
use std::net::SocketAddr;
use zeroize::Zeroizing;

/// Tells it all, and its secrets beside it: the CA's key, then the login for the proxy.
pub(super) async fn configure(
    around: &Surroundings,
    link: &mut Link,
    resolvers: &[SocketAddr],
) -> Result<(), End> {
    let (settings, paths) = (around.settings.now(), around.paths.clone());
    let (proxy, login) = settings.upstream.of_proxy();
    let secure_resolvers = settings.upstream.secure_resolvers.clone();
    let random = around.random.clone();
    let read = tokio::task::spawn_blocking(move || {
        Ok::<_, End>((roots::read(&settings)?, ca::ensure(&paths, &*random)?))
    });
    let (roots, authority) = read.await.map_err(|_| End::HostEnds)??;
    let configuration = Request::Configure(Configuration {
        resolvers: resolvers.to_vec(),
        roots_pem: roots.system_pem,
        extra_roots_pem: roots.extra_pem,
        ca_cert_pem: Some(authority.cert_pem),
        secure_resolvers,
        proxy,
    });
    let (key, login) = (authority.key_pem.as_bytes(), login.bytes());
    // With the whole capacity from the start a secret is never copied by growing.
    let mut secret = Zeroizing::new(Vec::with_capacity(key.len() + login.len()));
    secret.extend_from_slice(key);
    secret.extend_from_slice(login);
    match link.call_with(configuration, secret, &[]).await? {
        Answer::Done => Ok(()),
        Answer::Refused { why } => Err(End::Configure(why)),
        Answer::Welcome(_)
        | Answer::Credentials { .. }
        | Answer::Checked(_)
        | Answer::Status(_)
        | Answer::Map { .. } => Err(LinkError::Confused.into()),
    }
}
