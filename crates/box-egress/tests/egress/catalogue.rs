//! The attack catalogue: what a box may send to talk its way past, and what becomes of it. One
//! table a group; each row is carried out against the running process, in every way in that it
//! concerns. For every row that is refused: one refusal is told, with the reason in the table;
//! nothing is asked of the internet's name server, nobody of the internet is sent a request, and,
//! where the client named its goal before the way was open, nobody is connected to.

#[path = "catalogue/addresses.rs"]
mod addresses;
#[path = "catalogue/answers.rs"]
mod answers;
#[path = "catalogue/credentials.rs"]
mod credentials;
#[path = "catalogue/dns.rs"]
mod dns;
#[path = "catalogue/hello.rs"]
mod hello;
#[path = "catalogue/http1.rs"]
mod http1;
#[path = "catalogue/http2.rs"]
mod http2;
#[path = "catalogue/names.rs"]
mod names;
#[path = "catalogue/trial.rs"]
mod trial;
#[path = "catalogue/tunnels.rs"]
mod tunnels;

use crate::inside::Inside;
use crate::world::{PLACEHOLDER_A, PLACEHOLDER_B, SECRET, World, allow, bound, open};
use box_api::egress::{Answer, Binding, Event, HostPattern, Policy, Reason, Request};
use std::net::IpAddr;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use trial::Trial;

const DEADLINE: Duration = Duration::from_secs(20);
/// Trials a box is used for; a box may cause so many events at once and no more.
const TRIALS_A_BOX: usize = 120;

/// One attack, or the same thing done rightly.
pub(crate) struct Row {
    /// Its number in the catalogue; a letter after it counts variants of the kind.
    pub(crate) id: &'static str,
    pub(crate) sends: Sends,
    pub(crate) ends: Ends,
}

pub(crate) const fn row(id: &'static str, sends: Sends, ends: Ends) -> Row {
    Row { id, sends, ends }
}

/// What the box sends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sends {
    /// A host: by `CONNECT`, in absolute form, and as `Host` of a request to the refusal address.
    Host(&'static str),
    /// `CONNECT` to this authority, which `Host` repeats.
    Connect(&'static str),
    /// These bytes to the proxy port.
    Proxy(&'static [u8]),
    ProxyMade(fn() -> Vec<u8>),
    /// A host that leads to these addresses.
    LeadsTo(&'static [&'static str]),
    /// These bytes, on port 80 of `ok.test`.
    Http(&'static [u8]),
    HttpMade(fn() -> Vec<u8>),
    /// These bytes, on port 443 of `ok.test`, which is passed on unread.
    Tls(fn() -> Vec<u8>),
    /// These bytes, as HTTP/1.1 inside the TLS of `cred.test`.
    Opened(&'static [u8]),
    OpenedMade(fn() -> Vec<u8>),
    /// A `GET /` of `cred.test` with this path and these headers, over HTTP/1.1 and HTTP/2.
    Credential(&'static str, &'static [(&'static str, &'static str)]),
    /// These bytes, as HTTP/2 inside the TLS of `cred.test`.
    Frames(fn() -> Vec<u8>),
    /// A packet to the resolver, over UDP and TCP.
    Packet(fn() -> Vec<u8>),
}

/// What becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    /// An answer of ours with this status and this reason, which is told to the host.
    Refused(u16, Reason),
    /// No answer in HTTP: an alert, a reset or an end; the reason is told to the host.
    Closed(Reason),
    /// The HTTP library takes it for broken: an answer 400 or an end, and nobody is told.
    Broken,
    /// A DNS answer with this code and so many records.
    Says(u8, u16),
    /// The same, and the host is told this reason.
    SaysAndTells(u8, u16, Reason),
    /// Nothing is answered.
    Silence,
    /// It goes through.
    Passes,
}

impl Ends {
    /// The refusals a host is told of.
    fn tells(self) -> Vec<Reason> {
        match self {
            Self::Refused(_, reason) | Self::Closed(reason) | Self::SaysAndTells(_, _, reason) => {
                vec![reason]
            }
            Self::Broken | Self::Says(..) | Self::Silence | Self::Passes => Vec::new(),
        }
    }
}

fn policy() -> Policy {
    let deny = ["bad.wild.test", "denied.test"].map(|entry| HostPattern::parse(entry).unwrap());
    Policy {
        deny: deny.into(),
        ..allow(&[
            "ok.test",
            "*.wild.test",
            "github.com",
            "xn--bcher-kva.test",
            "denied.test",
            "port.test:8443",
        ])
    }
}

fn bindings() -> Vec<Binding> {
    bound(PLACEHOLDER_A)
}

/// A world with everything that rows speak of.
struct Stage {
    world: World,
    policy: Policy,
    inside: Inside,
    /// Whose placeholder is `PLACEHOLDER_B`.
    _other: Inside,
    trials: usize,
    names: usize,
    faults: Vec<String>,
}

impl Stage {
    fn set(policy: Policy) -> Self {
        let mut world = World::start();
        for name in [
            "ok.test",
            "cred.test",
            "evil.test",
            "a.wild.test",
            "a_b.wild.test",
            "github.com",
            "xn--bcher-kva.test",
        ] {
            world.rig.origin(name);
        }
        let other = world.new_box(allow(&["cred.test"]), bound(PLACEHOLDER_B));
        let inside = world.new_box(policy.clone(), bindings());
        Self {
            world,
            policy,
            inside,
            _other: other,
            trials: 0,
            names: 0,
            faults: Vec::new(),
        }
    }

    fn play(&mut self, rows: &[Row]) {
        for row in rows {
            let trials = self.trials_of(row.sends);
            assert!(!trials.is_empty());
            for trial in trials {
                self.begin_trial();
                self.carry_out(row, &trial);
            }
        }
        self.look_for_the_secret();
        assert!(self.faults.is_empty(), "{}", self.faults.join("\n"));
    }

    /// A box is taken for so many and no more.
    fn begin_trial(&mut self) {
        if self.trials == TRIALS_A_BOX {
            let box_id = self.inside.id;
            self.world.host.done(Request::Unregister { box_id });
            self.inside = self.world.new_box(self.policy.clone(), bindings());
            self.trials = 0;
        }
        self.trials += 1;
    }

    fn trials_of(&mut self, sends: Sends) -> Vec<Trial> {
        match sends {
            Sends::LeadsTo(addresses) => {
                self.names += 1;
                let name = format!("n{}.leads.test", self.names);
                let addresses = addresses.iter().map(|text| text.parse::<IpAddr>().unwrap());
                let answer = box_fakes::rig::Answer::addresses(addresses);
                self.world.rig.zone(&name, answer);
                trial::to_name(&name)
            }
            other => trial::all(other),
        }
    }

    fn carry_out(&mut self, row: &Row, trial: &Trial) {
        let before = self.counts();
        let doing = trial.clone();
        let got = self
            .inside
            .run(|client| async move { doing.run(&client).await });
        let ended = trial.expects(row.ends);
        if ended == Ends::Passes || trial.dials_first() {
            self.wait_for_connection_after(before.accepts);
        }
        let after = self.counts();
        let told: Vec<Reason> = (before.refused..after.refused)
            .map(|_| self.next_reason())
            .collect();
        let secret = SECRET.as_bytes();
        let faults = [
            (!got.is(ended)).then_some("another end"),
            (told != ended.tells()).then_some("told otherwise"),
            (ended != Ends::Passes && after.requests != before.requests)
                .then_some("a request went out"),
            (ended != Ends::Passes && !trial.looks_up() && after.queries != before.queries)
                .then_some("a name was asked for"),
            (ended != Ends::Passes && !trial.dials_first() && after.accepts != before.accepts)
                .then_some("a host was connected to"),
            got.bytes
                .windows(secret.len())
                .any(|part| part == secret)
                .then_some("the secret came back"),
        ];
        let id = row.id;
        let faults = faults.into_iter().flatten();
        self.faults.extend(faults.map(|fault| {
            format!("{id}: {fault}: wanted {ended:?}, told {told:?}, got {got:?}\n    {trial:?}")
        }));
    }

    /// The reason of the next refusal that is told.
    fn next_reason(&mut self) -> Reason {
        let own = self.inside.id;
        self.world.host.event(|event| match event {
            Event::Refused(refusal) if refusal.box_id == own => Some(refusal.reason),
            _ => None,
        })
    }

    /// A client can see its connection before the internet has counted it.
    fn wait_for_connection_after(&self, accepts: u64) {
        let start = Instant::now();
        while self.world.rig.accepts_in_all() == accepts {
            assert!(start.elapsed() < DEADLINE, "nobody was connected to");
        }
    }

    fn counts(&mut self) -> Counts {
        let Answer::Status(status) = self.world.host.call(Request::Status) else {
            panic!("no status")
        };
        let own = status.boxes.iter().find(|own| own.box_id == self.inside.id);
        Counts {
            refused: own.unwrap().refused,
            requests: self.world.rig.all_requests().len(),
            queries: self.world.rig.queries().len(),
            accepts: self.world.rig.accepts_in_all(),
        }
    }

    /// The secret stands in credential headers of requests to its host, and nowhere else.
    fn look_for_the_secret(&self) {
        for request in self.world.rig.all_requests() {
            let all = format!("{request:?}");
            if all.contains(SECRET) {
                assert_eq!(request.sni.as_deref(), Some("cred.test"), "{all}");
                let proper = request.credentials().len();
                let holding = request.headers.iter().filter(|(_, v)| v.contains(SECRET));
                assert!(holding.count() <= proper, "{all}");
                assert!(!request.path.contains(SECRET), "{all}");
            }
        }
        let secret = SECRET.as_bytes();
        for text in [&self.world.host.heard, &self.world.log()] {
            assert!(!text.windows(secret.len()).any(|part| part == secret));
        }
    }
}

struct Counts {
    refused: u64,
    requests: usize,
    queries: usize,
    accepts: u64,
}

#[test]
fn names_mean_what_they_say() {
    Stage::set(policy()).play(names::ROWS);
}

#[test]
fn addresses_are_no_hosts_whatever_their_spelling() {
    Stage::set(open()).play(addresses::ROWS);
}

#[test]
fn queries_carry_nothing_out() {
    Stage::set(policy()).play(dns::ROWS);
}

#[test]
fn tunnels_lead_where_they_say() {
    Stage::set(policy()).play(tunnels::ROWS);
}

#[test]
fn requests_have_one_meaning() {
    Stage::set(policy()).play(http1::ROWS);
}

#[test]
fn frames_are_requests_to_one_host() {
    Stage::set(policy()).play(http2::ROWS);
}

#[test]
fn credential_is_the_boxes_own_or_none() {
    Stage::set(policy()).play(credentials::ROWS);
}

/// Rows D8 and E26: a head, a `ClientHello` or a whole tunnel that begins and does not go on.
#[test]
fn what_begins_and_does_not_go_on_is_given_up() {
    let mut stage = Stage::set(policy());
    let (to_proxy, ends) = stage.inside.run(|client| async move {
        let slow = |mut stream: TcpStream, bytes: &'static [u8]| async move {
            stream.write_all(bytes).await.unwrap();
            let mut answer = Vec::new();
            // An end or a reset, either is one.
            drop(stream.read_to_end(&mut answer).await);
            answer
        };
        let proxy = TcpStream::connect("127.0.0.1:3128").await.unwrap();
        let hello = client.connect("ok.test", 443).await;
        let silent = client.tunnel("ok.test:443").await.unwrap();
        let plain = client.tunnel("ok.test:80").await.unwrap();
        let opened = client.connect("cred.test", 443).await;
        let mut opened = client
            .tls(opened, "cred.test", &["http/1.1"])
            .await
            .unwrap();
        let inside = async {
            opened.write_all(b"GET / HT").await.unwrap();
            let mut answer = Vec::new();
            drop(opened.read_to_end(&mut answer).await);
            answer
        };
        let all = tokio::join!(
            slow(proxy, b"GET http://ok.test/ HT"),
            slow(hello, b"\x16\x03\x01\x02\x00\x01"),
            slow(silent, b""),
            slow(plain, b"GET / HTTP/1.1\r\nHost: ok.test\r\nX: "),
            inside,
        );
        (all.0, [all.1, all.2, all.3, all.4])
    });
    assert!(to_proxy.starts_with(b"HTTP/1.1 408 "));
    // No answer of a host in any of them.
    for end in &ends {
        assert!(!end.starts_with(b"HTTP/1.1 200"), "{}", end.escape_ascii());
    }
    let reasons: Vec<Reason> = (0..4).map(|_| stage.next_reason()).collect();
    assert_eq!(reasons, [Reason::Timeout; 4]);
    assert_eq!(stage.world.rig.all_requests().len(), 0);
}

/// Row E10: two requests that come at once, the second of them for somebody else.
#[test]
fn second_of_two_requests_that_come_at_once_is_judged_by_itself() {
    let mut stage = Stage::set(policy());
    for second in [
        "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: cred.test\r\nX-Api-Key: sk-ant-attacker\r\n\r\n",
    ] {
        let before = stage.counts();
        let answers = stage.inside.run(move |client| async move {
            let stream = client.connect("cred.test", 443).await;
            let mut stream = client
                .tls(stream, "cred.test", &["http/1.1"])
                .await
                .unwrap();
            let first = "GET / HTTP/1.1\r\nHost: cred.test\r\n\r\n";
            stream
                .write_all(format!("{first}{second}").as_bytes())
                .await
                .unwrap();
            let mut answers = Vec::new();
            while !String::from_utf8_lossy(&answers).contains("x-box-egress: ") {
                assert_ne!(stream.read_buf(&mut answers).await.unwrap(), 0);
            }
            String::from_utf8_lossy(&answers).into_owned()
        });
        assert!(answers.starts_with("HTTP/1.1 200 "), "{answers}");
        assert_eq!(answers.matches("HTTP/1.1 ").count(), 2, "{answers}");
        let reason = stage.next_reason();
        assert!(
            [Reason::HostMismatch, Reason::ForeignCredential].contains(&reason),
            "{reason:?}"
        );
        assert_eq!(stage.counts().requests, before.requests + 1, "{second}");
    }
}

/// Row D13: a `ClientHello` that comes byte by byte, one segment each, is still one.
#[test]
fn name_in_a_hello_that_comes_byte_by_byte_is_found() {
    let mut stage = Stage::set(policy());
    for (name, passes) in [(b"ok.test".as_slice(), true), (b"evil.test", false)] {
        let answer = stage.inside.run(move |client| async move {
            let mut stream = client.connect("ok.test", 443).await;
            stream.set_nodelay(true).unwrap();
            for byte in hello::named(name) {
                // The other side may have had enough.
                drop(stream.write_all(&[byte]).await);
                tokio::task::yield_now().await;
            }
            let mut first = [0];
            match stream.read(&mut first).await {
                Ok(1) => first[0],
                _ => 0,
            }
        });
        assert_eq!(answer == 22, passes, "{}", name.escape_ascii());
        if !passes {
            assert_eq!(stage.next_reason(), Reason::SniMismatch);
        }
    }
}

/// A table without a row that passes would be right about a proxy that lets nothing through.
#[test]
fn every_group_has_rows_that_pass() {
    for rows in [
        names::ROWS,
        addresses::ROWS,
        tunnels::ROWS,
        http1::ROWS,
        http2::ROWS,
        credentials::ROWS,
    ] {
        assert!(rows.iter().any(|row| row.ends == Ends::Passes));
    }
    let answered = |row: &Row| matches!(row.ends, Ends::Says(0, 1));
    assert!(dns::ROWS.iter().any(answered));
}
