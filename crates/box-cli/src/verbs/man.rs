//! `box man`: the manual, one page a verb. From the one table of verbs.

use super::Ended;
use crate::complaint::Complaint;
use crate::identity;
use crate::output::{Format, Output};
use clap::Command;
use clap_mangen::Man;
use std::io;
use std::path::PathBuf;

/// Print a page of the manual
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  box man run | man -l -\n  box man --all ~/.local/share/man/man1\n\n\
    `box install` puts all pages where man(1) looks."
)]
pub(super) struct Args {
    /// A verb, such as `run` or `credential add`; none: the first page
    #[arg(value_name = "VERB", conflicts_with = "all")]
    verb: Vec<String>,
    /// Write every page into this folder
    #[arg(long, value_name = "FOLDER")]
    all: Option<PathBuf>,
}

/// A page and the name of its file.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) file: String,
    pub(super) text: Vec<u8>,
}

pub(super) fn run(args: &Args) -> Ended {
    let mut output = Output::new(Format::Text);
    let pages = pages().map_err(|error| unwritable("a page of the manual", error))?;
    let Some(folder) = &args.all else {
        let wanted = format!(
            "{}.1",
            [&["box".to_owned()], &*args.verb].concat().join("-")
        );
        let page = pages.iter().find(|page| page.file == wanted);
        let page = page.ok_or_else(|| {
            let title = format!("there is no verb `{}`", args.verb.join(" "));
            Complaint::usage("no-page", title).hinted("`box --help` lists the verbs")
        })?;
        output.data(&page.text)?;
        return Ok(0);
    };
    let could_not = |error| unwritable(&format!("the manual into `{}`", folder.display()), error);
    std::fs::create_dir_all(folder).map_err(could_not)?;
    for page in &pages {
        std::fs::write(folder.join(&page.file), &page.text).map_err(could_not)?;
    }
    output.note(&format!(
        "{} pages are in `{}`",
        pages.len(),
        folder.display()
    ));
    Ok(0)
}

fn unwritable(what: &str, error: io::Error) -> Complaint {
    Complaint::failed("manual", format!("could not write {what}")).caused_by(error)
}

/// Every page, the first about `box` itself.
///
/// # Errors
/// None that a page in memory could meet.
pub(super) fn pages() -> io::Result<Vec<Page>> {
    let mut pages = Vec::new();
    write(super::table(), "box", &mut pages)?;
    Ok(pages)
}

fn write(command: Command, name: &str, pages: &mut Vec<Page>) -> io::Result<()> {
    let verbs: Vec<Command> = command.get_subcommands().cloned().collect();
    let mut text = Vec::new();
    Man::new(command)
        .title(name.to_uppercase())
        .source(format!("box {}", identity::VERSION))
        .render(&mut text)?;
    pages.push(Page {
        file: format!("{name}.1"),
        text,
    });
    for verb in verbs {
        let below = format!("{name}-{}", verb.get_name());
        write(verb, &below, pages)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_has_a_page_with_its_example() {
        let pages = pages().unwrap();
        let text = |file: &str| {
            let page = pages.iter().find(|page| page.file == file);
            let page = page.unwrap_or_else(|| panic!("no {file}"));
            String::from_utf8(page.text.clone()).unwrap()
        };
        assert!(text("box.1").contains("Gives a coding agent a machine of its own"));
        assert!(text("box-run.1").contains("box run claude"));
        assert!(text("box-credential-add.1").contains("box credential add claude"));
        for verb in super::super::table().get_subcommands() {
            assert!(text(&format!("box-{}.1", verb.get_name())).contains("box "));
        }
        assert!(pages.iter().all(|page| page.file != "box-egress.1"));
        assert!(!text("box-serve.1").contains("step"), "a hidden option");
    }
}
