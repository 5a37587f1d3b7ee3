//! The `box` command: CLI, host and way out in one executable.

mod acp;
mod age;
mod archive;
mod child;
mod client;
mod complaint;
mod copying;
mod git;
mod here;
mod host;
mod identity;
mod inside;
mod json;
mod output;
mod pump;
mod runtimes;
mod signals;
mod terminal;
mod transcript;
mod turn;
mod verbs;

fn main() -> std::process::ExitCode {
    verbs::main()
}
