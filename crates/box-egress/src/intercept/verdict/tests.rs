//! The table of what may log in at a host with a credential (catalogue §2.7).

use super::*;
use crate::intercept::grant::Credential;
use crate::secret::Secret;
use box_api::egress::CredentialSpec;
use std::sync::Arc;

const MINE: &str = "sk-ant-oat01-PH-A-of-box-a";
const OTHER_HOST: &str = "github_pat_PH-A-other-host";
const OTHER_BOX: &str = "sk-ant-oat01-PH-B-of-box-b";
const SECRET: &str = "sk-ant-oat01-S3CRET";

fn box_a() -> BoxId {
    BoxId::from_random([1; 10])
}

fn box_b() -> BoxId {
    BoxId::from_random([2; 10])
}

fn owner_of(text: &str) -> Option<BoxId> {
    match text {
        MINE | OTHER_HOST => Some(box_a()),
        OTHER_BOX => Some(box_b()),
        _ => None,
    }
}

fn grant(present: Option<&str>) -> Vec<Grant> {
    let spec = CredentialSpec {
        id: "c".into(),
        kind: "claude".into(),
        hosts: Vec::new(),
        carried: vec![
            Carriage::Bearer,
            Carriage::Basic,
            Carriage::Header {
                name: "x-api-key".into(),
            },
            Carriage::Header {
                name: "X-Own-Key".into(),
            },
            Carriage::Query { name: "key".into() },
        ],
    };
    let credential = present.map(|secret| {
        Arc::new(Credential {
            spec,
            secret: Some(Secret::new(secret.as_bytes())),
        })
    });
    vec![Grant {
        placeholder: MINE.into(),
        credential,
    }]
}

fn map(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        headers.append(name, value.parse().unwrap());
    }
    headers
}

/// The headers after the swap, in the order of their names.
fn swapped(pairs: &[(&str, &str)], query: &str) -> Result<Vec<(String, String)>, Offence> {
    let mut headers = map(pairs);
    for swap in judge(&headers, query, &grant(Some(SECRET)), owner_of)?.headers {
        swap.apply(&mut headers);
    }
    let mut all: Vec<(String, String)> = headers
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
        .collect();
    all.sort();
    Ok(all)
}

fn one(name: &str, value: &str) -> Result<String, Offence> {
    let all = swapped(&[(name, value)], "")?;
    Ok(all.into_iter().map(|(_, value)| value).collect())
}

#[test]
fn own_placeholder_becomes_the_secret() {
    // G1, G2, G7
    let bearer = |scheme: &str| Ok(format!("{scheme} {SECRET}"));
    assert_eq!(
        one("authorization", &format!("Bearer {MINE}")),
        bearer("Bearer")
    );
    assert_eq!(
        one("authorization", &format!("bearer  {MINE} ")),
        bearer("bearer")
    );
    assert_eq!(
        one("authorization", &format!("token {MINE}")),
        bearer("token")
    );
    assert_eq!(one("x-api-key", MINE), Ok(SECRET.into()));
    assert_eq!(one("x-own-key", MINE), Ok(SECRET.into()));
    let basic = |pair: String| format!("Basic {}", BASE64.encode(pair));
    assert_eq!(
        one("authorization", &basic(format!("x-access-token:{MINE}"))),
        Ok(basic(format!("x-access-token:{SECRET}")))
    );
    assert_eq!(
        one("authorization", &basic(format!("{MINE}:"))),
        Ok(basic(format!("{SECRET}:")))
    );
    assert_eq!(
        one("authorization", &basic(format!("{MINE}:x-oauth-basic"))),
        Ok(basic(format!("{SECRET}:x-oauth-basic")))
    );
}

#[test]
fn request_without_a_credential_passes_as_it_is() {
    // G12, G16
    let pairs = [("x-data", MINE), ("user-agent", MINE), ("accept", "*/*")];
    let kept = swapped(&pairs, &format!("q={MINE}&n=1")).unwrap();
    assert_eq!(kept.len(), 3);
    assert!(kept.iter().all(|(_, value)| !value.contains(SECRET)));
    assert_eq!(swapped(&[("authorization", "")], ""), Ok(Vec::new()));
    assert_eq!(swapped(&[("authorization", "Bearer ")], ""), Ok(Vec::new()));
    assert_eq!(
        swapped(&[("cookie", "__cf_bm=a; _cfuvid=b")], "")
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn any_other_credential_is_foreign() {
    // G3, G5, G9
    let basic = format!("Basic {}", BASE64.encode("user:password"));
    let joined = format!("{MINE}, attacker");
    for (name, value) in [
        ("authorization", "Bearer sk-ant-attacker"),
        ("authorization", basic.as_str()),
        ("authorization", "Basic !!!"),
        ("authorization", "AWS4-HMAC-SHA256 Credential=x"),
        ("authorization", "attacker"),
        ("x-api-key", "attacker"),
        ("x-api-key", joined.as_str()),
        ("api-key", "attacker"),
        ("x-goog-api-key", "attacker"),
        ("private-token", "attacker"),
        ("x-amz-security-token", "attacker"),
        ("x-github-token", "attacker"),
        ("x-own-key", "attacker"),
        ("cookie", "user_session=attacker"),
        ("cookie", "__cf_bm=a; user_session=attacker"),
    ] {
        assert_eq!(
            one(name, value),
            Err(Offence::ForeignCredential),
            "{name}: {value}"
        );
    }
    // The placeholder counts only where the credential may be carried.
    assert_eq!(one("x-goog-api-key", MINE), Err(Offence::ForeignCredential));
}

#[test]
fn foreign_credential_beside_the_own_one_is_refused() {
    // G4, G5
    let own = format!("Bearer {MINE}");
    for pairs in [
        [("x-api-key", MINE), ("authorization", "Bearer attacker")],
        [
            ("authorization", &own),
            ("authorization", "Bearer attacker"),
        ],
        [
            ("authorization", "Bearer attacker"),
            ("authorization", &own),
        ],
        [("authorization", &own), ("authorization", &own)],
        [("cookie", "__cf_bm=a"), ("cookie", "user_session=attacker")],
    ] {
        assert_eq!(
            swapped(&pairs, ""),
            Err(Offence::ForeignCredential),
            "{pairs:?}"
        );
    }
}

#[test]
fn credential_in_the_query_is_refused() {
    // G10
    for query in [
        "api_key=attacker",
        "a=b&access_token=attacker",
        "KEY=attacker",
        "a=b;token=attacker",
        "%61pi_key=attacker",
    ] {
        assert_eq!(
            swapped(&[], query),
            Err(Offence::ForeignCredential),
            "{query}"
        );
    }
    for query in ["", "key=", "beta=true", "monkey=1", "keys=1"] {
        assert_eq!(swapped(&[], query), Ok(Vec::new()), "{query}");
    }
}

/// G9, G10: by the names vendors gave what logs somebody in.
#[test]
fn every_name_that_logs_somebody_in_somewhere_is_judged() {
    let headers = "access-token api-key apikey auth-token circle-token dd-api-key \
        dd-application-key deploy-token job-token ocp-apim-subscription-key openai-api-key private-token \
        token x-access-token x-amz-security-token x-anthropic-api-key x-api-token x-apikey \
        x-auth x-auth-email x-auth-key x-auth-token x-authorization x-bearer-token \
        x-client-secret x-consul-token x-figma-token x-forwarded-access-token x-functions-key x-gemini-api-key \
        x-github-token x-gitlab-token x-goog-api-key x-id-token x-jwt-assertion x-key \
        x-oauth-token x-password x-rapidapi-key x-refresh-token x-registry-auth x-secret \
        x-secret-key x-session-token x-shopify-access-token x-token x-vault-token";
    for name in headers.split(' ') {
        let foreign = swapped(&[(name, "attacker")], "");
        assert_eq!(foreign, Err(Offence::ForeignCredential), "{name}");
        // Empty, it logs nobody in.
        assert!(swapped(&[(name, "")], "").is_ok(), "{name}");
    }
    let parameters = "access-token access_key access_token api-token api_key api_token \
        apitoken app_key auth auth-token auth_key auth_token \
        awsaccesskeyid bearer client_secret credentials id_token jwt \
        oauth_signature oauth_token passwd password pat personal_access_token \
        private_key private_token refresh_token secret secret_key session_token \
        subscription-key token x-api-key x-amz-signature";
    for name in parameters.split(' ') {
        for query in [
            format!("{name}=attacker"),
            format!("a=b&{}=attacker", name.to_ascii_uppercase()),
            format!("{name}[]=attacker"),
            format!("+{name}%20=attacker"),
        ] {
            let foreign = swapped(&[], &query);
            assert_eq!(foreign, Err(Offence::ForeignCredential), "{query}");
        }
        assert!(swapped(&[], &format!("{name}=")).is_ok(), "{name}");
    }
}

#[test]
fn placeholder_of_another_box_or_host_is_an_alarm() {
    // G14
    let alarm = |belongs_to| Err(Offence::ForeignPlaceholder { belongs_to });
    let basic = format!("Basic {}", BASE64.encode(format!("x:{OTHER_BOX}")));
    assert_eq!(
        one("authorization", &format!("Bearer {OTHER_BOX}")),
        alarm(box_b())
    );
    assert_eq!(one("authorization", &basic), alarm(box_b()));
    assert_eq!(one("x-api-key", OTHER_BOX), alarm(box_b()));
    assert_eq!(
        one("cookie", &format!("session={OTHER_BOX}")),
        alarm(box_b())
    );
    assert_eq!(
        one("authorization", &format!("Bearer {OTHER_HOST}")),
        alarm(box_a())
    );
    let query = swapped(&[], &format!("api_key={OTHER_BOX}")).map(|_| String::new());
    assert_eq!(query, alarm(box_b()));
    let two = format!("Bearer {MINE}");
    let other = format!("Bearer {OTHER_BOX}");
    let both = swapped(&[("authorization", &two), ("authorization", &other)], "");
    assert_eq!(both.map(|_| String::new()), alarm(box_b()));
}

#[test]
fn missing_credential_never_lets_the_placeholder_out() {
    // G28
    let headers = map(&[("authorization", &format!("Bearer {MINE}"))]);
    let outcome = judge(&headers, "", &grant(None), owner_of);
    assert_eq!(outcome.map(|_| ()), Err(Offence::CredentialMissing));
}

/// The query that goes out, if it is another one.
fn asked(query: &str, secret: &str) -> Result<Option<String>, Offence> {
    let swaps = judge(&HeaderMap::new(), query, &grant(Some(secret)), owner_of)?;
    Ok(swaps.query.map(|query| query.to_string()))
}

#[test]
fn own_placeholder_in_its_own_query_parameter_becomes_the_secret() {
    let became = |query: &str| asked(query, SECRET).unwrap();
    let out = |text: &str| Some(text.to_owned());
    assert_eq!(
        became(&format!("key={MINE}")),
        out(&format!("key={SECRET}"))
    );
    assert_eq!(
        became(&format!("alt=sse&KEY={MINE}&q=a%20b")),
        out(&format!("alt=sse&KEY={SECRET}&q=a%20b"))
    );
    // Written another way it is the same placeholder.
    let encoded = MINE.replace('-', "%2d");
    assert_eq!(
        became(&format!("%6bey={encoded};a")),
        out(&format!("%6bey={SECRET};a"))
    );
    // What a secret may be is more than a query may hold.
    assert_eq!(
        asked(&format!("key={MINE}"), "a+b&c=d%"),
        Ok(out("key=a%2Bb%26c%3Dd%25"))
    );
    for query in ["", "alt=sse", &format!("q={MINE}")] {
        assert_eq!(became(query), None, "{query}");
    }
}

#[test]
fn query_parameter_takes_nothing_but_the_own_placeholder_once() {
    let foreign = Err(Offence::ForeignCredential);
    for query in [
        "key=attacker".to_owned(),
        format!("key={MINE}&key=attacker"),
        format!("key=attacker&key={MINE}"),
        format!("key={MINE}x"),
        format!("key={MINE};access_token=attacker"),
    ] {
        assert_eq!(asked(&query, SECRET), foreign, "{query}");
    }
    // Its own, but twice, or not where this credential is carried.
    let misplaced = Err(Offence::ForeignPlaceholder {
        belongs_to: box_a(),
    });
    for query in [format!("key={MINE}&KEY={MINE}"), format!("api_key={MINE}")] {
        assert_eq!(asked(&query, SECRET), misplaced, "{query}");
    }
    let alarm = Err(Offence::ForeignPlaceholder {
        belongs_to: box_b(),
    });
    assert_eq!(asked(&format!("key={OTHER_BOX}"), SECRET), alarm);
}
