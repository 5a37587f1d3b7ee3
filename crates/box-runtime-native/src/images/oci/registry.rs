//! Speaks to a registry (distribution specification, *Pull*): manifests, layers, tokens.
//!
//! Its answers are nobody's word: what comes is bounded here and checked against digests by
//! whoever asked. A login goes to the registry it is kept for and to where that sends for tokens,
//! never over an open connection to another machine.

use super::challenge::{self, Challenge};
use super::credentials::{Login, Logins, secret};
use super::manifest::{ACCEPT, DOCUMENT_BYTES_MAX};
use super::name::{OciName, is_local};
use crate::images::error::ImageError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use std::io::{self, Read as _};
use std::time::Duration;
use ureq::config::{AutoHeaderValue, RedirectAuthHeaders};
use ureq::http::{HeaderMap, Response, StatusCode, Uri};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Body};
use zeroize::Zeroizing;

const CONNECT_TIME_MAX: Duration = Duration::from_secs(15);
const ANSWER_TIME_MAX: Duration = Duration::from_secs(30);
const TOKEN_BYTES_MAX: u64 = 256 << 10;

/// A registry as one image is pulled from it.
pub(super) struct Registry {
    agent: Agent,
    pub(super) name: OciName,
    login: Login,
}

/// Requests one after the other; keeps what shows who asks.
pub(super) struct Session<'registry> {
    registry: &'registry Registry,
    /// Value of the `Authorization` header.
    authorization: Option<Zeroizing<String>>,
}

/// Why a request gave nothing.
#[derive(Debug)]
pub(super) enum Failed {
    /// It may work later.
    Again(String),
    Never(String),
    /// There is no such thing.
    Missing,
    /// It is not for this user, logged in or not.
    Denied {
        logged_in: LoggedIn,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoggedIn {
    Yes,
    No,
}

#[derive(Deserialize)]
struct Token {
    #[serde(default, deserialize_with = "secret")]
    token: Zeroizing<String>,
    #[serde(default, deserialize_with = "secret")]
    access_token: Zeroizing<String>,
}

impl Registry {
    /// A download may stand `still` so long.
    ///
    /// # Errors
    /// When the user's logins cannot be read.
    pub(super) fn new(
        name: &OciName,
        logins: &Logins,
        still: Duration,
    ) -> Result<Self, ImageError> {
        let login = logins.of(name).map_err(|source| ImageError::Login {
            image: format!("oci:{name}"),
            source,
        })?;
        Ok(Self {
            agent: agent(name, still),
            name: name.clone(),
            login,
        })
    }

    pub(super) fn session(&self) -> Session<'_> {
        Session {
            registry: self,
            authorization: None,
        }
    }

    fn logged_in(&self) -> LoggedIn {
        match self.login {
            Login::Nobody => LoggedIn::No,
            Login::Password { .. } | Login::Token(_) => LoggedIn::Yes,
        }
    }

    /// What a person is told, whatever was asked for.
    pub(super) fn told(&self, failed: Failed) -> ImageError {
        let image = format!("oci:{}", self.name);
        let registry = self.name.registry();
        match failed {
            Failed::Again(why) | Failed::Never(why) => ImageError::Registry { image, why },
            Failed::Missing => ImageError::NoSuchImage {
                image,
                hint: format!("the registry `{registry}` does not have it"),
            },
            Failed::Denied { logged_in } => ImageError::Denied {
                image,
                registry: registry.to_owned(),
                hint: match logged_in {
                    LoggedIn::No => format!(
                        "there may be no such image; if there is, `docker login {registry}` or \
                         `podman login {registry}` first, their logins are used here"
                    ),
                    LoggedIn::Yes => format!(
                        "the login for `{registry}` is wrong or too old, or may not read this image"
                    ),
                },
            },
        }
    }
}

/// A client with the machine's certificates and, but for registries on the machine itself, its
/// proxy. Only those are spoken to in the clear, as docker does.
fn agent(name: &OciName, still: Duration) -> Agent {
    let local = name.is_local();
    let roots: Vec<Certificate<'static>> = if local {
        Vec::new()
    } else {
        rustls_native_certs::load_native_certs()
            .certs
            .iter()
            .map(|certificate| Certificate::from_der(certificate).to_owned())
            .collect()
    };
    let mut builder = Agent::config_builder()
        .http_status_as_error(false)
        .https_only(!local)
        .tls_config(
            TlsConfig::builder()
                .root_certs(RootCerts::new_with_certs(&roots))
                .build(),
        )
        .redirect_auth_headers(RedirectAuthHeaders::SameHost)
        .user_agent(concat!("box/", env!("CARGO_PKG_VERSION")))
        // What is hashed must come as it is stored.
        .accept_encoding(AutoHeaderValue::None)
        .timeout_connect(Some(CONNECT_TIME_MAX))
        .timeout_recv_response(Some(ANSWER_TIME_MAX))
        .timeout_per_read(Some(still));
    if local {
        builder = builder.proxy(None);
    }
    builder.build().new_agent()
}

impl Session<'_> {
    /// A manifest: its bytes as they are.
    pub(super) fn manifest(&mut self, wanted: &str) -> Result<Vec<u8>, Failed> {
        let address = self.address("manifests", wanted);
        let mut response = self.get(&address, &[("accept", ACCEPT)])?;
        whole(&mut response, DOCUMENT_BYTES_MAX, "its manifest")
    }

    /// A small blob.
    pub(super) fn document(&mut self, digest: &str) -> Result<Vec<u8>, Failed> {
        let address = self.address("blobs", digest);
        let mut response = self.get(&address, &[])?;
        whole(&mut response, DOCUMENT_BYTES_MAX, "its configuration")
    }

    /// A blob from a byte on; the answer says whether it begins there or at the start.
    pub(super) fn blob(&mut self, digest: &str, from: u64) -> Result<Response<Body>, Failed> {
        let address = self.address("blobs", digest);
        if from == 0 {
            return self.get(&address, &[]);
        }
        let range = format!("bytes={from}-");
        self.get(&address, &[("range", &range)])
    }

    fn address(&self, kind: &str, wanted: &str) -> String {
        let name = &self.registry.name;
        format!(
            "{}/v2/{}/{kind}/{wanted}",
            name.address(),
            name.repository()
        )
    }

    /// Asked to log in, it does so once.
    fn get(&mut self, address: &str, headers: &[(&str, &str)]) -> Result<Response<Body>, Failed> {
        let response = self.get_once(address, headers)?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return good(response, self.registry.logged_in());
        }
        let logged_in = self.registry.logged_in();
        let denied = || Failed::Denied { logged_in };
        let challenge = challenge_of(response.headers()).ok_or_else(denied)?;
        self.authorization = Some(self.authorize(&challenge)?);
        let response = self.get_once(address, headers)?;
        if response.status() == StatusCode::UNAUTHORIZED {
            return Err(denied());
        }
        good(response, logged_in)
    }

    fn get_once(&self, address: &str, headers: &[(&str, &str)]) -> Result<Response<Body>, Failed> {
        let mut request = self.registry.agent.get(address);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization.as_str());
        }
        request.call().map_err(|error| broken(&error))
    }

    fn authorize(&self, challenge: &Challenge) -> Result<Zeroizing<String>, Failed> {
        match (challenge, &self.registry.login) {
            (Challenge::Basic, Login::Password { user, secret }) => Ok(basic(user, secret)),
            (Challenge::Basic, Login::Nobody | Login::Token(_)) => Err(Failed::Denied {
                logged_in: self.registry.logged_in(),
            }),
            (
                Challenge::Bearer {
                    realm,
                    service,
                    scope,
                },
                login,
            ) => {
                let usual = format!("repository:{}:pull", self.registry.name.repository());
                let ask = Ask {
                    realm,
                    service: service.as_deref(),
                    scope: scope.as_deref().unwrap_or(&usual),
                };
                let token = self.token(&ask, login)?;
                Ok(Zeroizing::new(format!("Bearer {}", *token)))
            }
        }
    }

    fn token(&self, ask: &Ask<'_>, login: &Login) -> Result<Zeroizing<String>, Failed> {
        self.check_realm(ask.realm)?;
        let agent = &self.registry.agent;
        let sent = match login {
            Login::Token(refresh) => {
                let form = [
                    ("grant_type", "refresh_token"),
                    ("client_id", "box"),
                    ("service", ask.service.unwrap_or_default()),
                    ("scope", ask.scope),
                    ("refresh_token", refresh.as_str()),
                ];
                agent.post(ask.realm).send_form(form)
            }
            Login::Nobody | Login::Password { .. } => {
                let mut request = agent.get(ask.realm).query("scope", ask.scope);
                if let Some(service) = ask.service {
                    request = request.query("service", service);
                }
                if let Login::Password { user, secret } = login {
                    request = request.header("authorization", basic(user, secret).as_str());
                }
                request.call()
            }
        };
        let mut response = sent.map_err(|error| broken(&error))?;
        let logged_in = self.registry.logged_in();
        if [StatusCode::UNAUTHORIZED, StatusCode::BAD_REQUEST].contains(&response.status()) {
            return Err(Failed::Denied { logged_in });
        } else if response.status() != StatusCode::OK {
            return Err(answered(response.status(), logged_in));
        }
        let text = Zeroizing::new(whole(&mut response, TOKEN_BYTES_MAX, "its token")?);
        let unread = || Failed::Never("the registry's token cannot be read".to_owned());
        let token: Token = serde_json::from_slice(&text).map_err(|_| unread())?;
        let token = if token.token.is_empty() {
            token.access_token
        } else {
            token.token
        };
        let plain = token.bytes().all(|byte| byte.is_ascii_graphic());
        if token.is_empty() || !plain {
            return Err(unread());
        }
        Ok(token)
    }

    /// Where tokens are got may be another host, but not in the clear, unless all is on this
    /// machine.
    fn check_realm(&self, realm: &str) -> Result<(), Failed> {
        let uri: Option<Uri> = realm.parse().ok();
        let scheme = uri.as_ref().and_then(Uri::scheme_str);
        let host = uri.as_ref().and_then(Uri::host).unwrap_or_default();
        let local = self.registry.name.is_local() && is_local(host);
        match scheme {
            Some("https") => Ok(()),
            Some("http") if local => Ok(()),
            _ => Err(Failed::Never(
                "the registry sends for its tokens to a place that is not safe".to_owned(),
            )),
        }
    }
}

/// What a token is asked for.
#[derive(Debug, Clone, Copy)]
struct Ask<'challenge> {
    realm: &'challenge str,
    service: Option<&'challenge str>,
    scope: &'challenge str,
}

fn basic(user: &str, secret: &str) -> Zeroizing<String> {
    let plain = Zeroizing::new(format!("{user}:{secret}"));
    let coded = Zeroizing::new(STANDARD.encode(plain.as_bytes()));
    Zeroizing::new(format!("Basic {}", *coded))
}

fn challenge_of(headers: &HeaderMap) -> Option<Challenge> {
    let all = headers.get_all("www-authenticate").iter();
    challenge::parse(all.filter_map(|value| value.to_str().ok()))
}

fn good(response: Response<Body>, logged_in: LoggedIn) -> Result<Response<Body>, Failed> {
    match response.status() {
        StatusCode::OK | StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE => {
            Ok(response)
        }
        status => Err(answered(status, logged_in)),
    }
}

fn answered(status: StatusCode, logged_in: LoggedIn) -> Failed {
    let why = format!("the registry answered {status}");
    let later = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS];
    match status {
        StatusCode::NOT_FOUND => Failed::Missing,
        StatusCode::FORBIDDEN => Failed::Denied { logged_in },
        _ if status.is_server_error() || later.contains(&status) => Failed::Again(why),
        _ => Failed::Never(why),
    }
}

/// The text of a failed request; nothing in it comes from a login.
fn broken(error: &ureq::Error) -> Failed {
    Failed::Again(format!("the registry cannot be reached: {error}"))
}

fn whole(response: &mut Response<Body>, max: u64, what: &str) -> Result<Vec<u8>, Failed> {
    let mut content = Vec::new();
    let read = response
        .body_mut()
        .with_config()
        .limit(u64::MAX)
        .reader()
        .take(max + 1)
        .read_to_end(&mut content);
    match read {
        Ok(count) if count as u64 > max => {
            Err(Failed::Never(format!("{what} has more than {max} bytes")))
        }
        Ok(_) => Ok(content),
        Err(error) => Err(cut(&error)),
    }
}

pub(super) fn cut(error: &io::Error) -> Failed {
    Failed::Again(format!("the connection broke: {error}"))
}
