//! Acts carried out in a container: a user namespace below this process's own, with every capability
//! there, and whatever other namespaces are asked for.

use crate::namespaces;
use crate::outcome::Outcome;
use crate::words::{Usage, Words};
use std::ffi::CString;
use std::fs;
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};

/// How a child ends that could not make its namespaces, and one that could not run its program.
const NO_NAMESPACE: i32 = 125;
const NO_PROGRAM: i32 = 127;
const NETWORKS_MAX: usize = 1_000;

/// Runs a program in a container that has all ids this process has, and gives its code.
///
/// # Errors
/// Which step failed.
pub(crate) fn run(words: &[String]) -> Result<u8, String> {
    let usage = || "usage: box-probe within <kinds> <program> [arguments]".to_owned();
    let (kinds, command) = words.split_first().ok_or_else(usage)?;
    if command.is_empty() {
        return Err(usage());
    }
    let flags = namespaces::flags(kinds).map_err(|_| usage())? | libc::CLONE_NEWUSER;
    let command = command
        .iter()
        .map(|word| CString::new(word.as_str()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| usage())?;
    let failed = |what: &'static str| move |error: io::Error| format!("{what}: {error}");
    let mut child = Child::born(flags, |flags| become_program(flags, &command))
        .map_err(failed("no container could be made"))?;
    for map in ["uid_map", "gid_map"] {
        let ids = all_ids(map).map_err(failed("the own ids are not told"))?;
        child
            .map(map, &ids)
            .map_err(failed("the container was given no ids"))?;
    }
    child
        .go()
        .map_err(failed("the container could not be waited for"))
}

/// Maps ids into a namespace below, and lets it end.
pub(crate) fn map_ids(words: &Words) -> Result<Outcome, Usage> {
    let numbers: [u32; 3] = [words.number(0)?, words.number(1)?, words.number(2)?];
    let line = numbers.map(|number| number.to_string()).join(" ");
    // SAFETY: ends the child, which has nothing to do.
    let born = Child::born(libc::CLONE_NEWUSER, |_| unsafe { libc::_exit(0) });
    let mut child = match born {
        Ok(child) => child,
        Err(error) => {
            return Ok(Outcome::not_tried(format!(
                "no user namespace could be made: {error}"
            )));
        }
    };
    let mapped = child.map("uid_map", &line);
    drop(child.go());
    Ok(Outcome::of(mapped))
}

/// Networks of one's own until one more is refused; they go with this process.
pub(crate) fn networks(words: &Words) -> Result<Outcome, Usage> {
    let most = words.number::<usize>(0)?.min(NETWORKS_MAX);
    let mut held = Vec::new();
    let mut outcome = Outcome::ok();
    while held.len() < most {
        // SAFETY: a number; changes only this process.
        let made = unsafe { libc::unshare(libc::CLONE_NEWNET) };
        if made < 0 {
            outcome = Outcome::of_call(made.into());
            break;
        }
        match fs::File::open("/proc/self/ns/net") {
            Ok(network) => held.push(network),
            Err(error) => {
                outcome = Outcome::of(Err(error));
                break;
            }
        }
    }
    Ok(outcome.with(format!("{} networks", held.len())))
}

/// A process in namespaces of its own that has no ids yet, and waits.
struct Child {
    pid: libc::pid_t,
    go: PipeWriter,
}

impl Child {
    fn born(flags: i32, then: impl FnOnce(i32) -> i32) -> io::Result<Self> {
        let (mut ready, tell) = io::pipe()?;
        let (wait, go) = io::pipe()?;
        // SAFETY: this process has one thread.
        match unsafe { libc::fork() } {
            0 => {
                drop((ready, go));
                let code = in_namespaces(flags, (tell, wait), then);
                // SAFETY: ends the child without running anything of the parent's.
                unsafe { libc::_exit(code) }
            }
            pid if pid > 0 => {
                drop((tell, wait));
                let mut number = [0; 4];
                ready.read_exact(&mut number)?;
                match i32::from_ne_bytes(number) {
                    0 => Ok(Self { pid, go }),
                    errno => {
                        ended(pid);
                        Err(io::Error::from_raw_os_error(errno))
                    }
                }
            }
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn map(&self, file: &str, ids: &str) -> io::Result<()> {
        fs::write(format!("/proc/{}/{file}", self.pid), ids)
    }

    /// Lets it go on and waits for its end.
    fn go(&mut self) -> io::Result<u8> {
        self.go.write_all(&[1])?;
        Ok(ended(self.pid))
    }
}

fn in_namespaces(
    flags: i32,
    (mut tell, mut wait): (PipeWriter, PipeReader),
    then: impl FnOnce(i32) -> i32,
) -> i32 {
    // SAFETY: a number; changes only this process.
    let made = unsafe { libc::unshare(flags) };
    let errno = match made {
        0 => 0,
        _ => io::Error::last_os_error()
            .raw_os_error()
            .unwrap_or(libc::EIO),
    };
    let told = tell.write_all(&errno.to_ne_bytes());
    if errno != 0 || told.is_err() || wait.read_exact(&mut [0]).is_err() {
        return NO_NAMESPACE;
    }
    then(flags)
}

fn become_program(flags: i32, command: &[CString]) -> i32 {
    if flags & libc::CLONE_NEWNS != 0 {
        let nothing = std::ptr::null();
        // SAFETY: texts that end with zero; neither type nor data.
        let alone = unsafe {
            libc::mount(
                c"none".as_ptr(),
                c"/".as_ptr(),
                nothing,
                libc::MS_REC | libc::MS_PRIVATE,
                nothing.cast(),
            )
        };
        if alone != 0 {
            return NO_NAMESPACE;
        }
    }
    if flags & libc::CLONE_NEWPID != 0 {
        // SAFETY: this process has one thread; the child goes on below.
        match unsafe { libc::fork() } {
            0 => {}
            child if child > 0 => return ended(child).into(),
            _ => return NO_NAMESPACE,
        }
    }
    let mut words: Vec<*const libc::c_char> = command.iter().map(|word| word.as_ptr()).collect();
    words.push(std::ptr::null());
    // SAFETY: texts that end with zero, in a list that ends with a null pointer.
    unsafe { libc::execvp(words[0], words.as_ptr()) };
    NO_PROGRAM
}

/// The code of our own child, or 128+n for a signal.
fn ended(child: libc::pid_t) -> u8 {
    let mut status = 0;
    // SAFETY: waits for our own child; `status` takes an int.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    let code = if libc::WIFEXITED(status) {
        libc::WEXITSTATUS(status)
    } else {
        128 + libc::WTERMSIG(status)
    };
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// Every id this process knows, each as itself.
fn all_ids(map: &str) -> io::Result<String> {
    let own = fs::read_to_string(format!("/proc/self/{map}"))?;
    let rows = own.lines().filter_map(|row| {
        let mut words = row.split_whitespace();
        let (first, count) = (words.next()?, words.nth(1)?);
        Some(format!("{first} {first} {count}\n"))
    });
    Ok(rows.collect())
}
