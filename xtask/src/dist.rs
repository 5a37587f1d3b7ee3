//! `cargo xtask dist`: the release archive and its checksum, the same bytes wherever it is made.
//!
//! Built with the paths of this machine mapped away and packed in one order with one time, so that
//! two builds of one commit with one tool chain can be compared by their checksums.

mod archive;

use crate::run;
use anyhow::{Context as _, Result, bail};
use archive::Entry;
use sha2::{Digest as _, Sha256};
use std::path::{Path, PathBuf};

/// Files of the checkout that go along.
const PAPERS: [&str; 5] = [
    "README.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
];
const SHELLS: [(&str, &str); 3] = [
    ("bash", "completions/box.bash"),
    ("zsh", "completions/_box"),
    ("fish", "completions/box.fish"),
];
/// What the paths of this machine are called in the program.
const TOP: &str = "/box";
const CARGO_HOME: &str = "/cargo";

/// Which program is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Release,
    /// A trial of the packing, with the program as tests have it.
    Debug,
}

pub(crate) fn make(kind: Kind) -> Result<()> {
    let program = build(kind)?;
    let version = first_word(&program, &["--version"])?;
    let name = format!("box-{version}-x86_64-linux");
    let entries = entries(&program, &name)?;
    let packed = archive::pack(entries, commit_time()?)?;
    let folder = run::top().join("target/dist");
    std::fs::create_dir_all(&folder)?;
    let file = format!("{name}.tar.gz");
    let sum = hex(&Sha256::digest(&packed));
    std::fs::write(folder.join(&file), &packed)?;
    // As `sha256sum --check` reads it.
    std::fs::write(
        folder.join(format!("{file}.sha256")),
        format!("{sum}  {file}\n"),
    )?;
    println!("{}\n{sum}", folder.join(file).display());
    Ok(())
}

fn build(kind: Kind) -> Result<PathBuf> {
    let target = run::top().join("target");
    match kind {
        Kind::Debug => {
            run::run("cargo", &["build", "--package", "box-cli"])?;
            Ok(target.join("debug/box"))
        }
        Kind::Release => {
            // A folder of its own: other flags would throw away what everybody else has built.
            let folder = target.join("dist-build");
            let words = [
                "build",
                "--release",
                "--locked",
                "--package",
                "box-cli",
                "--target-dir",
            ];
            let place = folder.to_string_lossy();
            let mut cargo = run::command("cargo", &[&words[..], &[&place]].concat());
            let maps = maps(&folder);
            let rust = maps.iter().map(|map| format!("--remap-path-prefix={map}"));
            let c = maps.iter().map(|map| format!("-ffile-prefix-map={map}"));
            cargo
                .env_remove("RUSTFLAGS")
                .env(
                    "CARGO_ENCODED_RUSTFLAGS",
                    rust.collect::<Vec<_>>().join("\u{1f}"),
                )
                .env("CFLAGS", c.collect::<Vec<_>>().join(" "));
            run::finish(cargo)?;
            Ok(folder.join("release/box"))
        }
    }
}

/// `from=to` for every folder of this machine whose path could get into the program.
fn maps(target: &Path) -> [String; 3] {
    let home = std::env::var("HOME").unwrap_or_default();
    let cargo = std::env::var("CARGO_HOME").unwrap_or_else(|_| format!("{home}/.cargo"));
    // The last that fits counts: the longer after the shorter.
    [
        format!("{cargo}={CARGO_HOME}"),
        format!("{}={TOP}", run::top().display()),
        format!("{}={TOP}/target", target.display()),
    ]
}

/// `box <version>`: the last word.
fn first_word(program: &Path, words: &[&str]) -> Result<String> {
    let printed = said(program, words)?;
    let text = String::from_utf8(printed)?;
    let version = text.split_whitespace().last();
    Ok(version.context("the program told no version")?.to_owned())
}

fn said(program: &Path, words: &[&str]) -> Result<Vec<u8>> {
    let mut command = run::command(&program.to_string_lossy(), words);
    let output = command.output().context("could not run what was built")?;
    if !output.status.success() {
        bail!("`box {}` ended with {}", words.join(" "), output.status);
    }
    Ok(output.stdout)
}

fn entries(program: &Path, name: &str) -> Result<Vec<Entry>> {
    let bytes = std::fs::read(program).context("could not read what was built")?;
    let mut entries = vec![Entry::program(format!("{name}/box"), bytes)];
    for paper in PAPERS {
        let bytes = std::fs::read(run::top().join(paper))
            .with_context(|| format!("could not read {paper}"))?;
        entries.push(Entry::paper(format!("{name}/{paper}"), bytes));
    }
    for (shell, path) in SHELLS {
        let script = said(program, &["completion", shell])?;
        entries.push(Entry::paper(format!("{name}/{path}"), script));
    }
    let manual = run::top().join("target/dist/man");
    said(program, &["man", "--all", &manual.to_string_lossy()])?;
    for page in std::fs::read_dir(&manual)? {
        let page = page?;
        let file = page.file_name();
        let path = format!("{name}/man/{}", file.to_string_lossy());
        entries.push(Entry::paper(path, std::fs::read(page.path())?));
    }
    std::fs::remove_dir_all(&manual)?;
    Ok(entries)
}

/// Seconds since 1970: when the commit was made, which is the same everywhere.
fn commit_time() -> Result<u64> {
    if let Ok(given) = std::env::var("SOURCE_DATE_EPOCH") {
        return given.parse().context("SOURCE_DATE_EPOCH is no number");
    }
    let told = run::output(run::command("git", &["log", "-1", "--format=%ct"]))?;
    told.trim().parse().context("git told no time")
}

fn hex(bytes: &[u8]) -> String {
    let pairs: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    pairs.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longer_path_is_mapped_after_the_shorter() {
        let maps = maps(&run::top().join("target/dist-build"));
        let top = maps.iter().position(|map| map.ends_with("=/box")).unwrap();
        let target = maps
            .iter()
            .position(|map| map.ends_with("=/box/target"))
            .unwrap();
        assert!(top < target, "{maps:?}");
    }
}
