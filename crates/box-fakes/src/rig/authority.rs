//! The rig's certificate authority: a leaf for whatever name is asked for.

use anyhow::{Context as _, Result};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::fmt;
use std::sync::Arc;

/// What is wrong with a server's certificate, if anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LeafKind {
    #[default]
    Good,
    Expired,
    /// For `other.invalid`.
    OtherName,
    /// Signed by its own key.
    SelfSigned,
}

pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    leaf_key: KeyPair,
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authority")
    }
}

impl Authority {
    /// A new authority, and its certificate as PEM.
    pub(crate) fn new() -> Result<(String, Self)> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params
            .distinguished_name
            .push(DnType::CommonName, "rig internet");
        let key = KeyPair::generate().context("could not make the rig's key")?;
        let certificate = params
            .self_signed(&key)
            .context("could not make the rig's authority")?;
        let leaf_key = KeyPair::generate().context("could not make the rig's leaf key")?;
        Ok((
            certificate.pem(),
            Self {
                issuer: Issuer::new(params, key),
                leaf_key,
            },
        ))
    }

    /// Speaks TLS as `name`, h2 and http/1.1.
    pub(crate) fn server(&self, name: &str, kind: LeafKind) -> Result<Arc<ServerConfig>> {
        let subject = if kind == LeafKind::OtherName {
            "other.invalid"
        } else {
            name
        };
        let mut params = CertificateParams::new([subject.to_owned()])
            .with_context(|| format!("`{name}` cannot stand in a certificate"))?;
        params
            .distinguished_name
            .push(DnType::CommonName, "rig leaf");
        // Python from 3.13 on wants it (RFC 5280 §4.2.1.1).
        params.use_authority_key_identifier_extension = true;
        if kind == LeafKind::Expired {
            params.not_before = rcgen::date_time_ymd(2020, 1, 1);
            params.not_after = rcgen::date_time_ymd(2020, 2, 1);
        }
        let leaf = if kind == LeafKind::SelfSigned {
            params.self_signed(&self.leaf_key)
        } else {
            params.signed_by(&self.leaf_key, &self.issuer)
        };
        let chain = vec![CertificateDer::from(leaf.context("could not sign a leaf")?)];
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(self.leaf_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .context("could not choose TLS versions")?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .context("could not use the leaf")?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}
