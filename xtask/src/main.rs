//! House work, one file a verb: `cargo xtask test`.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool of the house"
)]

mod run;
mod test;

use std::process::ExitCode;

const HELP: &str = "\
House work.

  cargo xtask test [part]          set up what the tests need, then run them
                                   parts: house unit
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["test"] => test::all(),
        ["test", part] => test::part(part),
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
