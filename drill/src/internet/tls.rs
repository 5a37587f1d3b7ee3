//! An authority for the drill's internet: a leaf for whatever name is asked for.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::sync::Arc;

/// Why no certificate could be made.
#[derive(Debug, thiserror::Error)]
pub(super) enum TlsError {
    #[error("could not make a certificate")]
    Certificate(#[from] rcgen::Error),
    #[error("could not use a certificate")]
    Config(#[from] rustls::Error),
}

pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    leaf_key: KeyPair,
}

impl Authority {
    /// A new authority, and its certificate as PEM.
    pub(super) fn new() -> Result<(String, Self), TlsError> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params
            .distinguished_name
            .push(DnType::CommonName, "internet of a drill");
        let key = KeyPair::generate()?;
        let pem = params.self_signed(&key)?.pem();
        let leaf_key = KeyPair::generate()?;
        Ok((
            pem,
            Self {
                issuer: Issuer::new(params, key),
                leaf_key,
            },
        ))
    }

    /// Speaks TLS as `name`.
    pub(super) fn server(&self, name: &str) -> Result<Arc<ServerConfig>, TlsError> {
        let leaf =
            CertificateParams::new([name.to_owned()])?.signed_by(&self.leaf_key, &self.issuer)?;
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(self.leaf_key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![CertificateDer::from(leaf)], key)?;
        Ok(Arc::new(config))
    }
}
