//! `box cp`: copies between a box and the caller's folder, by the rules of `docker cp`.

use super::{Ended, Print};
use crate::complaint::Complaint;
use crate::copying::{self, Copied, Incoming, Outgoing};
use crate::output::table::bytes;
use crate::output::{Format, Output};
use box_api::BoxName;
use std::io::IsTerminal as _;
use std::path::Path;

/// Copy files out of a box, or into it
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box cp demo:report.pdf .\n  \
    box cp demo:/workspace/dist ./dist\n  \
    box cp notes.md demo:docs/\n  \
    box cp src/. demo:/workspace\n  \
    box cp demo:/workspace - | tar t\n\n\
    Paths of a box begin in its workspace. A folder goes into a folder that is there, and becomes one\n\
    that is not; `/.` at its end means what is in it. `-` is a tar on standard input or output.\n\
    A box that is stopped is started.")]
pub(super) struct Args {
    /// What: `<box>:<path>`, a path here, or `-`
    #[arg(value_name = "FROM")]
    from: String,
    /// Where to: `<box>:<path>`, a path here, or `-`
    #[arg(value_name = "TO")]
    to: String,
    #[command(flatten)]
    pub(super) print: Print,
}

/// One side of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Side<'a> {
    InBox { name: BoxName, path: &'a str },
    Here(&'a str),
    Stream,
}

impl<'a> Side<'a> {
    /// A path here that looks like a box's is written `./a:b`.
    fn parse(text: &'a str) -> Self {
        if text == "-" {
            return Self::Stream;
        }
        let named = text.split_once(':');
        match named.and_then(|(name, path)| Some((BoxName::parse(name).ok()?, path))) {
            Some((name, "")) => Self::InBox { name, path: "." },
            Some((name, path)) => Self::InBox { name, path },
            None => Self::Here(text),
        }
    }
}

pub(super) fn run(args: &Args) -> Ended {
    let mut output = args.print.output();
    let copied = match (Side::parse(&args.from), Side::parse(&args.to)) {
        (Side::InBox { name, path }, Side::Here(to)) => {
            copying::fetch(&mut output, &name, &Incoming { from: path, to })?
        }
        (Side::InBox { name, path }, Side::Stream) => {
            if std::io::stdout().is_terminal() {
                return Err(
                    Complaint::usage("no-pipe", "a tar is nothing for a terminal")
                        .hinted("send it on: `… - | tar t`"),
                );
            }
            copying::fetch_tar(&mut output, &name, path)?;
            return Ok(0);
        }
        (Side::Here(from), Side::InBox { name, path }) => send(&mut output, from, &name, path)?,
        (Side::Stream, Side::InBox { name, path }) => {
            if std::io::stdin().is_terminal() {
                return Err(Complaint::usage("no-pipe", "nobody types a tar")
                    .hinted("give it on standard input: `tar c . | box cp - …`"));
            }
            copying::send_tar(&mut output, &name, path)?;
            return Ok(0);
        }
        (Side::Here(_) | Side::Stream, Side::Here(_) | Side::Stream) => {
            return Err(Complaint::usage("no-box", "neither side is in a box")
                .hinted("a path of a box is written `<box>:<path>`"));
        }
        (Side::InBox { .. }, Side::InBox { .. }) => {
            return Err(Complaint::usage("two-boxes", "both sides are in a box")
                .hinted("copy out first, then in"));
        }
    };
    told(&mut output, args, copied)?;
    Ok(0)
}

fn send(output: &mut Output, from: &str, name: &BoxName, to: &str) -> Result<Copied, Complaint> {
    // `..` and the like have a name too: that of the folder they mean.
    let meant = box_copy::name_of(from).map(str::to_owned).or_else(|| {
        let whole = Path::new(from).canonicalize().ok()?;
        Some(whole.file_name()?.to_str()?.to_owned())
    });
    let what = Outgoing {
        from: Path::new(from),
        name: meant.as_deref().unwrap_or_default(),
        content: box_copy::means_content(from),
        to,
    };
    copying::send(output, name, &what)
}

fn told(output: &mut Output, args: &Args, copied: Copied) -> Result<(), Complaint> {
    if output.format() == Format::Json {
        return output.object(&copied);
    }
    let Copied {
        entries,
        bytes: count,
        left_out,
    } = copied;
    let to = &args.to;
    let things = if entries == 1 {
        "1 entry".to_owned()
    } else {
        format!("{entries} entries")
    };
    output.note(&format!("copied {things} ({}) to `{to}`", bytes(count)));
    if left_out > 0 {
        output.note(&format!(
            "{left_out} left out: no files, folders or links, or links that lead out"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Side;
    use box_api::BoxName;

    #[test]
    fn a_side_is_a_box_a_path_or_a_stream() {
        let name = BoxName::parse("demo").unwrap();
        let in_box = |path| Side::InBox {
            name: name.clone(),
            path,
        };
        assert_eq!(Side::parse("demo:/a:b"), in_box("/a:b"));
        assert_eq!(Side::parse("demo:"), in_box("."));
        assert_eq!(Side::parse("./demo:x"), Side::Here("./demo:x"));
        assert_eq!(Side::parse("Upper:x"), Side::Here("Upper:x"));
        assert_eq!(Side::parse("-"), Side::Stream);
    }
}
