//! Ranges of ids: those a process has (`user_namespaces(7)`), and those a user may have (subuid(5)).

use crate::launch::IDS;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// Largest file or output read, bytes.
const TEXT_BYTES_MAX: u64 = 4 << 20;
const EVERYTHING: u32 = u32::MAX;

/// One line of `uid_map` or `gid_map`: `count` ids from `inside` on are those from `outside` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Extent {
    inside: u32,
    outside: u32,
    count: u32,
}

/// How a user namespace's ids are called in the one around it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct IdMap(Vec<Extent>);

impl IdMap {
    pub(super) fn of_this_process(file: &str) -> io::Result<Self> {
        let text = std::fs::read_to_string(Path::new("/proc/self").join(file))?;
        Ok(Self::parse(&text))
    }

    fn parse(text: &str) -> Self {
        let extent = |line: &str| {
            let mut numbers = line.split_whitespace().map(str::parse);
            let mut next = || numbers.next()?.ok();
            Some(Extent {
                inside: next()?,
                outside: next()?,
                count: next()?,
            })
        };
        Self(text.lines().filter_map(extent).collect())
    }

    /// The namespace every process begins in.
    pub(super) fn is_everything(&self) -> bool {
        let all = Extent {
            inside: 0,
            outside: 0,
            count: EVERYTHING,
        };
        self.0 == [all]
    }

    /// Whether 0 to `below` - 1 are ids here.
    pub(super) fn covers(&self, below: u32) -> bool {
        let mut next = 0;
        while next < below {
            let holds =
                |extent: &&Extent| extent.inside <= next && next - extent.inside < extent.count;
            let Some(extent) = self.0.iter().find(holds) else {
                return false;
            };
            next = extent.inside.saturating_add(extent.count);
        }
        true
    }

    /// What an id is called outside; one that is not ours stays as it is.
    pub(super) fn outside(&self, id: u32) -> u32 {
        let translate = |extent: &Extent| {
            let above = id.checked_sub(extent.inside)?;
            (above < extent.count).then(|| extent.outside.saturating_add(above))
        };
        self.0.iter().find_map(translate).unwrap_or(id)
    }
}

/// The first subordinate ids of a user, 65,536 of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ranges {
    pub(super) uids: u32,
    pub(super) gids: u32,
}

impl Ranges {
    /// What /etc/subuid and /etc/subgid say, else what the name service says (getsubids(1)). `None`
    /// when the user has too few.
    pub(super) fn of_user(uid: u32) -> Option<Self> {
        let name = name_of(uid)?;
        let first = |path: &str, options: &[&str]| {
            let listed = read(path).and_then(|text| listed(&text, &name, uid));
            listed.or_else(|| asked(&said("getsubids", &[options, &[name.as_str()]].concat())?))
        };
        Some(Self {
            uids: first("/etc/subuid", &[])?,
            gids: first("/etc/subgid", &["-g"])?,
        })
    }
}

/// `name:first:count`, or the number in place of the name.
fn listed(text: &str, name: &str, uid: u32) -> Option<u32> {
    let number = uid.to_string();
    text.lines().find_map(|line| {
        let mut fields = line.trim().split(':');
        let whose = fields.next()?;
        let (first, count) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        (whose == name || whose == number).then_some(())?;
        enough(first, count)
    })
}

/// `0: name first count`
fn asked(text: &str) -> Option<u32> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip(2);
        enough(words.next()?.parse().ok()?, words.next()?.parse().ok()?)
    })
}

fn enough(first: u32, count: u32) -> Option<u32> {
    (count >= IDS && first.checked_add(IDS).is_some()).then_some(first)
}

fn name_of(uid: u32) -> Option<String> {
    let users = read("/etc/passwd").unwrap_or_default();
    let number = uid.to_string();
    let known = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == number).then(|| name.to_owned())
    });
    known.or_else(|| Some(said("id", &["-un", &number])?.trim().to_owned()))
}

fn read(path: &str) -> Option<String> {
    let length = std::fs::metadata(path).ok()?.len();
    (length <= TEXT_BYTES_MAX).then(|| std::fs::read_to_string(path).ok())?
}

/// What a small program of the distribution prints. The process has one thread yet, so nobody else
/// waits for it.
#[expect(
    clippy::disallowed_methods,
    reason = "the user's name and ids, where only the name service knows them"
)]
fn said(program: &str, words: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    command
        .args(words)
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    let output = command.output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_are_read_as_the_kernel_writes_them() {
        let all = IdMap::parse("         0          0 4294967295\n");
        assert!(all.is_everything() && all.covers(65_535));
        let ours = IdMap::parse("0 100000 65536\n65536 1500 1\n");
        assert!(!ours.is_everything());
        assert!(ours.covers(65_535) && ours.covers(65_537) && !ours.covers(65_538));
        assert_eq!(ours.outside(1020), 101_020);
        assert_eq!(ours.outside(65_536), 1500);
        assert_eq!(ours.outside(70_000), 70_000);
        let split = IdMap::parse("0 1500 1\n1 100000 65535\n");
        assert!(split.covers(65_535) && !IdMap::parse("1500 1500 1").covers(1));
    }

    #[test]
    fn only_a_whole_range_of_the_user_counts() {
        let text = "other:100000:65536\nme:165536:1000\n1500:200000:65536\nme:300000:65536\n";
        assert_eq!(listed(text, "me", 1500), Some(200_000));
        assert_eq!(listed(text, "me", 7), Some(300_000));
        assert_eq!(listed(text, "nobody", 7), None);
        assert_eq!(listed("me:4294910000:65537", "me", 7), None);
        assert_eq!(
            asked("0: me 165536 1000\n1: me 231072 65536\n"),
            Some(231_072)
        );
        assert_eq!(asked("Error fetching ranges"), None);
    }
}
