//! Drives a conversation: waits for the host, the person and signals, and does what the
//! conversation says.

pub(crate) mod conversation;
pub(crate) mod moves;
mod shell_line;
pub(crate) mod tally;

use crate::client::Client;
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::json::{self, Event};
use crate::output::{Format, Ink, Output, visible};
use crate::signals::Signals;
use crate::terminal;
use crate::transcript::Transcript;
use box_api::control::{ClientMessage, Reply, Request};
use box_api::thread::{Cursor, Item, JournalRow, ThreadUpdate, TurnOutcome};
use conversation::Conversation;
use moves::{Action, Answers, Input};
use shell_line::ShellLine;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::Signal;
pub(crate) use shell_line::how_ended;
use std::io::{IsTerminal as _, stdin, stdout};
use std::ops::ControlFlow;
use tally::Tally;

/// Hosts that go away one after the other without having told us anything.
const TAKE_UPS_MAX: u32 = 5;
/// A prompt typed at the terminal; the kernel's own line limit is 4096 (termios(3)).
const TYPED_BYTES_MAX: usize = 64 << 10;

/// Who answers when nothing was said about it: a person, if one is there.
pub(crate) fn answers(format: Format) -> Answers {
    match format {
        Format::Text if terminal::can_ask() => Answers::Person,
        Format::Text | Format::Json => Answers::Nobody,
    }
}

/// How much of a conversation is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    Everything,
    /// What the agent says last, and on standard error what a person must decide.
    Answer,
}

/// How a conversation is shown.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) transcript: Transcript,
    pub(crate) shown: Shown,
}

/// Has the conversation until it ends; the value is the exit code.
///
/// # Errors
/// The host's problem, or a host that stays away.
pub(crate) fn drive(
    output: &mut Output,
    client: Client,
    conversation: Conversation,
    view: View,
) -> Result<u8, Complaint> {
    let ends = [Signal::INT, Signal::TERM, Signal::HUP].map(Signal::as_raw);
    let signals = Signals::catch(&ends).map_err(|error| {
        Complaint::engine("no-signals", "could not catch signals").caused_by(error)
    })?;
    let reads_lines = conversation.asks_a_person();
    let mut driver = Driver {
        output,
        client,
        conversation,
        view,
        tally: Tally::default(),
        signals,
        typed: reads_lines.then(Vec::new),
        line: None,
        take_ups: 0,
    };
    driver.say_who_looks()?;
    loop {
        for input in driver.wait()? {
            if let ControlFlow::Break(code) = driver.handle(input)? {
                return Ok(code);
            }
        }
    }
}

struct Driver<'a> {
    output: &'a mut Output,
    client: Client,
    conversation: Conversation,
    view: View,
    tally: Tally,
    signals: Signals,
    /// The line being typed; none when nobody types.
    typed: Option<Vec<u8>>,
    /// The `!` line that runs.
    line: Option<ShellLine>,
    /// Connections taken up in a row without news.
    take_ups: u32,
}

impl Driver<'_> {
    /// Waits until something happens.
    fn wait(&mut self) -> Result<Vec<Input>, Complaint> {
        let input = stdin();
        let [came, typed, printed] = {
            let mut waited = vec![
                PollFd::new(&self.client, PollFlags::IN),
                PollFd::new(&self.signals, PollFlags::IN),
            ];
            let line = self.line.as_ref().map(ShellLine::client);
            waited.extend(line.map(|client| PollFd::new(client, PollFlags::IN)));
            let listens = self.typed.is_some();
            waited.extend(listens.then(|| PollFd::new(&input, PollFlags::IN)));
            match rustix::event::poll(&mut waited, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => {
                    return Err(
                        Complaint::engine("poll", "could not wait for the host").caused_by(errno)
                    );
                }
            }
            let ready = |at: usize| waited.get(at).is_some_and(|one| !one.revents().is_empty());
            let typed = listens && ready(waited.len() - 1);
            [ready(0), typed, line.is_some() && ready(2)]
        };
        if printed {
            self.read_line_output()?;
        }
        let mut inputs = Vec::new();
        inputs.extend(self.signals.take().into_iter().map(|number| match number {
            number if number == Signal::INT.as_raw() => Input::Interrupt,
            number => Input::Terminate(number),
        }));
        if typed {
            self.read_typed(&mut inputs);
        }
        if came {
            self.read_replies(&mut inputs)?;
        }
        Ok(inputs)
    }

    fn read_replies(&mut self, inputs: &mut Vec<Input>) -> Result<(), Complaint> {
        let filled = self.client.fill();
        while let Some(reply) = self.client.ready()? {
            inputs.push(Input::Reply(reply.into()));
        }
        match filled {
            Ok(()) => Ok(()),
            Err(error) if error.is_gone() => {
                inputs.push(Input::Lost);
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn read_typed(&mut self, inputs: &mut Vec<Input>) {
        let Some(line) = &mut self.typed else { return };
        let mut piece = [0; 4096];
        let read = match rustix::io::read(stdin(), &mut piece) {
            Ok(read) => read,
            Err(Errno::INTR | Errno::AGAIN) => return,
            Err(_) => 0,
        };
        if read == 0 {
            self.typed = None;
            inputs.push(Input::Silence);
            return;
        }
        for byte in &piece[..read] {
            if *byte == b'\n' {
                let whole = std::mem::take(line);
                inputs.push(Input::Line(String::from_utf8_lossy(&whole).into_owned()));
            } else if line.len() < TYPED_BYTES_MAX {
                line.push(*byte);
            }
        }
    }

    fn handle(&mut self, input: Input) -> Result<ControlFlow<u8>, Complaint> {
        self.mirror(&input)?;
        let mut asks = false;
        for action in self.conversation.step(input) {
            match action {
                Action::Show(update) => {
                    asks = true;
                    self.take_ups = 0;
                    self.show(&update)?;
                }
                Action::Aside(item) => {
                    asks = true;
                    self.show_aside(item)?;
                }
                Action::Note(text) => self.note(&text)?,
                Action::Ended { outcome, note } => self.ended(outcome, note.as_deref())?,
                Action::Progress(text) => self.progress(&text)?,
                Action::Ask(_) => {
                    asks = true;
                    terminal::forget_typed_ahead();
                    self.typed.iter_mut().for_each(Vec::clear);
                }
                Action::Say(message) => match self.client.say(&message) {
                    Ok(()) => {}
                    // Reading tells the same, after what was still on its way.
                    Err(error) if error.is_gone() => {}
                    Err(error) => return Err(error.into()),
                },
                Action::Shell(line) => self.run_line(line)?,
                Action::TakeUp(cursor) => self.take_up(cursor)?,
                Action::Complain(problem) => {
                    self.break_line()?;
                    return Err(problem.into());
                }
                Action::Finish(code) => {
                    self.finish(code)?;
                    return Ok(ControlFlow::Break(code));
                }
            }
        }
        if asks && let Some(question) = self.conversation.question() {
            self.break_line()?;
            self.output.ask(&question);
        }
        Ok(ControlFlow::Continue(()))
    }

    /// With `--json`, replies that are no updates are printed as they came.
    fn mirror(&mut self, input: &Input) -> Result<(), Complaint> {
        let Input::Reply(reply) = input else {
            return Ok(());
        };
        // A thread is told again when it is taken up again.
        let known = self.conversation.thread();
        let again = matches!(&**reply, Reply::Thread { thread, .. } if known == Some(*thread));
        if self.streams_events()
            && !again
            && let Some(event) = Event::of(reply)
        {
            self.output.object(&event)?;
        }
        Ok(())
    }

    /// Whether each event is printed as it comes.
    fn streams_events(&self) -> bool {
        self.output.format() == Format::Json && self.view.shown == Shown::Everything
    }

    fn show(&mut self, update: &ThreadUpdate) -> Result<(), Complaint> {
        self.tally.take(update);
        if self.streams_events() {
            return self.output.object(update);
        }
        if self.is_our_line(update) {
            return Ok(());
        }
        let decides = matches!(update, ThreadUpdate::Row(row)
            if matches!(row.item, Item::DecisionOpened(_) | Item::DecisionClosed { .. }));
        if self.view.shown == Shown::Everything || decides {
            self.view.transcript.show(update);
        }
        self.flush()
    }

    /// With `--json` the reply was printed as it came.
    fn show_aside(&mut self, item: Item) -> Result<(), Complaint> {
        let row = JournalRow {
            seq: 0,
            at_ms: 0,
            item,
        };
        self.view.transcript.show(&ThreadUpdate::Row(row));
        self.flush()
    }

    fn progress(&mut self, text: &str) -> Result<(), Complaint> {
        if self.view.shown == Shown::Answer {
            return Ok(());
        }
        self.break_line()?;
        self.output.progress(text);
        Ok(())
    }

    /// The last that is printed.
    fn finish(&mut self, code: u8) -> Result<(), Complaint> {
        self.view.transcript.finish();
        self.flush()?;
        match (self.output.format(), self.view.shown) {
            (Format::Json, _) => {
                let whose = (self.conversation.name(), self.conversation.thread());
                self.output.object(&json::result(whose, &self.tally, code))
            }
            (Format::Text, Shown::Answer) if !self.tally.answer().is_empty() => {
                let answer = format!("{}\n", visible(self.tally.answer()));
                self.output.data(answer.as_bytes())
            }
            (Format::Text, Shown::Answer | Shown::Everything) => Ok(()),
        }
    }

    /// Only a person is asked about the network.
    fn say_who_looks(&mut self) -> Result<(), Complaint> {
        if !self.conversation.asks_a_person() {
            return Ok(());
        }
        match self.client.say(&ClientMessage::Person) {
            // It went away; reading notices.
            Err(error) if !error.is_gone() => Err(error.into()),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Says how a turn ended, unless that goes without saying.
    fn ended(&mut self, outcome: TurnOutcome, note: Option<&str>) -> Result<(), Complaint> {
        let (ink, word) = match outcome {
            TurnOutcome::Done => (Ink::Dim, ""),
            TurnOutcome::Failed => (Ink::Red, "the turn failed"),
            TurnOutcome::Refused => (Ink::Red, "the agent refused"),
            TurnOutcome::Cancelled => (Ink::Yellow, "the turn was cancelled"),
            TurnOutcome::Parked => (Ink::Yellow, "the turn is parked at a usage limit"),
            TurnOutcome::StoppedShort => (
                Ink::Yellow,
                "the agent stopped short, at a limit of its own",
            ),
        };
        let text = match (word, note) {
            ("", None) => return Ok(()),
            ("", Some(note)) => note.to_owned(),
            (word, None) => word.to_owned(),
            (word, Some(note)) => format!("{word}: {note}"),
        };
        self.break_line()?;
        let text = self
            .output
            .err_paint()
            .with(ink, &format!("■ {}", visible(&text)));
        self.output.note(&text);
        Ok(())
    }

    fn note(&mut self, text: &str) -> Result<(), Complaint> {
        self.break_line()?;
        let text = self.output.err_paint().with(Ink::Yellow, &visible(text));
        self.output.note(&text);
        Ok(())
    }

    /// On a terminal both outputs share the screen: ours begins on a line of its own.
    fn break_line(&mut self) -> Result<(), Complaint> {
        if stdout().is_terminal() {
            self.view.transcript.break_line();
        }
        self.flush()
    }

    fn flush(&mut self) -> Result<(), Complaint> {
        let text = self.view.transcript.take();
        match (self.output.format(), self.view.shown) {
            (Format::Text, Shown::Everything) if !text.is_empty() => {
                self.output.data(text.as_bytes())
            }
            (Format::Text, Shown::Answer) if !text.is_empty() => {
                self.output.note(text.trim_end());
                Ok(())
            }
            (Format::Text | Format::Json, Shown::Everything | Shown::Answer) => Ok(()),
        }
    }

    fn take_up(&mut self, cursor: Option<Cursor>) -> Result<(), Complaint> {
        let Some(name) = self.conversation.name().cloned() else {
            return Ok(());
        };
        self.take_ups += 1;
        if self.take_ups > TAKE_UPS_MAX {
            return Err(
                Complaint::engine("host-lost", "the host goes away again and again").hinted(
                    format!("the turn goes on; `box attach {name}` takes it up again"),
                ),
            );
        }
        self.note("the host went away; taking the turn up again")?;
        let thread = self.conversation.thread();
        let mut client = host::reach(self.output, OtherBuild::Bear)?;
        let request = Request::Attach(box_api::control::Attach {
            name,
            thread,
            after: cursor,
            follow: true,
        });
        match client.request(&request) {
            Ok(()) => {}
            // It went away again; reading notices.
            Err(error) if error.is_gone() => {}
            Err(error) => return Err(error.into()),
        }
        self.client = client;
        self.say_who_looks()
    }
}
