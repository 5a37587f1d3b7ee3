//! `--store`: a file system of its own for the boxes, on disks that cannot share files.

use super::super::amount;
use crate::complaint::Complaint;
use crate::host;
use box_runtime_native::storage::loopback::{self, StoreError};
use box_server::paths::Paths;
use box_server::settings::Settings;
use std::str::FromStr;

/// What `--store` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Store {
    /// Boxes lie in the data folder itself.
    Plain,
    Btrfs {
        size_bytes: Option<u64>,
    },
}

impl FromStr for Store {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            None if text == "plain" => Ok(Self::Plain),
            None if text == "btrfs" => Ok(Self::Btrfs { size_bytes: None }),
            Some(("btrfs", size)) => Ok(Self::Btrfs {
                size_bytes: Some(amount::size(size)?),
            }),
            None | Some(_) => Err("it is `btrfs`, `btrfs=20G` or `plain`".to_owned()),
        }
    }
}

/// Makes what was asked for, before a host opens the data folder. What was done, if anything.
pub(super) fn make(store: Store) -> Result<Option<String>, Complaint> {
    let paths = host::paths()?;
    let Store::Btrfs { size_bytes } = store else {
        return plain(&paths);
    };
    if loopback::is_made(&paths.data) {
        return Ok(Some("the store is there already".to_owned()));
    }
    if let Some(client) = host::find()? {
        let title = "a store is made while no host runs";
        return Err(Complaint::failed("host-runs", title)
            .caused_by(format!("a host runs here: process {}", client.welcome.pid))
            .hinted("`box serve --stop`, then this again"));
    }
    let settings = Settings::load(&paths.config).map_err(|error| {
        let complaint = Complaint::usage("bad-settings", error.to_string());
        match error.hint() {
            Some(hint) => complaint.hinted(hint),
            None => complaint,
        }
    })?;
    host::launch::make_own_folder(&paths.data)?;
    let size = size_bytes.or(settings.store_size_bytes.value);
    let made = loopback::make(&paths.data, size).map_err(|error| complaint(&error))?;
    Ok(Some(format!(
        "made a store of at most {} GiB (btrfs); it takes space as it fills",
        made >> 30
    )))
}

fn plain(paths: &Paths) -> Result<Option<String>, Complaint> {
    if loopback::is_made(&paths.data) {
        let title = "there is a store already, with what boxes there are in it";
        return Err(Complaint::failed("store-there", title));
    }
    Ok(None)
}

fn complaint(error: &StoreError) -> Complaint {
    let title = format!("could not make the store: {error}");
    let complaint = match error {
        StoreError::TooSmall => Complaint::usage("store-size", title),
        StoreError::NotRoot | StoreError::BoxesThere(_) | StoreError::NoTool => {
            Complaint::failed("no-store", title)
        }
        StoreError::System { source, .. } => Complaint::engine("no-store", title).caused_by(source),
    };
    match error.hint() {
        Some(hint) => complaint.hinted(hint),
        None => complaint,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_named_with_its_size_or_without() {
        let read = |text: &str| text.parse::<Store>();
        assert_eq!(read("plain"), Ok(Store::Plain));
        assert_eq!(read("btrfs"), Ok(Store::Btrfs { size_bytes: None }));
        let size_bytes = Some(20 << 30);
        assert_eq!(read("btrfs=20G"), Ok(Store::Btrfs { size_bytes }));
        for bad in ["", "xfs", "btrfs=", "btrfs=much", "plain=1G"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
