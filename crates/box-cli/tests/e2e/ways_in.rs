//! The other ways in: a program that reads events, a script that wants an answer, an editor, files
//! for the agent, and `!` lines. All with the scripted agent, in real boxes.

use super::credential::Token;
use super::host::{PATIENCE, TestHost};
use super::program::Said;
use box_fakes::model::{Script, Step};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};

fn events(said: &Said) -> Vec<Value> {
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
    said.out.lines().map(parse).collect()
}

#[test]
fn a_program_reads_events_and_a_script_gets_an_answer() {
    let host = TestHost::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("my shot.png");
    fs::write(&file, b"not really a picture").unwrap();
    let run = [
        "run",
        "demo",
        "look",
        "--name",
        "one",
        "--allow-all",
        "--json",
        "--attach",
    ];
    let said = host.run(&[&run[..], &[file.to_str().unwrap()]].concat());
    said.assert_code(0);
    let events = events(&said);
    assert!(
        events.iter().all(|event| event["event"].is_string()),
        "{said}"
    );
    let last = events.last().unwrap();
    assert_eq!(last["event"], "result", "{said}");
    assert_eq!(
        (&last["outcome"], &last["exit"]),
        (&json!("done"), &json!(0))
    );
    assert_eq!(last["name"], "one");

    // The prompt names the file, the box has it, and no repository sees it.
    let path = "/workspace/.box/attachments/my_shot.png";
    let prompt = events.iter().find(|event| event["kind"] == "prompt");
    let text = prompt.unwrap()["text"].as_str().unwrap();
    assert!(
        text.contains(&format!("- {path} (image/png, 20 bytes)")),
        "{text}"
    );
    assert!(text.ends_with("\n\nlook"), "{text}");
    let inside = host.shell(
        "one",
        &format!(
            "cat {path}; mkdir r; cp -r .box r/; cd r; git init -q; touch seen; git status -s"
        ),
    );
    assert_eq!(inside.out, "not really a picture?? seen\n", "{inside}");

    // The answer, and nothing else.
    let said = host.run(&["ask", "one", "and now?", "--allow-all"]);
    said.assert_code(0);
    assert!(
        !said.out.trim().is_empty() && !said.out.contains('✓'),
        "{said}"
    );
    let asked = host.run(&["ask", "one", "and now?", "--allow-all", "--json"]);
    let object: Value = serde_json::from_str(&asked.out).unwrap();
    assert_eq!(
        (&object["outcome"], &object["exit"]),
        (&json!("done"), &json!(0))
    );
    assert_eq!(object["answer"].as_str().unwrap().trim(), said.out.trim());
}

#[test]
fn agents_work_side_by_side_and_their_work_comes_home() {
    let host = TestHost::new();
    let folder = tempfile::tempdir().unwrap();
    let git = |words: &[&str]| {
        let mut program = super::program::Program::other("git", words);
        program.command.current_dir(folder.path());
        let said = program.run();
        said.assert_code(0);
        said.out
    };
    git(&["init", "-q", "-b", "main"]);
    fs::write(folder.path().join("a"), "a\n").unwrap();
    git(&["add", "a"]);
    git(&[
        "-c",
        "user.name=A",
        "-c",
        "user.email=a@x",
        "commit",
        "-qm",
        "a",
    ]);
    let mut program = host.program(&[
        "run",
        "--agents",
        "demo,demo",
        "go",
        "--here",
        "--allow-all",
    ]);
    program.command.current_dir(folder.path());
    let said = program.run();
    said.assert_code(0);
    assert!(
        said.out.lines().any(|line| line.starts_with("demo   │ ")),
        "{said}"
    );
    assert!(
        said.out.lines().any(|line| line.starts_with("demo-2 │ ")),
        "{said}"
    );
    let (_, table) = said.out.split_once("AGENT").expect("a table");
    let rows: Vec<Vec<&str>> = table
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows.len(), 2, "{said}");
    let branches = git(&["branch", "--list", "box/*"]);
    for row in rows {
        let [_, name, outcome, files, branch] = row[..] else {
            panic!("not five cells: {row:?}");
        };
        assert_eq!((outcome, branch), ("done", &format!("box/{name}")[..]));
        assert!(files.parse::<u32>().unwrap() > 0, "{said}");
        assert!(branches.contains(branch), "{branches}");
    }
}

#[test]
fn a_marked_line_runs_in_the_box_and_not_past_its_limits() {
    let host = TestHost::new();
    host.ok(&["run", "demo", "go", "--name", "one", "--allow-all"]);
    host.ok(&["stop", "one"]);
    let mut terminal = host.terminal(&["attach", "one"]);
    terminal.expect("Ctrl-D leaves", PATIENCE);
    // A box that does not run is started.
    terminal.type_in("!echo in $PWD; exit 3\n");
    terminal.expect("in /workspace", PATIENCE);
    terminal.expect("[exit 3]", PATIENCE);
    terminal.type_in("!echo first; head -c 300000 /dev/zero | tr '\\0' x; sleep 1000\n");
    terminal.expect("first", PATIENCE);
    terminal.expect("[truncated]", PATIENCE);
    terminal.type_in("\u{4}");
    assert_eq!(terminal.finish(PATIENCE), 0, "{}", terminal.seen);
    // Both are rows, and the agent was told of neither.
    let said = host.run(&["attach", "one", "--json"]);
    let rows = events(&said);
    let rows: Vec<&Value> = rows.iter().filter(|row| row["kind"] == "command").collect();
    assert_eq!(rows.len(), 2, "{said}");
    assert_eq!(
        (&rows[0]["exit"], &rows[0]["output"]),
        (&json!(3), &json!("in /workspace\n"))
    );
    assert_eq!(
        (&rows[1]["exit"], &rows[1]["note"]),
        (&Value::Null, &json!("truncated"))
    );
    assert_eq!(rows[1]["output"].as_str().unwrap().len(), 256 << 10);
    let left = host.shell("one", "pgrep -x sleep || echo none");
    assert_eq!(left.out, "none\n", "{left}");
}

/// An editor, strict: each line must be JSON-RPC, and what it asks is answered in time.
struct Editor {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<Value>,
    /// Notifications and requests since they were looked at.
    heard: Vec<Value>,
}

impl Editor {
    fn open(host: &TestHost, arguments: &[&str]) -> Self {
        let mut program = host.program(arguments);
        program.command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = program.command.spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (say, lines) = sync_channel(10_000);
        let read = move || {
            for line in out.lines().map_while(Result::ok) {
                let message: Value = serde_json::from_str(&line).expect(&line);
                assert_eq!(message["jsonrpc"], "2.0", "{line}");
                // Nobody listens any more when the test has ended.
                drop(say.send(message));
            }
        };
        std::thread::spawn(read);
        Self {
            child,
            stdin,
            lines,
            heard: Vec::new(),
        }
    }

    fn send(&mut self, message: &Value) {
        let mut message = message.clone();
        message["jsonrpc"] = json!("2.0");
        writeln!(self.stdin, "{message}").unwrap();
    }

    /// The next message `wanted` is true of; what comes before it is kept.
    #[track_caller]
    fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.lines.recv_timeout(PATIENCE);
            let message = message.unwrap_or_else(|_| panic!("only heard {:#?}", self.heard));
            self.heard.push(message.clone());
            if wanted(&message) {
                return message;
            }
        }
    }

    #[track_caller]
    fn ask(&mut self, id: u64, method: &str, params: &Value) -> Value {
        self.send(&json!({"id": id, "method": method, "params": params}));
        self.until(|message| message["id"] == id && message.get("method").is_none())
    }

    /// Answers what it is asked with the first option until the turn is over.
    #[track_caller]
    fn work(&mut self, id: u64) -> (Value, usize) {
        let mut asked = 0;
        loop {
            let message = self.until(|message| {
                message["method"] == "session/request_permission"
                    || (message["id"] == id && message.get("method").is_none())
            });
            if message.get("method").is_none() {
                return (message, asked);
            }
            asked += 1;
            let option = &message["params"]["options"][0]["optionId"];
            let outcome = json!({"outcome": "selected", "optionId": option});
            self.send(&json!({"id": message["id"], "result": {"outcome": outcome}}));
        }
    }

    fn updates(&self, kind: &str) -> usize {
        let of_kind = |message: &&Value| message["params"]["update"]["sessionUpdate"] == kind;
        self.heard.iter().filter(of_kind).count()
    }

    /// Closes its end; the agent ends by itself.
    fn close(self) {
        let Self {
            mut child, stdin, ..
        } = self;
        drop(stdin);
        let pidfd = super::program::pidfd(&child);
        assert!(super::program::ends_within(&pidfd, PATIENCE));
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn an_editor_has_a_box_for_its_agent() {
    let host = TestHost::new();
    host.ok(&["new", "one"]);
    let mut editor = Editor::open(&host, &["acp", "one", "--agent", "demo"]);
    let hello = json!({"protocolVersion": 1, "clientCapabilities": {}});
    let greeted = editor.ask(1, "initialize", &hello);
    assert_eq!(greeted["result"]["protocolVersion"], 1);
    assert_eq!(greeted["result"]["agentCapabilities"]["loadSession"], true);
    let refused = editor.ask(2, "session/nothing", &json!({}));
    assert_eq!(refused["error"]["code"], -32601);
    let opened = editor.ask(
        3,
        "session/new",
        &json!({"cwd": "/home/me", "mcpServers": []}),
    );
    let session = opened["result"]["sessionId"].as_str().unwrap().to_owned();
    let prompt = |text: &str| {
        json!({"sessionId": session, "prompt": [
            {"type": "text", "text": text},
            {"type": "image", "mimeType": "image/png", "data": "bm90IHJlYWxseQ=="},
        ]})
    };

    // A turn, all of it answered by the editor.
    editor.send(&json!({"id": 4, "method": "session/prompt", "params": prompt("go")}));
    let (ended, asked) = editor.work(4);
    assert_eq!(ended["result"]["stopReason"], "end_turn", "{ended}");
    assert!(asked > 0, "nothing was asked");
    assert!(editor.updates("agent_message_chunk") > 0);
    assert!(editor.updates("tool_call") > 0 && editor.updates("plan") > 0);
    assert_eq!(
        editor.updates("user_message_chunk"),
        0,
        "its own words came back"
    );
    let image = host.shell("one", "cat .box/attachments/image.png");
    assert_eq!(image.out, "not really", "{image}");

    // Somebody else is faster, and the editor is told so.
    editor.send(&json!({"id": 5, "method": "session/prompt", "params": prompt("again")}));
    let question = editor.until(|message| message["method"] == "session/request_permission");
    let open: Value = serde_json::from_str(&host.ok(&["decisions", "--json"])).unwrap();
    let open = &open[0]["decision"];
    let number = open["decision"].to_string();
    host.ok(&[
        "answer",
        &number,
        open["options"][0]["id"].as_str().unwrap(),
    ]);
    let taken = editor.until(|message| message["method"] == "$/cancel_request");
    assert_eq!(taken["params"]["requestId"], question["id"]);
    // And cancelling ends it.
    editor.send(&json!({"method": "session/cancel", "params": {"sessionId": session}}));
    let ended = editor.until(|message| message["id"] == 5 && message.get("method").is_none());
    assert_eq!(ended["result"]["stopReason"], "cancelled", "{ended}");
    editor.close();

    // The thread outlived the editor; the next one reads all of it.
    let mut editor = Editor::open(&host, &["acp", "one"]);
    editor.ask(1, "initialize", &hello);
    let unknown = json!({"sessionId": "nothing", "cwd": "/", "mcpServers": []});
    assert_eq!(
        editor.ask(2, "session/load", &unknown)["error"]["code"],
        -32002
    );
    let known = json!({"sessionId": session, "cwd": "/", "mcpServers": []});
    let loaded = editor.ask(3, "session/load", &known);
    assert_eq!(loaded["result"], json!({}), "{loaded}");
    assert_eq!(editor.updates("user_message_chunk"), 2);
    assert!(editor.updates("agent_message_chunk") > 0);
    editor.close();
}

#[test]
fn real_claude_reads_a_file_that_was_attached() {
    let host = TestHost::new();
    let token = Token::random();
    let model = host.rig.model(token.as_str());
    let script = Script::on("what does the note say");
    let read = "cat /workspace/.box/attachments/note.txt";
    model.script(
        script
            .message([Step::text("I will read it."), Step::bash(read)])
            .message([Step::text("It says: buy milk.")]),
    );
    token.add_to(&host);
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("note.txt");
    fs::write(&note, "buy milk\n").unwrap();
    let mut run = vec!["run", "claude", "what does the note say?"];
    run.extend(["--name", "one", "--attach", note.to_str().unwrap()]);
    let mut terminal = host.terminal(&run);
    terminal.expect("It says: buy milk.", PATIENCE);
    assert_eq!(terminal.finish(PATIENCE), 0, "{}", terminal.seen);
    let results: Vec<String> = model
        .turns()
        .into_iter()
        .flat_map(|turn| turn.tool_results)
        .collect();
    assert!(
        results.iter().any(|result| result.contains("buy milk")),
        "{results:?}"
    );
}
