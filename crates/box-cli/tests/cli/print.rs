//! What verbs print, for a person and for a program.

use super::fake_host::FakeHost;
use super::person::Person;
use super::program::Program;
use serde_json::{Value, json};

fn minutes_ago(minutes: i64) -> i64 {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    i64::try_from(now.as_millis()).unwrap() - minutes * 60_000 - 1_000
}

pub(crate) fn info(name: &str, state: &str) -> Value {
    json!({
        "id": "aaaaaaaaaaaaaaaa", "name": name, "title": null, "owner": "uid:0", "state": state,
        "runtime": "native", "image": "default", "profile": "locked", "net": "balanced",
        "limits": {
            "cpu_milli": 2500, "memory_bytes": 4_294_967_296u64, "pids": 512, "tmp_bytes": 536_870_912,
            "disk_bytes": 21_474_836_480u64, "open_files": 65536,
        },
        "limits_held_by": "cgroup v1", "created_at_ms": minutes_ago(5), "threads": [],
        "workspace": null, "pid": null, "problem": null, "frozen": false, "events": [], "accounts": [],
        "traffic": {
            "sent_bytes": 0, "received_bytes": 0, "sent_per_second": 0, "received_per_second": 0,
            "open": 0,
        },
        "settings": {"deadline_ms": null, "freeze_after_ms": null, "nested": false},
        "origin": null, "trashed_at_ms": null,
    })
}

/// The result of asking for a box `demo`.
pub(crate) fn demo_box() -> Value {
    let mut result = info("demo", "running");
    result["result"] = json!("info");
    result
}

fn busy_box() -> Value {
    let thread = |agent: &str, state: &str| {
        json!({
            "thread": "tttttttttttttttt", "agent": agent, "title": "fix the test", "state": state,
            "created_at_ms": 0, "changed_at_ms": 0, "archived": false, "background": 0,
            "decisions": 0, "queued": 0, "last": "",
        })
    };
    let mut busy = info("web-shop", "running");
    busy["title"] = json!("The shop");
    busy["threads"] = json!([thread("claude", "needs_you"), thread("demo", "idle")]);
    busy["created_at_ms"] = json!(minutes_ago(60 * 50));
    busy["workspace"] = json!("/data/boxes/aaaaaaaaaaaaaaaa/workspace");
    busy["pid"] = json!(4242);
    busy
}

fn boxes() -> Value {
    let mut failed = info("broken", "failed");
    failed["problem"] = json!("the image is gone");
    json!([busy_box(), info("demo", "stopped"), failed])
}

#[test]
fn list_is_a_table_for_a_person_and_an_array_for_a_program() {
    let host = FakeHost::new();
    let list = || json!({"verb": "list"});
    host.done(list(), json!({"result": "boxes", "boxes": boxes()}));
    insta::assert_snapshot!(host.run(&["list"]).whole(), @r"
    exit 0
    --- out
    NAME      STATE    IMAGE    PROFILE  NET       AGE  THREADS
    web-shop  running  default  locked   balanced  2d   claude needs you, demo idle
    demo      stopped  default  locked   balanced  5m   -
    broken    failed   default  locked   balanced  5m   -
    ");
    let exact = boxes();
    host.done(list(), json!({"result": "boxes", "boxes": exact.clone()}));
    let said = host.run(&["list", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&said.out).unwrap(), exact);
    assert_eq!(said.err, "");
    host.done(list(), json!({"result": "boxes", "boxes": []}));
    insta::assert_snapshot!(host.run(&["list"]).whole(), @r"
    exit 0
    --- err
    no boxes yet; `box new demo` makes one
    ");
    host.done(list(), json!({"result": "boxes", "boxes": []}));
    assert_eq!(host.run(&["list", "--json"]).out, "[]\n");
}

#[test]
fn info_shows_what_is_known() {
    let host = FakeHost::new();
    let request = || json!({"verb": "info", "name": "web-shop"});
    let mut result = busy_box();
    result["result"] = json!("info");
    host.done(request(), result.clone());
    insta::assert_snapshot!(host.run(&["info", "web-shop"]).whole(), @r"
    exit 0
    --- out
    name       web-shop
    title      The shop
    state      running
    image      default
    profile    locked
    net        balanced
    limits     2.5 CPUs, 4 GiB memory, 20 GiB disk, 512 processes (cgroup v1)
    engine     native
    made       2d ago
    workspace  /data/boxes/aaaaaaaaaaaaaaaa/workspace
    pid        4242
    owner      uid:0
    id         aaaaaaaaaaaaaaaa
    thread     tttttttttttttttt  claude, needs you: fix the test
    thread     tttttttttttttttt  demo, idle: fix the test
    ");
    host.done(request(), result);
    let said = host.run(&["info", "web-shop", "--json"]);
    let shown: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(
        (&shown["name"], &shown["pid"]),
        (&json!("web-shop"), &json!(4242))
    );
}

#[test]
fn verbs_that_change_something_say_so_on_standard_error() {
    let host = FakeHost::new();
    host.done(json!({"verb": "start", "name": "demo"}), demo_box());
    host.done(
        json!({"verb": "stop", "target": {"box": "demo"}, "haste": "graceful"}),
        json!({"result": "nothing"}),
    );
    host.done(
        json!({"verb": "stop", "target": "all", "haste": "graceful"}),
        json!({"result": "nothing"}),
    );
    host.done(
        json!({"verb": "remove", "target": "all", "how": "trash", "workspace": "no", "unpushed": "ignore"}),
        json!({"result": "nothing"}),
    );
    let said = [
        &["start", "demo"][..],
        &["stop", "demo"],
        &["down", "all"],
        &["rm", "all", "-f"],
    ];
    let said: String = said
        .into_iter()
        .map(|arguments| host.run(arguments).whole())
        .collect();
    insta::assert_snapshot!(said, @r"
    exit 0
    --- err
    box `demo` is running
    exit 0
    --- err
    box `demo` is stopped
    exit 0
    --- err
    every box is stopped
    exit 0
    --- err
    every box is removed
    hint: `box undelete <name>` brings it back
    ");
}

#[test]
fn progress_is_told_line_by_line_and_never_as_data() {
    let host = FakeHost::new();
    let image = json!({
        "image": "default", "digest": "sha256:0123456789abcdef", "bytes": 412_345_678, "created_at_ms": minutes_ago(0),
    });
    let mut ready = image.clone();
    ready["result"] = json!("image");
    let play = ready.clone();
    host.on(
        json!({"verb": "image_prepare", "image": "default"}),
        move |talk| {
            talk.reply(json!({"reply": "progress", "text": "fetching packages"}));
            talk.reply(json!({"reply": "progress", "text": "unpacking\u{1b}[2J"}));
            talk.done(play);
        },
    );
    insta::assert_snapshot!(host.run(&["image", "prepare"]).whole(), @r"
    exit 0
    --- err
    · fetching packages
    · unpacking^[[2J
    image `default` is ready (412.3 MB)
    ");
    host.on(
        json!({"verb": "image_prepare", "image": "default"}),
        move |talk| {
            talk.reply(json!({"reply": "progress", "text": "fetching packages"}));
            talk.done(ready);
        },
    );
    let said = host.run(&["image", "prepare", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&said.out).unwrap(), image);
    assert_eq!(said.err, "");
}

#[test]
fn images_credentials_and_agents_are_tables() {
    let host = FakeHost::new();
    let images = json!([{
        "image": "debian:trixie", "digest": "sha256:0123456789abcdef", "bytes": 212_345_678,
        "created_at_ms": minutes_ago(60 * 24 * 3),
    }]);
    host.done(
        json!({"verb": "image_list"}),
        json!({"result": "images", "images": images}),
    );
    insta::assert_snapshot!(host.run(&["image", "list"]).whole(), @r"
    exit 0
    --- out
    IMAGE          SIZE      AGE  DIGEST
    debian:trixie  212.3 MB  3d   0123456789ab
    ");
    let credentials = json!([
        {"kind": "claude", "name": "default", "added_at_ms": minutes_ago(1)},
        {"kind": "claude", "name": "work", "added_at_ms": minutes_ago(2), "lost": true},
    ]);
    host.done(
        json!({"verb": "credential_list"}),
        json!({"result": "credentials", "credentials": credentials}),
    );
    insta::assert_snapshot!(host.run(&["credential", "list"]).whole(), @r"
    exit 0
    --- out
    NAME     FOR     SOURCE  AGE  EXPIRES  KEPT         BOXES  STATE
    default  claude  typed   1m   -        memory only  -      ready
    work     claude  typed   2m   -        memory only  -      lost, add it again
    ");
    let agents = json!([
        {"agent": "claude", "title": "Claude Code", "state": "installed 2.1.318"},
        {"agent": "demo", "title": "Demo – no model", "state": "built in"},
    ]);
    host.done(
        json!({"verb": "agent_list"}),
        json!({"result": "agents", "agents": agents}),
    );
    insta::assert_snapshot!(host.run(&["agent", "list"]).whole(), @r"
    exit 0
    --- out
    AGENT   STATE              TITLE
    claude  installed 2.1.318  Claude Code
    demo    built in           Demo – no model
    ");
}

#[test]
fn status_starts_no_host() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Program::new(&["status"]);
    program
        .command
        .env("BOX_RUN_DIR", folder.path().join("run"));
    let said = program.run();
    insta::assert_snapshot!(said.whole(), @r"
    exit 1
    --- err
    error: no host runs here
    hint: `box up` starts it
    ");
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        0,
        "it made something"
    );
    let mut program = Program::new(&["serve", "--stop"]);
    program
        .command
        .env("BOX_RUN_DIR", folder.path().join("run"));
    insta::assert_snapshot!(program.run().whole(), @r"
    exit 0
    --- err
    no host runs here
    ");
}

#[test]
fn logs_are_the_bytes_of_the_process() {
    let host = FakeHost::new();
    let request =
        |follow| json!({"verb": "logs", "name": "demo", "process": null, "follow": follow});
    host.on(request(false), |talk| {
        talk.reply(json!({"reply": "output", "base64": "b25lChtbMW0="}));
        talk.reply(json!({"reply": "output", "base64": "dHdvCg=="}));
        talk.done(json!({"result": "nothing"}));
    });
    assert_eq!(
        host.run(&["logs", "demo"]).assert_code(0).out,
        "one\n\u{1b}[1mtwo\n"
    );
    host.on(request(true), |talk| {
        talk.reply(json!({"reply": "output", "base64": "b25lCg=="}));
        talk.is_left();
    });
    let mut running = host.program(&["logs", "demo", "-f"]).start();
    running.wait_for_out("one\n");
    running.signal(rustix::process::Signal::INT);
    running.finish().assert_code(130);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let host = FakeHost::new();
    host.done(
        json!({"verb": "list"}),
        json!({"result": "boxes", "boxes": boxes()}),
    );
    let mut program = host.program(&["list"]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    program
        .command
        .stdin(std::process::Stdio::null())
        .stdout(writer)
        .stderr(std::process::Stdio::piped());
    let ended = program.command.output().unwrap();
    assert_eq!(
        (ended.status.code(), ended.stderr.as_slice()),
        (Some(141), &b""[..])
    );
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let problem = || json!({"type": "x", "kind": "failed", "title": "it went wrong"});
    let host = FakeHost::new();
    for (variable, value, coloured) in [
        ("TERM", "xterm", true),
        ("TERM", "dumb", false),
        ("NO_COLOR", "1", false),
    ] {
        host.problem(json!({"verb": "list"}), problem());
        let mut program = host.program(&["list"]);
        program.command.env(variable, value);
        let mut person = Person::at(&program);
        assert_eq!(person.finish(), 1);
        assert_eq!(
            person.seen.contains("\u{1b}[31merror:"),
            coloured,
            "{variable}={value}: {:?}",
            person.seen
        );
    }
    host.problem(json!({"verb": "list"}), problem());
    assert_eq!(host.run(&["list"]).err, "error: it went wrong\n");
}

#[test]
fn removing_asks_at_a_terminal_and_no_is_the_default() {
    let host = FakeHost::new();
    let info = || json!({"verb": "info", "name": "demo"});
    for refusal in ["\n", "n\n", "\u{4}"] {
        host.done(info(), demo_box());
        let mut person = Person::at(&host.program(&["rm", "demo"]));
        person
            .sees("remove box `demo` and everything in it? [y/N] ")
            .types(refusal);
        person.sees("nothing was removed");
        assert_eq!(person.finish(), 1, "{}", person.seen);
    }
    host.done(info(), demo_box());
    host.done(
        json!({"verb": "remove", "target": {"box": "demo"}, "how": "trash", "workspace": "no", "unpushed": "refuse"}),
        json!({"result": "nothing"}),
    );
    let mut person = Person::at(&host.program(&["rm", "demo"]));
    person
        .sees("[y/N] ")
        .types("what?\n")
        .sees("type y or n")
        .sees("[y/N] ")
        .types("yes\n");
    person.sees("box `demo` is removed");
    assert_eq!(person.finish(), 0, "{}", person.seen);
}

#[test]
fn help_lists_every_verb() {
    insta::assert_snapshot!(Program::new(&["--help"]).run().whole());
    insta::assert_snapshot!(Program::new(&["run", "--help"]).run().whole(), @r#"
    exit 0
    --- out
    Give an agent something to do

    Usage: box run [OPTIONS] [AGENT] [PROMPT]

    Arguments:
      [AGENT]   `claude`, `demo`, … (`box agent list`)
      [PROMPT]  What it is to do; `-` reads it from standard input

    Options:
          --agents <AGENT,…>  The same prompt to several agents, each in a new box of its own, side by
                              side
          --file <PATH>       Read the prompt from a file
          --name <NAME>       The box to work in; made if it is not there. If not said: a new one
          --box <NAME>        The box to work in, which must be there
          --repo <URL>        A git repository to clone into the workspace first
          --attach <PATH>     A file for the agent, up to 25 MiB; may be given again
          --mode <MODE>       One of the agent's modes, such as `plan`
          --model <MODEL>     One of the agent's models
          --allow-all         Let the agent do everything without asking; the box is the boundary
          --thoughts          Show all of its reasoning
      -q, --quiet             Print only what it says last
          --json              Print the objects of the wire as JSON, for programs
          --here              Bring the repository or folder you stand in, uncommitted changes included;
                              it is a copy
          --force             Bring it although it is large
      -h, --help              Print help

    The machine:
          --image <IMAGE>          What it starts from: `default`, `debian:<suite>`, `oci:<name>`,
                                   `built:<name>` or `file:<archive>`
          --profile <PROFILE>      How hard it is: `locked` (a user, read-only root) or `root` (root
                                   inside, writable root)
          --net <NET>              Where it may go: `balanced` (registries, forges, agents' hosts),
                                   `open` or `locked`
          --cpus <CPUS>            CPUs, such as 2 or 0.5
          --memory <MEMORY>        Memory, such as 4G
          --disk <DISK>            Disk for workspace, home and changes to the root, such as 20G
          --pids <PIDS>            Processes and threads at once
          --open-files <COUNT>     Open files of one process
          --tmp <TMP>              What `/tmp`, `/run` and `/dev/shm` hold together, such as 512M
          --deadline <TIME>        Stop it when it has run this long, such as 4h
          --freeze-after <TIME>    Freeze it when nothing of it was wanted this long, such as 2h, or
                                   `off`; it thaws when touched. Else as the host's settings say: 30m
          --nested                 Let it make namespaces of its own, for containers inside
          --credential <ACCOUNTS>  Accounts it uses: `claude:work`, several with commas, `none`; else
                                   your default of each kind

    GitHub:
          --github <REPOS>         Repositories it may write to, such as `owner/repo,owner/other`;
                                   others it can only read
          --github-refs <REFS>     Refs it may write there, such as `fix/*`; by itself `box/<its
                                   name>/*`
          --github-force <YES|NO>  Let it delete its refs and take commits from them: `yes` or `no`
          --github-tags <YES|NO>   Let it make tags: `yes` or `no`
          --github-writes <KINDS>  Let it change `all` of those repositories, releases and settings too,
                                   or what is `listed`

    Examples:
      box run demo
      box run claude "fix the failing test" --repo https://github.com/me/project
      box run claude "tidy up" --here
      box run claude --file task.md --name project --allow-all
      box run claude "why does it look like this?" --box project --attach shot.png
      git diff | box run claude - --name review
      box run --agents claude,codex "make it faster" --here

    Ctrl-C cancels the turn, a second one leaves without waiting (`box attach` takes it up).
    With --json: one object a line, each with an `event`; the last one is `result`.
    Exit codes: 0 done, 1 failed, 2 asked wrong, 3 refused, 4 cancelled, 5 parked at a usage limit,
    6 waits for a person, 7 stopped short, 125 engine.
    "#);
}
