//! More of everything than anybody should have to bear: connections, questions, threads, names.

use crate::outcome::Outcome;
use crate::words::{Usage, Words};
use std::fs::{self, File};
use std::io;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

const MOST: usize = 1_000_000;
const CONNECT_WAIT: Duration = Duration::from_millis(500);

/// Threads that do nothing until one more is refused. They end with this process.
pub(crate) fn threads(words: &Words) -> Result<Outcome, Usage> {
    const STACK_BYTES: usize = 16 << 10;
    let most = words.number::<usize>(0)?.min(MOST);
    let mut started = 0;
    let mut outcome = Outcome::ok();
    while started < most {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        match thread.spawn(std::thread::park) {
            Ok(_) => started += 1,
            Err(error) => {
                outcome = Outcome::of(Err(error));
                break;
            }
        }
    }
    Ok(outcome.with(format!("{started} threads")))
}

/// Processes that start processes, each in a session of its own, until the time is over. Told as soon
/// as the first of them is refused one; the others go on.
pub(crate) fn fork_bomb(words: &Words) -> Result<Outcome, Usage> {
    let end = Instant::now() + Duration::from_millis(words.number(0)?);
    let mut is_first = true;
    while Instant::now() < end {
        // SAFETY: this process has one thread, and so has every child.
        match unsafe { libc::fork() } {
            0 => {
                is_first = false;
                // SAFETY: takes nothing.
                unsafe { libc::setsid() };
                // Whoever waits for an answer waits for the first alone.
                close_streams();
            }
            child if child > 0 => {}
            failed if is_first => return Ok(Outcome::of_call(failed.into())),
            _ => std::thread::yield_now(),
        }
    }
    if is_first {
        return Ok(Outcome::ok());
    }
    // SAFETY: ends a child without running anything of the parent's.
    unsafe { libc::_exit(0) }
}

fn close_streams() {
    for stream in 0..3 {
        // SAFETY: nothing is printed by a child after this.
        unsafe { libc::close(stream) };
    }
}

/// Empty files in a folder of its own until one more is refused; all are removed again.
pub(crate) fn inodes(words: &Words) -> Result<Outcome, Usage> {
    let folder = words.text(0)?;
    let most = words.number::<usize>(1)?.min(MOST);
    if let Err(error) = fs::create_dir(folder) {
        return Ok(Outcome::of(Err(error)).with("the folder"));
    }
    let mut made = 0;
    let mut outcome = Outcome::ok();
    while made < most {
        match File::create_new(format!("{folder}/{made}")) {
            Ok(_) => made += 1,
            Err(error) => {
                outcome = Outcome::of(Err(error));
                break;
            }
        }
    }
    drop(fs::remove_dir_all(folder));
    Ok(outcome.with(format!("{made} files")))
}

/// Processes that each open files until they may not, all at once; the detail is the sum of files.
pub(crate) fn files_of_many(words: &Words) -> Result<Outcome, Usage> {
    let each = words.number::<usize>(1)?.min(MOST);
    let held = || {
        let opened = (0..each).map_while(|_| File::open("/").ok());
        opened.collect::<Vec<File>>()
    };
    Ok(many(
        words.number(0)?,
        Duration::from_millis(words.number(2)?),
        held,
    ))
}

/// Processes that each hold connections to an address, all at once; the detail is their sum.
pub(crate) fn connections_of_many(words: &Words) -> Result<Outcome, Usage> {
    let address: SocketAddr = words.number(0)?;
    let each = words.number::<usize>(2)?.min(MOST);
    let held = || {
        let opened =
            (0..each).map_while(|_| TcpStream::connect_timeout(&address, CONNECT_WAIT).ok());
        opened.collect::<Vec<TcpStream>>()
    };
    Ok(many(
        words.number(1)?,
        Duration::from_millis(words.number(3)?),
        held,
    ))
}

/// Children that each take something and hold it for a while. The detail is how much they all had.
fn many<T>(processes: usize, hold: Duration, take: impl Fn() -> Vec<T>) -> Outcome {
    let Ok((mut reader, writer)) = io::pipe() else {
        return Outcome::not_tried("no pipe could be opened");
    };
    let mut children = Vec::new();
    for _ in 0..processes.min(MOST) {
        // SAFETY: this process has one thread.
        match unsafe { libc::fork() } {
            0 => {
                let taken = take();
                let count = u32::try_from(taken.len()).unwrap_or(u32::MAX);
                let told = io::Write::write_all(&mut &writer, &count.to_le_bytes());
                std::thread::sleep(hold);
                // SAFETY: ends the child without running anything of the parent's.
                unsafe { libc::_exit(i32::from(told.is_err())) }
            }
            child if child > 0 => children.push(child),
            _ => break,
        }
    }
    drop(writer);
    let mut counts = Vec::new();
    // What arrived before the end counts.
    drop(io::Read::read_to_end(&mut reader, &mut counts));
    for child in &children {
        // SAFETY: waits for our own child and wants no status.
        unsafe { libc::waitpid(*child, std::ptr::null_mut(), 0) };
    }
    let sum: u64 = counts
        .as_chunks::<4>()
        .0
        .iter()
        .map(|count| u64::from(u32::from_le_bytes(*count)))
        .sum();
    Outcome::ok().with(format!("count={sum} processes={}", children.len()))
}

/// Questions for names that do not exist, as fast as they go; the detail is how many were sent and
/// answered.
pub(crate) fn names(words: &Words) -> Result<Outcome, Usage> {
    let address: SocketAddr = words.number(0)?;
    let time = Duration::from_millis(words.number(1)?);
    let socket = match UdpSocket::bind("0.0.0.0:0") {
        Ok(socket) => socket,
        Err(error) => return Ok(Outcome::of(Err(error))),
    };
    if let Err(error) = socket
        .connect(address)
        .and_then(|()| socket.set_nonblocking(true))
    {
        return Ok(Outcome::of(Err(error)));
    }
    let start = Instant::now();
    let (mut sent, mut answered) = (0_u32, 0_u32);
    while start.elapsed() < time {
        sent += u32::from(socket.send(&question(sent)).is_ok());
        while socket.recv(&mut [0; 512]).is_ok() {
            answered += 1;
        }
    }
    Ok(Outcome::ok().with(format!("sent={sent} answered={answered}")))
}

/// A DNS question for the address of `<8 hex digits>.example` (RFC 1035, section 4).
fn question(number: u32) -> Vec<u8> {
    let id = number.to_be_bytes();
    let mut packet = vec![id[2], id[3], 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 8];
    packet.extend(format!("{number:08x}").as_bytes());
    packet.extend(b"\x07example\0\0\x01\0\x01");
    packet
}
