//! What a box needs of this machine, looked at one by one.

use crate::complaint::Complaint;
use std::path::{Path, PathBuf};

/// Overlays over idmapped layers came with Linux 5.19 (`mount_setattr(2)`).
const KERNEL_MIN: (u32, u32) = (5, 19);
/// A package of the distribution that provides a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Package {
    pub(super) name: &'static str,
    pub(super) purpose: &'static str,
}

const MMDEBSTRAP: Package = Package {
    name: "mmdebstrap",
    purpose: "makes the default image",
};

/// What was looked at, and what was seen.
#[derive(Debug)]
pub(super) struct Check {
    pub(super) what: String,
    pub(super) verdict: Verdict,
}

#[derive(Debug)]
pub(super) enum Verdict {
    Fine,
    /// It works, with less.
    Less,
    Bad(Complaint),
    Missing(Package),
}

/// Everything, in the order a person is told.
pub(super) fn all() -> impl Iterator<Item = Check> {
    let checks: [fn() -> Check; 6] = [kernel, root, user_namespaces, limits, ports, image_maker];
    checks.into_iter().map(|check| check())
}

fn kernel() -> Check {
    let system = rustix::system::uname();
    let release = system.release().to_string_lossy().into_owned();
    let machine = system.machine().to_string_lossy().into_owned();
    let verdict = if machine != "x86_64" {
        Verdict::Bad(Complaint::engine(
            "machine",
            format!("boxes run on x86_64 for now, not on {machine}"),
        ))
    } else if version(&release) < Some(KERNEL_MIN) {
        let (major, minor) = KERNEL_MIN;
        let title = format!("boxes need Linux {major}.{minor} or newer, this is {release}");
        Verdict::Bad(
            Complaint::engine("kernel", title).hinted("upgrade the kernel, then `box up` again"),
        )
    } else {
        Verdict::Fine
    };
    Check {
        what: format!("Linux {release}, {machine}"),
        verdict,
    }
}

fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn root() -> Check {
    let uid = rustix::process::geteuid();
    let verdict = if uid.is_root() {
        Verdict::Fine
    } else {
        Verdict::Bad(
            Complaint::engine(
                "not-root",
                format!(
                    "boxes need root on this machine for now, you are user {}",
                    uid.as_raw()
                ),
            )
            .hinted("`sudo box up`"),
        )
    };
    Check {
        what: "root".to_owned(),
        verdict,
    }
}

/// `user_namespaces(7)`
fn user_namespaces() -> Check {
    let most = number(Path::new("/proc/sys/user/max_user_namespaces"));
    let verdict = match most {
        Some(0) => Verdict::Bad(
            Complaint::engine("no-userns", "this machine allows no user namespaces")
                .caused_by("`user.max_user_namespaces` is 0")
                .hinted("`sysctl user.max_user_namespaces=10000`"),
        ),
        Some(_) => Verdict::Fine,
        None => Verdict::Bad(
            Complaint::engine("no-userns", "this kernel has no user namespaces")
                .hinted("use a kernel built with CONFIG_USER_NS"),
        ),
    };
    Check {
        what: "user namespaces".to_owned(),
        verdict,
    }
}

/// cgroups(7): version 2 where it has controllers, else version 1.
fn limits() -> Check {
    let unified = Path::new("/sys/fs/cgroup/cgroup.controllers");
    let modern = std::fs::read_to_string(unified).is_ok_and(|list| list.contains("memory"));
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let held = |controller: &str| {
        mounts
            .lines()
            .filter(|line| line.contains(" - cgroup "))
            .any(|line| {
                line.rsplit(' ')
                    .next()
                    .is_some_and(|options| options.split(',').any(|one| one == controller))
            })
    };
    let (what, verdict) = if modern {
        ("limits by cgroup v2", Verdict::Fine)
    } else if held("memory") && held("pids") {
        ("limits by cgroup v1", Verdict::Fine)
    } else {
        ("no cgroups: limits are best effort", Verdict::Less)
    };
    Check {
        what: what.to_owned(),
        verdict,
    }
}

/// Whether the kernel can send every port of a box to one listener.
fn ports() -> Check {
    let (what, verdict) = if kernel_has("nft_tproxy") {
        ("every port of a box is caught (nft tproxy)", Verdict::Fine)
    } else {
        (
            "no nft tproxy: only ports 80 and 443 of a box are caught",
            Verdict::Less,
        )
    };
    Check {
        what: what.to_owned(),
        verdict,
    }
}

/// Built in or loaded (its functions are in the symbol table), or a module to be loaded.
fn kernel_has(module: &str) -> bool {
    let symbols = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let release = rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned();
    let modules = PathBuf::from("/lib/modules")
        .join(release)
        .join("modules.dep");
    let file = format!("/{module}.ko");
    symbols.contains(module)
        || std::fs::read_to_string(modules).is_ok_and(|list| list.contains(&file))
}

fn image_maker() -> Check {
    let verdict = if on_path(MMDEBSTRAP.name) {
        Verdict::Fine
    } else {
        Verdict::Missing(MMDEBSTRAP)
    };
    let what = match verdict {
        Verdict::Missing(package) => format!("{} is missing: it {}", package.name, package.purpose),
        Verdict::Fine | Verdict::Less | Verdict::Bad(_) => MMDEBSTRAP.name.to_owned(),
    };
    Check { what, verdict }
}

/// Whether a program of this name can be called.
pub(super) fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn number(path: &Path) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_versions_are_compared_as_numbers() {
        assert_eq!(version("6.18.44-fc-v669"), Some((6, 18)));
        assert_eq!(version("5.4.0-100-generic"), Some((5, 4)));
        assert!(version("5.4.0") < Some(KERNEL_MIN));
        assert!(version("10.0") > Some(KERNEL_MIN));
        assert_eq!(version("unknown"), None);
    }

    #[test]
    fn a_program_that_is_there_is_found() {
        assert!(on_path("sh"));
        assert!(!on_path("box-no-such-program"));
    }
}
