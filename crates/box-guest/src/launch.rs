//! From a checked command to a running process: everything that needs memory is made before the
//! fork, and wiped after it.

use crate::arguments::User;
use crate::child;
use box_api::guest::{Command, PROCESS_VARIABLE, ProcessName, Refusal, TEXT_BYTES_MAX};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use std::ffi::{CString, c_char};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use zeroize::{Zeroize as _, Zeroizing};

/// Where programs are looked for when the environment has no `PATH`.
const PATH: &[u8] = b"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

type Variable<'a> = (&'a [u8], &'a [u8]);
/// What a terminal is when nobody says so.
const TERMINAL_KIND: Variable<'static> = (b"TERM", b"xterm-256color");

/// Starts processes.
#[derive(Debug)]
pub(crate) struct Launcher {
    /// The guest's own environment, which every process starts from.
    base: Vec<(Vec<u8>, Vec<u8>)>,
    user: Option<User>,
}

/// What a new process has as stdin, stdout and stderr.
#[derive(Debug)]
pub(crate) enum ChildStreams {
    Pipes {
        stdin: OwnedFd,
        stdout: OwnedFd,
        stderr: OwnedFd,
    },
    /// The inner side of a terminal, which becomes its controlling one.
    Terminal(OwnedFd),
}

/// A process that was forked. Whether its program runs is not known yet.
#[derive(Debug)]
pub(crate) struct Launched {
    pub(crate) pid: i32,
    pub(crate) starting: Starting,
}

/// Closed by the kernel when the program starts; carries the reason when it cannot.
#[derive(Debug)]
pub(crate) struct Starting(OwnedFd);

/// Why a program did not start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// 126 or 127.
    pub(crate) code: i32,
    pub(crate) text: String,
}

/// A request the guest turns down, as it is told to the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) why: Refusal,
    pub(crate) text: String,
}

impl Refused {
    pub(crate) fn new(why: Refusal, text: impl Into<String>) -> Self {
        Self {
            why,
            text: text.into(),
        }
    }

    /// A failed system call, by what running into it means for the asker.
    pub(crate) fn failed(what: &str, error: Errno) -> Self {
        match error {
            Errno::AGAIN => Self::new(
                Refusal::Limit,
                format!("could not {what}: the box has as many processes as its limit allows"),
            ),
            Errno::NOMEM => Self::new(
                Refusal::Limit,
                format!("could not {what}: the box has no memory left"),
            ),
            Errno::MFILE | Errno::NFILE => Self::new(
                Refusal::Limit,
                format!("could not {what}: the box's guest has too many files open"),
            ),
            _ => Self::new(Refusal::Failed, format!("could not {what}: {error}")),
        }
    }
}

impl Launcher {
    pub(crate) fn new(user: Option<User>) -> Self {
        let base = std::env::vars_os()
            .map(|(name, value)| (name.into_vec(), value.into_vec()))
            .collect();
        Self { base, user }
    }

    pub(crate) fn user(&self) -> Option<User> {
        self.user
    }

    /// Forks a process that runs `command`, and wipes the command.
    pub(crate) fn launch(
        &self,
        mut command: Command,
        process: Option<&ProcessName>,
        streams: &ChildStreams,
    ) -> Result<Launched, Refused> {
        let what = format!("run `{}`", shown(&command.arguments[0]));
        let default = match streams {
            ChildStreams::Terminal(_) => Some(TERMINAL_KIND),
            ChildStreams::Pipes { .. } => None,
        };
        let plan = self.plan(&command, process, default);
        for (_, value) in &mut command.variables {
            value.zeroize();
        }
        let (status, child_status) =
            pipe_with(PipeFlags::CLOEXEC).map_err(|error| Refused::failed(&what, error))?;
        crate::system::set_nonblocking(&status).map_err(|error| Refused::failed(&what, error))?;
        // SAFETY: this process has one thread, so no lock is held across the fork and the child
        // may do what it likes; it never returns from `child::run`.
        match unsafe { libc::fork() } {
            0 => child::run(&plan, streams, &child_status),
            pid if pid > 0 => Ok(Launched {
                pid,
                starting: Starting(status),
            }),
            _ => Err(Refused::failed(&what, crate::system::last_errno())),
        }
    }

    fn plan(
        &self,
        command: &Command,
        process: Option<&ProcessName>,
        default: Option<Variable<'_>>,
    ) -> Plan {
        let variables = self.variables(command, process, default);
        let path = variables
            .iter()
            .find(|(name, _)| *name == b"PATH")
            .map(|(_, value)| *value);
        let program = command.arguments[0].as_bytes();
        let entries: Vec<[&[u8]; 3]> = variables
            .iter()
            .map(|(name, value)| [*name, &b"="[..], *value])
            .collect();
        let words: Vec<[&[u8]; 1]> = command
            .arguments
            .iter()
            .map(|word| [word.as_bytes()])
            .collect();
        Plan {
            program: shown(&command.arguments[0]),
            candidates: candidates(program, path.unwrap_or(PATH)),
            arguments: Words::new(&words),
            variables: Words::new(&entries),
            folder: c_string(command.folder.as_bytes()),
            user: self.user,
        }
    }

    /// A default, the base, the request's own, what marks a durable process; the last of a name
    /// wins.
    fn variables<'a>(
        &'a self,
        command: &'a Command,
        process: Option<&'a ProcessName>,
        default: Option<Variable<'a>>,
    ) -> Vec<Variable<'a>> {
        let base = self
            .base
            .iter()
            .map(|(name, value)| (name.as_slice(), value.as_slice()));
        let own = command
            .variables
            .iter()
            .map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let mark = process.map(|name| (PROCESS_VARIABLE.as_bytes(), name.as_str().as_bytes()));
        let mut variables: Vec<Variable<'_>> = Vec::new();
        for (name, value) in default.into_iter().chain(base).chain(own).chain(mark) {
            match variables.iter_mut().find(|(known, _)| *known == name) {
                Some(entry) => entry.1 = value,
                None => variables.push((name, value)),
            }
        }
        variables
    }
}

impl Starting {
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// What became of it: `None` while that is open.
    pub(crate) fn outcome(&self) -> Option<Result<(), Failure>> {
        let mut bytes = [0; TEXT_BYTES_MAX];
        match rustix::io::read(&self.0, &mut bytes) {
            Err(Errno::AGAIN | Errno::INTR) => None,
            Ok(0) | Err(_) => Some(Ok(())),
            Ok(count) => Some(Err(Failure {
                code: i32::from(bytes[0]),
                text: String::from_utf8_lossy(&bytes[1..count]).into_owned(),
            })),
        }
    }
}

impl Failure {
    pub(crate) fn refused(self) -> Refused {
        let why = if self.code == 127 {
            Refusal::NoProgram
        } else {
            Refusal::CannotRun
        };
        Refused::new(why, self.text)
    }
}

/// Everything the child needs, made before the fork.
#[derive(Debug)]
pub(crate) struct Plan {
    /// As it is told when it does not start.
    pub(crate) program: String,
    /// Paths to try, in order.
    pub(crate) candidates: Vec<CString>,
    pub(crate) arguments: Words,
    pub(crate) variables: Words,
    pub(crate) folder: CString,
    pub(crate) user: Option<User>,
}

/// Zero-ended words in one piece of memory, wiped when dropped.
pub(crate) struct Words {
    bytes: Zeroizing<Vec<u8>>,
    starts: Vec<usize>,
}

impl std::fmt::Debug for Words {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Words({}, not shown)", self.starts.len())
    }
}

impl Words {
    fn new<const N: usize>(words: &[[&[u8]; N]]) -> Self {
        let length = words.iter().flatten().map(|part| part.len()).sum::<usize>() + words.len();
        // Once and whole: a growing vector would leave copies behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(length));
        let mut starts = Vec::with_capacity(words.len());
        for word in words {
            starts.push(bytes.len());
            for part in word {
                bytes.extend_from_slice(part);
            }
            bytes.push(0);
        }
        Self { bytes, starts }
    }

    /// As execve(2) wants them; valid as long as `self`.
    pub(crate) fn pointers(&self) -> Vec<*const c_char> {
        let words = self
            .starts
            .iter()
            .map(|start| self.bytes[*start..].as_ptr().cast());
        words.chain([std::ptr::null()]).collect()
    }
}

/// Where a program may be: itself if it names a place, else each folder of `path`.
fn candidates(program: &[u8], path: &[u8]) -> Vec<CString> {
    if program.contains(&b'/') {
        return vec![c_string(program)];
    }
    path.split(|byte| *byte == b':')
        // An empty entry would mean the current folder, which the agent writes to.
        .filter(|folder| !folder.is_empty())
        .map(|folder| c_string(&[folder, b"/", program].concat()))
        .collect()
}

/// Texts of a checked command hold no zero byte; one that did would end there.
fn c_string(bytes: &[u8]) -> CString {
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    CString::new(&bytes[..end]).unwrap_or_default()
}

/// A program's name, short enough for one line.
fn shown(program: &str) -> String {
    const CHARS_MAX: usize = 200;
    program
        .chars()
        .filter(|c| !c.is_control())
        .take(CHARS_MAX)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Launcher, Words, candidates};
    use box_api::guest::{Command, ProcessName};

    #[test]
    fn a_program_is_looked_for_in_every_folder_but_the_current_one() {
        let found = |program: &str, path: &str| -> Vec<String> {
            let found = candidates(program.as_bytes(), path.as_bytes());
            found
                .into_iter()
                .map(|path| path.into_string().unwrap())
                .collect()
        };
        assert_eq!(found("a", "/x:/y"), ["/x/a", "/y/a"]);
        assert_eq!(found("a", ":/x::"), ["/x/a"]);
        assert_eq!(found("./a", "/x"), ["./a"]);
    }

    #[test]
    fn the_last_variable_of_a_name_wins_and_the_mark_wins_over_all() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let launcher = Launcher {
            base: vec![(b"A".to_vec(), b"base".to_vec())],
            user: None,
        };
        let command = Command {
            arguments: vec!["x".to_owned()],
            folder: "/".to_owned(),
            variables: vec![
                pair("A", "own"),
                pair("BOX_PROCESS", "forged"),
                pair("TERM", "dumb"),
            ],
        };
        let name = ProcessName::parse("agent").unwrap();
        let mut variables = launcher.variables(&command, Some(&name), Some(super::TERMINAL_KIND));
        variables.sort_unstable();
        let expected: [(&[u8], &[u8]); 3] = [
            (b"A", b"own"),
            (b"BOX_PROCESS", b"agent"),
            (b"TERM", b"dumb"),
        ];
        assert_eq!(variables, expected);
    }

    #[test]
    fn words_are_ended_by_zero_and_not_shown() {
        let words = Words::new(&[[&b"A"[..], b"=", b"s3cret"], [b"B", b"=", b""]]);
        assert_eq!(words.bytes.as_slice(), b"A=s3cret\0B=\0");
        assert_eq!(words.pointers().len(), 3);
        assert!(!format!("{words:?}").contains("s3cret"));
    }
}
