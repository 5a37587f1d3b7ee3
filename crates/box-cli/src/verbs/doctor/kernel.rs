//! The kernel: its version, whose ids boxes have, and all that is tried.

use super::attempt::{self, Answer};
use super::finding::{Finding, Level};
use box_runtime_native::attempts::{Attempt, Seen};
use box_runtime_native::rootless::{self, Outlook};
use box_server::paths::Paths;
use rustix::io::Errno;
use std::path::Path;

/// Overlays over idmapped layers came with Linux 5.19 (`mount_setattr(2)`).
const KERNEL_MIN: (u32, u32) = (5, 19);

pub(super) fn look(paths: &Paths) -> Vec<Finding> {
    let mut findings = vec![version_found(), ids()];
    let tried = [
        namespaces(&attempt::ask(Attempt::Namespaces)),
        filter(&attempt::ask(Attempt::Filter)),
        mounts(&attempt::ask(Attempt::Mounts), paths),
        overlay(&attempt::ask(Attempt::Overlay), paths),
        ports(&attempt::ask(Attempt::Ports)),
        landlock(&attempt::ask(Attempt::Landlock)),
    ];
    let [namespaces, others @ ..] = tried;
    if namespaces.level == Level::Good {
        findings.push(namespaces);
        findings.push(proc(&attempt::ask(Attempt::Proc)));
        findings.extend(others);
    } else {
        // The rest could only say the same.
        findings.push(namespaces);
    }
    findings
}

fn version_found() -> Finding {
    let system = rustix::system::uname();
    let release = system.release().to_string_lossy().into_owned();
    let machine = system.machine().to_string_lossy().into_owned();
    judge_version(&release, &machine)
}

fn judge_version(release: &str, machine: &str) -> Finding {
    let what = format!("Linux {release}, {machine}");
    let (major, minor) = KERNEL_MIN;
    if machine != "x86_64" {
        return Finding::new("kernel", Level::Bad, what)
            .because(format!("boxes run on x86_64 for now, not on {machine}"))
            .mended_by("use a machine with an x86-64 processor");
    }
    if version(release) < Some(KERNEL_MIN) {
        return Finding::new("kernel", Level::Bad, what)
            .because(format!("boxes need Linux {major}.{minor} or newer"))
            .mended_by("upgrade the kernel (a newer release of the distribution brings one)");
    }
    Finding::good("kernel", what)
}

fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Whose ids boxes have: their own, the user's subordinate ones, or the user's one.
fn ids() -> Finding {
    match rootless::outlook() {
        Outlook::Root => Finding::good("ids", "root: each box has ids of its own"),
        Outlook::Ranges => {
            Finding::good("ids", "an ordinary user: boxes share its subordinate ids")
        }
        Outlook::NoRange => Finding::new(
            "ids",
            Level::Less,
            "an ordinary user without subordinate ids: boxes have one id",
        )
        .mended_by("`sudo usermod --add-subuids 200000-265535 --add-subgids 200000-265535 $USER`"),
        Outlook::NoHelpers => Finding::new("ids", Level::Less, "no newuidmap: boxes have one id")
            .mended_by("`sudo apt-get install uidmap`"),
    }
}

fn namespaces(answer: &Answer) -> Finding {
    const NAME: &str = "namespaces";
    let Answer::Refused { why, .. } = answer else {
        return Finding::good(NAME, "a box's namespaces can be made");
    };
    let finding = Finding::new(NAME, Level::Bad, "a box's namespaces cannot be made");
    if let Some(found) = rootless::forbidden() {
        return finding.because(found.why).mended_by(found.fix);
    }
    if answer.is(Errno::NOSPC) {
        return finding
            .because("the machine's number of user namespaces is used up")
            .mended_by("`sudo sysctl user.max_user_namespaces=100000`");
    }
    if let Some(container) = container() {
        return finding
            .because(format!("{why}; this is a container of {container}"))
            .mended_by(
                "start it with `--privileged`, or with `--security-opt seccomp=unconfined \
                 --security-opt apparmor=unconfined --cap-add SYS_ADMIN`",
            );
    }
    finding
        .because(why.clone())
        .mended_by("use a kernel built with CONFIG_USER_NS, CONFIG_NET_NS and CONFIG_TIME_NS")
}

fn proc(answer: &Answer) -> Finding {
    const NAME: &str = "proc";
    match answer {
        Answer::Seen(_) => Finding::good(NAME, "a box's own /proc can be mounted"),
        Answer::Refused { why, .. } => {
            Finding::new(NAME, Level::Bad, "a box's own /proc cannot be mounted")
                .because(format!("{why}; parts of this machine's /proc are covered"))
                .mended_by(
                    "in a container: start it with `--security-opt systempaths=unconfined` \
                     (docker) or `--security-opt unmask=ALL` (podman)",
                )
        }
    }
}

fn filter(answer: &Answer) -> Finding {
    const NAME: &str = "filter";
    match answer {
        Answer::Seen(_) => Finding::good(NAME, "the filter of system calls can be loaded"),
        Answer::Refused { why, .. } => Finding::new(
            NAME,
            Level::Bad,
            "the filter of system calls cannot be loaded",
        )
        .because(why.clone())
        .mended_by("use a kernel built with CONFIG_SECCOMP_FILTER"),
    }
}

fn mounts(answer: &Answer, paths: &Paths) -> Finding {
    const NAME: &str = "mounts";
    match answer {
        Answer::Seen(Seen::NotNeeded) => {
            Finding::good(NAME, "files are shown to boxes with the ids they have")
        }
        Answer::Seen(_) => Finding::good(NAME, "files can be shown to each box with its own ids"),
        Answer::Refused { why, .. } => Finding::new(
            NAME,
            Level::Bad,
            format!(
                "files in `{}` cannot be shown with other ids (idmapped mounts)",
                paths.data.display()
            ),
        )
        .because(why.clone())
        .mended_by("give boxes a folder on ext4, XFS, btrfs or tmpfs with `BOX_DATA_DIR`"),
    }
}

fn overlay(answer: &Answer, paths: &Paths) -> Finding {
    const NAME: &str = "overlay";
    match answer {
        Answer::Seen(_) => Finding::good(NAME, "a box can have a writable root (overlay)"),
        Answer::Refused { why, .. } => Finding::new(
            NAME,
            Level::Less,
            format!(
                "no overlay in `{}`: profile `root` does not work, `locked` does",
                paths.data.display()
            ),
        )
        .because(why.clone())
        .mended_by(
            "`sudo modprobe overlay`, or a folder on ext4, XFS or btrfs with `BOX_DATA_DIR`",
        ),
    }
}

fn ports(answer: &Answer) -> Finding {
    const NAME: &str = "ports";
    match answer {
        Answer::Seen(Seen::TwoPorts) => Finding::new(
            NAME,
            Level::Less,
            "only ports 80 and 443 of a box are caught without a proxy setting",
        )
        .because("the kernel has no nft tproxy")
        .mended_by("`sudo modprobe nft_tproxy`"),
        Answer::Seen(_) => Finding::good(NAME, "every port of a box is caught (nft tproxy)"),
        Answer::Refused { why, .. } => {
            Finding::new(NAME, Level::Bad, "a box's network cannot be set up")
                .because(why.clone())
                .mended_by("use a kernel built with CONFIG_NET_NS and CONFIG_INET")
        }
    }
}

fn landlock(answer: &Answer) -> Finding {
    const NAME: &str = "landlock";
    match answer {
        Answer::Seen(_) => Finding::good(NAME, "box-egress gives up all files (Landlock)"),
        Answer::Refused { why, .. } => Finding::new(
            NAME,
            Level::Less,
            "no Landlock: box-egress is held by its user and its filter alone",
        )
        .because(why.clone())
        .mended_by("add `landlock` to the kernel's `lsm=` list, see `/sys/kernel/security/lsm`"),
    }
}

/// What kind of container this is, as far as they tell.
fn container() -> Option<&'static str> {
    let marks = [
        ("/.dockerenv", "docker"),
        ("/run/.containerenv", "podman"),
        ("/run/systemd/container", "systemd-nspawn or LXC"),
    ];
    let mark = marks.iter().find(|(file, _)| Path::new(file).exists());
    mark.map(|(_, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(errno: Errno) -> Answer {
        Answer::Refused {
            errno: Some(errno.raw_os_error()),
            why: errno.to_string(),
        }
    }

    #[test]
    fn kernel_versions_are_compared_as_numbers() {
        assert_eq!(version("6.18.44-fc-v669"), Some((6, 18)));
        assert_eq!(version("5.4.0-100-generic"), Some((5, 4)));
        assert_eq!(version("unknown"), None);
        let level = |release, machine| judge_version(release, machine).level;
        assert_eq!(level("5.4.0", "x86_64"), Level::Bad);
        assert_eq!(level("10.0", "x86_64"), Level::Good);
        assert_eq!(level("10.0", "riscv64"), Level::Bad);
    }

    #[test]
    fn whatever_is_refused_says_why_and_what_mends_it() {
        let paths = Paths::system();
        let no = refused(Errno::PERM);
        let findings = [
            namespaces(&no),
            namespaces(&refused(Errno::NOSPC)),
            proc(&no),
            filter(&no),
            mounts(&no, &paths),
            overlay(&no, &paths),
            ports(&no),
            ports(&Answer::Seen(Seen::TwoPorts)),
            landlock(&no),
        ];
        for finding in findings {
            assert!(
                finding.cause.is_some() && finding.fix.is_some(),
                "{finding:?}"
            );
            assert_ne!(finding.level, Level::Good, "{finding:?}");
        }
        assert!(mounts(&no, &paths).what.contains("/var/lib/box"));
        assert_eq!(
            mounts(&Answer::Seen(Seen::NotNeeded), &paths).level,
            Level::Good
        );
    }
}
