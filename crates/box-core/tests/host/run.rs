//! Setting an agent to work: what is refused and how, what is made, and what is taken back.

use crate::fake_runtime::FakeRuntime;
use crate::rig::{Rig, name, owner, quiet, uid};
use async_trait::async_trait;
use box_api::BoxId;
use box_api::control::{Limits, NetPreset, Profile, Run};
use box_api::thread::{Cursor, Item, ThreadState, ThreadUpdate, TurnOutcome};
use box_core::boxes::reason;
use box_core::clock::ManualClock;
use box_core::egress::Egress;
use box_core::host::Runtimes;
use box_core::open::{Opening, open};
use box_core::policy::Machine;
use box_core::random::SystemRandom;
use box_core::thread::{self, AttachError, RunError};
use box_core::{Host, boxes, decisions};
use box_runtime::{
    BoxSpec, ExecSpec, Execution, Images, Observed, Processes, RunningProcess, Runtime,
    RuntimeError, Started,
};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(30);

/// An engine whose commands say one thing and end.
#[derive(Debug, Clone)]
struct Engine {
    boxes: FakeRuntime,
    says: &'static str,
    code: i32,
    commands: Arc<Mutex<Vec<ExecSpec>>>,
}

impl Engine {
    fn new(says: &'static str, code: i32) -> Self {
        Self {
            boxes: FakeRuntime::default(),
            says,
            code,
            commands: Arc::default(),
        }
    }
}

#[derive(Debug)]
struct Ended(i32);

#[async_trait]
impl RunningProcess for Ended {
    async fn signal(&self, _number: i32) -> Result<(), RuntimeError> {
        Ok(())
    }

    async fn wait(&self) -> Result<i32, RuntimeError> {
        Ok(self.0)
    }
}

#[async_trait]
impl Runtime for Engine {
    fn name(&self) -> &'static str {
        self.boxes.name()
    }

    fn limits_held_by(&self) -> &'static str {
        self.boxes.limits_held_by()
    }

    async fn create(&self, spec: &BoxSpec) -> Result<(), RuntimeError> {
        self.boxes.create(spec).await
    }

    async fn start(&self, spec: &BoxSpec) -> Result<Started, RuntimeError> {
        self.boxes.start(spec).await
    }

    async fn stop(&self, id: &BoxId, grace: Duration) -> Result<(), RuntimeError> {
        self.boxes.stop(id, grace).await
    }

    async fn remove(&self, id: &BoxId) -> Result<(), RuntimeError> {
        Runtime::remove(&self.boxes, id).await
    }

    async fn list(&self) -> Result<Vec<Observed>, RuntimeError> {
        Runtime::list(&self.boxes).await
    }

    async fn exec(&self, _id: &BoxId, spec: ExecSpec) -> Result<Execution, RuntimeError> {
        self.commands.lock().await.push(spec);
        let (mut input, stdin) = std::io::pipe().unwrap();
        let (stdout, _) = std::io::pipe().unwrap();
        let (stderr, mut words) = std::io::pipe().unwrap();
        words.write_all(self.says.as_bytes()).unwrap();
        std::thread::spawn(move || input.read_to_end(&mut Vec::new()));
        Ok(Execution {
            streams: vec![stdin.into(), stdout.into(), stderr.into()],
            process: Box::new(Ended(self.code)),
        })
    }

    fn images(&self) -> &dyn Images {
        self.boxes.images()
    }

    fn processes(&self) -> Option<&dyn Processes> {
        None
    }
}

fn host(rig: &Rig, engine: &Engine) -> Arc<Host> {
    let opening = Opening {
        paths: rig.paths(),
        machine: Machine::at(Path::new("/nonexistent"), &|_| None),
        environment: box_core::settings::Environment::default(),
        clock: Arc::new(ManualClock::at(1_790_000_000_000)),
        random: Arc::new(SystemRandom),
        build: "test".to_owned(),
        uid: uid(),
        pid: std::process::id(),
    };
    let runtimes = Runtimes::new(Arc::new(engine.clone()), Vec::new());
    open(opening, runtimes).unwrap().with(Egress::absent())
}

fn asked(agent: &str) -> Run {
    Run {
        agent: agent.to_owned(),
        prompt: "say hello".to_owned(),
        name: None,
        repo: None,
        allow_all: false,
        image: None,
        profile: Profile::Locked,
        net: NetPreset::Balanced,
        limits: Limits::default(),
        settings: box_api::control::BoxSettings::default(),
        attachments: Vec::new(),
        chosen: Vec::new(),
    }
}

/// What a person is told: text, cause, hint.
async fn refused(host: &Arc<Host>, asked: Run) -> (String, String, Option<String>) {
    let error = thread::run(host, &owner(), asked, quiet())
        .await
        .unwrap_err();
    let cause = std::error::Error::source(&error)
        .map(reason)
        .unwrap_or_default();
    (error.to_string(), cause, error.hint())
}

#[tokio::test]
async fn what_cannot_be_run_is_refused_before_anything_is_made() {
    let (rig, engine) = (Rig::new(), Engine::new("", 0));
    let host = host(&rig, &engine);
    let told = |title: &str, cause: &str, hint: Option<&str>| {
        (title.to_owned(), cause.to_owned(), hint.map(str::to_owned))
    };
    assert_eq!(
        refused(&host, asked("cluade")).await,
        told(
            "there is no agent `cluade`",
            "",
            Some(
                "did you mean `claude`? agents here: `claude`, `codex`, `opencode`, `gemini`, `grok`, `kimi`, `copilot`, `qwen`, `demo`"
            )
        )
    );
    assert_eq!(
        refused(&host, asked("claude")).await,
        told(
            "there is no credential for `claude`",
            "",
            Some(
                "add one with `box credential add claude`, or see it work without: \
                 `box run demo \"hello\"`"
            )
        )
    );
    let empty = Run {
        prompt: " ".to_owned(),
        ..asked("demo")
    };
    assert_eq!(
        refused(&host, empty).await,
        told("a prompt needs a text", "", None)
    );
    let repo = Run {
        repo: Some("--upload-pack=x".to_owned()),
        ..asked("demo")
    };
    assert_eq!(
        refused(&host, repo).await,
        told(
            "could not clone `--upload-pack=x`",
            "this is no address of a repository",
            Some("use `https://host/path` or `git@host:path`")
        )
    );
    assert_eq!(boxes::list(&host, &owner()).await.unwrap(), []);
}

#[tokio::test]
async fn a_failed_clone_says_what_git_said_and_takes_the_new_box_back() {
    let says = "Cloning into '.'...\nfatal: repository 'https://forge.example/a/' not found\n";
    let (rig, engine) = (Rig::new(), Engine::new(says, 128));
    let host = host(&rig, &engine);
    let run = Run {
        repo: Some("git@forge.example:a/".to_owned()),
        ..asked("demo")
    };
    let (title, cause, hint) = refused(&host, run.clone()).await;
    assert_eq!(title, "could not clone `https://forge.example/a/`");
    assert_eq!(
        cause,
        "`git` ended with code 128: Cloning into '.'...; fatal: repository \
         'https://forge.example/a/' not found"
    );
    assert_eq!(hint, None);
    assert_eq!(boxes::list(&host, &owner()).await.unwrap(), []);
    let commands = engine.commands.lock().await.clone();
    assert_eq!(
        commands[0].command,
        ["git", "clone", "--", "https://forge.example/a/", "."]
    );
    assert!(
        commands[0]
            .env
            .contains(&("GIT_TERMINAL_PROMPT".to_owned(), "0".to_owned()))
    );

    // A box that was there before stays.
    let mine = crate::rig::new_box("mine");
    box_core::lifecycle::create(&host, &owner(), mine, quiet())
        .await
        .unwrap();
    let run = Run {
        name: Some(name("mine")),
        ..run
    };
    assert!(matches!(
        thread::run(&host, &owner(), run, quiet()).await,
        Err(RunError::Repo { .. })
    ));
    assert_eq!(boxes::list(&host, &owner()).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_run_makes_a_box_and_a_thread_that_can_be_attached_to() {
    let (rig, engine) = (Rig::new(), Engine::new("", 0));
    let host = host(&rig, &engine);
    let running = thread::run(&host, &owner(), asked("demo"), quiet())
        .await
        .unwrap();
    assert!(running.record.name.as_str().starts_with("demo-"));
    let mut follower = running.handle.subscribe(Cursor::default());
    let mut items = Vec::new();
    let ended = loop {
        match timeout(PATIENCE, follower.next())
            .await
            .unwrap()
            .unwrap()
            .unwrap()
        {
            ThreadUpdate::Row(row) => items.push(row.item),
            ThreadUpdate::Grew { .. } | ThreadUpdate::CaughtUp { .. } => {}
        }
        if let Some(Item::TurnEnded { outcome, note }) = items.last() {
            break (*outcome, note.clone());
        }
    };
    assert_eq!(
        items[0],
        Item::Prompt {
            text: "say hello".to_owned()
        }
    );
    // This engine keeps no processes, and that is told like any other failure of the agent.
    let note = "the agent could not be started: the engine of the box keeps no processes";
    assert_eq!(ended, (TurnOutcome::Failed, Some(note.to_owned())));

    let threads = thread::list(&host, running.record.id).await.unwrap();
    assert_eq!(threads[0].title, "say hello");
    assert_eq!(
        (threads[0].agent.as_str(), threads[0].state),
        ("demo", ThreadState::Failed)
    );
    let attached = thread::attach(&host, &owner(), &running.record.name, None)
        .await
        .unwrap();
    assert_eq!(attached.thread(), running.handle.thread());
    assert_eq!(decisions::open(&host, &owner()).await.unwrap(), []);
}

#[tokio::test]
async fn a_box_without_a_thread_says_how_to_begin_one() {
    let (rig, engine) = (Rig::new(), Engine::new("", 0));
    let host = host(&rig, &engine);
    let new = crate::rig::new_box("bare");
    box_core::lifecycle::create(&host, &owner(), new, quiet())
        .await
        .unwrap();
    let error = thread::attach(&host, &owner(), &name("bare"), None)
        .await
        .unwrap_err();
    assert!(matches!(error, AttachError::None(_)));
    assert_eq!(error.to_string(), "box `bare` has no thread");
    assert_eq!(
        error.hint().as_deref(),
        Some("begin one with `box run <agent> \"…\" --name bare`")
    );
}
