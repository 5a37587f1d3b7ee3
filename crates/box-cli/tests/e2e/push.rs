//! Push, end to end: what an agent asks reaches a strict push service, and only the browser can
//! read it. The browser is this test, as far as it is HTTP; its keys are the service's.

use super::host::{PATIENCE, Start, TestHost};
use super::program::Program;
use box_fakes::rig::{Answer, private_mounts};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::time::Duration;

const SERVICE: &str = "push.example.org";

/// A paired browser.
#[derive(Debug, Default)]
struct Browser {
    /// `localhost:2697`
    at: String,
    cookie: String,
    proof: String,
}

impl Browser {
    fn pair(host: &TestHost) -> Self {
        let said: Value = serde_json::from_str(&host.ok(&["ui", "--json"])).unwrap();
        let link = said["link"].as_str().unwrap();
        let (url, code) = link.split_once("/pair#").unwrap();
        let mut browser = Self {
            at: url.strip_prefix("http://").unwrap().to_owned(),
            ..Self::default()
        };
        let (head, paired) = browser.send("POST", "/api/pair", &json!({ "code": code }));
        let cookie = head
            .lines()
            .find_map(|line| line.strip_prefix("set-cookie: "));
        let cookie = cookie.and_then(|cookie| cookie.split(';').next());
        cookie.unwrap().clone_into(&mut browser.cookie);
        paired["proof"]
            .as_str()
            .unwrap()
            .clone_into(&mut browser.proof);
        browser
    }

    fn send(&self, method: &str, path: &str, body: &Value) -> (String, Value) {
        let Self { at, cookie, proof } = self;
        let (_, port) = at.split_once(':').unwrap();
        let body = body.to_string();
        let asked = format!(
            "{method} {path} HTTP/1.1\r\nhost: {at}\r\norigin: http://{at}\r\nconnection: close\r\n\
             cookie: {cookie}\r\nx-box-proof: {proof}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(asked.as_bytes()).unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        let (head, body) = said.split_once("\r\n\r\n").unwrap();
        (
            head.to_owned(),
            serde_json::from_str(body).unwrap_or_default(),
        )
    }

    #[track_caller]
    fn post(&self, path: &str, body: &Value) -> Value {
        let (head, said) = self.send("POST", path, body);
        assert!(head.starts_with("HTTP/1.1 2"), "{path}: {head}\n{said}");
        said
    }

    /// What the last hop of a test message came to.
    fn last_hop(&self) -> (String, String) {
        let tested = self.post("/api/push/test", &json!({}));
        let last = tested["hops"].as_array().unwrap().last().unwrap().clone();
        let text = |name: &str| last[name].as_str().unwrap().to_owned();
        (text("tint"), text("text"))
    }
}

/// The host itself asks the name servers of the machine.
fn name_server(host: &TestHost) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("resolv.conf");
    let server = host.rig.resolver_addr().ip();
    fs::write(&file, format!("nameserver {server}\n")).unwrap();
    private_mounts().unwrap();
    rustix::mount::mount_bind(&file, "/etc/resolv.conf").unwrap();
    folder
}

#[test]
fn what_an_agent_asks_reaches_a_browser_and_nobody_else_can_read_it() {
    let host = TestHost::new();
    let _resolver = name_server(&host);
    host.settings("", "[push]\nsettle = 0\n");
    let service = host.rig.push_service(SERVICE);
    let browser = Browser::pair(&host);
    let key = browser.post("/api/push/key", &json!({}));
    let key = key["key"].as_str().unwrap().to_owned();
    let subscribe = |endpoint: &str| {
        let made = service.subscribe(&key).unwrap();
        let endpoint = if endpoint.is_empty() {
            made.endpoint.as_str()
        } else {
            endpoint
        };
        let asked = json!({ "endpoint": endpoint, "p256dh": made.p256dh, "auth": made.auth });
        browser.post("/api/push", &asked);
        made
    };

    // A name that leads inside is never dialled.
    let inside = IpAddr::from(Ipv4Addr::new(10, 1, 2, 3));
    host.rig
        .zone("inner.example.org", Answer::addresses([inside]));
    subscribe("https://inner.example.org/x");
    let (tint, why) = browser.last_hop();
    assert_eq!(tint, "bad");
    assert!(why.contains("not public"), "{why}");
    assert_eq!(host.rig.accepts((inside, 443).into()), 0);

    let subscription = subscribe("");
    let hop = browser.last_hop();
    assert_eq!(hop.0, "good", "{hop:?}; refused: {:?}", service.refused());
    let said = host.run(&["run", "demo", "show me", "--name", "demo"]);
    assert_eq!(said.code, 6, "{said}");
    let thread = host.info("demo").threads[0].thread;
    let delivered = service.wait_for(2, PATIENCE).unwrap();
    let told = &delivered[1];
    let message = told.json();
    let shown = &message["notification"];
    assert_eq!(message["web_push"], 8030);
    assert_eq!(
        shown["navigate"],
        format!("http://{}/t/{thread}", browser.at)
    );
    assert!(shown["title"].as_str().unwrap().contains("demo"), "{shown}");
    assert_eq!(
        (told.urgency.as_str(), told.topic.as_str()),
        ("high", shown["tag"].as_str().unwrap())
    );
    assert!((1..=12 * 3600).contains(&told.ttl_s), "{}", told.ttl_s);
    assert_eq!(service.refused(), Vec::<String>::new());

    service.forget(&subscription);
    assert_eq!(browser.last_hop().0, "bad");
    let (_, state) = browser.send("GET", "/api/push", &json!({}));
    assert_eq!(state["devices"], json!([]));
}

#[test]
fn one_tap_subscribes_and_another_follows_a_message_to_the_screen() {
    let host = TestHost::with(Start::Bare);
    let _resolver = name_server(&host);
    let service = host.rig.push_service(SERVICE);
    let browser = Browser::pair(&host);
    let key = browser.post("/api/push/key", &json!({}));
    let made = service.subscribe(key["key"].as_str().unwrap()).unwrap();
    let said: Value = serde_json::from_str(&host.ok(&["ui", "--json"])).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ui/e2e/push.mjs");
    let link = said["link"].as_str().unwrap();
    let mut program = Program::other(
        "node",
        &[script, link, &made.endpoint, &made.p256dh, &made.auth],
    )
    .deadline(Duration::from_mins(4));
    program.command.env("HOME", host.home());
    if let Some(folder) = std::env::var_os("BOX_TEST_SHOTS") {
        program.command.env("BOX_TEST_SHOTS", folder);
    }
    let played = program.run();
    assert_eq!(played.code, 0, "{played}\n{}", host.whereabouts());
    let delivered = service.delivered();
    assert_eq!(delivered.len(), 1, "refused: {:?}", service.refused());
    assert!(delivered[0].topic.starts_with("test-"), "{delivered:?}");
}
