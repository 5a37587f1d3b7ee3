//! Every ordinary client reaches what it may, with nothing configured in the box: an origin with a
//! credential, which sees the secret where the client has a placeholder, and one without; by the
//! proxy variables and caught on its way.
//!
//! What is found is written beside the image the clients are in; `cargo xtask clients --write` makes
//! `docs/clients.md` of it.

mod table;

use super::credential::Token;
use super::host::{Start, TestHost};
use super::program::Said;
use super::seed;
use box_fakes::rig::Reply;
use std::fs;
use std::time::Duration;
use table::{CLIENTS, Client, Needs, Proxy, Sends, Set};

const PLAIN: &str = "ok.test";
const WITH_CREDENTIAL: &str = "api.anthropic.com";
const PATH: &str = "/opt/clients/npm/node_modules/node22/bin:/opt/clients/npm/node_modules/.bin:\
     /opt/clients/py/bin:/usr/local/bin:/usr/bin:/bin";
const PROXIES: [&str; 8] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "GRPC_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "grpc_proxy",
];
/// Nobody listens there.
const NOWHERE: &str = "http://127.0.0.1:1";
/// A compiler or a browser on a machine that does much else.
const PATIENCE: Duration = Duration::from_mins(3);

/// What a client's environment is.
#[derive(Debug, Clone, Copy)]
enum Given<'a> {
    /// As every process of the box has it.
    All,
    NoProxy,
    /// The variables name a proxy that is not there.
    WrongProxy,
    /// Nothing but a home and a path.
    Bare,
    /// That and one variable of the box.
    Only(&'a str),
    /// Everything, in a home of nobody's.
    OtherHome,
}

/// One box that has the clients of one set.
struct World {
    host: TestHost,
    token: Token,
    placeholder: String,
    asked: u32,
}

impl World {
    fn new(set: Set) -> Self {
        let image = format!(
            "file:{}",
            seed::of_clients(name_of(set)).join("root.tar").display()
        );
        let host = TestHost::with(Start::Clients(name_of(set)));
        Self::on(host, &["--image", &image])
    }

    /// Box `one` of a host, made with these words as well.
    fn on(host: TestHost, more: &[&str]) -> Self {
        let token = Token::random();
        host.rig.origin(PLAIN);
        host.rig.origin(WITH_CREDENTIAL);
        token.add_to(&host);
        let new = ["new", "one", "--allow", PLAIN];
        host.ok(&[&new, more].concat());
        let placeholder = host.shell("one", "printenv CLAUDE_CODE_OAUTH_TOKEN").out;
        Self {
            placeholder: placeholder.trim().to_owned(),
            host,
            token,
            asked: 0,
        }
    }

    /// The value of a variable every process of the box has.
    fn variable(&self, name: &str) -> String {
        let said = self.host.shell("one", &format!("printenv {name}"));
        said.assert_code(0);
        said.out.trim().to_owned()
    }

    fn words(&self, given: Given<'_>) -> Vec<String> {
        let mut words = vec!["env".to_owned()];
        let without_proxy = |java: String| -> String {
            let kept = java.split(' ').filter(|word| !word.contains("roxy"));
            format!("JAVA_TOOL_OPTIONS={}", kept.collect::<Vec<_>>().join(" "))
        };
        match given {
            Given::All | Given::OtherHome => {}
            Given::NoProxy => {
                words.extend(
                    PROXIES
                        .iter()
                        .flat_map(|name| ["-u".to_owned(), (*name).to_owned()]),
                );
                words.push(without_proxy(self.variable("JAVA_TOOL_OPTIONS")));
            }
            Given::WrongProxy => {
                words.extend(PROXIES.iter().map(|name| format!("{name}={NOWHERE}")));
                let java = self.variable("JAVA_TOOL_OPTIONS");
                words.push(format!("JAVA_TOOL_OPTIONS={}", java.replace("3128", "1")));
            }
            Given::Bare => words.push("-i".to_owned()),
            Given::Only(name) => {
                let value = format!("{name}={}", self.variable(name));
                words.push("-i".to_owned());
                words.push(match name {
                    "JAVA_TOOL_OPTIONS" => without_proxy(self.variable(name)),
                    _ => value,
                });
            }
        }
        let home = match given {
            Given::OtherHome => "/tmp/elsewhere",
            _ => "/home/agent",
        };
        words.extend([
            format!("PATH={PATH}"),
            format!("HOME={home}"),
            "PYTHONPATH=/opt/clients/py".to_owned(),
        ]);
        words
    }

    /// Lets a client ask an origin; says how the request looked that came there, if one did.
    fn ask(&mut self, client: &Client, origin: &str, given: Given<'_>) -> Asked {
        self.asked += 1;
        let url = format!("https://{origin}/ask{}", self.asked);
        let reply = client
            .reply
            .map_or_else(|| Reply::text("hello\n"), |reply| reply(&url));
        self.host.rig.reply(origin, reply);
        let token = match (origin, client.sends) {
            (WITH_CREDENTIAL, Sends::Bearer) => self.placeholder.as_str(),
            _ => "",
        };
        let script = format!(
            "mkdir -p \"$HOME\" && cd \"$(mktemp -d -p \"$HOME\")\" || exit 99\n{}",
            client.script
        );
        let mut words: Vec<String> = ["exec", "one", "--", "timeout", "60"]
            .map(str::to_owned)
            .into();
        words.extend(self.words(given));
        words.extend([format!("URL={url}"), format!("TOKEN={token}")]);
        words.extend(["sh".to_owned(), "-c".to_owned(), script]);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let said = self.host.program(&words).deadline(PATIENCE).run();
        let mark = format!("/ask{}", self.asked);
        let requests = self.host.rig.requests(origin);
        let ours = requests.iter().filter(|request| {
            let rest = request.path.strip_prefix(&mark);
            rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
        });
        let credentials = ours
            .map(|request| request.header("authorization").map(str::to_owned))
            .collect();
        Asked { credentials, said }
    }

    /// Everything that is to hold of one client; what does not, in words.
    fn try_one(&mut self, client: &Client) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut hold = |what: &str, holds: bool, asked: &Asked| {
            if !holds {
                wrong.push(format!("{}: {what}\n{}", client.name, asked.said));
            }
        };
        for (way, given) in [
            ("transparent", Given::NoProxy),
            ("by variables", Given::All),
        ] {
            let plain = self.ask(client, PLAIN, given);
            hold(&format!("plain origin, {way}"), plain.arrived(), &plain);
            let swapped = self.ask(client, WITH_CREDENTIAL, given);
            let secret = format!("Bearer {}", self.token.as_str());
            let good = match client.sends {
                Sends::Bearer => swapped.credentials.contains(&Some(secret)),
                Sends::Nothing => swapped.arrived(),
            };
            hold(&format!("origin with credential, {way}"), good, &swapped);
            let told = format!("{}{}", swapped.said.out, swapped.said.err);
            hold(
                "saw the secret",
                !told.contains(self.token.as_str()),
                &swapped,
            );
        }
        let lost = self.ask(client, PLAIN, Given::WrongProxy);
        let ignores = client.proxy == Proxy::Ignored;
        hold(
            "goes by the proxy variables",
            lost.arrived() == ignores,
            &lost,
        );
        let (without, with) = match client.needs {
            Needs::Bundle => (None, Given::Bare),
            Needs::Variable(name) => (Some(Given::Bare), Given::Only(name)),
            Needs::Store => (Some(Given::OtherHome), Given::Bare),
        };
        let with = self.ask(client, PLAIN, with);
        hold("has all it needs to trust", with.arrived(), &with);
        if let Some(without) = without {
            let without = self.ask(client, PLAIN, without);
            hold("trusts without what it needs", !without.arrived(), &without);
        }
        wrong
    }

    fn version(&self, client: &Client) -> String {
        let mut words: Vec<String> = ["exec", "one", "--"].map(str::to_owned).into();
        words.extend(self.words(Given::NoProxy));
        words.extend([
            "JAVA_TOOL_OPTIONS=".to_owned(),
            "sh".to_owned(),
            "-c".to_owned(),
        ]);
        words.push(table::version_script(client));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let said = self.host.run(&words);
        let line = said.out.lines().next().unwrap_or_default();
        let version = line.split_whitespace().last().unwrap_or_default();
        assert!(!version.is_empty(), "no version of {}: {said}", client.name);
        version.trim_start_matches(['v', 'g', 'o']).to_owned()
    }
}

/// What came of asking.
struct Asked {
    /// Of each request that came to the origin.
    credentials: Vec<Option<String>>,
    said: Said,
}

impl Asked {
    fn arrived(&self) -> bool {
        !self.credentials.is_empty()
    }
}

fn name_of(set: Set) -> &'static str {
    match set {
        Set::Light => "light",
        Set::Heavy => "heavy",
    }
}

/// Tries all clients of a set and writes down what was found.
fn try_all(set: Set) {
    let mut world = World::new(set);
    let mut rows = Vec::new();
    let mut wrong = Vec::new();
    for client in CLIENTS.iter().filter(|client| client.set == set) {
        let version = world.version(client);
        let found = world.try_one(client);
        eprintln!("{} {version}: {} wrong", client.name, found.len());
        wrong.extend(found);
        rows.push(serde_json::json!({
            "client": client.name,
            "version": version,
            "credential": client.sends == Sends::Bearer,
            "variables": client.proxy == Proxy::Honoured,
            "needs": match client.needs {
                Needs::Bundle => "the system's list".to_owned(),
                Needs::Variable(name) => format!("`{name}`"),
                Needs::Store => "`~/.pki/nssdb`".to_owned(),
            },
        }));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    let found = serde_json::to_string_pretty(&rows).unwrap();
    fs::write(seed::of_clients(name_of(set)).join("found.json"), found).unwrap();
}

/// What is in every box, without an image of its own: so this is part of every run.
#[test]
fn programs_of_the_default_image_reach_both_origins_both_ways() {
    let mut world = World::on(TestHost::new(), &[]);
    let mut wrong = Vec::new();
    for name in ["curl", "git", "apt", "python urllib"] {
        let client = CLIENTS.iter().find(|client| client.name == name);
        wrong.extend(world.try_one(client.expect("it is in the table")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn light_clients_reach_both_origins_both_ways() {
    try_all(Set::Light);
}

#[test]
fn heavy_clients_reach_both_origins_both_ways() {
    try_all(Set::Heavy);
}
