//! A server in the sibling.

use crate::{Attempt, Finding, Place, Probe, Stage, StageError};
use std::thread;
use std::time::{Duration, Instant};

pub(super) const PROBE: Probe = Probe {
    name: "sibling-network",
    claim: "a server in another box cannot be reached at any address",
    attempt,
};

const SERVER: &[&str] = &["timeout", "15", "python3", "-m", "http.server", "8009"];
const SERVER_TIME_MAX: Duration = Duration::from_secs(20);
const UP_TIME_MAX: Duration = Duration::from_secs(10);

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let reach = |place: Place, address: &str| {
        stage.attempt(
            place,
            &["connect", "tcp", &format!("{address}:8009"), "1000"],
        )
    };
    thread::scope(|scope| {
        let serving = scope.spawn(|| stage.run(Place::Sibling, SERVER, SERVER_TIME_MAX));
        let start = Instant::now();
        let mut up = reach(Place::Sibling, "127.0.0.1")?;
        while !up.worked && start.elapsed() < UP_TIME_MAX && !serving.is_finished() {
            up = reach(Place::Sibling, "127.0.0.1")?;
        }
        let attacks = [
            "127.0.0.1",
            "198.18.0.1",
            "198.18.0.2",
            "192.0.2.2",
            "10.0.0.1",
        ]
        .iter()
        .map(|address| reach(Place::Target, address))
        .collect::<Result<Vec<Attempt>, StageError>>()?;
        let stopped = stage.shell(Place::Sibling, "pkill -f '[h]ttp.server'")?;
        let controls = [
            up,
            Attempt {
                what: "stop the server again".to_owned(),
                worked: stopped.code == 0,
                saw: stopped.stderr,
            },
        ];
        Ok(Finding::judge(&attacks, &controls))
    })
}
