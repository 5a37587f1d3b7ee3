//! Logins made inside a box: what the box gets, what the vendor sees, and what becomes of it.

use crate::client::{Client, Seen, request, send_http1, send_http2};
use crate::inside::Inside;
use crate::world::{World, name, open};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use box_api::egress::{
    Answer, Binding, Event, HostName, LoginState, Logins, Policy, Reason, Registration, Request,
};
use box_fakes::rig::Reply;
use box_fakes::vendors::{Packing, Vendors};
use bytes::Bytes;
use http_body_util::Full;
use serde_json::{Value, json};
use std::os::fd::AsFd as _;

/// RFC 7636, appendix B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
const JSON: (&str, &str) = ("content-type", "application/json");
const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
const SPACE: (&str, &str) = ("accept-encoding", "gzip, deflate, br");

fn with(logins: Logins) -> Policy {
    Policy { logins, ..open() }
}

/// A box, and everything it ever received.
struct Guest {
    inside: Inside,
    received: Vec<u8>,
}

impl Guest {
    fn new(world: &mut World, logins: Logins) -> Self {
        Self {
            inside: world.new_box(with(logins), Vec::new()),
            received: Vec::new(),
        }
    }

    fn send(
        &mut self,
        (version, method): (u8, &'static str),
        url: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Seen {
        let (host, path) = url.split_once('/').unwrap();
        let (host, path, body) = (host.to_owned(), format!("/{path}"), body.to_owned());
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let headers: Vec<(String, String)> = headers.iter().map(owned).collect();
        let seen = self.inside.run(move |client: Client| async move {
            let stream = client.connect(&host, 443).await;
            let alpn = if version == 2 { "h2" } else { "http/1.1" };
            let stream = client.tls(stream, &host, &[alpn]).await.unwrap();
            let headers: Vec<(&str, &str)> = headers
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .collect();
            let uri = if version == 2 {
                format!("https://{host}{path}")
            } else {
                path
            };
            let mut request = request(method, &host, &uri, &headers);
            *request.body_mut() = Full::new(Bytes::from(body));
            if version == 2 {
                request.headers_mut().remove("host");
                return send_http2(stream, request).await.unwrap();
            }
            send_http1(stream, request).await.unwrap()
        });
        for (name, value) in &seen.headers {
            self.received.extend_from_slice(name.as_str().as_bytes());
            self.received.extend_from_slice(value.as_bytes());
        }
        self.received.extend_from_slice(seen.body.as_bytes());
        seen
    }

    fn post(&mut self, url: &str, headers: &[(&str, &str)], body: &str) -> Seen {
        self.send((1, "POST"), url, headers, body)
    }

    fn get(&mut self, url: &str, headers: &[(&str, &str)]) -> Seen {
        self.send((1, "GET"), url, headers, "")
    }

    /// No secret of the vendors came to the box, however written. That there are any is the control.
    fn holds_nothing_of(&self, vendors: &Vendors) {
        let issued = vendors.issued();
        assert!(!issued.is_empty());
        let inside = |bytes: &[u8]| memchr::memmem::find(&self.received, bytes).is_some();
        for secret in issued {
            let bytes = secret.as_bytes();
            let digit = |half: u8| char::from_digit(half.into(), 16).unwrap();
            let hex: String = bytes
                .iter()
                .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
                .collect();
            assert!(!inside(bytes), "{secret} came to the box");
            assert!(!inside(hex.as_bytes()), "{secret} came to the box in hex");
            let encoded = (0..3).flat_map(|skipped| {
                let whole = (bytes.len() - skipped) / 3 * 3;
                let part = &bytes[skipped..skipped + whole];
                [STANDARD_NO_PAD.encode(part), URL_SAFE_NO_PAD.encode(part)]
            });
            for encoded in encoded {
                let is_inside = inside(encoded.as_bytes());
                assert!(!is_inside, "{secret} came to the box in base64");
            }
        }
    }

    /// Logs in as Claude Code does, and gives what it keeps.
    fn claude(&mut self) -> Value {
        let code = self.code("platform.claude.com", "claude-client");
        let body = json!({
            "grant_type": "authorization_code", "code": code, "client_id": "claude-client",
            "redirect_uri": "https://x.test/cb", "code_verifier": VERIFIER, "state": "st",
        });
        let seen = self.post(
            "platform.claude.com/v1/oauth/token",
            &[JSON, SPACE],
            &body.to_string(),
        );
        assert_eq!(seen.status, 200, "{}", seen.body);
        serde_json::from_str(&seen.body).unwrap()
    }

    /// The page where a person says yes sends a code back, and keeps its session.
    fn code(&mut self, host: &str, client: &str) -> String {
        let url = format!(
            "{host}/oauth/authorize?response_type=code&client_id={client}&code_challenge={CHALLENGE}\
             &code_challenge_method=S256&redirect_uri=https%3A%2F%2Fx.test%2Fcb&state=st"
        );
        let seen = self.get(&url, &[("cookie", "session=of-the-person")]);
        assert_eq!(seen.status, 302, "{}", seen.body);
        assert_eq!(
            seen.headers["set-cookie"],
            "session=of-the-person; HttpOnly"
        );
        let to = seen.headers["location"].to_str().unwrap();
        let (_, rest) = to.split_once("code=").unwrap();
        rest.split('&').next().unwrap().to_owned()
    }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap()
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

fn kept(world: &mut World) -> LoginState {
    world.host.event(|event| match event {
        Event::LoggedIn { login, .. } => Some(login.clone()),
        _ => None,
    })
}

#[test]
#[expect(clippy::too_many_lines, reason = "one story, told in order")]
fn claude_login_gives_placeholders_that_work_and_are_renewed() {
    let mut world = World::start_empty();
    world.configure();
    let vendors = world.rig.vendors();
    let mut guest = Guest::new(&mut world, Logins::Placeholder);
    let login = guest.claude();
    let (access, refresh) = (text(&login, "access_token"), text(&login, "refresh_token"));
    assert!(
        access.starts_with("sk-ant-oat01-") && access.len() == 108,
        "{access}"
    );
    assert!(refresh.starts_with("sk-ant-ort01-"));
    assert_eq!(login["account"]["email_address"], "a@example.org");
    assert_eq!(login["expires_in"], 28_800);
    let told = kept(&mut world);
    assert_eq!((told.kind.as_str(), told.sealed), ("claude", None));
    for version in [1, 2] {
        let url = "api.anthropic.com/api/oauth/profile";
        let seen = guest.send(
            (version, "GET"),
            url,
            &[("authorization", &bearer(access))],
            "",
        );
        assert_eq!(seen.status, 200, "{}", seen.body);
    }
    let url = "api.anthropic.com/api/oauth/claude_cli/create_api_key";
    let key = guest.post(url, &[("authorization", &bearer(access)), JSON], "{}");
    let key: Value = serde_json::from_str(&key.body).unwrap();
    let own_key = [("x-api-key", text(&key, "raw_key"))];
    assert_eq!(
        guest.get("api.anthropic.com/v1/models", &own_key).status,
        200
    );
    // However the vendor packs its answers, and the old refresh token is good no more.
    let mut refresh = refresh.to_owned();
    for packing in [
        Packing::None,
        Packing::Gzip,
        Packing::Deflate,
        Packing::RawDeflate,
        Packing::Brotli,
    ] {
        vendors.pack(packing);
        let body =
            json!({"grant_type": "refresh_token", "refresh_token": refresh, "client_id": "c"});
        let url = "console.anthropic.com/v1/oauth/token";
        let seen = guest.post(url, &[JSON, SPACE], &body.to_string());
        assert_eq!(seen.status, 200, "{packing:?} {}", seen.body);
        assert!(!seen.headers.contains_key("content-encoding"));
        let renewed: Value = serde_json::from_str(&seen.body).unwrap();
        let again = guest.post(url, &[JSON], &body.to_string());
        assert_eq!(again.status, 400, "{}", again.body);
        assert!(again.body.contains("invalid_grant"));
        refresh = text(&renewed, "refresh_token").to_owned();
        let fresh = bearer(text(&renewed, "access_token"));
        let seen = guest.get(
            "api.anthropic.com/api/oauth/profile",
            &[("authorization", &fresh)],
        );
        assert_eq!(seen.status, 200);
    }
    // Control: what the vendor was sent were its own tokens.
    let issued = vendors.issued();
    let honoured = vendors.honoured();
    assert_eq!(honoured.len(), 14);
    let is_real = |line: &String| issued.iter().any(|secret| line.ends_with(secret));
    assert!(honoured.iter().all(is_real));
    guest.holds_nothing_of(&vendors);
    let heard = &world.host.heard;
    assert!(
        issued
            .iter()
            .all(|own| memchr::memmem::find(heard, own.as_bytes()).is_none())
    );
}

#[test]
fn codex_login_gives_jwts_with_their_claims() {
    let mut world = World::start_empty();
    world.configure();
    let vendors = world.rig.vendors();
    let mut guest = Guest::new(&mut world, Logins::Placeholder);
    let code = guest.code("auth.openai.com", "app_codex");
    let body = format!(
        "grant_type=authorization_code&code={code}&redirect_uri=https%3A%2F%2Fx.test%2Fcb\
         &client_id=app_codex&code_verifier={VERIFIER}"
    );
    vendors.pack(Packing::Gzip);
    let url = "auth.openai.com/oauth/token";
    let seen = guest.send((2, "POST"), url, &[FORM], &body);
    assert_eq!(seen.status, 200, "{}", seen.body);
    let login: Value = serde_json::from_str(&seen.body).unwrap();
    for field in ["id_token", "access_token"] {
        let parts: Vec<&str> = text(&login, field).split('.').collect();
        assert_eq!((parts.len(), parts[2].len()), (3, 342));
        let claims = URL_SAFE_NO_PAD.decode(parts[1]).unwrap();
        let claims: Value = serde_json::from_slice(&claims).unwrap();
        assert_eq!(claims["exp"], 1_990_000_000);
        let about = &claims["https://api.openai.com/auth"];
        assert_eq!(about["chatgpt_account_id"], "acc-1");
        assert_eq!(about["chatgpt_plan_type"], "pro");
        assert_eq!(claims.get("session_id"), None);
    }
    let access = bearer(text(&login, "access_token"));
    let headers = [
        ("authorization", access.as_str()),
        ("chatgpt-account-id", "acc-1"),
    ];
    let seen = guest.send(
        (2, "POST"),
        "chatgpt.com/backend-api/codex/responses",
        &headers,
        "{}",
    );
    assert_eq!(seen.status, 200, "{}", seen.body);
    let exchange = format!(
        "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange&client_id=app_codex\
         &requested_token=openai-api-key&subject_token={}\
         &subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aid_token",
        text(&login, "id_token")
    );
    let key = guest.post(url, &[FORM], &exchange);
    assert_eq!(key.status, 200, "{}", key.body);
    assert!(key.body.contains("sk-proj-"));
    let refresh = json!({
        "client_id": "app_codex", "grant_type": "refresh_token", "scope": "openid profile email",
        "refresh_token": login["refresh_token"],
    });
    let renewed = guest.post(url, &[JSON], &refresh.to_string());
    assert_eq!(renewed.status, 200, "{}", renewed.body);
    let reused = guest.post(url, &[JSON], &refresh.to_string());
    assert_eq!(reused.status, 401, "{}", reused.body);
    assert!(reused.body.contains("refresh_token_reused"));
    assert_eq!(vendors.honoured().len(), 2);
    guest.holds_nothing_of(&vendors);
}

#[test]
fn device_login_of_gh_is_polled_and_its_token_works_for_the_api_and_git() {
    let mut world = World::start_empty();
    world.configure();
    let vendors = world.rig.vendors();
    for (at, accept) in ["*/*", "application/json"].into_iter().enumerate() {
        let mut guest = Guest::new(&mut world, Logins::Placeholder);
        let accept = ("accept", accept);
        let ask = "client_id=178c6fc778ccc68e1d6a&scope=repo%2Cread%3Aorg%2Cgist";
        let started = guest.post("github.com/login/device/code", &[FORM, accept], ask);
        let field = |seen: &Seen, name: &str| -> Option<String> {
            if let Ok(value) = serde_json::from_str::<Value>(&seen.body) {
                return value[name].as_str().map(str::to_owned);
            }
            let mut pairs = seen.body.split('&').filter_map(|pair| pair.split_once('='));
            pairs
                .find(|(own, _)| *own == name)
                .map(|(_, value)| value.to_owned())
        };
        let device = field(&started, "device_code").unwrap();
        let poll = format!(
            "client_id=178c6fc778ccc68e1d6a&device_code={device}\
             &grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code"
        );
        let url = "github.com/login/oauth/access_token";
        let pending = guest.post(url, &[FORM, accept], &poll);
        assert_eq!(
            field(&pending, "error").as_deref(),
            Some("authorization_pending")
        );
        assert_eq!(pending.status, 200);
        vendors.approve(&field(&started, "user_code").unwrap());
        vendors.pack([Packing::Brotli, Packing::Gzip][at]);
        let done = guest.post(url, &[FORM, accept], &poll);
        let token = field(&done, "access_token").unwrap_or_else(|| panic!("{}", done.body));
        assert!(token.starts_with("gho_") && token.len() == 40, "{token}");
        assert!(
            done.body.contains("bearer") && done.body.contains("repo"),
            "{}",
            done.body
        );
        assert_eq!(
            done.headers["content-type"],
            started.headers["content-type"]
        );
        let as_token = format!("token {token}");
        let user = guest.get("api.github.com/user", &[("authorization", &as_token)]);
        assert_eq!(user.status, 200, "{}", user.body);
        let basic = format!(
            "Basic {}",
            STANDARD.encode(format!("x-access-token:{token}"))
        );
        let refs = "github.com/a/b.git/info/refs?service=git-upload-pack";
        assert_eq!(guest.get(refs, &[("authorization", &basic)]).status, 200);
        // Pages beside stay what they are.
        let page = guest.get("github.com/login", &[("cookie", "user_session=1")]);
        assert_eq!(page.headers["set-cookie"], "session=page");
        guest.holds_nothing_of(&vendors);
    }
    assert_eq!(vendors.honoured().len(), 4);
}

#[test]
fn login_of_another_box_is_refused_in_headers_and_bodies_and_told() {
    let mut world = World::start_empty();
    world.configure();
    let vendors = world.rig.vendors();
    let mut owner = Guest::new(&mut world, Logins::Placeholder);
    let mut thief = Guest::new(&mut world, Logins::Placeholder);
    let login = owner.claude();
    let own = thief.claude();
    let alarm = |world: &mut World| {
        world.host.event(|event| match event {
            Event::ForeignPlaceholder {
                box_id, belongs_to, ..
            } => Some((*box_id, *belongs_to)),
            _ => None,
        })
    };
    let stolen = bearer(text(&login, "access_token"));
    let seen = thief.get(
        "api.anthropic.com/api/oauth/profile",
        &[("authorization", &stolen)],
    );
    assert_eq!((seen.status, seen.reason()), (403, "foreign_placeholder"));
    assert_eq!(alarm(&mut world), (thief.inside.id, owner.inside.id));
    let refresh = |token: &str| {
        json!({"grant_type": "refresh_token", "refresh_token": token, "client_id": "c"}).to_string()
    };
    let url = "platform.claude.com/v1/oauth/token";
    let seen = thief.post(url, &[JSON], &refresh(text(&login, "refresh_token")));
    assert_eq!((seen.status, seen.reason()), (403, "foreign_placeholder"));
    assert_eq!(alarm(&mut world), (thief.inside.id, owner.inside.id));
    assert!(vendors.honoured().is_empty() && vendors.refused().is_empty());
    // Controls: what is its own works, and the owner's still does.
    let seen = thief.post(url, &[JSON], &refresh(text(&own, "refresh_token")));
    assert_eq!(seen.status, 200, "{}", seen.body);
    let seen = owner.get(
        "api.anthropic.com/api/oauth/profile",
        &[("authorization", &stolen)],
    );
    assert_eq!(seen.status, 200);
    thief.holds_nothing_of(&vendors);
}

#[test]
fn refresh_token_is_worth_nothing_in_a_header_and_a_foreign_key_is_refused_once_logged_in() {
    let mut world = World::start_empty();
    world.configure();
    let vendors = world.rig.vendors();
    let mut guest = Guest::new(&mut world, Logins::Placeholder);
    let login = guest.claude();
    for token in [
        text(&login, "refresh_token"),
        "sk-ant-oat01-of-somebody-else-0123456789",
    ] {
        let seen = guest.get(
            "api.anthropic.com/v1/models",
            &[("authorization", &bearer(token))],
        );
        assert_eq!(
            (seen.status, seen.reason()),
            (403, "foreign_credential"),
            "{token}"
        );
    }
    assert!(vendors.refused().is_empty());
    let access = bearer(text(&login, "access_token"));
    let seen = guest.get("api.anthropic.com/v1/models", &[("authorization", &access)]);
    assert_eq!(seen.status, 200);
}

#[test]
fn plain_mode_hands_the_tokens_over_and_off_lets_nobody_log_in() {
    let mut world = World::start_empty();
    world.configure();
    let vendors = world.rig.vendors();
    let mut plain = Guest::new(&mut world, Logins::Plain);
    let login = plain.claude();
    // Control of every other test: this is what a token in a box looks like.
    assert!(
        vendors
            .issued()
            .contains(&text(&login, "access_token").to_owned())
    );
    let access = bearer(text(&login, "access_token"));
    let seen = plain.get("api.anthropic.com/v1/models", &[("authorization", &access)]);
    assert_eq!(seen.status, 200);
    let mut off = Guest::new(&mut world, Logins::Off);
    let body = json!({"grant_type": "refresh_token", "refresh_token": login["refresh_token"]});
    for path in ["/v1/oauth/token", "/v1//oauth/%74oken/"] {
        let url = format!("platform.claude.com{path}");
        let seen = off.post(&url, &[JSON], &body.to_string());
        assert_eq!((seen.status, seen.reason()), (403, "logins_off"), "{path}");
    }
    assert!(
        off.get("platform.claude.com/docs", &[])
            .body
            .contains("a page of")
    );
    assert_eq!(vendors.refused().len(), 0);
    // A box that is switched over forgets what it had.
    let mut guest = Guest::new(&mut world, Logins::Placeholder);
    let login = guest.claude();
    let box_id = guest.inside.id;
    world.host.done(Request::SetPolicy {
        box_id,
        policy: with(Logins::Plain),
    });
    let access = bearer(text(&login, "access_token"));
    let seen = guest.get("api.anthropic.com/v1/models", &[("authorization", &access)]);
    assert_eq!(seen.status, 401, "the vendor knows no placeholder");
}

#[test]
fn answer_that_cannot_be_read_is_refused_with_a_reason() {
    let mut world = World::start_empty();
    world.configure();
    let vendors = world.rig.vendors();
    let mut guest = Guest::new(&mut world, Logins::Placeholder);
    let url = "github.com/login/oauth/access_token";
    let token = "gho_0123456789abcdefghijklmnopqrstuvwxyzAB";
    let form = "application/x-www-form-urlencoded";
    let pair = format!("access_token={token}&token_type=bearer");
    let typed = |text: &str, kind: &str| Reply::text(text).header("content-type", kind);
    let long = format!("access_token={token}&x={}", "y".repeat(300 << 10));
    let odd = [
        typed(&format!("<html>{token}</html>"), "text/html"),
        typed(&format!("[\"{token}\"]"), "application/json"),
        typed(&pair, "application/json"),
        typed(&format!("{{\"{token}\":1}}"), "application/json"),
        typed(&pair, form).header("content-encoding", "zstd"),
        typed(&pair, form)
            .status(302)
            .header("location", &format!("https://x.test/#{token}")),
        typed(&pair, form).status(206),
        typed(&long, form),
    ];
    for reply in odd {
        world.rig.reply("github.com", reply.clone());
        let seen = guest.post(url, &[FORM], "device_code=d");
        assert_eq!(
            (seen.status, seen.reason()),
            (502, "login_unread"),
            "{reply:?}"
        );
        assert!(
            !format!("{:?} {}", seen.headers, seen.body).contains(token),
            "{reply:?}"
        );
        world.host.event(|event| match event {
            Event::Refused(refusal) => (refusal.reason == Reason::LoginUnread).then_some(()),
            _ => None,
        });
    }
    // The vendor's own status stays where it says no.
    world.rig.reply(
        "github.com",
        typed("<html>slow down</html>", "text/html").status(429),
    );
    let seen = guest.post(url, &[FORM], "device_code=d");
    assert_eq!((seen.status, seen.reason()), (429, "login_unread"));
    // What complains of a token shows none, nor does a header or a name nobody expected.
    let complaint = format!(
        "{{\"error\":\"bad\",\"error_description\":\"'{token}' is old\",\"new_secret\":\"{token}\"}}"
    );
    let reply = typed(&complaint, "application/json")
        .status(400)
        .header("x-token", token)
        .header("set-cookie", &format!("t={token}"))
        .header(
            "www-authenticate",
            &format!("Bearer error_description=\"{token}\""),
        );
    world.rig.reply("github.com", reply);
    let seen = guest.post(url, &[FORM], "device_code=d");
    assert_eq!(seen.status, 400);
    assert!(
        seen.body.contains("\"error\":\"bad\"") && seen.body.contains("is old"),
        "{}",
        seen.body
    );
    assert!(!format!("{:?} {}", seen.headers, seen.body).contains(token));
    drop(vendors);
}

#[test]
fn owners_credential_makes_no_key_for_the_box() {
    let mut world = World::start_empty();
    world.configure();
    let vendors = world.rig.vendors();
    let mut first = Guest::new(&mut world, Logins::Plain);
    let owners = text(&first.claude(), "access_token").to_owned();
    world.add_credential("claude:default", &["api.anthropic.com"], &owners);
    let placeholder = "sk-ant-oat01-PLACEHOLDER-of-the-owner-00000000";
    let binding = Binding {
        placeholder: placeholder.to_owned(),
        credential: "claude:default".to_owned(),
        hosts: vec![name("api.anthropic.com")],
        github: None,
    };
    let url = "api.anthropic.com/api/oauth/claude_cli/create_api_key";
    for (logins, status) in [
        (Logins::Placeholder, 200),
        (Logins::Plain, 403),
        (Logins::Off, 403),
    ] {
        let inside = world.new_box(with(logins), vec![binding.clone()]);
        let mut guest = Guest {
            inside,
            received: Vec::new(),
        };
        let box_id = guest.inside.id;
        let seen = guest.post(url, &[("authorization", &bearer(placeholder)), JSON], "{}");
        assert_eq!(seen.status, status, "{logins:?} {}", seen.body);
        let issued = vendors.issued();
        assert!(
            !issued.iter().any(|own| seen.body.contains(own)),
            "{logins:?}"
        );
        world.host.done(Request::Unregister { box_id });
        world
            .host
            .done(Request::ForgetLogins { box_id, kind: None });
    }
}

#[test]
fn login_is_worth_nothing_where_the_owners_credential_is_and_no_strange_token_makes_one() {
    let mut world = World::start_empty();
    world.configure();
    let vendors = world.rig.vendors();
    // What an account of somebody else has outside of any box of placeholders.
    let strange = Guest::new(&mut world, Logins::Plain).claude();
    let owners = text(&strange, "access_token").to_owned();
    let mut guest = Guest::new(&mut world, Logins::Placeholder);
    let url = "platform.claude.com/v1/oauth/token";
    let body = json!({
        "grant_type": "refresh_token", "refresh_token": strange["refresh_token"], "client_id": "c",
    });
    let seen = guest.post(url, &[JSON], &body.to_string());
    assert_eq!((seen.status, seen.reason()), (403, "foreign_credential"));
    // Control: a login of the box's own works, until the owner's credential is there.
    let access = bearer(text(&guest.claude(), "access_token"));
    let profile = "api.anthropic.com/api/oauth/profile";
    let seen = guest.get(profile, &[("authorization", &access)]);
    assert_eq!(seen.status, 200, "{}", seen.body);
    world.add_credential("claude:default", &["api.anthropic.com"], &owners);
    let placeholder = "sk-ant-oat01-PLACEHOLDER-of-the-owner-00000000";
    let binding = Binding {
        placeholder: placeholder.to_owned(),
        credential: "claude:default".to_owned(),
        hosts: vec![name("api.anthropic.com")],
        github: None,
    };
    let inside = world.new_box(with(Logins::Placeholder), vec![binding]);
    let mut guest = Guest {
        inside,
        received: Vec::new(),
    };
    let access = bearer(text(&guest.claude(), "access_token"));
    let seen = guest.get(profile, &[("authorization", &access)]);
    assert_eq!((seen.status, seen.reason()), (403, "foreign_placeholder"));
    let seen = guest.get(profile, &[("authorization", &bearer(placeholder))]);
    assert_eq!(seen.status, 200, "{}", seen.body);
    drop(vendors);
}

#[test]
#[expect(clippy::too_many_lines, reason = "one story, told in order")]
fn sealed_login_opens_in_its_own_box_and_no_other() {
    let mut world = World::start_empty();
    world.configure();
    let vendors = world.rig.vendors();
    let key = [7; 32];
    assert!(matches!(
        world.host.call_with(Request::LoginKey, &key[1..], &[]),
        Answer::Refused { .. }
    ));
    let mut guest = Guest::new(&mut world, Logins::Placeholder);
    let login = guest.claude();
    assert_eq!(kept(&mut world).sealed, None);
    // The key is given once there is something to seal.
    assert_eq!(
        world.host.call_with(Request::LoginKey, &key, &[]),
        Answer::Done
    );
    let state = kept(&mut world);
    let sealed = STANDARD.decode(state.sealed.as_ref().unwrap()).unwrap();
    for secret in vendors.issued() {
        assert!(memchr::memmem::find(&sealed, secret.as_bytes()).is_none());
    }
    let access = bearer(text(&login, "access_token"));
    let profile = "api.anthropic.com/api/oauth/profile";
    let works = |guest: &mut Guest| guest.get(profile, &[("authorization", &access)]).status;
    assert_eq!(works(&mut guest), 200);
    let box_id = guest.inside.id;
    let register = |world: &mut World, inside: &Inside, logins: Vec<LoginState>| {
        let registration = Registration {
            box_id: inside.id,
            policy: with(Logins::Placeholder),
            bindings: Vec::new(),
            map: Vec::new(),
            logins,
            listeners: inside.listeners(),
        };
        let descriptors = inside.descriptors();
        let descriptors: Vec<_> = descriptors.iter().map(|one| one.as_fd()).collect();
        let request = Request::Register(registration);
        assert_eq!(
            world.host.call_with(request, &[], &descriptors),
            Answer::Done
        );
    };
    // A box that is stopped and started keeps its login without the host's help.
    world.host.done(Request::Unregister { box_id });
    let Answer::Status(status) = world.host.call(Request::Status) else {
        panic!()
    };
    assert_eq!(status.parked, [box_id]);
    register(&mut world, &guest.inside, Vec::new());
    assert_eq!(works(&mut guest), 200);
    // Forgotten at once, though the box runs.
    world.host.done(Request::ForgetLogins {
        box_id,
        kind: Some("claude".into()),
    });
    assert_eq!(works(&mut guest), 401);
    let Answer::Status(status) = world.host.call(Request::Status) else {
        panic!()
    };
    assert!(status.parked.is_empty() && status.boxes[0].logins.is_empty());
    // A box-egress that knows nothing opens what the host kept: for this box alone.
    let other = world.unregistered_box();
    register(&mut world, &other, vec![state.clone()]);
    let mut other = Guest {
        inside: other,
        received: Vec::new(),
    };
    assert_eq!(works(&mut other), 401);
    register(&mut world, &guest.inside, vec![state]);
    assert_eq!(works(&mut guest), 200);
    let stolen = other.post(
        "platform.claude.com/v1/oauth/token",
        &[JSON],
        &json!({
            "grant_type": "refresh_token", "refresh_token": login["refresh_token"],
        })
        .to_string(),
    );
    assert_eq!(
        (stolen.status, stolen.reason()),
        (403, "foreign_placeholder")
    );
    guest.holds_nothing_of(&vendors);
}

#[test]
fn a_login_widens_nothing_the_policy_allows() {
    let mut world = World::start_empty();
    world.configure();
    world.rig.vendors();
    let policy = Policy {
        logins: Logins::Placeholder,
        ..crate::world::allow(&["platform.claude.com"])
    };
    let inside = world.new_box(policy, Vec::new());
    let mut guest = Guest {
        inside,
        received: Vec::new(),
    };
    let login = guest.claude();
    assert!(!text(&login, "access_token").is_empty());
    let box_id = guest.inside.id;
    let mut check = |host: &str| {
        let host = HostName::parse(host).unwrap().to_string();
        let Answer::Checked(checked) = world.host.call(Request::Check {
            box_id,
            host,
            port: 443,
            asked: None,
            address: None,
        }) else {
            panic!()
        };
        (
            matches!(checked.verdict, box_api::egress::Verdict::Allowed { .. }),
            checked.intercepted,
        )
    };
    assert_eq!(check("platform.claude.com"), (true, true));
    assert_eq!(check("api.anthropic.com"), (false, true));
    assert_eq!(check("github.com"), (false, true));
    assert_eq!(check("docs.github.com"), (false, false));
}
