//! A port of a box that its owner shows.

use super::neighbour::while_it_runs;
use crate::{Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "exposed-to-loopback",
    claim: "a port that is shown is seen at 127.0.0.1 of the machine and nowhere else, and no longer once it is taken away",
    attempt,
};

const SERVER: &[&str] = &["timeout", "15", "python3", "-m", "http.server", "8010"];

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let host = &stage.facts().internet.host_v4;
    let reach =
        |place: Place, address: &str| stage.attempt(place, &["connect", "tcp", address, "1000"]);
    while_it_runs(
        stage,
        (Place::Sibling, SERVER),
        &|| reach(Place::Sibling, "127.0.0.1:8010"),
        |up| {
            let shown = stage.verb(&["expose", "sibling", "8010", "18010"])?;
            let seen = stage.shell_attempt(
                Place::Outside,
                "curl --silent --fail --max-time 5 --noproxy '*' http://127.0.0.1:18010/",
            )?;
            let mut attacks = vec![
                reach(Place::Outside, &format!("{host}:18010"))?,
                reach(Place::Outside, "[::1]:18010")?,
                reach(Place::Target, "127.0.0.1:18010")?,
                reach(Place::Target, &format!("{host}:18010"))?,
            ];
            let hidden = stage.verb(&["expose", "--remove", "sibling", "8010"])?;
            attacks.push(reach(Place::Outside, "127.0.0.1:18010")?);
            let stopped = stage.shell_attempt(Place::Sibling, "pkill -f '[h]ttp.server 8010'")?;
            let controls = [up, shown, seen, hidden, stopped];
            Ok(Finding::judge(&attacks, &controls))
        },
    )
}
