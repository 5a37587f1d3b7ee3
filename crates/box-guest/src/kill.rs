//! Signals to more than one process: a session, or everything a durable process started.

use crate::launch::Refused;
use crate::system::{send_signal, signal_group};
use box_api::guest::{PROCESS_VARIABLE, ProcessName, Refusal};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::fs;

/// Looks at `/proc` this often at most before giving up on something that forks faster.
const ROUNDS_MAX: usize = 64;

/// One process as `/proc` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    pid: i32,
    parent: i32,
    session: i32,
    alive: bool,
}

/// A signal to the process group `leader` leads and to the rest of its session.
pub(crate) fn session(leader: i32, number: i32) -> Result<(), Refused> {
    let told = signal_group(leader, number);
    for seen in processes().filter(|seen| seen.alive && seen.session == leader) {
        // Those of the group have it already; a second SIGKILL is none, and other signals go once.
        let in_group = rustix::process::Pid::from_raw(seen.pid)
            .and_then(|pid| rustix::process::getpgid(Some(pid)).ok())
            .is_some_and(|group| group.as_raw_pid() == leader);
        if !in_group {
            let _ = send_signal(seen.pid, number);
        }
    }
    match told {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(Refused::new(
            Refusal::Failed,
            format!("could not signal the process: {error}"),
        )),
    }
}

/// SIGKILL to whatever a durable process is or started. `leader` is its pid while it has one.
pub(crate) fn everything(name: &ProcessName, leader: Option<i32>) -> Result<(), Refused> {
    // What was killed may be seen dying for a while; only something new needs another look.
    let mut killed = BTreeSet::new();
    for _ in 0..ROUNDS_MAX {
        let seen: Vec<Seen> = processes().collect();
        let family = leader
            .map(|leader| family(&seen, leader))
            .unwrap_or_default();
        let before = killed.len();
        for one in seen.iter().filter(|one| one.alive) {
            let belongs = family.contains(&one.pid) || carries(one.pid, name);
            let new = belongs && !killed.contains(&one.pid);
            if new && send_signal(one.pid, libc::SIGKILL).is_ok() {
                killed.insert(one.pid);
            }
        }
        if killed.len() == before {
            return Ok(());
        }
    }
    Err(Refused::new(
        Refusal::Failed,
        format!("could not kill everything of `{name}`: it starts processes faster than they end"),
    ))
}

/// The leader, its session, and every descendant of these.
fn family(seen: &[Seen], leader: i32) -> BTreeSet<i32> {
    let mut family: BTreeSet<i32> = seen
        .iter()
        .filter(|one| one.pid == leader || one.session == leader)
        .map(|one| one.pid)
        .collect();
    loop {
        let before = family.len();
        let children = seen.iter().filter(|one| family.contains(&one.parent));
        let children: Vec<i32> = children.map(|one| one.pid).collect();
        family.extend(children);
        if family.len() == before {
            return family;
        }
    }
}

/// Whether a process was started with the name of this durable process in its environment.
fn carries(pid: i32, name: &ProcessName) -> bool {
    let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else {
        return false;
    };
    let mark = format!("{PROCESS_VARIABLE}={name}");
    environment
        .split(|byte| *byte == 0)
        .any(|entry| entry == mark.as_bytes())
}

/// Every process but the guest itself; none where `/proc` is not there.
fn processes() -> impl Iterator<Item = Seen> {
    let own = rustix::process::getpid().as_raw_pid();
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(move |entry| {
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            if pid == own {
                return None;
            }
            parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)
        })
}

/// `proc_pid_stat(5)`: pid, name in brackets (with anything in it), state, parent, group, session.
fn parse(stat: &[u8]) -> Option<Seen> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let pid = stat.split(|byte| *byte == b' ').next()?;
    let rest = std::str::from_utf8(stat.get(name_end + 2..)?).ok()?;
    let mut fields = rest.split(' ');
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let session = fields.nth(1)?.parse().ok()?;
    let pid = std::str::from_utf8(pid).ok()?.parse().ok()?;
    Some(Seen {
        pid,
        parent,
        session,
        alive: !matches!(state, "Z" | "X"),
    })
}

#[cfg(test)]
mod tests {
    use super::{Seen, family, parse};

    #[test]
    fn a_hostile_process_name_does_not_confuse_the_parser() {
        let stat = b"42 (x) S 1 1 1 (y)) R 7 8 9 0 -1 4194304";
        let expected = Seen {
            pid: 42,
            parent: 7,
            session: 9,
            alive: true,
        };
        assert_eq!(parse(stat), Some(expected));
        assert_eq!(
            parse(b"42 (x) Z 7 8 9 0").map(|seen| seen.alive),
            Some(false)
        );
        for broken in [
            &b""[..],
            b"42",
            b"42 (x)",
            b"42 (x) R",
            b"x (x) R 1 2 3",
            b"42 (x) R a b c",
        ] {
            assert_eq!(parse(broken), None);
        }
    }

    #[test]
    fn a_family_reaches_through_new_sessions() {
        let seen = |pid, parent, session| Seen {
            pid,
            parent,
            session,
            alive: true,
        };
        let all = [
            seen(10, 1, 10),
            seen(12, 11, 11),
            seen(11, 10, 11),
            seen(13, 1, 10),
            seen(20, 1, 20),
        ];
        assert_eq!(
            family(&all, 10).into_iter().collect::<Vec<_>>(),
            [10, 11, 12, 13]
        );
    }
}
