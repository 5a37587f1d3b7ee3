//! Boxes outlive the processes that made them, and a start that fails leaves nothing.

use crate::harness::{GRACE, Host, children_of, told};
use box_api::control::Profile;
use box_runtime::{ExecSpec, PlacedFile, Placing, Processes as _, Runtime as _};
use rustix::process::{Pid, Signal, kill_process};
use std::time::Duration;

crate::claims!(
    a_box_outlives_its_spawner_and_its_host,
    a_box_that_dies_by_itself_is_seen_and_started_again,
    a_failed_start_leaves_nothing_and_says_which_step,
    a_host_that_dies_in_the_middle_of_a_start_leaves_no_orphan,
    boxes_started_at_once_do_not_mix_up,
    a_stop_is_asked_for_before_it_is_forced,
    the_box_has_the_environment_it_was_given,
    a_terminal_is_one_of_the_box,
);

fn kill(pid: u32) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
}

fn a_box_outlives_its_spawner_and_its_host(host: &mut Host) {
    let (spec, _sockets) = host.running(Profile::Locked);
    let before = host.wait(host.engine().list()).unwrap();
    assert!(before[0].running);

    kill(host.engine().spawner_pid());
    assert_eq!(
        host.ask(&spec, "echo here"),
        "here\n",
        "exec needs no spawner"
    );
    let other = host.spec(Profile::Locked);
    host.wait(host.engine().create(&other)).unwrap();
    let refused = host.wait(host.engine().start(&other)).unwrap_err();
    assert!(
        told(&refused).contains("the spawner is gone; restart the host"),
        "{refused:?}"
    );

    host.replace();
    let seen = host.wait(host.engine().list()).unwrap();
    assert_eq!(seen.iter().find(|seen| seen.id == spec.id), before.first());
    assert_eq!(host.ask(&spec, "echo here"), "here\n");
    let again = host.wait(host.engine().start(&spec)).unwrap();
    assert!(again.sockets.is_none());
    host.wait(host.engine().start(&other)).unwrap();

    // Stopped by a host that did not start it; its cgroups go too.
    assert!(!Host::cgroups().is_empty());
    host.wait(host.engine().stop(&spec.id, GRACE)).unwrap();
    host.wait(host.engine().stop(&other.id, GRACE)).unwrap();
    assert!(Host::cgroups().is_empty(), "{:?}", Host::cgroups());
}

fn a_box_that_dies_by_itself_is_seen_and_started_again(host: &mut Host) {
    let (spec, sockets) = host.running(Profile::Locked);
    let first = host.wait(host.engine().list()).unwrap()[0].pid.unwrap();
    kill(first);
    // Readable once the box is gone.
    let watched = &sockets.pidfd;
    let gone = rustix::event::PollFd::new(watched, rustix::event::PollFlags::IN);
    let deadline = rustix::event::Timespec {
        tv_sec: 10,
        tv_nsec: 0,
    };
    assert_eq!(rustix::event::poll(&mut [gone], Some(&deadline)), Ok(1));

    let seen = &host.wait(host.engine().list()).unwrap()[0];
    assert!(!seen.running && seen.pid.is_none());
    let connected = host.wait(host.engine().connect(&spec.id));
    assert!(connected.is_err(), "its guest is gone");
    let started = host.wait(host.engine().start(&spec)).unwrap();
    assert_ne!(started.pid, first);
    assert!(started.sockets.is_some());
    assert_eq!(host.ask(&spec, "echo here"), "here\n");
}

fn a_failed_start_leaves_nothing_and_says_which_step(host: &mut Host) {
    let mounts = || std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let before = mounts();
    let mut spec = host.spec(Profile::Locked);
    host.wait(host.engine().create(&spec)).unwrap();

    let file = host.path("given");
    std::fs::write(&file, "x").unwrap();
    spec.files = vec![PlacedFile {
        source: file,
        target: "/nowhere/to/be/found".to_owned(),
        placing: Placing::Always,
    }];
    let error = host.wait(host.engine().start(&spec)).unwrap_err();
    assert_eq!(
        told(&error),
        format!(
            "could not start box {}: could not put a file over `/nowhere/to/be/found` of the \
             image: read-only file system (errno 30)",
            spec.id
        )
    );
    let seen = &host.wait(host.engine().list()).unwrap()[0];
    assert!(!seen.running);
    assert_eq!(Host::cgroups(), Vec::<std::path::PathBuf>::new());
    assert_eq!(children_of(host.engine().spawner_pid()), "");
    assert!(!host.path("run/boxes").join(spec.id.as_str()).exists());
    assert_eq!(mounts(), before);

    spec.files.clear();
    for (offset, own) in [(0, spec.id_offset), (u32::MAX, spec.id_offset)] {
        spec.id_offset = offset;
        let error = host.wait(host.engine().start(&spec)).unwrap_err();
        assert_eq!(
            told(&error),
            format!("{offset} does not begin a range of ids for boxes")
        );
        spec.id_offset = own;
    }
    spec.image_digest = "0".repeat(64);
    let error = host.wait(host.engine().start(&spec)).unwrap_err();
    assert!(told(&error).contains("is not there"), "{}", told(&error));

    // The control: without the flaw it starts.
    spec.image_digest.clone_from(&host.image);
    host.wait(host.engine().start(&spec)).unwrap();
}

/// Whatever was under way when the host went, the next one knows every box that runs.
fn a_host_that_dies_in_the_middle_of_a_start_leaves_no_orphan(host: &mut Host) {
    for wait_micros in [0, 200, 500, 1000, 1500, 2000, 4000] {
        let spec = host.spec(Profile::Locked);
        let engine = host.engine().clone();
        host.wait(engine.create(&spec)).unwrap();
        let spawner = engine.spawner_pid();
        // The start is dropped with its whole runtime, as `kill -9` would.
        host.wait(async {
            let started = engine.start(&spec);
            drop(tokio::time::timeout(Duration::from_micros(wait_micros), started).await);
        });
        drop(engine);
        host.replace();
        // The old spawner ends when it sees that its host is gone.
        let old = Pid::from_raw(i32::try_from(spawner).unwrap()).unwrap();
        rustix::process::waitpid(Some(old), rustix::process::WaitOptions::empty()).unwrap();
        let listed = host.wait(host.engine().list()).unwrap();
        let seen = listed.iter().find(|seen| seen.id == spec.id).unwrap();
        if seen.running {
            assert_eq!(host.ask(&spec, "echo here"), "here\n");
        } else {
            host.wait(host.engine().start(&spec)).unwrap();
        }
        host.wait(host.engine().remove(&spec.id)).unwrap();
        assert!(Host::cgroups().is_empty(), "{:?}", Host::cgroups());
    }
}

fn boxes_started_at_once_do_not_mix_up(host: &mut Host) {
    let specs: Vec<_> = (0..12)
        .map(|number| {
            let mut spec = host.spec(Profile::Locked);
            spec.host_name = format!("demo-{number}");
            spec
        })
        .collect();
    let engine = host.engine().clone();
    host.wait(async {
        let starts = specs.iter().cloned().map(|spec| {
            let engine = engine.clone();
            tokio::spawn(async move {
                engine.create(&spec).await.unwrap();
                engine.start(&spec).await.unwrap();
            })
        });
        for start in starts.collect::<Vec<_>>() {
            start.await.unwrap();
        }
    });
    for spec in &specs {
        assert_eq!(host.ask(spec, "hostname"), format!("{}\n", spec.host_name));
    }
    let offsets = specs.iter().map(|spec| spec.id_offset.to_string());
    for (spec, offset) in specs.iter().zip(offsets) {
        let map = host.ask(spec, "cat /proc/self/uid_map");
        assert_eq!(
            map.split_whitespace().collect::<Vec<_>>(),
            ["0", &offset, "65536"]
        );
    }
}

fn a_stop_is_asked_for_before_it_is_forced(host: &mut Host) {
    let (spec, _sockets) = host.running(Profile::Locked);
    let engine = host.engine().clone();
    let command = [
        "sh",
        "-c",
        "trap 'echo bye >/workspace/bye; exit 0' TERM; echo up; while :; do sleep 1; done",
    ];
    let exec = ExecSpec {
        command: command.map(str::to_owned).to_vec(),
        cwd: None,
        env: Vec::new(),
        terminal: None,
    };
    let execution = host.wait(engine.exec(&spec.id, exec)).unwrap();
    let mut up = [0; 3];
    while rustix::io::read(&execution.streams[1], &mut up) == Err(rustix::io::Errno::AGAIN) {}
    assert_eq!(&up, b"up\n");
    host.wait(engine.stop(&spec.id, GRACE)).unwrap();
    assert!(
        host.folder(&spec).join("workspace/bye").exists(),
        "it was not asked"
    );

    // One that does not heed it is ended all the same.
    host.wait(engine.start(&spec)).unwrap();
    let deaf = host.shell(
        &spec,
        "(trap '' TERM; while :; do sleep 1; done) >/dev/null 2>&1 & echo",
    );
    assert_eq!(deaf.code, 0);
    host.wait(engine.stop(&spec.id, Duration::from_millis(100)))
        .unwrap();
    assert!(!host.wait(engine.list()).unwrap()[0].running);
}

fn the_box_has_the_environment_it_was_given(host: &mut Host) {
    let mut spec = host.spec(Profile::Locked);
    spec.env = vec![
        ("GIVEN".to_owned(), "a b=c\nd".to_owned()),
        ("LANG".to_owned(), "de_DE.UTF-8".to_owned()),
    ];
    host.run(&spec);
    assert_eq!(
        host.ask(&spec, "printf %s \"$GIVEN\" | tr '\\n' /"),
        "a b=c/d"
    );
    assert_eq!(
        host.ask(&spec, "echo $LANG $HOME $USER $LOGNAME; echo $PATH"),
        "de_DE.UTF-8 /home/agent agent agent\n\
         /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"
    );
}

fn a_terminal_is_one_of_the_box(host: &mut Host) {
    let (spec, _sockets) = host.running(Profile::Locked);
    let exec = ExecSpec {
        command: [
            "sh",
            "-c",
            "test -t 0 && ls -l /proc/self/fd/0; ls /dev/pts; sleep 5",
        ]
        .map(str::to_owned)
        .to_vec(),
        cwd: None,
        env: Vec::new(),
        terminal: Some(box_api::control::TerminalSize {
            rows: 24,
            columns: 80,
        }),
    };
    let execution = host.wait(host.engine().exec(&spec.id, exec)).unwrap();
    assert_eq!(execution.streams.len(), 1);
    let mut text = String::new();
    let mut bytes = [0; 512];
    while !text.contains("ptmx") {
        match rustix::io::read(&execution.streams[0], &mut bytes) {
            Ok(0) => break,
            Ok(length) => text.push_str(std::str::from_utf8(&bytes[..length]).unwrap()),
            Err(rustix::io::Errno::AGAIN) => {}
            Err(errno) => panic!("{errno}: {text}"),
        }
    }
    assert!(text.contains("/dev/pts/0"), "{text}");
}
