//! `box search`: finds what was said and done.

use super::{Ended, Print};
use crate::age;
use crate::client::unexpected;
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::output::{Format, Ink, Output, Paint, visible};
use box_api::control::{Outcome, Request};
use box_api::search::{Found, HITS_MAX, Hit, SearchAsk, SearchKind, SearchOrder};
use box_api::{BoxName, ThreadId};

/// Find what was said and done, in every box of yours
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box search invoice total\n  \
    box search --box shop --kind command \"npm test\"\n  \
    box search migration --newest --limit 5\n\n\
    All of the words must be there; the last may be the beginning of one. Several words in quotes \
    are looked for side by side.\n\
    What looked like a secret was left out before anything was kept for the search.")]
pub(super) struct Args {
    #[arg(value_name = "WORD", required = true)]
    words: Vec<String>,
    /// Only in this box
    #[arg(long = "box", value_name = "NAME", value_parser = BoxName::parse)]
    name: Option<BoxName>,
    /// Only in this thread
    #[arg(long, value_name = "ID", value_parser = thread)]
    thread: Option<ThreadId>,
    /// Only `prompt`, `text`, `tool` or `command`
    #[arg(long, value_name = "KIND", value_parser = SearchKind::parse)]
    kind: Option<SearchKind>,
    /// The newest first, not what fits best
    #[arg(long)]
    newest: bool,
    /// At most so many
    #[arg(long, value_name = "COUNT", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=i64::from(HITS_MAX)))]
    limit: u32,
    #[command(flatten)]
    pub(super) print: Print,
}

fn thread(text: &str) -> Result<ThreadId, String> {
    ThreadId::try_from(text.to_owned()).map_err(|error| error.to_string())
}

pub(super) fn run(args: Args) -> Ended {
    let mut output = args.print.output();
    let order = if args.newest {
        SearchOrder::Newest
    } else {
        SearchOrder::Relevance
    };
    // What was quoted for the shell is looked for side by side.
    let quoted = |word: String| {
        if word.contains(char::is_whitespace) && !word.contains('"') {
            format!("\"{word}\"")
        } else {
            word
        }
    };
    let words: Vec<String> = args.words.into_iter().map(quoted).collect();
    let asked = SearchAsk {
        words: words.join(" "),
        name: args.name,
        thread: args.thread,
        kind: args.kind,
        order,
        limit: args.limit,
    };
    let client = host::reach(&mut output, OtherBuild::Bear)?;
    let outcome = client.ask(&mut output, &Request::Search(asked))?;
    let Outcome::Found(found) = outcome else {
        return Err(unexpected(&outcome));
    };
    match output.format() {
        Format::Json => output.object(&found)?,
        Format::Text => show(&mut output, &found)?,
    }
    Ok(0)
}

fn show(output: &mut Output, found: &Found) -> Result<(), Complaint> {
    let (paint, now_ms) = (output.paint(), age::now_ms());
    for hit in &found.hits {
        output.data(shown(hit, paint, now_ms).as_bytes())?;
    }
    if found.hits.is_empty() {
        output.note("nothing found");
    } else if found.more {
        output.note("there is more; `--limit` and `--box` say how much of what");
    }
    if found.threads_left > 0 {
        let left = found.threads_left;
        output.note(&format!(
            "{left} older conversations are still being taken in"
        ));
    }
    Ok(())
}

/// Two lines: where and when, and the text around the words.
fn shown(hit: &Hit, paint: Paint, now_ms: i64) -> String {
    let snippet = hit.snippet.iter().map(|part| {
        let text = visible(&part.text);
        if part.found {
            paint.with(Ink::Bold, &text)
        } else {
            text.into_owned()
        }
    });
    let place = format!(
        "{}  {}  {}  {} ago  {}",
        hit.name,
        hit.thread,
        hit.kind.word(),
        age::short(hit.at_ms, now_ms),
        visible(&hit.title)
    );
    let snippet: String = snippet.collect();
    format!("{}\n    {}\n", paint.with(Ink::Dim, &place), snippet.trim())
}
