//! Names of files in the workspace of a box, for whoever writes a prompt (`@`).
//!
//! The box is asked from inside, as its own user: the host follows no path a box made, and what lies
//! outside the workspace is not listed, whatever links lead there.

use crate::boxes::{self, FindError};
use crate::caller::Caller;
use crate::host::Host;
use crate::inside::{self, Inside, InsideError};
use crate::lifecycle::{self, StartError};
use box_api::BoxName;
use std::sync::Arc;
use std::time::Duration;

/// Most that are given.
pub const FOUND_MAX: usize = 20;
/// Longest query, characters; more of it is not looked at.
pub const QUERY_CHARS_MAX: usize = 200;
/// How much of the list is read.
const LISTING_BYTES_MAX: usize = 2 << 20;
/// Longest the box may take to list them.
const LIST_WAIT: Duration = Duration::from_secs(20);

/// Constant: nothing a person typed is ever part of it. Links are not followed and other file
/// systems not entered; what programs made and nobody names is left out.
const LIST: &str = r"
find . -xdev \( -name .git -o -name .box -o -name node_modules -o -name target -o -name .venv \
    -o -name __pycache__ \) -prune -o -type f -print 2> /dev/null | head -n 20000
";

/// Why there is no list.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    #[error(transparent)]
    Find(#[from] FindError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("could not list the files of box `{name}`")]
    Inside {
        name: BoxName,
        #[source]
        source: InsideError,
    },
}

/// Paths below the workspace that fit `query`, best first, and whether there are more. A box that
/// does not run is started.
///
/// # Errors
/// [`FilesError`]
pub async fn find(
    host: &Arc<Host>,
    caller: &Caller,
    name: &BoxName,
    query: &str,
) -> Result<(Vec<String>, bool), FilesError> {
    let record = boxes::find(host, caller, name).await?;
    let record = lifecycle::start(host, record.id).await?;
    let inside = Inside {
        command: ["sh", "-c", LIST].map(str::to_owned).to_vec(),
        env: Vec::new(),
        input: Vec::new(),
        deadline: LIST_WAIT,
    };
    let listed = inside::answer_up_to(host, &record, inside, LISTING_BYTES_MAX).await;
    let listed = listed.map_err(|source| FilesError::Inside {
        name: name.clone(),
        source,
    })?;
    Ok(best(&listed, query))
}

/// How well a path fits, smaller is better: what kind of match, how deep, how long.
type Fit<'a> = (u8, usize, usize, &'a str);

/// The best of a list of lines that begin with `./`. A name that is no text a person could write is
/// none.
fn best(listed: &[u8], query: &str) -> (Vec<String>, bool) {
    let query: String = query.chars().take(QUERY_CHARS_MAX).collect();
    let query = query.to_lowercase();
    let listed = String::from_utf8_lossy(listed);
    let paths = listed.lines().filter_map(|line| line.strip_prefix("./"));
    let written = |path: &&str| {
        !path.is_empty() && !path.contains(|c: char| c.is_control() || c == '\u{fffd}')
    };
    let mut fits: Vec<Fit<'_>> = paths
        .filter(written)
        .filter_map(|path| {
            Some((
                kind(path, &query)?,
                path.matches('/').count(),
                path.len(),
                path,
            ))
        })
        .collect();
    let more = fits.len() > FOUND_MAX;
    fits.sort_unstable();
    fits.truncate(FOUND_MAX);
    let files = fits.into_iter().map(|(.., path)| path.to_owned());
    (files.collect(), more)
}

/// What kind of match it is; absent: none. `query` is in lower case.
fn kind(path: &str, query: &str) -> Option<u8> {
    let path = path.to_lowercase();
    let last = path.rsplit('/').next().unwrap_or_default();
    if last.starts_with(query) {
        Some(0)
    } else if path.starts_with(query) {
        Some(1)
    } else if last.contains(query) {
        Some(2)
    } else if path.contains(query) {
        Some(3)
    } else {
        // Its characters in their order, others between them.
        let mut left = path.chars();
        query
            .chars()
            .all(|c| left.any(|other| other == c))
            .then_some(4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(query: &str) -> Vec<String> {
        let listed = "./src/port.rs\n./tests/port.rs\n./README.md\n./src/report/mod.rs\n./src/parser.rs\n\
            ./bad\u{7}name\n../../etc/passwd\n/etc/shadow\n./\n";
        best(listed.as_bytes(), query).0
    }

    #[test]
    fn the_beginning_of_a_name_is_the_best_fit_and_letters_in_their_order_the_worst() {
        assert_eq!(
            found("port"),
            ["src/port.rs", "tests/port.rs", "src/report/mod.rs"]
        );
        assert_eq!(
            found("src/p"),
            ["src/port.rs", "src/parser.rs", "src/report/mod.rs"]
        );
        assert_eq!(found("srpsr"), ["src/parser.rs"]);
        assert_eq!(found("READ"), ["README.md"]);
        assert_eq!(found("nothing of the kind"), [""; 0]);
    }

    #[test]
    fn what_leads_out_of_the_workspace_or_cannot_be_written_is_not_listed() {
        assert_eq!(
            found(""),
            [
                "README.md",
                "src/port.rs",
                "src/parser.rs",
                "tests/port.rs",
                "src/report/mod.rs"
            ]
        );
        assert_eq!(found("passwd"), [""; 0]);
    }

    #[test]
    fn more_than_fit_is_said() {
        let many: Vec<String> = (0..=FOUND_MAX).map(|n| format!("./f{n}\n")).collect();
        let many = many.concat();
        let (files, more) = best(many.as_bytes(), "f");
        assert_eq!((files.len(), more), (FOUND_MAX, true));
        assert!(!best(b"./f1\n", "f").1);
    }
}
