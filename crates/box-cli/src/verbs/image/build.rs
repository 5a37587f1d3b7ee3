//! `box image build`: has a container builder of this machine build an image, and takes it over.
//!
//! The steps of a Containerfile run where that builder runs them, on this machine with its network,
//! not in a box.

use super::super::{Ended, Print};
use super::ready;
use crate::child;
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use box_api::control::{ImageAsk, Request};
use box_api::{Problem, ProblemKind};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Stdio;

const NAME_CHARS_MAX: usize = 63;
const FILES: [&str; 2] = ["Containerfile", "Dockerfile"];

/// Build an image from a Containerfile, with buildah or docker
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box image build\n  \
    box image build tools/Containerfile --context . --name tools\n  \
    box new web --image built:tools\n\n\
    Its steps run in that builder, on this machine and with its network, not in a box.")]
pub(super) struct Args {
    /// The Containerfile, or the folder it is in
    #[arg(value_name = "CONTAINERFILE", default_value = ".")]
    file: PathBuf,
    /// The folder it copies from; the Containerfile's own if not given
    #[arg(long, value_name = "FOLDER")]
    context: Option<PathBuf>,
    /// Name of the image, used as `built:<NAME>`; the folder's name if not given
    #[arg(long)]
    name: Option<String>,
    /// Which builder, if there is more than one
    #[arg(long, value_enum)]
    with: Option<Builder>,
    #[command(flatten)]
    pub(super) print: Print,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Builder {
    Buildah,
    Docker,
}

/// What is to be built, all of it there.
#[derive(Debug, PartialEq, Eq)]
struct Order {
    file: PathBuf,
    context: PathBuf,
    name: String,
}

pub(super) fn run(args: &Args) -> Ended {
    let mut output = args.print.output();
    let order = order(args)?;
    let (builder, program) = find(args.with, std::env::var_os("PATH").as_deref())?;
    // Gone when dropped; open to nobody else.
    let folder = tempfile::Builder::new().prefix("box-build-").tempdir();
    let folder = folder.map_err(|error| {
        Complaint::engine("no-room", "could not make a folder for the image").caused_by(error)
    })?;
    let archive = folder.path().join("image.tar");
    output.note(&format!(
        "building with `{}`; its steps run on this machine, not in a box",
        builder.name()
    ));
    for words in builder.steps(&order, &archive) {
        step(builder, &program, &words)?;
    }
    let request = Request::Image(ImageAsk::Adopt {
        archive: text(&archive)?,
        name: order.name,
    });
    let client = host::reach(&mut output, OtherBuild::Bear)?;
    let outcome = client.ask(&mut output, &request)?;
    ready(&mut output, outcome)
}

fn order(args: &Args) -> Result<Order, Complaint> {
    let missing = |path: &Path, error: std::io::Error| {
        let title = format!("there is no `{}`", path.display());
        Complaint::usage("no-containerfile", title).caused_by(error)
    };
    let place = std::fs::canonicalize(&args.file).map_err(|error| missing(&args.file, error))?;
    let file = if place.is_dir() {
        let found = FILES
            .map(|name| place.join(name))
            .into_iter()
            .find(|path| path.is_file());
        found.ok_or_else(|| {
            let title = format!("there is no Containerfile in `{}`", args.file.display());
            Complaint::usage("no-containerfile", title)
                .hinted("name it: `box image build <Containerfile>`")
        })?
    } else {
        place
    };
    let context = match &args.context {
        Some(context) => std::fs::canonicalize(context).map_err(|error| missing(context, error))?,
        None => file.parent().unwrap_or(Path::new("/")).to_owned(),
    };
    let own = || {
        context
            .file_name()
            .and_then(OsStr::to_str)
            .map(str::to_lowercase)
    };
    let name = args.name.clone().or_else(own).unwrap_or_default();
    if !is_name(&name) {
        let title = format!("`{name}` is no name for an image");
        return Err(Complaint::usage("bad-image-name", title).hinted(
            "give one with `--name`: small letters, digits, `-`, `_` and `.`, at most 63",
        ));
    }
    Ok(Order {
        file,
        context,
        name,
    })
}

/// Also a name both builders take for a repository.
fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let between = |c: char| plain(c) || ".-_".contains(c);
    let doubled = ["..", "__", "._", "_.", ".-", "-.", "_-", "-_"];
    text.len() <= NAME_CHARS_MAX
        && text.starts_with(plain)
        && text.ends_with(plain)
        && text.chars().all(between)
        && !doubled.iter().any(|pair| text.contains(pair))
}

/// The builder that was asked for, else the first there is. buildah needs no daemon.
fn find(wanted: Option<Builder>, path: Option<&OsStr>) -> Result<(Builder, PathBuf), Complaint> {
    let there = |builder: Builder| {
        let mut folders = std::env::split_paths(path.unwrap_or_default());
        folders.find_map(|folder| {
            let program = folder.join(builder.name());
            program.is_file().then_some((builder, program))
        })
    };
    let found = match wanted {
        Some(builder) => there(builder),
        None => there(Builder::Buildah).or_else(|| there(Builder::Docker)),
    };
    found.ok_or_else(|| {
        let what = wanted.map_or("buildah` or `docker", Builder::name);
        let title = format!("there is no `{what}` to build with");
        Problem::new(ProblemKind::Refused, "no-builder", title)
            .hinted("install one, `apt-get install buildah`; or build elsewhere and use `file:` with what `docker save` writes")
            .into()
    })
}

impl Builder {
    fn name(self) -> &'static str {
        match self {
            Self::Buildah => "buildah",
            Self::Docker => "docker",
        }
    }

    /// What it is called with, one after the other. What it built stays its own, under this name,
    /// so that building again is quick.
    fn steps(self, order: &Order, archive: &Path) -> [Vec<OsString>; 2] {
        let tag = match self {
            Self::Buildah => format!("localhost/box-built/{}", order.name),
            Self::Docker => format!("box-built/{}", order.name),
        };
        let words = |words: &[&OsStr]| words.iter().map(|word| (*word).to_owned()).collect();
        let (tag, file) = (OsStr::new(&tag), order.file.as_os_str());
        let context = order.context.as_os_str();
        let build = ["--file".as_ref(), file, "--tag".as_ref(), tag, context];
        match self {
            Self::Buildah => {
                let mut to = OsString::from("docker-archive:");
                to.push(archive);
                [
                    [
                        words(&["build".as_ref(), "--layers".as_ref()]),
                        words(&build),
                    ]
                    .concat(),
                    words(&["push".as_ref(), "--quiet".as_ref(), tag, &to]),
                ]
            }
            Self::Docker => [
                [words(&["build".as_ref()]), words(&build)].concat(),
                words(&["save".as_ref(), "--output".as_ref(), archive.as_ref(), tag]),
            ],
        }
    }
}

/// Runs it to its end; what it says goes to standard error.
fn step(builder: Builder, program: &Path, words: &[OsString]) -> Result<(), Complaint> {
    let failed = || {
        let verb = words
            .first()
            .and_then(|verb| verb.to_str())
            .unwrap_or_default();
        let title = format!(
            "could not build the image: `{} {verb}` failed",
            builder.name()
        );
        Complaint::failed("image-not-built", title)
    };
    let status = child::command(program)
        .args(words)
        .stdin(Stdio::null())
        .stdout(std::io::stderr())
        .status()
        .map_err(|error| failed().caused_by(error))?;
    if status.success() {
        Ok(())
    } else {
        Err(failed().caused_by(status).hinted("what it said is above"))
    }
}

fn text(path: &Path) -> Result<String, Complaint> {
    let whole = path.to_str().map(str::to_owned);
    whole.ok_or_else(|| {
        let title = format!("the path `{}` is not UTF-8", path.display());
        Complaint::usage("image-not-found", title)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_containerfile_is_found_and_names_the_image() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().canonicalize().unwrap().join("My.App");
        std::fs::create_dir_all(place.join("sub")).unwrap();
        std::fs::write(place.join("Dockerfile"), "").unwrap();
        let args = |file: &Path, context: Option<&Path>| Args {
            file: file.to_owned(),
            context: context.map(Path::to_owned),
            name: None,
            with: None,
            print: Print { json: false },
        };
        let built = order(&args(&place, None)).unwrap();
        let expected = Order {
            file: place.join("Dockerfile"),
            context: place.clone(),
            name: "my.app".to_owned(),
        };
        assert_eq!(built, expected);
        let sub = place.join("sub");
        let built = order(&args(&place.join("Dockerfile"), Some(&sub))).unwrap();
        assert_eq!((built.context, built.name.as_str()), (sub.clone(), "sub"));
        assert!(order(&args(&sub, None)).is_err());
        assert!(order(&args(&place.join("none"), None)).is_err());
    }

    #[test]
    fn names_are_those_a_repository_can_have() {
        for name in ["a", "tools-1.2", "a_b"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "A", "-a", "a-", "a..b", "a/b", "a b", &"a".repeat(64)] {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn buildah_is_preferred_and_no_builder_is_a_refusal_with_a_hint() {
        let folder = tempfile::tempdir().unwrap();
        let path = Some(folder.path().as_os_str());
        let complaint = find(None, path).unwrap_err();
        assert_eq!(complaint.code(), 3);
        let problem = complaint.problem().unwrap();
        assert_eq!(
            problem.title,
            "there is no `buildah` or `docker` to build with"
        );
        assert!(
            problem
                .hint
                .as_ref()
                .unwrap()
                .contains("apt-get install buildah")
        );
        std::fs::write(folder.path().join("docker"), "").unwrap();
        assert_eq!(find(None, path).unwrap().0, Builder::Docker);
        std::fs::write(folder.path().join("buildah"), "").unwrap();
        assert_eq!(find(None, path).unwrap().0, Builder::Buildah);
        assert_eq!(
            find(Some(Builder::Docker), path).unwrap().0,
            Builder::Docker
        );
    }
}
