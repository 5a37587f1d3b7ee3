//! Carries bytes between our standard streams and a command in a box, one poll loop, until the
//! command ends.
//!
//! The streams are the command's own: nothing of them passes through the host.

mod flow;

use crate::client::{Client, unexpected};
use crate::complaint::Complaint;
use crate::output::{Output, visible_line};
use crate::signals::Signals;
use crate::terminal;
use box_api::control::{ClientMessage, Outcome, Reply};
use flow::{End, Flow};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::Signal;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// A terminal's last words come out of a queue of the kernel; something the command left behind
/// may also keep it open.
const LAST_WORDS_DEADLINE: Duration = Duration::from_millis(300);
/// After so many of one kind we leave, whatever the command does.
const INTERRUPTS_MAX: u32 = 3;
const TERMINATIONS_MAX: u32 = 2;
const SIGNAL_BASE: i32 = 128;

/// What the command reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Feed {
    /// Our standard input.
    Stdin,
    /// Nothing.
    Nothing,
}

/// Carries bytes and signals until the command ends; the value is its exit code.
///
/// # Errors
/// When the host says so, goes away, or sends something else.
pub(crate) fn carry(mut client: Client, feed: Feed, output: Output) -> Result<u8, Complaint> {
    let streams = streams(&mut client)?;
    let is_terminal = streams.len() == 1;
    // From here on signals are the command's.
    let mut numbers = [
        Signal::INT,
        Signal::TERM,
        Signal::HUP,
        Signal::QUIT,
        Signal::USR1,
        Signal::USR2,
    ]
    .map(Signal::as_raw)
    .to_vec();
    numbers.extend(is_terminal.then_some(Signal::WINCH.as_raw()));
    let signals = Signals::catch(&numbers).map_err(|error| could_not("catch signals", error))?;
    let flows =
        flows(streams, feed).map_err(|errno| could_not("use the command's streams", errno))?;
    let _raw = (is_terminal && feed == Feed::Stdin).then(terminal::Mode::raw);
    let patience = if is_terminal {
        LAST_WORDS_DEADLINE
    } else {
        Duration::ZERO
    };
    let mut pump = Pump {
        client,
        output,
        signals,
        flows,
        patience,
        ended: None,
        interrupts: 0,
        terminations: 0,
    };
    loop {
        if let Some(code) = pump.turn()? {
            return Ok(code);
        }
    }
}

/// The command's streams, or why there are none.
fn streams(client: &mut Client) -> Result<Vec<OwnedFd>, Complaint> {
    let reply = client.next(None)?;
    if let Reply::Problem(problem) = reply {
        return Err(problem.into());
    }
    if reply != Reply::Streams {
        return Err(unexpected(&reply));
    }
    let streams = client.take_descriptors();
    match streams.len() {
        1 | 3 => Ok(streams),
        count => Err(unexpected(&format!("{count} streams"))),
    }
}

fn flows(streams: Vec<OwnedFd>, feed: Feed) -> Result<Vec<Flow>, Errno> {
    for stream in &streams {
        let flags = rustix::fs::fcntl_getfl(stream)?;
        rustix::fs::fcntl_setfl(stream, flags | rustix::fs::OFlags::NONBLOCK)?;
    }
    let mut streams = streams.into_iter();
    let (Some(input), output, errors) = (streams.next(), streams.next(), streams.next()) else {
        return Ok(Vec::new());
    };
    let mut flows = Vec::new();
    if let (Some(output), Some(errors)) = (output, errors) {
        flows.push(Flow::new(End::Theirs(output), End::Stdout));
        flows.push(Flow::new(End::Theirs(errors), End::Stderr));
    } else {
        let terminal = rustix::io::fcntl_dupfd_cloexec(&input, 0)?;
        flows.push(Flow::new(End::Theirs(terminal), End::Stdout));
    }
    if feed == Feed::Stdin {
        flows.push(Flow::new(End::Stdin, End::Theirs(input)));
    }
    // Without a feed the command's input is closed here and now.
    Ok(flows)
}

struct Pump {
    client: Client,
    output: Output,
    signals: Signals,
    flows: Vec<Flow>,
    /// How long the last output of an ended command may take.
    patience: Duration,
    /// The command's exit code, and when its last words are waited for no longer.
    ended: Option<(i32, Instant)>,
    interrupts: u32,
    terminations: u32,
}

/// What one wait showed.
struct Woken {
    news: bool,
    /// One for each flow.
    flows: Vec<bool>,
}

impl Pump {
    /// Waits once and does what became possible. The exit code, once all is said.
    fn turn(&mut self) -> Result<Option<u8>, Complaint> {
        let woken = self.wait()?;
        if let Some(code) = self.all_said(&woken) {
            return Ok(Some(code));
        }
        // Always, and first: a new size is there before what was typed after it.
        if let Some(code) = self.forward_signals()? {
            return Ok(Some(code));
        }
        for (flow, ready) in self.flows.iter_mut().zip(woken.flows) {
            if ready {
                flow.advance();
            }
        }
        if let Some(errno) = self.flows.iter().find_map(Flow::lost) {
            return Err(could_not("write what the command printed", errno));
        }
        self.flows.retain(|flow| !flow.is_over());
        if woken.news {
            self.hear()?;
        }
        Ok(None)
    }

    /// The code, once the command ended and nothing of its output is left.
    fn all_said(&self, woken: &Woken) -> Option<u8> {
        let (code, deadline) = self.ended?;
        let silent = !woken.flows.contains(&true) && self.flows.iter().all(Flow::is_empty);
        let said = self.flows.is_empty() || (silent && Instant::now() >= deadline);
        said.then(|| u8::try_from(code & 0xff).unwrap_or(u8::MAX))
    }

    fn wait(&self) -> Result<Woken, Complaint> {
        let mut waited = vec![PollFd::new(&self.signals, PollFlags::IN)];
        waited.extend(self.flows.iter().map(Flow::interest));
        if self.ended.is_none() {
            waited.push(PollFd::new(&self.client, PollFlags::IN));
        }
        // What was read and not yet written takes as long as our reader does.
        let hurry = self.ended.filter(|_| self.flows.iter().all(Flow::is_empty));
        let timeout = hurry.map(|(_, deadline)| {
            let left = deadline.saturating_duration_since(Instant::now());
            Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(0),
                tv_nsec: left.subsec_nanos().into(),
            }
        });
        match rustix::event::poll(&mut waited, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(could_not("wait for the command", errno)),
        }
        let mut ready = waited.iter().skip(1).map(|one| !one.revents().is_empty());
        Ok(Woken {
            flows: ready.by_ref().take(self.flows.len()).collect(),
            news: ready.next().unwrap_or(false),
        })
    }

    fn hear(&mut self) -> Result<(), Complaint> {
        let filled = self.client.fill();
        while let Some(reply) = self.client.ready()? {
            match reply {
                Reply::Done(Outcome::Exit { code }) => {
                    self.ended = Some((code, Instant::now() + self.patience));
                    self.flows.retain(Flow::is_output);
                    return Ok(());
                }
                Reply::Problem(problem) => return Err(problem.into()),
                Reply::Note { text } => self.note(&text),
                Reply::Progress { .. } => {}
                other @ (Reply::Done(_)
                | Reply::Streams
                | Reply::Output { .. }
                | Reply::Thread { .. }
                | Reply::Update(_)
                | Reply::Decision(_)
                | Reply::Net(_)
                | Reply::AnswerRefused { .. }) => return Err(unexpected(&other)),
            }
        }
        filled.map_err(|error| {
            let complaint = Complaint::engine(
                "host-lost",
                "the host went away; how the command ended is not known",
            );
            complaint.caused_by(error)
        })
    }

    /// On a line of its own, though a raw terminal goes to the next line and not to its beginning.
    fn note(&mut self, text: &str) {
        let end = if self.patience.is_zero() { "" } else { "\r" };
        self.output
            .note(&format!("{end}{}{end}", visible_line(text)));
    }

    /// Hands signals on. The exit code when we are to leave at once.
    fn forward_signals(&mut self) -> Result<Option<u8>, Complaint> {
        for number in self.signals.take() {
            if number == Signal::WINCH.as_raw() {
                self.flows
                    .iter()
                    .filter_map(Flow::theirs)
                    .for_each(terminal::copy_size);
                continue;
            }
            self.interrupts += u32::from(number == Signal::INT.as_raw());
            self.terminations += u32::from(number == Signal::TERM.as_raw());
            match self.client.say(&ClientMessage::Signal { number }) {
                Ok(()) => {}
                // Reading tells the same.
                Err(error) if error.is_gone() => {}
                Err(error) => return Err(error.into()),
            }
            let insists =
                self.interrupts >= INTERRUPTS_MAX || self.terminations >= TERMINATIONS_MAX;
            if insists || number == Signal::HUP.as_raw() {
                return Ok(Some(u8::try_from(SIGNAL_BASE + number).unwrap_or(u8::MAX)));
            }
        }
        Ok(None)
    }
}

fn could_not(what: &str, error: impl ToString) -> Complaint {
    Complaint::engine("exec", format!("could not {what}")).caused_by(error)
}
