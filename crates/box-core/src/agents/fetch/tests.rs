//! Tests of downloads, against a registry in a network namespace of the test's own thread.

use super::super::test_registry::{Answer, Registry, package};
use super::*;

fn fetched(registry: &Registry, content: &[u8]) -> Result<Vec<u8>, InstallError> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.tgz");
    registry.with_fetcher(|fetcher| fetcher.fetch(&package("@s/a", content), &file))?;
    Ok(std::fs::read(file).unwrap())
}

fn why(result: Result<Vec<u8>, InstallError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn a_package_is_asked_for_at_its_usual_place_with_the_token_and_checked() {
    let registry = Registry::start();
    registry.answer("/@s/a/-/a-1.0.0.tgz", [Answer::ok(b"content")]);
    assert_eq!(fetched(&registry, b"content").unwrap(), b"content");
    let asked = registry.asked();
    assert_eq!(asked.len(), 1);
    assert!(
        asked[0].contains("authorization: Bearer secret"),
        "{}",
        asked[0]
    );
    assert!(!asked[0].contains("accept-encoding"), "{}", asked[0]);

    registry.answer("/@s/a/-/a-1.0.0.tgz", [Answer::ok(b"content")]);
    let error = fetched(&registry, b"other content");
    assert_eq!(
        why(error),
        "`@s/a@1.0.0` is not what the lock file names: its SHA-512 differs"
    );
}

#[test]
fn an_interrupted_download_goes_on_where_it_stopped() {
    let registry = Registry::start();
    let content: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
    let cut = Answer::ok(&content).cut_after(300_000);
    registry.answer("/@s/a/-/a-1.0.0.tgz", [cut, Answer::rest_of(&content)]);
    assert_eq!(fetched(&registry, &content).unwrap(), content);
    let asked = registry.asked();
    let range = asked[1]
        .lines()
        .find_map(|line| line.strip_prefix("range: bytes="))
        .unwrap();
    let from: usize = range.strip_suffix('-').unwrap().parse().unwrap();
    assert!(from > 0 && from <= 300_000, "{from}");
}

#[test]
fn a_registry_that_cannot_go_on_is_read_from_the_start() {
    let registry = Registry::start();
    let content = vec![7; 500_000];
    let cut = || Answer::ok(&content).cut_after(100_000);
    registry.answer("/@s/a/-/a-1.0.0.tgz", [cut(), Answer::ok(&content)]);
    assert_eq!(fetched(&registry, &content).unwrap(), content);

    let elsewhere = Answer::status("206 Partial Content", "content-range: bytes 5-9/10");
    registry.answer(
        "/@s/a/-/a-1.0.0.tgz",
        [cut(), elsewhere, Answer::ok(&content)],
    );
    assert_eq!(fetched(&registry, &content).unwrap(), content);
}

#[test]
fn passing_trouble_is_tried_again_a_few_times_and_a_refusal_is_not() {
    let registry = Registry::start();
    let trouble = || Answer::status("503 Service Unavailable", "a: b");
    registry.answer(
        "/@s/a/-/a-1.0.0.tgz",
        [trouble(), trouble(), Answer::ok(b"x")],
    );
    assert_eq!(fetched(&registry, b"x").unwrap(), b"x");

    registry.answer(
        "/@s/a/-/a-1.0.0.tgz",
        [trouble(), trouble(), trouble(), Answer::ok(b"x")],
    );
    assert_eq!(
        why(fetched(&registry, b"x")),
        "could not download `@s/a@1.0.0`: the registry answered 503 Service Unavailable"
    );
    registry.answer(
        "/@s/a/-/a-1.0.0.tgz",
        [Answer::status("403 Forbidden", "a: b"), Answer::ok(b"x")],
    );
    assert_eq!(
        why(fetched(&registry, b"x")),
        "could not download `@s/a@1.0.0`: the registry answered 403 Forbidden"
    );
}

#[test]
fn a_registry_with_places_of_its_own_is_asked_for_them() {
    let registry = Registry::start();
    let told = |place: &str| {
        let text = format!(r#"{{"dist":{{"tarball":"{place}"}}}}"#);
        registry.answer("/@s%2fa/1.0.0", [Answer::ok(text.as_bytes())]);
    };
    told(&format!("{}files/77", registry.url()));
    registry.answer("/files/77", [Answer::ok(b"x")]);
    assert_eq!(fetched(&registry, b"x").unwrap(), b"x");

    told("http://elsewhere.test/a.tgz");
    assert_eq!(
        why(fetched(&registry, b"x")),
        "could not download `@s/a@1.0.0`: the registry names no place of its own for it"
    );
    registry.answer("/@s%2fa/1.0.0", []);
    assert_eq!(
        why(fetched(&registry, b"x")),
        "could not download `@s/a@1.0.0`: the registry does not have it"
    );
}

#[test]
fn the_origin_of_an_address_ends_where_its_path_begins() {
    assert_eq!(origin("http://a.test:80/b/c"), Some("http://a.test:80"));
    assert_eq!(origin("http://a.test"), Some("http://a.test"));
    assert_ne!(origin("http://a.test.evil/"), origin("http://a.test/"));
    assert_eq!(origin("a.test"), None);
}
