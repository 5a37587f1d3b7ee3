//! The vendors' side of a login: where Claude Code, Codex and gh log in, and a path or two where
//! their tokens are taken. Strict: a code is good once and for the verifier of its challenge (RFC
//! 7636), a device is polled until a person says yes (RFC 8628), a refresh token is good once.

mod issue;
mod pack;

pub(crate) use issue::VendorState;
pub use pack::Packing;

use crate::rig::{AnswerBody, Net, internet::Internet, site};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use issue::{Device, Pending, Vendor, challenge};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::rc::Rc;

/// Where people log in, and where the tokens are good.
pub const HOSTS: [&str; 7] = [
    "platform.claude.com",
    "console.anthropic.com",
    "api.anthropic.com",
    "auth.openai.com",
    "chatgpt.com",
    "github.com",
    "api.github.com",
];
const BODY_BYTES_MAX: usize = 64 << 10;

/// The vendors as a test sees them.
#[derive(Debug, Clone)]
pub struct Vendors {
    net: Net,
}

impl Vendors {
    pub(crate) fn new(net: Net) -> Self {
        net.ask(|world| world.vendors.is_open = true);
        for host in HOSTS {
            net.origin(host);
        }
        Self { net }
    }

    /// How token answers are packed from now on, whatever the client asked for.
    pub fn pack(&self, packing: Packing) {
        self.net.ask(move |world| world.vendors.packing = packing);
    }

    /// A person says yes to the device that shows this code.
    pub fn approve(&self, user_code: &str) {
        let user_code = user_code.to_owned();
        self.net.ask(move |world| {
            for device in world.vendors.devices.values_mut() {
                device.is_approved |= device.user_code == user_code;
            }
        });
    }

    /// Every secret that was ever given out.
    pub fn issued(&self) -> Vec<String> {
        self.net.ask(|world| world.vendors.issued.clone())
    }

    /// `<host><path> <token>` of every request that came with a good token.
    pub fn honoured(&self) -> Vec<String> {
        self.net.ask(|world| world.vendors.honoured.clone())
    }

    /// The same of those that came with another.
    pub fn refused(&self) -> Vec<String> {
        self.net.ask(|world| world.vendors.refused.clone())
    }
}

/// A request, whole.
struct Asked {
    host: String,
    method: Method,
    path: String,
    query: HashMap<String, String>,
    headers: HeaderMap,
    body: String,
}

pub(crate) async fn answer(
    internet: Rc<Internet>,
    number: usize,
    name: &str,
    request: Request<Incoming>,
) -> Response<AnswerBody> {
    let (parts, body) = request.into_parts();
    let body = Limited::new(body, BODY_BYTES_MAX).collect().await;
    let body = body
        .map(http_body_util::Collected::to_bytes)
        .unwrap_or_default();
    let asked = Asked {
        host: name.to_owned(),
        method: parts.method,
        path: parts.uri.path().to_owned(),
        query: pairs(parts.uri.query().unwrap_or_default()),
        headers: parts.headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    };
    internet.with(|world| {
        world.body_read(number, body.len() as u64);
        let response = asked.answer(&mut world.vendors);
        let packing = world.vendors.packing;
        pack::packed(response, packing)
    })
}

/// What is said, before it is packed.
pub(crate) struct Said {
    status: StatusCode,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
    is_token: bool,
}

fn said(status: StatusCode, kind: &str, body: Vec<u8>) -> Said {
    Said {
        status,
        headers: vec![("content-type", kind.to_owned())],
        body,
        is_token: false,
    }
}

fn json_said(status: StatusCode, value: &Value) -> Said {
    let body = value.to_string().into_bytes();
    said(status, "application/json; charset=utf-8", body)
}

fn token(value: &Value) -> Said {
    let mut said = json_said(StatusCode::OK, value);
    said.is_token = true;
    said.headers.push(("cache-control", "no-store".to_owned()));
    said
}

fn invalid(error: &str) -> Said {
    let text = format!("the vendor says {error}");
    json_said(
        StatusCode::BAD_REQUEST,
        &json!({"error": error, "error_description": text}),
    )
}

fn unauthorized() -> Said {
    let error = json!({"type": "authentication_error", "message": "Invalid bearer token"});
    json_said(
        StatusCode::UNAUTHORIZED,
        &json!({"type": "error", "error": error}),
    )
}

impl Asked {
    fn answer(&self, state: &mut VendorState) -> Said {
        let post = self.method == Method::POST;
        match (self.host.as_str(), self.path.as_str()) {
            ("platform.claude.com" | "console.anthropic.com", "/oauth/authorize") => {
                self.authorize(Vendor::Claude, state)
            }
            ("auth.openai.com", "/oauth/authorize") => self.authorize(Vendor::Codex, state),
            ("platform.claude.com" | "console.anthropic.com", "/v1/oauth/token") if post => {
                if self.is_json() {
                    self.claude(state)
                } else {
                    invalid("invalid_request")
                }
            }
            ("auth.openai.com", "/oauth/token") if post => self.codex(state),
            ("github.com", "/login/device/code") if post => self.device(state),
            ("github.com", "/login/oauth/access_token") if post => self.poll(state),
            ("api.anthropic.com", "/api/oauth/claude_cli/create_api_key") if post => {
                if !self.is_good(Vendor::Claude, state) {
                    return unauthorized();
                }
                let key = state.opaque("sk-ant-api03-", 95);
                state.access.insert(key.clone(), Vendor::Claude);
                token(&json!({"raw_key": key}))
            }
            ("api.anthropic.com", _) => self.taken(Vendor::Claude, state),
            ("chatgpt.com", _) => self.taken(Vendor::Codex, state),
            ("api.github.com", _) => self.taken(Vendor::GitHub, state),
            ("github.com", path) if path.ends_with("/info/refs") => {
                self.taken(Vendor::GitHub, state)
            }
            (host, _) => {
                let page = format!("<html>a page of {host}</html>").into_bytes();
                let mut said = said(StatusCode::OK, "text/html; charset=utf-8", page);
                said.headers.push(("set-cookie", "session=page".to_owned()));
                said
            }
        }
    }

    fn is_json(&self) -> bool {
        self.headers
            .get(header::CONTENT_TYPE)
            .is_some_and(|value| value.as_bytes().starts_with(b"application/json"))
    }

    /// The fields of the body, whichever way they are written.
    fn fields(&self) -> HashMap<String, String> {
        if !self.is_json() {
            return pairs(&self.body);
        }
        let Ok(Value::Object(object)) = serde_json::from_str(&self.body) else {
            return HashMap::new();
        };
        let text = |value: &Value| value.as_str().map(str::to_owned);
        object
            .iter()
            .filter_map(|(name, value)| Some((name.clone(), text(value)?)))
            .collect()
    }

    /// The page where a person says yes; the code goes back to whoever asked.
    fn authorize(&self, vendor: Vendor, state: &mut VendorState) -> Said {
        let wanted = |name: &str| self.query.get(name).cloned().unwrap_or_default();
        if wanted("code_challenge_method") != "S256" || wanted("code_challenge").is_empty() {
            return invalid("invalid_request");
        }
        let code = state.chance(32);
        let pending = Pending {
            vendor,
            challenge: wanted("code_challenge"),
            redirect: wanted("redirect_uri"),
            client: wanted("client_id"),
        };
        state.codes.insert(code.clone(), pending);
        let mut said = said(StatusCode::FOUND, "text/html", b"<html>yes</html>".to_vec());
        let to = format!(
            "{}?code={code}&state={}",
            wanted("redirect_uri"),
            wanted("state")
        );
        said.headers.push(("location", to));
        said.headers
            .push(("set-cookie", "session=of-the-person; HttpOnly".to_owned()));
        said
    }

    /// Whether a code is exchanged by whoever asked for it. It is good once.
    fn takes_code(&self, vendor: Vendor, state: &mut VendorState) -> bool {
        let fields = self.fields();
        let field = |name: &str| fields.get(name).cloned().unwrap_or_default();
        let pending = state.codes.remove(&field("code"));
        pending.is_some_and(|pending| {
            pending.vendor == vendor
                && pending.challenge == challenge(&field("code_verifier"))
                && pending.redirect == field("redirect_uri")
                && pending.client == field("client_id")
        })
    }

    /// Whether a refresh token is good. It is good once.
    fn takes_refresh(&self, vendor: Vendor, state: &mut VendorState) -> bool {
        let sent = self.fields().remove("refresh_token").unwrap_or_default();
        let place = format!("{}{} {sent}", self.host, self.path);
        let is_good = state.refresh.remove(&sent) == Some(vendor);
        if is_good {
            state.honoured.push(place);
        } else {
            state.refused.push(place);
        }
        is_good
    }

    fn grant(&self) -> String {
        self.fields().remove("grant_type").unwrap_or_default()
    }

    fn claude(&self, state: &mut VendorState) -> Said {
        let good = match self.grant().as_str() {
            "authorization_code" => self.takes_code(Vendor::Claude, state),
            "refresh_token" => self.takes_refresh(Vendor::Claude, state),
            _ => return invalid("unsupported_grant_type"),
        };
        if good {
            token(&state.claude())
        } else {
            invalid("invalid_grant")
        }
    }

    fn codex(&self, state: &mut VendorState) -> Said {
        let good = match self.grant().as_str() {
            "authorization_code" if !self.is_json() => self.takes_code(Vendor::Codex, state),
            "refresh_token" => self.takes_refresh(Vendor::Codex, state),
            "urn:ietf:params:oauth:grant-type:token-exchange" => {
                let subject = self.fields().remove("subject_token").unwrap_or_default();
                if !state.issued.contains(&subject) {
                    state.refused.push(format!("subject {subject}"));
                    return invalid("invalid_grant");
                }
                let key = state.opaque("sk-proj-", 120);
                state.access.insert(key.clone(), Vendor::Codex);
                return token(&json!({"access_token": key, "token_type": "Bearer"}));
            }
            _ => return invalid("unsupported_grant_type"),
        };
        if good {
            return token(&state.codex());
        }
        let error = json!({"code": "refresh_token_reused", "message": "log in again"});
        json_said(StatusCode::UNAUTHORIZED, &json!({"error": error}))
    }

    fn device(&self, state: &mut VendorState) -> Said {
        let code = state.chance(40);
        let user_code = format!("{}-{}", &code[..4], &code[4..8]);
        let device = Device {
            user_code: user_code.clone(),
            is_approved: false,
        };
        state.devices.insert(code.clone(), device);
        self.as_wanted(&json!({
            "device_code": code, "user_code": user_code, "interval": 5, "expires_in": 900,
            "verification_uri": "https://github.com/login/device",
        }))
    }

    /// GitHub answers 200 to whatever it is asked.
    fn poll(&self, state: &mut VendorState) -> Said {
        let code = self.fields().remove("device_code").unwrap_or_default();
        state.polls += 1;
        let is_approved = state.devices.get(&code).map(|device| device.is_approved);
        let mut said = match is_approved {
            None => self.as_wanted(&json!({"error": "bad_verification_code"})),
            Some(false) => {
                self.as_wanted(&json!({"error": "authorization_pending", "interval": 5}))
            }
            Some(true) => {
                state.devices.remove(&code);
                let token = state.github();
                self.as_wanted(
                    &json!({"access_token": token, "scope": "gist,repo", "token_type": "bearer"}),
                )
            }
        };
        said.is_token = true;
        said
    }

    /// As a form, unless JSON was asked for.
    fn as_wanted(&self, value: &Value) -> Said {
        let accept = self.headers.get(header::ACCEPT);
        if accept.is_some_and(|value| value.as_bytes().starts_with(b"application/json")) {
            return json_said(StatusCode::OK, value);
        }
        let object = value.as_object().into_iter().flatten();
        let pairs = object.map(|(name, value)| {
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            let text = text
                .replace(':', "%3A")
                .replace('/', "%2F")
                .replace(',', "%2C");
            format!("{name}={text}")
        });
        let body = pairs.collect::<Vec<_>>().join("&").into_bytes();
        let kind = "application/x-www-form-urlencoded; charset=utf-8";
        said(StatusCode::OK, kind, body)
    }

    /// The token of a request's headers.
    fn carried(&self) -> Option<String> {
        let text = |name: &str| self.headers.get(name)?.to_str().ok();
        if let Some(key) = text("x-api-key") {
            return Some(key.to_owned());
        }
        let (scheme, rest) = text("authorization")?.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("basic") {
            return Some(rest.to_owned());
        }
        let pair = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, rest).ok()?;
        let pair = String::from_utf8(pair).ok()?;
        Some(pair.split_once(':')?.1.to_owned())
    }

    fn is_good(&self, vendor: Vendor, state: &mut VendorState) -> bool {
        let token = self.carried().unwrap_or_default();
        state.honours(&format!("{}{}", self.host, self.path), &token, vendor)
    }

    fn taken(&self, vendor: Vendor, state: &mut VendorState) -> Said {
        if self.is_good(vendor, state) {
            json_said(StatusCode::OK, &json!({"login": "person"}))
        } else {
            unauthorized()
        }
    }
}

fn pairs(text: &str) -> HashMap<String, String> {
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(name, value)| (plain(name), plain(value)))
        .collect()
}

fn plain(text: &str) -> String {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = tail.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let byte = hex.and_then(|two| u8::from_str_radix(two, 16).ok());
        match (first, byte) {
            (b'%', Some(byte)) => {
                out.push(byte);
                rest = tail.get(2..).unwrap_or_default();
            }
            (b'+', _) => {
                out.push(b' ');
                rest = tail;
            }
            (byte, _) => {
                out.push(*byte);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

impl Said {
    fn response(self, body: Vec<u8>) -> Response<AnswerBody> {
        let mut response = site::whole(self.status, body);
        for (name, value) in self.headers {
            if let Ok(value) = HeaderValue::from_str(&value) {
                response.headers_mut().append(name, value);
            }
        }
        response
    }
}
