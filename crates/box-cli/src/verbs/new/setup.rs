//! The set-up script of a new box, and which marks it gets.

use crate::complaint::Complaint;
use box_api::control::{Marks, SETUP_BYTES_MAX};
use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// Reads the script, before anything is made.
///
/// # Errors
/// When it cannot be read, is no text or too long.
pub(super) fn read(path: &Path) -> Result<String, Complaint> {
    let could_not = || {
        let title = format!("could not read the set-up script `{}`", path.display());
        Complaint::usage("bad-setup", title)
    };
    let file = File::open(path).map_err(|error| could_not().caused_by(error))?;
    let mut script = String::new();
    let most = SETUP_BYTES_MAX as u64 + 1;
    let read = file.take(most).read_to_string(&mut script);
    read.map_err(|error| could_not().caused_by(error))?;
    if script.len() > SETUP_BYTES_MAX {
        return Err(could_not().caused_by(format!("it is longer than {SETUP_BYTES_MAX} bytes")));
    }
    Ok(script)
}

/// `0` leaves a mark out (B14, B18).
pub(super) fn marks(variable: &dyn Fn(&str) -> Option<OsString>) -> Marks {
    let wanted = |name: &str| variable(name).is_none_or(|value| value != "0");
    Marks {
        pristine: wanted("BOX_SNAPSHOT_PRISTINE"),
        bootstrapped: wanted("BOX_SNAPSHOT_BOOTSTRAPPED"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_nought_leaves_a_mark_out() {
        assert_eq!(marks(&|_| None), Marks::default());
        assert_eq!(marks(&|_| Some("1".into())), Marks::default());
        let without = marks(&|name| (name == "BOX_SNAPSHOT_PRISTINE").then(|| "0".into()));
        assert!(!without.pristine && without.bootstrapped);
    }
}
