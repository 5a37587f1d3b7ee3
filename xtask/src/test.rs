//! `cargo xtask test [part]`: sets up what the tests need, then runs them.
//!
//! One list names every part; `all` runs them in order. What a part needs it installs itself, and a
//! part that cannot be set up fails: nothing is skipped.

mod browser;
pub(crate) mod clients;
mod hosts;

use crate::run::{self, command, finish};
use anyhow::{Context as _, Result, bail};
use std::path::PathBuf;

/// One part of the test run.
struct Part {
    name: &'static str,
    needs: &'static [Package],
    seed: Seed,
    when: When,
    run: fn() -> Result<()>,
}

/// Whether a part is one of `all`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Always,
    /// Longer than CI has time for.
    ByName,
}

/// A program and the Debian package it comes from.
pub(crate) struct Package {
    pub(crate) program: &'static str,
    pub(crate) package: &'static str,
}

/// Whether the part starts real boxes, and so wants an image and an agent made beforehand.
#[derive(PartialEq)]
enum Seed {
    NotNeeded,
    ImageAndAgents,
}

const BOXES_NEED: &[Package] = &[
    Package {
        program: "ip",
        package: "iproute2",
    },
    Package {
        program: "mmdebstrap",
        package: "mmdebstrap",
    },
    Package {
        program: "git",
        package: "git",
    },
    Package {
        program: "busybox",
        package: "busybox-static",
    },
    // Tests of snapshots, each on disks of other kinds.
    Package {
        program: "mkfs.btrfs",
        package: "btrfs-progs",
    },
    Package {
        program: "mkfs.xfs",
        package: "xfsprogs",
    },
    // Tests as an ordinary user: an account, its subordinate ids, and who becomes it.
    Package {
        program: "useradd",
        package: "passwd",
    },
    Package {
        program: "newuidmap",
        package: "uidmap",
    },
    Package {
        program: "setpriv",
        package: "util-linux",
    },
    Package {
        program: "buildah",
        package: "buildah",
    },
    Package {
        program: "crun",
        package: "crun",
    },
    Package {
        program: "tmux",
        package: "tmux",
    },
    Package {
        program: "docker-registry",
        package: "docker-registry",
    },
];

const HOSTS_NEED: &[Package] = &[
    Package {
        program: "busybox",
        package: "busybox-static",
    },
    Package {
        program: "mkfs.ext4",
        package: "e2fsprogs",
    },
    Package {
        program: "qemu-system-x86_64",
        package: "qemu-system-x86",
    },
];

const PARTS: &[Part] = &[
    Part {
        name: "house",
        needs: &[],
        seed: Seed::NotNeeded,
        when: When::Always,
        run: house,
    },
    Part {
        name: "unit",
        needs: BOXES_NEED,
        seed: Seed::NotNeeded,
        when: When::Always,
        run: unit,
    },
    Part {
        name: "engines",
        needs: BOXES_NEED,
        seed: Seed::NotNeeded,
        when: When::Always,
        run: engines,
    },
    Part {
        name: "hosts",
        needs: HOSTS_NEED,
        seed: Seed::NotNeeded,
        when: When::ByName,
        run: hosts::run,
    },
    Part {
        name: "chaos",
        needs: BOXES_NEED,
        seed: Seed::ImageAndAgents,
        when: When::ByName,
        run: chaos,
    },
    Part {
        name: "agents",
        needs: BOXES_NEED,
        seed: Seed::ImageAndAgents,
        when: When::Always,
        run: agents,
    },
    Part {
        name: "agents --all",
        needs: BOXES_NEED,
        seed: Seed::ImageAndAgents,
        when: When::ByName,
        run: other_agents,
    },
    Part {
        name: "drill",
        needs: BOXES_NEED,
        seed: Seed::ImageAndAgents,
        when: When::Always,
        run: drill,
    },
    Part {
        name: "browser",
        needs: browser::NEEDS,
        seed: Seed::ImageAndAgents,
        when: When::Always,
        run: browser::run,
    },
    Part {
        name: "clients",
        needs: clients::NEEDS,
        seed: Seed::ImageAndAgents,
        when: When::ByName,
        run: clients::light,
    },
    Part {
        name: "clients-heavy",
        needs: clients::NEEDS,
        seed: Seed::ImageAndAgents,
        when: When::ByName,
        run: clients::heavy,
    },
];

/// Agents with a pack; `seed.rs` of the end-to-end tests makes the same.
const AGENTS: [&str; 4] = ["claude", "codex", "opencode", "gemini"];

/// Cuts of a usual run: every named point, and as many random moments twice over.
const CUTS: u32 = 200;

pub(crate) fn all() -> Result<()> {
    for part in PARTS.iter().filter(|part| part.when == When::Always) {
        run_part(part)?;
    }
    Ok(())
}

pub(crate) fn part(name: &str) -> Result<()> {
    let Some(part) = PARTS.iter().find(|part| part.name == name) else {
        let names: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
        bail!("no part `{name}`; there are {}", names.join(", "));
    };
    run_part(part)
}

fn run_part(part: &Part) -> Result<()> {
    println!("== {}", part.name);
    install(part.needs)?;
    if part.seed == Seed::ImageAndAgents {
        make_seed(Build::Debug)?;
    }
    (part.run)().with_context(|| format!("part `{}`", part.name))
}

pub(crate) fn install(needs: &[Package]) -> Result<()> {
    let missing: Vec<&str> = needs
        .iter()
        .filter(|need| !run::has(need.program))
        .map(|need| need.package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    if !rustix::process::geteuid().is_root() {
        bail!(
            "missing packages; run `sudo apt-get install {}`",
            missing.join(" ")
        );
    }
    println!("the tests need {}: installing", missing.join(", "));
    run::run("apt-get", &["update", "--quiet"])?;
    let mut arguments = vec!["install", "--quiet", "--yes", "--no-install-recommends"];
    arguments.extend(missing);
    let mut apt = command("apt-get", &arguments);
    apt.env("DEBIAN_FRONTEND", "noninteractive");
    finish(apt)
}

fn house() -> Result<()> {
    run::run("cargo", &["fmt", "--all", "--check"])?;
    run::run(
        "cargo",
        &[
            "clippy",
            "--quiet",
            "--workspace",
            "--all-targets",
            "--",
            "--deny",
            "warnings",
        ],
    )?;
    nextest("package(xtask)")
}

fn unit() -> Result<()> {
    nextest("not (package(xtask) or binary(engine) or binary(downloads) or binary(e2e))")
}

fn engines() -> Result<()> {
    nextest("binary(engine)")
}

/// About two minutes.
fn chaos() -> Result<()> {
    crate::chaos::run(crate::chaos::Plan {
        cuts: CUTS,
        seed: None,
    })
}

fn agents() -> Result<()> {
    nextest(
        "binary(downloads) or (binary(e2e) and not (test(drill_holds) or test(_clients_reach) or test(/^e2e::(page|push|other_agents)::/)))",
    )
}

/// The agents beside those of every run; each downloads its pack.
fn other_agents() -> Result<()> {
    nextest("binary(e2e) and test(/^e2e::other_agents::/)")
}

fn drill() -> Result<()> {
    nextest("binary(e2e) and test(drill_holds)")
}

/// Always over the whole workspace, so that every part runs the same build.
fn nextest(filter: &str) -> Result<()> {
    if !run::has("cargo-nextest") {
        println!("cargo-nextest is missing: installing");
        run::run("cargo", &["install", "--locked", "cargo-nextest"])?;
    }
    let words = [
        "nextest",
        "run",
        "--workspace",
        "--no-tests",
        "fail",
        "-E",
        filter,
    ];
    let mut tests = command("cargo", &words);
    tests.env("BOX_TEST_SEED", seed_dir());
    finish(tests)
}

/// Where the image and the agents wait that every end-to-end test copies.
pub(crate) fn seed_dir() -> PathBuf {
    run::top().join("target").join("test-seed")
}

/// Which build of the product works.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Build {
    Debug,
    Release,
}

impl Build {
    /// Builds the product and says where it is.
    pub(crate) fn product(self) -> Result<PathBuf> {
        let (words, folder): (&[&str], &str) = match self {
            Self::Debug => (&["build", "--package", "box-cli"], "debug"),
            Self::Release => (&["build", "--release", "--package", "box-cli"], "release"),
        };
        run::run("cargo", words)?;
        Ok(run::top().join("target").join(folder).join("box"))
    }
}

/// Made by the product itself, outside the tests' namespaces, since it downloads packages. In a
/// process namespace of its own, so that host and way out end with the step that started them.
pub(crate) fn make_seed(build: Build) -> Result<()> {
    let program = build.product()?;
    let seed = seed_dir();
    std::fs::create_dir_all(&seed)?;
    std::fs::write(seed.join("config.toml"), "")?;
    let program = program.to_string_lossy();
    let packs = AGENTS.map(|agent| ["agent", "install", agent]);
    let steps = packs.iter().map(|words| &words[..]);
    for words in steps.chain([&["image", "prepare"][..]]) {
        let alone = ["--pid", "--fork", "--mount-proc", "--", &*program];
        let mut step = command("unshare", &[&alone, words].concat());
        step.env("BOX_DATA_DIR", &seed)
            .env("BOX_RUN_DIR", seed.join("run"))
            .env("BOX_CONFIG", seed.join("config.toml"));
        finish(step)?;
    }
    Ok(())
}
