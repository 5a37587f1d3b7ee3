//! Who gets in: nobody without a cookie, nobody from elsewhere, each link once.

use crate::browser::{Browser, Site, Socket, cookie};
use box_api::control::{Outcome, Request};
use box_api::page::{PageAsk, ServerFrame};
use hyper::{Method, StatusCode};
use serde_json::json;

/// Method and path of every endpoint, as the host itself lists them.
async fn endpoints(browser: &Browser) -> Vec<(Method, String)> {
    let document = browser.get("/api/openapi.json").await.json();
    let mut all = Vec::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for method in operations.as_object().unwrap().keys() {
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            all.push((method, path.replace(['{', '}'], "")));
        }
    }
    all
}

#[tokio::test]
async fn nothing_is_answered_without_a_cookie() {
    let site = Site::start().await;
    let (browser, stranger) = (site.browser().await, site.stranger());
    let all = endpoints(&browser).await;
    assert!(all.len() > 40, "only {} endpoints", all.len());
    for (method, path) in all {
        let asked = (method.clone(), path.clone());
        let got = stranger
            .send(method, &path, stranger.own_headers(), Vec::new())
            .await;
        assert_eq!(got.status, StatusCode::UNAUTHORIZED, "{asked:?}");
        assert_eq!(got.slug(), "signed-out");
        assert!(got.headers.contains_key("content-security-policy"));
    }
    for path in ["/metrics", "/api/nothing", "/api"] {
        assert_eq!(
            stranger.get(path).await.status,
            StatusCode::UNAUTHORIZED,
            "{path}"
        );
    }
    let refused = Socket::open(site.address, &stranger.own_headers()).await;
    assert_eq!(refused.err(), Some(401));
    let mut forged = stranger.clone();
    forged.cookie = Some(format!("box_{}=AAAA", site.address.port()));
    assert_eq!(forged.get("/api/me").await.status, StatusCode::UNAUTHORIZED);

    assert_eq!(browser.get("/api/me").await.status, StatusCode::OK);
    assert_eq!(stranger.get("/healthz").await.json(), json!({ "ok": true }));
    assert_eq!(stranger.get("/pair").await.status, StatusCode::OK);
    assert_eq!(stranger.get("/").await.status, StatusCode::OK);
}

#[tokio::test]
async fn other_names_and_other_pages_get_nothing_even_with_the_cookie() {
    let site = Site::start().await;
    let browser = site.browser().await;
    let own = browser.own_headers();
    let with = |name: &'static str, value: &str| {
        let mut headers = own.clone();
        headers.retain(|(known, _)| *known != name);
        headers.extend((!value.is_empty()).then(|| (name, value.to_owned())));
        headers
    };
    let all = endpoints(&browser).await;
    for (method, path) in all.into_iter().chain([(Method::GET, "/".to_owned())]) {
        let headers = with("host", "evil.example");
        let got = browser
            .send(method.clone(), &path, headers, Vec::new())
            .await;
        assert_eq!(
            got.status,
            StatusCode::MISDIRECTED_REQUEST,
            "{method} {path}"
        );
        let headers = with("origin", "http://evil.example");
        let got = browser
            .send(method.clone(), &path, headers, Vec::new())
            .await;
        assert_eq!(got.status, StatusCode::FORBIDDEN, "{method} {path}");
        assert_eq!(got.slug(), "foreign-origin");
        let got = browser
            .send(method.clone(), &path, with("origin", ""), Vec::new())
            .await;
        let refused = got.status == StatusCode::FORBIDDEN;
        assert_eq!(refused, method != Method::GET, "{method} {path}: {got:?}");
    }
    let open = |headers: Vec<(&'static str, String)>| async move {
        Socket::open(site.address, &headers).await.err()
    };
    assert_eq!(open(with("origin", "http://evil.example")).await, Some(403));
    assert_eq!(open(with("origin", "")).await, Some(403));
    assert_eq!(open(with("host", "evil.example")).await, Some(421));
    assert_eq!(open(own.clone()).await, None);
}

#[tokio::test]
async fn a_link_pairs_one_browser_once_and_no_secret_is_on_disk() {
    let site = Site::start().await;
    let (stranger, code) = (site.stranger(), site.code().await);
    let paired = stranger.pair(&code).await;
    assert_eq!(paired.status, StatusCode::OK);
    let set = paired.headers["set-cookie"].to_str().unwrap();
    for part in ["; Path=/", "; HttpOnly", "; SameSite=Strict", "; Max-Age="] {
        assert!(set.contains(part), "{set}");
    }
    let again = stranger.pair(&code).await;
    assert_eq!(
        (again.status, again.slug().as_str()),
        (StatusCode::FORBIDDEN, "link-used-up")
    );
    assert!(!again.headers.contains_key("set-cookie"));

    let value = cookie(&paired);
    let value = value.split_once('=').unwrap().1;
    let mut files = 0;
    for entry in std::fs::read_dir(&site.host.paths().data).unwrap() {
        let path = entry.unwrap().path();
        let Ok(bytes) = std::fs::read(&path) else {
            continue;
        };
        files += 1;
        for secret in [code.as_str(), value] {
            let found = bytes
                .windows(secret.len())
                .any(|part| part == secret.as_bytes());
            assert!(!found, "{} holds a secret", path.display());
        }
    }
    assert!(files > 0);
}

#[tokio::test]
async fn whoever_guesses_codes_is_made_to_wait() {
    let site = Site::start().await;
    let (stranger, code) = (site.stranger(), site.code().await);
    for _ in 0..10 {
        assert_eq!(stranger.pair("guess").await.status, StatusCode::FORBIDDEN);
    }
    let late = stranger.pair("guess").await;
    assert_eq!(
        (late.status, late.slug().as_str()),
        (StatusCode::TOO_MANY_REQUESTS, "too-many-tries")
    );
    // All of this machine have one address: whoever has a code is let in all the same.
    assert_eq!(stranger.pair(&code).await.status, StatusCode::OK);
}

/// More connections than there are places, all silent.
#[tokio::test]
async fn silent_connections_keep_no_page_out() {
    let site = Site::start().await;
    let browser = site.browser().await;
    let mut socket = browser.socket().await;
    let mut silent = Vec::new();
    for _ in 0..300 {
        silent.push(crate::browser::connect(site.address).await);
    }
    assert_eq!(browser.get("/api/me").await.status, StatusCode::OK);
    // An open page hears on, and the oldest of the silent ones was put out.
    socket.say_text("{\"frame\":\"ping\"}").await;
    assert!(matches!(
        socket.frame().await,
        Some(ServerFrame::Ping { .. })
    ));
    let mut byte = [0];
    let ended = tokio::io::AsyncReadExt::read(&mut silent[0], &mut byte);
    let ended = tokio::time::timeout(crate::host::PATIENCE, ended).await;
    assert!(
        !matches!(ended.unwrap(), Ok(1)),
        "a silent connection stays"
    );
}

/// The document without a script: only for a browser whose page asked, only that thread.
#[tokio::test]
async fn a_document_without_script_is_for_the_browser_that_asked() {
    let site = Site::start().await;
    let browser = site.browser().await;
    let path = "/plain/aaaaaaaaaaaaaaaa";
    for who in [&browser, &site.stranger()] {
        let got = who.get(path).await;
        assert_eq!(got.status, StatusCode::UNAUTHORIZED);
        let text = String::from_utf8(got.body).unwrap();
        assert!(text.contains("Not open here") && !text.contains("<script"));
    }
    let none = browser
        .post("/api/threads/aaaaaaaaaaaaaaaa/plain", &json!({}))
        .await;
    assert_eq!(none.status, StatusCode::NOT_FOUND, "{none:?}");
    assert!(!none.headers.contains_key("set-cookie"));
}

/// A server at another port of the same name is sent the cookie, and never what stands beside it.
#[tokio::test]
async fn a_cookie_alone_lets_nobody_in() {
    let site = Site::start().await;
    let browser = site.browser().await;
    let mut headers = browser.own_headers();
    headers.retain(|(name, _)| *name != "x-box-proof");
    for (wrong, right) in [
        (None, 401),
        (Some("none"), 401),
        (browser.proof.as_deref(), 200),
    ] {
        let mut shown = headers.clone();
        shown.extend(wrong.map(|proof| ("x-box-proof", proof.to_owned())));
        let got = browser.send(Method::GET, "/api/me", shown, Vec::new());
        assert_eq!(got.await.status.as_u16(), right, "{wrong:?}");
        let mut shown = headers.clone();
        shown.extend(wrong.map(|proof| ("sec-websocket-protocol", format!("boxes, {proof}"))));
        let opened = Socket::open(site.address, &shown).await.err();
        assert_eq!(opened.unwrap_or(200), right, "{wrong:?}");
    }
}

/// Whoever gets a cookie that was given at one name of ours shows it at another in vain.
#[tokio::test]
async fn a_cookie_is_worth_nothing_at_another_name_of_ours() {
    let site = Site::start().await;
    let browser = site.browser().await;
    assert_eq!(browser.get("/api/me").await.status, StatusCode::OK);
    let other = format!("localhost:{}", site.address.port());
    let mut headers = browser.own_headers();
    headers.retain(|(name, _)| !matches!(*name, "host" | "origin"));
    headers.extend([
        ("host", other.clone()),
        ("origin", format!("http://{other}")),
    ]);
    let got = browser.send(Method::GET, "/api/me", headers.clone(), Vec::new());
    assert_eq!(got.await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(Socket::open(site.address, &headers).await.err(), Some(401));
    // It is one of ours: the page itself is there.
    headers.retain(|(name, _)| *name != "cookie");
    let page = browser.send(Method::GET, "/", headers, Vec::new()).await;
    assert_eq!(page.status, StatusCode::OK);
}

#[tokio::test]
async fn a_revoked_sign_in_is_out_at_once() {
    let site = Site::start().await;
    let (gone, stays) = (site.browser().await, site.browser().await);
    let id = gone.get("/api/me").await.json()["sign_in"]
        .as_str()
        .unwrap()
        .to_owned();
    let (mut socket, mut other) = (gone.socket().await, stays.socket().await);
    let outcome = site.host.ask(Request::Page(PageAsk::List)).await;
    let Ok(Outcome::SignIns { sign_ins }) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(sign_ins.len(), 2);
    assert!(
        sign_ins
            .iter()
            .any(|one| one.id == id && one.agent == "Test/1.0")
    );

    let revoke = PageAsk::Revoke { id: id.clone() };
    assert_eq!(
        site.host.ask(Request::Page(revoke.clone())).await,
        Ok(Outcome::Nothing)
    );
    let bye = socket.frame().await;
    assert!(matches!(bye, Some(ServerFrame::Bye { .. })), "{bye:?}");
    assert_eq!(socket.frame().await, None);
    assert_eq!(gone.get("/api/me").await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(
        site.host.refusal(Request::Page(revoke)).await.slug,
        "sign-in-not-found"
    );

    other.say_text("{\"frame\":\"ping\"}").await;
    assert!(matches!(
        other.frame().await,
        Some(ServerFrame::Ping { .. })
    ));
    assert_eq!(
        stays.post("/api/sign-out", &json!({})).await.status,
        StatusCode::NO_CONTENT
    );
    assert!(matches!(other.frame().await, Some(ServerFrame::Bye { .. })));
    assert_eq!(stays.get("/api/me").await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_host_that_ends_says_so_to_open_pages() {
    let site = Site::start().await;
    let browser = site.browser().await;
    let mut socket = browser.socket().await;
    drop(site.host.stop().await);
    assert!(matches!(
        socket.frame().await,
        Some(ServerFrame::Bye { .. })
    ));
    assert_eq!(socket.frame().await, None);
}
