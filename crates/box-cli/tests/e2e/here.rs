//! My folder in, its work out: `--here`, `diff`, `pull`, with real git at both ends.

use super::host::TestHost;
use super::program::{Program, Said};
use std::fs;
use std::path::{Path, PathBuf};

/// The caller's repository.
struct Repository {
    folder: tempfile::TempDir,
}

impl Repository {
    /// Two commits, one tag; then a change, a new file, an ignored one, one deleted.
    fn with_changes() -> Self {
        let repository = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        repository.git(&["init", "-q", "-b", "main"]);
        repository.git(&["config", "user.name", "Me"]);
        repository.git(&["config", "user.email", "me@example.com"]);
        let origin = "https://me:s3cret@forge.example/me/project.git";
        repository.git(&["remote", "add", "origin", origin]);
        repository.write(".gitignore", "ignored\n");
        repository.write("kept", "one\n");
        repository.write("gone", "gone\n");
        repository.commit("first");
        repository.git(&["tag", "v1"]);
        repository.write("kept", "two\n");
        repository.commit("second");
        repository.write("kept", "three, not committed\n");
        repository.write("new", "new, not committed\n");
        repository.write("ignored", "s3cret\n");
        fs::remove_file(repository.path().join("gone")).unwrap();
        repository
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path().join(name), text).unwrap();
    }

    fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
    }

    fn try_git(&self, words: &[&str]) -> Said {
        let mut program = Program::other("git", words);
        program.command.current_dir(self.path());
        program.run()
    }

    #[track_caller]
    fn git(&self, words: &[&str]) -> String {
        let said = self.try_git(words);
        said.assert_code(0);
        said.out.trim_end().to_owned()
    }

    /// Every ref, every file of the git folder that could change what git does, and the status.
    fn state(&self) -> String {
        let refs = self.git(&["for-each-ref", "--format=%(refname) %(objectname)"]);
        let head = fs::read_to_string(self.path().join(".git/HEAD")).unwrap();
        let config = fs::read_to_string(self.path().join(".git/config")).unwrap();
        let status = self.git(&["status", "--porcelain"]);
        let mut files = Vec::new();
        for entry in fs::read_dir(self.path().join(".git")).unwrap().flatten() {
            files.push(entry.file_name().into_string().unwrap());
        }
        files.sort();
        format!("{refs}\n{head}\n{config}\n{status}\n{files:?}")
    }
}

/// `box` where the repository is.
fn run(host: &TestHost, folder: &Path, arguments: &[&str]) -> Said {
    let mut program = host.program(arguments);
    program.command.current_dir(folder);
    program.run()
}

fn objects(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.join(".git/objects")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

#[test]
fn my_repository_comes_with_its_changes_and_nothing_is_written_into_it() {
    let host = TestHost::new();
    let repository = Repository::with_changes();
    let (state, stored) = (repository.state(), objects(repository.path()));
    let here = repository.path();
    let made = run(&host, here, &["new", "one", "--here"]);
    made.assert_code(0);
    assert!(
        made.err.contains("branch `main`, 3 uncommitted changes"),
        "{made}"
    );
    assert_eq!(repository.state(), state, "bringing it changed it");
    assert_eq!(objects(here), stored, "bringing it wrote objects into it");

    // Inside everything is as it was: committed what was, changed what was, no secret.
    let inside = host.shell(
        "one",
        "git status --porcelain; git log --format=%s; git describe --tags; cat kept; \
         git remote get-url origin; git branch --show-current; ls -A",
    );
    let wanted = " D gone\n M kept\n?? new\nsecond\nfirst\nv1-1-g";
    assert!(inside.out.starts_with(wanted), "{inside}");
    let rest = "three, not committed\nhttps://forge.example/me/project.git\nmain\n\
                .git\n.gitignore\nkept\nnew\n";
    assert!(inside.out.ends_with(rest), "{inside}");
    let whole = host.shell(
        "one",
        "grep -rl s3cret /workspace /home 2>/dev/null | wc -l",
    );
    assert_eq!(whole.out, "0\n", "a secret came along");

    // Nothing differs from what was brought, until something does.
    assert_eq!(run(&host, here, &["diff", "one"]).out, "");
    let work = "echo four > kept; echo more > more; \
                git -c user.name=A -c user.email=a@x commit -qam agents; echo five > kept";
    host.shell("one", work).assert_code(0);
    let diff = run(&host, here, &["diff", "one"]);
    diff.assert_code(0);
    assert!(
        diff.out.contains("-three, not committed\n+five\n"),
        "{diff}"
    );
    assert!(
        diff.out.contains("+more\n") && !diff.out.contains("new, not"),
        "{diff}"
    );
    let stat = run(&host, here, &["diff", "one", "--stat", "more"]);
    assert!(stat.out.contains("1 file changed"), "{stat}");
}

/// A repository in box `one`, where an agent has committed something and left more.
fn worked_on() -> (TestHost, Repository) {
    let host = TestHost::new();
    let repository = Repository::with_changes();
    run(&host, repository.path(), &["new", "one", "--here"]).assert_code(0);
    let work = "echo four > kept; echo more > more; \
                git -c user.name=A -c user.email=a@x commit -qam agents; echo five > kept";
    host.shell("one", work).assert_code(0);
    (host, repository)
}

#[test]
fn the_work_comes_back_as_one_branch_and_no_hook_runs() {
    let (host, repository) = worked_on();
    let here = repository.path();
    let hooks = here.join(".git/hooks");
    fs::create_dir_all(&hooks).unwrap();
    for hook in [
        "reference-transaction",
        "post-checkout",
        "post-merge",
        "pre-auto-gc",
    ] {
        let path = hooks.join(hook);
        fs::write(
            &path,
            format!("#!/bin/sh\ntouch {}\n", here.join("hooked").display()),
        )
        .unwrap();
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    let state = repository.state();
    let pulled = run(&host, here, &["pull", "one"]);
    pulled.assert_code(0);
    assert!(!here.join("hooked").exists(), "a hook ran");
    let refs = |state: &str| -> Vec<String> {
        let lines = state
            .lines()
            .filter(|line| !line.contains("refs/heads/box/one"));
        lines.map(str::to_owned).collect()
    };
    let after = repository.state();
    assert_eq!(
        refs(&after),
        refs(&state),
        "something else than the branch changed"
    );
    let log = repository.git(&["log", "--format=%s", "main..box/one"]);
    assert_eq!(log, "box: uncommitted changes\nagents");
    assert_eq!(repository.git(&["show", "box/one:kept"]), "five");
    assert_eq!(
        repository.git(&["show", "box/one:new"]),
        "new, not committed"
    );
    // The control: the hook does run when somebody else moves a ref.
    repository.git(&["update-ref", "refs/heads/control", "HEAD"]);
    assert!(here.join("hooked").exists(), "the hook is none");
}

#[test]
fn what_we_made_of_uncommitted_changes_gives_way_and_somebodys_work_does_not() {
    let (host, repository) = worked_on();
    let here = repository.path();
    run(&host, here, &["pull", "one"]).assert_code(0);
    host.shell(
        "one",
        "git -c user.name=A -c user.email=a@x commit -qam agents-2",
    )
    .assert_code(0);
    run(&host, here, &["pull", "one"]).assert_code(0);
    let log = repository.git(&["log", "--format=%s", "main..box/one"]);
    assert_eq!(log, "box: uncommitted changes\nagents-2\nagents");
    let same = run(&host, here, &["pull", "one"]);
    same.assert_code(0);
    let mine = repository.git(&[
        "commit-tree",
        "box/one^{tree}",
        "-p",
        "box/one",
        "-m",
        "mine",
    ]);
    repository.git(&["update-ref", "refs/heads/box/one", &mine]);
    let refused = run(&host, here, &["pull", "one"]);
    refused.assert_code(1);
    assert!(
        refused.err.contains("has commits the box has not"),
        "{refused}"
    );
    assert_eq!(repository.git(&["rev-parse", "box/one"]), mine);
    run(&host, here, &["pull", "one", "--force"]).assert_code(0);
    // A branch somebody stands on is not moved under them.
    repository.git(&["stash", "-u", "-q"]);
    repository.git(&["switch", "-q", "box/one"]);
    host.shell("one", "echo six > kept").assert_code(0);
    let stood_on = run(&host, here, &["pull", "one"]);
    stood_on.assert_code(1);
    assert!(stood_on.err.contains("you stand on it"), "{stood_on}");
}

#[test]
fn a_shallow_repository_an_unborn_one_and_a_plain_folder_come_too() {
    let host = TestHost::new();
    // Shallow: cut after one commit.
    let whole = Repository::with_changes();
    let place = tempfile::tempdir().unwrap();
    let url = format!("file://{}", whole.path().display());
    whole.git(&[
        "clone",
        "-q",
        "--depth",
        "1",
        &url,
        place.path().join("cut").to_str().unwrap(),
    ]);
    let made = run(&host, &place.path().join("cut"), &["new", "cut", "--here"]);
    made.assert_code(0);
    let log = host.shell(
        "cut",
        "git log --format=%s; git status --porcelain; git fsck 2>&1",
    );
    assert_eq!(log.out, "second\n", "{log}");
    host.shell("cut", "echo x > kept").assert_code(0);
    run(&host, &place.path().join("cut"), &["pull", "cut"]).assert_code(0);

    // Unborn: no commit yet.
    let unborn = Repository {
        folder: tempfile::tempdir().unwrap(),
    };
    unborn.git(&["init", "-q", "-b", "trunk"]);
    unborn.write("first", "first\n");
    run(&host, unborn.path(), &["new", "unborn", "--here"]).assert_code(0);
    let status = host.shell(
        "unborn",
        "git status --porcelain; git branch --show-current",
    );
    assert_eq!(status.out, "?? first\ntrunk\n", "{status}");

    // Detached.
    let detached = Repository::with_changes();
    detached.git(&["stash", "-q", "-u"]);
    detached.git(&["checkout", "-q", "--detach", "v1"]);
    run(&host, detached.path(), &["new", "detached", "--here"]).assert_code(0);
    let log = host.shell(
        "detached",
        "git log --format=%s; git branch --show-current; cat kept",
    );
    assert_eq!(log.out, "first\none\n", "{log}");

    // No repository at all.
    let plain = tempfile::tempdir().unwrap();
    fs::create_dir(plain.path().join("sub")).unwrap();
    fs::write(plain.path().join("sub/file"), "one\n").unwrap();
    run(&host, plain.path(), &["new", "plain", "--here"]).assert_code(0);
    assert_eq!(host.shell("plain", "cat sub/file; ls -A").out, "one\nsub\n");
    host.shell("plain", "echo two > sub/file").assert_code(0);
    let diff = run(&host, plain.path(), &["diff", "plain"]);
    assert!(diff.out.contains("-one\n+two\n"), "{diff}");
    let nowhere = run(&host, plain.path(), &["pull", "plain"]);
    nowhere.assert_code(2);
}

#[test]
fn what_nobody_means_to_bring_is_refused_before_a_box_is_made() {
    let host = TestHost::new();
    let home = tempfile::tempdir().unwrap();
    let from = |folder: &Path| {
        let mut program = host.program(&["new", "one", "--here"]);
        program.command.current_dir(folder).env("HOME", home.path());
        program.run()
    };
    for folder in [home.path(), Path::new("/"), home.path().parent().unwrap()] {
        let said = from(folder);
        said.assert_code(2);
        assert!(said.err.contains("is not brought into a box"), "{said}");
    }
    let large = tempfile::tempdir().unwrap();
    let file = fs::File::create(large.path().join("large")).unwrap();
    file.set_len(2 << 30).unwrap();
    let said = from(large.path());
    said.assert_code(2);
    assert!(said.err.contains("--force"), "{said}");
    assert_eq!(host.ok(&["list", "--json"]).matches("\"name\"").count(), 0);
}

#[test]
fn run_here_gives_the_agent_my_folder() {
    let host = TestHost::new();
    let repository = Repository::with_changes();
    let said = run(
        &host,
        repository.path(),
        &["run", "demo", "--here", "--allow-all", "--name", "one"],
    );
    said.assert_code(0);
    let kept = host.shell("one", "cat kept; git log --format=%s -n 1");
    assert!(kept.out.starts_with("three, not committed\n"), "{kept}");
    let again = run(
        &host,
        repository.path(),
        &["run", "demo", "--here", "--name", "one"],
    );
    again.assert_code(2);
}

/// Box `one`, whose agent is root in it and has put a git of its own in the place of git.
fn with_a_lying_git() -> (TestHost, Repository) {
    let host = TestHost::new();
    let repository = Repository::with_changes();
    let here = repository.path();
    // As root in its box the agent may replace git itself.
    run(&host, here, &["new", "one", "--here", "--profile", "root"]).assert_code(0);
    host.shell(
        "one",
        "cp /usr/bin/git /usr/bin/git.real; cat > /usr/bin/git <<'END'
#!/bin/sh
case \"$1\" in
bundle) cat /tmp/lie; exit 0 ;;
rev-list) echo x; exit 0 ;;
*) exec /usr/bin/git.real \"$@\" ;;
esac
END",
    )
    .assert_code(0);
    (host, repository)
}

/// Begins each script that makes up a lie.
const GIT: &str = "git=/usr/bin/git.real; $git config user.name A; $git config user.email a@x; \
               tip=$($git rev-parse HEAD); ";

#[test]
fn a_box_that_lies_about_its_commits_moves_nothing() {
    let (host, repository) = with_a_lying_git();
    let here = repository.path();
    let before = repository.state();
    let lies = [
        // Another ref beside the one.
        (
            "other ref",
            "{ printf '# v2 git bundle\\n%s refs/box/out\\n%s refs/heads/main\\n\\n' $tip $tip; \
          echo $tip | $git pack-objects --revs --stdout -q; } > /tmp/lie",
        ),
        // A ref that is a path.
        (
            "path ref",
            "{ printf '# v2 git bundle\\n%s refs/heads/../../config\\n\\n' $tip; \
          echo $tip | $git pack-objects --revs --stdout -q; } > /tmp/lie",
        ),
        // A partial bundle, which would make the repository trust missing objects.
        (
            "filter",
            "{ printf '# v3 git bundle\\n@filter=blob:none\\n%s refs/box/out\\n\\n' $tip; \
          echo $tip | $git pack-objects --revs --stdout -q; } > /tmp/lie",
        ),
        // No bundle at all.
        ("garbage", "head -c 100000 /dev/urandom > /tmp/lie"),
        (
            "no end",
            "{ printf '# v2 git bundle\\n'; yes -- \"-$tip\" | head -n 200000; } > /tmp/lie",
        ),
        ("terminal", "printf '\\033]0;owned\\007\\n\\n' > /tmp/lie"),
        ("nothing", ": > /tmp/lie"),
    ];
    for (what, lie) in lies {
        host.shell(
            "one",
            &format!("cd /workspace; echo {what} > kept; {GIT}{lie}"),
        )
        .assert_code(0);
        let said = run(&host, here, &["pull", "one"]);
        said.assert_code(1);
        assert!(!said.err.contains('\u{1b}'), "{what}: {said}");
        assert_eq!(repository.state(), before, "{what}: {said}");
    }
}

#[test]
fn trees_no_git_makes_are_not_taken() {
    let (host, repository) = with_a_lying_git();
    let here = repository.path();
    let before = repository.state();
    // Trees no git makes: a `.git` folder in them, links that hide one, bad modules.
    let trees = [
        (
            "dot git",
            "blob=$(echo x | $git hash-object -w --stdin); \
          sub=$(printf '100644 blob %s\\tconfig\\n' $blob | $git mktree); \
          tree=$(printf '040000 tree %s\\t.git\\n' $sub | $git mktree)",
        ),
        (
            "dot git in capitals",
            "blob=$(echo x | $git hash-object -w --stdin); \
          sub=$(printf '100644 blob %s\\tconfig\\n' $blob | $git mktree); \
          tree=$(printf '040000 tree %s\\t.GIT\\n' $sub | $git mktree)",
        ),
        (
            "modules",
            "blob=$(printf '[submodule \"x\"]\\npath=x\\nurl=-u./evil\\n' | $git hash-object -w --stdin); \
          tree=$(printf '100644 blob %s\\t.gitmodules\\n' $blob | $git mktree)",
        ),
        (
            "modules link",
            "blob=$(printf /etc/passwd | $git hash-object -w --stdin); \
          tree=$(printf '120000 blob %s\\t.gitmodules\\n' $blob | $git mktree)",
        ),
    ];
    for (what, tree) in trees {
        // A bundle that is right in form, by the real git.
        let script = format!(
            "cd /workspace; {GIT}{tree}; commit=$($git commit-tree $tree -p $tip -m evil); \
             $git update-ref refs/heads/evil $commit; \
             {{ printf '# v2 git bundle\\n%s refs/box/out\\n\\n' $commit; \
             printf '%s\\n' $commit | $git pack-objects --revs --stdout -q; }} > /tmp/lie"
        );
        host.shell("one", &script).assert_code(0);
        let said = run(&host, here, &["pull", "one", "evil"]);
        said.assert_code(1);
        assert!(said.err.contains("not taken"), "{what}: {said}");
        assert_eq!(repository.state(), before, "{what}: {said}");
    }
    // The control: the same way round with an honest tree.
    let honest = format!(
        "cd /workspace; {GIT}blob=$(echo x | $git hash-object -w --stdin); \
         tree=$(printf '100644 blob %s\\tfile\\n' $blob | $git mktree); \
         commit=$($git commit-tree $tree -p $tip -m honest); $git update-ref refs/heads/evil $commit; \
         {{ printf '# v2 git bundle\\n%s refs/box/out\\n\\n' $commit; \
         printf '%s\\n' $commit | $git pack-objects --revs --stdout -q; }} > /tmp/lie"
    );
    host.shell("one", &honest).assert_code(0);
    run(&host, here, &["pull", "one", "evil"]).assert_code(0);
    assert_eq!(repository.git(&["show", "box/one:file"]), "x");
}
