//! Mixed traffic of many boxes for a long time, with servers that stall, reset and lie: box-egress
//! must not grow, and no byte may be lost. Run by `cargo xtask soak`.
#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    dead_code,
    reason = "a soak that cannot go on ends; the stage it shares with the tests has more than it needs"
)]

#[path = "soak/acts.rs"]
mod acts;
#[path = "../tests/egress/client.rs"]
mod client;
#[path = "../tests/egress/host.rs"]
mod host;
#[path = "../tests/egress/inside.rs"]
mod inside;
#[path = "egress/origin.rs"]
mod origin;
#[path = "egress/process.rs"]
mod process;
#[path = "soak/servers.rs"]
mod servers;
#[path = "soak/watch.rs"]
mod watch;
#[path = "../tests/egress/world.rs"]
mod world;

use acts::Tally;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use watch::Watch;
use world::{PLACEHOLDER_A, World, allow, bound};

/// Boxes, each with so many programs at a time: as much as 200 ordinary ones do.
const BOXES: usize = 40;
const LOOK_EVERY: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == origin::WORD) {
        origin::serve();
        return ExitCode::SUCCESS;
    }
    let minutes = words
        .iter()
        .find_map(|word| word.parse().ok())
        .unwrap_or(30);
    let mut world = World::start();
    let mut steady = Command::new(std::env::current_exe().unwrap());
    steady.arg(origin::WORD);
    let mut steady = world.rig.start(steady).unwrap();
    let listed = servers::set(&world.rig);
    let listed: Vec<&str> = listed.iter().map(String::as_str).collect();
    let tally = Arc::new(Tally::default());
    let over = Arc::new(AtomicBool::new(false));
    let boxes: Vec<_> = (0..BOXES)
        .map(|number| {
            // Only one box may hold a placeholder; the others have none.
            let bindings = if number == 0 {
                bound(PLACEHOLDER_A)
            } else {
                Vec::new()
            };
            let inside = world.new_box(allow(&listed), bindings);
            let (tally, over) = (Arc::clone(&tally), Arc::clone(&over));
            let program = move || {
                let go_on = |_: &u64| !over.load(Ordering::Relaxed);
                for turn in (0..).take_while(go_on) {
                    let (tally, seed) = (Arc::clone(&tally), (number as u64) << 32 | turn);
                    inside.run(move |client| acts::some(client, tally, seed));
                }
            };
            std::thread::spawn(program)
        })
        .collect();
    let mut watch = Watch::new(world.egress.id());
    let end = Instant::now() + Duration::from_secs(60 * minutes);
    while Instant::now() < end {
        std::thread::sleep(LOOK_EVERY);
        // Also takes what box-egress tells, as the host does.
        world.host.call(box_api::egress::Request::Status);
        watch.look();
    }
    over.store(true, Ordering::Relaxed);
    let broken = boxes
        .into_iter()
        .map(std::thread::JoinHandle::join)
        .filter(Result::is_err)
        .count();
    drop(steady.kill());
    drop(steady.wait());
    let verdict = watch.verdict(&tally, broken);
    println!("{}", verdict.line);
    if verdict.is_good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
