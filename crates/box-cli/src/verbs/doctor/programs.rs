//! Programs and files of the distribution, and the clock.

use super::finding::{Finding, Level, Package};
use box_server::paths::Paths;
use std::path::Path;

const MMDEBSTRAP: Package = Package {
    name: "mmdebstrap",
    purpose: "makes the default image",
};
/// Where distributions keep the certificates of authorities.
const BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];
/// 2026-01-01: no build is older.
const EARLIEST_S: i64 = 1_767_225_600;

pub(super) fn look(paths: &Paths) -> Vec<Finding> {
    let mut findings = vec![image(paths), certificates(), resolver(paths), clock()];
    findings.extend(other_engines());
    findings
}

/// Whether a program of this name can be called.
pub(crate) fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn image(paths: &Paths) -> Finding {
    const NAME: &str = "image";
    let images = std::fs::read_dir(paths.data.join("images")).into_iter();
    let made = images.flatten().flatten();
    let has_some = made
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .any(|entry| entry.file_name() != "refs");
    if on_path(MMDEBSTRAP.name) {
        Finding::good(NAME, MMDEBSTRAP.name)
    } else if has_some {
        Finding::new(
            NAME,
            Level::Note,
            "mmdebstrap is missing, and there are images without it",
        )
        .mended_by(format!("`sudo apt-get install {}`", MMDEBSTRAP.name))
    } else {
        Finding::missing(NAME, MMDEBSTRAP)
    }
}

fn certificates() -> Finding {
    const NAME: &str = "certificates";
    let found = BUNDLES.iter().find(|bundle| Path::new(bundle).is_file());
    match found {
        Some(bundle) => Finding::good(NAME, format!("servers are judged by `{bundle}`")),
        None => Finding::new(
            NAME,
            Level::Less,
            "no certificates: hosts of a credential cannot be reached",
        )
        .because(format!("none of `{}` is there", BUNDLES.join("`, `")))
        .mended_by("`sudo apt-get install ca-certificates`"),
    }
}

fn resolver(paths: &Paths) -> Finding {
    const NAME: &str = "names";
    let text = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    match first_resolver(&text) {
        Some(server) => Finding::good(NAME, format!("names are asked of {server}")),
        None => Finding::new(
            NAME,
            Level::Less,
            "no name server: boxes reach nothing by name",
        )
        .because("`/etc/resolv.conf` names none")
        .mended_by(format!(
            "name one there, or in `{}`: `[egress]` `resolvers = [\"9.9.9.9\"]`",
            paths.config.display()
        )),
    }
}

/// resolv.conf(5)
fn first_resolver(text: &str) -> Option<&str> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next()? == "nameserver").then(|| words.next())?
    })
}

/// Certificates are judged by the clock.
fn clock() -> Finding {
    judge_clock(crate::age::now_ms() / 1000)
}

fn judge_clock(now_s: i64) -> Finding {
    const NAME: &str = "clock";
    if now_s < EARLIEST_S {
        let years = 1970 + now_s / 31_556_952;
        return Finding::new(NAME, Level::Less, format!("the clock says it is {years}"))
            .because("no certificate is valid then")
            .mended_by("`sudo timedatectl set-ntp true`, or `sudo date --set=…`");
    }
    Finding::good(NAME, "the clock goes")
}

/// What else runs machines here; nothing of ours needs it.
fn other_engines() -> Option<Finding> {
    let there: Vec<&str> = ["docker", "podman", "incus"]
        .into_iter()
        .filter(|program| on_path(program))
        .collect();
    (!there.is_empty()).then(|| {
        Finding::new(
            "engines",
            Level::Note,
            format!("also here, and not needed: {}", there.join(", ")),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_there_is_found() {
        assert!(on_path("sh"));
        assert!(!on_path("box-no-such-program"));
    }

    #[test]
    fn the_first_name_server_is_the_one_told() {
        let text = "# nameserver 1.1.1.1\nsearch a\nnameserver 192.0.2.53\nnameserver ::1\n";
        assert_eq!(first_resolver(text), Some("192.0.2.53"));
        assert_eq!(first_resolver("options ndots:1\nnameserver\n"), None);
    }

    #[test]
    fn a_clock_before_the_first_build_is_told_with_its_year() {
        let finding = judge_clock(0);
        assert_eq!(
            (finding.level, finding.what.as_str()),
            (Level::Less, "the clock says it is 1970")
        );
        assert_eq!(judge_clock(EARLIEST_S).level, Level::Good);
    }
}
