//! A package registry for tests, in a network namespace of the test's own thread.

use super::fetch::{Counters, Fetcher};
use super::lock::Package;
use super::npm::NpmConfig;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha512};
use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use ureq::Agent;

/// What is answered once.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    head: String,
    body: Vec<u8>,
    /// The connection is dropped after so many bytes of the body.
    cut: Option<usize>,
    /// The body is cut to where the request wants to go on.
    from_range: bool,
}

impl Answer {
    pub(super) fn ok(body: &[u8]) -> Self {
        Self {
            head: "200 OK".to_owned(),
            body: body.to_vec(),
            cut: None,
            from_range: false,
        }
    }

    pub(super) fn status(status: &str, header: &str) -> Self {
        Self {
            head: format!("{status}\r\n{header}"),
            ..Self::ok(b"")
        }
    }

    pub(super) fn rest_of(body: &[u8]) -> Self {
        Self {
            from_range: true,
            ..Self::ok(body)
        }
    }

    pub(super) fn cut_after(self, bytes: usize) -> Self {
        Self {
            cut: Some(bytes),
            ..self
        }
    }
}

enum Order {
    Answer(String, Vec<Answer>),
    Tell(Sender<Vec<String>>),
}

/// Runs until dropped with its thread.
pub(super) struct Registry {
    address: String,
    orders: Sender<Order>,
}

impl Registry {
    /// Moves the calling thread into an empty network namespace and listens there.
    #[expect(
        deprecated,
        reason = "safe for CLONE_NEWNET; only CLONE_FILES makes it unsafe"
    )]
    #[expect(
        clippy::disallowed_methods,
        reason = "a test sets up its own namespace"
    )]
    pub(super) fn start() -> Self {
        rustix::thread::unshare(rustix::thread::UnshareFlags::NEWNET).unwrap();
        let up = std::process::Command::new("ip")
            .args(["link", "set", "lo", "up"])
            .status();
        assert!(up.unwrap().success(), "`ip` of iproute2 is needed");
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/", listener.local_addr().unwrap());
        let (orders, given) = channel();
        std::thread::spawn(move || serve(&listener, &given));
        Self { address, orders }
    }

    pub(super) fn url(&self) -> &str {
        &self.address
    }

    /// Answers for a path, each once; afterwards and elsewhere: 404.
    pub(super) fn answer(&self, path: &str, answers: impl Into<Vec<Answer>>) {
        self.orders
            .send(Order::Answer(path.to_owned(), answers.into()))
            .unwrap();
    }

    /// Heads of all requests so far, lower case.
    pub(super) fn asked(&self) -> Vec<String> {
        let (tell, told) = channel();
        self.orders.send(Order::Tell(tell)).unwrap();
        drop(TcpStream::connect(
            self.address
                .trim_start_matches("http://")
                .trim_end_matches('/'),
        ));
        told.recv_timeout(Duration::from_secs(10)).unwrap()
    }

    pub(super) fn with_fetcher<T>(&self, run: impl FnOnce(&Fetcher<'_>) -> T) -> T {
        let says = format!(r#"{{"registry":"{}"}}"#, self.address);
        let home = tempfile::tempdir().unwrap();
        let place = self.address.trim_start_matches("http:");
        std::fs::write(
            home.path().join(".npmrc"),
            format!("{place}:_authToken=secret"),
        )
        .unwrap();
        let variable = |name: &str| (name == "HOME").then(|| home.path().as_os_str().to_owned());
        let config = NpmConfig::read(&variable, Some(&says)).unwrap().unwrap();
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None);
        let agent = agent.accept_encoding(ureq::config::AutoHeaderValue::None);
        run(&Fetcher {
            config: &config,
            agent: agent
                .timeout_global(Some(Duration::from_secs(20)))
                .build()
                .new_agent(),
            counters: &Counters::default(),
            deadline: Instant::now() + Duration::from_secs(30),
            pauses: &[Duration::ZERO; 2],
        })
    }
}

fn serve(listener: &TcpListener, orders: &Receiver<Order>) {
    let mut answers: BTreeMap<String, VecDeque<Answer>> = BTreeMap::new();
    let mut asked = Vec::new();
    for stream in listener.incoming() {
        let stream = stream.unwrap();
        let head = read_head(&stream);
        for order in orders.try_iter() {
            match order {
                Order::Answer(path, new) => drop(answers.insert(path, new.into())),
                Order::Tell(tell) => drop(tell.send(asked.clone())),
            }
        }
        let Some(path) = head.split_whitespace().nth(1) else {
            continue;
        };
        let next = answers.get_mut(path).and_then(VecDeque::pop_front);
        let answer = next.unwrap_or_else(|| Answer::status("404 Not Found", "a: b"));
        respond(stream, answer, &head);
        asked.push(head.to_ascii_lowercase().replace("bearer", "Bearer"));
    }
}

fn read_head(stream: &TcpStream) -> String {
    let mut head = String::new();
    let mut lines = BufReader::new(stream);
    while lines.read_line(&mut head).unwrap_or_default() > 2 {}
    head
}

/// Gone clients are no matter of ours: a cut answer is meant to lose them.
fn respond(mut stream: TcpStream, answer: Answer, head: &str) {
    let Answer {
        head: mut status,
        mut body,
        cut,
        from_range,
    } = answer;
    if from_range {
        let range = head
            .lines()
            .find_map(|line| line.strip_prefix("range: bytes="))
            .unwrap();
        let from: usize = range.trim_end_matches('-').parse().unwrap();
        status = format!("206 Partial Content\r\ncontent-range: bytes {from}-9/9");
        body.drain(..from);
    }
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    body.truncate(cut.unwrap_or(body.len()));
    drop(
        stream
            .write_all(head.as_bytes())
            .and_then(|()| stream.write_all(&body)),
    );
}

/// A package at its usual path whose hash is that of the content.
pub(super) fn package(name: &str, content: &[u8]) -> Package {
    Package {
        path: format!("node_modules/{name}"),
        name: name.to_owned(),
        version: "1.0.0".to_owned(),
        sha512: Sha512::digest(content).into(),
        programs: Vec::new(),
    }
}

/// A gzipped tar of plain files.
pub(super) fn tarball(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, content) in files {
        let mut header = tar::Header::new_ustar();
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(tar::EntryType::Regular);
        header.set_mode(0o644);
        header.set_size(content.len() as u64);
        header.set_cksum();
        builder.append(&header, *content).unwrap();
    }
    builder.into_inner().unwrap().finish().unwrap()
}
