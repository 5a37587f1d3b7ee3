//! Named places where a test may cut a verb short, as a crash would.
//!
//! `BOX_FAULT=snapshot.copied` kills the process that comes by [`point`]`("snapshot.copied")`, at
//! once and without a word: no destructor runs, nothing is flushed. `BOX_FAULT=snapshot.copied:3`
//! lets it pass twice. Children inherit the variable and count for themselves. A release build has
//! none of this; the points of a build are what `fault::point("` finds in its source.

#[cfg(debug_assertions)]
pub use armed::point;

/// Does nothing: this is a release build.
#[cfg(not(debug_assertions))]
#[inline]
pub fn point(_name: &'static str) {}

#[cfg(debug_assertions)]
mod armed {
    use rustix::process::{Signal, getpid, kill_process};
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    const VARIABLE: &str = "BOX_FAULT";

    #[derive(Debug, PartialEq, Eq)]
    pub(super) struct Fault {
        pub(super) name: String,
        /// Counted from 1.
        pub(super) at: u32,
    }

    static FAULT: OnceLock<Option<Fault>> = OnceLock::new();
    static PASSED: AtomicU32 = AtomicU32::new(0);

    /// Ends this process by SIGKILL if the point is the one that was asked for.
    pub fn point(name: &'static str) {
        let fault = FAULT.get_or_init(|| std::env::var(VARIABLE).ok().as_deref().and_then(parse));
        let Some(fault) = fault.as_ref().filter(|fault| fault.name == name) else {
            return;
        };
        if PASSED.fetch_add(1, Ordering::Relaxed) + 1 == fault.at {
            // A process may always signal itself; the loop ends with it.
            while kill_process(getpid(), Signal::KILL).is_ok() {
                std::thread::yield_now();
            }
        }
    }

    pub(super) fn parse(text: &str) -> Option<Fault> {
        let (name, at) = match text.rsplit_once(':') {
            Some((name, at)) => (name, at.parse().ok().filter(|at| *at > 0)?),
            None => (text, 1),
        };
        (!name.is_empty()).then(|| Fault {
            name: name.to_owned(),
            at,
        })
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::armed::{Fault, parse};

    #[test]
    fn a_fault_is_a_name_and_how_often_it_is_passed() {
        let fault = |name: &str, at| {
            let name = name.to_owned();
            Some(Fault { name, at })
        };
        assert_eq!(parse("snapshot.copied"), fault("snapshot.copied", 1));
        assert_eq!(parse("snapshot.copied:3"), fault("snapshot.copied", 3));
        for bad in ["", ":1", "a:0", "a:x"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_process_without_a_fault_passes_every_point() {
        super::point("nowhere");
    }
}
