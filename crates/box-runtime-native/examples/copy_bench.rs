//! Measures snapshots and clones of one box that holds 1 GB in 20,000 files.
//!
//! ```text
//! copy_bench <folder> snapshot|clone <n>    fills n folders, 100 of which are 1 GB, and says where the
//!                                           box's files are; then one copy for each line read,
//!                                           answered with its nanoseconds
//! ```
//! The copy is removed again after the clock has stopped.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench prints, and stops at what fails"
)]

use box_api::BoxId;
use box_api::control::{Limits, Profile};
use box_api::snapshot::{Label, SnapshotKind};
use box_runtime::{
    BoxSpec, CloneSource, Nesting, Progress, Runtime as _, SnapshotSpec, Snapshots as _,
};
use box_runtime_native::{NativeRuntime, Spawner};
use std::io::BufRead as _;
use std::path::Path;
use std::time::Instant;

const FILES_EACH: u32 = 200;
const FILE_BYTES: usize = 50 << 10;

struct Quiet;

impl Progress for Quiet {
    fn say(&self, _text: &str) {}
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        [folder, "snapshot", folders] => {
            serve(Path::new(folder), folders, |engine, of, _, number| {
                Box::pin(snapshot(engine, of, number))
            });
        }
        [folder, "clone", folders] => {
            serve(Path::new(folder), folders, |engine, of, to, _| {
                Box::pin(clone(engine, of, to))
            });
        }
        _ => panic!("see the top of the file"),
    }
}

type Verb = for<'a> fn(
    &'a NativeRuntime,
    &'a BoxSpec,
    &'a BoxSpec,
    u32,
) -> std::pin::Pin<Box<dyn Future<Output = u128> + 'a>>;

fn serve(folder: &Path, folders: &str, verb: Verb) {
    let spawner = Spawner::fork().unwrap();
    let tokio = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let _inside = tokio.enter();
    for name in ["data", "run"] {
        std::fs::create_dir_all(folder.join(name)).unwrap();
    }
    let engine = NativeRuntime::open(&folder.join("data"), &folder.join("run"), spawner).unwrap();
    let of = spec(0);
    tokio.block_on(engine.create(&of)).unwrap();
    let workspace = engine.workspace(&of.id).unwrap();
    fill(&workspace, folders.parse().unwrap());
    println!("{}", workspace.display());
    for (number, line) in (1..).zip(std::io::stdin().lock().lines()) {
        line.unwrap();
        println!(
            "{}",
            tokio.block_on(verb(&engine, &of, &spec(number), number))
        );
    }
    tokio.block_on(engine.remove(&of.id)).unwrap();
}

fn spec(number: u32) -> BoxSpec {
    let mut random = [0; 10];
    random[..4].copy_from_slice(&std::process::id().to_be_bytes());
    random[6..].copy_from_slice(&number.to_be_bytes());
    BoxSpec {
        id: BoxId::from_random(random),
        host_name: "bench".to_owned(),
        image_digest: String::new(),
        profile: Profile::Root,
        limits: Limits::default(),
        id_offset: 2_000_000_000 + (number % 30_000) * 65_536,
        mounts: Vec::new(),
        files: Vec::new(),
        env: Vec::new(),
        nesting: Nesting::Refused,
    }
}

fn fill(workspace: &Path, folders: u32) {
    for folder in 0..folders {
        let folder = workspace.join(format!("folder-{folder}"));
        std::fs::create_dir(&folder).unwrap();
        for file in 0..FILES_EACH {
            let content = vec![u8::try_from(file % 251).unwrap(); FILE_BYTES];
            std::fs::write(folder.join(format!("file-{file}")), content).unwrap();
        }
    }
    let opened = std::fs::File::open(workspace).unwrap();
    rustix::fs::syncfs(&opened).unwrap();
}

async fn snapshot(engine: &NativeRuntime, of: &BoxSpec, number: u32) -> u128 {
    let taken = SnapshotSpec {
        label: Label::at("bench", i64::from(number) * 1000),
        kind: SnapshotKind::Manual,
        at_ms: i64::from(number) * 1000,
    };
    let began = Instant::now();
    engine.take(&of.id, &taken, &Quiet).await.unwrap();
    let took = began.elapsed().as_nanos();
    engine.discard(&of.id, &taken.label).await.unwrap();
    took
}

async fn clone(engine: &NativeRuntime, of: &BoxSpec, to: &BoxSpec) -> u128 {
    let source = CloneSource {
        id: of.id,
        id_offset: of.id_offset,
        label: None,
    };
    let began = Instant::now();
    engine.clone_from(&source, to, &Quiet).await.unwrap();
    let took = began.elapsed().as_nanos();
    engine.remove(&to.id).await.unwrap();
    took
}
