//! A box bound to repositories of GitHub: real git against a real git server, and the interfaces
//! beside it by curl. What is refused arrives nowhere: the server's refs stay as they are.

use crate::inside::Inside;
use crate::world::{World, allow, credential, name};
use box_api::BoxId;
use box_api::egress::github::{GithubScope, GithubWrites, RefPattern, Repository};
use box_api::egress::{
    Answer, AskedPush, AskedRequest, Binding, Event, PushHow, Reason, Request, Verdict,
};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const TOKEN: &str = "ghp_REALTOKENoftheowner0000000000000000";
const PLACEHOLDER: &str = "ghp_PLACEHOLDERofthebox00000000000000000";
const HOSTS: [&str; 4] = [
    "github.com",
    "api.github.com",
    "uploads.github.com",
    "gist.github.com",
];

/// What a program said, and whether it was content.
struct Said {
    worked: bool,
    text: String,
}

struct Stage {
    world: World,
    inside: Inside,
    folder: TempDir,
}

fn scope() -> GithubScope {
    GithubScope {
        repositories: vec![
            Repository::parse("me/app").unwrap(),
            Repository::parse("me/part").unwrap(),
        ],
        refs: vec![RefPattern::parse("box/web/*").unwrap()],
        ..GithubScope::default()
    }
}

fn binding(github: GithubScope) -> Binding {
    Binding {
        placeholder: PLACEHOLDER.into(),
        credential: "github:default".into(),
        hosts: HOSTS.iter().map(|host| name(host)).collect(),
        github: Some(github),
    }
}

impl Stage {
    /// Repositories `me/app`, `me/part` and `other/x` with a branch `main` each, and a clone of the
    /// first in the box.
    fn set(github: GithubScope) -> Self {
        let mut world = World::start();
        let mut spec = credential("github:default", &HOSTS);
        spec.kind = "github".into();
        let answer = world
            .host
            .call_with(Request::AddCredential(spec), TOKEN.as_bytes(), &[]);
        assert_eq!(answer, Answer::Done);
        let folder = TempDir::new().unwrap();
        let served = folder.path().join("served");
        for host in &HOSTS[1..] {
            world.rig.origin(host);
        }
        world.rig.forge("github.com", &served, TOKEN);
        let inside = world.new_box(allow(&HOSTS), vec![binding(github)]);
        let bundle = format!("{}\n{}", world.authority.cert_pem, world.rig.ca_pem());
        std::fs::write(folder.path().join("bundle.pem"), bundle).unwrap();
        let stage = Self {
            world,
            inside,
            folder,
        };
        for repository in ["me/app", "me/part", "other/x"] {
            stage.serve(repository);
        }
        let said = stage.git(".", &["clone", "-q", &url("me/app"), "clone"]);
        assert!(said.worked, "{}", said.text);
        stage
    }

    /// Makes a bare repository with one commit, on the server's own disk.
    fn serve(&self, repository: &str) {
        let bare = self.bare(repository);
        let seed = self.folder.path().join("seed");
        std::fs::create_dir_all(&bare).unwrap();
        let bare = bare.to_str().unwrap().to_owned();
        for (at, args) in [
            (".", &["init", "-q", "-b", "main", "seed"][..]),
            ("seed", &["commit", "-q", "--allow-empty", "-m", "first"]),
            (".", &["clone", "-q", "--bare", "seed", &bare]),
        ] {
            let said = self.git(at, args);
            assert!(said.worked, "{}", said.text);
        }
        std::fs::remove_dir_all(seed).unwrap();
    }

    fn bare(&self, repository: &str) -> PathBuf {
        self.folder
            .path()
            .join("served")
            .join(format!("{repository}.git"))
    }

    /// Every ref of every repository.
    fn refs(&self) -> String {
        ["me/app", "me/part", "other/x"]
            .iter()
            .map(|repository| self.git_at(&self.bare(repository), &["for-each-ref"]).text)
            .collect()
    }

    fn git(&self, at: &str, args: &[&str]) -> Said {
        self.git_at(&self.folder.path().join(at), args)
    }

    fn git_at(&self, at: &Path, args: &[&str]) -> Said {
        let mut git = Command::new("git");
        git.current_dir(at).args(args);
        for who in ["AUTHOR", "COMMITTER"] {
            git.env(format!("GIT_{who}_NAME"), "box");
            git.env(format!("GIT_{who}_EMAIL"), "box@example.org");
        }
        self.run(git)
    }

    /// Runs a program in the box.
    fn run(&self, mut program: Command) -> Said {
        program
            .env("HOME", self.folder.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_ALLOW_PROTOCOL", "file:https")
            // As in every box: git's own push can hang over HTTP/2.
            .env("GIT_CONFIG_COUNT", "1")
            .env("GIT_CONFIG_KEY_0", "http.version")
            .env("GIT_CONFIG_VALUE_0", "HTTP/1.1")
            .env("GIT_SSL_CAINFO", self.folder.path().join("bundle.pem"))
            .env("CURL_CA_BUNDLE", self.folder.path().join("bundle.pem"))
            .env("https_proxy", "http://127.0.0.1:3128");
        self.inside.run(|_| async move {
            let output = program.output().unwrap();
            let text = [output.stdout, output.stderr].concat();
            Said {
                worked: output.status.success(),
                text: String::from_utf8_lossy(&text).into_owned(),
            }
        })
    }

    /// An empty commit, or one with a file that does not fold.
    fn commit(&self, text: &str, bytes: usize) {
        if bytes > 0 {
            let mut noise = vec![0; bytes];
            getrandom::fill(&mut noise).unwrap();
            std::fs::write(self.folder.path().join("clone/noise"), noise).unwrap();
            self.git("clone", &["add", "noise"]);
        }
        let said = self.git("clone", &["commit", "-q", "--allow-empty", "-m", text]);
        assert!(said.worked, "{}", said.text);
    }

    fn pushes(&self, args: &[&str]) {
        let before = self.refs();
        let said = self.git("clone", &[&["push", "-q"], args].concat());
        assert!(said.worked, "{args:?}: {}", said.text);
        assert_ne!(before, self.refs(), "{args:?} arrived");
    }

    /// Is refused with these words, one event, and nothing of it arrives.
    fn is_refused(&mut self, at: &str, args: &[&str], words: &str) {
        let (refs, refused) = (self.refs(), self.refused());
        let said = self.git(at, args);
        assert!(!said.worked, "{args:?}: {}", said.text);
        assert!(said.text.contains(words), "{args:?}: {}", said.text);
        assert_eq!(refs, self.refs(), "{args:?} changed the server");
        assert_eq!(self.refused(), refused + 1, "{args:?}: one refusal");
        let rule = self.rule();
        assert!(rule.contains(words), "{args:?}: {rule}");
    }

    fn refused(&mut self) -> u64 {
        match self.world.host.call(Request::Status) {
            Answer::Status(status) => status.boxes[0].refused,
            other => panic!("{other:?}"),
        }
    }

    /// What the next refusal says.
    fn rule(&mut self) -> String {
        self.world.host.event(|event| match event {
            Event::Refused(refusal) => {
                assert_eq!(refusal.reason, Reason::GithubScope);
                refusal.rule.clone()
            }
            _ => None,
        })
    }

    /// A request with the placeholder; its status and body.
    fn curl(&self, method: &str, url: &str, more: &[&str]) -> Said {
        let mut curl = Command::new("curl");
        curl.args(["-sS", "-X", method, "-w", "\n%{http_code}"]);
        curl.args(["-H", &format!("authorization: Bearer {PLACEHOLDER}")]);
        curl.args(more).arg(url);
        self.run(curl)
    }

    fn bind(&mut self, github: GithubScope) {
        let box_id = self.inside.id;
        let binding = binding(github);
        self.world.host.done(Request::Bind { box_id, binding });
    }
}

fn url(repository: &str) -> String {
    format!("https://x:{PLACEHOLDER}@github.com/{repository}.git")
}

#[test]
fn bound_box_reads_everything_and_pushes_to_its_own_refs() {
    let stage = Stage::set(scope());
    let read = stage.git(".", &["clone", "-q", &url("other/x"), "read"]);
    assert!(read.worked, "{}", read.text);
    stage.commit("one", 0);
    stage.pushes(&["origin", "HEAD:refs/heads/box/web/x"]);
    stage.commit("two", 0);
    stage.pushes(&["origin", "HEAD:box/web/x"]);
    // Larger than the buffer: git probes with an empty list, then sends in chunks.
    stage.commit("three", 300_000);
    let said = stage.git(
        "clone",
        &[
            "-c",
            "http.postBuffer=65536",
            "push",
            "--atomic",
            "-o",
            "ci.skip",
            "origin",
            "HEAD:box/web/x",
            "HEAD:refs/heads/box/web/deep/y",
        ],
    );
    assert!(said.worked, "{}", said.text);
    let head = stage.git("clone", &["rev-parse", "HEAD"]).text;
    let refs = stage.refs();
    assert_eq!(refs.matches(head.trim()).count(), 2, "{refs}");
    // Over HTTP/2 as well.
    stage.commit("four", 0);
    let said = stage.git(
        "clone",
        &[
            "-c",
            "http.version=HTTP/2",
            "push",
            "origin",
            "HEAD:box/web/x",
        ],
    );
    assert!(said.worked, "{}", said.text);
    // A merge of what others did is no loss.
    stage.git("clone", &["checkout", "-q", "-b", "side", "HEAD~2"]);
    stage.commit("side", 0);
    let merge = stage.git("clone", &["merge", "-q", "--no-edit", "main"]);
    assert!(merge.worked, "{}", merge.text);
    stage.pushes(&["origin", "HEAD:box/web/x"]);
    let seen = stage.world.rig.requests("github.com");
    let pushes = seen
        .iter()
        .filter(|one| one.path.ends_with("git-receive-pack"));
    assert!(pushes.count() > 4, "they went through the forge");
}

/// What is said about a request to GitHub, and a push of this ref.
fn foretold(
    world: &mut World,
    box_id: BoxId,
    (method, path, push): (&str, &str, Option<(&str, PushHow)>),
) -> Result<String, (Reason, String)> {
    let host = if path.starts_with("/repos") {
        "api.github.com"
    } else {
        "github.com"
    };
    let push = push.map(|(name, how)| AskedPush {
        name: name.to_owned(),
        how,
    });
    let (method, path) = (method.to_owned(), path.to_owned());
    let request = Request::Check {
        box_id,
        host: host.to_owned(),
        port: 443,
        asked: Some(AskedRequest { method, path, push }),
        address: None,
    };
    let Answer::Checked(checked) = world.host.call(request) else {
        panic!("not checked")
    };
    match checked.verdict {
        Verdict::Allowed { .. } => Ok(checked.note),
        Verdict::Refused { reason, .. } => Err((reason, checked.note)),
    }
}

/// `box policy check` asks so: by the same judges, and nothing goes out.
#[test]
fn check_foretells_a_push_and_other_writes() {
    let mut stage = Stage::set(scope());
    let box_id = stage.inside.id;
    let before = stage.world.rig.all_requests().len();
    let mut check = |method: &str, path: &str, push: Option<(&str, PushHow)>| {
        foretold(&mut stage.world, box_id, (method, path, push))
    };
    let push = "/me/app.git/git-receive-pack";
    let own = check(
        "POST",
        push,
        Some(("refs/heads/box/web/x", PushHow::Update)),
    );
    assert_eq!(own.as_deref(), Ok("as long as it loses no commit"));
    for (path, name, how, setting) in [
        (
            push,
            "refs/heads/main",
            PushHow::Update,
            "github-refs=refs/heads/main",
        ),
        (
            push,
            "refs/heads/box/web/x",
            PushHow::Force,
            "github-force=yes",
        ),
        (
            push,
            "refs/heads/box/web/x",
            PushHow::Delete,
            "github-force=yes",
        ),
        (push, "refs/tags/v1", PushHow::Update, "github-tags=yes"),
        (
            "/other/x/git-receive-pack",
            "refs/heads/box/web/x",
            PushHow::Update,
            "github=other/x",
        ),
    ] {
        let (reason, why) = check("POST", path, Some((name, how))).unwrap_err();
        assert_eq!(reason, Reason::GithubScope);
        assert!(why.contains(setting), "{why}");
    }
    assert_eq!(check("GET", "/repos/other/x", None).as_deref(), Ok(""));
    let (reason, _) = check("DELETE", "/repos/other/x", None).unwrap_err();
    assert_eq!(reason, Reason::GithubScope);
    assert_eq!(stage.world.rig.all_requests().len(), before);
    assert_eq!(stage.refused(), 0, "a question is no refusal");
}

#[test]
fn every_other_push_changes_nothing_and_says_why() {
    let mut stage = Stage::set(scope());
    stage.commit("one", 0);
    stage.pushes(&["origin", "HEAD:box/web/x"]);
    stage.git("clone", &["tag", "v1"]);
    stage.git(
        "clone",
        &[
            "commit",
            "-q",
            "--amend",
            "--allow-empty",
            "-m",
            "rewritten",
        ],
    );
    let other = url("other/x");
    let wiki = url("me/app.wiki");
    let cases: &[(&[&str], &str)] = &[
        (&["origin", "HEAD:main"], "refs/heads/main"),
        (
            &["origin", "HEAD:refs/heads/box/other/x"],
            "refs/heads/box/other/x",
        ),
        (&["origin", "HEAD:refs/notes/x"], "refs/notes/x"),
        (&["origin", "v1"], "may not make tags"),
        (&["origin", ":box/web/x"], "may not delete"),
        (&["origin", "--delete", "main"], "refs/heads/main"),
        (
            &["--force", "origin", "HEAD:box/web/x"],
            "keeps all its commits",
        ),
        (
            &["--force-with-lease", "origin", "HEAD:box/web/x"],
            "keeps all its commits",
        ),
        (
            &["--force", "origin", "HEAD~1:box/web/x"],
            "keeps all its commits",
        ),
        (&["--mirror", "origin"], "this box may not"),
        (
            &["origin", "HEAD:box/web/new", "HEAD:main"],
            "refs/heads/main",
        ),
        (
            &["--atomic", "origin", "HEAD:box/web/new", "HEAD:main"],
            "refs/heads/main",
        ),
        (
            &["-f", "origin", "HEAD:box/web/new", "HEAD:box/web/x"],
            "keeps all its commits",
        ),
        (&[&other, "HEAD:box/web/x"], "may not write to `other/x`"),
        (&[&wiki, "HEAD:box/web/x"], "may not write to `me/app.wiki`"),
    ];
    for (args, words) in cases {
        stage.is_refused("clone", &[&["push"], *args].concat(), words);
    }
    // A large one is refused before its end, and git comes to hear why.
    stage.commit("large", 3 << 20);
    stage.is_refused("clone", &["push", "origin", "HEAD:main"], "refs/heads/main");
    let refs = stage.refs();
    assert!(
        !refs.contains("box/web/new"),
        "all of a push or nothing: {refs}"
    );
    // The same clone still pushes where it may.
    stage.pushes(&["origin", "HEAD:box/web/new"]);
}

#[test]
fn submodule_is_pushed_where_the_box_is_bound_and_nowhere_else() {
    let mut stage = Stage::set(scope());
    // git pushes submodules along with a branch of the same name only.
    stage.git("clone", &["checkout", "-q", "-b", "box/web/x"]);
    for (repository, folder) in [("me/part", "part"), ("other/x", "foreign")] {
        let said = stage.git(
            "clone",
            &["submodule", "--quiet", "add", &url(repository), folder],
        );
        assert!(said.worked, "{}", said.text);
        let at = format!("clone/{folder}");
        for args in [
            &["checkout", "-q", "-b", "box/web/x"][..],
            &["commit", "-q", "--allow-empty", "-m", "in it"],
        ] {
            let said = stage.git(&at, args);
            assert!(said.worked, "{}", said.text);
        }
    }
    let before = stage.refs();
    let own = stage.git("clone/part", &["push", "-q", "origin", "box/web/x"]);
    assert!(own.worked, "{}", own.text);
    assert_ne!(before, stage.refs());
    stage.git("clone", &["add", "."]);
    stage.commit("with submodules", 0);
    stage.is_refused(
        "clone",
        &[
            "push",
            "--recurse-submodules=on-demand",
            "origin",
            "box/web/x",
        ],
        "may not write to `other/x`",
    );
}

#[test]
fn settings_open_what_they_name_from_the_next_request_on() {
    let mut stage = Stage::set(GithubScope::default());
    stage.commit("one", 0);
    let push = ["push", "origin", "HEAD:box/web/x"];
    stage.is_refused("clone", &push, "box set <box> github=me/app");
    stage.bind(scope());
    stage.pushes(&["origin", "HEAD:box/web/x"]);
    stage.git(
        "clone",
        &[
            "commit",
            "-q",
            "--amend",
            "--allow-empty",
            "-m",
            "rewritten",
        ],
    );
    stage.git("clone", &["tag", "v1"]);
    let (by_force, tag) = (["-f", "origin", "HEAD:box/web/x"], ["origin", "v1"]);
    stage.is_refused(
        "clone",
        &[&["push"], &by_force[..]].concat(),
        "github-force=yes",
    );
    stage.is_refused("clone", &[&["push"], &tag[..]].concat(), "github-tags=yes");
    stage.bind(GithubScope {
        force: true,
        tags: true,
        refs: vec![
            RefPattern::parse("box/web/*").unwrap(),
            RefPattern::parse("dev").unwrap(),
        ],
        ..scope()
    });
    stage.pushes(&by_force);
    stage.pushes(&tag);
    stage.pushes(&["origin", "HEAD:dev"]);
    stage.pushes(&["origin", ":box/web/x"]);
    stage.is_refused("clone", &["push", "origin", "HEAD:main"], "refs/heads/main");
}

#[test]
#[expect(clippy::too_many_lines, reason = "one story, told in order")]
fn interfaces_beside_git_take_what_is_bound_and_nothing_else() {
    let mut stage = Stage::set(scope());
    let json = ["-H", "content-type: application/json", "-d"];
    let api = |path: &str| format!("https://api.github.com{path}");
    let with = |body: &'static str| [&json[..], &[body]].concat();
    let commit = r#"{"query":"mutation($i:X!){createCommitOnBranch(input:$i){x}}","variables":{"i":{"branch":{"repositoryNameWithOwner":"me/app","branchName":"box/web/x"}}}}"#;
    let to_main = r#"{"query":"mutation($i:X!){createCommitOnBranch(input:$i){x}}","variables":{"i":{"branch":{"repositoryNameWithOwner":"me/app","branchName":"main"}}}}"#;
    let pass: &[(&str, String, Vec<&str>)] = &[
        ("GET", api("/repos/other/x"), vec![]),
        ("POST", api("/repos/me/app/issues"), with("{}")),
        (
            "POST",
            api("/graphql"),
            with(r#"{"query":"{viewer{login}}"}"#),
        ),
        ("POST", api("/graphql"), with(commit)),
        (
            "PUT",
            api("/repos/me/app/contents/a"),
            with(r#"{"branch":"box/web/x"}"#),
        ),
        (
            "POST",
            api("/repos/me/app/git/refs"),
            with(r#"{"ref":"refs/heads/box/web/z"}"#),
        ),
    ];
    for (method, url, more) in pass {
        let before = stage.world.rig.requests("api.github.com").len();
        let said = stage.curl(method, url, more);
        assert!(
            said.text.ends_with("\n200"),
            "{method} {url}: {}",
            said.text
        );
        let seen = stage.world.rig.requests("api.github.com");
        assert_eq!(seen.len(), before + 1, "{method} {url}");
        let auth = format!("Bearer {TOKEN}");
        assert_eq!(seen[before].header("authorization"), Some(auth.as_str()));
    }
    let lfs =
        |repository: &str| format!("https://github.com/{repository}.git/info/lfs/objects/batch");
    let refuse: &[(&str, String, Vec<&str>)] = &[
        ("POST", api("/repos/other/x/issues"), with("{}")),
        ("POST", api("/graphql"), with(to_main)),
        (
            "POST",
            api("/graphql"),
            with(r#"{"query":"mutation{deleteRef(input:{refId:1}){x}}"}"#),
        ),
        (
            "PUT",
            api("/repos/me/app/contents/a"),
            with(r#"{"branch":"main"}"#),
        ),
        (
            "PUT",
            api("/repos/me/app/contents/a"),
            vec!["-d", r#"{"branch":"box/web/x"}"#],
        ),
        (
            "GET",
            api("/repos/me/app"),
            vec!["-H", "x-http-method-override: DELETE"],
        ),
        (
            "POST",
            api("/repos/me/app/..%2f..%2fother/x/issues"),
            with("{}"),
        ),
        ("POST", api("/repos/me/app/releases"), with("{}")),
        ("POST", api("/gists"), with("{}")),
        (
            "POST",
            "https://uploads.github.com/repos/me/app/releases/1/assets?name=x".into(),
            with("{}"),
        ),
        (
            "POST",
            "https://gist.github.com/abc.git/git-receive-pack".into(),
            vec!["-d", "0000"],
        ),
        ("POST", lfs("other/x"), with(r#"{"operation":"upload"}"#)),
        (
            "GET",
            api("/"),
            vec![
                "-H",
                "connection: upgrade",
                "-H",
                "upgrade: websocket",
                "--http1.1",
            ],
        ),
    ];
    for (method, url, more) in refuse {
        let (before, refused) = (stage.world.rig.all_requests().len(), stage.refused());
        let said = stage.curl(method, url, &[more.as_slice(), &["--path-as-is"]].concat());
        let status = said.text.rsplit('\n').next().unwrap();
        assert_eq!(status, "403", "{method} {url}: {}", said.text);
        assert!(
            said.text.contains("github: "),
            "{method} {url}: {}",
            said.text
        );
        assert_eq!(
            stage.world.rig.all_requests().len(),
            before,
            "{method} {url} arrived"
        );
        assert_eq!(stage.refused(), refused + 1, "{method} {url}");
        assert!(stage.rule().starts_with("github: "), "{method} {url}");
    }
    for (repository, operation) in [("other/x", "download"), ("me/app", "upload")] {
        let before = stage.world.rig.requests("github.com").len();
        let body = format!("{{\"operation\":\"{operation}\"}}");
        stage.curl("POST", &lfs(repository), &[&json[..], &[&body]].concat());
        assert_eq!(stage.world.rig.requests("github.com").len(), before + 1);
    }
    stage.bind(GithubScope {
        writes: GithubWrites::All,
        ..scope()
    });
    let said = stage.curl("POST", &api("/repos/me/app/releases"), &with("{}"));
    assert!(said.text.ends_with("\n200"), "{}", said.text);
    // What makes a new secret is no setting's to open.
    let before = stage.world.rig.all_requests().len();
    let runner = api("/repos/me/app/actions/runners/registration%2Dtoken");
    let said = stage.curl("POST", &runner, &with("{}"));
    assert!(said.text.contains("denied_request"), "{}", said.text);
    assert!(said.text.ends_with("\n451"), "{}", said.text);
    assert_eq!(stage.world.rig.all_requests().len(), before);
}

#[test]
fn push_that_comes_as_gzip_is_judged_as_what_it_unfolds_to() {
    let mut stage = Stage::set(scope());
    let list = |name: &str| {
        let old = "0".repeat(40);
        let line = format!("{old} {} {name}\0report-status", "1".repeat(40));
        format!("{:04x}{line}0000", line.len() + 4)
    };
    let send = |stage: &Stage, bytes: &[u8]| {
        let file = stage.folder.path().join("body.gz");
        std::fs::write(&file, bytes).unwrap();
        let body = format!("@{}", file.display());
        stage.curl(
            "POST",
            "https://github.com/me/app.git/git-receive-pack",
            &[
                "-H",
                "content-type: application/x-git-receive-pack-request",
                "-H",
                "content-encoding: gzip",
                "-H",
                "expect: 100-continue",
                "--data-binary",
                &body,
            ],
        )
    };
    let zip = |text: &str| {
        let mut gzip = Command::new("gzip");
        let plain = TempDir::new().unwrap();
        let file = plain.path().join("x");
        std::fs::write(&file, text).unwrap();
        gzip.arg("-c").arg(&file).output().unwrap().stdout
    };
    let arrived = |stage: &Stage| {
        let seen = stage.world.rig.requests("github.com");
        seen.iter()
            .filter(|one| one.method == "POST" && one.path.ends_with("receive-pack"))
            .count()
    };
    let before = arrived(&stage);
    let said = send(&stage, &zip(&list("refs/heads/main")));
    assert!(
        said.text.contains("ng refs/heads/main github: "),
        "{}",
        said.text
    );
    let double = [zip(&list("refs/heads/box/web/x")), zip("0000")].concat();
    assert!(send(&stage, &double).text.contains("github: "));
    assert_eq!(arrived(&stage), before);
    assert_eq!(stage.refused(), 2);
    // What may pass arrives unfolded: the server misses the pack, and says so.
    let said = send(&stage, &zip(&list("refs/heads/box/web/x")));
    assert_eq!(arrived(&stage), before + 1, "{}", said.text);
}
