//! What the kernel shows of process 1.

use crate::{Attempt, Finding, Place, Probe, Stage, StageError};
use box_api::control::Profile;

pub(super) const PROBE: Probe = Probe {
    name: "process-one-files",
    claim: "no descriptor, root, memory or name of process 1 can be opened, taken or changed",
    attempt,
};

/// As many as it has when it idles.
const DESCRIPTORS: u32 = 6;

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let mut attacks = stage.attempts(
        Place::Target,
        &[
            &["readlink", "/proc/1/root"],
            &["readlink", "/proc/1/cwd"],
            &["read", "/proc/1/maps"],
            &["read", "/proc/1/auxv"],
            &["read", "/proc/1/stack"],
            &["read", "/proc/1/syscall"],
            &["put", "/proc/1/comm", "drilled"],
        ],
    )?;
    if stage.facts().profile == Profile::Locked {
        // The root of a box owns these of every process in it: it may count descriptors, and have
        // its own box end first when memory is short.
        attacks.extend(stage.attempts(
            Place::Target,
            &[
                &["list", "/proc/1/fd"],
                &["list", "/proc/1/map_files"],
                &["put", "/proc/1/oom_score_adj", "1000"],
                &["put", "/proc/1/clear_refs", "1"],
            ],
        )?);
    }
    for descriptor in 0..DESCRIPTORS {
        let number = descriptor.to_string();
        let link = format!("/proc/1/fd/{number}");
        attacks.extend(stage.attempts(
            Place::Target,
            &[
                &["pidfd-getfd", "1", &number],
                &["readlink", &link],
                &["open", &link],
            ],
        )?);
    }
    // `EFAULT` would mean that it was allowed to look, at an address that is none.
    let looked = stage.act(Place::Target, &["process-vm-readv", "1", "0"])?;
    attacks.push(Attempt {
        what: "process-vm-readv 1".to_owned(),
        worked: looked.is_ok() || looked.to_string().contains("EFAULT"),
        saw: looked.to_string(),
    });
    let own = |act: &str| {
        let program = &stage.facts().program_inside;
        stage.shell_attempt(
            Place::Target,
            &format!(
                "sleep 60 & pid=$!; {program} {act} | grep -q '\"ok\"'; a=$?; kill $pid; exit $a"
            ),
        )
    };
    let controls = [
        own("list /proc/$pid/fd")?,
        own("readlink /proc/$pid/root")?,
        own("read /proc/$pid/maps")?,
        own("put /proc/$pid/oom_score_adj 1000")?,
    ];
    Ok(Finding::judge(&attacks, &controls))
}
