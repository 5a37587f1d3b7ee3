//! Turns of the real agents besides Claude Code, each in a real box, offline, through the way out:
//! a tool that is allowed, one that is refused, a cancel, and the conversation taken up again by a
//! new process. Each holds a placeholder; the model server takes the real token and nothing else.

use super::control::{Control, Journal};
use super::credential::assert_nowhere_in_box;
use super::host::{PATIENCE, Start, TestHost};
use box_api::control::{Attach, ClientMessage, Outcome, Reply, Request};
use box_api::thread::{Decision, Item, OptionKind, TurnOutcome};
use box_api::{BoxName, DecisionId};
use box_fakes::model::{Api, Model, Script, Step};
use serde_json::json;
use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;

/// What differs from agent to agent.
struct Real {
    agent: &'static str,
    /// As in `box credential add`.
    kind: &'static str,
    /// How the account's secret begins.
    prefix: &'static str,
    api: Api,
    /// Makes a file of this name; the agent asks before it does.
    make: fn(&str) -> Step,
    /// Run in the box before a new process of the agent is to take up the conversation.
    before_load: &'static str,
}

/// A conversation of gemini-cli 0.61 is found again only once the minute it began in is over, as its
/// file is named by the minute: it is given another one.
const ANOTHER_MINUTE: &str = r#"set -e
cd ~/.gemini/tmp/*/chats
for file in session-*; do mv "$file" "session-2020-01-01T00-00-${file##*-}"; done
ls session-2020*"#;

/// A secret nobody has seen.
pub(super) fn token(prefix: &str) -> String {
    let mut bytes = [0; 24];
    File::open("/dev/urandom")
        .unwrap()
        .read_exact(&mut bytes)
        .unwrap();
    let digits = bytes.map(|byte| format!("{byte:02x}")).concat();
    format!("{prefix}{digits}")
}

impl Real {
    fn scripts(&self, model: &Model) {
        model.script(
            Script::on("make both files")
                .message([Step::text("I make the first."), (self.make)("made.txt")])
                .message([Step::text("And the second."), (self.make)("two.txt")])
                .message([Step::text("That was all.")]),
        );
        model.script(Script::on("wait for ever").message([
            Step::text("I am waiting for something."),
            Step::gate("never"),
        ]));
        model.script(Script::on("are you still there").message([Step::text("Still here.")]));
    }

    /// The whole thread, and what it left.
    fn works(&self) {
        let host = TestHost::with(Start::Agent(self.agent));
        let token = token(self.prefix);
        let model = host.rig.model_of(self.api, &token);
        self.scripts(&model);
        host.program(&["credential", "add", self.kind])
            .input(format!("{token}\n").as_bytes())
            .run()
            .assert_code(0);

        // Nobody is at a terminal: the turn is left waiting.
        let asked = host.run(&["run", self.agent, "make both files", "--name", "one"]);
        asked.assert_code(6);
        // Nobody typed to it where it is: a file says so.
        let first = host.control().journal("one").rows.into_values().next();
        let typed = first.map(|row| row.item);
        assert!(matches!(typed, Some(Item::Prompt { text }) if text == "make both files"));
        let told = "find ~ -maxdepth 4 -name '*.md' -perm 644 -exec grep -l 'inside a \\*box' {} +";
        let told = host.shell("one", told);
        assert!(told.out.contains(".md"), "{told}");
        self.answers(&host);
        self.cancels(&host, &model);
        self.goes_on(&host, &model);

        assert_eq!(model.refusals(), [], "{:?}", model.side_requests());
        let requests = model.requests();
        let credentials: Vec<_> = requests
            .iter()
            .flat_map(|request| request.credentials())
            .collect();
        assert!(!credentials.is_empty(), "no request carried a credential");
        for (name, value) in credentials {
            assert!(value.ends_with(&token), "{name}: {value}");
        }
        assert_nowhere_in_box(&host, "one", &token);
    }

    /// The first tool is allowed, the second refused.
    fn answers(&self, host: &TestHost) {
        let first = open_decision(host, None);
        answer(host, &first, OptionKind::AllowOnce);
        let second = open_decision(host, Some(first.decision));
        answer(host, &second, OptionKind::RejectOnce);
        let (_, journal) = host.control().follow_until("one", Journal::ended);
        let workspace = PathBuf::from(host.info("one").workspace.unwrap());
        assert!(workspace.join("made.txt").exists(), "{journal:?}");
        assert!(!workspace.join("two.txt").exists(), "{journal:?}");
        assert!(
            journal.text().contains("I make the first."),
            "{}: {journal:?}",
            self.agent
        );
    }

    fn cancels(&self, host: &TestHost, model: &Model) {
        let mut control = prompt(host, "please wait for ever");
        model.wait_at("never", PATIENCE).unwrap();
        control.send(&ClientMessage::CancelTurn);
        let outcome = ended(control);
        assert_eq!(outcome, TurnOutcome::Cancelled, "{}", self.agent);
    }

    fn goes_on(&self, host: &TestHost, model: &Model) {
        host.ok(&["stop", "one"]);
        host.ok(&["start", "one"]);
        host.shell("one", self.before_load).assert_code(0);
        let before = host.control().journal("one");
        let outcome = ended(prompt(host, "are you still there"));
        let journal = host.control().journal("one");
        assert_eq!(outcome, TurnOutcome::Done, "{journal:?}");
        assert!(journal.text().ends_with("Still here."), "{journal:?}");
        let turns = model.turns();
        let asked = turns
            .iter()
            .rfind(|turn| turn.prompt == "are you still there");
        let turn = asked.unwrap_or_else(|| panic!("{turns:?}"));
        let knows = turn.before.iter().any(|prompt| prompt == "make both files");
        let told = journal.rows.values().any(
            |row| matches!(&row.item, Item::Notice { text } if text.contains("begins a new one")),
        );
        assert!(!told && knows, "{turn:?} {journal:?}");
        // What it repeats of the conversation is not written a second time, whenever it does so.
        let said = journal.text();
        assert_eq!(said.matches("I make the first.").count(), 1, "{journal:?}");
        let calls = |journal: &Journal| {
            let calls = journal.rows.values();
            calls
                .filter(|row| matches!(row.item, Item::ToolCall { .. }))
                .count()
        };
        assert_eq!(calls(&journal), calls(&before), "{journal:?}");
    }
}

/// Waits for an open decision that is not this one.
#[track_caller]
fn open_decision(host: &TestHost, but: Option<DecisionId>) -> Decision {
    let (decision, _) = host.control().follow_until("one", |journal| {
        if let (Some(end), true) = (journal.ended(), journal.open_decisions().is_empty()) {
            panic!("the turn ended without a question: {end:?} {journal:?}");
        }
        let open = journal.open_decisions();
        open.into_iter()
            .find(|decision| Some(decision.decision) != but)
    });
    decision
}

#[track_caller]
fn answer(host: &TestHost, decision: &Decision, kind: OptionKind) {
    let option = decision.options.iter().find(|option| option.kind == kind);
    let option = option.unwrap_or_else(|| panic!("no {kind:?}: {decision:?}"));
    let answer = Request::Answer {
        decision: decision.decision,
        option: option.id.clone(),
    };
    let answered = host.control().ask(&answer);
    assert!(matches!(answered, Ok(Outcome::Nothing)), "{answered:?}");
}

/// Gives the thread another prompt.
pub(super) fn prompt(host: &TestHost, text: &str) -> Control {
    let mut control = host.control();
    control.send(&Request::Attach(Attach {
        name: BoxName::parse("one").unwrap(),
        thread: None,
        after: None,
        follow: true,
    }));
    control.send(&ClientMessage::Prompt {
        text: text.to_owned(),
    });
    control
}

/// Waits for the end of the turn that was prompted for last.
#[track_caller]
pub(super) fn ended(mut control: Control) -> TurnOutcome {
    let mut journal = Journal::default();
    let mut caught_up = 0;
    loop {
        match control.next() {
            Reply::Update(update) => {
                if matches!(update, box_api::thread::ThreadUpdate::CaughtUp { .. }) {
                    caught_up = journal.rows.keys().next_back().copied().unwrap_or_default();
                }
                journal.take(update);
            }
            Reply::Problem(problem) => panic!("lost the thread: {problem:?}"),
            Reply::Done(outcome) => panic!("the thread ended: {outcome:?} {journal:?}"),
            _ => {}
        }
        let prompts = journal.rows.values().rev();
        let end = prompts
            .take_while(|row| row.seq > caught_up)
            .find_map(|row| match &row.item {
                Item::TurnEnded { outcome, .. } => Some(*outcome),
                _ => None,
            });
        if let (Some(outcome), 1..) = (end, caught_up) {
            return outcome;
        }
    }
}

#[test]
fn real_codex_works_is_refused_is_cancelled_and_goes_on() {
    Real {
        agent: "codex",
        kind: "openai",
        prefix: "sk-proj-",
        api: Api::OpenAi,
        make: |file| {
            // Its one tool runs a script, which calls the others.
            let command = json!({
                "cmd": format!("touch {file}"),
                "sandbox_permissions": "require_escalated",
                "justification": "It makes a file.",
            });
            let script = format!("text(await tools.exec_command({command}))");
            Step::tool("exec", json!(script))
        },
        before_load: "",
    }
    .works();
}

#[test]
fn real_opencode_works_is_refused_is_cancelled_and_goes_on() {
    Real {
        agent: "opencode",
        kind: "openai",
        prefix: "sk-proj-",
        api: Api::OpenAi,
        make: |file| {
            let input = json!({
                "command": format!("touch {file}"),
                "description": "Makes a file",
            });
            Step::tool("bash", input)
        },
        before_load: "",
    }
    .works();
}

#[test]
fn real_gemini_works_is_refused_is_cancelled_and_goes_on() {
    Real {
        agent: "gemini",
        kind: "gemini",
        prefix: "AIza",
        api: Api::Gemini,
        make: |file| {
            let input = json!({
                "command": format!("touch {file}"),
                "description": "Makes a file",
            });
            Step::tool("run_shell_command", input)
        },
        before_load: ANOTHER_MINUTE,
    }
    .works();
}
