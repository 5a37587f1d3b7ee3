//! Where a bench runs: a network namespace of its own, a folder, a root file system with the one
//! static program every contestant runs, an engine of Docker's own.

use crate::run;
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const INSIDE: &str = "BOX_BENCH_INSIDE";
/// Set to anything: unoptimised programs and few rounds, to see that a bench works. Its figures say
/// nothing.
const SMALL: &str = "BOX_BENCH_SMALL";
const DOCKER_READY_MAX: Duration = Duration::from_mins(1);
const DOCKER_ASK_EVERY: Duration = Duration::from_millis(100);

/// Runs the bench in network, mount and process namespaces of its own, by starting this program again;
/// the outer one gets nothing, the inner one has printed.
///
/// The mount namespace hides the cgroup2 mount of a hybrid machine, which `crun` refuses.
pub(crate) fn in_own_network<T>(bench: fn() -> Result<T>) -> Result<Option<T>> {
    if std::env::var_os(INSIDE).is_some() {
        run::run("ip", &["link", "set", "lo", "up"])?;
        let unified = "/sys/fs/cgroup/unified";
        if Path::new(unified).exists() {
            run::run("umount", &[unified])?;
        }
        return bench().map(Some);
    }
    crate::test::install(PEERS)?;
    crate::test::make_seed(match size() {
        Size::Full => crate::test::Build::Release,
        Size::Small => crate::test::Build::Debug,
    })?;
    build()?;
    let again = std::env::current_exe().context("could not find this program")?;
    let status = Command::new("unshare")
        .args(["--net", "--mount", "--pid", "--fork", "--mount-proc", "--"])
        .arg(again)
        .args(std::env::args_os().skip(1))
        .env(INSIDE, "1")
        .status()
        .context("could not start `unshare`")?;
    if !status.success() {
        bail!("the bench ended with {status}");
    }
    Ok(None)
}

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    Full,
    Small,
}

impl Size {
    /// A number of rounds, of boxes.
    pub(crate) fn of(self, full: usize, small: usize) -> usize {
        match self {
            Self::Full => full,
            Self::Small => small,
        }
    }
}

pub(crate) fn size() -> Size {
    match std::env::var_os(SMALL) {
        None => Size::Full,
        Some(_) => Size::Small,
    }
}

/// A program of this build, by its path below the target folder's part for it.
pub(crate) fn built(path: &str) -> PathBuf {
    let part = match size() {
        Size::Full => "target/release",
        Size::Small => "target/debug",
    };
    run::top().join(part).join(path)
}

/// The peers and what sets them up.
const PEERS: &[crate::test::Package] = &[
    crate::test::Package {
        program: "ip",
        package: "iproute2",
    },
    crate::test::Package {
        program: "bwrap",
        package: "bubblewrap",
    },
    crate::test::Package {
        program: "crun",
        package: "crun",
    },
    crate::test::Package {
        program: "runc",
        package: "runc",
    },
    crate::test::Package {
        program: "dockerd",
        package: "docker.io",
    },
    crate::test::Package {
        program: "mmdebstrap",
        package: "mmdebstrap",
    },
    crate::test::Package {
        program: "docker-registry",
        package: "docker-registry",
    },
    crate::test::Package {
        program: "skopeo",
        package: "skopeo",
    },
    crate::test::Package {
        program: "umoci",
        package: "umoci",
    },
    crate::test::Package {
        program: "mkfs.btrfs",
        package: "btrfs-progs",
    },
    crate::test::Package {
        program: "mkfs.xfs",
        package: "xfsprogs",
    },
];

/// The launcher's own bench, optimised. The clock program is one of the static
/// programs the launcher's build makes.
fn build() -> Result<()> {
    let optimised = match size() {
        Size::Full => &["--release"][..],
        Size::Small => &[],
    };
    let examples = [
        "--package",
        "box-runtime-native",
        "--example",
        "launch_bench",
        "--example",
        "copy_bench",
        "--example",
        "pull_bench",
    ];
    run::run(
        "cargo",
        &[&["build"][..], optimised, &examples[..]].concat(),
    )
}

/// The monotonic clock, in nanoseconds; the same for every process of the machine.
pub(crate) fn clock_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or_default()
}

/// A folder with all a bench needs; removed in the end.
pub(crate) struct Stage {
    top: PathBuf,
    dockerd: Option<Child>,
}

impl Stage {
    pub(crate) fn set_up() -> Result<Self> {
        let top = std::env::temp_dir().join(format!("box-bench-{}", std::process::id()));
        fs::create_dir_all(&top)?;
        let mut stage = Self { top, dockerd: None };
        stage.make_root()?;
        stage.start_docker()?;
        Ok(stage)
    }

    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        self.top.join(name)
    }

    pub(crate) fn root_dir(&self) -> PathBuf {
        self.folder("root")
    }

    /// The static program that prints the clock (`clock now`).
    pub(crate) fn clock_program(&self) -> PathBuf {
        self.root_dir().join("clock")
    }

    /// What the launcher's own bench program is called with.
    pub(crate) fn launch_bench() -> PathBuf {
        built("examples/launch_bench")
    }

    fn make_root(&self) -> Result<()> {
        let root = self.root_dir();
        for folder in ["proc", "dev", "tmp", "sys"] {
            fs::create_dir_all(root.join(folder))?;
        }
        let clock = self.clock_program();
        let written = Command::new(Self::launch_bench())
            .args(["write-program", "box-probe"])
            .arg(&clock)
            .status()
            .context("could not start the launcher's bench")?;
        if !written.success() {
            bail!("the launcher's bench did not write its clock program: {written}");
        }
        fs::set_permissions(&clock, fs::Permissions::from_mode(0o755))?;
        Ok(())
    }

    /// The launcher's own system call filter as an OCI profile, so that peers filter alike.
    pub(crate) fn seccomp() -> serde_json::Value {
        let profile = Command::new(Self::launch_bench())
            .arg("seccomp-profile")
            .output();
        profile
            .ok()
            .and_then(|output| serde_json::from_slice(&output.stdout).ok())
            .unwrap_or(serde_json::Value::Null)
    }

    /// A folder with an OCI `config.json`.
    pub(crate) fn bundle(&self, name: &str, config: &serde_json::Value) -> Result<PathBuf> {
        if config["linux"]["seccomp"].is_null() {
            bail!("the launcher's bench gave no system call filter for the peers");
        }
        let bundle = self.folder(name);
        fs::create_dir_all(&bundle)?;
        fs::write(bundle.join("config.json"), serde_json::to_vec(config)?)?;
        Ok(bundle)
    }

    pub(crate) fn docker_client() -> PathBuf {
        // Debian's client belongs to Debian's engine; another on the path may be too new for it.
        let debian = PathBuf::from("/usr/bin/docker");
        if debian.exists() {
            debian
        } else {
            PathBuf::from("docker")
        }
    }

    pub(crate) fn docker_address(&self) -> String {
        format!("unix://{}", self.folder("docker.sock").display())
    }

    fn start_docker(&mut self) -> Result<()> {
        let log = fs::File::create(self.folder("dockerd.log"))?;
        let address = self.docker_address();
        let child = Command::new("dockerd")
            .args([
                "--host",
                &address,
                "--bridge",
                "none",
                "--iptables=false",
                "--ip6tables=false",
            ])
            .arg("--data-root")
            .arg(self.folder("docker-data"))
            .arg("--exec-root")
            .arg(self.folder("docker-exec"))
            .arg("--pidfile")
            .arg(self.folder("docker.pid"))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("could not start `dockerd`")?;
        self.dockerd = Some(child);
        let deadline = Instant::now() + DOCKER_READY_MAX;
        while !self.docker(&["version"])?.status.success() {
            if Instant::now() > deadline {
                bail!(
                    "dockerd did not answer; see {}",
                    self.folder("dockerd.log").display()
                );
            }
            std::thread::sleep(DOCKER_ASK_EVERY);
        }
        let tar = self.folder("root.tar");
        let tar = tar.to_string_lossy();
        let root = self.root_dir();
        run::run(
            "tar",
            &[
                "--create",
                "--file",
                &tar,
                "--directory",
                &root.to_string_lossy(),
                ".",
            ],
        )?;
        let made = self.docker(&["import", &tar, "box-bench"])?;
        if !made.status.success() {
            bail!("docker import: {}", String::from_utf8_lossy(&made.stderr));
        }
        Ok(())
    }

    pub(crate) fn docker(&self, words: &[&str]) -> Result<std::process::Output> {
        Command::new(Self::docker_client())
            .args(["--host", &self.docker_address()])
            .args(words)
            .stdin(Stdio::null())
            .output()
            .context("could not start `docker`")
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(dockerd) = &mut self.dockerd {
            let ended = rustix::process::Pid::from_raw(dockerd.id().cast_signed())
                .map(|pid| rustix::process::kill_process(pid, rustix::process::Signal::TERM));
            if matches!(ended, Some(Ok(()))) {
                let waited = dockerd.wait();
                debug_assert!(waited.is_ok(), "dockerd was started by us");
            }
        }
        if let Err(error) = fs::remove_dir_all(&self.top) {
            eprintln!("left behind: {} ({error})", self.top.display());
        }
    }
}
