//! The credential works and is not in the box.

use super::host::TestHost;
use box_fakes::model::Model;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

/// Bytes of the token that are looked for: any run this long would be a leak.
const PIECE_BYTES: usize = 16;
const FILE_BYTES_MAX: u64 = 64 << 20;

/// A subscription token as a person would paste it.
#[derive(Clone)]
pub(crate) struct Token(String);

impl Token {
    pub(crate) fn random() -> Self {
        let mut bytes = [0; 48];
        File::open("/dev/urandom")
            .unwrap()
            .read_exact(&mut bytes)
            .unwrap();
        let digit = |nibble: u8| char::from_digit(nibble.into(), 16).unwrap();
        let digits: String = bytes
            .iter()
            .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
            .collect();
        Self(format!("sk-ant-oat01-{digits}"))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The part that is secret.
    fn digits(&self) -> &str {
        &self.0["sk-ant-oat01-".len()..]
    }

    #[track_caller]
    pub(crate) fn add_to(&self, host: &TestHost) {
        let line = format!("{}\n", self.0);
        host.program(&["credential", "add", "claude"])
            .input(line.as_bytes())
            .run()
            .assert_code(0);
    }

    /// The model got this token and no other credential, and found nothing to complain about.
    #[track_caller]
    pub(crate) fn assert_only_credential(&self, model: &Model) {
        assert_eq!(model.refusals(), []);
        let requests = model.requests();
        let credentials: Vec<_> = requests
            .iter()
            .flat_map(|request| request.credentials())
            .collect();
        let expected = format!("Bearer {}", self.0);
        assert!(!credentials.is_empty(), "no request carried a credential");
        for (name, value) in credentials {
            assert_eq!((name, value), ("authorization", expected.as_str()));
        }
    }
}

/// Looks for the token from outside (all processes of the box, all files of its root as its pid 1
/// sees it) and from inside.
#[track_caller]
pub(crate) fn assert_nowhere_in_box(host: &TestHost, name: &str, token: &str) {
    // Whatever kind it is of, its beginning is no secret.
    let secret = &token["sk-ant-oat01-".len()..];
    let pieces: Vec<&[u8]> = secret.as_bytes().chunks_exact(PIECE_BYTES).collect();
    let info = host.info(name);
    let pid = info.pid.expect("the box runs");
    let found = in_processes(pid, &pieces);
    assert_eq!(found, Vec::<String>::new(), "in processes of the box");
    let root = Path::new("/proc").join(pid.to_string()).join("root");
    for folder in [
        "home",
        "root",
        "workspace",
        "tmp",
        "run",
        "dev/shm",
        "etc",
        "var",
        "opt/box/bin",
    ] {
        let found = in_files(&root.join(folder), &pieces);
        assert_eq!(found, Vec::<String>::new(), "in /{folder} of the box");
    }
    assert_eq!(
        in_files(host.data(), &pieces),
        Vec::<String>::new(),
        "in the host's folder"
    );

    // From inside; what the box itself is asked for must not be what it finds.
    let first = std::str::from_utf8(pieces[0]).unwrap();
    let script = format!(
        "cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -v grep | \
         grep -c '{}[{}]{}'; grep -rls '{first}' $HOME /workspace /tmp; true",
        &first[..4],
        &first[4..5],
        &first[5..],
    );
    let inside = host.shell(name, &script);
    assert_eq!(inside.out.trim(), "0", "found inside: {inside}");
    // The control: the same looks find what is there.
    let there = b"e2e-control-0123456789";
    fs::write(
        Path::new(info.workspace.as_deref().unwrap()).join("control.txt"),
        there,
    )
    .unwrap();
    assert_eq!(
        in_files(&root.join("workspace"), &[there.as_slice()]).len(),
        1
    );
    let path = [b"PATH=".as_slice()];
    assert!(
        !in_processes(pid, &path).is_empty(),
        "could not read the processes of the box"
    );
}

/// Processes in the pid namespace of `pid` whose environment or command line has a piece.
fn in_processes(pid: u32, pieces: &[&[u8]]) -> Vec<String> {
    let namespace = fs::read_link(format!("/proc/{pid}/ns/pid")).unwrap();
    let processes = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .map(|entry| entry.path());
    let of_box = processes
        .filter(|folder| fs::read_link(folder.join("ns/pid")).is_ok_and(|ns| ns == namespace));
    let files = of_box.flat_map(|folder| [folder.join("environ"), folder.join("cmdline")]);
    files
        .filter(|file| holds(file, pieces))
        .map(|file| file.display().to_string())
        .collect()
}

/// Files below `folder` with a piece, links not followed.
fn in_files(folder: &Path, pieces: &[&[u8]]) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let Ok(about) = path.symlink_metadata() else {
                continue;
            };
            if about.is_dir() {
                folders.push(path);
            } else if about.is_file() && about.len() <= FILE_BYTES_MAX && holds(&path, pieces) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

fn holds(file: &Path, pieces: &[&[u8]]) -> bool {
    let bytes = fs::read(file).unwrap_or_default();
    pieces
        .iter()
        .any(|piece| memchr::memmem::find(&bytes, piece).is_some())
}

/// Asks the model's host with a placeholder; gives the status.
fn ask_with(host: &TestHost, name: &str, placeholder: &str) -> String {
    let script = format!(
        "curl -sS -o /tmp/answer -w '%{{http_code}}' https://api.anthropic.com/v1/models \
         -H 'authorization: Bearer {placeholder}' -H 'anthropic-version: 2023-06-01'"
    );
    host.shell(name, &script).out
}

/// The placeholder a box was given.
fn placeholder(host: &TestHost, name: &str) -> String {
    let said = host.shell(name, "printenv CLAUDE_CODE_OAUTH_TOKEN");
    said.assert_code(0);
    let placeholder = said.out.trim().to_owned();
    assert!(placeholder.starts_with("sk-ant-oat"), "{said}");
    placeholder
}

#[test]
fn placeholder_of_another_box_is_refused() {
    let host = TestHost::new();
    let token = Token::random();
    let model = host.rig.model(token.as_str());
    token.add_to(&host);
    host.ok(&["new", "one"]);
    host.ok(&["new", "two"]);
    let (one, two) = (placeholder(&host, "one"), placeholder(&host, "two"));
    assert_ne!(one, two);
    assert_ne!(one, token.as_str());

    assert_eq!(ask_with(&host, "one", &one), "200");
    assert_eq!(ask_with(&host, "two", &two), "200");
    token.assert_only_credential(&model);
    let before = model.requests().len();

    assert_eq!(ask_with(&host, "one", &two), "403");
    assert_eq!(ask_with(&host, "two", &one), "403");
    assert_eq!(
        ask_with(&host, "one", "sk-ant-oat01-somebody-elses-real-token"),
        "403"
    );
    assert_eq!(model.requests().len(), before, "a refused request went out");
    assert_nowhere_in_box(&host, "one", token.as_str());
    assert!(!one.contains(&token.digits()[..PIECE_BYTES]));
}

#[test]
fn a_removed_credential_is_sent_no_more() {
    let host = TestHost::new();
    let token = Token::random();
    let model = host.rig.model(token.as_str());
    token.add_to(&host);
    host.ok(&["new", "one"]);
    let placeholder = placeholder(&host, "one");
    assert_eq!(ask_with(&host, "one", &placeholder), "200");
    token.assert_only_credential(&model);
    let before = model.requests().len();

    host.ok(&["credential", "remove", "claude"]);
    assert_eq!(ask_with(&host, "one", &placeholder), "403");
    assert_eq!(model.requests().len(), before, "a refused request went out");
}

#[test]
fn a_sealed_credential_works_again_after_the_way_out_was_killed() {
    let host = TestHost::new();
    let config = host.run_dir().parent().unwrap().join("config.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("\"memory\"", "\"passphrase\"")).unwrap();
    let token = Token::random();
    let model = host.rig.model(token.as_str());
    host.program(&["credential", "unlock", "--new"])
        .input(b"a passphrase of some length\n")
        .run()
        .assert_code(0);
    token.add_to(&host);
    host.ok(&["new", "one"]);
    let placeholder = placeholder(&host, "one");
    assert_eq!(ask_with(&host, "one", &placeholder), "200");

    let run = host.run_dir();
    super::leaks::end_egress(&run);
    // The sockets are kept: the request waits in one until there is another way out.
    assert_eq!(ask_with(&host, "one", &placeholder), "200");
    token.assert_only_credential(&model);
    let listed = host.ok(&["credential", "list"]);
    assert!(
        listed.contains("passphrase") && listed.contains("ready"),
        "{listed}"
    );
    assert!(listed.contains("one"), "{listed}");
    assert!(host.ok(&["info", "one"]).contains("claude:default"));
    let pieces: Vec<&[u8]> = token
        .digits()
        .as_bytes()
        .chunks_exact(PIECE_BYTES)
        .collect();
    assert_eq!(in_files(host.data(), &pieces), Vec::<String>::new());
}
