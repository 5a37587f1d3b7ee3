//! What `new --here` and `run --here` share: a box that gets the caller's folder, or goes again.

use crate::client::unexpected;
use crate::complaint::Complaint;
use crate::here::{self, Here, Size};
use crate::host::{self, OtherBuild};
use crate::output::Output;
use box_api::BoxName;
use box_api::control::{
    KeepWorkspace, NewBox, Outcome, Removal, Remove, Request, Target, Unpushed,
};

/// Characters that make a made-up name one of a kind.
const SUFFIX_CHARS: usize = 4;
/// And how many of the folder's name come before them.
const NAME_CHARS_MAX: usize = 40;

#[derive(Debug, Clone, Copy, clap::Args)]
#[group(skip)]
pub(super) struct Args {
    /// Bring the repository or folder you stand in, uncommitted changes included; it is a copy
    #[arg(long)]
    here: bool,
    /// Bring it although it is large
    #[arg(long, requires = "here")]
    force: bool,
}

impl Args {
    /// What is to be brought; all that can go wrong out here goes wrong now.
    ///
    /// # Errors
    /// As those of [`here::prepare`].
    pub(super) fn prepare(self, output: &mut Output) -> Result<Option<Here>, Complaint> {
        let size = if self.force { Size::Any } else { Size::Usual };
        self.here.then(|| here::prepare(output, size)).transpose()
    }
}

/// Brings it into a box that was made for it; if that does not work the box goes again.
///
/// # Errors
/// What the box said.
pub(super) fn furnish(output: &mut Output, name: &BoxName, here: &Here) -> Result<(), Complaint> {
    let Err(complaint) = here.bring(output, name) else {
        return Ok(());
    };
    let request = Request::Remove(Remove {
        target: Target::Box(name.clone()),
        how: Removal::Now,
        workspace: KeepWorkspace::No,
        unpushed: Unpushed::Ignore,
    });
    let removed =
        host::reach(output, OtherBuild::Bear).and_then(|client| client.ask(output, &request));
    if removed.is_err() {
        output.note(&format!("box `{name}` is left, and empty"));
    }
    Err(complaint)
}

/// Makes a box and brings what is here into it.
///
/// # Errors
/// What the host or the box said.
pub(super) fn make(output: &mut Output, new: NewBox, here: &Here) -> Result<BoxName, Complaint> {
    let client = host::reach(output, OtherBuild::Bear)?;
    let outcome = client.ask(output, &Request::New(new))?;
    let Outcome::Info(made) = outcome else {
        return Err(unexpected(&outcome));
    };
    furnish(output, &made.name, here)?;
    Ok(made.name)
}

/// A name for a box with this in it.
pub(super) fn made_up_name(here: &Here) -> BoxName {
    let lower = here.name().to_ascii_lowercase();
    let plain: String = lower
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(NAME_CHARS_MAX)
        .collect();
    let base = plain.trim_matches(|c: char| c == '-' || c.is_ascii_digit());
    let base = if base.is_empty() { "here" } else { base };
    let name = format!("{base}-{}", suffix());
    #[expect(
        clippy::expect_used,
        reason = "a letter first, then letters, digits and `-`, and short: a test parses some"
    )]
    BoxName::parse(&name).expect("a made-up name is a name")
}

/// From the kernel's own source of chance; a clash is refused by the host and tried again by hand.
fn suffix() -> String {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut bytes = [0; SUFFIX_CHARS];
    // Without chance every name of a folder is the same, and the host says that it is taken.
    let _told = std::fs::File::open("/dev/urandom")
        .and_then(|mut source| std::io::Read::read_exact(&mut source, &mut bytes));
    bytes
        .iter()
        .map(|byte| char::from(ALPHABET[usize::from(byte % 32)]))
        .collect()
}
