//! Boxes that travel: out of a running host into a file, and from there into any host.

use super::credential::Token;
use super::host::{PATIENCE, TestHost};
use super::leaks;
use super::program::{Program, Said};
use box_api::control::{BoxState, Origin};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Another host of the same user on the same internet, with nothing in its data folder.
struct Elsewhere<'h> {
    host: &'h TestHost,
    folder: tempfile::TempDir,
}

impl<'h> Elsewhere<'h> {
    fn new(host: &'h TestHost) -> Self {
        let folder = tempfile::Builder::new().prefix("e-").tempdir_in("/tmp");
        Self {
            host,
            folder: folder.unwrap(),
        }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn run_dir(&self) -> PathBuf {
        self.folder.path().join("run")
    }

    fn program(&self, arguments: &[&str]) -> Program {
        let mut program = self.host.program(arguments);
        program
            .command
            .env("BOX_DATA_DIR", self.data())
            .env("BOX_RUN_DIR", self.run_dir());
        program
    }

    #[track_caller]
    fn ok(&self, arguments: &[&str]) -> String {
        let said = self.program(arguments).deadline(3 * PATIENCE).run();
        said.assert_code(0);
        said.out
    }

    #[track_caller]
    fn sh(&self, name: &str, script: &str) -> String {
        self.ok(&["exec", name, "--", "sh", "-c", script])
    }
}

impl Elsewhere<'_> {
    #[track_caller]
    fn info(&self, name: &str) -> Value {
        serde_json::from_str(&self.ok(&["info", name, "--json"])).unwrap()
    }
}

impl Drop for Elsewhere<'_> {
    fn drop(&mut self) {
        let said = [
            self.program(&["rm", "all", "--force", "--now"]).run(),
            self.program(&["serve", "--stop"]).run(),
        ];
        leaks::end_egress(&self.run_dir());
        if !std::thread::panicking() {
            for said in said {
                said.assert_code(0);
            }
            // Of processes and mounts the other host's end tells.
            assert!(leaks::box_ids(&self.data()).is_empty());
        }
    }
}

#[track_caller]
fn sh(host: &TestHost, name: &str, script: &str) -> String {
    let said = host.shell(name, script);
    said.assert_code(0);
    said.out
}

fn labels(json: &str) -> Vec<String> {
    let all: Value = serde_json::from_str(json).unwrap();
    let all = all.as_array().unwrap().iter();
    all.map(|one| one["label"].as_str().unwrap().to_owned())
        .collect()
}

fn assert_shouts(said: &Said) {
    assert!(
        said.err.contains("WARNING") && said.err.contains("it is a credential"),
        "B30: {said}"
    );
}

/// The archives of a test, in a folder of its own.
fn file(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

fn tmp_is_empty(data: &Path) {
    let tmp = data.join("tmp");
    let left: Vec<_> = fs::read_dir(&tmp)
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path())
        .collect();
    assert_eq!(left, Vec::<PathBuf>::new());
}

/// Waits until a program that writes has written more.
const GROWS: &str = "a=$(wc -c < busy); n=0; while [ $(wc -c < busy) = $a ]; do n=$((n+1)); [ $n -lt 100000 ]; done";
const MACHINE: &str = "cat /etc/machine-id";
const ADDRESS: &str = "getent hosts ok.test | cut -d' ' -f1";

/// A box that works: files of every tree, a snapshot between, a learned name, a program that writes.
fn furnished(host: &TestHost) {
    host.rig.origin("ok.test");
    let make = [
        "new",
        "demo",
        "--profile",
        "root",
        "--allow",
        "ok.test",
        "--pids",
        "200",
        "--title",
        "My box",
    ];
    host.ok(&make);
    let files =
        "echo work > note; echo home > ~/note; echo root > /etc/note; rm -rf /usr/share/doc";
    sh(host, "demo", files);
    host.ok(&["snapshot", "demo", "good"]);
    sh(host, "demo", "echo later > note; mv /usr/share /usr/shared");
    let busy = "(while :; do date +%s%N >> busy; done) >/dev/null 2>&1 & echo";
    sh(host, "demo", busy);
    host.ok(&[
        "policy",
        "set",
        "demo",
        "--deny",
        "bad.test",
        "--allow",
        "good.test",
    ]);
}

fn assert_rules_came_along(elsewhere: &Elsewhere) {
    let policy = elsewhere.ok(&["policy", "show", "there", "--json"]);
    let policy: Value = serde_json::from_str(&policy).unwrap();
    let entries = policy["entries"].as_array().unwrap();
    for (entry, verdict) in [("bad.test", "deny"), ("good.test", "allow")] {
        let is_it = |known: &Value| known["entry"] == entry && known["verdict"] == verdict;
        assert!(entries.iter().any(is_it), "{entry}: {policy}");
    }
}

#[test]
fn a_running_box_travels_to_a_host_that_has_nothing_and_back() {
    let host = TestHost::new();
    furnished(&host);
    let (learned, machine) = (sh(&host, "demo", ADDRESS), sh(&host, "demo", MACHINE));
    let before = host.info("demo");
    let folder = tempfile::tempdir().unwrap();
    let archive = file(folder.path(), "demo.box.tar.zst");
    let said = host
        .program(&["export", "demo", &archive])
        .deadline(3 * PATIENCE)
        .run();
    said.assert_code(0);
    assert_shouts(&said);
    assert_eq!(said.out, format!("{archive}\n"));
    let mode = fs::metadata(&archive).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    tmp_is_empty(host.data());
    // It goes on.
    sh(&host, "demo", GROWS);
    let again = host.run(&["export", "demo", &archive]);
    again.assert_code(1);
    assert!(again.err.contains("--force"), "{again}");
    host.ok(&["rm", "demo", "--force", "--now"]);

    let elsewhere = Elsewhere::new(&host);
    let import = ["import", &archive, "--name", "there"];
    let said = elsewhere.program(&import).deadline(3 * PATIENCE).run();
    said.assert_code(0);
    assert_shouts(&said);
    let files = "cat note ~/note /etc/note; ls -d /usr/shared; hostname";
    assert_eq!(
        elsewhere.sh("there", files),
        "later\nhome\nroot\n/usr/shared\nthere\n"
    );
    assert_ne!(elsewhere.sh("there", MACHINE), machine, "B28");
    assert_eq!(
        elsewhere.sh("there", ADDRESS),
        learned,
        "what it runs may hold it"
    );
    let kept = labels(&elsewhere.ok(&["snapshots", "there", "--json"]));
    assert_eq!(kept, ["pristine", "good"]);
    assert_rules_came_along(&elsewhere);
    let info = elsewhere.info("there");
    assert_eq!(
        (&info["title"], &info["profile"]),
        (&"My box".into(), &"root".into())
    );
    assert_eq!(info["limits"]["pids"], 200);
    assert_ne!(info["id"], before.id.as_str());
    let origin = &info["origin"];
    assert_eq!(
        (&origin["times"], &origin["id"]),
        (&1.into(), &before.id.as_str().into())
    );
    elsewhere.ok(&["restore", "there", "good", "--force"]);
    let restored = elsewhere.sh("there", "cat note; ls -d /usr/share");
    assert_eq!(restored, "work\n/usr/share\n");
    elsewhere.ok(&["run", "demo", "show me", "--name", "there", "--allow-all"]);

    let back = file(folder.path(), "back.box.tar.zst");
    elsewhere.ok(&["export", "there", &back]);
    comes_home(&host, &back, info["id"].as_str().unwrap());
    assert_eq!(sh(&host, "there", ADDRESS), learned);
    tmp_is_empty(host.data());
    tmp_is_empty(&elsewhere.data());
}

/// And home again, through a pipe, on the image that is there.
fn comes_home(host: &TestHost, archive: &str, from: &str) {
    let import = host.program(&["import", "-"]);
    let said = import
        .input(&fs::read(archive).unwrap())
        .deadline(3 * PATIENCE)
        .run();
    said.assert_code(0);
    let home = host.info("there");
    assert_eq!(home.state, BoxState::Running);
    let Some(Origin::Import {
        times,
        id,
        first_imported_at_ms,
        last_imported_at_ms,
        ..
    }) = home.origin
    else {
        panic!("{:?}", home.origin);
    };
    assert_eq!((times, id.as_str()), (2, from), "B29");
    assert!(first_imported_at_ms < last_imported_at_ms);
    let shown = host.ok(&["info", "there"]);
    assert!(shown.contains("journey number 2"), "{shown}");
    assert_eq!(sh(host, "there", "cat note"), "work\n");
}

#[test]
fn an_import_may_use_no_credential_until_it_is_let() {
    let host = TestHost::new();
    let token = Token::random();
    token.add_to(&host);
    host.ok(&["new", "demo"]);
    let variable = "echo \"<$CLAUDE_CODE_OAUTH_TOKEN>\"";
    assert!(sh(&host, "demo", variable).starts_with("<sk-ant-oat01-"));
    let folder = tempfile::tempdir().unwrap();
    let archive = file(folder.path(), "a");
    host.ok(&["export", "demo", &archive, "--no-image"]);
    host.ok(&["import", &archive, "--name", "other"]);
    assert_eq!(sh(&host, "other", variable), "<>\n", "D34");
    let said = host.run(&["run", "claude", "hello", "--name", "other"]);
    said.assert_code(1);
    assert!(said.err.contains("credential=default"), "{said}");
    assert!(host.ok(&["info", "other"]).contains("credential=default"));
    host.ok(&["set", "other", "credential=default"]);
    assert!(sh(&host, "other", variable).starts_with("<sk-ant-oat01-"));
    host.ok(&["set", "other", "credential=none"]);
    assert_eq!(sh(&host, "other", variable), "<>\n");
}

#[test]
fn what_cannot_be_imported_leaves_nothing_and_says_why() {
    let host = TestHost::new();
    host.ok(&["new", "demo", "--no-start"]);
    let folder = tempfile::tempdir().unwrap();
    let archive = file(folder.path(), "a");
    host.ok(&["export", "demo", &archive, "--no-image"]);
    let refused = |arguments: &[&str], why: &str| {
        let said = host.run(arguments);
        said.assert_code(1);
        assert!(said.told().contains(why), "{why}: {said}");
    };
    refused(&["import", &archive], "there is a box `demo` already");
    let whole = fs::read(&archive).unwrap();
    let other = file(folder.path(), "b");
    for (bytes, why) in [
        (&whole[..whole.len() / 2], "it is cut short"),
        (&whole[..whole.len() - 1], "it is cut short"),
        (b"something else".as_slice(), "it is no archive of a box"),
        (b"", "it is no archive of a box"),
    ] {
        fs::write(&other, bytes).unwrap();
        refused(&["import", &other, "--name", "other"], why);
    }
    let mut damaged = whole.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    fs::write(&other, damaged).unwrap();
    let said = host.run(&["import", &other, "--name", "other"]);
    said.assert_code(1);
    let boxes: Value = serde_json::from_str(&host.ok(&["list", "--json"])).unwrap();
    assert_eq!(boxes.as_array().unwrap().len(), 1, "{boxes}");
    tmp_is_empty(host.data());
    host.ok(&["import", &archive, "--name", "other"]);
    assert_eq!(host.info("other").state, BoxState::Running);

    // Without its image it is told what is missing; with another it is made all the same.
    let elsewhere = Elsewhere::new(&host);
    let said = elsewhere.program(&["import", &archive]).run();
    said.assert_code(1);
    assert!(
        said.err.contains("is not on this host") && said.err.contains("box image prepare"),
        "{said}"
    );
}

#[test]
fn a_host_that_dies_while_a_box_travels_leaves_it_whole_or_not_at_all() {
    let host = TestHost::new();
    host.ok(&["new", "demo", "--profile", "root"]);
    sh(&host, "demo", "echo root > /etc/note");
    host.ok(&["snapshot", "demo", "good"]);
    let folder = tempfile::tempdir().unwrap();
    let archive = file(folder.path(), "a");
    host.ok(&["export", "demo", &archive]);
    let dies = |point: &str, arguments: &[&str]| {
        host.ok(&["serve", "--stop"]);
        let mut program = host.program(arguments);
        program.command.env("BOX_FAULT", point);
        let said = program.run();
        assert_ne!(said.code, 0, "{point}: {said}");
        let boxes: Value = serde_json::from_str(&host.ok(&["list", "--json"])).unwrap();
        let named = |name: &str| {
            boxes
                .as_array()
                .unwrap()
                .iter()
                .any(|one| one["name"] == name)
        };
        assert!(named("demo"), "{point}: {boxes}");
        tmp_is_empty(host.data());
        named("other")
    };
    for point in ["export.held", "export.half", "copy.frozen"] {
        let part = file(folder.path(), "b");
        dies(point, &["export", "demo", &part]);
        assert!(!Path::new(&part).exists(), "{point}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "{point}");
        assert_eq!(sh(&host, "demo", "cat /etc/note"), "root\n", "{point}");
    }
    let import = ["import", &archive, "--name", "other"];
    for point in [
        "import.received",
        "import.reserved",
        "import.image",
        "import.prepared",
        "import.snapshots",
        "import.published",
        "import.made",
    ] {
        assert!(!dies(point, &import), "{point}: a box nobody was told of");
    }
    assert!(dies("import.settled", &import), "from then on it is a box");
    assert_eq!(
        labels(&host.ok(&["snapshots", "other", "--json"])),
        ["pristine", "good"]
    );
    host.ok(&["start", "other"]);
    assert_eq!(sh(&host, "other", "cat /etc/note"), "root\n");
}
