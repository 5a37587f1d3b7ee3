//! box-tool: does inside a box what its owner asks for from outside, as the box's own user.
//!
//! Started by exec, so every path means what it means in the box, and no link leads out of it. It
//! needs nothing an image may lack.
//!
//! | Call | Does |
//! | --- | --- |
//! | `box-tool pack <path>` | standard output: the stream of `box_copy` |
//! | `box-tool pack --plain <path>` | standard output: a tar, its entries below the path's name |
//! | `box-tool unpack <path> <name> [--content]` | standard input: the stream of `box_copy`, put to `path` by its rules |
//! | `box-tool unpack --plain <folder>` | standard input: a tar, unpacked below a folder that is there |
//! | `box-tool dial <port>` | relays standard input and output to a port of the box's loopback |
//! | `box-tool ps` | standard output: every process, a JSON object a line |
//!
//! Ends with 0 done, 1 went wrong (the reason is one line on standard error), 2 a wrong call.

mod dial;
mod pack;
mod ps;
mod unpack;

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

/// How one of them ends: nothing, or a line that says why not.
type Ended = Result<(), String>;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let words: Vec<&OsStr> = words.iter().map(OsString::as_os_str).collect();
    let known: Vec<Option<&str>> = words.iter().map(|word| word.to_str()).collect();
    let path = |at: usize| Path::new(words[at]);
    let ended = match known.as_slice() {
        [Some("pack"), Some("--plain"), _] => pack::plain(path(2)),
        [Some("pack"), _] => pack::stream(path(1)),
        [Some("unpack"), Some("--plain"), _] => unpack::plain(path(2)),
        [Some("unpack"), _, Some(name)] => unpack::stream(path(1), name, unpack::Whole::Yes),
        [Some("unpack"), _, Some(name), Some("--content")] => {
            unpack::stream(path(1), name, unpack::Whole::ContentOnly)
        }
        [Some("dial"), Some(port)] => match port.parse() {
            Ok(port) => dial::relay(port),
            Err(_) => return usage(),
        },
        [Some("ps")] => ps::list(),
        _ => return usage(),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            say(&why);
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    say("usage: box-tool pack|unpack|dial|ps …");
    ExitCode::from(2)
}

/// One line on standard error. Nobody is left to tell when it cannot be written.
fn say(text: &str) {
    drop(writeln!(std::io::stderr(), "box-tool: {text}"));
}

/// An error with its causes, in one line.
fn told(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
