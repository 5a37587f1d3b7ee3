//! The `box` command: CLI, host and way out in one executable.

mod age;
mod child;
mod client;
mod complaint;
mod host;
mod identity;
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
