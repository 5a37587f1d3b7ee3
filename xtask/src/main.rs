//! House work, one file a verb: `cargo xtask test`, `cargo xtask bench`, `cargo xtask security`.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool of the house"
)]

mod bench;
mod chaos;
mod checkers;
mod dist;
mod faults;
mod fuzz;
mod run;
mod security;
mod soak;
mod test;

use std::process::ExitCode;

const HELP: &str = "\
House work.

  cargo xtask test [part]          set up what the tests need, then run them
                                   parts: house unit engines agents drill browser; by name alone:
                                   hosts chaos clients clients-heavy, agents --all
  cargo xtask clients --write      write docs/clients.md from what the clients' parts found
  cargo xtask bench <name> [--json] measure beside the named peers: start exec
                                   clone snapshot image egress
  cargo xtask chaos --cuts N [--seed S] kill the host in mid-verb, then look for losses and left-overs
  cargo xtask faults decisions --runs N [--seed S] decisions under kills and cuts: lost, doubled, gaps
  cargo xtask fuzz --minutes N [--seed S] each fuzz target of box-egress for so long
  cargo xtask soak --minutes N      mixed traffic of many boxes: memory stays flat, no byte is lost
  cargo xtask security [--check]   run the drill and copy its table into SECURITY.md
  cargo xtask security --checkers  run public checkers in boxes; what they say is in target/checkers
  cargo xtask dist [--debug]       make the release archive and its checksum
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["test"] => test::all(),
        ["test", part] => test::part(part),
        ["test", "agents", "--all"] => test::part("agents --all"),
        ["bench", name] => bench::run(name, bench::Form::Table),
        ["bench", name, "--json"] => bench::run(name, bench::Form::Json),
        ["clients", "--write"] => test::clients::write(),
        ["dist"] => dist::make(dist::Kind::Release),
        ["dist", "--debug"] => dist::make(dist::Kind::Debug),
        ["chaos", rest @ ..] => chaos::Plan::parse(rest).and_then(chaos::run),
        ["faults", rest @ ..] => faults::Plan::parse(rest).and_then(faults::run),
        ["fuzz", rest @ ..] => fuzz::Plan::parse(rest).and_then(fuzz::run),
        ["soak", rest @ ..] => soak::parse(rest).and_then(soak::run),
        ["security"] => security::write(),
        ["security", "--check"] => security::check(),
        ["security", "--checkers"] => checkers::run(),
        _ => {
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
