//! What box-egress takes away from itself before it serves anything: new privileges, core dumps,
//! tracers, files, programs, and every system call it has no use for.

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
    Scope,
};
use rustix::process::{DumpableBehavior, Resource, Rlimit, getrlimit, setrlimit};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};
use std::collections::BTreeMap;

/// Why the sandbox could not be entered. box-egress does not run without it.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    #[error("could not {what}: {source}")]
    System {
        what: &'static str,
        source: rustix::io::Errno,
    },
    #[error("could not take file access away: {0}")]
    Landlock(#[from] landlock::RulesetError),
    #[error("could not build the system call filter: {0}")]
    Filter(#[from] seccompiler::BackendError),
    #[error("could not set the system call filter: {0}")]
    Install(#[from] seccompiler::Error),
}

/// Ends the process: nothing box-egress runs ever asks for these, so whoever does is not it.
const DEADLY: [i64; 32] = [
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_swapon,
];

/// All that is answered; anything else fails with EPERM.
const USED: [i64; 57] = [
    libc::SYS_accept4,
    libc::SYS_bind,
    libc::SYS_brk,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_clone3,
    libc::SYS_close,
    libc::SYS_connect,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_eventfd2,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_fcntl,
    libc::SYS_fstat,
    libc::SYS_futex,
    libc::SYS_getpeername,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_gettid,
    libc::SYS_listen,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_memfd_create,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_pipe2,
    libc::SYS_ppoll,
    libc::SYS_pread64,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_set_robust_list,
    libc::SYS_setsockopt,
    libc::SYS_shutdown,
    libc::SYS_sigaltstack,
    libc::SYS_splice,
    libc::SYS_tgkill,
    libc::SYS_write,
    libc::SYS_writev,
];

/// Numbers that only some architectures have.
#[cfg(target_arch = "x86_64")]
const USED_HERE: [i64; 2] = [libc::SYS_epoll_wait, libc::SYS_poll];
#[cfg(not(target_arch = "x86_64"))]
const USED_HERE: [i64; 0] = [];

/// Enters the sandbox, and says how many files the process may have open. Call it while the
/// process has one thread: later threads inherit it.
///
/// # Errors
/// [`SandboxError`] when the kernel takes a step back. Landlock alone is used as far as the
/// kernel has it; the system call filter forbids opening files in any case.
pub fn enter() -> Result<u64, SandboxError> {
    let system = |what| move |source| SandboxError::System { what, source };
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(system("become undumpable"))?;
    let nothing = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    setrlimit(Resource::Core, nothing).map_err(system("forbid core dumps"))?;
    let files = getrlimit(Resource::Nofile);
    let all = Rlimit {
        current: files.maximum,
        maximum: files.maximum,
    };
    setrlimit(Resource::Nofile, all).map_err(system("raise the limit of open files"))?;
    rustix::thread::set_no_new_privs(true).map_err(system("refuse new privileges"))?;
    take_files_away()?;
    install(
        DEADLY.map(|number| (number, Vec::new())).into(),
        Listed::Kills,
    )?;
    install([(libc::SYS_clone3, Vec::new())].into(), Listed::IsUnknown)?;
    install(used(), Listed::Works)?;
    Ok(files.maximum.unwrap_or(u64::MAX))
}

fn take_files_away() -> Result<(), SandboxError> {
    let abi = ABI::V6;
    Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(abi))?
        .handle_access(AccessNet::BindTcp)?
        .scope(Scope::from_all(abi))?
        .create()?
        .restrict_self()?;
    Ok(())
}

/// What a filter says about the calls it lists, and the others.
#[derive(Debug, Clone, Copy)]
enum Listed {
    Kills,
    /// Fails as on a kernel that lacks it, so that the C library takes the older call, whose flags
    /// a filter can see.
    IsUnknown,
    Works,
}

fn install(calls: BTreeMap<i64, Vec<SeccompRule>>, listed: Listed) -> Result<(), SandboxError> {
    let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let (otherwise, when_listed) = match listed {
        Listed::Kills => (SeccompAction::Allow, SeccompAction::KillProcess),
        Listed::IsUnknown => (
            SeccompAction::Allow,
            SeccompAction::Errno(libc::ENOSYS.unsigned_abs()),
        ),
        Listed::Works => (refused, SeccompAction::Allow),
    };
    let arch = std::env::consts::ARCH.try_into()?;
    let program: BpfProgram =
        SeccompFilter::new(calls, otherwise, when_listed, arch)?.try_into()?;
    seccompiler::apply_filter(&program)?;
    Ok(())
}

fn used() -> BTreeMap<i64, Vec<SeccompRule>> {
    let always = USED
        .into_iter()
        .chain(USED_HERE)
        .map(|number| (number, Vec::new()));
    let when = |number, rules: Vec<Option<SeccompRule>>| {
        // A rule that cannot be built is left out: the call is refused then.
        (number, rules.into_iter().flatten().collect::<Vec<_>>())
    };
    let sometimes = [
        // Threads, never processes. (`clone3` is in the list above because the filter before this
        // one answers it.)
        when(libc::SYS_clone, vec![has_flag(0, libc::CLONE_THREAD)]),
        // Stream and datagram sockets of the internet, and the kernel's routing table.
        when(
            libc::SYS_socket,
            [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK]
                .map(|family| equals(0, family))
                .into(),
        ),
        when(libc::SYS_socketpair, vec![equals(0, libc::AF_UNIX)]),
        // tokio and the standard library make sockets nonblocking this way.
        when(libc::SYS_ioctl, vec![equals_long(1, libc::FIONBIO)]),
        when(libc::SYS_prctl, vec![equals(0, libc::PR_SET_NAME)]),
    ];
    always
        .chain(sometimes.into_iter().filter(|(_, rules)| !rules.is_empty()))
        .collect()
}

fn equals(argument: u8, value: i32) -> Option<SeccompRule> {
    equals_long(argument, u64::from(value.unsigned_abs()))
}

fn equals_long(argument: u8, value: u64) -> Option<SeccompRule> {
    rule(argument, SeccompCmpOp::Eq, value)
}

fn has_flag(argument: u8, flag: i32) -> Option<SeccompRule> {
    let flag = u64::from(flag.unsigned_abs());
    rule(argument, SeccompCmpOp::MaskedEq(flag), flag)
}

fn rule(argument: u8, operator: SeccompCmpOp, value: u64) -> Option<SeccompRule> {
    let length = SeccompCmpArgLen::Dword;
    let condition = SeccompCondition::new(argument, length, operator, value).ok()?;
    SeccompRule::new(vec![condition]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
    use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
    use std::process::{Command, ExitStatus};

    const ROLE: &str = "BOX_EGRESS_SANDBOX_ROLE";
    const SIGSYS: i32 = 31;

    /// Runs one test of this binary anew, in a process it may lose.
    #[expect(clippy::disallowed_methods, reason = "the process that is to die")]
    fn again(test: &str, role: &str) -> ExitStatus {
        let program = std::env::current_exe().unwrap();
        let test = format!("sandbox::tests::{test}");
        let mut command = Command::new(program);
        command
            .args(["--exact", &test, "--nocapture"])
            .env(ROLE, role);
        command.output().unwrap().status
    }

    #[expect(clippy::disallowed_methods, reason = "the program that must not start")]
    fn become_another_program() -> std::io::Error {
        Command::new("/bin/true").exec()
    }

    #[test]
    fn exec_in_the_sandbox_is_deadly() {
        match std::env::var(ROLE).as_deref() {
            Ok("sandboxed") => {
                enter().unwrap();
                panic!("still here: {}", become_another_program());
            }
            Ok(_) => panic!("no such program: {}", become_another_program()),
            Err(_) => {
                let inside = again("exec_in_the_sandbox_is_deadly", "sandboxed");
                assert_eq!(inside.signal(), Some(SIGSYS));
                let outside = again("exec_in_the_sandbox_is_deadly", "free");
                assert!(outside.success());
            }
        }
    }

    #[test]
    fn files_processes_and_odd_sockets_are_out_of_reach() {
        if std::env::var(ROLE).is_err() {
            let end = again(
                "files_processes_and_odd_sockets_are_out_of_reach",
                "sandboxed",
            );
            assert!(end.success(), "{end}");
            return;
        }
        let spawn = || {
            #[expect(clippy::disallowed_methods, reason = "the process that must not start")]
            Command::new("/bin/true").spawn().map(drop)
        };
        let socket =
            |family| socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None).map(drop);
        assert!(std::fs::read("/proc/version").is_ok());
        assert!(socket(AddressFamily::UNIX).is_ok());
        enter().unwrap();
        assert!(std::fs::read("/proc/version").is_err());
        assert!(std::fs::write("/tmp/box-egress-was-here", "x").is_err());
        assert!(spawn().is_err());
        assert!(socket(AddressFamily::UNIX).is_err());
        // The control: what it lives by still works.
        assert!(socket(AddressFamily::INET).is_ok());
        assert!(std::thread::spawn(|| 1).join().is_ok());
    }
}
