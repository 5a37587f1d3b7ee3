//! One look after the other, second by second.

use super::*;

const SECOND: i64 = 1000;

fn look(at_seconds: i64) -> Look {
    Look {
        now_ms: at_seconds * SECOND,
        usage: Usage::default(),
        held: false,
        moves_bytes: false,
        freeze_after_ms: None,
        touched_ms: 0,
        limits: Limits::default(),
        settings: BoxSettings::default(),
    }
}

fn with_deadline(at_seconds: i64, deadline_ms: u64) -> Look {
    let settings = BoxSettings {
        deadline_ms: Some(deadline_ms),
        ..BoxSettings::default()
    };
    Look {
        settings,
        ..look(at_seconds)
    }
}

fn idle_after(at_seconds: i64, freeze_after_ms: u64) -> Look {
    Look {
        freeze_after_ms: Some(freeze_after_ms),
        ..look(at_seconds)
    }
}

fn stops(acts: &[Act]) -> bool {
    acts.iter().any(|act| matches!(act, Act::Stop { .. }))
}

#[test]
fn a_deadline_counts_what_the_box_ran_and_not_what_it_was_frozen() {
    let mut watched = Watched::new(None, &with_deadline(0, 10_000), Since::Before);
    for second in 1..=9 {
        assert!(
            !stops(&watched.step(&with_deadline(second, 10_000))),
            "{second}"
        );
    }
    for second in 10..=60 {
        let mut frozen = with_deadline(second, 10_000);
        frozen.usage.frozen = true;
        assert!(!stops(&watched.step(&frozen)), "{second}");
    }
    assert!(stops(&watched.step(&with_deadline(61, 10_000))));
    // Asked for once, and once more should it still run after a minute.
    let again: Vec<i64> = (62..=130)
        .filter(|second| stops(&watched.step(&with_deadline(*second, 10_000))))
        .collect();
    assert_eq!(again, [121]);
}

#[test]
fn a_deadline_outlives_the_host_and_counts_what_ran_meanwhile() {
    let counted = Counted {
        ran_ms: 4_000,
        at_ms: 100 * SECOND,
    };
    let first = with_deadline(107, 10_000);
    let mut watched = Watched::new(Some(counted), &first, Since::Before);
    assert!(stops(&watched.step(&first)), "4 s and 7 s without a host");

    let mut frozen = first;
    frozen.usage.frozen = true;
    let mut watched = Watched::new(Some(counted), &frozen, Since::Before);
    assert!(!stops(&watched.step(&frozen)), "frozen all that time");
}

#[test]
fn a_clock_that_jumps_is_not_running_time() {
    let mut watched = Watched::new(None, &with_deadline(0, 3_600_000), Since::Before);
    assert!(
        !stops(&watched.step(&with_deadline(100_000, 3_600_000))),
        "forward"
    );
    assert!(!stops(&watched.step(&with_deadline(50, 3_600_000))), "back");
    assert_eq!(watched.run.ran_ms, LOOK_MS_MAX);
}

#[test]
fn the_count_is_kept_once_a_minute_and_only_for_a_deadline() {
    let kept = |acts: &[Act]| acts.iter().any(|act| matches!(act, Act::Keep(_)));
    let mut watched = Watched::new(None, &with_deadline(0, 3_600_000), Since::Before);
    let times: Vec<i64> = (1..=130)
        .filter(|second| kept(&watched.step(&with_deadline(*second, 3_600_000))))
        .collect();
    assert_eq!(times, [60, 120]);
    let mut without = Watched::new(None, &look(0), Since::Before);
    assert!((1..=130).all(|second| !kept(&without.step(&look(second)))));
}

#[test]
fn trouble_is_told_at_once_and_then_once_a_minute_with_its_count() {
    let mut watched = Watched::new(None, &look(0), Since::Before);
    let mut told = Vec::new();
    for second in 0..=70 {
        let mut seen = look(second);
        // One process is killed each second from the first on.
        seen.usage.out_of_memory = u64::try_from(second).unwrap();
        let acts = watched.step(&seen);
        for act in acts {
            if let Act::Tell(EventKind::OutOfMemory, text) = act {
                told.push((second, text));
            }
        }
    }
    let text = |count: &str| format!("{count} killed: all of its 4 GiB of memory was in use");
    assert_eq!(
        told,
        [(1, text("1 process was")), (61, text("60 processes were"))]
    );
}

#[test]
fn what_happened_before_the_first_look_is_not_told_again() {
    let mut seen = look(0);
    seen.usage.out_of_processes = 7;
    let mut watched = Watched::new(None, &seen, Since::Before);
    assert_eq!(watched.step(&seen), []);
    seen.now_ms += SECOND;
    seen.usage.out_of_processes = 8;
    let told = watched.step(&seen);
    let text = "a process could not be started, once: it has 512 already".to_owned();
    assert_eq!(told, [Act::Tell(EventKind::OutOfProcesses, text)]);

    let mut started = Watched::new(None, &seen, Since::ThisHost);
    assert_eq!(started.step(&seen).len(), 1, "nobody else has told");
}

#[test]
fn only_a_box_nobody_wants_anything_of_is_frozen() {
    let freezes = |look: &Look| {
        let mut watched = Watched::new(None, look, Since::Before);
        let acts = watched.step(look);
        acts.iter().any(|act| matches!(act, Act::Freeze { .. }))
    };
    assert!(freezes(&idle_after(30, 30_000)));
    assert!(!freezes(&idle_after(29, 30_000)), "too early");
    assert!(!freezes(&look(3000)), "never asked for");
    let held = Look {
        held: true,
        ..idle_after(30, 30_000)
    };
    assert!(!freezes(&held), "a command runs or a client looks on");
    let mut frozen = idle_after(30, 30_000);
    frozen.usage.frozen = true;
    assert!(!freezes(&frozen), "frozen already");
}

#[test]
fn work_nobody_asked_for_keeps_a_box_awake() {
    let mut watched = Watched::new(None, &idle_after(0, 30_000), Since::Before);
    watched.step(&idle_after(0, 30_000));
    let after_two_seconds = |cpu_us: u64| {
        let mut seen = idle_after(2, 1_000);
        seen.usage.cpu_us = cpu_us;
        watched.clone().step(&seen)
    };
    assert_eq!(after_two_seconds(40_000), [Act::Beat], "2 % of a CPU");
    assert_eq!(after_two_seconds(39_000), [Act::Freeze { idle_ms: 2_000 }]);
}

#[test]
fn bytes_over_the_network_are_work() {
    let mut watched = Watched::new(None, &idle_after(0, 10_000), Since::Before);
    let mut moving = idle_after(20, 10_000);
    moving.moves_bytes = true;
    assert_eq!(watched.step(&moving), [Act::Beat]);
    // The control.
    let still = watched.step(&idle_after(22, 10_000));
    assert_eq!(still, [Act::Freeze { idle_ms: 22_000 }]);
}
