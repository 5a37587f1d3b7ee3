//! `cargo xtask chaos --cuts N [--seed S]`: kills the host (`kill -9`) in the middle of what it does, at
//! every named fault point and at random moments, and looks at what is left each time.
//!
//! After each cut another host starts and reconciles. Then nothing may be there that nobody was told
//! of (process, mount, cgroup, folder, row), and everything must be there that somebody was told of.

mod cut;
mod deed;
mod known;
mod leftovers;
mod points;
mod random;
mod registry;
mod world;

use crate::run;
use crate::test::{self, Build, Package};
use anyhow::{Context as _, Result, bail};
use cut::{Cut, Cutter};
use random::Random;
use std::collections::BTreeMap;
use std::process::Command;
use world::World;

/// Set in the process that works in namespaces of its own: the program under test.
const INSIDE: &str = "BOX_CHAOS_PROGRAM";

const NEEDS: &[Package] = &[
    Package {
        program: "ip",
        package: "iproute2",
    },
    Package {
        program: "busybox",
        package: "busybox-static",
    },
    Package {
        program: "docker-registry",
        package: "docker-registry",
    },
    Package {
        program: "buildah",
        package: "buildah",
    },
];

/// How a run is told how long it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) cuts: u32,
    /// Absent: from the clock. Printed, so that a run can be repeated.
    pub(crate) seed: Option<u64>,
}

impl Plan {
    /// # Errors
    /// Words that are none of `--cuts N` and `--seed S`.
    pub(crate) fn parse(words: &[&str]) -> Result<Self> {
        let mut plan = Self {
            cuts: 200,
            seed: None,
        };
        for pair in words.chunks(2) {
            match pair {
                ["--cuts", number] => plan.cuts = number.parse().context("`--cuts`")?,
                ["--seed", number] => plan.seed = Some(number.parse().context("`--seed`")?),
                other => bail!("`{}` is not understood", other.join(" ")),
            }
        }
        Ok(plan)
    }
}

/// Makes the cuts in network and process namespaces of their own, by starting this program again: what
/// a killed host leaves running ends with them, whatever is wrong.
///
/// # Errors
/// When anything was lost or left.
pub(crate) fn run(plan: Plan) -> Result<()> {
    if let Some(program) = std::env::var_os(INSIDE) {
        run::run("ip", &["link", "set", "lo", "up"])?;
        return inside(World::set_up(program.into())?, plan);
    }
    test::install(NEEDS)?;
    test::make_seed(Build::Debug)?;
    let program = Build::Debug.product()?;
    let again = std::env::current_exe().context("could not find this program")?;
    let seed = plan.seed.unwrap_or_else(random::from_clock).to_string();
    let status = Command::new("unshare")
        .args(["--net", "--mount", "--pid", "--fork", "--mount-proc", "--"])
        .arg(again)
        .args(["chaos", "--cuts", &plan.cuts.to_string(), "--seed", &seed])
        .env(INSIDE, program)
        .status()
        .context("could not start `unshare`")?;
    if !status.success() {
        bail!("the cuts ended with {status}");
    }
    Ok(())
}

fn inside(mut world: World, plan: Plan) -> Result<()> {
    let seed = plan.seed.unwrap_or_else(random::from_clock);
    println!("{} cuts, seed {seed}", plan.cuts);
    let points = points::all(&run::top())?;
    let mut cutter = Cutter::new(Random::new(seed));
    let mut tally = Tally::default();
    // Every named point first, then moments.
    for number in 0..plan.cuts {
        let at = usize::try_from(number)?;
        let wish = points.get(at).map(String::as_str);
        let done = cutter
            .cut(&mut world, wish)
            .with_context(|| format!("cut {number}, seed {seed}"))?;
        tally.take(&done);
        if !done.wrong.is_empty() {
            println!("{}", world.whereabouts());
            bail!(
                "cut {number} ({done}), seed {seed}:\n  {}",
                done.wrong.join("\n  ")
            );
        }
    }
    world.take_down()?;
    println!("{tally}");
    let missed = &tally.missed;
    if !missed.is_empty() {
        bail!("no host came by: {}", missed.join(", "));
    }
    Ok(())
}

/// What the cuts came to.
#[derive(Debug, Default)]
struct Tally {
    cuts: u32,
    by_deed: BTreeMap<&'static str, u32>,
    points: u32,
    /// Points no host came by.
    missed: Vec<String>,
}

impl Tally {
    fn take(&mut self, cut: &Cut) {
        self.cuts += 1;
        *self.by_deed.entry(cut.deed.word()).or_default() += 1;
        match (&cut.point, cut.reached) {
            (Some(_), true) => self.points += 1,
            (Some(point), false) => self.missed.push(point.clone()),
            (None, _) => {}
        }
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let deeds = self.by_deed.iter();
        let deeds: Vec<String> = deeds
            .map(|(word, count)| format!("{count} {word}"))
            .collect();
        write!(
            f,
            "{} cuts ({}), {} of them at named points; lost: nothing, orphans: none",
            self.cuts,
            deeds.join(", "),
            self.points
        )
    }
}
