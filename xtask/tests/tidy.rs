//! The house rules that a program can check.

#![expect(clippy::unwrap_used, reason = "a test; what fails here fails the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

const FILE_LINES_MAX: usize = 500;
const LOCKED_PACKAGES_MAX: usize = 330;
const BANNED_FILE_NAMES: &[&str] = &[
    "utils", "util", "common", "helpers", "helper", "misc", "manager",
];

/// Who may depend on whom (normal and build dependencies). Nothing else; xtask is free.
const EDGES: &[(&str, &[&str])] = &[
    ("box-api", &[]),
    ("box-runtime", &["box-api"]),
    ("box-runtime-native", &["box-api", "box-runtime"]),
    ("box-egress", &["box-api"]),
    ("box-copy", &[]),
    ("box-guest", &["box-api", "box-copy"]),
    ("box-core", &["box-api", "box-runtime"]),
    ("box-server", &["box-api", "box-core", "box-runtime"]),
    ("box-drill", &["box-api", "box-runtime"]),
    ("box-fakes", &["box-api"]),
    (
        "box-cli",
        &[
            "box-api",
            "box-copy",
            "box-drill",
            "box-egress",
            "box-runtime",
            "box-runtime-native",
            "box-server",
        ],
    ),
];

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_path_buf()
}

fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path.as_ref())
        .unwrap_or_else(|error| panic!("{}: {error}", path.as_ref().display()))
}

/// Files git knows or would add, relative to the top, that end in `ending`.
fn tracked(ending: &str) -> Vec<PathBuf> {
    let listing = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(top())
        .output()
        .unwrap();
    assert!(listing.status.success(), "git ls-files: {}", listing.status);
    let names = String::from_utf8(listing.stdout).unwrap();
    let files: Vec<PathBuf> = names
        .lines()
        .filter(|name| name.ends_with(ending) && top().join(name).is_file())
        .map(PathBuf::from)
        .collect();
    assert!(
        !files.is_empty(),
        "no file ends in {ending}: the check would see nothing"
    );
    files
}

fn assert_none(offences: &[String], rule: &str) {
    assert!(offences.is_empty(), "{rule}:\n{}", offences.join("\n"));
}

/// Lines before the inline test module.
fn code_lines(text: &str) -> usize {
    text.lines()
        .take_while(|line| line.trim() != "#[cfg(test)]")
        .count()
}

fn is_test(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "tests")
        || path.file_name().is_some_and(|name| name == "tests.rs")
}

#[test]
fn every_file_says_what_it_is() {
    let offences: Vec<String> = tracked(".rs")
        .into_iter()
        .filter(|path| !read(top().join(path)).starts_with("//!"))
        .map(|path| path.display().to_string())
        .collect();
    assert_none(&offences, "a Rust file starts with `//!`");
}

#[test]
fn no_file_is_longer_than_five_hundred_lines() {
    let offences: Vec<String> = tracked(".rs")
        .into_iter()
        .filter(|path| !is_test(path))
        .map(|path| (code_lines(&read(top().join(&path))), path))
        .filter(|(lines, _)| *lines > FILE_LINES_MAX)
        .map(|(lines, path)| format!("{}: {lines} lines", path.display()))
        .collect();
    assert_none(&offences, "500 lines without tests");
}

#[test]
fn files_are_named_after_their_subject() {
    let offences: Vec<String> = tracked(".rs")
        .into_iter()
        .filter(|path| {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            BANNED_FILE_NAMES.contains(&stem.as_ref()) || (stem == "mod" && !is_test(path))
        })
        .map(|path| path.display().to_string())
        .collect();
    assert_none(
        &offences,
        "no `utils`, `common`, `helpers`, `manager`, no mod.rs",
    );
}

#[test]
fn crates_depend_only_along_the_allowed_edges() {
    let output = Command::new("cargo")
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .current_dir(top())
        .output()
        .unwrap();
    assert!(output.status.success(), "cargo metadata: {}", output.status);
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let allowed: BTreeMap<&str, &[&str]> = EDGES.iter().copied().collect();
    let mut offences = Vec::new();
    let mut seen = 0;
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        if name == "xtask" {
            continue;
        }
        seen += 1;
        let Some(edges) = allowed.get(name) else {
            offences.push(format!("{name} is not in the table of edges"));
            continue;
        };
        for dependency in package["dependencies"].as_array().unwrap() {
            let to = dependency["name"].as_str().unwrap();
            let of_the_house = to.starts_with("box-") || to == "xtask";
            if of_the_house && dependency["kind"] != "dev" && !edges.contains(&to) {
                offences.push(format!("{name} → {to}"));
            }
        }
    }
    assert!(seen >= 5, "cargo metadata showed only {seen} crates");
    assert_none(&offences, "edges between crates");
}

#[test]
fn there_is_one_tls_provider() {
    let lock = read(top().join("Cargo.lock"));
    assert!(
        lock.contains("name = \"ring\""),
        "the provider we chose is gone from Cargo.lock"
    );
    for other in ["aws-lc-rs", "aws-lc-sys", "openssl-sys", "native-tls"] {
        assert!(
            !lock.contains(&format!("name = \"{other}\"")),
            "{other} is in Cargo.lock"
        );
    }
}

#[test]
fn the_number_of_packages_grows_only_knowingly() {
    let count = read(top().join("Cargo.lock"))
        .matches("[[package]]")
        .count();
    assert!(
        count <= LOCKED_PACKAGES_MAX,
        "{count} packages; raise the bar in a commit that says why"
    );
}

#[test]
fn unsafe_code_lives_in_two_crates() {
    let may = ["crates/box-runtime-native/", "crates/box-guest/"];
    let offences: Vec<String> = tracked(".rs")
        .into_iter()
        .filter(|path| !may.iter().any(|room| path.starts_with(room)))
        .filter(|path| read(top().join(path)).contains(&["unsafe", " {"].concat()))
        .map(|path| path.display().to_string())
        .collect();
    assert_none(&offences, "unsafe code outside the launcher and the guest");
}

#[test]
fn exceptions_to_lints_are_expectations() {
    let allow = ["#[", "allow("].concat();
    let allow_all = ["#![", "allow("].concat();
    let offences: Vec<String> = tracked(".rs")
        .into_iter()
        .filter(|path| {
            let text = read(top().join(path));
            text.contains(&allow) || text.contains(&allow_all)
        })
        .map(|path| path.display().to_string())
        .collect();
    assert_none(&offences, "use `expect` with a reason");
}

#[test]
fn changelog_keeps_its_form() {
    let text = read(top().join("CHANGELOG.md"));
    let sections = [
        "Added",
        "Changed",
        "Deprecated",
        "Removed",
        "Fixed",
        "Security",
    ];
    assert!(text.contains("\n## [Unreleased]\n"), "no `## [Unreleased]`");
    for heading in text.lines().filter_map(|line| line.strip_prefix("### ")) {
        assert!(
            sections.contains(&heading),
            "`### {heading}` is none of {sections:?}"
        );
    }
}

/// Names of all tests and `#[tokio::test]`s in the tree.
fn test_names() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for path in tracked(".rs") {
        for line in read(top().join(path)).lines() {
            let line = line.trim_start();
            let line = line.strip_prefix("pub ").unwrap_or(line);
            let line = line.strip_prefix("async ").unwrap_or(line);
            if let Some(rest) = line.strip_prefix("fn ") {
                names.insert(rest.split(['(', '<']).next().unwrap_or_default().to_owned());
            }
        }
    }
    names
}

/// Cells of the table rows of a Markdown text whose first cell is like `A1`, `B20` or `C300`.
fn rows(text: &str) -> Vec<Vec<String>> {
    text.lines()
        .filter(|line| line.starts_with("| "))
        .map(|line| {
            line.trim_matches('|')
                .split('|')
                .map(|cell| cell.trim().to_owned())
                .collect::<Vec<_>>()
        })
        .filter(|cells| {
            let id = cells[0].as_str();
            id.starts_with(['A', 'B', 'C']) && id[1..].chars().all(|c| c.is_ascii_digit())
        })
        .filter(|cells| cells[0].len() > 1)
        .collect()
}

#[test]
fn parity_names_tests_that_exist() {
    let text = read(top().join("docs/parity.md"));
    let known = test_names();
    let mut ids = BTreeSet::new();
    let mut offences = Vec::new();
    for cells in rows(&text) {
        let [id, _name, state, engines, tests] = cells.as_slice() else {
            offences.push(format!("{}: five cells, not {}", cells[0], cells.len()));
            continue;
        };
        if !ids.insert(id.clone()) {
            offences.push(format!("{id} stands twice"));
        }
        let named: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        match state.as_str() {
            "works" | "part" if named.is_empty() || engines.is_empty() || engines == "–" => {
                offences.push(format!("{id}: `{state}` without a test or an engine"));
            }
            "works" | "part" | "not yet" => {}
            other => offences.push(format!("{id}: no state `{other}`")),
        }
        for name in named {
            if !known.contains(name) {
                offences.push(format!("{id}: no test `{name}`"));
            }
        }
    }
    assert!(
        ids.len() >= 298,
        "docs/parity.md has only {} rows",
        ids.len()
    );
    assert_none(&offences, "docs/parity.md");
}

#[test]
fn security_has_the_table_of_every_probe() {
    let text = read(top().join("SECURITY.md"));
    let probes: Vec<PathBuf> = tracked(".rs")
        .into_iter()
        .filter(|path| path.starts_with("drill/src/probes"))
        .collect();
    let names: Vec<String> = probes
        .iter()
        .filter_map(|path| {
            let source = read(top().join(path));
            let (_, rest) = source.split_once("    name: \"")?;
            rest.split('"').next().map(str::to_owned)
        })
        .collect();
    assert!(names.len() >= 25, "found only {} probes", names.len());
    let offences: Vec<String> = names
        .into_iter()
        .filter(|name| {
            let row = text
                .lines()
                .find(|line| line.starts_with(&format!("| `{name}` |")));
            // A probe of containers means nothing in the boxes that can hold none.
            let held = [
                "| passed | held | held | held |",
                "| passed | – | – | held |",
            ];
            row.is_none_or(|row| !held.iter().any(|end| row.ends_with(end)))
        })
        .collect();
    assert_none(
        &offences,
        "run `cargo xtask security`: not held, or not in SECURITY.md",
    );
}

#[test]
fn architecture_names_tests_that_exist() {
    let text = read(top().join("ARCHITECTURE.md"));
    let known = test_names();
    let invariants: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("- **Never**"))
        .collect();
    assert!(
        invariants.len() >= 5,
        "ARCHITECTURE.md lists its invariants as `- **Never** …`"
    );
    let offences: Vec<String> = invariants
        .iter()
        .filter(|line| {
            !line
                .split('`')
                .skip(1)
                .step_by(2)
                .any(|name| known.contains(name))
        })
        .map(|line| (*line).to_owned())
        .collect();
    assert_none(&offences, "each invariant names the test that proves it");
}

/// What the specification accepts as a risk (C183) is closed by something with a name, or said.
#[test]
fn risks_the_specification_accepts_are_closed_or_said() {
    let text = read(top().join("SECURITY.md"));
    let parts = text.split_once("## Residual risks");
    let (closed, said) = parts.expect("a list of residual risks");
    let risks = [
        ("services of the host", closed, "| `machine-loopback` |"),
        (
            "the socket that is worth root",
            said,
            "Whoever may speak to the host's socket",
        ),
        (
            "tokens in what is listed",
            closed,
            "| a request without a sign-in | 401",
        ),
        (
            "a proxy that is taken over",
            said,
            "Who takes `box-egress` over",
        ),
        (
            "what is not translated",
            said,
            "What no credential was configured for",
        ),
        (
            "placeholders of siblings",
            closed,
            "| `own-placeholder-only` |",
        ),
        (
            "what is pinned",
            said,
            "What agents send is not ours to fix",
        ),
    ];
    let offences: Vec<String> = risks
        .iter()
        .filter(|(_, part, words)| !part.contains(words))
        .map(|(risk, ..)| (*risk).to_owned())
        .collect();
    assert_none(&offences, "SECURITY.md closes each risk of C183 or says it");
}

/// `docs/clients.md` tells people what was tried; it is written from the table of the test.
#[test]
fn every_client_that_is_tried_has_a_row_for_people() {
    let table = read(top().join("crates/box-cli/tests/e2e/clients/table.rs"));
    let names: Vec<&str> = table
        .lines()
        .filter_map(|line| line.trim().strip_prefix("name: \"")?.strip_suffix("\","))
        .filter(|name| !name.is_empty())
        .collect();
    assert!(names.len() > 20, "the table is read wrongly: {names:?}");
    let page = read(top().join("docs/clients.md"));
    let offences: Vec<String> = names
        .iter()
        .filter(|name| !page.contains(&format!("| {name} | ")))
        .map(|name| (*name).to_owned())
        .collect();
    assert_none(
        &offences,
        "`cargo xtask clients --write` gives each client a row",
    );
}
