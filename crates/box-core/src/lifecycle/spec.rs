//! What an engine is told about a box: its row, and everything the host decides for every box.

use crate::agents;
use crate::boxes::BoxRecord;
use crate::host::Host;
use box_api::control::Profile;
use box_runtime::{BoxSpec, Mount, Nesting, PlacedFile};
use std::path::PathBuf;

/// Where the CA bundle lies in a box; other systems' places are links to it or do without.
const BUNDLE_IN_BOX: &str = "/etc/ssl/certs/ca-certificates.crt";
const CERTS_IN_BOX: &str = "/etc/ssl/certs";
/// Served by box-egress inside the box's network namespace.
const PROXY_IN_BOX: &str = "http://127.0.0.1:3128";
const PATH_IN_BOX: &str =
    "/opt/box/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Each names a bundle of every root a program trusts (reference/egress.md §3). Node adds its file
/// to roots of its own, so the bundle serves it as well.
const BUNDLE_VARIABLES: &[&str] = &[
    "SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "GIT_SSL_CAINFO",
    "CARGO_HTTP_CAINFO",
    "AWS_CA_BUNDLE",
    "DENO_CERT",
    "NIX_SSL_CERT_FILE",
    "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    "HTTPLIB2_CA_CERTS",
    "CODEX_CA_CERTIFICATE",
    "npm_config_cafile",
    "NODE_EXTRA_CA_CERTS",
];

/// For programs that honour a proxy; the others are caught on their way (design/egress.md).
const PROXY_VARIABLES: &[&str] = &[
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "GRPC_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "grpc_proxy",
];

/// Nothing but the box itself: an entry for private networks makes clients dial directly.
const NO_PROXY: &str = "localhost,127.0.0.1,::1";

/// What an engine makes and starts a box with.
pub fn spec_of(host: &Host, record: &BoxRecord) -> BoxSpec {
    BoxSpec {
        id: record.id,
        host_name: record.name.to_string(),
        image_digest: record.image_digest.clone(),
        profile: record.profile,
        limits: record.limits,
        id_offset: record.id_offset,
        mounts: pack_mounts(host),
        files: placed_files(host, record),
        env: environment(record.profile),
        nesting: if record.settings.nested {
            Nesting::Allowed
        } else {
            Nesting::Refused
        },
    }
}

/// Every installed pack, each at its own place.
fn pack_mounts(host: &Host) -> Vec<Mount> {
    let installed = agents::profiles().iter().filter_map(|profile| {
        let source = agents::installed(profile, &host.paths.data)?;
        Some(Mount {
            source,
            target: profile.mount_point(),
        })
    });
    installed.collect()
}

fn placed_files(host: &Host, record: &BoxRecord) -> Vec<PlacedFile> {
    let folder = host.paths.placed(&record.id);
    let file = |source: PathBuf, target: &str| PlacedFile {
        source,
        target: target.to_owned(),
    };
    vec![
        file(folder.join("resolv.conf"), "/etc/resolv.conf"),
        file(folder.join("hosts"), "/etc/hosts"),
        file(folder.join("hostname"), "/etc/hostname"),
        file(host.paths.bundle(), BUNDLE_IN_BOX),
    ]
}

/// What every process of a box starts with. Nothing here is a secret or differs between boxes of
/// one profile.
fn environment(profile: Profile) -> Vec<(String, String)> {
    let (user, home) = match profile {
        Profile::Locked => ("agent", "/home/agent"),
        Profile::Root => ("root", "/root"),
    };
    let plain = [
        ("USER", user),
        ("LOGNAME", user),
        ("HOME", home),
        ("PATH", PATH_IN_BOX),
        ("SHELL", "/bin/sh"),
        ("TERM", "xterm-256color"),
        ("LANG", "C.UTF-8"),
        ("LC_ALL", "C.UTF-8"),
        ("TMPDIR", "/tmp"),
        ("SSL_CERT_DIR", CERTS_IN_BOX),
        ("NODE_USE_ENV_PROXY", "1"),
        ("NODE_USE_SYSTEM_CA", "1"),
        ("UV_SYSTEM_CERTS", "1"),
        ("NO_PROXY", NO_PROXY),
        ("no_proxy", NO_PROXY),
    ];
    let bundles = BUNDLE_VARIABLES.iter().map(|name| (*name, BUNDLE_IN_BOX));
    let proxies = PROXY_VARIABLES.iter().map(|name| (*name, PROXY_IN_BOX));
    let all = plain.into_iter().chain(bundles).chain(proxies);
    all.map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}
