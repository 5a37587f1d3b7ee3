//! `cargo xtask security --checkers`: programs nobody here wrote look at a box from inside.
//!
//! They come from Debian's archive, in an image of their own, and run in boxes of a host of its own, in a
//! network that leads nowhere. What each printed is kept below the target folder; what it means is
//! explained in SECURITY.md, finding by finding, by people.

use crate::run::{self, command, finish};
use crate::test::{self, Build, clients};
use anyhow::Result;
use std::fs;

const PACKAGES: &[&str] = &[
    "ca-certificates",
    "chkrootkit",
    "libcap2-bin",
    "lynis",
    "procenv",
    "procps",
    "stress-ng",
    "unhide",
    "virt-what",
];

/// Kinds of boxes: a name and the options of `box new`.
const KINDS: [(&str, &[&str]); 3] = [
    ("locked", &["--profile", "locked"]),
    ("root", &["--profile", "root"]),
    ("nested", &["--profile", "root", "--nested"]),
];

/// A name, and what is run. Whatever code it ends with: what it found is in its words.
const CHECKERS: [(&str, &str); 7] = [
    ("capsh", "capsh --print; capsh --current"),
    (
        "procenv",
        "procenv --file=/tmp/procenv >/dev/null 2>&1; cat /tmp/procenv",
    ),
    ("virt-what", "virt-what; systemd-detect-virt"),
    (
        "lynis",
        "cd /tmp && lynis audit system --quick --no-colors --no-log --report-file /tmp/report; cat /tmp/report",
    ),
    ("chkrootkit", "chkrootkit -q"),
    ("unhide", "unhide-linux -m sys proc"),
    // Calls with bad arguments and bad addresses, and all that wants privileges. A box it could break
    // does not answer afterwards.
    (
        "stress-ng",
        "cd /tmp && stress-ng --seq 1 --timeout 1 --oom-avoid --with \
         apparmor,bad-altstack,bad-ioctl,bind-mount,binderfs,cap,chroot,clone,dev,dev-shm,efivar,\
         fanotify,handle,kcmp,key,klog,landlock,loop,memfd,mknod,module,netlink-proc,netlink-task,\
         opcode,personality,priv-instr,procfs,ptrace,quota,rawpkt,rawsock,rawudp,reboot,rtc,seccomp,\
         softlockup,swap,sysbadaddr,sysfs,sysinval,tun,umount,unshare,userfaultfd,watchdog \
         2>&1",
    ),
];

pub(crate) fn run() -> Result<()> {
    test::install(clients::NEEDS)?;
    test::make_seed(Build::Debug)?;
    let program = Build::Debug.product()?;
    let folder = run::top().join("target/checkers");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("config.toml"), "[page]\nlisten = \"off\"\n")?;
    let tar = folder.join("root.tar");
    if !tar.exists() {
        clients::root_tar(&tar, PACKAGES)?;
    }
    // In a process namespace of its own, so that host and way out end with it.
    let words = [
        "--net",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "--",
    ];
    let mut checks = command("unshare", &words);
    checks.args(["sh", "-e", "-c", &script()]);
    checks
        .env("BOX", program)
        .env("OUT", &folder)
        .env("TAR", tar)
        .env("HOME", &folder)
        .env("BOX_DATA_DIR", folder.join("data"))
        .env("BOX_RUN_DIR", folder.join("run"))
        .env("BOX_CONFIG", folder.join("config.toml"));
    finish(checks)?;
    println!("what they said is in `{}`", folder.display());
    Ok(())
}

/// A box of each kind, and every checker in it. At the end each box still has to work.
fn script() -> String {
    let mut lines = Vec::new();
    for (kind, options) in KINDS {
        let options = options.join(" ");
        lines.push(format!(
            r#""$BOX" new {kind} --image "file:$TAR" --net locked {options}"#
        ));
        for (name, checker) in CHECKERS {
            lines.push(format!(
                r#"code=0; "$BOX" exec {kind} -- sh -c '{checker}' >"$OUT/{kind}-{name}.txt" 2>&1 || code=$?"#
            ));
            lines.push(format!("echo {kind}: {name} ended with $code"));
        }
        lines.push(format!(r#""$BOX" exec {kind} -- true"#));
    }
    lines.push(r#""$BOX" rm all --force --now; "$BOX" serve --stop"#.to_owned());
    lines.join("\n")
}
