//! From an allowed name to the addresses it may be dialled at. One bad address refuses the whole
//! answer: a name that leads to a private address once is not trusted with its public one.

use crate::limits::RESOLVE_WAIT;
use crate::policy::Allowed;
use crate::refuse::Refused;
use box_api::egress::upstream::{CertifiedAs, SecureWay};
use box_api::egress::{HostName, Reason, SecureResolver};
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ServerOrderingStrategy,
};
use hickory_resolver::lookup::Lookup;
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use rustls::ClientConfig;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Answers are kept at least and at most so long, whatever the server says: rebinding needs
/// short ones, mistakes are kept by long ones.
const TTL_MIN: Duration = Duration::from_secs(5);
const TTL_MAX: Duration = Duration::from_mins(5);
const NEGATIVE_TTL_MAX: Duration = Duration::from_secs(30);
const QUERY_WAIT: Duration = Duration::from_secs(2);
const QUERY_ATTEMPTS: usize = 2;
const CACHE_ENTRIES_MAX: u64 = 4096;
/// Addresses of a name that are dialled; all are judged.
const DIALLED_MAX: usize = 8;

/// The name servers the host configured, and nothing else: no hosts file, no search list.
pub(crate) struct Resolver {
    /// Over TLS, where the host configured such.
    of_hosts: TokioResolver,
    /// In the clear. Finds the proxy, whose name may be known to this network's servers alone.
    of_proxy: TokioResolver,
}

/// Addresses that were judged, for a connection that was allowed. Only [`Resolver::resolve`]
/// makes one, and only this can be dialled.
pub(crate) struct Pinned {
    allowed: Allowed,
    addrs: Vec<SocketAddr>,
}

impl Pinned {
    pub(crate) fn allowed(&self) -> &Allowed {
        &self.allowed
    }

    pub(crate) fn addrs(&self) -> &[SocketAddr] {
        &self.addrs
    }
}

impl Resolver {
    /// `tls` is what name servers that are asked over TLS are judged by.
    ///
    /// # Errors
    /// When the name servers make no usable configuration.
    pub(crate) fn new(
        servers: &[SocketAddr],
        secure: &[SecureResolver],
        tls: ClientConfig,
    ) -> Result<Self, NetError> {
        let plain: Vec<NameServerConfig> = servers.iter().map(name_server).collect();
        let of_hosts = if secure.is_empty() {
            plain.clone()
        } else {
            secure.iter().map(secure_server).collect()
        };
        Ok(Self {
            of_hosts: asking(of_hosts, tls.clone())?,
            of_proxy: asking(plain, tls)?,
        })
    }

    /// Where the proxy is. Its owner chose it, so nothing is judged.
    pub(crate) async fn addresses_of_proxy(&self, name: &HostName) -> Vec<IpAddr> {
        let Some(name) = wire_name(name) else {
            return Vec::new();
        };
        let (a, aaaa) = tokio::join!(
            self.of_proxy.lookup(name.clone(), RecordType::A),
            self.of_proxy.lookup(name.clone(), RecordType::AAAA)
        );
        let mut addrs = answers([a, aaaa].into_iter().flatten());
        addrs.truncate(DIALLED_MAX);
        addrs
    }

    /// Looks the name up once, both families, and judges every address and every name on the way.
    pub(crate) async fn resolve(
        &self,
        allowed: Allowed,
        judge: impl Fn(IpAddr) -> Result<(), Refused>,
    ) -> Result<Pinned, Refused> {
        let refuse = |reason| allowed.refuse(reason);
        let name = wire_name(allowed.host()).ok_or_else(|| refuse(Reason::Dns))?;
        let both = async {
            tokio::join!(
                self.of_hosts.lookup(name.clone(), RecordType::A),
                self.of_hosts.lookup(name.clone(), RecordType::AAAA),
            )
        };
        let (a, aaaa) = timeout(RESOLVE_WAIT, both)
            .await
            .map_err(|_| refuse(Reason::Dns))?;
        let lookups: Vec<Lookup> = [a, aaaa].into_iter().flatten().collect();
        // An exception is for a name and wherever it leads, by whatever alias.
        if !allowed.is_excepted() && leads_to_local_name(&lookups) {
            return Err(refuse(Reason::PrivateAddress));
        }
        let addrs = answers(lookups.into_iter());
        if addrs.is_empty() {
            return Err(refuse(Reason::Dns));
        }
        addrs.iter().copied().try_for_each(judge)?;
        let port = allowed.port();
        let addrs = addrs.into_iter().take(DIALLED_MAX);
        let addrs = addrs.map(|addr| SocketAddr::new(addr, port)).collect();
        Ok(Pinned { allowed, addrs })
    }
}

fn name_server(addr: &SocketAddr) -> NameServerConfig {
    let at_port = |mut connection: ConnectionConfig| {
        connection.port = addr.port();
        connection
    };
    let ways = vec![
        at_port(ConnectionConfig::udp()),
        at_port(ConnectionConfig::tcp()),
    ];
    NameServerConfig::new(addr.ip(), true, ways)
}

fn wire_name(host: &HostName) -> Option<Name> {
    let mut name = Name::from_labels(host.as_str().split('.').map(str::as_bytes)).ok()?;
    name.set_fqdn(true);
    Some(name)
}

/// Whether an alias leads to a name of this machine or its network.
fn leads_to_local_name(lookups: &[Lookup]) -> bool {
    let mut records = lookups.iter().flat_map(Lookup::answers);
    records.any(|record| matches!(&record.data, RData::CNAME(target) if !is_public_name(&target.0)))
}

/// The addresses, IPv6 and IPv4 in turn, IPv6 first (RFC 8305 §4).
fn answers(lookups: impl Iterator<Item = Lookup>) -> Vec<IpAddr> {
    let (mut v4, mut v6) = (Vec::new(), Vec::new());
    for lookup in lookups {
        for record in lookup.answers() {
            #[expect(
                clippy::wildcard_enum_match_arm,
                reason = "other types are not asked for"
            )]
            match &record.data {
                RData::A(addr) => v4.push(IpAddr::V4(addr.0)),
                RData::AAAA(addr) => v6.push(IpAddr::V6(addr.0)),
                _ => {}
            }
        }
    }
    let (mut v4, mut v6) = (v4.into_iter(), v6.into_iter());
    let mut addrs = Vec::with_capacity(v4.len() + v6.len());
    loop {
        let pair = (v6.next(), v4.next());
        if pair == (None, None) {
            return addrs;
        }
        addrs.extend(pair.0.into_iter().chain(pair.1));
    }
}

fn is_public_name(name: &Name) -> bool {
    HostName::parse(&name.to_ascii()).is_ok_and(|name| !name.is_local())
}

fn asking(servers: Vec<NameServerConfig>, tls: ClientConfig) -> Result<TokioResolver, NetError> {
    let config = ResolverConfig::from_name_servers(servers);
    let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
    let options = builder.options_mut();
    options.ndots = 0;
    options.timeout = QUERY_WAIT;
    options.attempts = QUERY_ATTEMPTS;
    options.cache_size = CACHE_ENTRIES_MAX;
    options.use_hosts_file = ResolveHosts::Never;
    options.positive_min_ttl = Some(TTL_MIN);
    options.positive_max_ttl = Some(TTL_MAX);
    options.negative_max_ttl = Some(NEGATIVE_TTL_MAX);
    options.preserve_intermediates = true;
    options.try_tcp_on_error = true;
    options.server_ordering_strategy = ServerOrderingStrategy::UserProvidedOrder;
    builder.with_tls_config(tls).build()
}

fn secure_server(resolver: &SecureResolver) -> NameServerConfig {
    let name: Arc<str> = match &resolver.name {
        CertifiedAs::Address(addr) => addr.to_string().into(),
        CertifiedAs::Name(name) => name.as_str().into(),
    };
    let mut way = match &resolver.way {
        SecureWay::Tls => ConnectionConfig::tls(name),
        SecureWay::Https { path } => ConnectionConfig::https(name, Some(path.as_str().into())),
    };
    way.port = resolver.address.port();
    NameServerConfig::new(resolver.address.ip(), true, vec![way])
}
