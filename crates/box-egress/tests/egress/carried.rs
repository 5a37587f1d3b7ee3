//! The places a request carries a credential in, and a secret that is changed while it is in use.

use crate::client::Seen;
use crate::world::{CREDENTIAL, PLACEHOLDER_A, SECRET, World, allow, bound, credential, name};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use box_api::egress::{Answer, Binding, Carriage, CredentialSpec, Request};

const PLACEHOLDER_KEY: &str = "AIzaPLACEHOLDER-of-box-a-000000000000000";
const KEY: &str = "AIzaS3CRET+key/with=more";

/// A key that goes in `x-goog-api-key` or `?key=`.
fn by_query(host: &str) -> CredentialSpec {
    CredentialSpec {
        id: "key".to_owned(),
        kind: "gemini".to_owned(),
        hosts: vec![name(host)],
        carried: vec![
            Carriage::Header {
                name: "x-goog-api-key".to_owned(),
            },
            Carriage::Query {
                name: "key".to_owned(),
            },
        ],
    }
}

fn binding(host: &str) -> Binding {
    Binding {
        placeholder: PLACEHOLDER_KEY.to_owned(),
        credential: "key".to_owned(),
        hosts: vec![name(host)],
        github: None,
    }
}

#[test]
fn placeholder_in_its_query_parameter_is_swapped_on_both_versions_of_http() {
    let mut world = World::start();
    world.rig.origin("cred.test");
    let added = world.host.call_with(
        Request::AddCredential(by_query("cred.test")),
        KEY.as_bytes(),
        &[],
    );
    assert_eq!(added, Answer::Done);
    let inside = world.new_box(allow(&["cred.test"]), vec![binding("cred.test")]);
    let path = format!("/v1/models?alt=sse&key={PLACEHOLDER_KEY}&n=1");
    let asked = path.clone();
    let http1 = inside.run(move |client| async move { client.get("cred.test", &asked, &[]).await });
    assert_eq!(http1.status, 200);
    let asked = path.clone();
    let http2 =
        inside.run(move |client| async move { client.get_http2("cred.test", &asked, &[]).await });
    assert_eq!(http2.status, 200);
    let seen: Vec<String> = world
        .rig
        .requests("cred.test")
        .iter()
        .map(|request| request.path.clone())
        .collect();
    let out = "/v1/models?alt=sse&key=AIzaS3CRET%2Bkey%2Fwith%3Dmore&n=1";
    assert_eq!(seen, [out, out]);

    // Another's key, two keys, the placeholder under another name: refused, and nothing arrives.
    for (query, reason) in [
        ("key=AIzaAttacker".to_owned(), "foreign_credential"),
        (
            format!("key={PLACEHOLDER_KEY}&key=AIzaAttacker"),
            "foreign_credential",
        ),
        // Its own, where it does not belong: that is told as an alarm.
        (
            format!("access_token={PLACEHOLDER_KEY}"),
            "foreign_placeholder",
        ),
    ] {
        let asked = format!("/?{query}");
        let seen: Seen =
            inside.run(move |client| async move { client.get("cred.test", &asked, &[]).await });
        assert_eq!((seen.status, seen.reason()), (403, reason), "{query}");
    }
    assert_eq!(world.rig.requests("cred.test").len(), 2);
    let log = world.log();
    let holds = |text: &str| log.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(!holds("S3CRET"));
}

#[test]
fn git_gets_basic_with_whatever_user_it_names() {
    let mut world = World::start();
    world.rig.origin("cred.test");
    let inside = world.new_box(allow(&["cred.test"]), bound(PLACEHOLDER_A));
    for (pair, out) in [
        (
            format!("x-access-token:{PLACEHOLDER_A}"),
            format!("x-access-token:{SECRET}"),
        ),
        (
            format!("oauth2:{PLACEHOLDER_A}"),
            format!("oauth2:{SECRET}"),
        ),
        (
            format!("{PLACEHOLDER_A}:x-oauth-basic"),
            format!("{SECRET}:x-oauth-basic"),
        ),
        (format!("{PLACEHOLDER_A}:"), format!("{SECRET}:")),
    ] {
        let header = format!("Basic {}", STANDARD.encode(&pair));
        let seen = inside.run(move |client| async move {
            let headers = [("authorization", header.as_str())];
            client
                .get("cred.test", "/me/app.git/info/refs", &headers)
                .await
        });
        assert_eq!(seen.status, 200, "{pair}");
        let requests = world.rig.requests("cred.test");
        let last = requests.last().unwrap();
        let expected = format!("Basic {}", STANDARD.encode(&out));
        assert_eq!(last.header("authorization"), Some(expected.as_str()));
    }
}

#[test]
fn a_rotated_secret_is_used_from_the_next_request_on_the_same_connection() {
    let mut world = World::start();
    world.rig.origin("cred.test");
    let inside = world.new_box(allow(&["cred.test"]), bound(PLACEHOLDER_A));
    let bearer = format!("Bearer {PLACEHOLDER_A}");
    let (turn, turned) = std::sync::mpsc::channel::<()>();
    let (first, firsts) = std::sync::mpsc::channel::<u16>();
    let heard = inside.begin(move |client| async move {
        let stream = client.connect("cred.test", 443).await;
        let stream = client
            .tls(stream, "cred.test", &["http/1.1"])
            .await
            .unwrap();
        let io = hyper_util::rt::TokioIo::new(stream);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
        let driver = tokio::spawn(connection);
        let headers = [("authorization", bearer.as_str())];
        let ask = || crate::client::request("GET", "cred.test", "/", &headers);
        let response = sender.send_request(ask()).await.unwrap();
        let status = response.status().as_u16();
        drop(
            http_body_util::BodyExt::collect(response.into_body())
                .await
                .unwrap(),
        );
        first.send(status).unwrap();
        tokio::task::spawn_blocking(move || turned.recv())
            .await
            .unwrap()
            .unwrap();
        let status = sender.send_request(ask()).await.unwrap().status().as_u16();
        driver.abort();
        status
    });
    assert_eq!(firsts.recv().unwrap(), 200);
    let next = "sk-ant-oat01-N3XT-S3CRET-0000000000000000";
    let spec = credential(CREDENTIAL, &["cred.test"]);
    let rotated = world
        .host
        .call_with(Request::AddCredential(spec), next.as_bytes(), &[]);
    assert_eq!(rotated, Answer::Done);
    turn.send(()).unwrap();
    let status: u16 = crate::inside::Inside::outcome(&heard);
    assert_eq!(status, 200);
    let seen: Vec<String> = world
        .rig
        .requests("cred.test")
        .iter()
        .filter_map(|request| request.header("authorization").map(str::to_owned))
        .collect();
    assert_eq!(seen, [format!("Bearer {SECRET}"), format!("Bearer {next}")]);
}

#[test]
fn a_credential_that_cannot_be_carried_like_that_is_refused() {
    let mut world = World::start();
    for carried in [
        Carriage::Query {
            name: "a&b".to_owned(),
        },
        Carriage::Query {
            name: String::new(),
        },
        Carriage::Header {
            name: "cookie".to_owned(),
        },
        Carriage::Header {
            name: "authorization".to_owned(),
        },
    ] {
        let spec = CredentialSpec {
            carried: vec![carried.clone()],
            ..by_query("cred.test")
        };
        let answer = world
            .host
            .call_with(Request::AddCredential(spec), KEY.as_bytes(), &[]);
        assert!(matches!(answer, Answer::Refused { .. }), "{carried:?}");
    }
}
