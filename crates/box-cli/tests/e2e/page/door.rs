//! The page's door for programs: the document that describes it against the host itself, tokens,
//! an ACP client of one's own, and a terminal in a box.

use super::wire::{BINARY, Socket, TEXT, authority, request};
use crate::e2e::host::TestHost;
use crate::e2e::program::Program;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long the schema tester makes up requests.
const SCHEMA_SECONDS: &str = "20";

fn made(host: &TestHost, words: &[&str]) -> Value {
    let said = host.ok(&[&["ui", "token", "add"][..], words, &["--json"]].concat());
    serde_json::from_str(&said).unwrap()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// Set up by `cargo xtask test browser`.
fn schema_tester() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    target.join("tools/schemathesis/bin/st")
}

/// Every endpoint answers what its document says, whatever it is asked, and never with a failure of
/// the host.
#[test]
fn the_interface_is_as_its_document_says() {
    let host = TestHost::new();
    host.ok(&["new", "web"]);
    host.run(&["run", "demo", "go", "--name", "web"]);
    let token = made(&host, &["schema", "--scope", "full"]);
    let bearer = format!("Authorization: Bearer {}", text(&token["token"]));
    let document = format!("{}/openapi.json", text(&token["url"]));
    let base = document.strip_suffix("/api/openapi.json").unwrap();
    let tester = schema_tester().display().to_string();
    let mut tester = Program::other(
        &tester,
        &[
            "--no-color",
            "run",
            &document,
            "--url",
            base,
            "--header",
            &bearer,
            "--phases",
            "examples,coverage,fuzzing",
            "--checks",
            "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance",
            "--max-examples",
            "15",
            "--max-time",
            SCHEMA_SECONDS,
            "--request-timeout",
            "30",
            "--generation-deterministic",
            "--continue-on-failure",
            "--warnings",
            "off",
            "--no-shrink",
            "--suppress-health-check",
            "all",
            // What is begun here goes on after the answer, or waits for what never comes.
            "--exclude-operation-id",
            "post_threads",
        ],
    );
    // It keeps its notes where it is started.
    tester.command.current_dir(host.run_dir());
    let said = tester.deadline(Duration::from_mins(3)).run();
    assert_eq!(said.code, 0, "{said}\n{}", host.whereabouts());
    let asked = said.out.contains("/api/boxes") || said.out.contains("Tested");
    assert!(asked, "nothing was tested: {said}");
}

#[test]
fn a_program_has_a_token_of_its_own() {
    let host = TestHost::new();
    let token = made(&host, &["ci", "--scope", "full", "--days", "1"]);
    let at = authority(&text(&token["url"]));
    let bearer = format!("Bearer {}", text(&token["token"]));
    let (status, body) = request(&at, "GET /api/me", &[("authorization", &bearer)], "");
    assert_eq!(status, 200, "{body}");
    let ask = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
    ];
    let (status, body) = request(
        &at,
        "POST /api/tokens",
        &ask,
        r#"{"label":"x","scope":"full"}"#,
    );
    assert!(
        status == 403 && body.contains("token-not-for-this"),
        "{body}"
    );
    let listed = host.ok(&["ui", "token", "list"]);
    assert!(listed.contains("ci") && listed.contains("full"), "{listed}");
    assert!(!listed.contains(&text(&token["token"])), "{listed}");
    host.ok(&["ui", "token", "revoke", &text(&token["info"]["id"])]);
    let (status, _) = request(&at, "GET /api/me", &[("authorization", &bearer)], "");
    assert_eq!(status, 401);
    let wrong = host.run(&["ui", "token", "add", "x", "--acp", "none"]);
    assert_eq!(wrong.code, 1, "{wrong}");

    // Numbers for a monitor, which gets nothing else.
    let monitor = made(&host, &["prometheus", "--scope", "metrics"]);
    let bearer = format!("Bearer {}", text(&monitor["token"]));
    let (status, body) = request(&at, "GET /metrics", &[("authorization", &bearer)], "");
    assert!(
        status == 200 && body.contains("box_up 1"),
        "{status} {body}"
    );
    let (status, _) = request(&at, "GET /api/me", &[("authorization", &bearer)], "");
    assert_eq!(status, 403);
    let (status, _) = request(&at, "GET /metrics", &[], "");
    assert_eq!(status, 401);
    let (status, body) = request(&at, "GET /healthz", &[], "");
    assert!(status == 200 && body.contains("true"), "{body}");
}

/// An ACP client, as far as a test is one.
struct Client {
    socket: Socket,
    heard: Vec<Value>,
}

impl Client {
    fn open(host: &TestHost, name: &str) -> Self {
        let token = made(host, &["editor", "--acp", name]);
        let url = text(&token["url"]);
        let protocols = format!("acp.v1, bearer.{}", text(&token["token"]));
        let path = format!("/api/boxes/{name}/acp?agent=demo");
        let shown = [("sec-websocket-protocol", protocols.as_str())];
        let socket = Socket::open(&authority(&url), &path, &shown).unwrap();
        Self {
            socket,
            heard: Vec::new(),
        }
    }

    fn say(&mut self, mut message: Value) {
        message["jsonrpc"] = json!("2.0");
        self.socket.say(&message);
    }

    /// What answers a request; what is asked meanwhile gets the first option.
    fn ask(&mut self, id: u64, method: &str, params: &Value) -> Value {
        self.say(json!({"id": id, "method": method, "params": params}));
        loop {
            let message = self.socket.json();
            self.heard.push(message.clone());
            if message["method"] == "session/request_permission" {
                let option = &message["params"]["options"][0]["optionId"];
                let outcome = json!({"outcome": "selected", "optionId": option});
                self.say(json!({"id": message["id"], "result": {"outcome": outcome}}));
            } else if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    fn updates(&self, kind: &str) -> usize {
        let of_kind = |message: &&Value| message["params"]["update"]["sessionUpdate"] == kind;
        self.heard.iter().filter(of_kind).count()
    }
}

#[test]
fn an_acp_client_of_ones_own_speaks_to_a_thread_over_a_websocket() {
    let host = TestHost::new();
    host.ok(&["new", "one"]);
    host.ok(&["new", "two"]);
    let mut client = Client::open(&host, "one");
    let hello = json!({"protocolVersion": 1, "clientCapabilities": {}});
    let greeted = client.ask(1, "initialize", &hello);
    assert_eq!(greeted["result"]["protocolVersion"], 1, "{greeted}");
    let folder = json!({"cwd": "/home/me", "mcpServers": []});
    let opened = client.ask(2, "session/new", &folder);
    let session = text(&opened["result"]["sessionId"]);
    let prompt = json!({"sessionId": session, "prompt": [
        {"type": "text", "text": "go"},
        {"type": "image", "mimeType": "image/png", "data": "bm90IHJlYWxseQ=="},
    ]});
    let ended = client.ask(3, "session/prompt", &prompt);
    assert_eq!(ended["result"]["stopReason"], "end_turn", "{ended}");
    assert!(client.updates("agent_message_chunk") > 0 && client.updates("tool_call") > 0);
    let image = host.shell("one", "cat .box/attachments/image.png");
    assert_eq!(image.out, "not really", "{image}");

    // The thread outlives its client, and the next one reads all of it.
    drop(client);
    let mut again = Client::open(&host, "one");
    let loaded = again.ask(
        4,
        "session/load",
        &json!({"sessionId": session, "cwd": "/"}),
    );
    assert_eq!(loaded["result"], json!({}), "{loaded}");
    assert!(again.updates("agent_message_chunk") > 0);

    // A token of one box opens no other, and a thread of another box is none.
    let token = made(&host, &["editor", "--acp", "two"]);
    let protocols = format!("acp.v1, bearer.{}", text(&token["token"]));
    let shown = [("sec-websocket-protocol", protocols.as_str())];
    let at = authority(&text(&token["url"]));
    assert_eq!(
        Socket::open(&at, "/api/boxes/one/acp", &shown).err(),
        Some(403)
    );
    let mut other = Client::open(&host, "two");
    let refused = other.ask(
        5,
        "session/load",
        &json!({"sessionId": session, "cwd": "/"}),
    );
    assert_eq!(refused["error"]["code"], -32002, "{refused}");
    // Nor does it open anything else.
    let bearer = format!("Bearer {}", text(&token["token"]));
    let (status, _) = request(&at, "GET /api/boxes", &[("authorization", &bearer)], "");
    assert_eq!(status, 403);
    host.ok(&["ui", "token", "revoke", &text(&token["info"]["id"])]);
    assert_eq!(
        Socket::open(&at, "/api/boxes/two/acp", &shown).err(),
        Some(401)
    );
}

/// A terminal of a program with a token; what it printed so far.
struct Shell {
    socket: Socket,
    terminal: String,
    printed: Vec<u8>,
    from: usize,
}

impl Shell {
    fn open(at: &str, bearer: &str, query: &str) -> Self {
        let path = format!("/api/boxes/web/terminal?{query}");
        let shown = [
            ("authorization", bearer),
            ("sec-websocket-protocol", "boxes"),
        ];
        let mut socket = Socket::open(at, &path, &shown).unwrap();
        let opened = socket.json();
        assert_eq!(opened["frame"], "opened", "{opened}");
        Self {
            terminal: text(&opened["terminal"]),
            from: usize::try_from(opened["from"].as_u64().unwrap()).unwrap(),
            socket,
            printed: Vec::new(),
        }
    }

    fn types(&mut self, line: &str) {
        self.socket.send(BINARY, line.as_bytes());
    }

    /// Reads until this was printed, and tells what it has.
    fn until(&mut self, wanted: &str) -> String {
        loop {
            let text = String::from_utf8_lossy(&self.printed).into_owned();
            if text.contains(wanted) {
                return text;
            }
            let (kind, body) = self.socket.next().expect("the host closed");
            assert_eq!(kind, BINARY, "{}", String::from_utf8_lossy(&body));
            self.printed.extend(body);
            let to = self.from + self.printed.len();
            self.socket.say(&json!({"frame": "taken", "to": to}));
        }
    }
}

#[test]
fn a_terminal_in_a_box_is_resized_taken_up_again_and_bounded() {
    let host = TestHost::new();
    host.ok(&["new", "web"]);
    let token = made(&host, &["terminal", "--scope", "full"]);
    let (at, bearer) = (
        authority(&text(&token["url"])),
        format!("Bearer {}", text(&token["token"])),
    );
    let mut shell = Shell::open(&at, &bearer, "rows=31&columns=97");
    shell.types("echo size=$(stty size)\n");
    shell.until("size=31 97");
    shell
        .socket
        .say(&json!({"frame": "size", "rows": 20, "columns": 50}));
    shell.types("echo now=$(stty size)\n");
    shell.until("now=20 50");

    // The connection breaks; what is printed meanwhile is there when it is taken up again.
    let (terminal, from) = (shell.terminal.clone(), shell.printed.len());
    shell.types("kept=here; echo begun-$((1+1)); read line; echo $kept-$line\n");
    shell.until("begun-2");
    drop(shell);
    let again = format!("terminal={terminal}&from={from}");
    let mut shell = Shell::open(&at, &bearer, &again);
    assert_eq!(shell.from, from);
    shell.until("begun-2");
    shell.types("again\n");
    shell.until("here-again");

    // Whoever takes it up last has it.
    let mut second = Shell::open(&at, &bearer, &format!("terminal={terminal}"));
    let bye = loop {
        match shell.socket.next() {
            Some((TEXT, body)) => break String::from_utf8(body).unwrap(),
            Some(_) => {}
            None => panic!("nothing was said"),
        }
    };
    assert!(bye.contains("elsewhere"), "{bye}");

    // A shell nobody reads from waits: no more than a window is sent until it is taken.
    second.types("head -c 2000000 /dev/zero | tr '\\0' x; echo; echo done-$((1+1))\n");
    let mut untaken = 0;
    while untaken < 256 << 10 {
        let (_, body) = second.socket.next().unwrap();
        second.printed.extend(&body);
        untaken += body.len();
    }
    let (status, body) = request(&at, "GET /api/me", &[("authorization", &bearer)], "");
    assert_eq!(status, 200, "{body}");
    let to = second.from + second.printed.len();
    second.socket.say(&json!({"frame": "taken", "to": to}));
    second.until("done-2");

    // The shell's own end is told, and the terminal is gone with it.
    second.types("exit 7\n");
    let ended = second.socket.json();
    assert_eq!(ended, json!({"frame": "ended", "code": 7}));
    let path = format!("/api/boxes/web/terminal?terminal={terminal}");
    let shown = [
        ("authorization", bearer.as_str()),
        ("sec-websocket-protocol", "boxes"),
    ];
    assert_eq!(Socket::open(&at, &path, &shown).err(), Some(404));

    // Revoked: the terminal closes at once.
    let mut last = Shell::open(&at, &bearer, "");
    host.ok(&["ui", "token", "revoke", &text(&token["info"]["id"])]);
    loop {
        match last.socket.next() {
            None => break,
            Some((TEXT, body)) => {
                let said = String::from_utf8(body).unwrap();
                assert!(said.contains("signed out"), "{said}");
            }
            Some(_) => {}
        }
    }
}
