//! Failures of durable processes, their logs, and ports of boxes.

use super::{Engine, Failed, Refused, Usage, find, store, told, told_by_engine};
use box_api::Problem;
use box_core::expose::ExposeError;
use box_core::logs::LogsError;
use box_core::processes::ProcessError;

pub(crate) fn process(error: ProcessError) -> Problem {
    match error {
        ProcessError::Find(error) => find(error),
        ProcessError::NoCommand => told(Usage, "no-command", &error),
        ProcessError::Terminal => told(Usage, "no-terminal", &error),
        ProcessError::Name { .. } => told(Usage, "bad-process-name", &error),
        ProcessError::NotRunning { ref name, .. } => {
            told(Failed, "not-running", &error).hinted(format!("start it with `box start {name}`"))
        }
        ProcessError::Exists {
            ref name,
            ref process,
        } => told(Failed, "process-runs", &error).hinted(format!(
            "choose another name, or end it with `box kill {name} {process}`"
        )),
        ProcessError::TooMany(ref name) => told(Refused, "too-many-processes", &error).hinted(
            format!("end one with `box kill {name} <process>`; `box ps {name}` shows them"),
        ),
        ProcessError::Unknown {
            ref name,
            ref known,
            ..
        } => {
            let problem = told(Failed, "unknown-process", &error);
            match known.as_slice() {
                [] => problem.hinted(format!(
                    "it has none; `box exec --detach {name} -- <command>` starts one"
                )),
                known => problem.hinted(format!("processes: {}", quoted(known))),
            }
        }
        ProcessError::Signal(_) => told(Usage, "bad-signal", &error),
        ProcessError::Stays { .. } => told(Engine, "process-stays", &error),
        ProcessError::NoProcesses(_) => told(Engine, "no-processes", &error),
        ProcessError::Engine { ref source, .. } => told_by_engine("process", &error, source),
        ProcessError::Store(error) => store(error),
    }
}

pub(crate) fn logs(error: LogsError) -> Problem {
    match error {
        LogsError::Find(error) => find(error),
        LogsError::Nothing(ref name) => told(Failed, "no-logs", &error).hinted(format!(
            "what an agent said is in `box attach {name}`; \
             `box exec --detach {name} -- <command>` starts a process with a log"
        )),
        LogsError::UnknownProcess { ref known, .. } => told(Failed, "unknown-process", &error)
            .hinted(format!("processes with a log: {}", quoted(known))),
        LogsError::Read { .. } => told(Engine, "no-logs", &error),
        LogsError::Store(error) => store(error),
    }
}

pub(crate) fn expose(error: ExposeError) -> Problem {
    match error {
        ExposeError::Find(error) => find(error),
        ExposeError::Zero => told(Usage, "bad-port", &error),
        ExposeError::Already { ref name, port, .. } => told(Failed, "port-shown", &error).hinted(
            format!("take it away first with `box expose --remove {name} {port}`"),
        ),
        ExposeError::Taken { .. } => told(Failed, "port-busy", &error)
            .hinted("choose another port of this machine, or none: one that is free is taken then"),
        ExposeError::Listen { ref source, .. } => {
            let problem = told(Failed, "port-busy", &error);
            if source.kind() == std::io::ErrorKind::PermissionDenied {
                return problem.hinted("ports below 1024 are root's; choose a higher one");
            }
            problem.hinted(
                "choose another port of this machine, or none: one that is free is taken then",
            )
        }
        ExposeError::TooMany => told(Refused, "too-many-ports", &error)
            .hinted("take one away with `box expose --remove <box> <port>`"),
        ExposeError::Unknown { .. } => {
            told(Failed, "port-not-shown", &error).hinted("`box expose --list` shows them")
        }
        ExposeError::Store(error) => store(error),
    }
}

fn quoted(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}
