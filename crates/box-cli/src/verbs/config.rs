//! `box config`: each setting, its value and where it came from. Changes nothing.

use super::{Ended, Print};
use crate::complaint::Complaint;
use crate::host;
use crate::output::{Format, Ink, table};
use box_server::settings::{Origin, Settings, Shown};
use serde::Serialize;

/// Show the settings, and where each comes from
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  box config\n  box config --json\n\n\
    Settings are lines of one TOML file, which need not be there; a host takes them when it starts\n\
    (`box serve --stop`, then any verb). `BOX_DATA_DIR`, `BOX_RUN_DIR` and `BOX_CONFIG` move the folders\n\
    and the file.")]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) print: Print,
}

/// One line, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Line {
    key: &'static str,
    value: String,
    /// `default`, `environment`, or the file.
    origin: String,
}

pub(super) fn run(args: &Args) -> Ended {
    let mut output = args.print.output();
    let lines = lines()?;
    match output.format() {
        Format::Json => output.object(&lines)?,
        Format::Text => {
            let mut rows = vec![["SETTING", "VALUE", "FROM"].map(str::to_owned).to_vec()];
            rows.extend(lines.iter().map(|line| {
                let value = if line.value.is_empty() {
                    "–"
                } else {
                    &line.value
                };
                vec![line.key.to_owned(), value.to_owned(), line.origin.clone()]
            }));
            output.data(table::columns(&rows).as_bytes())?;
            if lines.iter().all(|line| !line.origin.starts_with('/')) {
                let file = host::paths()?.config;
                let note = format!("no settings in `{}`", file.display());
                let note = output.err_paint().with(Ink::Dim, &note);
                output.note(&note);
            }
        }
    }
    Ok(0)
}

fn lines() -> Result<Vec<Line>, Complaint> {
    let paths = host::paths()?;
    let settings = Settings::load(&paths.config).map_err(|error| {
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        let complaint = Complaint::usage("bad-settings", error.to_string());
        let complaint = match cause {
            Some(cause) => complaint.caused_by(cause),
            None => complaint,
        };
        match error.hint() {
            Some(hint) => complaint.hinted(hint),
            None => complaint,
        }
    })?;
    let folders = [
        ("BOX_DATA_DIR", &paths.data),
        ("BOX_RUN_DIR", &paths.run),
        ("BOX_CONFIG", &paths.config),
    ];
    let folders = folders.map(|(variable, path)| Line {
        key: variable,
        value: path.display().to_string(),
        origin: match std::env::var_os(variable) {
            Some(value) if !value.is_empty() => "environment".to_owned(),
            Some(_) | None => "default".to_owned(),
        },
    });
    let settings = settings.shown().into_iter().map(line);
    Ok(folders.into_iter().chain(settings).collect())
}

fn line(shown: Shown) -> Line {
    Line {
        key: shown.key,
        value: shown.value,
        origin: match shown.origin {
            Origin::Default => "default".to_owned(),
            Origin::File(path) => path.display().to_string(),
            Origin::Environment(name) => format!("variable {name}"),
        },
    }
}
