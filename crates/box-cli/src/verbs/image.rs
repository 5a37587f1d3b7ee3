//! `box image`: what boxes start from.

mod build;
mod prune;

use super::{Ended, Print, machine};
use crate::age;
use crate::client::unexpected;
use crate::host::{self, OtherBuild};
use crate::output::{Format, Output, table};
use box_api::control::{ImageAsk, ImageInfo, Outcome, Request};

/// What is made ready when nothing is named.
pub(super) const DEFAULT: &str = "default";

/// List, prepare, build or remove images
#[derive(Debug, clap::Args)]
#[command(subcommand_value_name = "VERB", subcommand_help_heading = "Verbs")]
#[command(after_help = "Examples:\n  \
    box image list\n  \
    box image prepare oci:alpine:3\n  \
    box image build Containerfile --name tools\n  \
    box image prune")]
pub(super) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// List the images that are ready
    #[command(after_help = "Example:\n  box image list")]
    List {
        #[command(flatten)]
        print: Print,
    },
    /// Make an image ready, so that the first box does not wait for it
    #[command(after_help = "Examples:\n  \
        box image prepare\n  \
        box image prepare debian:trixie\n  \
        box image prepare oci:registry.example/team/app:1.2\n  \
        box image prepare file:root.tar\n  \
        box image prepare --refresh oci:alpine\n\n\
        `oci:` is pulled from its registry, with the logins of `docker login` and `podman login`. \
        `file:` is a tar of a root file system, or what `docker save` and `skopeo copy` write, \
        plain, gzip or zstd.")]
    Prepare {
        /// `default`, `debian:<suite>`, `oci:<name>`, `built:<name>` or `file:<archive>`
        #[arg(value_name = "IMAGE", default_value = DEFAULT)]
        image: String,
        /// Look it up or make it again, though it is ready; boxes keep the one they have
        #[arg(long)]
        refresh: bool,
        #[command(flatten)]
        print: Print,
    },
    Build(build::Args),
    Prune(prune::Args),
    /// Remove an image no box needs
    #[command(
        visible_alias = "rm",
        after_help = "Example:\n  box image remove debian:trixie"
    )]
    Remove {
        #[arg(value_name = "IMAGE")]
        image: String,
        #[command(flatten)]
        print: Print,
    },
}

impl Args {
    pub(super) fn json(&self) -> bool {
        match &self.verb {
            Verb::List { print } | Verb::Prepare { print, .. } | Verb::Remove { print, .. } => {
                print.json
            }
            Verb::Build(args) => args.print.json,
            Verb::Prune(args) => args.print.json,
        }
    }
}

pub(super) fn run(args: Args) -> Ended {
    match args.verb {
        Verb::List { print } => list(&mut print.output()),
        Verb::Prepare {
            image,
            refresh,
            print,
        } => {
            let image = machine::image(&image)?;
            let request = if refresh {
                Request::Image(ImageAsk::Refresh { image })
            } else {
                Request::ImagePrepare { image }
            };
            prepare(&mut print.output(), &request)
        }
        Verb::Build(args) => build::run(&args),
        Verb::Prune(args) => prune::run(&args),
        Verb::Remove { image, print } => remove(&mut print.output(), &image),
    }
}

fn list(output: &mut Output) -> Ended {
    let client = host::reach(output, OtherBuild::Bear)?;
    let outcome = client.ask(output, &Request::ImageList)?;
    let Outcome::Images { images } = outcome else {
        return Err(unexpected(&outcome));
    };
    if output.format() == Format::Json {
        output.object(&images)?;
    } else if images.is_empty() {
        output.note("no image is ready; `box image prepare` makes the default one");
    } else {
        output.data(shown(&images, age::now_ms()).as_bytes())?;
    }
    Ok(0)
}

fn shown(images: &[ImageInfo], now_ms: i64) -> String {
    let mut rows = vec![
        ["IMAGE", "SIZE", "AGE", "DIGEST"]
            .map(str::to_owned)
            .to_vec(),
    ];
    rows.extend(images.iter().map(|image| {
        let digest = image.digest.trim_start_matches("sha256:");
        vec![
            image.image.clone(),
            table::bytes(image.bytes),
            age::short(image.created_at_ms, now_ms),
            digest.chars().take(12).collect(),
        ]
    }));
    table::columns(&rows)
}

fn prepare(output: &mut Output, request: &Request) -> Ended {
    let client = host::reach(output, OtherBuild::Bear)?;
    let outcome = client.ask(output, request)?;
    ready(output, outcome)
}

fn ready(output: &mut Output, outcome: Outcome) -> Ended {
    let Outcome::Image(ready) = outcome else {
        return Err(unexpected(&outcome));
    };
    match output.format() {
        Format::Json => output.object(&ready)?,
        Format::Text => {
            output.note(&format!(
                "image `{}` is ready ({})",
                ready.image,
                table::bytes(ready.bytes)
            ));
        }
    }
    Ok(0)
}

fn remove(output: &mut Output, image: &str) -> Ended {
    let request = Request::ImageRemove {
        image: image.to_owned(),
    };
    let outcome = host::reach(output, OtherBuild::Bear)?.ask(output, &request)?;
    match output.format() {
        Format::Json => output.object(&outcome)?,
        Format::Text => output.note(&format!("image `{image}` is removed")),
    }
    Ok(0)
}
