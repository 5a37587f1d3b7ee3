//! Measures the launcher alone: from asking for a box to the first act of a program in it.
//!
//! ```text
//! launch_bench [rounds]                    makes a root of its own; prints medians as JSON
//! launch_bench serve <root> <folder>       one box for each line read; answers its nanoseconds
//! launch_bench ahead <root> <folder>       the same with each box begun ahead
//! launch_bench write-program <name> <to>   one of the static programs
//! launch_bench seccomp-profile             the filter as a section of an OCI configuration
//! ```
//! The box exists before the clock starts; it has its sockets, limits, filter and masks. The program
//! is run by box-guest and prints the monotonic clock.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench prints, and stops at what fails"
)]

use box_api::BoxId;
use box_api::control::{Limits, Profile};
use box_runtime::{BoxSpec, ExecSpec, Pool as _, Progress, Runtime as _};
use box_runtime_native::{NativeRuntime, Spawner, oci_seccomp_profile, program};
use std::io::{BufRead as _, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

const CLOCK: [&str; 2] = ["/opt/box/bin/box-probe", "now"];
const ROUNDS: usize = 100;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["serve", root, folder] => serve(Bench::new(Path::new(root), Path::new(folder))),
        ["ahead", root, folder] => serve(Bench {
            begun: Begun::Ahead,
            ..Bench::new(Path::new(root), Path::new(folder))
        }),
        ["write-program", name, to] => std::fs::write(to, program(name).unwrap()).unwrap(),
        ["seccomp-profile"] => println!("{}", oci_seccomp_profile()),
        [] => print_medians(ROUNDS),
        [rounds] => print_medians(rounds.parse().unwrap()),
        _ => panic!("see the top of the file"),
    }
}

/// The clock program reads `CLOCK_MONOTONIC`, and the box's time namespace does not shift it.
fn clock_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap() * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap()
}

/// Whether anything of a box is there when the clock starts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Begun {
    Then,
    Ahead,
}

struct Bench {
    begun: Begun,
    engine: NativeRuntime,
    tokio: tokio::runtime::Runtime,
    image: String,
    made: u32,
}

/// Nanoseconds of one round.
#[derive(Clone, Copy)]
struct Round {
    start_returned: u64,
    first_act: u64,
}

struct Quiet;

impl Progress for Quiet {
    fn say(&self, _text: &str) {}
}

impl Bench {
    /// Any folder will do as a root: the programs that run are static and mounted into it.
    fn new(root: &Path, folder: &Path) -> Self {
        let spawner = Spawner::fork().unwrap();
        let tokio = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let inside = tokio.enter();
        for name in ["data", "run"] {
            std::fs::create_dir_all(folder.join(name)).unwrap();
        }
        let tar = folder.join("root.tar");
        let mut packed = tar::Builder::new(std::fs::File::create(&tar).unwrap());
        packed.append_dir_all(".", root).unwrap();
        // What makes it a root to the image store.
        packed.append_dir("usr", root).unwrap();
        packed.finish().unwrap();
        let engine =
            NativeRuntime::open(&folder.join("data"), &folder.join("run"), spawner).unwrap();
        let reference = format!("file:{}", tar.display());
        let image = tokio
            .block_on(engine.images().prepare(&reference, &Quiet))
            .unwrap()
            .digest;
        drop(inside);
        Self {
            begun: Begun::Then,
            engine,
            tokio,
            image,
            made: 0,
        }
    }

    fn round(&mut self) -> Round {
        self.made += 1;
        let mut random = [0; 10];
        random[..4].copy_from_slice(&std::process::id().to_be_bytes());
        random[6..].copy_from_slice(&self.made.to_be_bytes());
        let spec = BoxSpec {
            id: BoxId::from_random(random),
            host_name: "bench".to_owned(),
            image_digest: self.image.clone(),
            profile: Profile::Locked,
            limits: Limits::default(),
            id_offset: 2_000_000_000 + (self.made % 30_000) * 65_536,
            mounts: Vec::new(),
            files: Vec::new(),
            env: Vec::new(),
            nesting: box_runtime::Nesting::Refused,
        };
        let exec = ExecSpec {
            command: CLOCK.map(str::to_owned).to_vec(),
            cwd: Some("/".to_owned()),
            env: Vec::new(),
            terminal: None,
        };
        let (engine, begun) = (self.engine.clone(), self.begun);
        self.tokio.block_on(async {
            if begun == Begun::Ahead {
                engine.begin(&spec.id).await.unwrap();
            }
            engine.create(&spec).await.unwrap();
            let before = clock_ns();
            let started = engine.start(&spec).await.unwrap();
            let start_returned = clock_ns() - before;
            let acted = match engine.exec(&spec.id, exec).await {
                Ok(execution) => {
                    let code = execution.process.wait().await;
                    let printed = read_all(&execution.streams[1]);
                    code.map(|code| (code, printed))
                }
                Err(error) => Err(error),
            };
            drop(started);
            // Before anything can fail, so that no box is left.
            engine.stop(&spec.id, Duration::ZERO).await.unwrap();
            engine.remove(&spec.id).await.unwrap();
            let (code, printed) = acted.unwrap();
            assert_eq!(code, 0, "{CLOCK:?} ended with {code}");
            let at: u64 = printed.trim().parse().unwrap();
            let first_act = at - before;
            Round {
                start_returned,
                first_act,
            }
        })
    }
}

fn read_all(stream: &OwnedFd) -> String {
    let mut text = String::new();
    std::fs::File::from(stream.try_clone().unwrap())
        .read_to_string(&mut text)
        .unwrap();
    text
}

fn serve(mut bench: Bench) {
    for line in std::io::stdin().lock().lines() {
        line.unwrap();
        println!("{}", bench.round().first_act);
        std::io::stdout().flush().unwrap();
    }
}

fn print_medians(rounds: usize) {
    let folder: PathBuf =
        std::env::temp_dir().join(format!("box-launch-bench-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("root")).unwrap();
    let mut bench = Bench::new(&folder.join("root"), &folder);
    bench.round();
    let measured: Vec<Round> = (0..rounds).map(|_| bench.round()).collect();
    drop(bench);
    std::fs::remove_dir_all(&folder).unwrap();
    let row = |name: &str, of: fn(&Round) -> u64| {
        let mut values: Vec<u64> = measured.iter().map(of).collect();
        values.sort_unstable();
        let at = |tenths: usize| values[(values.len() - 1) * tenths / 10];
        serde_json::json!({
            "name": name, "n": values.len(),
            "p10_ns": at(1), "median_ns": at(5), "p90_ns": at(9),
        })
    };
    let rows = [
        row("start returned", |round| round.start_returned),
        row("first act", |round| round.first_act),
    ];
    println!("{}", serde_json::json!({ "rows": rows }));
}
