//! What the internet knows and remembers.

use super::{Answer, LeafKind, Peer, Reply};
use crate::model::ModelState;
use crate::push::PushState;
use crate::vendors::VendorState;
use anyhow::{Context as _, Result};
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

/// More than any test makes; later ones are not recorded.
const RECORDS_MAX: usize = 20_000;
const DIARY_LINES_MAX: usize = 10_000;

/// Headers that carry a credential somewhere.
const CREDENTIAL_HEADERS: &[&str] = &[
    "authorization",
    "proxy-authorization",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "private-token",
    "x-github-token",
    "cookie",
];

/// One question to the name server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// Lower case, no dot at the end.
    pub name: String,
    /// `A`, `AAAA`, `TXT`, …
    pub kind: String,
}

/// One request to a web server of the internet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// Host of the authority or of the `Host` header: lower case, no port.
    pub name: String,
    /// The address that was dialled.
    pub at: SocketAddr,
    /// The name in the `ClientHello`; absent on port 80.
    pub sni: Option<String>,
    /// `HTTP/1.1`, `HTTP/2.0`
    pub version: String,
    pub method: String,
    /// With its query.
    pub path: String,
    /// Lower-case names, in order.
    pub headers: Vec<(String, String)>,
    pub body_bytes: u64,
    /// The whole body was read.
    pub complete: bool,
}

impl Recorded {
    /// The first value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// The headers that carry a credential.
    pub fn credentials(&self) -> Vec<(&str, &str)> {
        self.headers
            .iter()
            .filter(|(key, _)| CREDENTIAL_HEADERS.contains(&key.as_str()))
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect()
    }
}

/// What the kernel counted on the internet's side (`/proc/net/snmp`, `/proc/net/snmp6`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Segments of IPv4 and IPv6.
    pub tcp_segments: u64,
    /// Datagrams of IPv4 and IPv6, whether anybody listened or not.
    pub udp_datagrams: u64,
}

impl Traffic {
    pub(crate) fn of_this_thread() -> Result<Self> {
        let read = |name: &str| {
            let path = format!("/proc/thread-self/net/{name}");
            std::fs::read_to_string(&path).with_context(|| format!("could not read `{path}`"))
        };
        let (v4, v6) = (read("snmp")?, read("snmp6")?);
        let udp6 = |key: &str| snmp6(&v6, key);
        Ok(Self {
            tcp_segments: snmp(&v4, "Tcp:", "InSegs"),
            udp_datagrams: snmp(&v4, "Udp:", "InDatagrams")
                + snmp(&v4, "Udp:", "NoPorts")
                + udp6("Udp6InDatagrams")
                + udp6("Udp6NoPorts"),
        })
    }
}

/// A value of the two-line tables of `/proc/net/snmp`: names, then numbers.
fn snmp(text: &str, table: &str, key: &str) -> u64 {
    let mut rows = text.lines().filter(|line| line.starts_with(table));
    let (Some(names), Some(values)) = (rows.next(), rows.next()) else {
        return 0;
    };
    let mut pairs = names.split_whitespace().zip(values.split_whitespace());
    pairs
        .find(|(name, _)| *name == key)
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or(0)
}

fn snmp6(text: &str, key: &str) -> u64 {
    let mut pairs = text
        .lines()
        .filter_map(|line| line.split_once(char::is_whitespace));
    pairs
        .find(|(name, _)| *name == key)
        .and_then(|(_, value)| value.trim().parse().ok())
        .unwrap_or(0)
}

/// All state of the internet.
#[derive(Debug, Default)]
pub struct World {
    zones: HashMap<String, Zone>,
    origins: Vec<String>,
    pub(crate) queries: Vec<Query>,
    /// Names asked for over TLS or HTTPS.
    pub(crate) asked_secretly: Vec<String>,
    /// What the proxy was asked to connect to.
    pub(crate) tunnels: Vec<String>,
    pub(crate) forges: HashMap<String, super::forge::Forge>,
    pub(crate) replies: HashMap<String, Reply>,
    pub(crate) leaves: HashMap<String, LeafKind>,
    pub(crate) requests: Vec<Recorded>,
    pub(crate) accepts: HashMap<SocketAddr, u64>,
    pub(crate) diary: VecDeque<String>,
    pub(crate) model: ModelState,
    pub(crate) vendors: VendorState,
    /// Push services, by name.
    pub(crate) push: HashMap<String, PushState>,
    pub(crate) peers: HashMap<SocketAddr, Peer>,
}

#[derive(Debug)]
struct Zone {
    answers: Vec<Answer>,
    /// How many queries of each type were answered.
    asked: HashMap<String, usize>,
}

impl World {
    pub(crate) fn set_zone(&mut self, name: String, answers: Vec<Answer>) {
        self.zones.insert(
            name,
            Zone {
                answers,
                asked: HashMap::new(),
            },
        );
    }

    /// The answer to the next query; a name nobody set does not exist.
    pub(crate) fn answer(&mut self, name: &str, kind: &str) -> Answer {
        let Some(zone) = self.zones.get_mut(name) else {
            return Answer::NxDomain;
        };
        let asked = zone.asked.entry(kind.to_owned()).or_default();
        let place = (*asked).min(zone.answers.len().saturating_sub(1));
        *asked += 1;
        zone.answers.get(place).cloned().unwrap_or(Answer::NxDomain)
    }

    /// Counts origins up; the same name gives the same number.
    pub(crate) fn origin_number(&mut self, name: &str, max: u8) -> Option<u8> {
        let place = self
            .origins
            .iter()
            .position(|known| known == name)
            .unwrap_or_else(|| {
                self.origins.push(name.to_owned());
                self.origins.len() - 1
            });
        u8::try_from(place).ok().filter(|number| *number < max)
    }

    pub(crate) fn asked(&mut self, query: Query) {
        self.note(format!("dns {} {}", query.kind, query.name));
        if self.queries.len() < RECORDS_MAX {
            self.queries.push(query);
        }
    }

    /// Remembers a request; the number leads back to it once its body was read.
    pub(crate) fn record(&mut self, request: Recorded) -> usize {
        let scheme = if request.sni.is_some() {
            "https"
        } else {
            "http"
        };
        self.note(format!(
            "{scheme} {} {}{}",
            request.method, request.name, request.path
        ));
        if self.requests.len() < RECORDS_MAX {
            self.requests.push(request);
        }
        self.requests.len() - 1
    }

    pub(crate) fn body_read(&mut self, number: usize, bytes: u64) {
        if let Some(request) = self.requests.get_mut(number) {
            request.body_bytes = bytes;
            request.complete = true;
        }
    }

    pub(crate) fn note(&mut self, line: String) {
        if self.diary.len() == DIARY_LINES_MAX {
            self.diary.pop_front();
        }
        self.diary.push_back(line);
    }
}
