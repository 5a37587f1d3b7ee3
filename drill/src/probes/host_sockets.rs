//! The sockets over which the host is told what to do.

use crate::{Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "host-sockets",
    claim: "the control sockets of host, way out and boxes are not there for a box, by path or abstract name",
    attempt,
};

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let control = &stage.facts().control_socket;
    let egress = control.replace("control.sock", "egress.sock");
    let look = |place: Place, line: &str| stage.shell_attempt(place, line);
    let attacks = [
        look(Place::Target, &format!("test -e {control}"))?,
        look(Place::Target, &format!("test -e {egress}"))?,
        look(
            Place::Target,
            "find / -xdev -name '*.sock' 2>/dev/null | grep -q .",
        )?,
        look(Place::Target, "grep -q sock /proc/net/unix")?,
    ];
    let controls = [
        look(Place::Outside, &format!("test -S {control}"))?,
        look(Place::Outside, &format!("test -S {egress}"))?,
        look(Place::Outside, "grep -q control.sock /proc/net/unix")?,
    ];
    Ok(Finding::judge(&attacks, &controls))
}
