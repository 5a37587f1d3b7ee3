//! The person's terminal: raw while a box has it, silent while a secret is typed, and always put
//! back.

use box_api::control::TerminalSize;
use rustix::termios::{
    LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize,
};
use std::io::{IsTerminal as _, Stdin, stdin};
use std::os::fd::AsFd;

/// Whether a person sits at both ends: can be shown a question and can answer it.
pub(crate) fn can_ask() -> bool {
    stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// A mode of the terminal that ends with the value.
#[derive(Debug)]
pub(crate) struct Mode {
    terminal: Stdin,
    before: Termios,
}

impl Mode {
    /// Every byte goes through as it is typed.
    ///
    /// # Errors
    /// When standard input is no terminal.
    pub(crate) fn raw() -> std::io::Result<Self> {
        Self::set(Termios::make_raw)
    }

    /// Lines, without showing what is typed.
    ///
    /// # Errors
    /// When standard input is no terminal.
    pub(crate) fn silent() -> std::io::Result<Self> {
        Self::set(|modes| {
            modes.local_modes.remove(LocalModes::ECHO);
            modes.local_modes.insert(LocalModes::ECHONL);
        })
    }

    fn set(change: impl FnOnce(&mut Termios)) -> std::io::Result<Self> {
        let terminal = stdin();
        let before = tcgetattr(&terminal)?;
        let mut modes = before.clone();
        change(&mut modes);
        tcsetattr(&terminal, OptionalActions::Flush, &modes)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for Mode {
    fn drop(&mut self) {
        // A terminal that is gone needs no putting back.
        let _gone = tcsetattr(&self.terminal, OptionalActions::Drain, &self.before);
    }
}

/// The size of the terminal, or of a usual one.
pub(crate) fn size() -> TerminalSize {
    let size = tcgetwinsize(stdin()).or_else(|_| tcgetwinsize(std::io::stdout()));
    let usual = TerminalSize {
        rows: 24,
        columns: 80,
    };
    match size {
        Ok(size) if size.ws_row > 0 && size.ws_col > 0 => TerminalSize {
            rows: size.ws_row,
            columns: size.ws_col,
        },
        Ok(_) | Err(_) => usual,
    }
}

/// Gives a box's terminal the size of ours.
pub(crate) fn copy_size(to: &impl AsFd) {
    if let Ok(size) = tcgetwinsize(stdin()) {
        // The command may have ended meanwhile; then there is nothing to resize.
        let _gone = tcsetwinsize(to, size);
    }
}

/// Throws away what was typed before a question was shown.
pub(crate) fn forget_typed_ahead() {
    let _gone = rustix::termios::tcflush(stdin(), rustix::termios::QueueSelector::IFlush);
}
