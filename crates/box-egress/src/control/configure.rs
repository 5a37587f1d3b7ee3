//! `Configure`: name servers, the roots hosts are judged by, the CA boxes are shown.

use super::Keeper;
use crate::context::Configured;
use crate::dial::proxy::Proxy;
use crate::http::upstream::UpstreamTls;
use crate::intercept::leaf::Minter;
use crate::resolve::Resolver;
use box_api::egress::upstream::DIRECT_MAX;
use box_api::egress::{Answer, Configuration};
use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use std::sync::Arc;
use zeroize::Zeroizing;

impl Keeper {
    pub(super) fn configure(
        &mut self,
        configuration: &Configuration,
        secret: &Zeroizing<Vec<u8>>,
    ) -> Result<Answer, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let roots = roots(&[&configuration.roots_pem, &configuration.extra_roots_pem])?;
        let (plain, secure) = (&configuration.resolvers, &configuration.secure_resolvers);
        let resolver = tls_to(roots.clone(), &provider)
            .map_err(|error| error.to_string())
            .and_then(|tls| Resolver::new(plain, secure, tls).map_err(|error| error.to_string()))
            .map_err(|error| format!("could not use the name servers: {error}"))?;
        let (secret, login) = split_off_login(configuration, secret)?;
        let proxy = match &configuration.proxy {
            Some(spec) => Some(Proxy::new(spec.clone(), login)?),
            None => None,
        };
        let upstream_tls = upstream_tls(roots, &provider)
            .map_err(|error| format!("could not set up TLS to hosts: {error}"))?;
        let minter = match &configuration.ca_cert_pem {
            None => None,
            Some(certificate) => {
                let key = std::str::from_utf8(secret).map_err(|_| "the CA's key is not PEM")?;
                let minter = Minter::new(certificate, key, provider);
                Some(Arc::new(minter.map_err(|error| error.to_string())?))
            }
        };
        self.has_ca = minter.is_some();
        let configured = Arc::new(Configured {
            resolver,
            upstream_tls,
            minter,
            proxy,
        });
        self.holdings
            .send_modify(|holdings| holdings.configured = Some(configured));
        Ok(Answer::Done)
    }
}

/// Certificates that cannot be used are left out, as TLS libraries do: old ones lie in every
/// system's bundle.
fn roots(bundles: &[&String]) -> Result<RootCertStore, String> {
    let mut store = RootCertStore::empty();
    for bundle in bundles {
        for certificate in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
            let certificate =
                certificate.map_err(|error| format!("could not read the roots: {error}"))?;
            store.add_parsable_certificates([certificate]);
        }
    }
    Ok(store)
}

fn upstream_tls(
    roots: RootCertStore,
    provider: &Arc<CryptoProvider>,
) -> Result<UpstreamTls, rustls::Error> {
    let mut any = tls_to(roots, provider)?;
    let mut http1 = any.clone();
    any.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    http1.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(UpstreamTls {
        any: Arc::new(any),
        http1: Arc::new(http1),
    })
}

fn tls_to(
    roots: RootCertStore,
    provider: &Arc<CryptoProvider>,
) -> Result<ClientConfig, rustls::Error> {
    Ok(ClientConfig::builder_with_provider(Arc::clone(provider))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth())
}

/// The CA's key, and the login for the proxy that lies behind it.
fn split_off_login<'a>(
    configuration: &Configuration,
    secret: &'a [u8],
) -> Result<(&'a [u8], &'a [u8]), String> {
    let Some(proxy) = &configuration.proxy else {
        return Ok((secret, &[]));
    };
    if proxy.direct.len() > DIRECT_MAX {
        return Err(format!(
            "more than {DIRECT_MAX} hosts are reached without the proxy"
        ));
    }
    let login_bytes = usize::try_from(proxy.login_bytes).unwrap_or(usize::MAX);
    let at = secret.len().checked_sub(login_bytes);
    let at = at.ok_or("the login for the proxy is not there")?;
    Ok(secret.split_at(at))
}
