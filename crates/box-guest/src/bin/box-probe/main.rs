//! box-probe: tries one thing the kernel may refuse, and says what came of it. For the drill only.
//!
//! `box-probe <name> [arguments]` prints one line of JSON and ends with 0 whatever the outcome:
//! `{"probe":"open","result":"refused","errno":"EACCES","detail":null}`.
//! `box-probe --list` prints every probe with its arguments. A wrong call ends with 2.
//! For benches: `box-probe now` prints the monotonic clock in nanoseconds as its first act, and
//! `box-probe wait` does nothing until it is ended. `box-probe within <kinds> <program> [arguments]` runs
//! a program in a container.
//!
//! | Result | Meaning |
//! | --- | --- |
//! | `ok` | the call succeeded |
//! | `refused` | it did not; `errno` is the error's name, or the name of the signal that ended the attempt |
//! | `n/a` | it could not be tried here; `detail` says why |
//!
//! A probe that succeeds undoes what it did where that is possible, and none does lasting harm to
//! a machine it succeeds on. What an outcome means is the drill's to say: `ENOENT` of a probe that
//! needs a file is an outcome too.

#![expect(
    unsafe_code,
    reason = "system calls no safe crate offers; each use says why it is sound"
)]

mod abi;
mod files;
mod floods;
mod identity;
mod ipc;
mod kernel;
mod limits;
mod metadata;
mod namespaces;
mod network;
mod outcome;
mod priority;
mod processes;
mod within;
mod words;

use Probe::{Plain, With};
use outcome::Outcome;
use std::io::Write as _;
use std::process::ExitCode;
use words::{Usage, Words};

/// What a probe needs to be told.
enum Probe {
    /// Nothing.
    Plain(fn() -> Outcome),
    /// These arguments.
    With(&'static str, fn(&Words) -> Result<Outcome, Usage>),
}

#[rustfmt::skip]
const PROBES: &[(&str, Probe)] = &[
    ("open", With("<path>", files::open)),
    ("read", With("<path>", files::read)),
    ("write", With("<path>", files::write)),
    ("device", With("<path>", files::device)),
    ("mknod", With("<path> <b|c> <major> <minor>", files::mknod)),
    ("open-by-handle", With("<path>", files::open_by_handle)),
    ("chown", With("<path> <uid> <gid>", metadata::chown)),
    ("setxattr", With("<path> <name> <value>", metadata::setxattr)),
    ("link", With("<from> <to>", metadata::link)),
    ("list", With("<folder>", metadata::list)),
    ("readlink", With("<path>", metadata::readlink)),
    ("put", With("<path> <text>", metadata::put)),
    ("remount-writable", With("<mount point>", metadata::remount_writable)),
    ("mount-setattr", With("<mount point>", metadata::mount_setattr)),
    ("chroot", With("<folder>", metadata::chroot)),
    ("pagemap", Plain(metadata::pagemap)),
    ("chroot-escape", With("<folder to make and remove>", files::chroot_escape)),
    ("ptrace", With("<pid>", processes::ptrace)),
    ("kill", With("<pid> <signal>", processes::kill)),
    ("process-vm-readv", With("<pid> <address in hex>", processes::vm_readv)),
    ("pidfd-getfd", With("<pid> <fd>", processes::pidfd_getfd)),
    ("proc-exe", With("<pid>", processes::proc_exe)),
    ("proc-environ", With("<pid>", processes::proc_environ)),
    ("proc-mem", With("<pid>", processes::proc_mem)),
    ("tiocsti", Plain(processes::tiocsti)),
    ("mount", With("<source> <target> <type>", namespaces::mount)),
    ("bind-mount", With("<source> <target>", namespaces::bind_mount)),
    ("umount", With("<target>", namespaces::umount)),
    ("fsopen", With("<type>", namespaces::fsopen)),
    ("open-tree", With("<path>", namespaces::open_tree)),
    ("pivot-root", With("<new> <old>", namespaces::pivot_root)),
    ("unshare", With("<user,mnt,pid,net,ipc,uts,cgroup,time>", namespaces::unshare)),
    ("clone3", With("<user,mnt,pid,net,ipc,uts,cgroup,time>", namespaces::clone3)),
    ("setns", With("<path>", namespaces::setns)),
    ("map-ids", With("<inside> <outside> <count>", within::map_ids)),
    ("networks-until-fail", With("<most>", within::networks)),
    ("sethostname", With("<name>", namespaces::sethostname)),
    ("socket", With("<family> <stream|dgram|raw|seqpacket> <protocol>", network::socket)),
    ("connect", With("<tcp|udp> <address:port> <ms>", network::connect)),
    ("bind", With("<tcp|udp> <address:port>", network::bind)),
    ("resolve", With("<name>", network::resolve)),
    ("unix-connect", With("<path or @name>", network::unix_connect)),
    ("unix-serve", With("<path or @name> <ms>", network::unix_serve)),
    ("unix-say", With("<path or @name> <hex> <ms>", network::unix_say)),
    ("interface-flags", Plain(network::interface_flags)),
    ("socket-option", With("<mark|transparent|force-buffer>", network::socket_option)),
    ("shm-make", With("<key in hex>", ipc::make)),
    ("shm-find", With("<key in hex>", ipc::find)),
    ("shm-remove", With("<key in hex>", ipc::remove)),
    ("bpf", Plain(kernel::bpf)),
    ("perf-event-open", Plain(kernel::perf_event_open)),
    ("io-uring-setup", Plain(kernel::io_uring_setup)),
    ("keyctl", Plain(kernel::keyctl)),
    ("add-key", Plain(kernel::add_key)),
    ("request-key", Plain(kernel::request_key)),
    ("userfaultfd", Plain(kernel::userfaultfd)),
    ("fanotify-init", Plain(kernel::fanotify_init)),
    ("kexec-load", Plain(kernel::kexec_load)),
    ("init-module", Plain(kernel::init_module)),
    ("swapon", With("<path>", kernel::swapon)),
    ("reboot", Plain(kernel::reboot)),
    ("syslog", Plain(kernel::syslog)),
    ("acct", Plain(kernel::acct)),
    ("clock-settime", Plain(kernel::clock_settime)),
    ("adjtimex", Plain(kernel::adjtimex)),
    ("unshare-by", With("<native|i386|x32>", abi::unshare)),
    ("iopl", Plain(kernel::iopl)),
    ("setuid", With("<uid>", identity::setuid)),
    ("setgid", With("<gid>", identity::setgid)),
    ("setgroups", With("<gid>", identity::setgroups)),
    ("capabilities", Plain(identity::capabilities)),
    ("personality", With("<hex>", identity::personality)),
    ("fork-until-fail", With("<most>", limits::fork)),
    ("nice", With("<value>", priority::nice)),
    ("realtime", Plain(priority::realtime)),
    ("io-realtime", Plain(priority::io_realtime)),
    ("limit", With("<nofile|nproc|core> <raise|lower>", priority::limit)),
    ("memory-until-fail", With("<most MiB> [own|memfd|shared]", limits::memory)),
    ("file-until-fail", With("<path> <most MiB>", limits::file)),
    ("open-until-fail", With("<most>", limits::open)),
    ("fork-bomb", With("<ms>", floods::fork_bomb)),
    ("threads-until-fail", With("<most>", floods::threads)),
    ("inodes-until-fail", With("<folder to make and remove> <most>", floods::inodes)),
    ("files-of-many", With("<processes> <each> <ms>", floods::files_of_many)),
    ("connections-of-many", With("<address:port> <processes> <each> <ms>", floods::connections_of_many)),
    ("flood-names", With("<address:port> <ms>", floods::names)),
    ("spin", With("<ms>", limits::spin)),
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, arguments)) = words.split_first() else {
        return complain("usage: box-probe <name> [arguments] | --list");
    };
    match name.as_str() {
        "--list" => return print(&PROBES.iter().map(usage).collect::<Vec<_>>().join("\n")),
        "within" => {
            return match within::run(arguments) {
                Ok(code) => ExitCode::from(code),
                Err(why) => complain(&why),
            };
        }
        "now" => return print(&clock_ns().to_string()),
        "wait" => loop {
            std::thread::park();
        },
        _ => {}
    }
    let Some(known) = PROBES.iter().find(|(known, _)| known == name) else {
        return complain(&format!("unknown probe `{name}`"));
    };
    let tried = match known.1 {
        Plain(probe) if arguments.is_empty() => Ok(probe()),
        Plain(_) => Err(Usage),
        With(_, probe) => probe(&Words::new(arguments)),
    };
    match tried {
        Ok(outcome) => print(&outcome.line(name)),
        Err(Usage) => complain(&format!("usage: box-probe {}", usage(known))),
    }
}

/// `CLOCK_MONOTONIC`, the same in a box as outside.
fn clock_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or_default()
}

fn usage((name, probe): &(&str, Probe)) -> String {
    match probe {
        Plain(_) => (*name).to_owned(),
        With(arguments, _) => format!("{name} {arguments}"),
    }
}

fn print(text: &str) -> ExitCode {
    match writeln!(std::io::stdout(), "{text}") {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn complain(what: &str) -> ExitCode {
    // If nobody reads it, the code still tells.
    drop(writeln!(std::io::stderr(), "box-probe: {what}"));
    ExitCode::from(2)
}

#[cfg(test)]
mod tests {
    use super::PROBES;
    use std::collections::BTreeSet;

    #[test]
    fn every_probe_has_a_name_of_its_own() {
        let names: BTreeSet<&str> = PROBES.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), PROBES.len());
    }
}
