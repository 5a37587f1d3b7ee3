//! Push over HTTP: a browser subscribes for itself; the checklist says so.

use crate::browser::Site;
use hyper::{Method, StatusCode};
use serde_json::{Value, json};

fn subscription(endpoint: &str) -> Value {
    json!({
        "endpoint": endpoint,
        "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
        "auth": "BTBZMqHH6r4Tts7J_aSIgg",
    })
}

#[tokio::test]
async fn a_browser_subscribes_for_itself_and_only_where_a_push_service_can_be() {
    let site = Site::start().await;
    let (phone, laptop) = (site.browser().await, site.browser().await);
    let before = phone.get("/api/push").await.json();
    assert_eq!(
        (&before["key"], &before["devices"]),
        (&Value::Null, &json!([]))
    );
    for endpoint in [
        "http://push.example.org/x",
        "https://127.0.0.1/x",
        "https://localhost/x",
        "https://push.example.org:8443/x",
    ] {
        let refused = phone.post("/api/push", &subscription(endpoint)).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{endpoint}");
        assert_eq!(refused.slug(), "push-subscription");
    }
    let key = phone.post("/api/push/key", &json!({})).await.json()["key"].clone();
    let made = phone
        .post("/api/push", &subscription("https://push.example.org/x"))
        .await;
    assert_eq!(made.status, StatusCode::CREATED);
    let own = phone.get("/api/push").await.json();
    assert_eq!(own["key"], key);
    assert_eq!(own["devices"][0]["sign_in"], own["own"]);
    assert_eq!(own["devices"][0]["service"], "push.example.org");
    assert!(!own.to_string().contains("BTBZMqHH"), "{own}");

    let checks = laptop.get("/api/checklist").await.json();
    let checks = checks["checks"].as_array().unwrap().clone();
    let told = checks.iter().find(|check| check["what"] == "notifications");
    assert_eq!(told.unwrap()["tint"], "good");
    let account = checks.iter().find(|check| check["login"] == "claude");
    assert!(account.is_some(), "{checks:?}");

    let path = format!("/api/push/{}", own["own"].as_str().unwrap());
    let headers = laptop.own_headers();
    let gone = laptop
        .send(Method::DELETE, &path, headers, Vec::new())
        .await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT);
    assert_eq!(phone.get("/api/push").await.json()["devices"], json!([]));
    let tested = phone.post("/api/push/test", &json!({})).await;
    assert_eq!(tested.status, StatusCode::NOT_FOUND);
}
