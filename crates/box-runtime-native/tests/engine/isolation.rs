//! What a box's first process is made into. The drill attacks the whole; here is what we set.

use crate::harness::Host;
use box_api::control::Profile;
use box_runtime::Runtime as _;

crate::claims!(
    processes_have_the_privileges_of_their_profile_and_no_more,
    commands_start_with_their_three_streams_only,
    kernel_interfaces_are_hidden_or_fixed,
    devices_are_the_harmless_ones,
    the_seccomp_filter_is_the_one_we_compiled,
    the_guest_cannot_be_touched_from_inside,
);

fn status(host: &Host, spec: &box_runtime::BoxSpec, field: &str) -> String {
    let text = host.ask(spec, "cat /proc/self/status");
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(field))
        .unwrap();
    line.trim_start_matches(':').trim().to_owned()
}

fn processes_have_the_privileges_of_their_profile_and_no_more(host: &mut Host) {
    // CHOWN 0, DAC_OVERRIDE 1, FOWNER 3, KILL 5, SETGID 6, SETUID 7, NET_BIND_SERVICE 10 (A14).
    let seven = format!(
        "{:016x}",
        (1 << 0) | (1 << 1) | (1 << 3) | (1 << 5) | (1 << 6) | (1 << 7) | (1 << 10)
    );
    let none = format!("{:016x}", 0);
    for (profile, caps, uid) in [
        (Profile::Locked, &none, "1020"),
        (Profile::Root, &seven, "0"),
    ] {
        let (spec, _) = host.running(profile);
        for set in ["CapPrm", "CapEff", "CapBnd"] {
            assert_eq!(status(host, &spec, set), *caps, "{set} of {profile:?}");
        }
        for set in ["CapInh", "CapAmb"] {
            assert_eq!(status(host, &spec, set), none, "{set} of {profile:?}");
        }
        assert_eq!(status(host, &spec, "NoNewPrivs"), "1");
        assert_eq!(status(host, &spec, "Seccomp"), "2");
        assert_eq!(status(host, &spec, "Seccomp_filters"), "1");
        assert_eq!(status(host, &spec, "Groups"), "");
        assert_eq!(status(host, &spec, "Uid"), [uid; 4].join("\t"));
        // Nothing blocked or ignored is handed down.
        assert_eq!(status(host, &spec, "SigBlk"), none);
        assert_eq!(status(host, &spec, "SigIgn"), none);
    }
}

fn commands_start_with_their_three_streams_only(host: &mut Host) {
    for profile in [Profile::Locked, Profile::Root] {
        let (spec, _) = host.running(profile);
        // The fourth is the folder being listed.
        assert_eq!(host.ask(&spec, "ls /proc/self/fd"), "0\n1\n2\n3\n");
        // The guest, the shell, and the command before, if it is not reaped yet.
        let seen = host.ask(&spec, "echo /proc/[0-9]*");
        let seen = seen.split_whitespace().count();
        assert!((2..=3).contains(&seen), "{seen} processes");
        let listed = host.wait(host.engine().list()).unwrap();
        let pid = listed
            .iter()
            .find(|seen| seen.id == spec.id)
            .unwrap()
            .pid
            .unwrap();
        let open = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
        let targets: Vec<String> = open
            .map(|entry| {
                std::fs::read_link(entry.unwrap().path())
                    .unwrap()
                    .display()
                    .to_string()
            })
            .collect();
        for target in &targets {
            let known = ["socket:", "anon_inode:", "pipe:", "/dev/null"];
            assert!(
                known.iter().any(|known| target.starts_with(known)),
                "{targets:?}"
            );
        }
    }
}

fn kernel_interfaces_are_hidden_or_fixed(host: &mut Host) {
    for profile in [Profile::Locked, Profile::Root] {
        let (spec, _) = host.running(profile);
        let hidden = ["kcore", "keys", "timer_list", "interrupts"];
        let there = |file: &&str| std::path::Path::new("/proc").join(file).exists();
        for file in hidden.iter().filter(|file| there(file)) {
            let command = format!("wc -c </proc/{file}");
            assert_eq!(host.ask(&spec, &command), "0\n", "{file}");
        }
        assert_ne!(
            host.ask(&spec, "wc -c </proc/meminfo"),
            "0\n",
            "the control"
        );
        assert_eq!(
            host.ask(
                &spec,
                "ls /proc/acpi /proc/scsi 2>/dev/null | tr -d '\\n' || true"
            )
            .replace("/proc/acpi:/proc/scsi:", "")
            .replace("/proc/acpi:", ""),
            ""
        );
        for file in [
            "sysrq-trigger",
            "sys/kernel/core_pattern",
            "sys/net/ipv4/ip_forward",
            "irq/default_smp_affinity",
        ] {
            host.refused(&spec, &format!("echo 1 >/proc/{file}"));
        }
        host.ask(&spec, "cat /proc/sys/net/ipv4/ip_forward");
        assert_eq!(host.ask(&spec, "ls /sys"), "");
    }
}

fn devices_are_the_harmless_ones(host: &mut Host) {
    for profile in [Profile::Locked, Profile::Root] {
        let (spec, _) = host.running(profile);
        assert_eq!(
            host.ask(&spec, "ls -m -w 200 /dev"),
            "fd, full, null, ptmx, pts, random, shm, stderr, stdin, stdout, tty, urandom, zero\n"
        );
        host.ask(
            &spec,
            "echo x >/dev/null; head -c 8 /dev/urandom | wc -c; head -c 1 /dev/zero",
        );
        host.refused(&spec, "echo x >/dev/full");
        host.refused(&spec, "mknod /tmp/m c 1 1");
        host.refused(&spec, "mknod /workspace/m c 1 1");
        host.refused(&spec, "touch /dev/x");
        host.refused(&spec, "chmod 0 /dev/null");
        host.refused(&spec, "rm /dev/null");
    }
}

fn the_seccomp_filter_is_the_one_we_compiled(host: &mut Host) {
    // perl's `syscall` with numbers of x86-64: unshare, mount, keyctl, io_uring_setup, bpf, clone3.
    let call = |number: u32, argument: u64| {
        format!("print syscall({number}, {argument}, 0, 0, 0, 0) == -1 ? $! : 'done'")
    };
    for profile in [Profile::Locked, Profile::Root] {
        let (spec, _) = host.running(profile);
        for (number, argument) in [
            (272, 0x1000_0000),
            (165, 0),
            (250, 0),
            (425, 1),
            (321, 0),
            (323, 0),
            (308, 0),
        ] {
            let answer = host.perl(&spec, &call(number, argument));
            assert_eq!(answer, "Operation not permitted", "{number}");
        }
        assert_eq!(host.perl(&spec, &call(435, 0)), "Function not implemented");
        assert_eq!(
            host.perl(&spec, &call(39, 0)),
            "done",
            "the control: getpid"
        );
        for family in [40, 38, 17] {
            let answer = host.perl(
                &spec,
                &format!("print socket(my $s, {family}, 1, 0) ? 'opened' : $!"),
            );
            assert_eq!(
                answer, "Address family not supported by protocol",
                "{family}"
            );
        }
        // CLONE_NEWUSER by clone itself.
        assert_eq!(
            host.perl(&spec, &call(56, 0x1000_0011)),
            "Operation not permitted"
        );
    }
}

fn the_guest_cannot_be_touched_from_inside(host: &mut Host) {
    for profile in [Profile::Locked, Profile::Root] {
        let (spec, _) = host.running(profile);
        for target in ["environ", "mem", "maps", "fd/3", "root/etc/passwd"] {
            host.refused(&spec, &format!("cat /proc/1/{target}"));
        }
        host.refused(&spec, "cat /proc/1/exe >/dev/null");
        host.refused(&spec, "echo x >/proc/1/exe");
        let attach = "print syscall(101, 16, 1, 0, 0) == -1 ? $! : 'attached'";
        assert_eq!(host.perl(&spec, attach), "Operation not permitted");
        host.shell(&spec, "kill -9 1; kill -TERM 1; kill -STOP 1");
        assert_eq!(
            host.ask(&spec, "cat /proc/self/comm"),
            "cat\n",
            "the control"
        );
    }
}
