//! Agents that do what no agent should.
//!
//! One program, [`PROGRAM`], written for Node so that it runs where a real agent's adapter does:
//! a test puts it in the place of the adapter in an installed pack, and the product mounts and
//! starts it like any other. Nothing in the product has to know.

use anyhow::{Context as _, Result};
use std::fs;
use std::path::Path;

const PROGRAM: &str = include_str!("hostile/agent.js");
const MARK: &str = "__BEHAVIOUR__";

/// What the agent does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    /// Ends with code 3 and a line on standard error before it said anything.
    DiesAtStart,
    /// Prints text that is no protocol and answers nothing.
    PrintsGarbage,
    /// Prints text that is no protocol between proper messages, and does its turn.
    PrintsGarbageBetween,
    /// Prints 100 MB without a line end in the middle of a turn.
    PrintsLongLine,
    /// Sends updates, content and a request of kinds nobody knows, and does its turn.
    SendsUnknown,
    /// Asks two permissions under one JSON-RPC id, one after the other.
    ReusesPermissionIds,
    /// Ends while its permission is open.
    DiesWithOpenPermission,
    /// Sends ten thousand updates in one go, and does its turn.
    Floods,
    /// Never ends its turn, not even when it is told to.
    NeverEnds,
    /// Says its environment, its command line and the files it finds, and does its turn.
    PrintsSecrets,
    /// Says a key of a known shape, [`PRINTED_KEY`], and does its turn.
    PrintsKeys,
    /// Answers what nobody asked and its prompt twice, and goes on to talk after it has.
    AnswersOutOfOrder,
    /// Repeats a conversation it takes up only once it has answered that it did.
    RepeatsLate,
}

/// Looks like a key and is none.
pub const PRINTED_KEY: &str = "sk-ant-api03-Zq7Lw2Xv9Tb4Nc8Rd1Mf6Hs3Jk5Gp0Ya";

impl Behaviour {
    pub const ALL: [Self; 13] = [
        Self::DiesAtStart,
        Self::PrintsGarbage,
        Self::PrintsGarbageBetween,
        Self::PrintsLongLine,
        Self::SendsUnknown,
        Self::ReusesPermissionIds,
        Self::DiesWithOpenPermission,
        Self::Floods,
        Self::NeverEnds,
        Self::PrintsSecrets,
        Self::PrintsKeys,
        Self::AnswersOutOfOrder,
        Self::RepeatsLate,
    ];

    /// The program that behaves like this.
    pub fn program(self) -> String {
        PROGRAM.replace(MARK, &format!("{self:?}"))
    }

    /// Puts the program in the place of `file`, such as the adapter's main file in a pack. The
    /// old file is unlinked, never written to: it may be shared with other copies of the pack.
    ///
    /// # Errors
    /// When there is no such file, or it cannot be replaced.
    pub fn take_place_of(self, file: &Path) -> Result<()> {
        let name = file.display();
        fs::remove_file(file).with_context(|| format!("could not remove `{name}`"))?;
        fs::write(file, self.program()).with_context(|| format!("could not write `{name}`"))
    }
}
