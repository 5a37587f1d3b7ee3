//! Pulls from a registry that stalls, cuts, lies and floods, in a network namespace of the test's
//! own.

use super::made::{Image, Layer, Packed, name};
use super::real_registry::{in_own_network, noise};
use super::*;
use crate::images::oci::{Logins, Patience};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// What is answered to one request.
#[derive(Debug, Clone)]
struct Answer {
    status: String,
    body: Vec<u8>,
    /// The connection is dropped after so many bytes of the body, or held without a word more.
    cut: Option<(usize, Cut)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    Drop,
    Hold,
}

impl Answer {
    fn ok(body: &[u8]) -> Self {
        Self {
            status: "200 OK".to_owned(),
            body: body.to_vec(),
            cut: None,
        }
    }

    fn status(status: &str) -> Self {
        Self {
            status: status.to_owned(),
            ..Self::ok(b"")
        }
    }

    fn cut(self, bytes: usize, how: Cut) -> Self {
        Self {
            cut: Some((bytes, how)),
            ..self
        }
    }
}

/// What each path is answered.
type Answers = BTreeMap<String, Vec<Answer>>;

/// Each path has its answers in order, the last again and again; a request with a `range` gets the
/// rest of the body. Ends with the test.
struct Registry {
    address: String,
    /// Heads of the requests, lower case.
    heads: Receiver<String>,
}

impl Registry {
    fn start(answers: impl FnOnce(&str) -> Answers) -> Self {
        in_own_network();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (say, heads) = channel();
        let answers = answers(&address);
        std::thread::spawn(move || serve(&listener, answers, &say));
        Self { address, heads }
    }

    /// That of an image, whose first layer is answered so.
    fn of(image: &Image, layer: Vec<Answer>) -> Self {
        Self::start(|_| {
            let mut all = paths(image);
            all.insert(blob(&image.layers[0]), layer);
            all
        })
    }

    fn image(&self) -> String {
        format!("oci:{}/app", self.address)
    }

    fn asked(&self) -> Vec<String> {
        self.heads.try_iter().collect()
    }
}

const MANIFEST: &str = "/v2/app/manifests/latest";

fn blob(content: &[u8]) -> String {
    format!("/v2/app/blobs/{}", name(content))
}

fn paths(image: &Image) -> Answers {
    let blobs = image.layers.iter().chain([&image.config]);
    let mut all: BTreeMap<_, _> = blobs
        .map(|content| (blob(content), vec![Answer::ok(content)]))
        .collect();
    all.insert(MANIFEST.to_owned(), vec![Answer::ok(&image.manifest)]);
    all
}

fn serve(listener: &TcpListener, mut answers: Answers, say: &Sender<String>) {
    let mut silent = Vec::new();
    for stream in listener.incoming() {
        let stream = stream.unwrap();
        let mut head = String::new();
        let mut lines = BufReader::new(&stream);
        while lines.read_line(&mut head).unwrap_or_default() > 2 {}
        let head = head.to_ascii_lowercase();
        drop(say.send(head.clone()));
        let path = head.split_whitespace().nth(1).unwrap_or_default();
        let answer = match answers.get_mut(path) {
            Some(left) if left.len() > 1 => left.remove(0),
            Some(last) => last[0].clone(),
            None => Answer::status("404 Not Found"),
        };
        silent.extend(respond(stream, answer, &head));
    }
}

/// A connection that is to be held comes back.
fn respond(mut stream: TcpStream, answer: Answer, head: &str) -> Option<TcpStream> {
    let Answer {
        mut status,
        mut body,
        cut,
    } = answer;
    let range = head
        .lines()
        .find_map(|line| line.strip_prefix("range: bytes="));
    if let Some(range) = range.filter(|_| status == "200 OK") {
        let from: usize = range.trim_end_matches('-').parse().unwrap();
        let all = body.len();
        body.drain(..from);
        status = format!(
            "206 Partial Content\r\ncontent-range: bytes {from}-{}/{all}",
            all - 1
        );
    }
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    if let Some((bytes, _)) = cut {
        body.truncate(bytes);
    }
    // Whoever went away had enough.
    drop(stream.write_all(head.as_bytes()));
    drop(stream.write_all(&body));
    cut.is_some_and(|(_, how)| how == Cut::Hold)
        .then_some(stream)
}

fn rig() -> Rig {
    let mut rig = Rig::new();
    rig.logins(Logins::default());
    rig.patience(Patience {
        pauses: vec![Duration::ZERO; 3],
        still: Duration::from_millis(300),
    });
    rig
}

fn big() -> Image {
    let layer = Layer::default().file("bin/sh", &noise(300_000));
    Image::of(vec![layer], Packed::Plain)
}

#[test]
fn a_layer_that_is_cut_or_stands_still_goes_on_where_it_stopped() {
    for how in [Cut::Drop, Cut::Hold] {
        let image = big();
        let whole = Answer::ok(&image.layers[0]);
        let answers = vec![
            whole.clone().cut(100_000, how),
            whole.clone().cut(50_000, how),
            Answer::status("503 Service Unavailable"),
            whole,
        ];
        let registry = Registry::of(&image, answers);
        let rig = rig();
        let info = rig.prepare(&registry.image()).unwrap();
        let content = fs::read(rig.store.root_of(&info.digest).unwrap().join("bin/sh")).unwrap();
        assert!(content == noise(300_000));
        let ranges: Vec<String> = registry
            .asked()
            .iter()
            .filter(|head| head.starts_with(&format!("get {}", blob(&image.layers[0]))))
            .map(|head| {
                let range = head.lines().find(|line| line.starts_with("range: "));
                range.unwrap_or("none").to_owned()
            })
            .collect();
        let expected = [
            "none",
            "range: bytes=100000-",
            "range: bytes=150000-",
            "range: bytes=150000-",
        ];
        assert_eq!(ranges, expected, "{how:?}");
    }
}

#[test]
fn a_registry_that_never_gives_the_rest_is_given_up_and_what_came_is_kept_for_later() {
    let image = big();
    let cut = Answer::ok(&image.layers[0]).cut(100_000, Cut::Drop);
    let registry = Registry::of(&image, vec![cut, Answer::status("503 Service Unavailable")]);
    let rig = rig();
    let error = rig.prepare(&registry.image()).unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(cause, "the registry answered 503 Service Unavailable");
    assert_eq!(rig.left_over(), 0);
    let kept = fs::read_dir(rig.data.path().join("blobs/partial")).unwrap();
    let sizes: Vec<u64> = kept
        .map(|file| file.unwrap().metadata().unwrap().len())
        .collect();
    assert_eq!(sizes, [100_000]);
    // Opening the store again does not lose it.
    drop(ImageStore::open(rig.data.path()).unwrap());
    assert_eq!(
        fs::read_dir(rig.data.path().join("blobs/partial"))
            .unwrap()
            .count(),
        1
    );
}

#[test]
fn whatever_is_not_what_its_digest_says_is_refused_and_kept_nowhere() {
    let image = big();
    let mut lie = image.layers[0].clone();
    lie[1000] ^= 1;
    let mut config = image.config.clone();
    config.push(b' ');
    let lying = |path: String, body: &[u8]| {
        let mut all = paths(&image);
        all.insert(path, vec![Answer::ok(body)]);
        all
    };
    let layer_name = name(&image.layers[0]);
    let told = |answers: Answers, wanted: &str| {
        let registry = Registry::start(|_| answers);
        let rig = rig();
        let image = registry.image() + wanted;
        let (why, hint) = rig.refusal(&image);
        assert!(hint.unwrap().starts_with("nothing of it was kept"));
        assert_eq!(rig.left_over(), 0);
        assert_eq!(rig.runtime.block_on(rig.store.list()).unwrap(), []);
        for folder in ["blobs/partial", "blobs/sha256"] {
            assert_eq!(
                fs::read_dir(rig.data.path().join(folder)).unwrap().count(),
                0
            );
        }
        why.rsplit_once("`: ").unwrap().1.to_owned()
    };
    let layer = told(lying(blob(&image.layers[0]), &lie), "");
    assert_eq!(
        layer,
        "layer `".to_owned() + &layer_name + "` is not what its digest says"
    );
    let config = told(lying(blob(&image.config), &config), "");
    assert_eq!(config, "its configuration is not what its digest says");
    let pinned = format!("@{}", name(b"another manifest"));
    let path = format!("/v2/app/manifests/{}", &pinned[1..]);
    let manifest = told(lying(path, &image.manifest), &pinned);
    assert_eq!(manifest, "its manifest is not what its digest says");
}

#[test]
fn a_layer_whose_content_the_configuration_does_not_know_is_refused() {
    let (one, other) = (big(), Image::small());
    // The manifest of one with the configuration of another: both are what their digests say.
    let manifest = String::from_utf8(one.manifest.clone()).unwrap();
    let config = String::from_utf8(other.config).unwrap();
    let ids = config
        .split("sha256:")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    let config = String::from_utf8(one.config.clone())
        .unwrap()
        .replace(&name(&one.layers[0]).replace("sha256:", ""), ids);
    let manifest = manifest
        .replace(&name(&one.config), &name(config.as_bytes()))
        .replace(
            &format!("\"size\":{}", one.config.len()),
            &format!("\"size\":{}", config.len()),
        );
    let registry = Registry::start(|_| {
        let mut all = paths(&one);
        all.insert(blob(config.as_bytes()), vec![Answer::ok(config.as_bytes())]);
        all.insert(MANIFEST.to_owned(), vec![Answer::ok(manifest.as_bytes())]);
        all
    });
    let (why, _) = rig().refusal(&registry.image());
    assert!(
        why.ends_with("layer 1 does not hold what its configuration says"),
        "{why}"
    );
}

#[test]
fn floods_are_bounded() {
    let image = big();
    let huge = vec![b' '; 5 << 20];
    let registry = Registry::start(|_| {
        let mut all = paths(&image);
        all.insert(MANIFEST.to_owned(), vec![Answer::ok(&huge)]);
        all.insert(
            "/v2/app/manifests/config".to_owned(),
            vec![Answer::ok(&image.manifest)],
        );
        all.insert(blob(&image.config), vec![Answer::ok(&huge)]);
        all
    });
    let rig = rig();
    let cause = |image: &str| {
        let error = rig.prepare(image).unwrap_err();
        std::error::Error::source(&error).unwrap().to_string()
    };
    assert_eq!(
        cause(&registry.image()),
        "its manifest has more than 4194304 bytes"
    );
    assert_eq!(
        cause(&format!("{}:config", registry.image())),
        "its configuration has more than 4194304 bytes"
    );
    // A layer longer than it was said to be is read no further than that.
    let mut long = image.layers[0].clone();
    long.extend(vec![0; 3 << 20]);
    let registry = Registry::of(&image, vec![Answer::ok(&long)]);
    let rig = self::rig();
    rig.prepare(&registry.image()).unwrap();
    let kept = rig.data.path().join("blobs/sha256");
    let kept = kept.join(name(&image.layers[0]).replace("sha256:", ""));
    assert_eq!(
        fs::metadata(kept).unwrap().len(),
        image.layers[0].len() as u64
    );
}

#[test]
fn a_token_is_got_where_the_registry_says_and_a_login_goes_to_no_unsafe_place() {
    let image = Image::small();
    let wants = |realm: &str| {
        Answer::status(&format!(
            "401 Unauthorized\r\nwww-authenticate: Bearer realm=\"{realm}\",service=\"reg\",\
             scope=\"repository:app:pull\""
        ))
    };
    let registry = Registry::start(|address| {
        let mut all = paths(&image);
        let manifest = Answer::ok(&image.manifest);
        let challenge = wants(&format!("http://{address}/token"));
        all.insert(MANIFEST.to_owned(), vec![challenge, manifest]);
        all.insert(
            "/v2/app/manifests/leak".to_owned(),
            vec![wants("http://198.51.100.7/token")],
        );
        let token = Answer::ok(br#"{"token": "abc.def"}"#);
        let ask = "/token?scope=repository%3aapp%3apull&service=reg";
        all.insert(ask.to_owned(), vec![token]);
        all
    });
    let mut rig = rig();
    let file = rig.tars.path().join("config.json");
    let login = format!(
        r#"{{"auths": {{"{}": {{"username": "me", "password": "secret"}}}}}}"#,
        registry.address
    );
    fs::write(&file, login).unwrap();
    rig.logins(Logins::in_file(&file, None));
    rig.prepare(&registry.image()).unwrap();
    let asked = registry.asked();
    let header = |number: usize| {
        let lines = asked[number].lines();
        let found: Vec<&str> = lines
            .filter_map(|line| line.strip_prefix("authorization: "))
            .collect();
        found.join("")
    };
    assert_eq!(header(0), "");
    assert!(asked[1].starts_with("get /token?"), "{}", asked[1]);
    assert_eq!(
        header(1),
        "basic bwu6c2vjcmv0",
        "`me:secret`, in lower case"
    );
    assert_eq!(header(2), "bearer abc.def");

    let error = rig
        .prepare(&format!("{}:leak", registry.image()))
        .unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(
        cause,
        "the registry sends for its tokens to a place that is not safe"
    );
}

#[test]
fn a_login_is_not_sent_along_to_another_place() {
    let image = Image::small();
    let registry = Registry::start(|address| {
        let port = address.rsplit_once(':').unwrap().1;
        let mut all = paths(&image);
        // The same machine, but another host to whoever sends logins to one.
        let elsewhere = format!("307 Temporary Redirect\r\nlocation: http://localhost:{port}/blob");
        all.insert(blob(&image.layers[0]), vec![Answer::status(&elsewhere)]);
        all.insert("/blob".to_owned(), vec![Answer::ok(&image.layers[0])]);
        let challenge = Answer::status("401 Unauthorized\r\nwww-authenticate: Basic realm=\"r\"");
        for answers in all.values_mut() {
            if answers[0].body != image.layers[0] {
                answers.insert(0, challenge.clone());
            }
        }
        all
    });
    let mut rig = rig();
    let file = rig.tars.path().join("config.json");
    let login = format!(
        r#"{{"auths": {{"{}": {{"username": "me", "password": "secret"}}}}}}"#,
        registry.address
    );
    fs::write(&file, login).unwrap();
    rig.logins(Logins::in_file(&file, None));
    rig.prepare(&registry.image()).unwrap();
    let asked = registry.asked();
    let has_login = |head: &&String| head.contains("\nauthorization: basic ");
    let moved: Vec<_> = asked
        .iter()
        .filter(|head| head.starts_with("get /blob "))
        .collect();
    assert_eq!(
        (
            moved.len(),
            moved.iter().filter(|head| has_login(head)).count()
        ),
        (1, 0)
    );
    // The control: the registry itself gets it.
    assert!(asked.iter().filter(has_login).count() >= 3, "{asked:#?}");
}
