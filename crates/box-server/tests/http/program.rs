//! Programs: tokens are told once, kept as hashes, good for what they were made for and no longer
//! than they stand.

use crate::browser::{Browser, Got, Site, Socket};
use box_api::control::{Outcome, Request};
use box_api::page::{NewToken, PageAsk, TokenAsk, TokenScope};
use hyper::{Method, StatusCode};
use serde_json::json;

fn asked(scope: TokenScope) -> TokenAsk {
    TokenAsk {
        label: "test".into(),
        scope,
        name: None,
        days: None,
    }
}

async fn token(site: &Site, scope: TokenScope) -> NewToken {
    let request = Request::Page(PageAsk::TokenAdd(asked(scope)));
    let outcome = site.host.ask(request).await;
    let Ok(Outcome::Token(made)) = outcome else {
        panic!("{outcome:?}");
    };
    made
}

/// As a program sends it: no origin, no cookie.
async fn send(site: &Site, method: Method, path: &str, token: &str) -> Got {
    let mut headers = vec![
        ("host", site.address.to_string()),
        ("authorization", format!("Bearer {token}")),
    ];
    let body = if method == Method::POST {
        headers.push(("content-type", "application/json".to_owned()));
        b"{}".to_vec()
    } else {
        Vec::new()
    };
    site.stranger().send(method, path, headers, body).await
}

#[tokio::test]
async fn a_token_is_good_for_its_scope_and_nothing_else() {
    let site = Site::start().await;
    let (read, full) = (
        token(&site, TokenScope::Read).await.token,
        token(&site, TokenScope::Full).await.token,
    );
    let metrics = token(&site, TokenScope::Metrics).await.token;
    let status = async |method: Method, path: &str, token: &str| {
        send(&site, method, path, token).await.status.as_u16()
    };
    assert_eq!(status(Method::GET, "/api/boxes", &read).await, 200);
    assert_eq!(status(Method::POST, "/api/search", &read).await, 403);
    assert_eq!(status(Method::GET, "/metrics", &read).await, 200);
    assert_eq!(status(Method::GET, "/api/boxes", &full).await, 200);
    // It got in: what it asks for is not there.
    assert_eq!(
        status(Method::POST, "/api/boxes/none/start", &full).await,
        404
    );
    for path in ["/api/tokens", "/api/sign-ins", "/api/sign-out"] {
        assert_eq!(status(Method::POST, path, &full).await, 403, "{path}");
    }
    assert_eq!(status(Method::GET, "/metrics", &metrics).await, 200);
    assert_eq!(status(Method::GET, "/api/me", &metrics).await, 403);
    for wrong in ["", "box_token_AAAA", "none"] {
        assert_eq!(
            status(Method::GET, "/api/boxes", wrong).await,
            401,
            "{wrong}"
        );
    }
}

#[tokio::test]
async fn a_token_is_told_once_and_is_on_no_disk() {
    let site = Site::start().await;
    let browser = site.browser().await;
    let made = browser
        .post("/api/tokens", &json!({ "label": "ci", "scope": "read" }))
        .await;
    assert_eq!(made.status, StatusCode::CREATED, "{made:?}");
    let token = made.json()["token"].as_str().unwrap().to_owned();
    assert!(
        token.starts_with("box_token_") && token.len() > 50,
        "{token}"
    );
    let listed = browser.get("/api/tokens").await;
    assert_eq!(listed.json()["tokens"][0]["label"], "ci");
    let text = String::from_utf8(listed.body).unwrap();
    assert!(!text.contains(&token), "{text}");
    let mut files = 0;
    for entry in std::fs::read_dir(&site.host.paths().data).unwrap() {
        let Ok(bytes) = std::fs::read(entry.unwrap().path()) else {
            continue;
        };
        files += 1;
        let secret = token.as_bytes();
        assert!(!bytes.windows(secret.len()).any(|part| part == secret));
    }
    assert!(files > 0);
}

#[tokio::test]
async fn a_revoked_token_is_out_at_once() {
    let site = Site::start().await;
    let made = token(&site, TokenScope::Full).await;
    let headers = [
        ("host", site.address.to_string()),
        ("authorization", format!("Bearer {}", made.token)),
    ];
    let mut socket = Socket::open(site.address, &headers).await.unwrap();
    assert!(socket.frame().await.is_some(), "no greeting");
    let revoke = PageAsk::TokenRevoke {
        id: made.info.id.clone(),
    };
    let revoked = site.host.ask(Request::Page(revoke.clone())).await;
    assert_eq!(revoked, Ok(Outcome::Nothing));
    // The last word, then the end.
    while socket.frame().await.is_some() {}
    let got = send(&site, Method::GET, "/api/me", &made.token).await;
    assert_eq!(got.status, StatusCode::UNAUTHORIZED);
    let again = site.host.refusal(Request::Page(revoke)).await;
    assert_eq!(again.slug, "token-not-found");
}

#[tokio::test]
async fn a_token_in_a_browser_of_another_page_gets_nothing() {
    let site = Site::start().await;
    let made = token(&site, TokenScope::Full).await;
    let headers = vec![
        ("host", site.address.to_string()),
        ("origin", "http://evil.example".to_owned()),
        ("authorization", format!("Bearer {}", made.token)),
    ];
    let stranger = site.stranger();
    let got = stranger
        .send(Method::GET, "/api/me", headers.clone(), Vec::new())
        .await;
    assert_eq!(got.status, StatusCode::FORBIDDEN);
    assert_eq!(Socket::open(site.address, &headers).await.err(), Some(403));
    // Nor is a cookie looked at beside a token that stands for nobody.
    let browser = site.browser().await;
    let mut headers = browser.own_headers();
    headers.push(("authorization", "Bearer box_token_AAAA".to_owned()));
    let got = browser
        .send(Method::GET, "/api/me", headers, Vec::new())
        .await;
    assert_eq!(got.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn what_a_token_cannot_be_is_refused_with_the_reason() {
    let site = Site::start().await;
    let browser = site.browser().await;
    for (body, slug) in [
        (json!({ "label": "", "scope": "read" }), "bad-token"),
        (
            json!({ "label": "x", "scope": "read", "days": 0 }),
            "bad-token",
        ),
        (json!({ "label": "x", "scope": "acp" }), "bad-token"),
        (
            json!({ "label": "x", "scope": "full", "name": "web" }),
            "bad-token",
        ),
        (json!({ "label": "x", "scope": "all" }), "bad-body"),
        (
            json!({ "label": "x", "scope": "acp", "name": "web" }),
            "box-not-found",
        ),
    ] {
        let got = browser.post("/api/tokens", &body).await;
        assert_eq!(got.slug(), slug, "{body}");
    }
}

#[tokio::test]
async fn whoever_guesses_tokens_keeps_nobody_out() {
    let site = Site::start().await;
    let made = token(&site, TokenScope::Read).await;
    let mut last = StatusCode::OK;
    for _ in 0..12 {
        last = send(&site, Method::GET, "/api/me", "box_token_guess")
            .await
            .status;
    }
    assert_eq!(last, StatusCode::TOO_MANY_REQUESTS);
    let got = send(&site, Method::GET, "/api/me", &made.token).await;
    assert_eq!(got.status, StatusCode::OK);
}

/// The refusals of C122.
#[tokio::test]
async fn an_acp_client_hears_why_it_is_refused() {
    let site = Site::start().await;
    let read = token(&site, TokenScope::Read).await.token;
    let open = async |protocols: Option<&str>| {
        let mut headers = vec![("host", site.address.to_string())];
        headers.extend(protocols.map(|text| ("sec-websocket-protocol", text.to_owned())));
        let path = "/api/boxes/web/acp";
        let mut shown = headers.clone();
        shown.extend([
            ("connection", "Upgrade".to_owned()),
            ("upgrade", "websocket".to_owned()),
            ("sec-websocket-version", "13".to_owned()),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==".to_owned()),
        ]);
        let stranger: Browser = site.stranger();
        let got = stranger.send(Method::GET, path, shown, Vec::new()).await;
        (got.status.as_u16(), String::from_utf8(got.body).unwrap())
    };
    let (status, why) = open(None).await;
    assert!(status == 400 && why.contains("acp.v1"), "{status} {why}");
    let (status, why) = open(Some("acp.v1")).await;
    assert!(status == 401 && why.contains("bearer"), "{status} {why}");
    let (status, why) = open(Some("acp.v1, bearer.box_token_x")).await;
    assert!(status == 401 && why.contains("nobody"), "{status} {why}");
    let (status, why) = open(Some(&format!("acp.v1, bearer.{read}"))).await;
    assert!(status == 403 && why.contains("not good"), "{status} {why}");
}
