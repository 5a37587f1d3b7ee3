//! The head of a bundle, read by us (gitformat-bundle(5)): it says which refs the bundle would set.

use crate::complaint::Complaint;
use crate::git::is_object_name;
use crate::output::visible;
use std::io::{BufRead, Read as _};

/// The one ref a box may send.
const REFERENCE: &str = "refs/box/out";
const LINE_BYTES_MAX: u64 = 4 << 10;
/// Commits a bundle may lean on.
const LINES_MAX: usize = 100_000;

/// Reads up to the pack. The head must name `tip`, as the one ref there is, and ask for nothing but
/// an object format.
///
/// # Errors
/// What is odd about it.
pub(super) fn read_head(source: &mut impl BufRead, tip: &str) -> Result<(), Complaint> {
    let mut lines = std::iter::repeat_with(|| line(source));
    let mut next = || lines.next().unwrap_or_else(|| Err(odd("it ends early")));
    match next()?.as_str() {
        "# v2 git bundle" | "# v3 git bundle" => {}
        other => return Err(odd(&format!("it begins with `{other}`"))),
    }
    let mut seen = false;
    for _ in 0..LINES_MAX {
        let line = next()?;
        if line.is_empty() {
            return if seen {
                Ok(())
            } else {
                Err(odd("it names no ref"))
            };
        }
        if line == "@object-format=sha1" || line == "@object-format=sha256" {
            continue;
        }
        // A commit we have, and perhaps its subject.
        let prerequisite = line.strip_prefix('-').map(|rest| {
            let name = rest.split(' ').next().unwrap_or_default();
            is_object_name(name)
        });
        if prerequisite == Some(true) {
            continue;
        }
        if seen || line != format!("{tip} {REFERENCE}") {
            return Err(odd(&format!("its head says `{line}`")));
        }
        seen = true;
    }
    Err(odd("its head has no end"))
}

fn line(source: &mut impl BufRead) -> Result<String, Complaint> {
    let mut bytes = Vec::new();
    source
        .take(LINE_BYTES_MAX)
        .read_until(b'\n', &mut bytes)
        .map_err(|error| odd(&error.to_string()))?;
    if bytes.pop() != Some(b'\n') {
        return Err(odd("its head is cut off"));
    }
    // Subjects may be in any encoding; they are not looked at.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

pub(super) fn odd(what: &str) -> Complaint {
    let what: String = visible(what).chars().take(200).collect();
    Complaint::failed("odd-bundle", "the box sent a bundle that is not taken").caused_by(what)
}

#[cfg(test)]
mod tests {
    use super::read_head;

    const TIP: &str = "0123456789012345678901234567890123456789";

    fn read(head: &str) -> Result<(), String> {
        let done = read_head(&mut head.as_bytes(), TIP);
        done.map_err(|complaint| {
            let problem = complaint.problem().cloned().unwrap();
            problem.cause.unwrap_or_default()
        })
    }

    #[test]
    fn a_head_may_name_the_one_ref_and_nothing_else() {
        let right = format!("# v2 git bundle\n-{TIP} sub\u{1b}ject\n{TIP} refs/box/out\n\nPACK");
        assert_eq!(read(&right), Ok(()));
        let newer = format!("# v3 git bundle\n@object-format=sha1\n{TIP} refs/box/out\n\n");
        assert_eq!(read(&newer), Ok(()));
        let other = TIP.replace('0', "f");
        for (head, why) in [
            (
                format!("# v2 git bundle\n{TIP} refs/heads/main\n\n"),
                "refs/heads/main",
            ),
            (
                format!("# v2 git bundle\n{other} refs/box/out\n\n"),
                "its head says",
            ),
            (
                format!("# v2 git bundle\n{TIP} refs/box/out\n{TIP} refs/heads/main\n\n"),
                "refs/heads/main",
            ),
            (
                format!("# v3 git bundle\n@filter=blob:none\n{TIP} refs/box/out\n\n"),
                "@filter",
            ),
            ("# v2 git bundle\n\n".to_owned(), "names no ref"),
            ("# v9 git bundle\n".to_owned(), "v9"),
            (format!("# v2 git bundle\n-x\n{TIP} refs/box/out\n\n"), "-x"),
            (format!("# v2 git bundle\n{TIP} refs/box/out"), "cut off"),
            ("x".repeat(10_000), "cut off"),
            (String::new(), "cut off"),
        ] {
            let told = read(&head).unwrap_err();
            assert!(told.contains(why), "{head:?}: {told}");
            assert!(!told.contains('\u{1b}'));
        }
    }
}
