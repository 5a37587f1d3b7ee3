//! `bench clone` and `bench snapshot`: a box with 1 GB in 20,000 files, copied by the engine and by
//! `cp`, on a disk of each kind. The disks are files on this machine's own, on loop devices.

use super::Contestant;
use super::rows::Rows;
use super::stage::{Size, built, clock_ns, size};
use crate::run;
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Full copies of a gigabyte take seconds each.
const ROUNDS: usize = 3;
const DISK_BYTES: u64 = 6 << 30;

/// A kind of disk, and what its rows are called.
struct Disk {
    kind: &'static str,
    mkfs: &'static str,
    engine: &'static str,
    engine_remark: &'static str,
    copy: &'static str,
    copy_words: &'static [&'static str],
}

const DISKS: &[Disk] = &[
    Disk {
        kind: "btrfs",
        mkfs: "mkfs.btrfs",
        engine: "box on btrfs",
        engine_remark: "one snapshot of a subvolume, committed",
        copy: "cp --reflink on btrfs",
        copy_words: &["-a", "--reflink=always"],
    },
    Disk {
        kind: "xfs",
        mkfs: "mkfs.xfs",
        engine: "box on xfs",
        engine_remark: "file by file, content shared, synced",
        copy: "cp --reflink on xfs",
        copy_words: &["-a", "--reflink=always"],
    },
    Disk {
        kind: "ext4",
        mkfs: "mkfs.ext4",
        engine: "box on ext4",
        engine_remark: "every byte, synced",
        copy: "cp -a on ext4",
        copy_words: &["-a"],
    },
];

pub(super) fn clones() -> Result<Rows> {
    rows("clone")
}

pub(super) fn snapshots() -> Result<Rows> {
    rows("snapshot")
}

fn rows(verb: &str) -> Result<Rows> {
    let stage = Stage::set_up()?;
    let mut contestants: Vec<Box<dyn Contestant>> = Vec::new();
    for disk in DISKS {
        let point = stage.mount(disk)?;
        let engine = Engine::start(disk, &point, verb)?;
        contestants.push(Box::new(Copy {
            disk,
            source: engine.workspace.clone(),
            target: point.join("copy"),
        }));
        contestants.push(Box::new(engine));
    }
    let measured = Rows::measure(size().of(ROUNDS, 1), &mut contestants);
    // The disks are busy as long as anybody works on them.
    drop(contestants);
    measured
}

/// Where the disks lie. The mounts are this process's own, see `stage::in_own_network`.
struct Stage(PathBuf);

impl Stage {
    fn set_up() -> Result<Self> {
        let top = std::env::temp_dir().join(format!("box-bench-copies-{}", std::process::id()));
        fs::create_dir_all(&top)?;
        Ok(Self(top))
    }

    fn mount(&self, disk: &Disk) -> Result<PathBuf> {
        let (file, point) = (
            self.0.join(format!("{}.img", disk.kind)),
            self.0.join(disk.kind),
        );
        fs::File::create(&file)?.set_len(DISK_BYTES)?;
        fs::create_dir_all(&point)?;
        let (file, place) = (file.to_string_lossy(), point.to_string_lossy());
        run::run(disk.mkfs, &["-q", &file])?;
        run::run("mount", &["-o", "loop", &file, &place])?;
        Ok(point)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for disk in DISKS {
            let point = self.0.join(disk.kind);
            if point.exists()
                && let Err(error) = run::run("umount", &[&point.to_string_lossy()])
            {
                eprintln!("bench: {error:#}");
            }
        }
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("bench: {error}");
        }
    }
}

/// The engine with its one box, in a process of its own.
struct Engine {
    disk: &'static Disk,
    workspace: PathBuf,
    child: Child,
    /// Absent once it was told to end.
    ask: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Engine {
    fn start(disk: &'static Disk, point: &Path, verb: &str) -> Result<Self> {
        let program = built("examples/copy_bench");
        let mut child = Command::new(program)
            .arg(point)
            .arg(verb)
            .arg(match size() {
                Size::Full => "100",
                Size::Small => "2",
            })
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("could not start the engine's bench")?;
        let ask = child.stdin.take();
        let answers = child.stdout.take().context("its output is piped")?;
        let mut answers = BufReader::new(answers);
        let mut workspace = String::new();
        answers.read_line(&mut workspace)?;
        if workspace.trim().is_empty() {
            bail!("the engine's bench on {} ended", disk.kind);
        }
        let workspace = PathBuf::from(workspace.trim());
        Ok(Self {
            disk,
            workspace,
            child,
            ask,
            answers,
        })
    }
}

impl Contestant for Engine {
    fn name(&self) -> &'static str {
        self.disk.engine
    }

    fn remark(&self) -> &'static str {
        self.disk.engine_remark
    }

    fn round(&mut self) -> Result<u64> {
        let ask = self.ask.as_mut().context("it was told to end")?;
        ask.write_all(b"\n")?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        line.trim()
            .parse()
            .with_context(|| format!("the engine's bench answered `{line}`"))
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        drop(self.ask.take());
        if let Err(error) = self.child.wait() {
            eprintln!("copy bench: {error}");
        }
    }
}

/// What a person would do by hand.
struct Copy {
    disk: &'static Disk,
    source: PathBuf,
    target: PathBuf,
}

impl Contestant for Copy {
    fn name(&self) -> &'static str {
        self.disk.copy
    }

    fn remark(&self) -> &'static str {
        "the workspace alone, not synced"
    }

    fn round(&mut self) -> Result<u64> {
        let began_ns = clock_ns();
        let copied = Command::new("cp")
            .args(self.disk.copy_words)
            .args([&self.source, &self.target])
            .status()
            .context("could not start `cp`")?;
        let took_ns = clock_ns() - began_ns;
        if !copied.success() {
            bail!("`cp` ended with {copied}");
        }
        fs::remove_dir_all(&self.target)?;
        Ok(took_ns)
    }
}
