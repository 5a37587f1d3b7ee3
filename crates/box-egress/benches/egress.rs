//! The way out beside squid, tinyproxy and mitmproxy: tunnels, connections, intercepted requests,
//! memory. Every contestant has the same client, the same cable and the same servers, in turn within
//! each round. Run by `cargo xtask bench egress`, which sets the peers up.
#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    dead_code,
    reason = "a bench that cannot go on ends; the stage it shares with the tests has more than it needs"
)]

#[path = "../tests/egress/client.rs"]
mod client;
#[path = "../tests/egress/host.rs"]
mod host;
#[path = "../tests/egress/inside.rs"]
mod inside;
#[path = "egress/load.rs"]
mod load;
#[path = "egress/origin.rs"]
mod origin;
#[path = "egress/peers.rs"]
mod peers;
#[path = "egress/process.rs"]
mod process;
#[path = "egress/rows.rs"]
mod rows;
#[path = "egress/stage.rs"]
mod stage;
#[path = "../tests/egress/world.rs"]
mod world;

use stage::Stage;

const ROUNDS: usize = 5;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == origin::WORD) {
        origin::serve();
        return;
    }
    let stage = Stage::set();
    let mut rows = rows::Rows::default();
    // The first round warms names and caches up and is not counted.
    for round in 0..=ROUNDS {
        for number in 0..stage.contestants.len() {
            let found = stage.measure(number);
            if round > 0 {
                rows.add(stage.contestants[number].name, &found);
            }
        }
    }
    for number in 0..stage.contestants.len() {
        let idle = stage.idle(number);
        rows.add(stage.contestants[number].name, &idle);
    }
    if words.iter().any(|word| word == "--json") {
        rows.print_json();
    } else {
        rows.print_table();
    }
}
