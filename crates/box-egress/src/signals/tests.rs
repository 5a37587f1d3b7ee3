//! What the detectors see, and the ordinary traffic they must not.

use super::*;
use std::time::Duration;

fn host(text: &str) -> HostName {
    HostName::parse(text).unwrap()
}

/// The signals that names raise, asked for one after the other, so long apart.
fn raised_by(names: &[String], apart: Duration) -> Vec<Seen> {
    let (signals, mut now) = (Signals::default(), Instant::now());
    let mut raised = Vec::new();
    for name in names {
        raised.extend(signals.name(&host(name), now));
        now += apart;
    }
    raised
}

/// Bytes nobody chose, the same in every run (xorshift).
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let step = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_be_bytes()[0]
    };
    (0..bytes).map(step).collect()
}

fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from_digit(half.into(), 16).unwrap();
    let digits = |byte: &u8| [digit(byte >> 4), digit(byte & 15)];
    bytes.iter().flat_map(digits).collect()
}

fn base32(bytes: &[u8]) -> String {
    let digits = b"abcdefghijklmnopqrstuvwxyz234567";
    let digit = |byte: &u8| char::from(digits[usize::from(*byte % 32)]);
    bytes.iter().map(digit).collect()
}

#[test]
fn data_in_names_is_seen_however_it_is_cut_up() {
    let key = noise(1024);
    let ways: [(&str, Vec<String>); 5] = [
        (
            "hex, 30 bytes a name",
            key.chunks(30)
                .map(|part| format!("{}.evil.test", hex(part)))
                .collect(),
        ),
        (
            "base32 with a number before it",
            key.chunks(40)
                .enumerate()
                .map(|(number, part)| format!("{number}.{}.t.evil.test", base32(part)))
                .collect(),
        ),
        (
            "four labels of the longest",
            noise(8192)
                .chunks(240)
                .map(|part| {
                    let labels: Vec<String> = part.chunks(60).map(base32).collect();
                    format!("{}.evil.test", labels.join("."))
                })
                .collect(),
        ),
        (
            "two bytes a name",
            key.chunks(2)
                .enumerate()
                .map(|(number, part)| format!("{}{number}.evil.test", hex(part)))
                .collect(),
        ),
        (
            "words",
            (0..200)
                .map(|number| format!("able-horse-window-seven-{number}.evil.test"))
                .collect(),
        ),
    ];
    for (way, names) in ways {
        let raised = raised_by(&names, Duration::from_millis(100));
        assert_eq!(raised.len(), 1, "{way}: once, and not at each name");
        assert_eq!(raised[0].kind, SignalKind::DataInNames, "{way}");
        assert_eq!(raised[0].host, "evil.test", "{way}");
    }
}

/// What installs, clones and agents ask for, each many times over.
const ORDINARY: [&str; 44] = [
    "registry.npmjs.org",
    "registry.yarnpkg.com",
    "pypi.org",
    "files.pythonhosted.org",
    "index.crates.io",
    "static.crates.io",
    "proxy.golang.org",
    "sum.golang.org",
    "storage.googleapis.com",
    "deb.debian.org",
    "security.debian.org",
    "archive.ubuntu.com",
    "de.archive.ubuntu.com",
    "ports.ubuntu.com",
    "github.com",
    "api.github.com",
    "codeload.github.com",
    "objects.githubusercontent.com",
    "raw.githubusercontent.com",
    "release-assets.githubusercontent.com",
    "pkg-containers.githubusercontent.com",
    "productionresultssa16.blob.core.windows.net",
    "production.cloudflare.docker.com",
    "docker-images-prod.6aa30f8b08e16409b46e0173d6de2f56.r2.cloudflarestorage.com",
    "auth.docker.io",
    "registry-1.docker.io",
    "d111111abcdef8.cloudfront.net",
    "d2lz7b1q3v5k9m.cloudfront.net",
    "prod-us-east-1-starport-layer-bucket.s3.us-east-1.amazonaws.com",
    "a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d6-1234567890.eu-west-1.elb.amazonaws.com",
    "ec2-52-23-194-42.compute-1.amazonaws.com",
    "r3---sn-4g5ednsd.googlevideo.com",
    "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi.ipfs.dweb.link",
    "cas-bridge.xethub.hf.co",
    "cdn-lfs-us-1.hf.co",
    "3f2b8c1e-4d5a-4f6b-9c7d-8e9f0a1b2c3d.preview.example.com",
    "api.anthropic.com",
    "console.anthropic.com",
    "statsig.anthropic.com",
    "api.openai.com",
    "auth.openai.com",
    "chatgpt.com",
    "o1158394.ingest.us.sentry.io",
    "http-intake.logs.us5.datadoghq.com",
];

#[test]
fn ordinary_traffic_raises_nothing() {
    let mut names: Vec<String> = Vec::new();
    for _ in 0..500 {
        names.extend(ORDINARY.map(str::to_owned));
    }
    assert_eq!(raised_by(&names, Duration::from_millis(1)), []);
    // A page of a large site, a mirror with many hosts, a store with a bucket for each project.
    let crowds: [(&str, usize); 4] = [
        ("img{n}.static.example.com", 60),
        ("mirror-{n}.debian.example.org", 120),
        ("project-{n}-artifacts.s3.amazonaws.com", 80),
        ("team{n}.gitlab.example.com", 100),
    ];
    for (form, count) in crowds {
        let names: Vec<String> = (0..count)
            .map(|number| form.replace("{n}", &number.to_string()))
            .collect();
        assert_eq!(raised_by(&names, Duration::from_millis(20)), [], "{form}");
    }
}

#[test]
fn names_by_hashes_are_ordinary_over_a_day() {
    // A new preview every ten minutes.
    let names: Vec<String> = noise(16 * 144)
        .chunks(16)
        .map(|part| format!("{}.preview.example.com", hex(part)))
        .collect();
    assert_eq!(raised_by(&names, Duration::from_mins(10)), []);
}

#[test]
fn trying_many_doors_is_seen_once_and_ordinary_refusals_are_not() {
    let now = Instant::now();
    let scan = Signals::default();
    let raised: Vec<Seen> = (0..1000)
        .filter_map(|number| {
            scan.refused(
                &format!("10.0.{}.{}", number / 256, number % 256),
                Reason::IpLiteral,
                now,
            )
        })
        .collect();
    assert_eq!(raised.len(), 1, "{raised:?}");
    assert_eq!(raised[0].kind, SignalKind::ManyRefused);

    let ordinary = Signals::default();
    // One host again and again, a page with forty third parties, and upstreams that are down.
    for _ in 0..10_000 {
        assert_eq!(
            ordinary.refused("telemetry.example.com", Reason::NotListed, now),
            None
        );
    }
    for number in 0..40 {
        let host = format!("ads{number}.example.com");
        assert_eq!(ordinary.refused(&host, Reason::NotListed, now), None);
    }
    for number in 0..500 {
        let host = format!("down{number}.example.com");
        assert_eq!(ordinary.refused(&host, Reason::Dns, now), None);
    }
    // The same forty a minute later, and a minute later again.
    for minute in 1..20 {
        let later = now + Duration::from_secs(61 * minute);
        for number in 0..40 {
            let host = format!("ads{minute}-{number}.example.com");
            assert_eq!(ordinary.refused(&host, Reason::NotListed, later), None);
        }
    }
}
