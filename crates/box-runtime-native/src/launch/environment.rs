//! The environment every process of a box starts with.

use super::AGENT_ID;
use crate::spawner::wire::Start;
use crate::step::{Step as _, StepError};
use box_api::control::Profile;
use rustix::io::Errno;
use std::ffi::CString;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::AsFd as _;

/// All variables together; more than a box is ever given.
pub(crate) const BYTES_MAX: usize = 128 << 10;

/// `NAME=value` strings, as exec(2) wants them.
#[derive(Debug)]
pub(crate) struct Environment(Vec<CString>);

impl Environment {
    /// What the host gave, and for what it left out the ordinary.
    pub(super) fn read(start: &Start) -> Result<Self, StepError> {
        let mut bytes = Vec::new();
        let mut read = || -> std::io::Result<()> {
            let mut file = File::from(start.given.environment.as_fd().try_clone_to_owned()?);
            let limit = BYTES_MAX as u64 + 1;
            file.by_ref().take(limit).read_to_end(&mut bytes)?;
            if bytes.len() > BYTES_MAX {
                Err(Errno::TOOBIG.into())
            } else {
                Ok(())
            }
        };
        read().step("read the box's environment")?;
        let mut variables = Vec::new();
        for variable in bytes
            .split(|byte| *byte == 0)
            .filter(|variable| !variable.is_empty())
        {
            let name = variable.iter().position(|byte| *byte == b'=').unwrap_or(0);
            if name == 0 {
                return Err(StepError::new("read the box's environment", Errno::INVAL));
            }
            variables.push(CString::new(variable).step("read the box's environment")?);
        }
        for (name, value) in ordinary(start.profile) {
            let given = |variable: &CString| {
                let rest = variable.as_bytes().strip_prefix(name.as_bytes());
                rest.is_some_and(|rest| rest.first() == Some(&b'='))
            };
            if !variables.iter().any(given) {
                let variable = format!("{name}={value}");
                variables.push(CString::new(variable).step("write the box's environment")?);
            }
        }
        Ok(Self(variables))
    }

    pub(super) fn variables(&self) -> &[CString] {
        &self.0
    }
}

fn ordinary(profile: Profile) -> [(&'static str, &'static str); 5] {
    let (home, user) = match profile {
        Profile::Locked => ("/home/agent", "agent"),
        Profile::Root => ("/root", "root"),
    };
    [
        (
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        ),
        ("HOME", home),
        ("USER", user),
        ("LOGNAME", user),
        ("LANG", "C.UTF-8"),
    ]
}

/// Who the box's programs are, inside.
pub(super) fn user_id(profile: Profile) -> u32 {
    match profile {
        Profile::Locked => AGENT_ID,
        Profile::Root => 0,
    }
}
