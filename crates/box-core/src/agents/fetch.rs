//! Downloads one package: where it is, how often it is tried, whether it is what was locked.
//!
//! An interrupted download goes on where it stopped when the registry can (RFC 9110, *Range*).

use super::error::InstallError;
use super::lock::Package;
use super::npm::NpmConfig;
use sha2::{Digest as _, Sha512};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use ureq::config::AutoHeaderValue;
use ureq::http::{Response, StatusCode};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Body, Proxy};

/// Largest package file.
const TARBALL_BYTES_MAX: u64 = 1 << 30;
/// Largest description of a package version.
const DESCRIPTION_BYTES_MAX: u64 = 4 << 20;
const COPY_BYTES: usize = 64 << 10;
const CONNECT_TIME_MAX: Duration = Duration::from_secs(15);
const ANSWER_TIME_MAX: Duration = Duration::from_secs(30);
/// How long a download may stand still.
const STILL_TIME_MAX: Duration = Duration::from_mins(1);

/// How far all downloads of an installation are; shared by its threads.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) packages: AtomicUsize,
    pub(super) bytes: AtomicU64,
    /// Somebody else installs the same.
    pub(super) waiting: AtomicBool,
    /// One failed: the others need not go on.
    pub(super) stop: AtomicBool,
}

/// What all downloads have in common.
pub(super) struct Fetcher<'run> {
    pub(super) config: &'run NpmConfig,
    pub(super) agent: Agent,
    pub(super) counters: &'run Counters,
    pub(super) deadline: Instant,
    /// Waits between tries; one try more than there are waits.
    pub(super) pauses: &'run [Duration],
}

/// A download so far.
struct Partial {
    file: File,
    hash: Sha512,
    bytes: u64,
}

/// Why a try gave nothing.
enum Failed {
    /// It may work later, from where it stopped.
    Again(String),
    Never(String),
    /// Nothing is at this address.
    Missing,
    /// Another download failed.
    Stopped,
}

/// A client with the machine's certificates, npm's `cafile` and the machine's proxy.
pub(super) fn agent(config: &NpmConfig) -> Result<Agent, InstallError> {
    let mut roots: Vec<Certificate<'static>> = rustls_native_certs::load_native_certs()
        .certs
        .iter()
        .map(|certificate| Certificate::from_der(certificate).to_owned())
        .collect();
    if let Some(path) = &config.cafile {
        let pem = std::fs::read(path).map_err(|error| InstallError::Config {
            what: format!("`cafile`: {error}"),
        })?;
        roots.extend(parse_pem(&pem).filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        }));
    }
    let mut builder = Agent::config_builder()
        .http_status_as_error(false)
        .tls_config(
            TlsConfig::builder()
                .root_certs(RootCerts::new_with_certs(&roots))
                .build(),
        )
        .user_agent(concat!("box/", env!("CARGO_PKG_VERSION")))
        // A package is hashed as it is stored; nobody may unpack it on the way.
        .accept_encoding(AutoHeaderValue::None)
        .timeout_connect(Some(CONNECT_TIME_MAX))
        .timeout_recv_response(Some(ANSWER_TIME_MAX))
        .timeout_per_read(Some(STILL_TIME_MAX));
    if let Some(proxy) = &config.proxy {
        let proxy = Proxy::new(proxy).map_err(|_| InstallError::Config {
            what: "its proxy is no address".to_owned(),
        })?;
        builder = builder.proxy(Some(proxy));
    }
    Ok(builder.build().new_agent())
}

impl Fetcher<'_> {
    /// Downloads a package into a new file and checks it.
    pub(super) fn fetch(&self, package: &Package, into: &Path) -> Result<(), InstallError> {
        let failed = |why| InstallError::Download {
            package: package.title(),
            why,
        };
        let file = File::create_new(into).map_err(InstallError::store("keep a download"))?;
        let mut partial = Partial {
            file,
            hash: Sha512::new(),
            bytes: 0,
        };
        let registry = self.config.registry_of(&package.name);
        let mut url = usual_place(registry, package);
        let mut asked = false;
        let mut pauses = self.pauses.iter();
        loop {
            match self.attempt(&url, &mut partial) {
                Ok(()) => break,
                Err(Failed::Missing) if !asked => {
                    url = self.told_place(registry, package).map_err(failed)?;
                    asked = true;
                }
                Err(Failed::Missing) => {
                    return Err(failed("the registry does not have it".to_owned()));
                }
                Err(Failed::Never(why)) => return Err(failed(why)),
                Err(Failed::Stopped) => return Err(InstallError::GivenUp),
                Err(Failed::Again(why)) => match pauses.next() {
                    Some(pause) => std::thread::sleep(*pause),
                    None => return Err(failed(why)),
                },
            }
        }
        if partial.hash.finalize()[..] != package.sha512 {
            return Err(InstallError::Integrity {
                package: package.title(),
            });
        }
        Ok(())
    }

    fn attempt(&self, url: &str, partial: &mut Partial) -> Result<(), Failed> {
        let mut request = self.agent.get(url);
        if let Some(value) = self.config.authorization(url) {
            request = request.header("authorization", value);
        }
        if partial.bytes > 0 {
            request = request.header("range", format!("bytes={}-", partial.bytes));
        }
        let mut response = request
            .call()
            .map_err(|error| Failed::Again(error.to_string()))?;
        match response.status() {
            StatusCode::OK => self.restart(partial)?,
            StatusCode::PARTIAL_CONTENT if goes_on_at(&response, partial.bytes) => {}
            StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE => {
                self.restart(partial)?;
                return Err(Failed::Again(
                    "the registry went on at another place".to_owned(),
                ));
            }
            StatusCode::NOT_FOUND => return Err(Failed::Missing),
            status => return Err(refused(status)),
        }
        let mut body = response
            .body_mut()
            .with_config()
            .limit(TARBALL_BYTES_MAX)
            .reader();
        let mut buffer = vec![0; COPY_BYTES];
        loop {
            if self.counters.stop.load(Ordering::Relaxed) {
                return Err(Failed::Stopped);
            } else if Instant::now() > self.deadline {
                return Err(Failed::Never("there was no more time".to_owned()));
            }
            let count = match body.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(error) => return Err(Failed::Again(error.to_string())),
            };
            partial
                .file
                .write_all(&buffer[..count])
                .map_err(|error| disk(&error))?;
            partial.hash.update(&buffer[..count]);
            partial.bytes += count as u64;
            self.counters
                .bytes
                .fetch_add(count as u64, Ordering::Relaxed);
            if partial.bytes > TARBALL_BYTES_MAX {
                return Err(Failed::Never(format!(
                    "it has more than {TARBALL_BYTES_MAX} bytes"
                )));
            }
        }
    }

    fn restart(&self, partial: &mut Partial) -> Result<(), Failed> {
        self.counters
            .bytes
            .fetch_sub(partial.bytes, Ordering::Relaxed);
        (partial.hash, partial.bytes) = (Sha512::new(), 0);
        partial
            .file
            .set_len(0)
            .and_then(|()| partial.file.rewind())
            .map_err(|error| disk(&error))
    }

    /// The address the registry itself gives, where packages are not at the usual place. Only one
    /// at the same host counts.
    fn told_place(&self, registry: &str, package: &Package) -> Result<String, String> {
        let name = package.name.replace('/', "%2f");
        let url = format!("{registry}{name}/{}", package.version);
        let mut request = self.agent.get(&url).header("accept", "application/json");
        if let Some(value) = self.config.authorization(&url) {
            request = request.header("authorization", value);
        }
        let mut response = request.call().map_err(|error| error.to_string())?;
        if response.status() != StatusCode::OK {
            return Err("the registry does not have it".to_owned());
        }
        let mut text = Vec::new();
        response
            .body_mut()
            .as_reader()
            .take(DESCRIPTION_BYTES_MAX)
            .read_to_end(&mut text)
            .map_err(|error| error.to_string())?;
        let described: serde_json::Value =
            serde_json::from_slice(&text).map_err(|error| error.to_string())?;
        let place = described["dist"]["tarball"].as_str().unwrap_or_default();
        if place.is_empty() || origin(place) != origin(registry) {
            return Err("the registry names no place of its own for it".to_owned());
        }
        Ok(place.to_owned())
    }
}

/// `<registry><name>/-/<last part of the name>-<version>.tgz`, where npm itself publishes.
fn usual_place(registry: &str, package: &Package) -> String {
    let Package { name, version, .. } = package;
    let own = name.rsplit_once('/').map_or(name.as_str(), |(_, own)| own);
    format!("{registry}{name}/-/{own}-{version}.tgz")
}

/// Scheme, host and port of an address.
fn origin(url: &str) -> Option<&str> {
    let start = url.find("://")? + 3;
    let end = url[start..]
        .find('/')
        .map_or(url.len(), |slash| start + slash);
    Some(&url[..end])
}

fn goes_on_at(response: &Response<Body>, byte: u64) -> bool {
    let range = response
        .headers()
        .get("content-range")
        .and_then(|value| value.to_str().ok());
    range.is_some_and(|range| range.starts_with(&format!("bytes {byte}-")))
}

fn refused(status: StatusCode) -> Failed {
    let why = format!("the registry answered {status}");
    let later = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS];
    if status.is_server_error() || later.contains(&status) {
        Failed::Again(why)
    } else {
        Failed::Never(why)
    }
}

fn disk(error: &io::Error) -> Failed {
    Failed::Never(format!("it cannot be kept: {error}"))
}

#[cfg(test)]
mod tests;
