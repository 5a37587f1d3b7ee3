//! For unit tests: a network namespace of the test's own, and a box's context without a box.

use crate::context::{BoxContext, Configured, Counters, Holdings, Views};
use crate::events::{self, EventQueue};
use crate::http::upstream::UpstreamTls;
use crate::intercept::grant::Credential;
use crate::intercept::leaf::Minter;
use crate::intercept::login::desk::Desk;
use crate::policy::Settings;
use crate::resolve::Resolver;
use box_api::BoxId;
use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use tokio::sync::{Semaphore, watch};

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, sendto, socket_with};
use rustix::thread::UnshareFlags;

/// Moves this thread into a fresh network namespace and brings its `lo` up. Threads started
/// afterwards are in it as well.
#[expect(
    deprecated,
    reason = "the successor is unsafe, for flags that are not used here"
)]
pub(crate) fn enter_own_network() {
    rustix::thread::unshare(UnshareFlags::NEWNET).expect("network namespaces need root");
    // Protocol 0 is NETLINK_ROUTE.
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        None,
    );
    // RTM_NEWLINK (16), NLM_F_REQUEST: interface 1 is `lo`, IFF_UP is flag 1.
    let mut message = Vec::new();
    message.extend_from_slice(&32u32.to_ne_bytes());
    message.extend_from_slice(&[16, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    message.extend_from_slice(&[0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]);
    let kernel = SocketAddrNetlink::new(0, 0);
    sendto(socket.unwrap(), &message, SendFlags::empty(), &kernel).unwrap();
}

/// A context, and the ends it hangs on.
pub(crate) struct Fixture {
    pub(crate) ctx: Arc<BoxContext>,
    pub(crate) queue: EventQueue,
    _settings: Arc<watch::Sender<Settings>>,
    _holdings: Arc<watch::Sender<Holdings>>,
}

impl Fixture {
    pub(crate) fn new(
        settings: Settings,
        configured: Option<Configured>,
        credentials: Vec<Credential>,
    ) -> Self {
        let box_id = BoxId::from_random([1; 10]);
        let placeholders = settings
            .bindings
            .iter()
            .map(|own| (own.placeholder.clone(), box_id));
        let credentials = credentials
            .into_iter()
            .map(|own| (own.spec.id.clone(), Arc::new(own)))
            .collect();
        let holdings = Holdings {
            configured: configured.map(Arc::new),
            credentials,
            placeholders: placeholders.collect(),
            login_key: None,
        };
        let (settings_held, settings) = watch::channel(settings);
        let (holdings_held, holdings) = watch::channel(holdings);
        let (settings_held, holdings_held) = (Arc::new(settings_held), Arc::new(holdings_held));
        let (events, queue) = events::queue();
        let (counters, room) = (Arc::new(Counters::default()), Arc::new(Semaphore::new(100)));
        let views = Views {
            settings,
            holdings,
            events,
            counters,
            grants: Arc::default(),
            room,
            logins: Desk {
                box_id,
                settings: Arc::downgrade(&settings_held),
                holdings: Arc::downgrade(&holdings_held),
            },
        };
        Self {
            ctx: Arc::new(BoxContext::new(box_id, views)),
            queue,
            _settings: settings_held,
            _holdings: holdings_held,
        }
    }
}

pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// TLS for a client that trusts `roots` and offers `alpn`.
pub(crate) fn trusting(roots: &RootCertStore, alpn: &[&str]) -> Arc<ClientConfig> {
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots.clone())
        .with_no_client_auth();
    config.alpn_protocols = alpn
        .iter()
        .map(|protocol| protocol.as_bytes().to_vec())
        .collect();
    Arc::new(config)
}

/// A configuration without name servers.
pub(crate) fn configured(roots: &RootCertStore, minter: Option<Arc<Minter>>) -> Configured {
    let any = trusting(roots, &["h2", "http/1.1"]);
    let http1 = trusting(roots, &["http/1.1"]);
    let resolver = Resolver::new(&[], &[], ClientConfig::clone(&any)).unwrap();
    Configured {
        resolver,
        upstream_tls: UpstreamTls { any, http1 },
        minter,
        proxy: None,
    }
}
