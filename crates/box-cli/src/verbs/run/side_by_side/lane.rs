//! One of several agents at work.

use crate::client::Client;
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::json::{self, Event};
use crate::output::{Format, Ink, Output, visible};
use crate::terminal;
use crate::transcript::{Look, Prompts, Thoughts, Transcript};
use crate::turn::conversation::Conversation;
use crate::turn::moves::{Action, Answers, Input};
use crate::turn::tally::Tally;
use box_api::control::{Attach, Request};
use box_api::thread::Cursor;
use box_api::{BoxName, Owner};
use rustix::process::Signal;
use serde::Serialize;
use serde_json::json;

/// Hosts that go away one after the other without having told us anything.
const TAKE_UPS_MAX: u32 = 5;
/// Their marks on the screen, in turn.
const INKS: [Ink; 3] = [Ink::Cyan, Ink::Green, Ink::Yellow];

#[derive(Debug)]
pub(super) struct Lane {
    label: String,
    /// The label as it stands before each line.
    mark: String,
    client: Client,
    conversation: Conversation,
    transcript: Transcript,
    tally: Tally,
    /// The line that is not whole yet.
    line: String,
    take_ups: u32,
    exit: Option<u8>,
}

/// Whoever sits at the terminal answers elsewhere: one keyboard cannot serve several questions.
pub(super) fn answers(format: Format) -> Answers {
    match format {
        Format::Text if terminal::can_ask() => Answers::Elsewhere,
        Format::Text | Format::Json => Answers::Nobody,
    }
}

/// Gives each its mark; all are equally wide.
pub(super) fn line_up(lanes: &mut [Lane], output: &Output) {
    let width = lanes.iter().map(|lane| lane.label.chars().count()).max();
    let width = width.unwrap_or(0);
    for (lane, ink) in lanes.iter_mut().zip(INKS.into_iter().cycle()) {
        let mark = format!("{:<width$} │", lane.label);
        lane.mark = output.paint().with(ink, &mark);
    }
}

impl Lane {
    pub(super) fn new(label: String, client: Client, answers: Answers) -> Self {
        let look = Look {
            owner: Owner::Uid(rustix::process::geteuid().as_raw()).to_string(),
            paint: crate::output::Paint::Off,
            columns: None,
            thoughts: Thoughts::Folded,
            prompts: Prompts::Hidden,
        };
        Self {
            label,
            mark: String::new(),
            client,
            conversation: Conversation::run(answers),
            transcript: Transcript::new(look),
            tally: Tally::default(),
            line: String::new(),
            take_ups: 0,
            exit: None,
        }
    }

    pub(super) fn runs(&self) -> bool {
        self.exit.is_none()
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn label(&self) -> &str {
        &self.label
    }

    pub(super) fn name(&self) -> Option<&BoxName> {
        self.conversation.name()
    }

    /// Only of one that has ended.
    pub(super) fn exit(&self) -> u8 {
        self.exit.unwrap_or_default()
    }

    pub(super) fn outcome(&self) -> &'static str {
        match (self.exit(), self.conversation.thread()) {
            (1.., None) => "error",
            (exit, _) => self.tally.word(exit),
        }
    }

    pub(super) fn signalled(&mut self, output: &mut Output, number: i32) -> Result<(), Complaint> {
        let input = if number == Signal::INT.as_raw() {
            Input::Interrupt
        } else {
            Input::Terminate(number)
        };
        self.step(output, input)
    }

    /// Takes in what the host sent; call when there is something.
    pub(super) fn read(&mut self, output: &mut Output) -> Result<(), Complaint> {
        let filled = self.client.fill();
        while self.runs()
            && let Some(reply) = self.client.ready()?
        {
            if let Some(event) = Event::of(&reply) {
                self.event(output, &event)?;
            }
            self.step(output, Input::Reply(reply.into()))?;
        }
        match filled {
            Ok(()) => Ok(()),
            Err(error) if error.is_gone() && self.runs() => self.step(output, Input::Lost),
            Err(error) if error.is_gone() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn step(&mut self, output: &mut Output, input: Input) -> Result<(), Complaint> {
        for action in self.conversation.step(input) {
            match action {
                Action::Show(update) => {
                    self.take_ups = 0;
                    self.tally.take(&update);
                    self.event(output, &update)?;
                    self.transcript.show(&update);
                    self.print(output)?;
                }
                Action::Progress(text) | Action::Note(text) => self.say(output, &text),
                Action::Ended {
                    note: Some(note), ..
                } => self.say(output, &note),
                // Nobody types here, and the network is not asked about.
                Action::Aside(_)
                | Action::Ask(_)
                | Action::Shell(_)
                | Action::Ended { note: None, .. } => {}
                Action::Say(message) => match self.client.say(&message) {
                    Ok(()) => {}
                    // Reading tells the same, after what was still on its way.
                    Err(error) if error.is_gone() => {}
                    Err(error) => return Err(error.into()),
                },
                Action::TakeUp(cursor) => self.take_up(output, cursor)?,
                Action::Complain(problem) => self.complain(output, &problem.into())?,
                Action::Finish(code) => self.finish(output, code)?,
            }
        }
        Ok(())
    }

    /// It could not be done: says so and ends.
    fn complain(&mut self, output: &mut Output, complaint: &Complaint) -> Result<(), Complaint> {
        let title = complaint.problem().map_or("", |problem| &problem.title);
        self.say(output, &format!("error: {title}"));
        let hint = complaint.problem().and_then(|one| one.hint.as_deref());
        if let Some(hint) = hint {
            self.say(output, &format!("hint: {hint}"));
        }
        self.finish(output, complaint.code())
    }

    fn finish(&mut self, output: &mut Output, code: u8) -> Result<(), Complaint> {
        if !self.runs() {
            return Ok(());
        }
        self.exit = Some(code);
        self.transcript.finish();
        self.print(output)?;
        let whose = (self.conversation.name(), self.conversation.thread());
        let result = json::result(whose, &self.tally, code);
        let line = labelled(&self.label, &result);
        if output.format() == Format::Json {
            output.object(&line)?;
        }
        Ok(())
    }

    /// With `--json`: each event says whose it is.
    fn event(&self, output: &mut Output, event: &impl Serialize) -> Result<(), Complaint> {
        if output.format() == Format::Json {
            output.object(&labelled(&self.label, event))?;
        }
        Ok(())
    }

    /// Whole lines of the transcript; of the last one only at the end.
    fn print(&mut self, output: &mut Output) -> Result<(), Complaint> {
        self.line.push_str(&self.transcript.take());
        let whole = match self.line.rfind('\n') {
            Some(at) => self.line.drain(..=at).collect::<String>(),
            None => return Ok(()),
        };
        if output.format() == Format::Json {
            return Ok(());
        }
        let marked = |line: &str| format!("{} {line}", self.mark).trim_end().to_owned() + "\n";
        let text: String = whole.lines().map(marked).collect();
        output.data(text.as_bytes())
    }

    fn say(&self, output: &mut Output, text: &str) {
        output.note(&format!("{} {}", self.mark, visible(text)));
    }

    fn take_up(&mut self, output: &mut Output, after: Option<Cursor>) -> Result<(), Complaint> {
        let Some(name) = self.conversation.name().cloned() else {
            return Ok(());
        };
        self.take_ups += 1;
        if self.take_ups > TAKE_UPS_MAX {
            let title = "the host goes away again and again";
            return Err(Complaint::engine("host-lost", title)
                .hinted(format!("`box attach {name}` takes it up again")));
        }
        let thread = self.conversation.thread();
        let mut client = host::reach(output, OtherBuild::Bear)?;
        let request = Request::Attach(Attach {
            name,
            thread,
            after,
            follow: true,
        });
        match client.request(&request) {
            Ok(()) => {}
            // It went away again; reading notices.
            Err(error) if error.is_gone() => {}
            Err(error) => return Err(error.into()),
        }
        self.client = client;
        Ok(())
    }
}

fn labelled(label: &str, event: &impl Serialize) -> serde_json::Value {
    let mut event = json!(event);
    event["agent"] = json!(label);
    event
}
