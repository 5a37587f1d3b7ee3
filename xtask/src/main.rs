//! House work, one file a verb: `cargo xtask test`, `cargo xtask bench`, `cargo xtask security`.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool of the house"
)]

mod bench;
mod run;
mod security;
mod test;

use std::process::ExitCode;

const HELP: &str = "\
House work.

  cargo xtask test [part]          set up what the tests need, then run them
                                   parts: house unit engines agents drill
  cargo xtask bench <name> [--json] measure beside the named peers: start exec
  cargo xtask security [--check]   run the drill and copy its table into SECURITY.md
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["test"] => test::all(),
        ["test", part] => test::part(part),
        ["bench", name] => bench::run(name, bench::Form::Table),
        ["bench", name, "--json"] => bench::run(name, bench::Form::Json),
        ["security"] => security::write(),
        ["security", "--check"] => security::check(),
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
