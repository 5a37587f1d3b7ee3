//! Boxes through the page's door.

use crate::browser::{Browser, Site};
use hyper::{Method, StatusCode};
use serde_json::{Value, json};

async fn made(browser: &Browser, name: &str) -> Value {
    let made = browser.post("/api/boxes", &json!({ "name": name })).await;
    assert_eq!(made.status, StatusCode::CREATED, "{made:?}");
    made.json()
}

#[tokio::test]
async fn a_box_is_made_stopped_renamed_removed_and_taken_back() {
    let site = Site::start().await;
    let browser = site.browser().await;
    let info = made(&browser, "demo").await;
    let id = info["id"].as_str().unwrap().to_owned();
    assert_eq!(info["state"], "running");
    let list = browser.get("/api/boxes").await.json();
    assert_eq!(list["boxes"][0]["name"], "demo");
    assert_eq!(
        browser.get(&format!("/api/boxes/{id}")).await.json()["name"],
        "demo"
    );
    let taken = browser.post("/api/boxes", &json!({ "name": "demo" })).await;
    assert_eq!(
        (taken.status, taken.slug().as_str()),
        (StatusCode::CONFLICT, "name-taken")
    );

    let act = async |what: &str, body: Value| {
        browser
            .post(&format!("/api/boxes/{id}/{what}"), &body)
            .await
    };
    assert_eq!(
        act("stop", json!({ "haste": "at_once" })).await.json()["state"],
        "stopped"
    );
    assert_eq!(act("start", json!({})).await.json()["state"], "running");
    assert_eq!(
        act("rename", json!({ "to": "other" })).await.json()["name"],
        "other"
    );
    assert_eq!(
        act("remove", json!({ "unpushed": "ignore" })).await.status,
        StatusCode::NO_CONTENT
    );
    assert_eq!(
        browser.get(&format!("/api/boxes/{id}")).await.status,
        StatusCode::NOT_FOUND
    );
    // An id that could be no name is one that nobody has, too.
    let nobody = browser.get("/api/boxes/7777777777777777").await;
    assert_eq!(nobody.status, StatusCode::NOT_FOUND);
    let trash = browser.get("/api/trash").await.json();
    assert_eq!(trash["boxes"][0]["id"], id.as_str());
    let back = browser
        .post(
            &format!("/api/trash/{id}/undelete"),
            &json!({ "name": "again" }),
        )
        .await;
    assert_eq!(
        (back.status, back.json()["name"].as_str()),
        (StatusCode::OK, Some("again"))
    );
}

#[tokio::test]
async fn what_is_asked_wrong_is_told_as_a_problem() {
    let site = Site::start().await;
    let browser = site.browser().await;
    let asked = |path: &'static str, body: Value| {
        let browser = browser.clone();
        async move {
            let got = browser.post(path, &body).await;
            assert_eq!(got.headers["content-type"], "application/problem+json");
            (got.status.as_u16(), got.slug())
        }
    };
    let bad = |slug: &str| (400, slug.to_owned());
    assert_eq!(
        asked("/api/boxes", json!({ "name": "Demo" })).await,
        bad("bad-body")
    );
    assert_eq!(
        asked("/api/boxes", json!({ "name": "demo", "devices": [] })).await,
        bad("bad-body")
    );
    assert_eq!(
        asked("/api/boxes/demo/start", json!({})).await,
        (404, "box-not-found".into())
    );
    assert_eq!(
        asked("/api/me", json!({})).await,
        (405, "other-method".into())
    );
    assert_eq!(
        asked("/api/nothing", json!({})).await,
        (404, "endpoint-not-found".into())
    );
    let unknown = asked("/api/threads/aaaaaaaaaaaaaaaa/cancel", json!({})).await;
    assert_eq!(unknown, (404, "endpoint-not-found".into()));
    let unknown = asked(
        "/api/threads/aaaaaaaaaaaaaaaa/act",
        json!({ "act": "cancel" }),
    )
    .await;
    assert_eq!(unknown, (404, "thread-not-found".into()));
    let mut plain = browser.own_headers();
    plain.push(("content-type", "text/plain".to_owned()));
    let body = json!({ "name": "demo" }).to_string().into_bytes();
    let got = browser.send(Method::POST, "/api/boxes", plain, body).await;
    assert_eq!(
        (got.status, got.slug().as_str()),
        (StatusCode::BAD_REQUEST, "bad-body")
    );
}

#[tokio::test]
async fn every_answer_keeps_other_pages_out() {
    let site = Site::start().await;
    let browser = site.browser().await;
    for path in [
        "/",
        "/pair",
        "/pair.js",
        "/healthz",
        "/api/me",
        "/api/nothing",
        "/gone.js",
    ] {
        let got = browser.get(path).await;
        let policy = got.headers["content-security-policy"].to_str().unwrap();
        for part in [
            "default-src 'none'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
        ] {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-resource-policy", "same-origin"),
            ("cross-origin-opener-policy", "same-origin"),
            ("x-frame-options", "DENY"),
            ("x-box-build", "build-of-the-test"),
        ] {
            assert_eq!(got.headers[name], value, "{path}");
        }
    }
    assert_eq!(browser.get("/gone.js").await.status, StatusCode::NOT_FOUND);
    assert_eq!(
        browser.get("/t/abc").await.headers["content-type"],
        "text/html; charset=utf-8"
    );
}

#[tokio::test]
async fn numbers_are_told_as_prometheus_reads_them() {
    let site = Site::start().await;
    let browser = site.browser().await;
    made(&browser, "demo").await;
    let text = String::from_utf8(browser.get("/metrics").await.body).unwrap();
    for line in [
        "box_up 1",
        "box_boxes{state=\"running\"} 1",
        "# TYPE box_page_requests_total counter",
    ] {
        assert!(text.lines().any(|one| one == line), "{text}");
    }
    let health = browser.get("/healthz").await.json();
    assert_eq!(health["boxes"]["running"], 1);
    let doctor = browser.get("/api/doctor").await.json();
    let looked: Vec<&str> = doctor["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["what"].as_str().unwrap())
        .collect();
    assert_eq!(
        looked,
        ["engine", "limits", "copies", "network", "secrets", "page"]
    );
}
