//! A frozen box stands still, whatever it did, and goes on where it was.

use crate::harness::{GRACE, Host};
use box_api::control::Profile;
use box_runtime::{
    BoxSpec, ExecSpec, Execution, Freezer as _, Limiter as _, Runtime as _, RuntimeError,
};
use std::time::{Duration, Instant};

crate::claims!(
    a_frozen_box_stands_still_and_goes_on,
    a_box_that_forks_without_end_is_frozen_whole,
    shells_that_fork_all_the_time_are_frozen_again_and_again,
    a_frozen_box_is_stopped_as_any_other,
    a_freeze_outlives_the_host,
    only_what_runs_is_frozen,
);

/// Writes ever larger numbers, one after the other, into a file of the workspace.
const COUNT: &str = "my $n = 0; while (1) { $n++; open(my $f, '>', '/workspace/n.new') or die;
    print $f $n; close $f; rename '/workspace/n.new', '/workspace/n' or die }";

/// Starts a program that runs until it is dropped.
pub(crate) fn begin(host: &Host, spec: &BoxSpec, program: &str) -> Execution {
    let exec = ExecSpec {
        command: ["perl", "-e", program].map(str::to_owned).to_vec(),
        cwd: None,
        env: Vec::new(),
        terminal: None,
    };
    host.wait(host.engine().exec(&spec.id, exec)).unwrap()
}

/// The number as it is on the host's disk; 0 before the first.
pub(crate) fn counted(host: &Host, spec: &BoxSpec) -> u64 {
    let text = std::fs::read_to_string(host.folder(spec).join("workspace/n"));
    text.ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Waits until it is larger.
pub(crate) fn counted_beyond(host: &Host, spec: &BoxSpec, number: u64) -> u64 {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let now = counted(host, spec);
        if now > number {
            return now;
        }
        assert!(Instant::now() < deadline, "it stays at {now}");
        std::thread::yield_now();
    }
}

/// Something that takes the neighbour a while: 0.3 s of CPU time.
const WORK: &str = "my $end = (times)[0] + 0.3; 1 while (times)[0] < $end; print 'done'";

pub(crate) fn a_frozen_box_stands_still_and_goes_on(host: &mut Host) {
    let (spec, _sockets) = host.running(Profile::Locked);
    let (neighbour, _other) = host.running(Profile::Locked);
    let counter = begin(host, &spec, COUNT);
    counted_beyond(host, &spec, 0);

    let engine = host.engine().clone();
    host.wait(engine.freeze(&spec.id)).unwrap();
    let seen = || {
        let usage = host.wait(engine.usage(&spec.id)).unwrap();
        assert!(usage.frozen, "{usage:?}");
        (counted(host, &spec), usage.cpu_us, usage.processes)
    };
    let before = seen();
    assert_eq!(host.perl(&neighbour, WORK), "done", "the neighbour goes on");
    let after = seen();
    assert_eq!(before, after, "not an instruction of it ran");
    host.wait(engine.freeze(&spec.id)).unwrap();

    host.wait(engine.thaw(&spec.id)).unwrap();
    counted_beyond(host, &spec, after.0);
    assert!(!host.wait(engine.usage(&spec.id)).unwrap().frozen);
    assert_eq!(host.ask(&spec, "echo here"), "here\n");
    host.wait(engine.thaw(&spec.id)).unwrap();
    drop(counter);
}

pub(crate) fn a_box_that_forks_without_end_is_frozen_whole(host: &mut Host) {
    let mut spec = host.spec(Profile::Locked);
    spec.limits.pids = 60;
    let _sockets = host.run(&spec);
    let (neighbour, _other) = host.running(Profile::Locked);
    // Each process makes the next one and ends; some count.
    let churn = "close STDOUT; close STDERR; $SIG{CHLD} = 'IGNORE'; while (1) { my $pid = fork;
        exit if $pid; open(my $f, '>', \"/workspace/n.$$\") or next; print $f $$; close $f;
        rename \"/workspace/n.$$\", '/workspace/n' }";
    let churners: Vec<Execution> = (0..4).map(|_| begin(host, &spec, churn)).collect();
    counted_beyond(host, &spec, 0);
    let engine = host.engine().clone();
    for _ in 0..5 {
        host.wait(engine.freeze(&spec.id)).unwrap();
        let newest = |host: &Host| {
            let file = std::fs::metadata(host.folder(&spec).join("workspace/n")).unwrap();
            file.modified().unwrap()
        };
        let before = (
            newest(host),
            host.wait(engine.usage(&spec.id)).unwrap().cpu_us,
        );
        assert_eq!(host.perl(&neighbour, "print 'here'"), "here");
        let after = (
            newest(host),
            host.wait(engine.usage(&spec.id)).unwrap().cpu_us,
        );
        assert_eq!(before, after);
        host.wait(engine.thaw(&spec.id)).unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        while newest(host) == after.0 {
            assert!(Instant::now() < deadline, "it does not go on");
            std::thread::yield_now();
        }
    }
    drop(churners);
}

/// As builds and agents are: shells that start one program after the other. One that began vfork(2)
/// before it was told to stand still waits for a child that stands still already, and so never does
/// itself: the old freezer is on its way for ever. Of 40 freezes 2 did not end here when nobody let go
/// and told anew.
pub(crate) fn shells_that_fork_all_the_time_are_frozen_again_and_again(host: &mut Host) {
    const TIMES: usize = 40;
    let mut spec = host.spec(Profile::Locked);
    spec.limits.pids = 100;
    let _sockets = host.run(&spec);
    // In the foreground, so that a shell that has it uses vfork(2).
    let line = "true=$(command -v env); true=${true%env}true; \
        while :; do $true; $true; $true; $true; $true; $true; $true; $true; \
        printf %s $$ > /workspace/n; done";
    let shells: Vec<_> = (0..12)
        .map(|_| {
            let exec = ExecSpec {
                command: ["sh", "-c", line].map(str::to_owned).to_vec(),
                cwd: None,
                env: Vec::new(),
                terminal: None,
            };
            host.wait(host.engine().exec(&spec.id, exec)).unwrap()
        })
        .collect();
    counted_beyond(host, &spec, 0);
    let engine = host.engine().clone();
    for time in 1..=TIMES {
        host.wait(engine.freeze(&spec.id))
            .unwrap_or_else(|error| panic!("freeze {time} of {TIMES}: {error}"));
        assert!(host.wait(engine.usage(&spec.id)).unwrap().frozen, "{time}");
        let written = || {
            let file = std::fs::metadata(host.folder(&spec).join("workspace/n")).unwrap();
            file.modified().unwrap()
        };
        let before = written();
        host.wait(engine.thaw(&spec.id)).unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        while written() == before {
            assert!(Instant::now() < deadline, "it does not go on after {time}");
            std::thread::yield_now();
        }
    }
    drop(shells);
}

pub(crate) fn a_frozen_box_is_stopped_as_any_other(host: &mut Host) {
    let engine = host.engine().clone();
    for grace in [GRACE, Duration::ZERO] {
        let (spec, _sockets) = host.running(Profile::Root);
        let counter = begin(host, &spec, COUNT);
        counted_beyond(host, &spec, 0);
        host.wait(engine.freeze(&spec.id)).unwrap();
        host.wait(engine.stop(&spec.id, grace)).unwrap();
        let seen = host.wait(engine.list()).unwrap();
        assert!(seen.iter().all(|seen| !seen.running), "{seen:?}");
        // And starts as any other: not frozen.
        host.wait(engine.start(&spec)).unwrap();
        assert_eq!(host.ask(&spec, "echo here"), "here\n");
        host.wait(engine.freeze(&spec.id)).unwrap();
        host.wait(engine.remove(&spec.id)).unwrap();
        drop(counter);
    }
}

pub(crate) fn a_freeze_outlives_the_host(host: &mut Host) {
    let (spec, _sockets) = host.running(Profile::Locked);
    host.wait(host.engine().freeze(&spec.id)).unwrap();
    host.replace();
    let engine = host.engine().clone();
    assert!(host.wait(engine.usage(&spec.id)).unwrap().frozen);
    host.wait(engine.thaw(&spec.id)).unwrap();
    assert_eq!(host.ask(&spec, "echo here"), "here\n");
}

pub(crate) fn only_what_runs_is_frozen(host: &mut Host) {
    let spec = host.spec(Profile::Locked);
    let engine = host.engine().clone();
    let unknown = host.wait(engine.freeze(&spec.id)).unwrap_err();
    assert!(matches!(unknown, RuntimeError::NotFound(_)), "{unknown:?}");
    host.wait(engine.create(&spec)).unwrap();
    for result in [
        host.wait(engine.freeze(&spec.id)),
        host.wait(engine.thaw(&spec.id)),
    ] {
        let still = result.unwrap_err();
        assert!(matches!(still, RuntimeError::NotRunning(_)), "{still:?}");
    }
}
