//! What an engine is told about a box: its row, and everything the host decides for every box.

use crate::agents;
use crate::boxes::BoxRecord;
use crate::host::Host;
use box_api::control::Profile;
use box_runtime::{BoxSpec, Mount, Nesting, PlacedFile, Placing};
use std::path::PathBuf;

/// Where every box has the bundle of what it trusts; an image without one gets it there.
const BUNDLE_IN_BOX: &str = "/etc/ssl/certs/ca-certificates.crt";
/// Where images of other systems have theirs (Fedora and its kin, SUSE, Arch, Alpine); links lead to
/// one of these.
const OTHER_BUNDLES: &[&str] = &[
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/tls/cert.pem",
    "/var/lib/ca-certificates/ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ca-certificates/extracted/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
];
/// What the tools of these systems make a bundle from: a box that runs them keeps its way out.
const DEBIAN_ANCHOR: &str = "/usr/local/share/ca-certificates/boxes.crt";
const ANCHORS: &[&str] = &[
    "/etc/pki/ca-trust/source/anchors/boxes.pem",
    "/etc/pki/trust/anchors/boxes.pem",
    "/etc/ca-certificates/trust-source/anchors/boxes.crt",
];
const ADDED_IN_BOX: &str = "/opt/box/trust/added.pem";
const JAVA_IN_BOX: &str = "/opt/box/trust/java.jks";
const GIT_CONFIG_IN_BOX: &str = "/opt/box/gitconfig";
/// Below the home: what Chromium and its kin add to roots of their own.
const NSS_IN_HOME: &str = ".pki/nssdb/cert9.db";
const CERTS_IN_BOX: &str = "/etc/ssl/certs";
/// Served by box-egress inside the box's network namespace.
const PROXY_IN_BOX: &str = "http://127.0.0.1:3128";
const PATH_IN_BOX: &str =
    "/opt/box/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Each names a bundle of every root a program trusts, for programs that do not look where the
/// system has its own (docs/clients.md).
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
    "HEX_CACERTS_PATH",
    "JULIA_SSL_CA_ROOTS_PATH",
    "YARN_HTTPS_CA_FILE_PATH",
    "npm_config_cafile",
];

/// For every Java machine. Java reads neither the system's roots nor a proxy from the environment.
const JAVA_OPTIONS: &str = "-Djavax.net.ssl.trustStore=/opt/box/trust/java.jks \
    -Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=3128 \
    -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=3128 \
    -Dhttp.nonProxyHosts=localhost|127.*|[::1]";

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

/// A box that holds containers has no cgroups to show them, which podman takes for an old kernel.
const NO_CGROUPS_HERE: (&str, &str) = ("PODMAN_IGNORE_CGROUPSV1_WARNING", "1");

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
        env: environment(record),
        nesting: if record.settings.nested {
            Nesting::Allowed
        } else {
            Nesting::Refused
        },
    }
}

/// Every installed pack, each at its own place.
fn pack_mounts(host: &Host) -> Vec<Mount> {
    let installed = agents::profiles().filter_map(|profile| {
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
    let file = |source: PathBuf, target: &str, placing| PlacedFile {
        source,
        target: target.to_owned(),
        placing,
    };
    let (always, paths) = (Placing::Always, &host.paths);
    let mut files = vec![
        file(folder.join("resolv.conf"), "/etc/resolv.conf", always),
        file(folder.join("hosts"), "/etc/hosts", always),
        file(folder.join("hostname"), "/etc/hostname", always),
        file(paths.added_roots(), ADDED_IN_BOX, always),
        file(paths.java_roots(), JAVA_IN_BOX, always),
        file(paths.git_config(), GIT_CONFIG_IN_BOX, always),
    ];
    let (_, home) = user(record.profile);
    let nss = format!("{home}/{NSS_IN_HOME}");
    files.push(file(paths.nss_roots(), &nss, Placing::Copied));
    let bundles = [BUNDLE_IN_BOX].iter().chain(OTHER_BUNDLES);
    files.extend(bundles.map(|place| file(paths.bundle(), place, Placing::Trusted)));
    // Debian makes the folder of its own only with the package that would read it.
    if record.profile == Profile::Root {
        files.push(file(paths.added_roots(), DEBIAN_ANCHOR, always));
    }
    let anchors = ANCHORS.iter();
    files.extend(anchors.map(|place| file(paths.added_roots(), place, Placing::WhereThere)));
    files
}

/// Whose name and home a box's programs have.
fn user(profile: Profile) -> (&'static str, &'static str) {
    match profile {
        Profile::Locked => ("agent", "/home/agent"),
        Profile::Root => ("root", "/root"),
    }
}

/// What every process of a box starts with. Nothing here is a secret or differs between boxes of
/// one profile and the same setting of `nested`.
fn environment(record: &BoxRecord) -> Vec<(String, String)> {
    let (user, home) = user(record.profile);
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
        ("NODE_EXTRA_CA_CERTS", ADDED_IN_BOX),
        ("JAVA_TOOL_OPTIONS", JAVA_OPTIONS),
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "include.path"),
        ("GIT_CONFIG_VALUE_0", GIT_CONFIG_IN_BOX),
        ("NO_PROXY", NO_PROXY),
        ("no_proxy", NO_PROXY),
    ];
    let bundles = BUNDLE_VARIABLES.iter().map(|name| (*name, BUNDLE_IN_BOX));
    let proxies = PROXY_VARIABLES.iter().map(|name| (*name, PROXY_IN_BOX));
    let nested = record.settings.nested.then_some(NO_CGROUPS_HERE);
    let all = plain
        .into_iter()
        .chain(bundles)
        .chain(proxies)
        .chain(nested);
    all.map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}
