//! What a box is to be like: the options `new` and `run` share.

use crate::complaint::Complaint;
use box_api::control::{Defaults, Limits, NetPreset, Profile};
use clap::ValueEnum;
use std::path::Path;

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "The machine")]
#[group(skip)]
pub(super) struct Args {
    /// What it starts from: `default`, `debian:<suite>` or `file:<tar>`
    #[arg(long)]
    image: Option<String>,
    /// How hard it is: `locked` (a user, read-only root) or `root` (root inside, writable root)
    #[arg(long, value_enum, hide_possible_values = true)]
    profile: Option<ProfileName>,
    /// Where it may go: `balanced` (registries, forges, agents' hosts), `open` or `locked`
    #[arg(long, value_enum, hide_possible_values = true)]
    net: Option<NetName>,
    /// CPUs, such as 2 or 0.5
    #[arg(long, value_parser = cpu_milli)]
    cpus: Option<u32>,
    /// Memory, such as 4G
    #[arg(long, value_parser = size)]
    memory: Option<u64>,
    /// Disk for workspace, home and changes to the root, such as 20G
    #[arg(long, value_parser = size)]
    disk: Option<u64>,
    /// Processes and threads at once
    #[arg(long)]
    pids: Option<u32>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum ProfileName {
    Locked,
    Root,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum NetName {
    Balanced,
    Open,
    Locked,
}

/// The options, with the host's settings where nothing was said.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) image: Option<String>,
    pub(super) profile: Profile,
    pub(super) net: NetPreset,
    pub(super) limits: Limits,
}

impl From<ProfileName> for Profile {
    fn from(name: ProfileName) -> Self {
        match name {
            ProfileName::Locked => Self::Locked,
            ProfileName::Root => Self::Root,
        }
    }
}

impl Args {
    /// Whether the machine was described at all.
    pub(super) fn says_something(&self) -> bool {
        let Self {
            image,
            profile,
            net,
            cpus,
            memory,
            disk,
            pids,
        } = self;
        let words = image.is_some() || profile.is_some() || net.is_some();
        let numbers = cpus.is_some() || memory.is_some() || disk.is_some() || pids.is_some();
        words || numbers
    }

    /// # Errors
    /// An image file that is not there.
    pub(super) fn with(self, defaults: Defaults) -> Result<Machine, Complaint> {
        let limits = defaults.limits;
        Ok(Machine {
            image: self.image.as_deref().map(image).transpose()?,
            profile: self.profile.map_or(defaults.profile, Profile::from),
            net: match self.net {
                Some(NetName::Balanced) => NetPreset::Balanced,
                Some(NetName::Open) => NetPreset::Open,
                Some(NetName::Locked) => NetPreset::Locked,
                None => defaults.net,
            },
            limits: Limits {
                cpu_milli: self.cpus.unwrap_or(limits.cpu_milli),
                memory_bytes: self.memory.unwrap_or(limits.memory_bytes),
                disk_bytes: self.disk.unwrap_or(limits.disk_bytes),
                pids: self.pids.unwrap_or(limits.pids),
                ..limits
            },
        })
    }
}

/// An image as the host understands it: a file by its whole path, for the host stands elsewhere.
///
/// # Errors
/// When the file is not there.
pub(super) fn image(typed: &str) -> Result<String, Complaint> {
    let Some(path) = typed.strip_prefix("file:") else {
        return Ok(typed.to_owned());
    };
    let whole = std::fs::canonicalize(Path::new(path)).map_err(|error| {
        Complaint::usage(
            "image-not-found",
            format!("there is no image file `{path}`"),
        )
        .caused_by(error)
        .hinted("`file:` takes a tar of a root file system")
    })?;
    whole
        .into_os_string()
        .into_string()
        .map(|path| format!("file:{path}"))
        .map_err(|path| {
            Complaint::usage(
                "image-not-found",
                format!("the path `{}` is not UTF-8", Path::new(&path).display()),
            )
        })
}

fn cpu_milli(text: &str) -> Result<u32, String> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{whole}{part:0<3}");
    let plain = !whole.is_empty() && part.len() <= 3;
    let milli = digits
        .parse::<u32>()
        .ok()
        .filter(|milli| plain && *milli > 0);
    milli.ok_or_else(|| "a number of CPUs such as `2` or `0.5`".to_owned())
}

fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match &text[digits.len()..] {
        "" => Some(0),
        "K" | "KiB" | "k" => Some(10),
        "M" | "MiB" | "m" => Some(20),
        "G" | "GiB" | "g" => Some(30),
        "T" | "TiB" | "t" => Some(40),
        _ => None,
    };
    let bytes = digits
        .parse::<u64>()
        .ok()
        .zip(unit)
        .and_then(|(number, shift)| number.checked_mul(1 << shift));
    bytes
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| "a size such as `512M` or `4G`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_cpus_are_read_as_people_write_them() {
        assert_eq!(size("4G"), Ok(4 << 30));
        assert_eq!(size("512MiB"), Ok(512 << 20));
        assert_eq!(size("1000"), Ok(1000));
        for bad in ["", "G", "4 G", "-1", "0", "4X", "99999999999T"] {
            assert!(size(bad).is_err(), "{bad}");
        }
        assert_eq!(cpu_milli("2"), Ok(2000));
        assert_eq!(cpu_milli("0.5"), Ok(500));
        for bad in ["", ".5", "0", "1.2345", "x", "-1"] {
            assert!(cpu_milli(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_not_said_comes_from_the_host() {
        let nothing = Args {
            image: None,
            profile: None,
            net: None,
            cpus: None,
            memory: None,
            disk: None,
            pids: None,
        };
        let defaults = Defaults {
            net: NetPreset::Open,
            ..Defaults::default()
        };
        let machine = nothing.clone().with(defaults).unwrap();
        assert_eq!(
            (machine.net, machine.profile),
            (NetPreset::Open, Profile::Locked)
        );
        let said = Args {
            net: Some(NetName::Locked),
            pids: Some(7),
            ..nothing
        };
        let machine = said.with(defaults).unwrap();
        assert_eq!((machine.net, machine.limits.pids), (NetPreset::Locked, 7));
        assert_eq!(machine.limits.memory_bytes, defaults.limits.memory_bytes);
    }
}
