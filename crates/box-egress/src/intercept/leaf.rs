//! Certificates for the hosts that are opened up, made as they are needed, under the deployment's
//! CA. One key serves all of them; a leaf names one host and holds for a day.

use crate::clock;
use box_api::egress::HostName;
use lru::LruCache;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair,
    KeyUsagePurpose, SerialNumber,
};
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::server::{ServerSessionMemoryCache, StoresServerSessions};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

const VALID: Duration = Duration::from_hours(24);
/// Clocks differ.
const BACKDATED: Duration = Duration::from_hours(1);
/// Half its life, so that nobody is shown one that ends within a connection's handshake.
const RENEWED_AFTER: Duration = Duration::from_hours(12);
const HOSTS_MAX: NonZeroUsize = NonZeroUsize::new(512).expect("not zero");
/// Names of refusals are chosen by boxes; they never push out a host's leaf.
const REFUSALS_MAX: NonZeroUsize = NonZeroUsize::new(128).expect("not zero");
const SESSIONS_MAX: usize = 4096;
const COMMON_NAME_CHARS_MAX: usize = 64;

/// Why no certificate could be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MintError {
    #[error("could not read the CA: {0}")]
    Certificate(#[from] rcgen::Error),
    #[error("could not use the leaf's key: {0}")]
    Tls(#[from] rustls::Error),
    #[error("the system gave no random numbers: {0}")]
    Random(getrandom::Error),
}

/// What a leaf is for; each has a cache of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Host,
    Refusal,
}

struct Leaf {
    config: Arc<ServerConfig>,
    made: Instant,
}

pub(crate) struct Minter {
    issuer: Issuer<'static, KeyPair>,
    leaf_key: KeyPair,
    signing_key: Arc<dyn rustls::sign::SigningKey>,
    provider: Arc<CryptoProvider>,
    sessions: Arc<dyn StoresServerSessions>,
    hosts: Mutex<LruCache<HostName, Leaf>>,
    refusals: Mutex<LruCache<HostName, Leaf>>,
}

impl Minter {
    /// # Errors
    /// When certificate and key are not a CA's.
    pub(crate) fn new(
        ca_cert_pem: &str,
        ca_key_pem: &str,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, MintError> {
        let issuer = Issuer::from_ca_cert_pem(ca_cert_pem, KeyPair::from_pem(ca_key_pem)?)?;
        let leaf_key = KeyPair::generate()?;
        let der = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(leaf_key.serialize_der()));
        let signing_key = provider.key_provider.load_private_key(der)?;
        Ok(Self {
            issuer,
            leaf_key,
            signing_key,
            provider,
            sessions: ServerSessionMemoryCache::new(SESSIONS_MAX),
            hosts: Mutex::new(LruCache::new(HOSTS_MAX)),
            refusals: Mutex::new(LruCache::new(REFUSALS_MAX)),
        })
    }

    /// The TLS configuration that stands for `host` towards a box.
    pub(crate) async fn config(
        &self,
        host: &HostName,
        purpose: Purpose,
    ) -> Result<Arc<ServerConfig>, MintError> {
        let cache = match purpose {
            Purpose::Host => &self.hosts,
            Purpose::Refusal => &self.refusals,
        };
        let mut cache = cache.lock().await;
        if let Some(leaf) = cache
            .get(host)
            .filter(|leaf| leaf.made.elapsed() < RENEWED_AFTER)
        {
            return Ok(Arc::clone(&leaf.config));
        }
        let config = Arc::new(self.mint(host)?);
        cache.put(
            host.clone(),
            Leaf {
                config: Arc::clone(&config),
                made: Instant::now(),
            },
        );
        Ok(config)
    }

    fn mint(&self, host: &HostName) -> Result<ServerConfig, MintError> {
        let mut params = CertificateParams::new([host.to_string()])?;
        let now = clock::now();
        params.not_before = (now - BACKDATED).into();
        params.not_after = (now + VALID).into();
        let mut serial = [0; 16];
        getrandom::fill(&mut serial).map_err(MintError::Random)?;
        // A serial number is positive (RFC 5280 §4.1.2.2).
        serial[0] &= 0x7f;
        params.serial_number = Some(SerialNumber::from_slice(&serial));
        params.distinguished_name = DistinguishedName::new();
        if host.as_str().len() <= COMMON_NAME_CHARS_MAX {
            params
                .distinguished_name
                .push(DnType::CommonName, host.as_str());
        }
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let leaf = params.signed_by(&self.leaf_key, &self.issuer)?;
        let key = CertifiedKey::new(vec![leaf.into()], Arc::clone(&self.signing_key));
        let mut config = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(key)));
        config.session_storage = Arc::clone(&self.sessions);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}
