//! Group G: what logs in at `cred.test`. The box's own placeholder is `sk-ant-oat01-PLACEHOLDER-of-box-a-0000000000`;
//! the one of another box ends in `b-0000000000`. Every row is sent over HTTP/1.1 and HTTP/2.

use super::Ends::{Passes, Refused};
use super::Sends::{Credential, Proxy};
use super::{Ends, Row, row};
use box_api::egress::Reason;

const FOREIGN: Ends = Refused(403, Reason::ForeignCredential);
const OTHER_BOX: Ends = Refused(403, Reason::ForeignPlaceholder);

const OWN: &str = "sk-ant-oat01-PLACEHOLDER-of-box-a-0000000000";
const OWN_BEARER: (&str, &str) = (
    "authorization",
    "Bearer sk-ant-oat01-PLACEHOLDER-of-box-a-0000000000",
);
const OTHERS: &str = "sk-ant-oat01-PLACEHOLDER-of-box-b-0000000000";

pub(crate) const ROWS: &[Row] = &[
    row("G1", Credential("/headers", &[OWN_BEARER]), Passes),
    row("G1a", Credential("/headers", &[("x-api-key", OWN)]), Passes),
    row(
        "G2",
        Credential(
            "/headers",
            &[(
                "authorization",
                "Basic eC1hY2Nlc3MtdG9rZW46c2stYW50LW9hdDAxLVBMQUNFSE9MREVSLW9mLWJveC1hLTAwMDAwMDAwMDA=",
            )],
        ),
        Passes,
    ),
    row(
        "G2a",
        Credential(
            "/",
            &[(
                "authorization",
                "basic c2stYW50LW9hdDAxLVBMQUNFSE9MREVSLW9mLWJveC1hLTAwMDAwMDAwMDA6",
            )],
        ),
        Passes,
    ),
    row(
        "G2b",
        Credential("/", &[("authorization", "Basic eDphdHRhY2tlcg==")]),
        FOREIGN,
    ),
    row(
        "G2c",
        Credential("/", &[("authorization", "Basic !!!")]),
        FOREIGN,
    ),
    row(
        "G2d",
        Credential("/", &[("authorization", "Basic")]),
        FOREIGN,
    ),
    // Another scheme, another spelling, something behind it.
    row(
        "G3",
        Credential("/", &[("authorization", "Bearer sk-ant-attacker")]),
        FOREIGN,
    ),
    row(
        "G3a",
        Credential("/", &[("authorization", "Digest username=\"x\"")]),
        FOREIGN,
    ),
    row("G3b", Credential("/", &[("authorization", OWN)]), OTHER_BOX),
    row(
        "G3c",
        Credential(
            "/",
            &[(
                "authorization",
                "Bearer sk-ant-oat01-PLACEHOLDER-of-box-a-0000000000x",
            )],
        ),
        FOREIGN,
    ),
    row(
        "G3d",
        Credential(
            "/",
            &[(
                "authorization",
                "Bearer sk-ant-oat01-PLACEHOLDER-of-box-a-0000000000, Bearer attacker",
            )],
        ),
        FOREIGN,
    ),
    row(
        "G3e",
        Credential(
            "/",
            &[(
                "authorization",
                "Bearer attacker sk-ant-oat01-PLACEHOLDER-of-box-a-0000000000",
            )],
        ),
        OTHER_BOX,
    ),
    row(
        "G3f",
        Credential("/", &[("authorization", "Negotiate YII=")]),
        FOREIGN,
    ),
    row(
        "G3g",
        Credential(
            "/",
            &[(
                "authorization",
                "AWS4-HMAC-SHA256 Credential=AKIA/x, Signature=1",
            )],
        ),
        FOREIGN,
    ),
    row(
        "G3h",
        Credential(
            "/",
            &[(
                "authorization",
                "Bearer SK-ANT-OAT01-placeholder-OF-BOX-A-0000000000",
            )],
        ),
        FOREIGN,
    ),
    row(
        "G3i",
        Credential("/", &[("authorization", "Bearer%20attacker")]),
        FOREIGN,
    ),
    row(
        "G3j",
        Credential("/", &[("proxy-authorization", "Bearer attacker")]),
        FOREIGN,
    ),
    // Every header is judged, and each one once.
    row(
        "G4",
        Credential(
            "/",
            &[("x-api-key", OWN), ("authorization", "Bearer attacker")],
        ),
        FOREIGN,
    ),
    row(
        "G4a",
        Credential("/", &[OWN_BEARER, ("x-api-key", "attacker")]),
        FOREIGN,
    ),
    row(
        "G5",
        Credential("/", &[OWN_BEARER, ("authorization", "Bearer attacker")]),
        FOREIGN,
    ),
    row(
        "G5a",
        Credential("/", &[("authorization", "Bearer attacker"), OWN_BEARER]),
        FOREIGN,
    ),
    row("G5b", Credential("/", &[OWN_BEARER, OWN_BEARER]), FOREIGN),
    row(
        "G5c",
        Credential("/", &[("x-api-key", OWN), ("x-api-key", "attacker")]),
        FOREIGN,
    ),
    row(
        "G7",
        Credential(
            "/",
            &[(
                "authorization",
                "bearer  sk-ant-oat01-PLACEHOLDER-of-box-a-0000000000 ",
            )],
        ),
        Passes,
    ),
    row(
        "G7a",
        Credential(
            "/",
            &[(
                "authorization",
                "BEARER\tsk-ant-oat01-PLACEHOLDER-of-box-a-0000000000",
            )],
        ),
        Passes,
    ),
    row("G7b", Credential("/", &[("authorization", "")]), Passes),
    // Names of headers that log somebody in.
    row(
        "G9",
        Credential("/", &[("cookie", "user_session=attacker")]),
        FOREIGN,
    ),
    row(
        "G9a",
        Credential("/", &[("cookie", "__cf_bm=1; user_session=attacker")]),
        FOREIGN,
    ),
    row(
        "G9b",
        Credential(
            "/",
            &[("cookie", "__cf_bm=1"), ("cookie", "user_session=attacker")],
        ),
        FOREIGN,
    ),
    row("G9c", Credential("/", &[("cookie", "attacker")]), FOREIGN),
    row(
        "G9d",
        Credential("/", &[("cookie", "__CF_BM=attacker")]),
        FOREIGN,
    ),
    row(
        "G9e",
        Credential("/", &[("cookie", "__cf_bm=1"), ("cookie", "_cfuvid=2")]),
        Passes,
    ),
    row("G9f", Credential("/", &[("api-key", "attacker")]), FOREIGN),
    row(
        "G9g",
        Credential("/", &[("x-goog-api-key", "attacker")]),
        FOREIGN,
    ),
    row(
        "G9h",
        Credential("/", &[("private-token", "attacker")]),
        FOREIGN,
    ),
    row(
        "G9i",
        Credential("/", &[("x-amz-security-token", "attacker")]),
        FOREIGN,
    ),
    row(
        "G9j",
        Credential("/", &[("x-github-token", "attacker")]),
        FOREIGN,
    ),
    row(
        "G9k",
        Credential("/", &[("job-token", "attacker")]),
        FOREIGN,
    ),
    row(
        "G9l",
        Credential("/", &[("x-auth-token", "attacker")]),
        FOREIGN,
    ),
    row(
        "G9m",
        Credential("/", &[("x_api_key", "attacker")]),
        FOREIGN,
    ),
    row(
        "G9n",
        Credential("/", &[("x-api_key", "attacker")]),
        FOREIGN,
    ),
    row(
        "G9o",
        Credential("/", &[("private_token", "attacker")]),
        FOREIGN,
    ),
    row("G9p", Credential("/", &[("x_trace_id", "1")]), Passes),
    row("G10", Credential("/v1/x?api_key=attacker", &[]), FOREIGN),
    row(
        "G10a",
        Credential("/?access_token=attacker", &[OWN_BEARER]),
        FOREIGN,
    ),
    row("G10b", Credential("/?key=attacker", &[]), FOREIGN),
    row("G10c", Credential("/?x=1&token=attacker", &[]), FOREIGN),
    row("G10d", Credential("/?%61pi_key=attacker", &[]), FOREIGN),
    row("G10e", Credential("/?API_KEY=attacker", &[]), FOREIGN),
    row("G10f", Credential("/?x=1;api_key=attacker", &[]), FOREIGN),
    row(
        "G10g",
        Credential("/?X-Amz-Signature=attacker", &[]),
        FOREIGN,
    ),
    row("G10h", Credential("/?page=2&sort=key", &[]), Passes),
    row("G10i", Credential("/?key=", &[]), Passes),
    // Elsewhere a placeholder is only a text, and is left as it is.
    row(
        "G12",
        Credential("/headers", &[("x-data", OWN), ("user-agent", OWN)]),
        Passes,
    ),
    row(
        "G12a",
        Credential("/?note=sk-ant-oat01-PLACEHOLDER-of-box-a-0000000000", &[]),
        Passes,
    ),
    row(
        "G12b",
        Credential("/sk-ant-oat01-PLACEHOLDER-of-box-a-0000000000", &[]),
        Passes,
    ),
    // Whose placeholder it is decides the box.
    row("G14", Credential("/", &[("x-api-key", OTHERS)]), OTHER_BOX),
    row(
        "G14a",
        Credential(
            "/",
            &[(
                "authorization",
                "Bearer sk-ant-oat01-PLACEHOLDER-of-box-b-0000000000",
            )],
        ),
        OTHER_BOX,
    ),
    row(
        "G14b",
        Credential("/?token=sk-ant-oat01-PLACEHOLDER-of-box-b-0000000000", &[]),
        OTHER_BOX,
    ),
    row(
        "G14c",
        Credential(
            "/",
            &[("cookie", "x=sk-ant-oat01-PLACEHOLDER-of-box-b-0000000000")],
        ),
        OTHER_BOX,
    ),
    row("G16", Credential("/", &[]), Passes),
    // Only over TLS.
    row(
        "G17",
        Proxy(b"GET http://cred.test/ HTTP/1.1\r\nHost: cred.test\r\n\r\n"),
        NOT_LISTED,
    ),
    row(
        "G17a",
        Proxy(b"CONNECT cred.test:80 HTTP/1.1\r\nHost: cred.test:80\r\n\r\n"),
        NOT_LISTED,
    ),
    row(
        "G17b",
        Proxy(b"CONNECT cred.test:8443 HTTP/1.1\r\nHost: cred.test:8443\r\n\r\n"),
        NOT_LISTED,
    ),
    // A pair in which one half is right.
    row(
        "G2e",
        Credential(
            "/",
            &[(
                "authorization",
                "Basic c2stYW50LW9hdDAxLVBMQUNFSE9MREVSLW9mLWJveC1hLTAwMDAwMDAwMDA6YXR0YWNrZXI=",
            )],
        ),
        FOREIGN,
    ),
    row(
        "G2f",
        Credential(
            "/",
            &[("authorization", "Basic YXR0YWNrZXI6eC1vYXV0aC1iYXNpYw==")],
        ),
        FOREIGN,
    ),
    row(
        "G2g",
        Credential(
            "/",
            &[(
                "authorization",
                "Basic eDpzay1hbnQtb2F0MDEtUExBQ0VIT0xERVItb2YtYm94LWItMDAwMDAwMDAwMA==",
            )],
        ),
        OTHER_BOX,
    ),
    row(
        "G2h",
        Credential(
            "/",
            &[(
                "authorization",
                "Basic c2stYW50LW9hdDAxLVBMQUNFSE9MREVSLW9mLWJveC1hLTAwMDAwMDAwMDA=",
            )],
        ),
        FOREIGN,
    ),
    row(
        "G3k",
        Credential(
            "/",
            &[(
                "authorization",
                "Bearer sk-ant-oat01-PLACEHOLDER-of-box-a-0000000000\tattacker",
            )],
        ),
        FOREIGN,
    ),
    row(
        "G3l",
        Credential(
            "/",
            &[(
                "authorization",
                "Bearer \"sk-ant-oat01-PLACEHOLDER-of-box-a-0000000000\"",
            )],
        ),
        FOREIGN,
    ),
    row(
        "G3m",
        Credential(
            "/",
            &[(
                "authorization",
                "Bearer Bearer sk-ant-oat01-PLACEHOLDER-of-box-a-0000000000",
            )],
        ),
        OTHER_BOX,
    ),
    row(
        "G3n",
        Credential(
            "/",
            &[(
                "authorization",
                "Token sk-ant-oat01-PLACEHOLDER-of-box-a-0000000000",
            )],
        ),
        Passes,
    ),
    row(
        "G3o",
        Credential("/", &[("authorization", "ApiKey attacker")]),
        FOREIGN,
    ),
    row(
        "G3p",
        Credential("/", &[("authorization", "Hawk id=\"x\"")]),
        FOREIGN,
    ),
    row(
        "G3q",
        Credential("/", &[("authorization", "DPoP attacker")]),
        FOREIGN,
    ),
    row(
        "G3r",
        Credential("/", &[("authorization", "GNAP attacker")]),
        FOREIGN,
    ),
    // More names of headers and parameters that log somebody in somewhere.
    row(
        "G9.0",
        Credential("/", &[("access-token", "attacker")]),
        FOREIGN,
    ),
    row(
        "G9.3",
        Credential("/", &[("x-oauth-token", "attacker")]),
        FOREIGN,
    ),
    row(
        "G9.7",
        Credential("/", &[("x-secret-key", "attacker")]),
        FOREIGN,
    ),
    row(
        "G9.11",
        Credential("/", &[("x-auth-email", "attacker")]),
        FOREIGN,
    ),
    row(
        "G9.18",
        Credential("/", &[("dd-application-key", "attacker")]),
        FOREIGN,
    ),
    row(
        "G9.26",
        Credential("/", &[("x-shopify-access-token", "attacker")]),
        FOREIGN,
    ),
    row("G10.0", Credential("/?api_token=attacker", &[]), FOREIGN),
    row("G10.5", Credential("/?access-token=attacker", &[]), FOREIGN),
    row("G10.8", Credential("/?credentials=attacker", &[]), FOREIGN),
    row("G10.14", Credential("/?secret=attacker", &[]), FOREIGN),
    row(
        "G10.19",
        Credential("/?awsaccesskeyid=attacker", &[]),
        FOREIGN,
    ),
    row("G10j", Credential("/?api%5fkey=attacker", &[]), FOREIGN),
    row("G10k", Credential("/?api_key=%61ttacker", &[]), FOREIGN),
    row("G10l", Credential("/?x&&api_key=attacker", &[]), FOREIGN),
    row(
        "G10m",
        Credential("/?api_key=&api_key=attacker", &[]),
        FOREIGN,
    ),
    row("G10n", Credential("/?+token=attacker", &[]), FOREIGN),
    row("G10o", Credential("/?token%5B%5D=attacker", &[]), FOREIGN),
    row("G10p", Credential("/?api_key[0]=attacker", &[]), FOREIGN),
    row("G10q", Credential("/?tokens=3&keys[]=a", &[]), Passes),
];

/// The credential's hosts are let through on port 443 alone.
const NOT_LISTED: Ends = Refused(403, Reason::NotListed);
