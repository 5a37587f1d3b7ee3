//! What the host and the spawner say to each other: one datagram of fixed size each way, with file
//! descriptors beside it (unix(7), `SCM_RIGHTS`). No path of the host is ever in one.

mod field;

use crate::cgroup::Motion;
use crate::launch::IDS;
use box_api::BoxId;
use box_api::control::{Limits, Profile};
use box_runtime::{Ended, Nesting, Placing};
use field::{Reader, Writer, malformed};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    self, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;

/// Size of a request and of an answer.
pub(crate) const MESSAGE_BYTES: usize = 16 << 10;
/// Mounts and placed files of one box together.
pub(crate) const TARGETS_MAX: usize = 48;
/// Longest path inside a box that is mounted over.
pub(crate) const TARGET_BYTES_MAX: usize = 240;
/// Longest host name (`HOST_NAME_MAX` of sethostname(2) is 64).
pub(crate) const HOST_NAME_BYTES_MAX: usize = 63;
/// Descriptors beside one message; the kernel's own limit is 253 (`SCM_MAX_FD`).
pub(crate) const DESCRIPTORS_MAX: usize = 64;
/// First id of the first box's range; box-egress and people are below.
pub(crate) const FIRST_ID: u32 = 2_000_000_000;
/// Longest text of a failure.
const TEXT_BYTES_MAX: usize = 1 << 10;

/// What the host wants.
#[derive(Debug)]
pub(crate) enum Request {
    Start(Box<Start>),
    /// A box is begun ahead, for a later `Start` with this id, or for `Forget`.
    Spare {
        id: BoxId,
    },
    /// The sockets of a running box once more.
    Reopen {
        id: BoxId,
        pidfd: OwnedFd,
    },
    /// The box is gone: remove what the spawner made for it outside the box.
    Forget {
        id: BoxId,
    },
    /// Other limits for a box that runs.
    Limit {
        id: BoxId,
        limits: Limits,
    },
    /// The box is to stand still, or to go on. Answered once the kernel is told.
    Put {
        id: BoxId,
        motion: Motion,
        /// Its first process, for boxes without a cgroup.
        pidfd: OwnedFd,
    },
    /// How a box ended whose end the spawner saw.
    Last {
        id: BoxId,
    },
}

/// Everything a box is started from.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) id: BoxId,
    pub(crate) host_name: String,
    pub(crate) profile: Profile,
    pub(crate) nesting: Nesting,
    pub(crate) limits: Limits,
    pub(crate) id_offset: u32,
    pub(crate) given: Given,
    /// Read-only trees, then single files: what is shown and where.
    pub(crate) mounts: Vec<Shown>,
    pub(crate) files: Vec<Shown>,
}

/// Descriptors every start needs.
#[derive(Debug)]
pub(crate) struct Given {
    /// Root of the unpacked image.
    pub(crate) image: OwnedFd,
    /// The box's folder, with `workspace`, `home`, `upper`, `work`.
    pub(crate) folder: OwnedFd,
    /// Our static programs.
    pub(crate) programs: OwnedFd,
    /// box-guest itself, for exec.
    pub(crate) guest: OwnedFd,
    /// The socket box-guest accepts on.
    pub(crate) guest_socket: OwnedFd,
    /// `NAME=value`, each with a zero after it.
    pub(crate) environment: OwnedFd,
    /// An empty file to be filled with who the box's pid 1 is.
    pub(crate) record: OwnedFd,
}

const GIVEN: usize = 7;

/// Something of the host shown in the box at `target`, an absolute path.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) source: OwnedFd,
    pub(crate) target: String,
    /// How a file is put there; a tree always is.
    pub(crate) placing: Placing,
}

/// What the spawner says.
#[derive(Debug)]
pub(crate) enum Answer {
    /// Descriptors: pidfd, then the sockets in the order of `Listeners`.
    Started {
        pid: u32,
    },
    Reopened,
    Forgotten,
    /// Of `Limit`, `Put` and `Spare`.
    Done,
    /// Of `Last`; absent when the spawner saw no end of that box.
    Last {
        ended: Option<Ended>,
    },
    Failed {
        text: String,
    },
}

const KIND_START: u32 = 1;
const KIND_REOPEN: u32 = 2;
const KIND_FORGET: u32 = 3;
const KIND_FAILED: u32 = 4;
const KIND_LIMIT: u32 = 5;
const KIND_PUT: u32 = 6;
const KIND_LAST: u32 = 7;
const KIND_SPARE: u32 = 8;

/// The beginning of a request about a box.
fn of_box(serial: u64, kind: u32, id: &BoxId) -> Writer {
    let mut writer = Writer::new(serial, kind);
    writer.text(id.as_str());
    writer
}

impl Request {
    /// The datagram, and the descriptors that go beside it.
    pub(crate) fn encode(&self, serial: u64) -> io::Result<(Vec<u8>, Vec<BorrowedFd<'_>>)> {
        match self {
            Self::Start(start) => Ok((start.encode(serial)?, start.descriptors())),
            Self::Reopen { id, pidfd } => {
                let writer = of_box(serial, KIND_REOPEN, id);
                Ok((writer.finish()?, vec![pidfd.as_fd()]))
            }
            Self::Spare { id } => Ok((of_box(serial, KIND_SPARE, id).finish()?, Vec::new())),
            Self::Forget { id } => Ok((of_box(serial, KIND_FORGET, id).finish()?, Vec::new())),
            Self::Last { id } => Ok((of_box(serial, KIND_LAST, id).finish()?, Vec::new())),
            Self::Limit { id, limits } => {
                let mut writer = of_box(serial, KIND_LIMIT, id);
                writer.limits(limits);
                Ok((writer.finish()?, Vec::new()))
            }
            Self::Put { id, motion, pidfd } => {
                let mut writer = of_box(serial, KIND_PUT, id);
                writer.number(match motion {
                    Motion::Frozen => 0,
                    Motion::Thawed => 1,
                });
                Ok((writer.finish()?, vec![pidfd.as_fd()]))
            }
        }
    }

    /// The serial is told even when the rest makes no sense, so that it can be answered.
    pub(crate) fn decode(bytes: &[u8], descriptors: Vec<OwnedFd>) -> (u64, io::Result<Self>) {
        let mut reader = Reader(bytes);
        let serial = reader.number64().unwrap_or(0);
        (serial, Self::decode_rest(reader, descriptors))
    }

    fn decode_rest(mut reader: Reader<'_>, descriptors: Vec<OwnedFd>) -> io::Result<Self> {
        let mut descriptors = descriptors.into_iter();
        let request = match reader.number()? {
            KIND_START => Self::Start(Box::new(Start::decode(&mut reader, &mut descriptors)?)),
            KIND_REOPEN => Self::Reopen {
                id: reader.id()?,
                pidfd: descriptors.next().ok_or_else(|| malformed("no pidfd"))?,
            },
            KIND_SPARE => Self::Spare { id: reader.id()? },
            KIND_FORGET => Self::Forget { id: reader.id()? },
            KIND_LAST => Self::Last { id: reader.id()? },
            KIND_LIMIT => Self::Limit {
                id: reader.id()?,
                limits: reader.limits()?,
            },
            KIND_PUT => Self::Put {
                id: reader.id()?,
                motion: match reader.number()? {
                    0 => Motion::Frozen,
                    1 => Motion::Thawed,
                    _ => return Err(malformed("no such motion")),
                },
                pidfd: descriptors.next().ok_or_else(|| malformed("no pidfd"))?,
            },
            _ => return Err(malformed("unknown kind")),
        };
        if descriptors.next().is_some() {
            return Err(malformed("descriptors left over"));
        }
        Ok(request)
    }
}

impl Start {
    pub(crate) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let given = &self.given;
        let fixed: [&OwnedFd; GIVEN] = [
            &given.image,
            &given.folder,
            &given.programs,
            &given.guest,
            &given.guest_socket,
            &given.environment,
            &given.record,
        ];
        let shown = self
            .mounts
            .iter()
            .chain(&self.files)
            .map(|shown| shown.source.as_fd());
        fixed.into_iter().map(AsFd::as_fd).chain(shown).collect()
    }

    pub(crate) fn encode(&self, serial: u64) -> io::Result<Vec<u8>> {
        let mut writer = Writer::new(serial, KIND_START);
        writer.text(self.id.as_str());
        writer.text(&self.host_name);
        writer.number(match self.profile {
            Profile::Locked => 0,
            Profile::Root => 1,
        });
        writer.number(match self.nesting {
            Nesting::Refused => 0,
            Nesting::Allowed => 1,
        });
        writer.number(self.id_offset);
        writer.limits(&self.limits);
        for list in [&self.mounts, &self.files] {
            writer.number(u32::try_from(list.len()).unwrap_or(u32::MAX));
            for shown in list {
                writer.text(&shown.target);
                writer.number(match shown.placing {
                    Placing::Always => 0,
                    Placing::WhereThere => 1,
                    Placing::Trusted => 2,
                    Placing::Copied => 3,
                });
            }
        }
        writer.finish()
    }

    fn decode(
        reader: &mut Reader<'_>,
        descriptors: &mut impl Iterator<Item = OwnedFd>,
    ) -> io::Result<Self> {
        let id = reader.id()?;
        let host_name = checked_host_name(reader.text(HOST_NAME_BYTES_MAX)?)?;
        let profile = match reader.number()? {
            0 => Profile::Locked,
            1 => Profile::Root,
            _ => return Err(malformed("no such profile")),
        };
        let nesting = match reader.number()? {
            0 => Nesting::Refused,
            1 => Nesting::Allowed,
            _ => return Err(malformed("no such nesting")),
        };
        let id_offset = checked_offset(reader.number()?)?;
        let limits = reader.limits()?;
        let mut next = || {
            descriptors
                .next()
                .ok_or_else(|| malformed("too few descriptors"))
        };
        let given = Given {
            image: next()?,
            folder: next()?,
            programs: next()?,
            guest: next()?,
            guest_socket: next()?,
            environment: next()?,
            record: next()?,
        };
        let mut list = || -> io::Result<Vec<Shown>> {
            let count = reader.count(TARGETS_MAX)?;
            let shown = |_| {
                let target = checked_target(reader.text(TARGET_BYTES_MAX)?)?;
                let placing = match reader.number()? {
                    0 => Placing::Always,
                    1 => Placing::WhereThere,
                    2 => Placing::Trusted,
                    3 => Placing::Copied,
                    _ => return Err(malformed("no such placing")),
                };
                let source = next()?;
                Ok(Shown {
                    source,
                    target,
                    placing,
                })
            };
            (0..count).map(shown).collect()
        };
        let (mounts, files) = (list()?, list()?);
        if mounts.len() + files.len() > TARGETS_MAX {
            return Err(malformed("too many targets"));
        }
        Ok(Self {
            id,
            host_name,
            profile,
            nesting,
            limits,
            id_offset,
            given,
            mounts,
            files,
        })
    }
}

/// One of the ranges that belong to boxes, whole: never ids that mean anything on the host.
pub(crate) fn checked_offset(offset: u32) -> io::Result<u32> {
    let is_one = offset
        .checked_sub(FIRST_ID)
        .is_some_and(|above| above.is_multiple_of(IDS));
    // The last id of all is no id (`(uid_t) -1` of setresuid(2)).
    let fits = offset.checked_add(IDS).is_some();
    if is_one && fits {
        Ok(offset)
    } else {
        Err(malformed("not a range of ids for boxes"))
    }
}

/// Letters, digits, `-` and `.` only: the name is written into `/etc/hosts` of the box.
fn checked_host_name(name: String) -> io::Result<String> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
    if name.is_empty() || !name.bytes().all(good) {
        Err(malformed("host name"))
    } else {
        Ok(name)
    }
}

/// An absolute path of plain components: letters, digits, `.`, `_`, `-`, `+`, `@`; no `.` or `..`.
pub(crate) fn checked_target(target: String) -> io::Result<String> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+@".contains(&byte);
    let plain =
        |part: &str| !part.is_empty() && part != "." && part != ".." && part.bytes().all(good);
    let inside = target
        .strip_prefix('/')
        .is_some_and(|rest| rest.split('/').all(plain));
    if inside {
        Ok(target)
    } else {
        Err(malformed(&format!("target `{target}`")))
    }
}

impl Answer {
    pub(crate) fn encode(&self, serial: u64) -> io::Result<Vec<u8>> {
        let (kind, number, text) = match self {
            Self::Started { pid } => (KIND_START, *pid, ""),
            Self::Reopened => (KIND_REOPEN, 0, ""),
            Self::Forgotten => (KIND_FORGET, 0, ""),
            Self::Done => (KIND_PUT, 0, ""),
            Self::Last { ended } => (KIND_LAST, u32::from(ended.is_some()), ""),
            Self::Failed { text } => (
                KIND_FAILED,
                0,
                &text[..text.floor_char_boundary(TEXT_BYTES_MAX)],
            ),
        };
        let mut writer = Writer::new(serial, kind);
        writer.number(number);
        writer.text(text);
        if let Self::Last { ended: Some(ended) } = self {
            writer.number64(ended.out_of_memory);
            writer.number64(ended.out_of_processes);
            writer.number(u32::from(ended.killed));
        }
        writer.finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> io::Result<(u64, Self)> {
        let mut reader = Reader(bytes);
        let (serial, kind, number) = (reader.number64()?, reader.number()?, reader.number()?);
        let text = reader.text(TEXT_BYTES_MAX)?;
        let answer = match kind {
            KIND_START => Self::Started { pid: number },
            KIND_REOPEN => Self::Reopened,
            KIND_FORGET => Self::Forgotten,
            KIND_PUT => Self::Done,
            KIND_LAST if number == 0 => Self::Last { ended: None },
            KIND_LAST => Self::Last {
                ended: Some(Ended {
                    out_of_memory: reader.number64()?,
                    out_of_processes: reader.number64()?,
                    killed: reader.number()? != 0,
                }),
            },
            KIND_FAILED => Self::Failed { text },
            _ => return Err(malformed("unknown kind")),
        };
        Ok((serial, answer))
    }
}

/// Sends one datagram with descriptors beside it.
pub(crate) fn send(
    socket: impl AsFd,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !beside.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno::TOOMANYREFS);
    }
    net::sendmsg(
        socket,
        &[IoSlice::new(bytes)],
        &mut beside,
        SendFlags::NOSIGNAL,
    )?;
    Ok(())
}

/// Receives one datagram; no bytes and no descriptors mean that the other end is closed.
pub(crate) fn receive(
    socket: impl AsFd,
    bytes_max: usize,
    flags: RecvFlags,
) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut bytes = vec![0; bytes_max];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let got = net::recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut bytes)],
        &mut beside,
        flags | RecvFlags::CMSG_CLOEXEC,
    )?;
    let mut descriptors = Vec::new();
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            descriptors.extend(received);
        }
    }
    if got
        .flags
        .intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC)
    {
        return Err(malformed("cut short"));
    }
    bytes.truncate(got.bytes);
    Ok((bytes, descriptors))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_plain_absolute_paths() {
        for good in [
            "/workspace",
            "/opt/box/agents/claude",
            "/etc/ssl/certs/ca-certificates.crt",
        ] {
            assert!(checked_target(good.to_owned()).is_ok(), "{good}");
        }
        for bad in [
            "",
            "/",
            "etc",
            "/etc/../root",
            "/etc//x",
            "/etc/",
            "/a b",
            "/a\0b",
            "/./a",
        ] {
            assert!(checked_target(bad.to_owned()).is_err(), "{bad}");
        }
    }

    #[test]
    fn only_whole_ranges_of_boxes_are_ranges() {
        for good in [2_000_000_000, 2_000_065_536] {
            assert!(checked_offset(good).is_ok(), "{good}");
        }
        for bad in [
            0,
            1_000,
            1_999_934_464,
            2_000_000_001,
            u32::MAX - 65_535,
            u32::MAX,
        ] {
            assert!(checked_offset(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn small_requests_and_their_answers_survive_the_wire() {
        let id = BoxId::from_random([7; 10]);
        let limits = Limits {
            pids: 77,
            ..Limits::default()
        };
        let (bytes, _) = Request::Limit { id, limits }.encode(1).unwrap();
        let back = Request::decode(&bytes, Vec::new()).1.unwrap();
        assert!(matches!(back, Request::Limit { id: i, limits: l } if i == id && l == limits));
        let null = || OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
        for motion in [Motion::Frozen, Motion::Thawed] {
            let pidfd = null();
            let put = Request::Put { id, motion, pidfd };
            let (bytes, _) = put.encode(1).unwrap();
            assert!(Request::decode(&bytes, Vec::new()).1.is_err(), "no pidfd");
            let back = Request::decode(&bytes, vec![null()]).1.unwrap();
            assert!(matches!(back, Request::Put { motion: m, .. } if m == motion));
        }
        let ended = Ended {
            out_of_memory: 1 << 40,
            out_of_processes: 2,
            killed: true,
        };
        for ended in [None, Some(ended)] {
            let bytes = Answer::Last { ended }.encode(3).unwrap();
            let (serial, back) = Answer::decode(&bytes).unwrap();
            assert_eq!(serial, 3);
            assert!(matches!(back, Answer::Last { ended: e } if e == ended));
        }
    }

    #[test]
    fn a_start_survives_the_wire_and_half_of_one_does_not() {
        let null = || OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
        let start = Start {
            id: BoxId::from_random([7; 10]),
            host_name: "demo".to_owned(),
            profile: Profile::Root,
            nesting: Nesting::Allowed,
            limits: Limits::default(),
            id_offset: 2_000_000_000,
            given: Given {
                image: null(),
                folder: null(),
                programs: null(),
                guest: null(),
                guest_socket: null(),
                environment: null(),
                record: null(),
            },
            mounts: vec![Shown {
                source: null(),
                target: "/opt/box/agents/demo".to_owned(),
                placing: Placing::Always,
            }],
            files: vec![Shown {
                source: null(),
                target: "/etc/x".to_owned(),
                placing: Placing::Trusted,
            }],
        };
        let request = Request::Start(Box::new(start));
        let (bytes, descriptors) = request.encode(9).unwrap();
        assert_eq!(bytes.len(), MESSAGE_BYTES);
        assert_eq!(descriptors.len(), GIVEN + 2);
        let copies = |count: usize| (0..count).map(|_| null()).collect::<Vec<_>>();
        let (serial, back) = Request::decode(&bytes, copies(GIVEN + 2));
        assert_eq!(serial, 9);
        let Request::Start(back) = back.unwrap() else {
            panic!("another kind")
        };
        assert_eq!(back.host_name, "demo");
        assert_eq!(back.limits, Limits::default());
        assert_eq!(back.nesting, Nesting::Allowed);
        assert_eq!(back.files[0].target, "/etc/x");
        assert_eq!(back.files[0].placing, Placing::Trusted);
        assert!(
            Request::decode(&bytes, copies(GIVEN + 1)).1.is_err(),
            "too few descriptors"
        );
        assert!(
            Request::decode(&bytes, copies(GIVEN + 3)).1.is_err(),
            "too many descriptors"
        );
        assert!(
            Request::decode(&bytes[..100], copies(GIVEN + 2)).1.is_err(),
            "cut short"
        );
    }
}
