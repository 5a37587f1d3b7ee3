//! Runs the compiled filter over every system call and compares it with the rules it came from.

use super::program::{
    ALLOW, ARCHITECTURE, ERRNO, JUMP, JUMP_ANY_BIT, JUMP_AT_LEAST, JUMP_EQUAL, KILL_PROCESS, LOAD,
    OFFSET_ARCHITECTURE, OFFSET_ARGUMENTS, OFFSET_NUMBER, RETURN,
};
use super::*;
use std::collections::BTreeMap;

/// A call as the kernel shows it to a filter (`struct seccomp_data`).
#[derive(Clone, Copy)]
struct Call {
    number: u32,
    architecture: u32,
    arguments: [u64; 6],
}

impl Call {
    fn of(number: libc::c_long, arguments: &[u64]) -> Self {
        let mut all = [0; 6];
        all[..arguments.len()].copy_from_slice(arguments);
        Self {
            number: u32::try_from(number).unwrap(),
            architecture: ARCHITECTURE,
            arguments: all,
        }
    }

    fn word(&self, offset: u32) -> u32 {
        match offset {
            OFFSET_NUMBER => self.number,
            OFFSET_ARCHITECTURE => self.architecture,
            16.. => {
                let argument = self.arguments[((offset - 16) / 8) as usize];
                let half = if offset.is_multiple_of(8) {
                    argument
                } else {
                    argument >> 32
                };
                u32::try_from(half & 0xFFFF_FFFF).unwrap()
            }
            other => panic!("load from {other}"),
        }
    }
}

/// What the filter answers, by an interpreter of the five instructions it is made of.
fn run(program: &[sock_filter], call: Call) -> u32 {
    let (mut at, mut accumulator) = (0, 0);
    loop {
        let instruction = program[at];
        at += 1;
        let jump_if = |holds: bool| {
            usize::from(if holds {
                instruction.jt
            } else {
                instruction.jf
            })
        };
        match instruction.code {
            LOAD => accumulator = call.word(instruction.k),
            JUMP => at += instruction.k as usize,
            JUMP_EQUAL => at += jump_if(accumulator == instruction.k),
            JUMP_AT_LEAST => at += jump_if(accumulator >= instruction.k),
            JUMP_ANY_BIT => at += jump_if(accumulator & instruction.k != 0),
            RETURN => return instruction.k,
            other => panic!("instruction {other:#x}"),
        }
    }
}

fn answer(call: Call) -> u32 {
    run(&filter(), call)
}

fn refused_with(errno: i32) -> u32 {
    ERRNO | errno.cast_unsigned()
}

/// The verdict as the rules say it, without any tree.
fn expected(rules: &BTreeMap<u32, Verdict>, call: Call) -> u32 {
    if call.number > allowed::KNOWN_MAX {
        return refused_with(libc::ENOSYS);
    }
    let mut verdict = rules
        .get(&call.number)
        .copied()
        .unwrap_or(Verdict::Errno(libc::EPERM));
    loop {
        match verdict {
            Verdict::Allow => return ALLOW,
            Verdict::Errno(number) => return refused_with(number),
            Verdict::Check(check) => {
                let low = call.word(OFFSET_ARGUMENTS + 8 * check.argument);
                let hit = check.cases.iter().find(|(when, _)| match *when {
                    When::Is(value) => low == value,
                    When::AnyBitOf(bits) => low & bits != 0,
                });
                verdict = hit.map_or(*check.otherwise, |(_, verdict)| *verdict);
            }
        }
    }
}

#[test]
fn the_tree_agrees_with_the_rules_on_every_number() {
    let program = filter();
    let rules: BTreeMap<u32, Verdict> = rules()
        .iter()
        .map(|rule| (rule.number, rule.verdict))
        .collect();
    let words = [
        0,
        1,
        2,
        3,
        8,
        10,
        16,
        17,
        38,
        40,
        0x5412,
        0x541C,
        0x5000_940E,
        0x2_0000,
        0x1000_0000,
        0xFFFF_FFFF,
    ];
    for number in 0..2048 {
        for word in words {
            for last in [0, 9, 12] {
                let call = Call {
                    number,
                    architecture: ARCHITECTURE,
                    arguments: [word, word, last, 0, 0, 0],
                };
                assert_eq!(
                    run(&program, call),
                    expected(&rules, call),
                    "{number} {word:#x} {last}"
                );
            }
        }
    }
}

#[test]
fn no_number_has_two_rules() {
    let rules = rules();
    assert!(rules.windows(2).all(|pair| pair[0].number < pair[1].number));
    assert!(rules.len() > 280, "{}", rules.len());
}

#[test]
fn the_program_stays_small() {
    let length = filter().len();
    assert!(length < 260, "{length} instructions");
}

#[test]
fn calls_of_another_architecture_end_the_process() {
    let i386 = Call {
        number: 1,
        architecture: 0x4000_0003,
        arguments: [0; 6],
    };
    assert_eq!(answer(i386), KILL_PROCESS);
    assert_eq!(
        answer(Call {
            architecture: ARCHITECTURE,
            ..i386
        }),
        ALLOW
    );
}

#[test]
fn x32_and_unheard_of_calls_are_not_implemented() {
    for number in [0x4000_0000, 0x4000_0001, 470, u32::MAX] {
        let call = Call {
            number,
            architecture: ARCHITECTURE,
            arguments: [0; 6],
        };
        assert_eq!(answer(call), refused_with(libc::ENOSYS), "{number:#x}");
    }
}

#[test]
fn what_leads_out_is_refused() {
    let refused = [
        libc::SYS_add_key,
        libc::SYS_bpf,
        libc::SYS_chroot,
        libc::SYS_delete_module,
        libc::SYS_finit_module,
        libc::SYS_fsconfig,
        libc::SYS_fsmount,
        libc::SYS_fsopen,
        libc::SYS_init_module,
        libc::SYS_io_uring_enter,
        libc::SYS_io_uring_register,
        libc::SYS_io_uring_setup,
        libc::SYS_kcmp,
        libc::SYS_kexec_file_load,
        libc::SYS_kexec_load,
        libc::SYS_keyctl,
        libc::SYS_mount,
        libc::SYS_mount_setattr,
        libc::SYS_move_mount,
        libc::SYS_open_by_handle_at,
        libc::SYS_open_tree,
        libc::SYS_perf_event_open,
        libc::SYS_pidfd_getfd,
        libc::SYS_pivot_root,
        libc::SYS_quotactl,
        libc::SYS_reboot,
        libc::SYS_request_key,
        libc::SYS_sethostname,
        libc::SYS_setns,
        libc::SYS_swapon,
        libc::SYS_syslog,
        libc::SYS_umount2,
        libc::SYS_unshare,
        libc::SYS_userfaultfd,
    ];
    for number in refused {
        assert_eq!(
            answer(Call::of(number, &[])),
            refused_with(libc::EPERM),
            "{number}"
        );
    }
    assert_eq!(
        answer(Call::of(libc::SYS_openat, &[])),
        ALLOW,
        "the control"
    );
}

#[test]
fn new_namespaces_are_refused_and_threads_are_not() {
    let thread = (libc::CLONE_VM | libc::CLONE_THREAD | libc::CLONE_SIGHAND) as u64;
    assert_eq!(answer(Call::of(libc::SYS_clone, &[thread])), ALLOW);
    for flag in [
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWNS,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWCGROUP,
    ] {
        let call = Call::of(libc::SYS_clone, &[thread | u64::from(flag.cast_unsigned())]);
        assert_eq!(answer(call), refused_with(libc::EPERM), "{flag:#x}");
    }
    assert_eq!(
        answer(Call::of(libc::SYS_clone3, &[])),
        refused_with(libc::ENOSYS)
    );
}

#[test]
fn a_box_that_holds_containers_may_make_what_they_are_made_of_and_no_more() {
    let program = nested_filter();
    let answer = |number, arguments: &[u64]| run(&program, Call::of(number, arguments));
    let flags = |flag: i32| [u64::from(flag.cast_unsigned())];
    for flag in [
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWNS,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUTS,
    ] {
        for number in [libc::SYS_clone, libc::SYS_unshare] {
            assert_eq!(answer(number, &flags(flag)), ALLOW, "{number} {flag:#x}");
        }
    }
    for refused in [
        libc::CLONE_NEWCGROUP,
        libc::CLONE_NEWCGROUP | libc::CLONE_NEWUSER,
    ] {
        for number in [libc::SYS_clone, libc::SYS_unshare] {
            let told = answer(number, &flags(refused));
            assert_eq!(told, refused_with(libc::EPERM), "{number} {refused:#x}");
        }
    }
    let time = answer(libc::SYS_unshare, &flags(libc::CLONE_NEWTIME));
    assert_eq!(time, refused_with(libc::EPERM));
    for number in [libc::SYS_mount, libc::SYS_pivot_root, libc::SYS_setns] {
        assert_eq!(answer(number, &[]), ALLOW, "{number}");
    }
    for number in [libc::SYS_clone3, libc::SYS_keyctl, libc::SYS_add_key] {
        assert_eq!(answer(number, &[]), refused_with(libc::ENOSYS), "{number}");
    }
    for number in [
        libc::SYS_bpf,
        libc::SYS_init_module,
        libc::SYS_io_uring_setup,
        libc::SYS_kexec_load,
        libc::SYS_open_by_handle_at,
        libc::SYS_perf_event_open,
        libc::SYS_quotactl,
        libc::SYS_swapon,
        libc::SYS_userfaultfd,
    ] {
        assert_eq!(answer(number, &[]), refused_with(libc::EPERM), "{number}");
    }
    let netfilter = [libc::AF_NETLINK as u64, 3, libc::NETLINK_NETFILTER as u64];
    let told = answer(libc::SYS_socket, &netfilter);
    assert_eq!(told, refused_with(libc::EPROTONOSUPPORT));
    // Everything else is as in any other box.
    let plain = filter();
    let changed: Vec<u32> = (0..2048)
        .filter(|number| {
            let call = |arguments| Call {
                number: *number,
                architecture: ARCHITECTURE,
                arguments,
            };
            [[0; 6], [2, 1, 0, 0, 0, 0]]
                .into_iter()
                .any(|arguments| run(&plain, call(arguments)) != run(&program, call(arguments)))
        })
        .collect();
    // `clone` differs in flags that were not asked about here.
    assert_eq!(changed.len(), 14 + 3 + 1, "{changed:?}");
}

#[test]
fn only_the_socket_families_programs_need_are_there() {
    for family in [
        libc::AF_UNIX,
        libc::AF_INET,
        libc::AF_INET6,
        libc::AF_NETLINK,
    ] {
        assert_eq!(
            answer(Call::of(
                libc::SYS_socket,
                &[u64::from(family.cast_unsigned()), 1, 0]
            )),
            ALLOW,
            "{family}"
        );
    }
    for family in (0..64).filter(|family| ![1, 2, 10, 16].contains(family)) {
        let call = Call::of(libc::SYS_socket, &[family, 3, 0]);
        assert_eq!(answer(call), refused_with(libc::EAFNOSUPPORT), "{family}");
    }
    for protocol in 1..32 {
        let call = Call::of(libc::SYS_socket, &[libc::AF_NETLINK as u64, 3, protocol]);
        assert_eq!(
            answer(call),
            refused_with(libc::EPROTONOSUPPORT),
            "{protocol}"
        );
    }
    let disguised = Call::of(libc::SYS_socket, &[(1 << 32) | libc::AF_VSOCK as u64, 1, 0]);
    assert_eq!(
        answer(disguised),
        refused_with(libc::EAFNOSUPPORT),
        "the kernel drops the upper half"
    );
}

#[test]
fn nothing_makes_a_subvolume() {
    const FICLONE: u64 = 0x4004_9409;
    assert_eq!(answer(Call::of(libc::SYS_ioctl, &[0, FICLONE])), ALLOW);
    for request in [0x5000_9401, 0x5000_940E, 0x5000_9417, 0x5000_9418] {
        assert_eq!(
            answer(Call::of(libc::SYS_ioctl, &[0, request])),
            refused_with(libc::EPERM)
        );
    }
}

#[test]
fn nothing_types_into_a_terminal() {
    const TIOCGWINSZ: u64 = 0x5413;
    assert_eq!(answer(Call::of(libc::SYS_ioctl, &[0, TIOCGWINSZ])), ALLOW);
    for request in [0x5412, 0x541C, (7 << 32) | 0x5412] {
        assert_eq!(
            answer(Call::of(libc::SYS_ioctl, &[0, request])),
            refused_with(libc::EPERM)
        );
    }
}
