//! Builds the page (`ui/`) with Node and embeds what comes out: `BOX_UI_DIST` names a page that is
//! built already, `BOX_UI=none` leaves it out.
//!
//! The page is built in a copy below the build's own folder, so that nothing is written beside the
//! sources. `vite build` compresses each file and lists it in `assets.tsv`; here the list becomes a
//! table of Rust.

#![expect(clippy::disallowed_methods, reason = "a build script starts Node")]

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the page is made from, below `ui/`.
const SOURCES: [&str; 7] = [
    "index.html",
    "package.json",
    "package-lock.json",
    "vite.config.ts",
    ".npmrc",
    "public",
    "src",
];
/// The oldest Node that Vite runs on.
const NODE_MIN: (u32, u32) = (20, 19);
const INSTALL: &str = "install Node 20.19 or newer with npm: `sudo apt-get install nodejs npm` (Debian 13, \
     Ubuntu 25.04 and newer); or set BOX_UI_DIST to a page that is built already, or BOX_UI=none to build without it";

fn main() {
    for name in ["BOX_UI", "BOX_UI_DIST", "DOCS_RS", "PATH"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    let out = PathBuf::from(variable("OUT_DIR"));
    let dist = dist(&out);
    let table = match dist {
        Some(dist) => table(&dist),
        None => "static ASSETS: &[Embedded] = &[];\n".to_owned(),
    };
    write(&out.join("assets.rs"), &table);
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Where the built page lies; nowhere if it is left out.
fn dist(out: &Path) -> Option<PathBuf> {
    if let Some(dist) = env::var_os("BOX_UI_DIST") {
        let dist = PathBuf::from(dist);
        println!("cargo::rerun-if-changed={}", dist.display());
        return Some(dist);
    }
    if env::var("BOX_UI").is_ok_and(|ui| ui == "none") || env::var_os("DOCS_RS").is_some() {
        return None;
    }
    let ui = Path::new(&variable("CARGO_MANIFEST_DIR")).join("../../ui");
    for source in SOURCES {
        println!("cargo::rerun-if-changed={}", ui.join(source).display());
    }
    check_node();
    let copy = out.join("ui");
    for source in SOURCES {
        mirror(&ui.join(source), &copy.join(source));
    }
    install(&copy);
    run(
        &copy,
        "node",
        &[
            "node_modules/vite/bin/vite.js",
            "build",
            "--logLevel",
            "warn",
        ],
    );
    Some(copy.join("dist"))
}

fn check_node() {
    let said = Command::new("node").arg("--version").output();
    let said = said.ok().filter(|said| said.status.success());
    let Some(said) = said else {
        panic!("the page needs Node to be built, and there is none: {INSTALL}");
    };
    let version = String::from_utf8_lossy(&said.stdout).trim().to_owned();
    let mut numbers = version
        .trim_start_matches('v')
        .split('.')
        .map_while(|number| number.parse::<u32>().ok());
    let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    assert!(
        found >= NODE_MIN,
        "the page needs a newer Node than {version}: {INSTALL}"
    );
}

/// `npm ci` as this machine has npm set up, unless what lies there is of the same lock.
fn install(copy: &Path) {
    let lock = read(&copy.join("package-lock.json"));
    let stamp = copy.join("installed");
    if fs::read(&stamp).is_ok_and(|of| of == lock) {
        return;
    }
    let words = [
        "ci",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
    ];
    run(copy, "npm", &words);
    write(&stamp, &lock);
}

fn run(folder: &Path, program: &str, words: &[&str]) {
    let status = Command::new(program)
        .args(words)
        .current_dir(folder)
        .env_remove("NODE_ENV")
        .status()
        .unwrap_or_else(|error| panic!("run `{program}`: {error}: {INSTALL}"));
    assert!(
        status.success(),
        "the page does not build: `{program} {}`: {status}",
        words.join(" ")
    );
}

/// Makes `to` what `from` is. Files that are gone there go here too.
fn mirror(from: &Path, to: &Path) {
    if !from.is_dir() {
        let new = read(from);
        if fs::read(to).is_ok_and(|old| old == new) {
            return;
        }
        if let Some(folder) = to.parent() {
            make_folder(folder);
        }
        write(to, &new);
        return;
    }
    make_folder(to);
    let names = |folder: &Path| -> Vec<std::ffi::OsString> {
        fs::read_dir(folder)
            .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
            .filter_map(|entry| entry.ok().map(|entry| entry.file_name()))
            .collect()
    };
    let kept = names(from);
    for name in names(to) {
        let gone = to.join(&name);
        if !kept.contains(&name) && gone.is_dir() {
            drop(fs::remove_dir_all(gone));
        } else if !kept.contains(&name) {
            drop(fs::remove_file(gone));
        }
    }
    for name in kept {
        mirror(&from.join(&name), &to.join(&name));
    }
}

/// The table of `assets.tsv`: path, media type, `ETag`, and whether it is there compressed.
fn table(dist: &Path) -> String {
    let dist = dist
        .canonicalize()
        .unwrap_or_else(|error| panic!("BOX_UI_DIST {}: {error}", dist.display()));
    let list = String::from_utf8_lossy(&read(&dist.join("assets.tsv"))).into_owned();
    let mut text = String::from("static ASSETS: &[Embedded] = &[\n");
    for line in list.lines() {
        let cells: Vec<&str> = line.split('\t').collect();
        let [path, mime, etag, small] = cells.as_slice() else {
            panic!(
                "{}: a line of assets.tsv has four cells: {line:?}",
                dist.display()
            );
        };
        let bytes = |ending: &str| {
            let file = dist.join(format!("{path}{ending}"));
            format!("include_bytes!({:?})", file.display().to_string())
        };
        let packed = |ending: &str| match *small {
            "packed" => format!("Some({})", bytes(ending)),
            _ => "None".to_owned(),
        };
        writeln!(
            text,
            "    Embedded {{ path: {path:?}, mime: {mime:?}, etag: {:?}, raw: {}, br: {}, gzip: {} }},",
            format!("\"{etag}\""),
            bytes(""),
            packed(".br"),
            packed(".gz"),
        )
        .unwrap_or_else(|error| panic!("{error}"));
    }
    text.push_str("];\n");
    text
}

fn make_folder(folder: &Path) {
    fs::create_dir_all(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn write(path: &Path, content: impl AsRef<[u8]>) {
    fs::write(path, content).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
