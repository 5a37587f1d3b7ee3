//! The named fault points of this build, as its sources have them.

use anyhow::{Context as _, Result, bail};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const CALL: &str = "fault::point(\"";

/// Every point, by name.
///
/// # Errors
/// When the sources cannot be read or have none.
pub(super) fn all(top: &Path) -> Result<Vec<String>> {
    let mut found = BTreeSet::new();
    for room in ["box-core", "box-runtime-native"] {
        search(&top.join("crates").join(room).join("src"), &mut found)?;
    }
    if found.is_empty() {
        bail!("the sources have no fault point");
    }
    Ok(found.into_iter().collect())
}

fn search(folder: &Path, found: &mut BTreeSet<String>) -> Result<()> {
    let could_not = || format!("could not read `{}`", folder.display());
    for entry in fs::read_dir(folder).with_context(could_not)? {
        let path = entry.with_context(could_not)?.path();
        if path.is_dir() {
            search(&path, found)?;
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = fs::read_to_string(&path).with_context(could_not)?;
            let names = text.split(CALL).skip(1);
            found.extend(names.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
        }
    }
    Ok(())
}
