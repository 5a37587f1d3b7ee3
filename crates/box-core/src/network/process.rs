//! Which program in a box has a connection: its socket's number in the box's own
//! `/proc/<pid>/net/tcp`, then who holds a descriptor of it (proc(5)).
//!
//! Best effort, and nobody waits for it. Everything read here is the box's to shape, so all of it
//! is bounded; and no answer is better than a wrong one: both ends must be the connection's, one
//! program alone must hold it, and it must be the same socket still when that is known.

use crate::egress::Surroundings;
use crate::network::{live::Live, log};
use crate::store::Durability;
use box_api::egress::traffic::{Ends, Open};
use box_api::network::NetProcess;
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Of a list of sockets that is read. A line has 150 to 200 bytes.
const SOCKETS_BYTES_MAX: u64 = 4 << 20;
const PROCESSES_MAX: usize = 4096;
const DESCRIPTORS_MAX: usize = 50_000;
/// Longest one lookup takes.
const LOOKUP_MAX: Duration = Duration::from_millis(500);
/// The kernel keeps so many bytes of a program's name (`TASK_COMM_LEN` without its end).
const NAME_BYTES_MAX: usize = 15;
/// An established connection in `/proc/net/tcp` (`TCP_ESTABLISHED`, `include/net/tcp_states.h`).
const ESTABLISHED: &str = "01";

/// Looks for the program of a connection, in a task of its own, and adds it to what is shown.
pub(crate) fn look_for(around: &Surroundings, told: Open) {
    let (Some(ends), Some(room)) = (told.ends, around.live.lookup()) else {
        return;
    };
    let around = around.clone();
    tokio::spawn(async move {
        let _room = room;
        let Some(first) = first_process(&around, &told).await else {
            return;
        };
        let find = move || Finder::new(Path::new("/proc"), first).find(ends);
        if let Ok(Some(process)) = tokio::task::spawn_blocking(find).await {
            add(&around, &around.live, told, process).await;
        }
    });
}

/// Process 1 of the box, as the host numbers it.
async fn first_process(around: &Surroundings, told: &Open) -> Option<u32> {
    let id = told.box_id;
    let record = around
        .store
        .read(move |rows| crate::boxes::rows::get(rows, &id))
        .await
        .ok()??;
    let runtime = around.runtimes.named(&record.runtime)?;
    let boxes = runtime.list().await.ok()?;
    boxes.iter().find(|one| one.id == id)?.pid
}

async fn add(around: &Surroundings, live: &Live, told: Open, process: NetProcess) {
    if !live.found(&told, &process) {
        let host = format!("{}:{}", told.host, told.port);
        let written = around.store.write(Durability::Grouped, move |rows| {
            log::name_process(rows, &told.box_id, (&host, &told.rule), &process)
        });
        if let Err(error) = written.await {
            tracing::warn!(%error, "the program of a connection is not on record");
        }
    }
    around.people.log_grew();
}

/// One lookup.
struct Finder<'a> {
    proc: &'a Path,
    first: u32,
    until: Instant,
}

impl<'a> Finder<'a> {
    fn new(proc: &'a Path, first: u32) -> Self {
        Self {
            proc,
            first,
            until: Instant::now() + LOOKUP_MAX,
        }
    }

    fn find(&self, ends: Ends) -> Option<NetProcess> {
        let inode = self.inode(ends)?;
        let holder = self.holder(inode)?;
        let process = self.describe(holder)?;
        // The socket may have gone, and its number with it.
        (self.inode(ends)? == inode).then_some(process)
    }

    fn of(&self, pid: u32, rest: &str) -> PathBuf {
        self.proc.join(pid.to_string()).join(rest)
    }

    /// The number of the socket at the program's end.
    fn inode(&self, ends: Ends) -> Option<u64> {
        ["net/tcp", "net/tcp6"].into_iter().find_map(|list| {
            let file = File::open(self.of(self.first, list)).ok()?;
            let lines = BufReader::new(file.take(SOCKETS_BYTES_MAX)).lines().skip(1);
            lines
                .map_while(Result::ok)
                .find_map(|line| inode_of(&line, ends))
        })
    }

    /// The one process of the box that holds the socket.
    fn holder(&self, inode: u64) -> Option<u32> {
        let wanted = format!("socket:[{inode}]");
        let (mut left, mut found) = (DESCRIPTORS_MAX, None);
        for pid in self.processes()? {
            if Instant::now() > self.until {
                return None;
            }
            if !self.holds(pid, &wanted, &mut left)? {
                continue;
            }
            if found.replace(pid).is_some() {
                return None;
            }
        }
        found
    }

    /// Whether a process has the socket. `None` when there are too many descriptors to look at.
    fn holds(&self, pid: u32, wanted: &str, left: &mut usize) -> Option<bool> {
        let Ok(descriptors) = fs::read_dir(self.of(pid, "fd")) else {
            return Some(false);
        };
        for descriptor in descriptors.flatten() {
            *left = left.checked_sub(1)?;
            let target = fs::read_link(descriptor.path());
            if target.is_ok_and(|target| target.as_os_str() == wanted) {
                return Some(true);
            }
        }
        Some(false)
    }

    /// Every process of the box: they all descend from its first.
    fn processes(&self) -> Option<Vec<u32>> {
        let (mut all, mut waiting) = (Vec::new(), VecDeque::from([self.first]));
        while let Some(pid) = waiting.pop_front() {
            if all.len() == PROCESSES_MAX || Instant::now() > self.until {
                return None;
            }
            all.push(pid);
            let Ok(threads) = fs::read_dir(self.of(pid, "task")) else {
                continue;
            };
            for thread in threads.flatten() {
                let children = fs::read_to_string(thread.path().join("children"));
                let children = children.unwrap_or_default();
                let children = children.split_ascii_whitespace();
                waiting.extend(children.filter_map(|child| child.parse::<u32>().ok()));
            }
        }
        Some(all)
    }

    fn describe(&self, pid: u32) -> Option<NetProcess> {
        let name = fs::read(self.of(pid, "comm")).ok()?;
        let name: String = String::from_utf8_lossy(&name)
            .chars()
            .filter(|c| !c.is_control())
            .take(NAME_BYTES_MAX)
            .collect();
        let (own, first) = (self.numbers(pid)?, self.numbers(self.first)?);
        // The last number of its first process is the one within the box.
        let pid = *own.get(first.len().checked_sub(1)?)?;
        Some(NetProcess { name, pid })
    }

    /// What a process is called in each of the namespaces it is in, the outermost first.
    fn numbers(&self, pid: u32) -> Option<Vec<u32>> {
        let status = fs::read_to_string(self.of(pid, "status")).ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("NSpid:"))?;
        let numbers = line.split_ascii_whitespace();
        numbers.map(|number| number.parse().ok()).collect()
    }
}

/// The inode, when a line is about this connection.
fn inode_of(line: &str, ends: Ends) -> Option<u64> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let (local, remote, state) = (fields.next()?, fields.next()?, fields.next()?);
    let is_it = state == ESTABLISHED
        && address(local)? == plain(ends.program)
        && address(remote)? == plain(ends.way_out);
    // After the queues, the timer, retransmits, the uid and the timeout.
    is_it.then(|| fields.nth(5)?.parse().ok()).flatten()
}

fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// `0100007F:0CEA`: words as the machine has them in memory, then the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let word = |at: usize| {
        let digits = ip.get(at * 8..at * 8 + 8)?;
        u32::from_str_radix(digits, 16).ok().map(u32::to_ne_bytes)
    };
    let ip = match ip.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?];
            let bytes: [u8; 16] = words.concat().try_into().ok()?;
            IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn addresses_are_read_as_the_kernel_writes_them() {
        let at = |text: &str| Some(text.parse::<SocketAddr>().unwrap());
        if cfg!(target_endian = "little") {
            assert_eq!(address("0100007F:0CEA"), at("127.0.0.1:3306"));
            let mapped = "0000000000000000FFFF00000100007F:01BB";
            assert_eq!(address(mapped), at("127.0.0.1:443"));
        }
        for odd in ["", ":", "01:1", "0100007F:", "0100007G:0001", "ééééaaaa:1"] {
            assert_eq!(address(odd), None, "{odd}");
        }
    }

    /// A connection of this very process, told from one that another holds as well.
    #[test]
    fn a_connection_leads_to_the_program_that_alone_holds_it() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut accepted, _) = listener.accept().unwrap();
        accepted.write_all(b"x").unwrap();
        let ends = Ends {
            program: stream.local_addr().unwrap(),
            way_out: stream.peer_addr().unwrap(),
        };
        let own = std::process::id();
        let mut finder = Finder::new(Path::new("/proc"), own);
        finder.until += Duration::from_mins(1);
        let found = finder.find(ends).expect("this process holds it");
        let name = fs::read_to_string("/proc/self/comm").unwrap();
        assert_eq!(found.name, name.trim_end());
        let numbers = finder.numbers(own).unwrap();
        assert_eq!(found.pid, *numbers.last().unwrap());

        let other = Ends {
            way_out: "127.0.0.1:1".parse().unwrap(),
            ..ends
        };
        assert_eq!(finder.find(other), None, "another connection of this port");
        drop(stream);
        assert_eq!(finder.find(ends), None, "it is over");
    }

    #[test]
    fn lists_a_box_has_shaped_are_survived() {
        let ends = Ends {
            program: "127.0.0.1:3306".parse().unwrap(),
            way_out: "127.0.0.1:443".parse().unwrap(),
        };
        let whole = "0: 0100007F:0CEA 0100007F:01BB 01 0:0 0:0 0 1000 0 4711 1 0";
        assert_eq!(inode_of(whole, ends), Some(4711));
        let waiting = whole.replace(" 01 ", " 06 ");
        assert_eq!(inode_of(&waiting, ends), None);
        for cut in 0..whole.len() - 10 {
            inode_of(&whole[..cut], ends);
        }
    }
}
