//! Builds the static programs of `crates/box-guest` with a cargo of its own and embeds them.
//!
//! Its own target folder, because the outer cargo holds the lock of the usual one; `--target`,
//! because crt-static without it would break procedural macros; and nothing of the outer build's
//! flags and wrappers, which are for this machine's ordinary programs.

#![expect(clippy::disallowed_methods, reason = "a build script starts cargo")]

use std::env;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAMS: [&str; 4] = ["box-guest", "box-demo-agent", "box-probe", "box-tool"];
/// What their code is made from; cargo looks again when one of these changed.
const SOURCES: [&str; 8] = [
    "crates/box-copy/src",
    "crates/box-copy/Cargo.toml",
    "crates/box-guest/src",
    "crates/box-guest/Cargo.toml",
    "crates/box-api/src",
    "crates/box-api/Cargo.toml",
    "Cargo.toml",
    "Cargo.lock",
];
const NOT_HANDED_DOWN: [&str; 12] = [
    "CARGO_BUILD_RUSTFLAGS",
    "CARGO_BUILD_TARGET",
    "CARGO_BUILD_TARGET_DIR",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_TARGET_DIR",
    "CLIPPY_ARGS",
    "CLIPPY_CONF_DIR",
    "RUSTC",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "RUSTDOC",
    "RUSTDOCFLAGS",
];

fn main() {
    let top = Path::new(&variable("CARGO_MANIFEST_DIR")).join("../..");
    for source in SOURCES {
        println!("cargo::rerun-if-changed={}", top.join(source).display());
    }
    let out = PathBuf::from(variable("OUT_DIR"));
    let target = variable("TARGET");
    let folder = out.join("guest");
    build(&top, &target, &folder);
    embed(
        &folder.join(target).join("release"),
        &out.join("programs.rs"),
    );
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Always optimised: they start in every box, and tests run what people run.
fn build(top: &Path, target: &str, folder: &Path) {
    let mut cargo = Command::new(variable("CARGO"));
    cargo
        .current_dir(top)
        .args([
            "build",
            "--release",
            "--package",
            "box-guest",
            "--target",
            target,
        ])
        .arg("--target-dir")
        .arg(folder)
        .env_remove("RUSTFLAGS");
    for program in PROGRAMS {
        cargo.args(["--bin", program]);
    }
    if top.join("Cargo.lock").exists() {
        cargo.arg("--locked");
    }
    for name in NOT_HANDED_DOWN {
        cargo.env_remove(name);
    }
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags(top, folder));
    let status = cargo
        .status()
        .unwrap_or_else(|error| panic!("run cargo: {error}"));
    assert!(
        status.success(),
        "the static programs of crates/box-guest do not build: {status}"
    );
}

/// Without the paths of this machine, so that the same programs come out everywhere. The longer path
/// after the shorter: the last that fits counts.
fn flags(top: &Path, folder: &Path) -> String {
    let home = env::var("HOME").unwrap_or_default();
    let cargo = env::var("CARGO_HOME").unwrap_or_else(|_| format!("{home}/.cargo"));
    let top = top.canonicalize().unwrap_or_else(|_| top.to_owned());
    [
        "-Ctarget-feature=+crt-static".to_owned(),
        format!("--remap-path-prefix={cargo}=/cargo"),
        format!("--remap-path-prefix={}=/box", top.display()),
        format!("--remap-path-prefix={}=/box/target", folder.display()),
    ]
    .join("\u{1f}")
}

fn embed(built: &Path, to: &Path) {
    let mut text = format!("static PROGRAMS: [(&str, &[u8]); {}] = [\n", PROGRAMS.len());
    for program in PROGRAMS {
        let path = built.join(program);
        assert!(
            path.is_file(),
            "crates/box-guest has no program `{program}`"
        );
        writeln!(
            text,
            "    ({program:?}, include_bytes!({:?})),",
            path.display().to_string()
        )
        .unwrap_or_else(|error| panic!("{error}"));
    }
    text.push_str("];\n");
    std::fs::write(to, text).unwrap_or_else(|error| panic!("{}: {error}", to.display()));
}
