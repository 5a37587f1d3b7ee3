//! The unit a manager of services starts the host by (systemd.service(5), systemd.kill(5)).

use super::layout::Scope;
use crate::child;
use crate::complaint::Complaint;
use std::path::Path;
use std::process::Stdio;

pub(crate) const NAME: &str = "box.service";
/// There while systemd rules (`sd_booted(3)`).
const SYSTEMD_RUNS: &str = "/run/systemd/system";

/// `KillMode=process`: boxes, agents and the way out outlive the host. `Delegate`: the host divides
/// its cgroup among the boxes; the subgroup keeps a host that is started again out of the way of
/// "no internal processes" (cgroups(7)).
pub(super) fn text(scope: Scope, program: &Path) -> String {
    let wanted_by = match scope {
        Scope::Machine => "multi-user.target",
        Scope::User => "default.target",
    };
    format!(
        "[Unit]\n\
         Description=Host of Boxes, machines for coding agents\n\
         Documentation=man:box(1)\n\
         After=network.target\n\
         \n\
         [Service]\n\
         ExecStart={} serve\n\
         KillMode=process\n\
         Delegate=yes\n\
         DelegateSubgroup=supervisor\n\
         Restart=on-failure\n\
         RestartSec=1\n\
         TasksMax=infinity\n\
         LimitNOFILE=1048576\n\
         \n\
         [Install]\n\
         WantedBy={wanted_by}\n",
        program.display()
    )
}

/// Whether there is a manager that would start it.
pub(crate) fn has_manager() -> bool {
    Path::new(SYSTEMD_RUNS).is_dir()
}

/// Has the manager do something.
///
/// # Errors
/// When it does not.
pub(crate) fn systemctl(scope: Scope, words: &[&str]) -> Result<(), Complaint> {
    let mut command = child::command("systemctl");
    if scope == Scope::User {
        command.arg("--user");
    }
    command.args(words).stdin(Stdio::null());
    let line = format!("systemctl {}", words.join(" "));
    let could_not = || Complaint::failed("service", format!("`{line}` did not work"));
    let ended = command
        .output()
        .map_err(|error| could_not().caused_by(error))?;
    if ended.status.success() {
        return Ok(());
    }
    Err(could_not().caused_by(String::from_utf8_lossy(&ended.stderr).trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_leaves_boxes_alone_and_may_divide_its_cgroup() {
        let text = text(Scope::Machine, Path::new("/usr/local/bin/box"));
        for line in [
            "ExecStart=/usr/local/bin/box serve",
            "KillMode=process",
            "Delegate=yes",
            "WantedBy=multi-user.target",
        ] {
            assert!(text.lines().any(|found| found == line), "no `{line}`");
        }
        assert!(super::text(Scope::User, Path::new("/x")).contains("WantedBy=default.target"));
    }
}
