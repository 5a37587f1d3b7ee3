//! What a box is to be like: the options `new` and `run` share.

use super::{amount, github};
use crate::complaint::Complaint;
use box_api::control::{Accounts, BoxSettings, Defaults, Limits, NetPreset, Profile, Sizes};
use clap::ValueEnum;
use std::path::Path;

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "The machine")]
#[group(skip)]
pub(super) struct Args {
    /// What it starts from: `default`, `debian:<suite>`, `oci:<name>`, `built:<name>` or
    /// `file:<archive>`
    #[arg(long)]
    image: Option<String>,
    /// How hard it is: `locked` (a user, read-only root) or `root` (root inside, writable root)
    #[arg(long, value_enum, hide_possible_values = true)]
    profile: Option<ProfileName>,
    /// Where it may go: `balanced` (registries, forges, agents' hosts), `open` or `locked`
    #[arg(long, value_enum, hide_possible_values = true)]
    net: Option<NetName>,
    /// CPUs, such as 2 or 0.5
    #[arg(long, alias = "cpu", value_parser = amount::cpu_milli)]
    cpus: Option<u32>,
    /// Memory, such as 4G
    #[arg(long, value_parser = amount::size)]
    memory: Option<u64>,
    /// Disk for workspace, home and changes to the root, such as 20G
    #[arg(long, value_parser = amount::size)]
    disk: Option<u64>,
    /// Processes and threads at once
    #[arg(long, value_parser = amount::count)]
    pids: Option<u32>,
    /// Open files of one process
    #[arg(long, value_name = "COUNT", value_parser = amount::count)]
    open_files: Option<u32>,
    /// What `/tmp`, `/run` and `/dev/shm` hold together, such as 512M
    #[arg(long, value_parser = amount::size)]
    tmp: Option<u64>,
    /// Stop it when it has run this long, such as 4h
    #[arg(long, value_name = "TIME", value_parser = amount::span_ms)]
    deadline: Option<u64>,
    /// Freeze it when nothing of it was wanted this long, such as 2h, or `off`; it thaws when touched.
    /// Else as the host's settings say: 30m
    #[arg(long, value_name = "TIME", value_parser = amount::span_ms_or_off)]
    freeze_after: Option<u64>,
    /// Let it make namespaces of its own, for containers inside
    #[arg(long)]
    nested: bool,
    /// Accounts it uses: `claude:work`, several with commas, `none`; else your default of each kind
    #[arg(long, value_name = "ACCOUNTS")]
    credential: Option<Accounts>,
    #[command(flatten)]
    github: github::Args,
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
    pub(super) settings: BoxSettings,
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
            open_files,
            tmp,
            deadline,
            freeze_after,
            nested,
            credential,
            github,
        } = self;
        let words = github.says_something()
            || credential.is_some()
            || image.is_some()
            || profile.is_some()
            || net.is_some()
            || *nested;
        let sizes = [memory, disk, tmp, deadline, freeze_after];
        let counts = [cpus, pids, open_files];
        words
            || sizes.iter().any(|size| size.is_some())
            || counts.iter().any(|count| count.is_some())
    }

    /// What was said of sizes; of a clone the rest is its source's.
    pub(super) fn sizes(&self) -> Sizes {
        Sizes {
            cpu_milli: self.cpus,
            memory_bytes: self.memory,
            disk_bytes: self.disk,
            pids: self.pids,
            open_files: self.open_files,
            tmp_bytes: self.tmp,
            deadline_ms: self.deadline,
            freeze_after_ms: self.freeze_after,
            nested: self.nested,
        }
    }

    /// # Errors
    /// An image file that is not there, or a limit in the environment that is none.
    pub(super) fn with(self, defaults: Defaults) -> Result<Machine, Complaint> {
        let limits = defaults.limits;
        let cpus = said("BOX_CPU", amount::cpu_milli)?;
        let memory = said("BOX_MEMORY", amount::size)?;
        let disk = said("BOX_DISK", amount::size)?;
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
                cpu_milli: self.cpus.or(cpus).unwrap_or(limits.cpu_milli),
                memory_bytes: self.memory.or(memory).unwrap_or(limits.memory_bytes),
                disk_bytes: self.disk.or(disk).unwrap_or(limits.disk_bytes),
                pids: self.pids.unwrap_or(limits.pids),
                open_files: self.open_files.unwrap_or(limits.open_files),
                tmp_bytes: self.tmp.unwrap_or(limits.tmp_bytes),
            },
            settings: BoxSettings {
                deadline_ms: self.deadline,
                freeze_after_ms: self.freeze_after,
                nested: self.nested,
                accounts: self.credential.unwrap_or_default(),
                github: self.github.scope(),
                ..BoxSettings::default()
            },
        })
    }
}

/// A limit from the environment: after the options, before the host's settings (B93).
///
/// # Errors
/// A value that is none.
fn said<T>(variable: &str, read: fn(&str) -> Result<T, String>) -> Result<Option<T>, Complaint> {
    let Some(text) = std::env::var_os(variable).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let text = text.to_string_lossy();
    read(&text).map(Some).map_err(|should| {
        Complaint::usage("usage", format!("`{text}` in `{variable}` is no limit"))
            .hinted(format!("it takes {should}"))
    })
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
        .hinted("`file:` takes a tar of a root file system, or what `docker save` writes")
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

#[cfg(test)]
mod tests {
    use super::*;

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
            open_files: None,
            tmp: None,
            deadline: None,
            freeze_after: None,
            nested: false,
            github: github::Args::default(),
            credential: None,
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
