//! Starts programs for the other verbs, saying what it runs and how long it took.

use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// The top folder of the checkout.
pub(crate) fn top() -> PathBuf {
    // This crate's folder lies directly below it.
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_path_buf)
        .unwrap_or_default()
}

/// A program in the top folder, its output shown as it comes.
pub(crate) fn command(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(top())
        .stdin(Stdio::null());
    command
}

/// Runs it to its end.
///
/// # Errors
/// When it cannot be started or ends with anything but 0.
pub(crate) fn run(program: &str, arguments: &[&str]) -> Result<()> {
    finish(command(program, arguments))
}

pub(crate) fn finish(mut command: Command) -> Result<()> {
    let line = line_of(&command);
    println!("→ {line}");
    let start = Instant::now();
    let status = command
        .status()
        .with_context(|| format!("could not start `{line}`"))?;
    println!("← {line}: {:.1} s", start.elapsed().as_secs_f32());
    if !status.success() {
        bail!("`{line}` ended with {status}");
    }
    Ok(())
}

/// Runs it to its end and returns what it printed on its standard output.
///
/// # Errors
/// When it cannot be started, ends with anything but 0 or prints something else than UTF-8.
pub(crate) fn output(mut command: Command) -> Result<String> {
    let line = line_of(&command);
    println!("→ {line}");
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("could not start `{line}`"))?;
    if !output.status.success() {
        bail!("`{line}` ended with {}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{line}` did not print UTF-8"))
}

/// Whether a program is on the path.
pub(crate) fn has(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
    }) || ["/usr/sbin", "/sbin"]
        .iter()
        .any(|folder| Path::new(folder).join(program).is_file())
}

fn line_of(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(
        command
            .get_args()
            .map(|word| word.to_string_lossy().into_owned()),
    );
    words.join(" ")
}
